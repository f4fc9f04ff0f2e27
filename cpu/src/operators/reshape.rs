//! Reshape, Flatten, Squeeze, Unsqueeze and Identity: the same elements, copied only when their
//! memory cannot be taken over.

use crate::ops::OpError;
use crate::ops::reshape::Reshape;
use crate::tensor::{ElementType, TensorView, TensorViewMut, Value, ValueRef, ValueType};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};
use crate::loops::mover::infer_shapes;
use crate::loops::parallel::{GRAIN, split_mut};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Reshape", build),
    Entry::new("Flatten", build),
    Entry::new("Squeeze", build),
    Entry::new("Unsqueeze", build),
    Entry::new("Identity", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    match node.input_types.first() {
        Some(Some(ValueType::Tensor(ty))) if *ty != ElementType::String => {
            Ok(CpuKernel::Tensor(Box::new(Copy)))
        }
        _ => Ok(CpuKernel::Value(Box::new(CopyValue {
            op: node.op::<Reshape>().clone(),
            domain: node.domain.to_owned(),
            name: node.name.to_owned(),
        }))),
    }
}

struct Copy;

impl Kernel for Copy {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        if let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) {
            let input = input.bytes();
            split_mut(cx.pool, output.bytes(), 1, 16 * GRAIN, |range, part| {
                part.copy_from_slice(&input[range])
            });
        }
        Ok(())
    }

    fn reshapes(&self) -> bool {
        true
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Strings, sequences and the rest share their elements.
struct CopyValue {
    op: Reshape,
    domain: String,
    name: String,
}

impl ValueKernel for CopyValue {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let value = inputs.first().copied().flatten();
        let value = value.ok_or_else(|| OpError::Data("input 0 is missing".to_owned()))?.to_value()?;
        let Value::Tensor(tensor) = &value else { return Ok(vec![value]) };
        let shape = infer_shapes(&self.op, &self.domain, &self.name, inputs, 1)?.swap_remove(0);
        let reshaped = tensor
            .reshaped(&shape)
            .ok_or_else(|| OpError::Data(format!("shape {:?} cannot become {shape:?}", tensor.shape())))?;
        Ok(vec![Value::Tensor(reshaped)])
    }
}
