//! Elementwise operators of one input.

use crate::ops::OpError;
use crate::ops::unary::Unary;
use crate::tensor::{Element, ElementType, TensorView, TensorViewMut};

use super::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Relu", build), Entry::new("LeakyRelu", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Unary>();
    let kernel: Box<dyn Kernel> = match (op, node.input(0)) {
        (Unary::Relu, Some(ElementType::F32)) => Map::<f32, _>::boxed(|x| x.max(0.0)),
        (Unary::Relu, Some(ElementType::I32)) => Map::<i32, _>::boxed(|x| x.max(0)),
        (Unary::LeakyRelu { alpha }, Some(ElementType::F32)) => {
            Map::<f32, _>::boxed(move |x| if x < 0.0 { alpha * x } else { x })
        }
        _ => return Err(node.no_kernel()),
    };
    Ok(CpuKernel::Tensor(kernel))
}

/// Applies a function to each element. Bound: one read and one write of the tensor.
struct Map<T, F> {
    f: F,
    _element: std::marker::PhantomData<fn(T)>,
}

impl<T: Element, F: Fn(T) -> T + Send + Sync + 'static> Map<T, F> {
    fn boxed(f: F) -> Box<dyn Kernel> {
        Box::new(Map { f, _element: std::marker::PhantomData })
    }
}

impl<T: Element, F: Fn(T) -> T + Send + Sync> Kernel for Map<T, F> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let _ = cx;
        match inputs[0] {
            Some(input) => {
                for (y, &x) in output.slice::<T>().iter_mut().zip(input.slice::<T>()) {
                    *y = (self.f)(x);
                }
            }
            None => output.slice::<T>().iter_mut().for_each(|y| *y = (self.f)(*y)),
        }
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{elements, run, t};

    #[test]
    fn relu() {
        let out = run("Relu", 14, &[], &[t(&[3], &[-1.0f32, 0.0, 2.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]), (vec![3], vec![0.0, 0.0, 2.0]));
    }
}
