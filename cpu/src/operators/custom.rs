//! Operators that the caller of the library defined: its kernel is lent views of the inputs and the outputs' memory.

use std::ptr::NonNull;
use std::sync::Arc;

use crate::ops::OpError;
use crate::ops::custom::{Call, Custom, Instance, OutputSlot, Side};
use crate::tensor::{
    Buffer, ElementType, Shape, Tensor, TensorView, TensorViewMut, Value, ValueRef, ValueType,
};

use super::super::kernel::{CpuKernel, Kernel, KernelContext, NodeContext, ValueKernel};

/// The kernel of a node whose operator the caller defined.
pub(crate) fn build(node: &NodeContext<'_>, op: &Custom) -> Result<CpuKernel, OpError> {
    if !op.runs_on(Side::Host) {
        return Err(OpError::Unsupported(format!(
            "operator {} has a kernel for GPUs alone, and the node must run on the CPU",
            node.name
        )));
    }
    let instance = op.instance(node.input_types, node.constants, node.output_types, Side::Host)?;
    let plain = |ty: &Option<ValueType>| match ty {
        Some(ValueType::Tensor(element)) => *element != ElementType::String,
        Some(_) => false,
        None => true,
    };
    let planned = op.has_shape_function() && node.input_types.iter().chain(node.output_types).all(plain);
    let kernel = CustomKernel { instance, outputs: node.output_types.to_vec() };
    Ok(if planned { CpuKernel::Tensor(Box::new(kernel)) } else { CpuKernel::Value(Box::new(kernel)) })
}

struct CustomKernel {
    instance: Box<dyn Instance>,
    /// `None` where an output is not wanted.
    outputs: Vec<Option<ValueType>>,
}

/// Tells whether values over lent memory are still there.
#[derive(Default)]
struct Lent(Arc<()>);

impl Lent {
    fn tensor(&self, ty: ElementType, shape: &[usize], bytes: (*mut u8, usize)) -> Result<Tensor, OpError> {
        let start = NonNull::new(bytes.0).unwrap_or(NonNull::<u64>::dangling().cast());
        // SAFETY: the memory is lent for the call. Values that a kernel keeps longer, against the contract of the
        // header, are found by `end`.
        let buffer = unsafe { Buffer::foreign(start, bytes.1, self.0.clone()) };
        Tensor::from_buffer(ty, shape, buffer)
            .ok_or_else(|| OpError::Data("a value's memory has not the size of its shape".to_owned()))
    }

    /// After the values of the call are gone.
    fn end(self) -> Result<(), OpError> {
        match Arc::strong_count(&self.0) {
            1 => Ok(()),
            _ => Err(OpError::Data(
                "the operator's kernel returned and kept a value (a clone, or a value made from one) over memory that was lent to it for the call; copy the elements instead"
                    .to_owned(),
            )),
        }
    }
}

impl CustomKernel {
    fn input(&self, lent: &Lent, view: &TensorView<'_>) -> Result<Value, OpError> {
        let bytes = (view.bytes().as_ptr().cast_mut(), view.bytes().len());
        Ok(Value::Tensor(lent.tensor(view.ty(), view.shape(), bytes)?))
    }

    fn compute(
        &self,
        cx: &KernelContext<'_>,
        inputs: Vec<Option<Value>>,
        outputs: Vec<OutputSlot>,
    ) -> Result<Vec<Option<Value>>, OpError> {
        let call = Call { pool: cx.pool.clone(), inputs, outputs, device: None };
        let mut call = self.instance.compute(call)?;
        call.inputs.clear();
        Ok(call.finish()?)
    }
}

impl Kernel for CustomKernel {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let lent = Lent::default();
        let inputs = inputs
            .iter()
            .map(|view| view.as_ref().map(|view| self.input(&lent, view)).transpose())
            .collect::<Result<_, _>>()?;
        let slots = outputs
            .iter_mut()
            .zip(&self.outputs)
            .map(|(view, wanted)| {
                let (Some(view), Some(_)) = (view, wanted) else { return Ok(OutputSlot::Unwanted) };
                let (ty, shape) = (view.ty(), Shape::from(view.shape()));
                let bytes = view.bytes();
                let tensor = lent.tensor(ty, &shape, (bytes.as_mut_ptr(), bytes.len()))?;
                Ok(OutputSlot::Planned(tensor, None))
            })
            .collect::<Result<_, OpError>>()?;
        let made = self.compute(cx, inputs, slots)?;
        for (view, value) in outputs.iter_mut().zip(&made) {
            // A kernel may have made a tensor elsewhere.
            if let (Some(view), Some(Value::Tensor(tensor))) = (view, value)
                && let Some(from) = tensor.buffer()
                && from.as_ptr() != view.bytes().as_mut_ptr()
            {
                view.bytes().copy_from_slice(from.bytes());
            }
        }
        drop(made);
        lent.end()
    }

    fn values(&self) -> Option<&dyn ValueKernel> {
        Some(self)
    }
}

impl ValueKernel for CustomKernel {
    fn run(&self, cx: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let lent = Lent::default();
        let inputs = inputs
            .iter()
            .map(|value| match value {
                Some(ValueRef::Value(value)) => Ok(Some((*value).clone())),
                Some(ValueRef::Tensor(view)) => Ok(Some(self.input(&lent, view)?)),
                None => Ok(None),
            })
            .collect::<Result<_, OpError>>()?;
        let slots = self.outputs.iter().map(|ty| match ty {
            Some(ty) => OutputSlot::Open(ty.clone(), None),
            None => OutputSlot::Unwanted,
        });
        let made = self.compute(cx, inputs, slots.collect())?;
        let values: Vec<Value> = made
            .into_iter()
            .map(|value| match value {
                Some(value) => owned(value, &lent),
                // Nobody reads it.
                None => Ok(Value::Tensor(Tensor::zeros(ElementType::U8, &[0])?)),
            })
            .collect::<Result<_, OpError>>()?;
        lent.end()?;
        Ok(values)
    }
}

/// A value that shares no lent memory: a kernel may give an input as its output.
fn owned(value: Value, lent: &Lent) -> Result<Value, OpError> {
    match value {
        Value::Tensor(tensor) if Arc::strong_count(&lent.0) > 1 => match tensor.buffer() {
            Some(buffer) => {
                let copy = Buffer::copy_of(buffer.bytes())?;
                let copied = Tensor::from_buffer(tensor.ty(), tensor.shape(), copy);
                Ok(Value::Tensor(copied.unwrap_or(tensor)))
            }
            None => Ok(Value::Tensor(tensor)),
        },
        other => Ok(other),
    }
}
