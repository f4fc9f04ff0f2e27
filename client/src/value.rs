//! Tensors.

use std::ffi::{c_char, c_void};
use std::ptr::{null, null_mut};

use rukh_sys::*;

use crate::call::{call, owner};
use crate::{Element, Environment, Error, Result, Status};

owner!(
    /// A tensor, whose elements others may share.
    Value,
    rukh_value,
    rukh_value_destroy
);

impl Value {
    /// A tensor of zeros in the host's memory.
    pub fn host(element: Element, shape: &[i64]) -> Result<Value> {
        // SAFETY: the shape is an array of its length.
        Value::made(|out, error| unsafe {
            rukh_value_create_tensor(element as i32, shape.as_ptr(), shape.len(), out, error)
        })
    }

    /// A tensor in the host's memory whose elements a function writes. They are zeros before.
    pub fn written(element: Element, shape: &[i64], write: impl FnOnce(&mut [u8])) -> Result<Value> {
        let value = Value::host(element, shape)?;
        let (mut data, mut bytes): (*mut c_void, usize) = (null_mut(), 0);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_data_mut(value.handle(), &mut data, &mut bytes, error) })?;
        if bytes == 0 {
            write(&mut []);
        } else {
            // SAFETY: librukh lends so many bytes, and nobody else knows of the tensor yet.
            write(unsafe { std::slice::from_raw_parts_mut(data.cast::<u8>(), bytes) });
        }
        Ok(value)
    }

    /// A tensor with a copy of bytes in host memory.
    pub fn copied(element: Element, shape: &[i64], bytes: &[u8]) -> Result<Value> {
        let data = if bytes.is_empty() { null() } else { bytes.as_ptr().cast() };
        // SAFETY: shape and bytes are arrays of their lengths.
        Value::made(|out, error| unsafe {
            rukh_value_create_tensor_copy(
                element as i32,
                shape.as_ptr(),
                shape.len(),
                data,
                bytes.len(),
                out,
                error,
            )
        })
    }

    /// A tensor over host memory. librukh refuses memory that is not aligned to the element's size, to 8 bytes at the
    /// most.
    ///
    /// # Safety
    /// `data` is `bytes` bytes that stay until the tensor and all runs with it are gone. Nobody writes them while a run
    /// reads them, and nobody uses them while a run writes them.
    pub unsafe fn over_host(
        element: Element,
        shape: &[i64],
        data: *mut c_void,
        bytes: usize,
    ) -> Result<Value> {
        let data = if bytes == 0 { null_mut() } else { data };
        // SAFETY: the caller's promise; the shape is an array of its length.
        Value::made(|out, error| unsafe {
            rukh_value_create_tensor_over(
                element as i32,
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
    }

    /// A tensor in a device's memory; its elements are unspecified.
    pub fn device(
        environment: &Environment,
        device: usize,
        element: Element,
        shape: &[i64],
    ) -> Result<Value> {
        // SAFETY: the environment is live or one that librukh checks; the shape is an array of its length.
        Value::made(|out, error| unsafe {
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
    }

    /// A tensor over a device's memory.
    ///
    /// # Safety
    /// As `over_host`, in the memory of that device.
    pub unsafe fn over_device(
        environment: &Environment,
        device: usize,
        element: Element,
        shape: &[i64],
        address: *mut c_void,
        bytes: usize,
    ) -> Result<Value> {
        // SAFETY: the caller's promise; the environment is live or one that librukh checks; the shape is an array of its
        // length.
        Value::made(|out, error| unsafe {
            rukh_value_create_device_tensor_over(
                environment.handle(),
                device,
                element as i32,
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
    }

    /// A tensor of strings, which must be UTF-8.
    pub fn strings<T: AsRef<[u8]>>(shape: &[i64], texts: &[T]) -> Result<Value> {
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ref().as_ptr().cast()).collect();
        let lengths: Vec<usize> = texts.iter().map(|text| text.as_ref().len()).collect();
        // SAFETY: all are arrays of their lengths, and the lengths are those of the texts.
        Value::made(|out, error| unsafe {
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
    }

    pub fn element(&self) -> Result<Element> {
        let mut element = 0;
        // SAFETY: the value is live; the place is a local.
        call(|error| unsafe { rukh_value_element_type(self.handle(), &mut element, error) })?;
        let unknown = || Error::new(Status::Unsupported, format!("elements of the unknown type {element}"));
        Element::from_number(element).ok_or_else(unknown)
    }

    pub fn shape(&self) -> Result<Vec<i64>> {
        let mut rank = 0;
        // SAFETY: the value is live; NULL and 0 ask for the rank alone.
        call(|error| unsafe { rukh_value_shape(self.handle(), null_mut(), 0, &mut rank, error) })?;
        let mut shape = vec![0; rank];
        if rank > 0 {
            // SAFETY: there is room for all dimensions.
            call(|error| unsafe {
                rukh_value_shape(self.handle(), shape.as_mut_ptr(), rank, null_mut(), error)
            })?;
        }
        Ok(shape)
    }

    /// The bytes of the elements, which must lie in the host's memory.
    pub fn bytes(&self) -> Result<&[u8]> {
        let (mut data, mut bytes) = (null(), 0);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe { rukh_value_data(self.handle(), &mut data, &mut bytes, error) })?;
        if bytes == 0 {
            return Ok(&[]);
        }
        // SAFETY: librukh lends so many bytes for as long as the value lives. Who has elements written meanwhile, by
        // binding them as an output or over memory of their own, promised not to.
        Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) })
    }

    /// The address in a device's memory, and the device; `None` for a tensor in the host's.
    pub fn on_device(&self) -> Result<Option<(usize, u64)>> {
        let (mut on_device, mut device, mut address) = (0, 0, 0_u64);
        // SAFETY: the value is live; the places are locals.
        call(|error| unsafe {
            rukh_value_device(self.handle(), &mut on_device, &mut device, &mut address, error)
        })?;
        Ok((on_device != 0).then_some((device, address)))
    }

    /// A copy in host memory, of a tensor anywhere.
    pub fn to_host(&self) -> Result<Value> {
        let copy = Value::host(self.element()?, &self.shape()?)?;
        // SAFETY: nobody else knows of the copy yet.
        unsafe { self.copy_to(&copy)? };
        Ok(copy)
    }

    /// Copies the elements into another tensor of the same type and shape.
    ///
    /// # Safety
    /// Nobody uses the elements of `to` meanwhile.
    pub unsafe fn copy_to(&self, to: &Value) -> Result<()> {
        // SAFETY: both are live; the caller's promise.
        call(|error| unsafe { rukh_value_copy(self.handle(), to.handle(), error) })
    }

    /// The text at a place of a tensor of strings, without a NUL at its end.
    pub fn text(&self, index: usize) -> Result<Vec<u8>> {
        let mut needed = 0;
        // SAFETY: the value is live; NULL and 0 ask for the size alone.
        call(|error| unsafe { rukh_value_string(self.handle(), index, null_mut(), 0, &mut needed, error) })?;
        let mut text = vec![0_u8; needed];
        // SAFETY: there is room for the text and its NUL.
        call(|error| unsafe {
            rukh_value_string(self.handle(), index, text.as_mut_ptr().cast(), needed, null_mut(), error)
        })?;
        text.pop();
        Ok(text)
    }
}
