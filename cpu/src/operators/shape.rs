//! Shape and Size: what a shape is, as a tensor.

use crate::ops::OpError;
use crate::ops::shape::Shape;
use crate::tensor::{ElementType, Tensor, TensorView, TensorViewMut, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::shape_of;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Shape", |node| build(node, Some(node.op::<Shape>().clone()))),
    Entry::new("Size", |node| build(node, None)),
];

fn build(node: &NodeContext<'_>, dims: Option<Shape>) -> Result<CpuKernel, OpError> {
    Ok(match node.input(0) {
        Some(ElementType::String) => CpuKernel::Value(Box::new(ShapeOf { dims })),
        _ => CpuKernel::Tensor(Box::new(ShapeOf { dims })),
    })
}

/// The dimensions wanted, or (`None`) their product.
struct ShapeOf {
    dims: Option<Shape>,
}

impl ShapeOf {
    fn write(&self, shape: &[usize], output: &mut [i64]) {
        match &self.dims {
            Some(op) => {
                let dims = &shape[op.range(shape.len())];
                output.iter_mut().zip(dims).for_each(|(y, &d)| *y = d as i64);
            }
            None => output.fill(shape.iter().product::<usize>() as i64),
        }
    }
}

impl Kernel for ShapeOf {
    fn run(
        &self,
        _: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        if let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) {
            self.write(input.shape(), output.slice());
        }
        Ok(())
    }
}

impl ValueKernel for ShapeOf {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let shape = shape_of(inputs, 0)?;
        let count = self.dims.as_ref().map(|op| op.range(shape.len()).len());
        let mut elements = vec![0; count.unwrap_or(1)];
        self.write(shape, &mut elements);
        let dims: &[usize] = if count.is_some() { &[elements.len()] } else { &[] };
        Ok(vec![Value::Tensor(Tensor::from_slice(dims, &elements)?)])
    }
}
