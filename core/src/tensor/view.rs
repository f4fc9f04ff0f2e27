//! Borrowed tensors: what kernels read and write.

use super::{Element, ElementType};

/// A tensor to read: row-major, without gaps, aligned to its element.
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    ty: ElementType,
    shape: &'a [usize],
    bytes: &'a [u8],
}

/// A tensor to write. What it holds before is unspecified.
pub struct TensorViewMut<'a> {
    ty: ElementType,
    shape: &'a [usize],
    bytes: &'a mut [u8],
}

impl<'a> TensorView<'a> {
    /// `bytes` must hold the elements of `shape`, aligned to the element; checked.
    pub fn new(ty: ElementType, shape: &'a [usize], bytes: &'a [u8]) -> Self {
        check(ty, shape, bytes);
        TensorView { ty, shape, bytes }
    }

    pub fn ty(&self) -> ElementType {
        self.ty
    }

    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.ty.size()
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements. The type was checked when the kernel was built, so another one here is a
    /// defect of the library and panics.
    pub fn slice<T: Element>(&self) -> &'a [T] {
        assert_eq!(self.ty, T::TYPE, "a kernel for another element type was chosen");
        // SAFETY: `new` checked length and alignment; every bit pattern of an Element is valid.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len()) }
    }
}

impl<'a> TensorViewMut<'a> {
    /// `bytes` must hold the elements of `shape`, aligned to the element; checked.
    pub fn new(ty: ElementType, shape: &'a [usize], bytes: &'a mut [u8]) -> Self {
        check(ty, shape, bytes);
        TensorViewMut { ty, shape, bytes }
    }

    pub fn ty(&self) -> ElementType {
        self.ty
    }

    pub fn shape(&self) -> &'a [usize] {
        self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.ty.size()
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The elements; see [`TensorView::slice`].
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(self.ty, T::TYPE, "a kernel for another element type was chosen");
        // SAFETY: `new` checked length and alignment; every bit pattern of an Element is valid.
        unsafe {
            std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast(), self.bytes.len() / size_of::<T>())
        }
    }
}

/// The bytes of a slice of elements.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: an Element is plain data without padding (its size is that of its ONNX type).
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of a slice of elements, to be written.
pub fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every bit pattern of an Element is valid.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

fn check(ty: ElementType, shape: &[usize], bytes: &[u8]) {
    let size = ty.size();
    assert!(size != 0, "strings have no view");
    let want = super::element_count(shape).and_then(|n| n.checked_mul(size));
    assert_eq!(want, Some(bytes.len()), "the bytes of a {ty} tensor of shape {shape:?}");
    assert!(
        bytes.as_ptr().addr().is_multiple_of(align_of_type(ty)),
        "a {ty} tensor is aligned to its element"
    );
}

/// The alignment an element needs, in bytes.
pub fn align_of_type(ty: ElementType) -> usize {
    ty.size().clamp(1, 8)
}
