//! `OrtIoBinding`: values that stay bound from run to run.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtAllocator, OrtIoBinding, OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use rukh_sys::*;

use crate::allocator::{copy_array, copy_text};
use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{get, get_mut, give, handles, put, raw, text};
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::run::of_run;
use crate::run_options;
use crate::session::{Model, Session};
use crate::value::Value;

/// What runs of a session read and write.
pub struct Binding {
    handle: Own<rukh_io_binding>,
    model: Arc<Model>,
    /// The names of outputs, in the order in which they were bound.
    outputs: Mutex<Vec<CString>>,
}

handles! { Binding => OrtIoBinding; }

impl Binding {
    fn new(model: &Arc<Model>) -> Result<Binding> {
        // SAFETY: live handle, a place for the handle.
        let handle =
            library::make(|out, error| unsafe { rukh_io_binding_create(model.pointer(), out, error) })?;
        Ok(Binding { handle, model: model.clone(), outputs: Mutex::default() })
    }

    fn remember(&self, name: &CStr) {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if !outputs.iter().any(|known| known.as_c_str() == name) {
            outputs.push(name.to_owned());
        }
    }

    /// Binds an output to memory that each run allocates: the host's, pinned, or a GPU's.
    fn bind_to(&self, name: &CStr, info: &MemoryInfo) -> Result<()> {
        let (binding, name) = (self.handle.pointer(), name.as_ptr());
        let Some((id, kind)) = info.of_gpu()? else {
            // SAFETY: live handle, a text.
            return library::call(|error| unsafe {
                rukh_io_binding_bind_output_allocated(binding, name, error)
            });
        };
        let device = self.model.environment().gpu(id)?;
        // SAFETY: live handles, a text.
        library::call(|error| unsafe {
            rukh_io_binding_bind_output_allocated_in(binding, name, device.pointer(), kind, error)
        })
    }

    fn run(&self, options: *const rukh_run_options) -> Result<()> {
        // SAFETY: live handles.
        library::call(|error| unsafe { rukh_io_binding_run(self.handle.pointer(), options, error) })
    }

    fn made(&self, name: &CString) -> Result<Own<rukh_value>> {
        // SAFETY: live handle, a text, a place for the value.
        library::make(|out, error| unsafe {
            rukh_io_binding_output(self.handle.pointer(), name.as_ptr(), out, error)
        })
    }

    fn values(&self) -> Result<Vec<Value>> {
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs.iter().map(|name| self.made(name).map(Value::new)).collect()
    }
}

api! {
    fn CreateIoBinding(session: *mut OrtSession, out: *mut *mut OrtIoBinding) {
        give(out, Binding::new(&get::<Session>(session)?.0)?)?;
    }

    fn RunWithBinding(session: *mut OrtSession, options: *const OrtRunOptions, binding: *const OrtIoBinding) {
        let (session, binding) = (get::<Session>(session)?, get::<Binding>(binding)?);
        if !Arc::ptr_eq(&session.0, &binding.model) {
            return Err(Failure::argument("the binding was made for another session"));
        }
        binding.run(run_options::pointer(options)?).map_err(of_run)?;
    }

    fn BindInput(binding: *mut OrtIoBinding, name: *const c_char, value: *const OrtValue) {
        let (binding, name) = (get_mut::<Binding>(binding)?, text(name, "the name")?);
        let value = get::<Value>(value)?.pointer()?;
        library::call(|error| rukh_io_binding_bind_input(binding.handle.pointer(), name.as_ptr(), value, error))?;
    }

    fn BindOutput(binding: *mut OrtIoBinding, name: *const c_char, value: *const OrtValue) {
        let (binding, name) = (get_mut::<Binding>(binding)?, text(name, "the name")?);
        let value = get::<Value>(value)?.pointer()?;
        library::call(|error| rukh_io_binding_bind_output(binding.handle.pointer(), name.as_ptr(), value, error))?;
        binding.remember(name);
    }

    fn BindOutputToDevice(binding: *mut OrtIoBinding, name: *const c_char, info: *const OrtMemoryInfo) {
        let (binding, name) = (get_mut::<Binding>(binding)?, text(name, "the name")?);
        binding.bind_to(name, get::<MemoryInfo>(info)?)?;
        binding.remember(name);
    }

    fn GetBoundOutputNames(binding: *const OrtIoBinding, allocator: *mut OrtAllocator, buffer: *mut *mut c_char, lengths: *mut *mut usize, count: *mut usize) {
        put(buffer, null_mut())?;
        put(lengths, null_mut())?;
        put(count, 0)?;
        let outputs = get::<Binding>(binding)?.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if outputs.is_empty() {
            return Ok(());
        }
        let joined: Vec<u8> = outputs.iter().flat_map(|name| name.as_bytes()).copied().collect();
        let sizes: Vec<usize> = outputs.iter().map(|name| name.as_bytes().len()).collect();
        put(buffer, copy_text(allocator, &CString::new(joined).unwrap_or_default())?)?;
        put(lengths, copy_array(allocator, &sizes)?)?;
        put(count, sizes.len())?;
    }

    fn GetBoundOutputValues(binding: *const OrtIoBinding, allocator: *mut OrtAllocator, out: *mut *mut *mut OrtValue, count: *mut usize) {
        put(out, null_mut())?;
        put(count, 0)?;
        let values = get::<Binding>(binding)?.values()?;
        let length = values.len();
        // The array is made before the values are given away, so that nothing is lost when there is no memory.
        let array = copy_array(allocator, &vec![null_mut::<OrtValue>(); length])?;
        for (index, value) in values.into_iter().enumerate() {
            array.add(index).write(raw(value));
        }
        put(out, array)?;
        put(count, length)?;
    }

    // Runs wait for the device, and copies are done when they return.
    fn SynchronizeBoundInputs(binding: *mut OrtIoBinding) {
        get::<Binding>(binding)?;
    }

    fn SynchronizeBoundOutputs(binding: *mut OrtIoBinding) {
        get::<Binding>(binding)?;
    }
}

api_value! {
    fn ClearBoundInputs(binding: *mut OrtIoBinding) -> (), () => {
        if let Ok(binding) = get_mut::<Binding>(binding) {
            let _ = library::call(|error| rukh_io_binding_clear_inputs(binding.handle.pointer(), error));
        }
    }

    fn ClearBoundOutputs(binding: *mut OrtIoBinding) -> (), () => {
        if let Ok(binding) = get_mut::<Binding>(binding) {
            let _ = library::call(|error| rukh_io_binding_clear_outputs(binding.handle.pointer(), error));
            binding.outputs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }
}

api_release! {
    fn ReleaseIoBinding(OrtIoBinding) => Binding;
}
