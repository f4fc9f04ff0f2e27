//! Operators that the caller of the library defined: its kernel is lent device memory and the stream, and launches by
//! itself.

use std::sync::Arc;

use crate::error::Error;
use crate::graph::{Dim, Fact};
use crate::hip::Stream;
use crate::ops::OpError;
use crate::ops::custom::{Call, Custom, DeviceWork, Instance, OutputFact, OutputSlot, Side};
use crate::providers::Argument;
use crate::tensor::{Buffer, ElementType, Shape, Tensor, Value, ValueType};
use crate::threads::Pool;

use super::launch::{Addresses, Operand, PlanBuilder, StreamWork};
use super::{HipKernel, NodeContext};

/// The kernel of a node whose operator the caller defined.
pub(super) fn build(node: &NodeContext<'_>, op: &Custom) -> Result<Box<dyn HipKernel>, OpError> {
    if !op.runs_on(Side::Device) {
        return Err(OpError::Unsupported(format!("operator {} has no kernel for GPUs", node.name)));
    }
    if !op.has_shape_function() {
        return Err(OpError::Unsupported(format!(
            "operator {} has no shape function, which kernels for GPUs need",
            node.name
        )));
    }
    let element = |ty: &Option<ValueType>| match ty {
        None => Ok(None),
        Some(ValueType::Tensor(element)) if *element != ElementType::String => Ok(Some(*element)),
        Some(other) => Err(OpError::Unsupported(format!("{other} cannot be in the memory of a GPU"))),
    };
    let inputs = node.input_types.iter().map(element).collect::<Result<_, _>>()?;
    let outputs = node.output_types.iter().map(element).collect::<Result<_, _>>()?;
    let instance = op.instance(node.input_types, node.constants, node.output_types, Side::Device)?;
    Ok(Box::new(CustomKernel {
        instance: instance.into(),
        inputs,
        outputs,
        shape_inputs: op.shape_inputs().to_vec(),
        capturable: op.capturable(),
    }))
}

struct CustomKernel {
    instance: Arc<dyn Instance>,
    inputs: Vec<Option<ElementType>>,
    outputs: Vec<Option<ElementType>>,
    /// Those that are read on the host.
    shape_inputs: Vec<usize>,
    capturable: bool,
}

impl HipKernel for CustomKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let dims = |shape: &[usize]| -> Vec<Dim> { shape.iter().map(|&d| Dim::from(d)).collect() };
        let fact = |(argument, ty): (&Option<Argument<'_>>, &Option<ElementType>)| {
            Some(Fact::tensor((*ty)?, dims(argument.as_ref()?.shape)))
        };
        let facts: Vec<Option<Fact>> = inputs.iter().zip(&self.inputs).map(fact).collect();
        let told = outputs.iter().zip(&self.outputs).map(|(shape, ty)| OutputFact {
            ty: ty.map(ValueType::Tensor),
            shape: shape.map(|shape| dims(shape).into_iter().map(Some).collect()),
        });
        let bytes = self.instance.prepare(&facts, told.collect())?;
        let scratch = if bytes > 0 { Some(plan.scratch(bytes)) } else { None };
        let inputs = inputs.iter().zip(&self.inputs).enumerate().map(|(i, (argument, ty))| {
            let (Some(argument), Some(ty)) = (argument, ty) else { return Ok(Lent::Nothing) };
            Ok(match argument.value {
                Some(view) if self.shape_inputs.contains(&i) => {
                    let copy = Buffer::copy_of(view.bytes())?;
                    Tensor::from_buffer(*ty, view.shape(), copy).map_or(Lent::Nothing, Lent::Known)
                }
                _ => Lent::Memory(*ty, argument.shape.into()),
            })
        });
        let outputs = outputs.iter().zip(&self.outputs).map(|(shape, ty)| match (shape, ty) {
            (Some(shape), Some(ty)) => Lent::Memory(*ty, (*shape).into()),
            _ => Lent::Nothing,
        });
        plan.work_of_caller(CallerWork {
            instance: self.instance.clone(),
            inputs: inputs.collect::<Result<_, OpError>>()?,
            outputs: outputs.collect(),
            scratch: scratch.map(|operand| (operand, bytes)),
            capturable: self.capturable,
        });
        Ok(())
    }
}

/// What a kernel of the caller's gets for an input or output.
enum Lent {
    Nothing,
    /// Device memory whose address the run tells.
    Memory(ElementType, Shape),
    /// A value that was known when the run was planned.
    Known(Tensor),
}

/// Work that the caller gives to the stream.
struct CallerWork {
    instance: Arc<dyn Instance>,
    inputs: Vec<Lent>,
    outputs: Vec<Lent>,
    scratch: Option<(Operand, usize)>,
    capturable: bool,
}

impl StreamWork for CallerWork {
    fn can_be_recorded(&self) -> bool {
        self.capturable
    }

    fn submit(&self, pool: &Pool, stream: &Stream, addresses: &Addresses<'_>) -> Result<(), OpError> {
        let lent = Arc::new(());
        let device = stream.device();
        let tensor = |ty: ElementType, shape: &Shape, address: u64| {
            let bytes = shape.iter().product::<usize>() * ty.size();
            // SAFETY: the run keeps the memory until its work is done. Values that a kernel keeps longer, against the
            // contract of the header, are found below.
            let buffer = unsafe { Buffer::on_device(device.index as u32, address, bytes, lent.clone()) };
            Tensor::from_buffer(ty, shape, buffer)
                .ok_or_else(|| OpError::Data("a value's memory has not the size of its shape".to_owned()))
        };
        let inputs = self.inputs.iter().enumerate().map(|(i, input)| {
            Ok(match input {
                Lent::Nothing => None,
                Lent::Known(tensor) => Some(Value::Tensor(tensor.clone())),
                Lent::Memory(ty, shape) => Some(Value::Tensor(tensor(*ty, shape, addresses.inputs[i])?)),
            })
        });
        let outputs = self.outputs.iter().enumerate().map(|(i, output)| {
            Ok(match output {
                Lent::Memory(ty, shape) => {
                    OutputSlot::Planned(tensor(*ty, shape, addresses.outputs[i])?, None)
                }
                _ => OutputSlot::Unwanted,
            })
        });
        let scratch = match self.scratch {
            Some((Operand::Scratch(at), bytes)) => (addresses.scratch + at as u64, bytes),
            _ => (0, 0),
        };
        let call = Call {
            pool: pool.clone(),
            inputs: inputs.collect::<Result<_, OpError>>()?,
            outputs: outputs.collect::<Result<_, OpError>>()?,
            device: Some(DeviceWork { stream: stream.id(), scratch }),
        };
        let _current = device.enter_for_caller().map_err(Error::from)?;
        let mut call = self.instance.compute(call)?;
        call.inputs.clear();
        drop(call.finish()?);
        match Arc::strong_count(&lent) {
            1 => Ok(()),
            _ => Err(OpError::Data(
                "the operator's kernel returned and kept a value over memory that was lent to it for the call"
                    .to_owned(),
            )),
        }
    }
}
