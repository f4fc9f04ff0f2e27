//! Runs a part: ONNX Runtime's values become librukh's without a copy, where their memory and type allow it.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtKernelContext, OrtLoggingLevel, OrtStatusPtr, OrtValue};
use rukh_sys::RUKH_ERROR_INVALID_INPUT;

use crate::error::{Error, Result, fail};
use crate::exchange::Exchange;
use crate::library::{Binding, Environment, Session};
use crate::ort::interface::{OrtNodeComputeContext, OrtNodeComputeInfo};
use crate::ort::{Logger, Ort, Tensor, guard, guard_or};
use crate::shapes::Shapes;

/// What ONNX Runtime calls to run a part. The table comes first: ONNX Runtime knows this by its address.
#[repr(C)]
pub(crate) struct Compute {
    table: OrtNodeComputeInfo,
    ort: Ort,
    exchange: Exchange,
    session: Session,
    /// For each input of the session, its position among the inputs of the fused node.
    inputs: Vec<usize>,
    /// Outputs of the session that the fused node has, with their positions there.
    outputs: Vec<(usize, usize)>,
    shapes: Shapes,
    in_user_stream: bool,
    /// Whether a run succeeded with values in the GPU's memory.
    takes_device_memory: AtomicBool,
    logger: Logger,
    /// Bindings that no run uses just now.
    bindings: Mutex<Vec<Binding>>,
}

/// What was bound for a run.
#[derive(Default)]
struct Bound {
    /// Some value lies in the memory of the GPU.
    on_device: bool,
    /// All values were bound, so that an error comes from the run itself.
    complete: bool,
}

impl Compute {
    pub(crate) fn new(
        ort: Ort,
        logger: Logger,
        environment: Arc<Environment>,
        session: Session,
        (inputs, outputs): (Vec<usize>, Vec<(usize, usize)>),
        in_user_stream: bool,
    ) -> Result<Compute> {
        let table = OrtNodeComputeInfo {
            ort_version_supported: ort.version,
            CreateState: create_state,
            Compute: compute,
            ReleaseState: release_state,
        };
        let shapes = Shapes::of(&session);
        let exchange = Exchange { environment, on_gpu: (session.nodes_on(c"hip")? > 0).into() };
        Ok(Compute {
            table,
            ort,
            exchange,
            session,
            inputs,
            outputs,
            shapes,
            in_user_stream,
            takes_device_memory: AtomicBool::new(false),
            logger,
            bindings: Mutex::default(),
        })
    }

    /// # Safety
    /// `context` is live.
    unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<()> {
        let pooled = self.bindings.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut binding = match pooled {
            Some(binding) => binding,
            None => Binding::new(&self.session)?,
        };
        let mut bound = Bound::default();
        // SAFETY: in this function, the caller's promise.
        let mut result = unsafe { self.run_bound(context, &mut binding, &mut bound) };
        match &result {
            Ok(()) if bound.on_device => self.takes_device_memory.store(true, Ordering::Relaxed),
            Err(error) if self.refuses_device_memory(error, &bound) => {
                self.exchange.on_gpu.store(false, Ordering::Relaxed);
                binding.clear()?;
                let again = unsafe { self.run_bound(context, &mut binding, &mut Bound::default()) };
                if again.is_ok() {
                    self.ort.log(
                        self.logger,
                        OrtLoggingLevel::ORT_LOGGING_LEVEL_VERBOSE,
                        &format!("a part gets its values in host memory from now on: {error}"),
                    );
                    result = again;
                } else {
                    self.exchange.on_gpu.store(true, Ordering::Relaxed);
                }
            }
            _ => {}
        }
        // Values are over memory that is ONNX Runtime's, which the binding must not keep. Why a run failed comes first.
        let cleared = binding.clear();
        if cleared.is_ok() {
            self.bindings.lock().unwrap_or_else(PoisonError::into_inner).push(binding);
        }
        result.and(cleared)
    }

    /// Whether a run failed because no node of the session runs on the GPU outside of bodies, so that the session takes no
    /// values in the GPU's memory. Nothing tells that beforehand. A run that succeeded with such values tells of the
    /// opposite; what is wrong with an input after it is the program's to know.
    fn refuses_device_memory(&self, error: &Error, bound: &Bound) -> bool {
        bound.on_device
            && bound.complete
            && error.status == RUKH_ERROR_INVALID_INPUT
            && !self.takes_device_memory.load(Ordering::Relaxed)
    }

    /// # Safety
    /// `context` is live.
    unsafe fn run_bound(
        &self,
        context: *mut OrtKernelContext,
        binding: &mut Binding,
        bound: &mut Bound,
    ) -> Result<()> {
        let mut shapes: Vec<&[i64]> = Vec::with_capacity(self.inputs.len());
        for (port, position) in self.session.inputs.iter().zip(&self.inputs) {
            let mut value = std::ptr::null();
            // SAFETY: the caller's promise; the place is a local; the value lives as long as the call.
            let tensor = unsafe {
                self.ort.check((self.ort.api.KernelContext_GetInput)(context, *position, &mut value))?;
                if value.is_null() {
                    fail!(InvalidArgument, "input {:?} of a part has no value", port.name);
                }
                Tensor::new(self.ort, value)
            };
            let (element, shape) = tensor.type_and_shape()?;
            bound.on_device |= self.exchange.on_gpu() && tensor.is_on_device();
            binding.input(&port.name, &self.exchange.input(&tensor, element, shape)?)?;
            shapes.push(shape);
        }
        let mut pending = Vec::new();
        for &(index, position) in &self.outputs {
            let port = &self.session.outputs[index];
            let known = self.shapes.output(index, &shapes);
            let is_bound = match known {
                // SAFETY: the caller's promise.
                Some(shape) => unsafe { self.bind_output(context, binding, bound, index, position, &shape)? },
                None => false,
            };
            if !is_bound {
                binding.output_allocated(&port.name)?;
                pending.push((index, position));
            }
        }
        bound.complete = true;
        // ONNX Runtime knows nothing of the stream, so that what it does next must not come before the run's end.
        if self.in_user_stream {
            binding.run_in_user_stream()?
        } else {
            binding.run()?
        }
        for (index, position) in pending {
            let value = binding.result(&self.session.outputs[index].name)?;
            // SAFETY: the caller's promise.
            if let Some(tensor) = unsafe { self.output(context, position, &value.shape()?)? } {
                self.exchange.hand_over(&value, &tensor)?;
            }
        }
        Ok(())
    }

    /// Lets a run write an output where ONNX Runtime wants it. False where librukh cannot write there.
    ///
    /// # Safety
    /// `context` is live.
    unsafe fn bind_output(
        &self,
        context: *mut OrtKernelContext,
        binding: &mut Binding,
        bound: &mut Bound,
        index: usize,
        position: usize,
        shape: &[i64],
    ) -> Result<bool> {
        let port = &self.session.outputs[index];
        // SAFETY: the caller's promise.
        let Some(tensor) = (unsafe { self.output(context, position, shape)? }) else {
            return Ok(true);
        };
        let Some(value) = self.exchange.output(&tensor)? else {
            return Ok(false);
        };
        bound.on_device |= self.exchange.on_gpu() && tensor.is_on_device();
        binding.output(&port.name, &value)?;
        Ok(true)
    }

    /// The tensor of an output; none for one that nobody wants.
    ///
    /// # Safety
    /// `context` is live.
    unsafe fn output(
        &self,
        context: *mut OrtKernelContext,
        position: usize,
        shape: &[i64],
    ) -> Result<Option<Tensor<'_>>> {
        let mut value: *mut OrtValue = null_mut();
        // SAFETY: the caller's promise; the shape is an array of its length; the value lives as long as the call.
        unsafe {
            self.ort.check((self.ort.api.KernelContext_GetOutput)(
                context,
                position,
                shape.as_ptr(),
                shape.len(),
                &mut value,
            ))?;
            Ok((!value.is_null()).then(|| Tensor::new(self.ort, value)))
        }
    }
}

unsafe extern "system" fn create_state(
    this: *mut OrtNodeComputeInfo,
    _context: *mut OrtNodeComputeContext,
    state: *mut *mut c_void,
) -> OrtStatusPtr {
    guard_or(OrtStatusPtr::default(), || {
        // SAFETY: ONNX Runtime hands over a place. All state is in `Compute`.
        unsafe { state.write(this.cast()) };
        OrtStatusPtr::default()
    })
}

unsafe extern "system" fn compute(
    this: *mut OrtNodeComputeInfo,
    _state: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime calls this with a table that `Compute` begins with, from any thread, until it is released.
    let compute = unsafe { &*this.cast::<Compute>() };
    // SAFETY: the context lives as long as the call.
    guard(&compute.ort, || unsafe { compute.run(context) })
}

unsafe extern "system" fn release_state(_this: *mut OrtNodeComputeInfo, _state: *mut c_void) {
    guard_or((), || {})
}
