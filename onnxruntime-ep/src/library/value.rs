//! Tensors of librukh.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

use rukh_sys::*;

use super::call::{call, make};
use super::environment::Environment;
use crate::error::Result;

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
    /// A tensor over host memory.
    ///
    /// # Safety
    /// `data` is `bytes` bytes, aligned as librukh wants it, that stay until the tensor and all runs with it are gone;
    /// nobody else uses them while a run writes them.
    pub(crate) unsafe fn over_host(
        element: i32,
        shape: &[i64],
        data: *mut c_void,
        bytes: usize,
    ) -> Result<Value> {
        let data = if bytes == 0 { null_mut() } else { data };
        // SAFETY: the caller's promise; the shape is an array of its length.
        make(|out, error| unsafe {
            rukh_value_create_tensor_over(
                element,
                shape.as_ptr(),
                shape.len(),
                data,
                bytes,
                None,
                null_mut(),
                out,
                error,
            )
        })
        .map(Value)
    }

    /// A tensor over a device's memory.
    ///
    /// # Safety
    /// As `over_host`, in the memory of that device.
    pub(crate) unsafe fn over_device(
        environment: &Environment,
        device: usize,
        element: i32,
        shape: &[i64],
        address: *mut c_void,
        bytes: usize,
    ) -> Result<Value> {
        // SAFETY: the caller's promise; the environment is live; the shape is an array of its length.
        make(|out, error| unsafe {
            rukh_value_create_device_tensor_over(
                environment.0,
                device,
                element,
                shape.as_ptr(),
                shape.len(),
                address,
                bytes,
                None,
                null_mut(),
                out,
                error,
            )
        })
        .map(Value)
    }

    /// A tensor with a copy of bytes in host memory.
    pub(crate) fn copied(element: i32, shape: &[i64], bytes: &[u8]) -> Result<Value> {
        let data = if bytes.is_empty() { null() } else { bytes.as_ptr().cast() };
        // SAFETY: shape and bytes are arrays of their lengths.
        make(|out, error| unsafe {
            rukh_value_create_tensor_copy(element, shape.as_ptr(), shape.len(), data, bytes.len(), out, error)
        })
        .map(Value)
    }

    pub(crate) fn strings(shape: &[i64], texts: &[Vec<u8>]) -> Result<Value> {
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr().cast()).collect();
        let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
        // SAFETY: all are arrays of their lengths, and the lengths are those of the texts.
        make(|out, error| unsafe {
            rukh_value_create_strings(
                shape.as_ptr(),
                shape.len(),
                pointers.as_ptr(),
                lengths.as_ptr(),
                texts.len(),
                out,
                error,
            )
        })
        .map(Value)
    }

    /// A block of a GPU's memory, with its address.
    pub(crate) fn device_block(
        environment: &Environment,
        gpu: usize,
        bytes: usize,
    ) -> Result<(Value, *mut c_void)> {
        let shape = [i64::try_from(bytes).unwrap_or(i64::MAX)];
        // SAFETY: the environment is live; the shape is an array of its length.
        let value = make(|out, error| unsafe {
            rukh_value_create_device_tensor(
                environment.0,
                gpu,
                RUKH_ELEMENT_UINT8,
                shape.as_ptr(),
                1,
                out,
                error,
            )
        })
        .map(Value)?;
        let (mut on_device, mut address) = (0, 0_u64);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_device(value.0, &mut on_device, null_mut(), &mut address, error) })?;
        Ok((value, std::ptr::with_exposed_provenance_mut(address as usize)))
    }

    /// A block of host memory that is pinned for a GPU, with its address.
    pub(crate) fn pinned_block(
        environment: &Environment,
        gpu: usize,
        bytes: usize,
    ) -> Result<(Value, *mut c_void)> {
        let shape = [i64::try_from(bytes).unwrap_or(i64::MAX)];
        // SAFETY: the environment is live, the name NUL-terminated, the shape an array of its length; the device is destroyed
        // once.
        let made = unsafe {
            let device = make(|out, error| {
                rukh_environment_find_device(environment.0, c"hip".as_ptr(), gpu, out, error)
            })?;
            let (kind, element) = (RUKH_MEMORY_PINNED, RUKH_ELEMENT_UINT8);
            let made = make(|out, error| {
                rukh_value_create_tensor_in(device, kind, element, shape.as_ptr(), 1, out, error)
            });
            rukh_device_destroy(device);
            made
        };
        let (value, mut address) = (Value(made?), null_mut());
        // SAFETY: the value is live and nobody else's; the place is a local; NULL is allowed for what is not wanted.
        call(|error| unsafe { rukh_value_data_mut(value.0, &mut address, null_mut(), error) })?;
        Ok((value, address))
    }

    pub(crate) fn copy_to(&self, to: &mut Value) -> Result<()> {
        // SAFETY: both are live, and nobody else uses `to`.
        call(|error| unsafe { rukh_value_copy(self.0, to.0, error) })
    }

    /// Gives a copy to a stream, and returns without waiting for it.
    ///
    /// # Safety
    /// What both lie over stays until the stream has come past the copy, and nobody else uses `to`'s.
    pub(crate) unsafe fn copy_in_stream(&self, to: &mut Value, stream: u64) -> Result<()> {
        // SAFETY: both are live; the caller's promise.
        call(|error| unsafe { rukh_value_copy_queued(self.0, to.0, stream, null_mut(), error) })
    }

    /// A copy in host memory of a tensor that is in a device's; none for one that is in host memory.
    pub(crate) fn on_host(&self) -> Result<Option<Value>> {
        let (mut on_device, mut element) = (0, 0);
        // SAFETY: the value is live; the places are locals.
        unsafe {
            call(|error| rukh_value_device(self.0, &mut on_device, null_mut(), null_mut(), error))?;
            call(|error| rukh_value_element_type(self.0, &mut element, error))?;
        }
        if on_device == 0 {
            return Ok(None);
        }
        let shape = self.shape()?;
        // SAFETY: the shape is an array of its length.
        let mut copy = make(|out, error| unsafe {
            rukh_value_create_tensor(element, shape.as_ptr(), shape.len(), out, error)
        })
        .map(Value)?;
        self.copy_to(&mut copy)?;
        Ok(Some(copy))
    }

    pub(crate) fn shape(&self) -> Result<Vec<i64>> {
        let mut rank = 0;
        // SAFETY: the value is live; NULL and 0 ask for the rank alone.
        call(|error| unsafe { rukh_value_shape(self.0, null_mut(), 0, &mut rank, error) })?;
        let mut shape = vec![0; rank];
        if rank > 0 {
            // SAFETY: there is room for all dimensions.
            call(|error| unsafe { rukh_value_shape(self.0, shape.as_mut_ptr(), rank, null_mut(), error) })?;
        }
        Ok(shape)
    }

    /// The bytes of the elements, which must lie in the host's memory.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        let (mut data, mut bytes) = (null(), 0);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_data(self.0, &mut data, &mut bytes, error) })?;
        if bytes == 0 {
            return Ok(&[]);
        }
        // SAFETY: librukh lends so many bytes for as long as the value lives.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) })
    }

    /// The text at a place of a tensor of texts, without a NUL at its end.
    pub(crate) fn text(&self, index: usize) -> Result<Vec<u8>> {
        let mut needed = 0;
        // SAFETY: the value is live; NULL and 0 ask for the size alone.
        call(|error| unsafe { rukh_value_string(self.0, index, null_mut(), 0, &mut needed, error) })?;
        let mut text = vec![0_u8; needed];
        // SAFETY: there is room for the text and its NUL.
        call(|error| unsafe {
            rukh_value_string(self.0, index, text.as_mut_ptr().cast(), needed, null_mut(), error)
        })?;
        text.pop();
        Ok(text)
    }
}
