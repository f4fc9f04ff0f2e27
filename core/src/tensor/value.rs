//! Owned values: tensors, sequences, maps, optionals, and their types.

use std::sync::Arc;

use super::view::{align_of_type, bytes_of};
use super::{
    AllocError, Buffer, Element, ElementType, Place, Shape, TensorView, TensorViewMut, element_count,
};

/// A tensor that owns (or shares) its elements. Cloning shares them.
#[derive(Clone, Debug)]
pub struct Tensor {
    ty: ElementType,
    shape: Shape,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Plain(Buffer),
    Strings(Arc<Vec<String>>),
}

impl Tensor {
    /// Zeros (or empty strings).
    pub fn zeros(ty: ElementType, shape: &[usize]) -> Result<Self, AllocError> {
        let count = element_count(shape).ok_or(AllocError { bytes: usize::MAX })?;
        if ty == ElementType::String {
            return Ok(Self::from_strings(shape, vec![String::new(); count]));
        }
        let bytes = count.checked_mul(ty.size()).ok_or(AllocError { bytes: usize::MAX })?;
        Ok(Tensor { ty, shape: shape.into(), data: Data::Plain(Buffer::zeroed(bytes)?) })
    }

    /// Elements to be written in memory that `memory` gives (or empty strings).
    pub fn unwritten(
        ty: ElementType,
        shape: &[usize],
        memory: impl FnOnce(usize) -> Result<Buffer, AllocError>,
    ) -> Result<Self, AllocError> {
        if ty == ElementType::String {
            return Self::zeros(ty, shape);
        }
        let bytes = element_count(shape).and_then(|count| count.checked_mul(ty.size()));
        let buffer = memory(bytes.ok_or(AllocError { bytes: usize::MAX })?)?;
        Ok(Tensor { ty, shape: shape.into(), data: Data::Plain(buffer) })
    }

    /// A copy of `elements`, whose number must be that of `shape`.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self, AllocError> {
        assert_eq!(element_count(shape), Some(elements.len()), "elements of shape {shape:?}");
        Ok(Tensor {
            ty: T::TYPE,
            shape: shape.into(),
            data: Data::Plain(Buffer::copy_of(bytes_of(elements))?),
        })
    }

    /// One string an element; their number must be that of `shape`.
    pub fn from_strings(shape: &[usize], strings: Vec<String>) -> Self {
        assert_eq!(element_count(shape), Some(strings.len()), "strings of shape {shape:?}");
        Tensor { ty: ElementType::String, shape: shape.into(), data: Data::Strings(Arc::new(strings)) }
    }

    /// Elements in a buffer, shared. `None` when the buffer's length is not that of type and shape.
    /// A buffer that is not aligned to the element is allowed; such a tensor must be `aligned`
    /// before it is viewed.
    pub fn from_buffer(ty: ElementType, shape: &[usize], buffer: Buffer) -> Option<Self> {
        let bytes = element_count(shape)?.checked_mul(ty.size())?;
        (ty != ElementType::String && bytes == buffer.len()).then(|| Tensor {
            ty,
            shape: shape.into(),
            data: Data::Plain(buffer),
        })
    }

    pub fn ty(&self) -> ElementType {
        self.ty
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Plain(buffer) => buffer.len() / self.ty.size(),
            Data::Strings(strings) => strings.len(),
        }
    }

    /// The memory of a tensor of anything but strings.
    pub fn buffer(&self) -> Option<&Buffer> {
        match &self.data {
            Data::Plain(buffer) => Some(buffer),
            Data::Strings(_) => None,
        }
    }

    /// Whether the elements are not in the process; see `Buffer::absent`.
    pub fn is_absent(&self) -> bool {
        self.buffer().is_some_and(Buffer::is_absent)
    }

    /// The strings of a string tensor.
    pub fn strings(&self) -> Option<&[String]> {
        match &self.data {
            Data::Strings(strings) => Some(strings),
            Data::Plain(_) => None,
        }
    }

    /// The strings of a string tensor, to change; copied first when other tensors share them.
    pub fn strings_mut(&mut self) -> Option<&mut [String]> {
        match &mut self.data {
            Data::Strings(strings) => Some(Arc::<Vec<String>>::make_mut(strings).as_mut_slice()),
            Data::Plain(_) => None,
        }
    }

    /// Whether the elements lie where a view needs them.
    pub fn is_aligned(&self) -> bool {
        match &self.data {
            Data::Plain(buffer) => {
                buffer.place() == Place::Device
                    || buffer.as_ptr().addr().is_multiple_of(align_of_type(self.ty))
            }
            Data::Strings(_) => true,
        }
    }

    /// This tensor, copied when its memory was not aligned.
    pub fn aligned(&self) -> Result<Self, AllocError> {
        match &self.data {
            Data::Plain(buffer) if !self.is_aligned() => {
                let data = Data::Plain(Buffer::copy_of(buffer.bytes())?);
                Ok(Tensor { ty: self.ty, shape: self.shape.clone(), data })
            }
            _ => Ok(self.clone()),
        }
    }

    /// A view of a tensor of anything but strings; its memory must be aligned. Both are checked.
    pub fn view(&self) -> TensorView<'_> {
        let bytes = self.buffer().map_or(&[][..], Buffer::bytes);
        TensorView::new(self.ty, &self.shape, bytes)
    }

    /// A view to write.
    ///
    /// # Safety
    /// The memory must be writable, and nothing else may use it while the view lives.
    pub unsafe fn view_mut(&self) -> TensorViewMut<'_> {
        let bytes = match &self.data {
            // SAFETY: exclusive use is the caller's promise.
            Data::Plain(buffer) => unsafe { buffer.bytes_mut() },
            Data::Strings(_) => &mut [],
        };
        TensorViewMut::new(self.ty, &self.shape, bytes)
    }

    /// The same elements under another shape; `None` when the counts differ.
    pub fn reshaped(&self, shape: &[usize]) -> Option<Self> {
        (element_count(shape)? == self.len()).then(|| Tensor {
            ty: self.ty,
            shape: shape.into(),
            data: self.data.clone(),
        })
    }

    /// The elements of an int64 or int32 tensor as i64, read from aligned or misaligned memory.
    pub fn to_ints(&self) -> Option<Vec<i64>> {
        let bytes = self.buffer()?.bytes();
        match self.ty {
            ElementType::I64 => Some(bytes.as_chunks().0.iter().map(|&b| i64::from_ne_bytes(b)).collect()),
            ElementType::I32 => {
                Some(bytes.as_chunks().0.iter().map(|&b| i32::from_ne_bytes(b) as i64).collect())
            }
            _ => None,
        }
    }
}

/// Anything an ONNX value can be.
#[derive(Clone, Debug)]
pub enum Value {
    Tensor(Tensor),
    /// Values of one type; `element` is known also when the sequence is empty.
    Sequence {
        element: ValueType,
        items: Vec<Value>,
    },
    /// Keys in the order given, without duplicates, and as many values.
    Map {
        keys: MapKeys,
        value: ValueType,
        values: Vec<Value>,
    },
    Optional {
        element: ValueType,
        value: Option<Box<Value>>,
    },
}

/// The keys of a map: integers or strings.
#[derive(Clone, Debug, PartialEq)]
pub enum MapKeys {
    Ints(ElementType, Vec<i64>),
    Strings(Vec<String>),
}

impl Value {
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub fn ty(&self) -> ValueType {
        match self {
            Value::Tensor(tensor) => ValueType::Tensor(tensor.ty()),
            Value::Sequence { element, .. } => ValueType::Sequence(Box::new(element.clone())),
            Value::Map { keys, value, .. } => {
                let key = match keys {
                    MapKeys::Ints(ty, _) => *ty,
                    MapKeys::Strings(_) => ElementType::String,
                };
                ValueType::Map(key, Box::new(value.clone()))
            }
            Value::Optional { element, .. } => ValueType::Optional(Box::new(element.clone())),
        }
    }
}

/// A value that a kernel reads: a view into planned memory, or a value of its own.
#[derive(Clone, Copy)]
pub enum ValueRef<'a> {
    Tensor(TensorView<'a>),
    Value(&'a Value),
}

impl<'a> ValueRef<'a> {
    /// The tensor as a view; `None` for strings, other kinds of value and device memory.
    pub fn view(self) -> Option<TensorView<'a>> {
        match self {
            ValueRef::Tensor(view) => Some(view),
            ValueRef::Value(Value::Tensor(t)) if self.place() == Some(Place::Host) => Some(t.view()),
            ValueRef::Value(_) => None,
        }
    }

    /// Type, shape and place of a plain tensor, wherever it is.
    pub fn layout(self) -> Option<(ElementType, &'a [usize], Place)> {
        Some((self.ty()?, self.shape()?, self.place()?))
    }

    /// Address and bytes of a plain tensor, wherever it is.
    pub fn span(self) -> (*mut u8, usize) {
        match self {
            ValueRef::Tensor(view) => (view.bytes().as_ptr().cast_mut(), view.bytes().len()),
            ValueRef::Value(value) => {
                let buffer = value.as_tensor().and_then(Tensor::buffer);
                buffer.map_or((std::ptr::null_mut(), 0), |b| (b.as_ptr(), b.len()))
            }
        }
    }

    /// The strings of a string tensor.
    pub fn strings(self) -> Option<&'a [String]> {
        match self {
            ValueRef::Value(Value::Tensor(t)) => t.strings(),
            _ => None,
        }
    }

    /// The shape of any tensor, strings as well.
    pub fn shape(self) -> Option<&'a [usize]> {
        match self {
            ValueRef::Tensor(view) => Some(view.shape()),
            ValueRef::Value(Value::Tensor(t)) => Some(t.shape()),
            ValueRef::Value(_) => None,
        }
    }

    /// Where the elements of a tensor of anything but strings are.
    pub fn place(self) -> Option<Place> {
        match self {
            ValueRef::Tensor(_) => Some(Place::Host),
            ValueRef::Value(value) => value.as_tensor()?.buffer().map(Buffer::place),
        }
    }

    /// The element type of any tensor.
    pub fn ty(self) -> Option<ElementType> {
        match self {
            ValueRef::Tensor(view) => Some(view.ty()),
            ValueRef::Value(Value::Tensor(t)) => Some(t.ty()),
            ValueRef::Value(_) => None,
        }
    }

    /// A value that outlives the borrow: planned memory is copied, everything else shared.
    pub fn to_value(self) -> Result<Value, AllocError> {
        match self {
            ValueRef::Value(value) => Ok(value.clone()),
            ValueRef::Tensor(view) => {
                let data = Data::Plain(Buffer::copy_of(view.bytes())?);
                Ok(Value::Tensor(Tensor { ty: view.ty(), shape: view.shape().into(), data }))
            }
        }
    }
}

/// The type of a value, without shapes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    Tensor(ElementType),
    Sequence(Box<ValueType>),
    Map(ElementType, Box<ValueType>),
    Optional(Box<ValueType>),
}

impl ValueType {
    pub fn element(&self) -> Option<ElementType> {
        match self {
            ValueType::Tensor(ty) => Some(*ty),
            _ => None,
        }
    }
}

impl std::fmt::Display for ValueType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValueType::Tensor(ty) => write!(f, "tensor({ty})"),
            ValueType::Sequence(t) => write!(f, "seq({t})"),
            ValueType::Map(k, v) => write!(f, "map({k},{v})"),
            ValueType::Optional(t) => write!(f, "optional({t})"),
        }
    }
}
