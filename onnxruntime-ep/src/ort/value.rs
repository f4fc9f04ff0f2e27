//! Tensors of ONNX Runtime's.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::null;

use ort_sys::OrtValue;

use super::interface::element_place;
use super::{ElementType, Ort};
use crate::error::Result;

/// A tensor that is read or written while a call lasts.
#[derive(Clone, Copy)]
pub(crate) struct Tensor<'a> {
    ort: Ort,
    pub(crate) pointer: *const OrtValue,
    life: PhantomData<&'a OrtValue>,
}

/// Whose memory a tensor lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryPlace {
    Host,
    /// A device's own memory, by the number that ONNX Runtime knows the device by.
    Device(u32),
}

impl<'a> Tensor<'a> {
    /// # Safety
    /// `pointer` is a value that lives for `'a`.
    pub(crate) unsafe fn new(ort: Ort, pointer: *const OrtValue) -> Tensor<'a> {
        Tensor { ort, pointer, life: PhantomData }
    }

    /// The type of the elements and the shape. An error for what is no tensor.
    pub(crate) fn type_and_shape(&self) -> Result<(ElementType, &'a [i64])> {
        let (mut element, mut shape, mut rank) = (0, null(), 0);
        // SAFETY: the value is live; the places are locals; the shape lives as long as the value.
        unsafe {
            self.ort.check((self.ort.api.GetTensorElementTypeAndShapeDataReference)(
                self.pointer,
                element_place(&mut element),
                &mut shape,
                &mut rank,
            ))?;
            let shape = if rank == 0 { &[] } else { std::slice::from_raw_parts(shape, rank) };
            Ok((element, shape))
        }
    }

    /// The address of the elements, in the memory that `place` tells.
    pub(crate) fn data(&self) -> Result<*mut c_void> {
        let mut data = null();
        // SAFETY: the value is live; the place is a local.
        self.ort.check(unsafe { (self.ort.api.GetTensorData)(self.pointer, &mut data) })?;
        Ok(data.cast_mut())
    }

    /// The bytes that the elements take.
    pub(crate) fn bytes(&self) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: as above.
        self.ort.check(unsafe { (self.ort.api.GetTensorSizeInBytes)(self.pointer, &mut bytes) })?;
        Ok(bytes)
    }

    pub(crate) fn place(&self) -> MemoryPlace {
        // SAFETY: the value is live, and so is what it says of its memory.
        unsafe {
            let device = (self.ort.ep.Value_GetMemoryDevice)(self.pointer);
            self.ort.place_of(device)
        }
    }

    /// The number of the GPU whose own memory it lies in, or that its memory of the host is pinned for.
    pub(crate) fn gpu(&self) -> Option<usize> {
        // SAFETY: the value is live, and so is what it says of its memory.
        unsafe {
            let device = (self.ort.ep.Value_GetMemoryDevice)(self.pointer);
            let is_gpu = !device.is_null() && self.ort.is_gpu(device);
            is_gpu.then(|| (self.ort.ep.MemoryDevice_GetDeviceId)(device) as usize)
        }
    }

    pub(crate) fn is_on_device(&self) -> bool {
        matches!(self.place(), MemoryPlace::Device(_))
    }

    /// The elements, where they are in host memory.
    pub(crate) fn host_bytes(&self) -> Result<&'a [u8]> {
        let (data, bytes) = (self.data()?, self.bytes()?);
        if bytes == 0 {
            return Ok(&[]);
        }
        // SAFETY: ONNX Runtime's tensors have so many bytes at that address, and nobody writes while the call lasts.
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) })
    }
}

/// A tensor that ONNX Runtime made for us.
pub(crate) struct OwnedTensor {
    ort: Ort,
    pointer: *mut OrtValue,
}

impl Drop for OwnedTensor {
    fn drop(&mut self) {
        // SAFETY: the value is ours and released once.
        unsafe { (self.ort.api.ReleaseValue)(self.pointer) };
    }
}

impl OwnedTensor {
    /// # Safety
    /// `pointer` is a live value whose owner is the caller.
    pub(crate) unsafe fn new(ort: Ort, pointer: *mut OrtValue) -> OwnedTensor {
        OwnedTensor { ort, pointer }
    }

    pub(crate) fn view(&self) -> Tensor<'_> {
        Tensor { ort: self.ort, pointer: self.pointer, life: PhantomData }
    }
}

impl Ort {
    /// Whether memory is a GPU's, or the host's and pinned for one.
    ///
    /// # Safety
    /// `device` is live.
    unsafe fn is_gpu(&self, device: *const super::interface::OrtMemoryDevice) -> bool {
        // SAFETY: the caller's promise.
        let kind = unsafe { (self.ep.MemoryDevice_GetDeviceType)(device) };
        kind == ort_sys::OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU as i32
    }

    /// # Safety
    /// `device` is NULL or live.
    pub(crate) unsafe fn place_of(&self, device: *const super::interface::OrtMemoryDevice) -> MemoryPlace {
        if device.is_null() {
            return MemoryPlace::Host;
        }
        // SAFETY: the caller's promise.
        unsafe {
            let host = !self.is_gpu(device)
                || (self.ep.MemoryDevice_GetMemoryType)(device)
                    == ort_sys::OrtDeviceMemoryType::OrtDeviceMemoryType_HOST_ACCESSIBLE as i32;
            if host {
                MemoryPlace::Host
            } else {
                MemoryPlace::Device((self.ep.MemoryDevice_GetDeviceId)(device))
            }
        }
    }
}

impl Tensor<'_> {
    /// The elements of a tensor of texts, as bytes.
    pub(crate) fn strings(&self) -> Result<Vec<Vec<u8>>> {
        let count = self.type_and_shape()?.1.iter().product::<i64>();
        let count = usize::try_from(count).unwrap_or(0);
        let mut length = 0;
        // SAFETY: the value is live; there is room for the bytes and offsets that were told.
        unsafe {
            self.ort.check((self.ort.api.GetStringTensorDataLength)(self.pointer, &mut length))?;
            let (mut joined, mut starts) = (vec![0_u8; length.max(1)], vec![0_usize; count.max(1)]);
            let place: *mut c_void = joined.as_mut_ptr().cast();
            self.ort.check((self.ort.api.GetStringTensorContent)(
                self.pointer,
                place,
                length,
                starts.as_mut_ptr(),
                count,
            ))?;
            starts.truncate(count);
            let ends = starts.iter().skip(1).copied().chain([length]);
            Ok(starts.iter().zip(ends).map(|(start, end)| joined[*start..end].to_vec()).collect())
        }
    }

    /// Writes the elements of a tensor of texts.
    pub(crate) fn fill_strings(&self, texts: &[Vec<u8>]) -> Result<()> {
        for (index, text) in texts.iter().enumerate() {
            let mut place = std::ptr::null_mut();
            // SAFETY: the value is live, and a run's output, which only the run writes; ONNX Runtime gives room for as many
            // bytes as it was asked for.
            unsafe {
                self.ort.check((self.ort.api.GetResizedStringTensorElementBuffer)(
                    self.pointer.cast_mut(),
                    index,
                    text.len(),
                    &mut place,
                ))?;
                std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), text.len());
            }
        }
        Ok(())
    }
}
