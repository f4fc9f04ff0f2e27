//! What a value is: element types, buffers, tensors, and views of them.
//!
//! The bottom room: it imports nothing of the library.
//!
//! A tensor's elements lie in row-major order without gaps. Types narrower than a byte (int4,
//! uint4, float4e2m1, int2, uint2) take one byte an element here, sign-extended where signed;
//! `model` unpacks them when it reads a file.

mod buffer;
mod element;
mod float8;
mod pages;
mod value;
mod view;

pub use buffer::{ALIGNMENT, AllocError, Buffer, Place};
pub use element::{Bool, Element, ElementType, F4E2M1, I2, I4, U2, U4};
pub use float8::{F6E2M3, F6E3M2, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0};
pub use half::{bf16, f16};
pub use value::{MapKeys, Tensor, Value, ValueRef, ValueType};
pub use view::{TensorView, TensorViewMut, bytes_of, bytes_of_mut};

pub type C64 = num_complex::Complex<f32>;
pub type C128 = num_complex::Complex<f64>;

/// Dimensions of a tensor; up to six without an allocation.
pub type Shape = smallvec::SmallVec<[usize; 6]>;

/// The number of elements of `shape`, or `None` when the product overflows.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
}
