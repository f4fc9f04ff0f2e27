//! `OrtValue`: a tensor, sequence, map or optional of librukh.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rukh_sys::*;

use crate::elements;
use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::handle::handles;
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::types::{TensorInfo, TypeInfo};

/// A value. What is asked about it is found out when it is asked.
pub struct Value {
    handle: Own<rukh_value>,
    /// Where its elements are, as the caller said or as librukh tells.
    place: OnceLock<MemoryInfo>,
    /// Type and shape, lent to `GetTensorElementTypeAndShapeDataReference`.
    lent: OnceLock<TensorInfo>,
    /// Strings that a caller writes into buffers of `GetResizedStringTensorElementBuffer`, by their index. They become
    /// elements whenever the value is used, as the caller may write at any time until the element gets another string.
    buffers: Mutex<BTreeMap<usize, Buffer>>,
    buffered: AtomicBool,
}

/// A string that a caller writes.
struct Buffer {
    bytes: Vec<u8>,
    /// What the element was set to.
    set: Option<Vec<u8>>,
}

impl Buffer {
    fn become_element(&mut self, value: &Own<rukh_value>, index: usize) -> Result<()> {
        // One that stayed as it is needs no writing, which other threads that read would see.
        if self.set.as_ref() != Some(&self.bytes) {
            crate::strings::set(value, index, &self.bytes)?;
            self.set = Some(self.bytes.clone());
        }
        Ok(())
    }
}

handles! { Value => OrtValue; }

impl Value {
    pub fn new(handle: Own<rukh_value>) -> Value {
        Value {
            handle,
            place: OnceLock::new(),
            lent: OnceLock::new(),
            buffers: Mutex::default(),
            buffered: AtomicBool::new(false),
        }
    }

    /// A value whose caller said where it is.
    pub fn at(handle: Own<rukh_value>, place: &MemoryInfo) -> Value {
        let value = Value::new(handle);
        let _ = value.place.set(place.clone());
        value
    }

    /// librukh's value, with what was written into buffers of strings.
    pub fn pointer(&self) -> Result<*mut rukh_value> {
        if self.buffered.load(Ordering::Acquire) {
            self.take_buffers()?;
        }
        Ok(self.handle.pointer())
    }

    /// librukh's value, of which only the string at an index is looked at.
    pub fn pointer_for(&self, index: usize) -> Result<*mut rukh_value> {
        if self.buffered.load(Ordering::Acquire) {
            let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(buffer) = buffers.get_mut(&index) {
                buffer.become_element(&self.handle, index)?;
            }
        }
        Ok(self.handle.pointer())
    }

    /// librukh's value alone.
    pub fn into_handle(self) -> Own<rukh_value> {
        self.handle
    }

    /// Another value of the same type and shape takes this one's place.
    pub fn replace(&mut self, handle: Own<rukh_value>) {
        self.handle = handle;
        self.buffers.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Another value takes this one's place, of whatever shape and wherever it is.
    pub fn become_other(&mut self, handle: Own<rukh_value>) {
        *self = Value::new(handle);
    }

    pub fn kind(&self) -> Result<rukh_kind> {
        // SAFETY: live handle, a place for the number.
        library::get(|kind, error| unsafe { rukh_value_kind(self.handle.pointer(), kind, error) })
    }

    /// ONNX Runtime's number for the type of the elements.
    pub fn element(&self) -> Result<i32> {
        // SAFETY: live handle, a place for the number.
        let element = library::get(|element, error| unsafe {
            rukh_value_element_type(self.handle.pointer(), element, error)
        })?;
        Ok(elements::from_rukh(element))
    }

    pub fn shape(&self) -> Result<Vec<i64>> {
        let mut dims = vec![0; 8];
        let mut rank = 0;
        let asked = library::call(|error| {
            // SAFETY: live handle, room for as many dimensions as the vector has, a place for the rank.
            unsafe {
                rukh_value_shape(self.handle.pointer(), dims.as_mut_ptr(), dims.len(), &mut rank, error)
            }
        });
        if rank > dims.len() {
            dims.resize(rank, 0);
            library::call(|error| {
                // SAFETY: as above.
                unsafe {
                    rukh_value_shape(self.handle.pointer(), dims.as_mut_ptr(), dims.len(), &mut rank, error)
                }
            })?;
        } else {
            asked?;
        }
        dims.truncate(rank);
        Ok(dims)
    }

    pub fn tensor_info(&self) -> Result<TensorInfo> {
        if self.kind()? != RUKH_KIND_TENSOR {
            return Err(Failure::argument("the value is no tensor"));
        }
        Ok(TensorInfo::new(self.element()?, self.shape()?))
    }

    /// Type and shape, kept with the value.
    pub fn lent_info(&self) -> Result<&TensorInfo> {
        if self.lent.get().is_none() {
            let _ = self.lent.set(self.tensor_info()?);
        }
        self.lent.get().ok_or_else(|| Failure::argument("the value is no tensor"))
    }

    pub fn type_info(&self) -> Result<TypeInfo> {
        if self.kind()? == RUKH_KIND_TENSOR {
            return Ok(TypeInfo::Tensor(self.tensor_info()?));
        }
        let text = library::string(|buf, cap, needed, error| {
            // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
            unsafe { rukh_value_type_text(self.handle.pointer(), buf, cap, needed, error) }
        })?;
        Ok(TypeInfo::parse(&text))
    }

    /// The address of elements on the host.
    pub fn host_address(&self) -> Result<*mut c_void> {
        let mut data = null_mut();
        // SAFETY: live handle, a place for the address. The size is not wanted.
        library::call(|error| unsafe {
            rukh_value_data_mut(self.handle.pointer(), &mut data, null_mut(), error)
        })?;
        Ok(data)
    }

    /// The address of the elements, on the host or on a device.
    pub fn address(&self) -> Result<*mut c_void> {
        let failure = match self.host_address() {
            Ok(address) => return Ok(address),
            Err(failure) => failure,
        };
        match self.on_device() {
            Ok((true, _, address)) => Ok(address as usize as *mut c_void),
            _ => Err(failure),
        }
    }

    /// Whether the elements are on a device, on which, and their address there.
    fn on_device(&self) -> Result<(bool, usize, u64)> {
        let (mut on_device, mut id, mut address) = (0, 0, 0);
        // SAFETY: live handle, places for the results.
        library::call(|error| unsafe {
            rukh_value_device(self.handle.pointer(), &mut on_device, &mut id, &mut address, error)
        })?;
        Ok((on_device != 0, id, address))
    }

    pub fn place(&self) -> Result<&MemoryInfo> {
        if self.place.get().is_none() {
            let (mut kind, mut id) = (RUKH_MEMORY_HOST, 0);
            // SAFETY: live handle, places for the results. What is no tensor is on the host.
            let _ = library::call(|error| unsafe {
                rukh_value_memory_kind(self.handle.pointer(), &mut kind, &mut id, error)
            });
            let nvidia = || -> Result<bool> { Ok(Environment::current()?.devices()?.nvidia()) };
            let place = match kind {
                RUKH_MEMORY_DEVICE => MemoryInfo::gpu(id, nvidia()?),
                RUKH_MEMORY_PINNED => MemoryInfo::pinned(id, nvidia()?),
                _ => MemoryInfo::cpu().clone(),
            };
            let _ = self.place.set(place);
        }
        Ok(self.place.get().unwrap_or(MemoryInfo::cpu()))
    }

    /// Copies the elements of another tensor of the same type and shape into this one.
    pub fn fill_from(&self, from: &Own<rukh_value>) -> Result<()> {
        // SAFETY: live handles; the caller has given this value to be written.
        library::call(|error| unsafe { rukh_value_copy(from.pointer(), self.handle.pointer(), error) })
    }

    /// Keeps a buffer for a string. Its address stays until the element gets another one, or the value is released.
    pub fn buffer(&self, index: usize, bytes: usize) -> *mut u8 {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        // An empty vector's address would not do for a buffer of 0 bytes.
        let mut buffer = Vec::with_capacity(bytes.max(1));
        buffer.resize(bytes, 0);
        buffers.insert(index, Buffer { bytes: buffer, set: None });
        self.buffered.store(true, Ordering::Release);
        buffers.get_mut(&index).map_or(null_mut(), |buffer| buffer.bytes.as_mut_ptr())
    }

    /// Replaces a string; what was written into a buffer for it counts no more.
    pub fn set_string(&self, index: usize, string: &CStr) -> Result<()> {
        // SAFETY: live handle, a text.
        library::call(|error| unsafe {
            rukh_value_set_string(self.handle.pointer(), index, string.as_ptr(), error)
        })?;
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).remove(&index);
        Ok(())
    }

    fn take_buffers(&self) -> Result<()> {
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, buffer) in buffers.iter_mut() {
            buffer.become_element(&self.handle, *index)?;
        }
        Ok(())
    }
}
