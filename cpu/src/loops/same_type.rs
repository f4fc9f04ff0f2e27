//! Slices of a type parameter as those of the type that it is.

use std::any::TypeId;

/// The slice, where `T` is `U`.
#[inline(always)]
pub(crate) fn same_type<T: 'static, U: 'static>(x: &[T]) -> Option<&[U]> {
    // SAFETY: both are the same type.
    is_same::<T, U>().then(|| unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) })
}

/// As [`same_type`].
#[inline(always)]
pub(crate) fn same_type_mut<T: 'static, U: 'static>(x: &mut [T]) -> Option<&mut [U]> {
    // SAFETY: both are the same type.
    is_same::<T, U>().then(|| unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) })
}

fn is_same<T: 'static, U: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<U>()
}
