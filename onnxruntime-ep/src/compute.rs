//! Runs a part: ONNX Runtime's values become librukh's without a copy, where their memory and type allow it.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{OrtKernelContext, OrtStatusPtr, OrtValue};

use crate::error::{Result, fail};
use crate::exchange::Exchange;
use crate::library::{Binding, Environment, Session};
use crate::ort::interface::{OrtNodeComputeContext, OrtNodeComputeInfo};
use crate::ort::{Ort, Tensor, guard, guard_or};
use crate::shapes::Shapes;
use crate::streams::Streams;

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
    order: Order,
    /// Bindings that no run uses just now.
    bindings: Mutex<Vec<Binding>>,
}

/// What orders runs on a GPU.
pub(crate) enum Order {
    /// The stream of ONNX Runtime's that a run has.
    Streams(Arc<Streams>),
    /// A stream that the program gave with the provider's options, of which ONNX Runtime does not know.
    UserStream(Arc<Streams>),
    /// Nothing: the CPU computes.
    Cpu,
}

impl Compute {
    pub(crate) fn new(
        ort: Ort,
        environment: Arc<Environment>,
        session: Session,
        (inputs, outputs): (Vec<usize>, Vec<(usize, usize)>),
        order: Order,
    ) -> Result<Compute> {
        let table = OrtNodeComputeInfo {
            ort_version_supported: ort.version,
            CreateState: create_state,
            Compute: compute,
            ReleaseState: release_state,
        };
        let shapes = Shapes::of(&session);
        let exchange = Exchange { environment, on_gpu: session.is_on_gpu()? };
        Ok(Compute {
            table,
            ort,
            exchange,
            session,
            inputs,
            outputs,
            shapes,
            order,
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
        // SAFETY: the caller's promise.
        let result = unsafe { self.run_bound(context, &mut binding) };
        // Values are over memory that is ONNX Runtime's, which the binding must not keep. Why a run failed comes first.
        let cleared = binding.clear();
        if cleared.is_ok() {
            self.bindings.lock().unwrap_or_else(PoisonError::into_inner).push(binding);
        }
        result.and(cleared)
    }

    /// # Safety
    /// `context` is live.
    unsafe fn run_bound(&self, context: *mut OrtKernelContext, binding: &mut Binding) -> Result<()> {
        // SAFETY: in this function, the caller's promise.
        let queue = match &self.order {
            Order::Streams(streams) | Order::UserStream(streams) => unsafe { streams.of_kernel(context) }?,
            Order::Cpu => None,
        };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for (port, position) in self.session.inputs.iter().zip(&self.inputs) {
            let mut value = std::ptr::null();
            // SAFETY: the place is a local; the value lives as long as the call.
            let tensor = unsafe {
                self.ort.check((self.ort.api.KernelContext_GetInput)(context, *position, &mut value))?;
                if value.is_null() {
                    fail!(InvalidArgument, "input {:?} of a part has no value", port.name);
                }
                Tensor::new(self.ort, value)
            };
            let (element, shape) = tensor.type_and_shape()?;
            inputs.push((port, tensor, element, shape));
        }
        // Whether the host has nothing to do with the values of the run, so that nobody must wait for it.
        let mut all_on_gpu =
            inputs.iter().all(|(_, tensor, element, _)| self.exchange.stays_on_gpu(tensor, *element));
        let queued_runs = matches!(self.order, Order::Streams(_)) && self.exchange.on_gpu;
        if let Some(queue) = &queue
            && !(all_on_gpu && queued_runs)
        {
            // What the stream makes of the inputs is read outside of it.
            queue.settle()?;
        }
        let mut shapes: Vec<&[i64]> = Vec::with_capacity(inputs.len());
        for (port, tensor, element, shape) in inputs {
            binding.input(&port.name, &self.exchange.input(&tensor, element, shape)?)?;
            shapes.push(shape);
        }
        let mut pending = Vec::new();
        for &(index, position) in &self.outputs {
            let bound = match self.shapes.output(index, &shapes) {
                // SAFETY: as above.
                Some(shape) => unsafe { self.bind_output(context, binding, index, position, &shape)? },
                None => None,
            };
            if bound.is_none() {
                binding.output_allocated(&self.session.outputs[index].name)?;
                pending.push((index, position));
            }
            all_on_gpu &= bound == Some(true);
        }
        match (queue, &self.order) {
            (Some(queue), Order::Streams(_)) if self.exchange.on_gpu => {
                let run = queue.give_run(|options| binding.run_queued(Some(options)))?;
                if all_on_gpu { queue.keep(run) } else { run.wait()? }
            }
            // ONNX Runtime knows nothing of the stream, so that what it does next must not come before the run's end.
            (_, Order::UserStream(_)) => binding.run_queued(None)?.wait()?,
            _ => binding.run()?,
        }
        for (index, position) in pending {
            let value = binding.result(&self.session.outputs[index].name)?;
            // SAFETY: as above.
            if let Some(tensor) = unsafe { self.output(context, position, &value.shape()?)? } {
                self.exchange.hand_over(&value, &tensor)?;
            }
        }
        Ok(())
    }

    /// Lets a run write an output where ONNX Runtime wants it, and tells whether that is on the GPU. None where librukh cannot
    /// write there.
    ///
    /// # Safety
    /// `context` is live.
    unsafe fn bind_output(
        &self,
        context: *mut OrtKernelContext,
        binding: &mut Binding,
        index: usize,
        position: usize,
        shape: &[i64],
    ) -> Result<Option<bool>> {
        // SAFETY: the caller's promise.
        let Some(tensor) = (unsafe { self.output(context, position, shape)? }) else {
            return Ok(Some(true));
        };
        let Some(value) = self.exchange.output(&tensor)? else {
            return Ok(None);
        };
        binding.output(&self.session.outputs[index].name, &value)?;
        Ok(Some(tensor.is_on_device()))
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
