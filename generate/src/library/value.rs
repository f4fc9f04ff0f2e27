//! Tensors of librukh.

use std::ffi::c_void;
use std::ptr::null_mut;

use super::call::{call, make};
use super::session::Environment;
use crate::error::{Result, fail};
use rukh_sys::*;

/// The types of elements that models of this kind have at their borders, with their numbers in ONNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Element {
    F32 = 1,
    I32 = 6,
    I64 = 7,
    F16 = 10,
    Bf16 = 16,
}

impl Element {
    pub(crate) fn from_number(number: i32) -> Option<Element> {
        use Element::*;
        [F32, I32, I64, F16, Bf16].into_iter().find(|element| *element as i32 == number)
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Element::F32 | Element::I32 => 4,
            Element::I64 => 8,
            Element::F16 | Element::Bf16 => 2,
        }
    }
}

/// A tensor, whose elements others may share.
pub(crate) struct Value(pub(super) *mut rukh_value);

// SAFETY: handles may be used from any thread; what is written is written under `&mut`.
unsafe impl Send for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_value_destroy(self.0) };
    }
}

impl Value {
    /// A tensor of zeros in the host's memory.
    pub(crate) fn host(element: Element, shape: &[i64]) -> Result<Value> {
        // SAFETY: the shape is an array of its length.
        make(|out, error| unsafe {
            rukh_value_create_tensor(element as i32, shape.as_ptr(), shape.len(), out, error)
        })
        .map(Value)
    }

    /// A tensor in a device's memory; its elements are unspecified.
    pub(crate) fn device(
        environment: &Environment,
        device: usize,
        element: Element,
        shape: &[i64],
    ) -> Result<Value> {
        // SAFETY: the environment is live; the shape is an array of its length.
        make(|out, error| unsafe {
            rukh_value_create_device_tensor(
                environment.handle(),
                device,
                element as i32,
                shape.as_ptr(),
                shape.len(),
                out,
                error,
            )
        })
        .map(Value)
    }

    /// The bytes of the elements, which must lie in the host's memory.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        let (mut data, mut bytes) = (std::ptr::null(), 0);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_data(self.0, &mut data, &mut bytes, error) })?;
        // SAFETY: librukh lends so many bytes for as long as the value lives; nobody writes while `self` is borrowed,
        // for runs take their values by reference too and end before they return.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) })
    }

    /// A tensor of integers, of i64 or i32.
    pub(crate) fn of(element: Element, shape: &[i64], numbers: &[i64]) -> Result<Value> {
        let mut value = Value::host(element, shape)?;
        value.fill(element, numbers)?;
        Ok(value)
    }

    /// Writes integers as elements of the tensor, which is of i64 or i32.
    pub(crate) fn fill(&mut self, element: Element, numbers: &[i64]) -> Result<()> {
        let (mut data, mut bytes): (*mut c_void, usize) = (null_mut(), 0);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_data_mut(self.0, &mut data, &mut bytes, error) })?;
        if bytes != numbers.len() * element.size() {
            fail!(Internal, "{} numbers do not fill {bytes} bytes", numbers.len());
        }
        // SAFETY: librukh lends so many bytes; no run is under way while `self` is borrowed mutably.
        let target = unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) };
        for (place, number) in target.chunks_exact_mut(element.size()).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes()[..element.size()]);
        }
        Ok(())
    }
}
