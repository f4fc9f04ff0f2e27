//! `OrtIoBinding`: values that stay bound from run to run.

use std::ffi::{CString, c_char};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtAllocator, OrtIoBinding, OrtMemoryInfo, OrtRunOptions, OrtSession, OrtValue};
use rukh_sys::*;

use crate::allocator::{copy_array, copy_text};
use crate::failure::{Failure, Result, api, api_release, api_value};
use crate::handle::{get, get_mut, give, handles, put, raw, text};
use crate::library::{self, Own};
use crate::memory_info::MemoryInfo;
use crate::run_options;
use crate::session::{Model, Session};
use crate::tensors::on_device;
use crate::value::Value;

/// What runs of a session read and write.
pub struct Binding {
    handle: Own<rukh_io_binding>,
    model: Arc<Model>,
    outputs: Mutex<Vec<Output>>,
}

/// An output that is bound, in the order in which they were.
struct Output {
    name: CString,
    /// The device that an output made by a run goes to; none for the host or a value of the caller's.
    device: Option<usize>,
    /// What a run made for a device.
    moved: Option<Own<rukh_value>>,
}

handles! { Binding => OrtIoBinding; }

impl Binding {
    fn new(model: &Arc<Model>) -> Result<Binding> {
        // SAFETY: live handle, a place for the handle.
        let handle =
            library::make(|out, error| unsafe { rukh_io_binding_create(model.pointer(), out, error) })?;
        Ok(Binding { handle, model: model.clone(), outputs: Mutex::default() })
    }

    fn remember(&self, name: CString, device: Option<usize>) {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        match outputs.iter_mut().find(|output| output.name == name) {
            Some(output) => *output = Output { name, device, moved: None },
            None => outputs.push(Output { name, device, moved: None }),
        }
    }

    fn run(&self, options: *const rukh_run_options) -> Result<()> {
        // SAFETY: live handles.
        library::call(|error| unsafe { rukh_io_binding_run(self.handle.pointer(), options, error) })?;
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        for output in outputs.iter_mut() {
            if let Some(id) = output.device {
                output.moved = Some(moved(&Value::new(self.made(&output.name)?), id)?);
            }
        }
        Ok(())
    }

    fn made(&self, name: &CString) -> Result<Own<rukh_value>> {
        // SAFETY: live handle, a text, a place for the value.
        library::make(|out, error| unsafe {
            rukh_io_binding_output(self.handle.pointer(), name.as_ptr(), out, error)
        })
    }

    fn values(&self) -> Result<Vec<Value>> {
        let outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        outputs
            .iter()
            .map(|output| match &output.moved {
                // SAFETY: live handle, a place for the value.
                Some(moved) => {
                    library::make(|out, error| unsafe { rukh_value_clone(moved.pointer(), out, error) })
                }
                None => self.made(&output.name),
            })
            .map(|value| value.map(Value::new))
            .collect()
    }
}

/// A copy of a tensor in a device's memory; what has none, strings and lists, stays on the host.
fn moved(value: &Value, id: usize) -> Result<Own<rukh_value>> {
    let handle = value.pointer()?;
    let plain = value.kind()? == RUKH_KIND_TENSOR && value.element()? != crate::elements::STRING;
    if !plain || value.place()?.device()?.is_some() {
        // SAFETY: live handle, a place for the value.
        return library::make(|out, error| unsafe { rukh_value_clone(handle, out, error) });
    }
    let element = crate::elements::to_rukh(value.element()?)?;
    let target = on_device(id, element, &value.shape()?)?;
    // SAFETY: live handles of tensors of the same type and shape.
    library::call(|error| unsafe { rukh_value_copy(handle, target.pointer(), error) })?;
    Ok(target)
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
        binding.run(run_options::pointer(options)?)?;
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
        binding.remember(name.to_owned(), None);
    }

    fn BindOutputToDevice(binding: *mut OrtIoBinding, name: *const c_char, info: *const OrtMemoryInfo) {
        let (binding, name) = (get_mut::<Binding>(binding)?, text(name, "the name")?);
        let device = get::<MemoryInfo>(info)?.device()?;
        library::call(|error| rukh_io_binding_bind_output_allocated(binding.handle.pointer(), name.as_ptr(), error))?;
        binding.remember(name.to_owned(), device);
    }

    fn GetBoundOutputNames(binding: *const OrtIoBinding, allocator: *mut OrtAllocator, buffer: *mut *mut c_char, lengths: *mut *mut usize, count: *mut usize) {
        put(buffer, null_mut())?;
        put(lengths, null_mut())?;
        put(count, 0)?;
        let outputs = get::<Binding>(binding)?.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if outputs.is_empty() {
            return Ok(());
        }
        let joined: Vec<u8> = outputs.iter().flat_map(|output| output.name.as_bytes()).copied().collect();
        let sizes: Vec<usize> = outputs.iter().map(|output| output.name.as_bytes().len()).collect();
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
