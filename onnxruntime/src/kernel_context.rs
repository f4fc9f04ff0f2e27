//! `OrtKernelContext`: one call of a kernel of the caller's.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use ort_sys::{OrtAllocator, OrtKernelContext, OrtMemoryInfo, OrtValue};
use rukh_sys::*;

use crate::allocator;
use crate::elements;
use crate::failure::{Failure, Result, api};
use crate::handle::{array, get, handles, put};
use crate::kernel_info::shared;
use crate::library;
use crate::value::Value;

/// The call. Values are lent until it ends.
pub struct Context {
    context: *mut rukh_kernel_context,
    inputs: Mutex<HashMap<usize, Box<Value>>>,
    outputs: Mutex<HashMap<usize, Box<Value>>>,
}

handles! { Context => OrtKernelContext; }

impl Context {
    pub fn new(context: *mut rukh_kernel_context) -> Context {
        Context { context, inputs: Mutex::default(), outputs: Mutex::default() }
    }

    fn input(&self, index: usize) -> Result<*const OrtValue> {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = inputs.get(&index) {
            return Ok(std::ptr::from_ref(&**value).cast());
        }
        let mut lent = null();
        // SAFETY: live handle, a place for the value.
        library::call(|error| unsafe { rukh_kernel_context_input(self.context, index, &mut lent, error) })?;
        if lent.is_null() {
            return Ok(null());
        }
        let value = inputs.entry(index).or_insert(Box::new(shared(lent)?));
        Ok(std::ptr::from_ref(&**value).cast())
    }

    fn output(&self, index: usize, shape: &[i64]) -> Result<*mut OrtValue> {
        let mut outputs = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = outputs.get_mut(&index) {
            return Ok(std::ptr::from_mut(&mut **value).cast());
        }
        let mut lent = null_mut();
        // SAFETY: live handle, the shape's dimensions, a place for the value.
        library::call(|error| unsafe {
            rukh_kernel_context_output(self.context, index, shape.as_ptr(), shape.len(), &mut lent, error)
        })?;
        if lent.is_null() {
            return Ok(null_mut());
        }
        let value = outputs.entry(index).or_insert(Box::new(shared(lent)?));
        Ok(std::ptr::from_mut(&mut **value).cast())
    }

    /// Hands over outputs of strings: they were written into values of their own.
    pub fn finish(&self) -> Result<()> {
        for (index, value) in self.outputs.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if value.element()? == elements::STRING {
                let handle = value.pointer()?;
                // SAFETY: live handles.
                library::call(|error| unsafe {
                    rukh_kernel_context_set_output(self.context, *index, handle, error)
                })?;
            }
        }
        Ok(())
    }
}

/// A loop of the caller's over batches.
struct Loop {
    body: unsafe extern "C" fn(*mut c_void, usize),
    user: *mut c_void,
    total: usize,
    batches: usize,
}

unsafe extern "C" fn batch(index: usize, user: *mut c_void) {
    // SAFETY: `user` is the loop of `KernelContext_ParallelFor`, which waits.
    unsafe {
        let work = &*user.cast::<Loop>();
        let (first, last) = (work.total * index / work.batches, work.total * (index + 1) / work.batches);
        for item in first..last {
            (work.body)(work.user, item);
        }
    }
}

api! {
    fn KernelContext_GetInputCount(context: *const OrtKernelContext, out: *mut usize) {
        let context = get::<Context>(context)?.context;
        put(out, library::get(|count, error| rukh_kernel_context_input_count(context, count, error))?)?;
    }

    fn KernelContext_GetOutputCount(context: *const OrtKernelContext, out: *mut usize) {
        let context = get::<Context>(context)?.context;
        put(out, library::get(|count, error| rukh_kernel_context_output_count(context, count, error))?)?;
    }

    fn KernelContext_GetInput(context: *const OrtKernelContext, index: usize, out: *mut *const OrtValue) {
        put(out, get::<Context>(context)?.input(index)?)?;
    }

    fn KernelContext_GetOutput(context: *mut OrtKernelContext, index: usize, dims: *const i64, rank: usize, out: *mut *mut OrtValue) {
        put(out, get::<Context>(context)?.output(index, array(dims, rank, "the shape")?)?)?;
    }

    // NULL stands for a kernel of the CPU.
    fn KernelContext_GetGPUComputeStream(context: *const OrtKernelContext, out: *mut *mut c_void) {
        get::<Context>(context)?;
        put(out, null_mut())?;
    }

    fn KernelContext_GetAllocator(context: *const OrtKernelContext, _info: *const OrtMemoryInfo, out: *mut *mut OrtAllocator) {
        get::<Context>(context)?;
        put(out, allocator::default())?;
    }

    fn KernelContext_ParallelFor(context: *const OrtKernelContext, body: Option<unsafe extern "C" fn(*mut c_void, usize)>, total: usize, batches: usize, user: *mut c_void) {
        let context = get::<Context>(context)?.context;
        let Some(body) = body else { return Err(crate::handle::null("the function")) };
        let threads = library::get(|count, error| rukh_kernel_context_thread_count(context, count, error))?;
        let wanted = if batches == 0 { threads } else { batches };
        let work = Loop { body, user, total, batches: wanted.clamp(1, total.max(1)) };
        let pointer = (&raw const work).cast_mut().cast();
        library::call(|error| rukh_kernel_context_parallel_for(context, work.batches, Some(batch), pointer, error))?;
    }

    fn KernelContext_GetScratchBuffer(context: *const OrtKernelContext, _info: *const OrtMemoryInfo, _bytes: usize, _out: *mut *mut c_void) {
        get::<Context>(context)?;
        return Err(Failure::absent("KernelContext_GetScratchBuffer is not in rukh's libonnxruntime; KernelContext_GetAllocator gives memory"));
    }
}
