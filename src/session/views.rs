//! Views of planned values: from an address and a length to a tensor.

use crate::plan::State;
use crate::tensor::{TensorView, TensorViewMut};

/// A planned value.
///
/// # Safety
/// The span must be valid for reads of its length, and not be written, while the view lives.
pub(super) unsafe fn view<'a>(state: &'a State, span: (*mut u8, usize)) -> Option<TensorView<'a>> {
    let (ty, shape) = state.layout()?;
    // SAFETY: the caller's promise; an empty span may have no address.
    let bytes = unsafe { span_bytes(span) };
    Some(TensorView::new(ty, shape, bytes))
}

/// A planned value to write.
///
/// # Safety
/// The span must be valid for writes of its length, and not be used otherwise, while the view lives.
pub(super) unsafe fn view_mut<'a>(state: &'a State, span: (*mut u8, usize)) -> Option<TensorViewMut<'a>> {
    let (ty, shape) = state.layout()?;
    let bytes: &mut [u8] = if span.1 == 0 {
        aligned_empty()
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(span.0, span.1) }
    };
    Some(TensorViewMut::new(ty, shape, bytes))
}

/// # Safety
/// As for `view`.
unsafe fn span_bytes<'a>(span: (*mut u8, usize)) -> &'a [u8] {
    if span.1 == 0 {
        aligned_empty()
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(span.0, span.1) }
    }
}

/// No bytes, at an address that suits every element.
fn aligned_empty<'a>() -> &'a mut [u8] {
    // SAFETY: a slice of length 0 needs only a non-null, aligned address.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::NonNull::<u128>::dangling().as_ptr().cast(), 0) }
}
