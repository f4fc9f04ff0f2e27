//! Steps of a run on a device: launches on planned memory, copies, and steps whose shapes only the run
//! tells.

use smallvec::SmallVec;

use crate::error::{Error, Status};
use crate::graph::Fact;
use crate::ops::OpError;
use crate::plan::{DeviceStep, Step};
use crate::providers::arguments;
use crate::providers::cpu::known_shape;
use crate::providers::hip::{Addresses, DeviceContext, Given, HipKernel, PlanBuilder};
use crate::tensor::{Buffer, Place, Shape, Tensor, TensorView, Value, ValueRef};

use super::output::{Output, check_bound};
use super::run::Run;
use super::step::{StepError, fact, infer};

type Result<T> = std::result::Result<T, StepError>;

impl Run<'_, '_> {
    /// Waits until copies between host and device are done; before the host reads or writes values.
    pub(super) fn settle(&mut self) -> Result<()> {
        match &mut self.device {
            Some(device) => Ok(device.settle().map_err(Error::from)?),
            None => Ok(()),
        }
    }

    /// Launches the kernels of step `at` on planned memory. `given` hears of each as it does from
    /// `LaunchPlan::submit`.
    pub(super) fn device_step(
        &mut self,
        at: usize,
        planned: &DeviceStep,
        block: u64,
        given: impl FnMut(Option<usize>),
    ) -> Result<()> {
        let operands = Operands::new(&self.program.steps[at], planned, &self.memory.spans);
        let device = context(&mut self.device)?;
        device.before_work().map_err(Error::from)?;
        let addresses = operands.addresses(device, at, planned, block);
        device.may_have_errors |= planned.launches.reports_errors;
        let DeviceContext { stream, params, .. } = device;
        // SAFETY: the plan made the launches for these shapes, and gave each value memory of its own
        // that stays until the run has waited for the stream.
        unsafe { planned.launches.submit(stream, &addresses, params, given) }.map_err(Error::from)?;
        Ok(planned.launches.submit_work_of_caller(self.cx.pool, stream, &addresses)?)
    }

    /// Copies planned memory to the other side.
    pub(super) fn copy_step(&mut self, step: &Step, to: Place) -> Result<()> {
        let span = |v: Option<u32>| v.map_or((std::ptr::null_mut(), 0), |v| self.memory.spans[v as usize]);
        let (from, bytes) = span(step.inputs[0]);
        let (target, _) = span(step.outputs[0]);
        if to == Place::Device {
            // The host's side may still be on its way from the device.
            self.settle()?;
        }
        let device = context(&mut self.device)?;
        // SAFETY: both spans hold a value of the same shape and stay until the run has waited for the
        // stream, which it does before the host's side is written again.
        let copied = unsafe {
            match to {
                Place::Device if bytes == 0 => Ok(()),
                Place::Device => {
                    device.copy_to_device(target.addr() as u64, std::slice::from_raw_parts(from, bytes))
                }
                Place::Host => device.copy_to_host(target, from.addr() as u64, bytes),
            }
        };
        Ok(copied.map_err(Error::from)?)
    }

    /// What the device gets from now on belongs to this node, for the profile.
    pub(super) fn time_begins(&mut self, node: &str, op: &str) -> crate::error::Result<()> {
        match (&mut self.times, &self.device) {
            (Some(times), Some(device)) => times.begin(&device.stream, node, op),
            _ => Ok(()),
        }
    }

    pub(super) fn time_ends(&mut self) -> crate::error::Result<()> {
        match (&mut self.times, &self.device) {
            (Some(times), Some(device)) => times.end(&device.stream),
            _ => Ok(()),
        }
    }

    /// Copies those outputs that are bound to device memory and could not be made there.
    pub(super) fn copy_last(&mut self, outputs: &[Output]) -> crate::error::Result<()> {
        for &(value, index) in &self.plan.copied_last {
            let (from, bytes) = self.memory.spans[value as usize];
            let Some(device) = &mut self.device else { continue };
            if let (Output::Bound(tensor), Some((ty, shape))) =
                (&outputs[index], self.plan.states[value as usize].layout())
            {
                check_bound(self.program, index, tensor, ty, shape)?;
            }
            let Some(to) = outputs[index].device_address() else { continue };
            device.before_work()?;
            let from = from.addr() as u64;
            if from != to {
                // SAFETY: both are memory of the device with as many bytes. They do not overlap: the value is
                // in the block, in a constant, or in an input of other memory than the output's.
                unsafe { device.stream.copy_on_device(to, from, bytes)? };
            }
        }
        Ok(())
    }

    /// Infers shapes, allocates, plans and launches.
    pub(super) fn dynamic_device_step(&mut self, at: usize, kernel: &dyn HipKernel) -> Result<()> {
        let step = &self.program.steps[at];
        self.settle()?;
        let values: Vec<Option<Value>> = step
            .inputs
            .iter()
            .map(|v| v.map(|v| self.value_anywhere(v)).transpose())
            .collect::<Result<_>>()?;
        let refs: Vec<Option<ValueRef<'_>>> =
            values.iter().map(|v| v.as_ref().map(ValueRef::Value)).collect();
        let known: Vec<Option<Fact>> = refs.iter().map(|v| v.map(fact)).collect();
        let facts = infer(step, &known, &refs)?;
        let device = context(&mut self.device)?;
        let mut results = Vec::with_capacity(facts.len());
        for (fact, wanted) in facts.iter().zip(&step.outputs) {
            results.push(match (known_shape(fact), fact.element_type(), wanted) {
                (Some(shape), Some(ty), Some(_)) => {
                    let bytes = shape.iter().product::<usize>() * ty.size();
                    let buffer = device.provider.allocate(bytes, &device.stream)?.into_buffer(bytes);
                    Tensor::from_buffer(ty, &shape, buffer)
                }
                _ => None,
            });
        }
        let mut plan = PlanBuilder::new(&device.provider, Given::All);
        {
            let shapes: Vec<Option<Shape>> =
                refs.iter().map(|v| v.and_then(|v| v.shape()).map(Into::into)).collect();
            let views: Vec<Option<TensorView<'_>>> = refs.iter().map(|v| (*v)?.view()).collect();
            let arguments = arguments(&shapes, &views);
            let outputs: Vec<Option<&[usize]>> =
                results.iter().map(|t| t.as_ref().map(|t: &Tensor| t.shape())).collect();
            kernel.plan(&mut plan, &arguments, &outputs)?;
        }
        let launches = plan.finish()?;
        let address = |t: Option<&Tensor>| t.and_then(Tensor::buffer).map_or(0, |b| b.as_ptr().addr() as u64);
        let inputs: Vec<u64> =
            values.iter().map(|v| address(v.as_ref().and_then(Value::as_tensor))).collect();
        let outputs: Vec<u64> = results.iter().map(|t| address(t.as_ref())).collect();
        let scratch = device.provider.allocate(launches.scratch, &device.stream)?;
        let addresses = Addresses {
            inputs: &inputs,
            outputs: &outputs,
            scratch: scratch.address(),
            errors: device.errors(at),
            counters: device.counters(),
        };
        device.may_have_errors |= launches.reports_errors;
        device.before_work().map_err(Error::from)?;
        let mut given = 0;
        // SAFETY: the launches were just planned for these values, which stay until the stream was
        // waited for, right below.
        unsafe { launches.submit(&device.stream, &addresses, &mut device.params, |_| given += 1) }
            .map_err(Error::from)?;
        launches.submit_work_of_caller(self.cx.pool, &device.stream, &addresses)?;
        self.launched += given;
        // The plan and its scratch memory go when this returns.
        device.wait().map_err(Error::from)?;
        for (output, tensor) in step.outputs.iter().zip(results) {
            if let (Some(output), Some(tensor)) = (output, tensor) {
                self.memory.dynamic[*output as usize] = Some(Value::Tensor(tensor));
            }
        }
        Ok(())
    }

    /// Copies a value made while running to the other side.
    pub(super) fn dynamic_copy_step(&mut self, at: usize, to: Place) -> Result<()> {
        let step = &self.program.steps[at];
        self.settle()?;
        let (Some(&Some(input)), Some(&Some(output))) = (step.inputs.first(), step.outputs.first()) else {
            return Ok(());
        };
        let value = self.value_anywhere(input)?;
        let Some((tensor, buffer)) = value.as_tensor().and_then(|t| Some((t, t.buffer()?))) else {
            return Err(OpError::Unsupported(format!("{} cannot be copied to a device", value.ty())).into());
        };
        if self.plan.stay_on_device.contains(&at) {
            self.memory.dynamic[output as usize] = Some(value);
            return Ok(());
        }
        let device = context(&mut self.device)?;
        let copy = match to {
            Place::Device => {
                let bytes = device.provider.upload(buffer.bytes())?.into_buffer(buffer.len());
                Tensor::from_buffer(tensor.ty(), tensor.shape(), bytes)
            }
            Place::Host => {
                let copy = Tensor::zeros(tensor.ty(), tensor.shape()).map_err(OpError::from)?;
                if let Some(host) = copy.buffer() {
                    let from = buffer.as_ptr().addr() as u64;
                    // SAFETY: both sides hold as many bytes, and the copy is waited for right below.
                    unsafe { device.copy_to_host(host.as_ptr(), from, buffer.len()) }.map_err(Error::from)?;
                }
                device.settle().map_err(Error::from)?;
                Some(copy)
            }
        };
        self.memory.dynamic[output as usize] = copy.map(Value::Tensor);
        Ok(())
    }

    /// A value on either side. Planned device memory is borrowed: the value must not outlive the step.
    fn value_anywhere(&self, value: u32) -> Result<Value> {
        let index = value as usize;
        if let Some(value) = &self.memory.dynamic[index] {
            return Ok(value.clone());
        }
        if self.program.values[index].place == Place::Device
            && let Some((ty, shape)) = self.plan.states[index].layout()
        {
            let (ptr, len) = self.memory.spans[index];
            // SAFETY: the run keeps planned device memory until it ends, which is after the step.
            let buffer = unsafe { Buffer::on_device(0, ptr.addr() as u64, len, std::sync::Arc::new(())) };
            if let Some(tensor) = Tensor::from_buffer(ty, shape, buffer) {
                return Ok(Value::Tensor(tensor));
            }
        }
        match self.value(value) {
            Some(found) => Ok(found.to_value().map_err(OpError::from)?),
            None => Err(OpError::Data(format!("value {value} was not made")).into()),
        }
    }
}

/// Where a step's values are in a run.
pub(super) struct Operands {
    inputs: SmallVec<[u64; 16]>,
    outputs: SmallVec<[u64; 8]>,
}

impl Operands {
    pub(super) fn new(step: &Step, planned: &DeviceStep, spans: &[(*mut u8, usize)]) -> Self {
        let of_value = |v: u32| spans[v as usize].0.addr() as u64;
        if let Some(values) = &planned.values {
            let inputs = values.iter().map(|&v| of_value(v)).collect();
            return Operands { inputs, outputs: SmallVec::new() };
        }
        let address = |v: &Option<u32>| v.map_or(0, of_value);
        Operands {
            inputs: step.inputs.iter().map(address).collect(),
            outputs: step.outputs.iter().map(address).collect(),
        }
    }

    pub(super) fn addresses(
        &self,
        device: &DeviceContext,
        at: usize,
        planned: &DeviceStep,
        block: u64,
    ) -> Addresses<'_> {
        Addresses {
            inputs: &self.inputs,
            outputs: &self.outputs,
            scratch: block + planned.scratch as u64,
            errors: device.errors(at),
            counters: device.counters(),
        }
    }
}

fn context<'d>(device: &'d mut Option<&mut DeviceContext>) -> Result<&'d mut DeviceContext> {
    match device {
        Some(device) => Ok(device),
        None => {
            let text = "a device step runs without a device";
            Err(StepError::Op(OpError::Failed(Error::new(Status::Internal, text))))
        }
    }
}
