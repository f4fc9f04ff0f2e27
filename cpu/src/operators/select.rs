//! OneHot, NonZero and Compress.

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::select::{Compress, OneHot};
use crate::tensor::{Bool, C64, C128, ElementType, Tensor, TensorView, Value, ValueRef, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, KernelContext, NodeContext, ValueKernel};
use crate::loops::item::{Item, dispatch_item, items, shape_of, type_of};
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::number::dispatch;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("OneHot", |node| {
        mover::build::<OneHot, _>(node, OneHotMover { axis: node.op::<OneHot>().axis })
    }),
    Entry::new("NonZero", non_zero),
    Entry::new("Compress", |node| {
        Ok(CpuKernel::Value(Box::new(CompressKernel { axis: node.op::<Compress>().axis })))
    }),
];

struct OneHotMover {
    axis: i64,
}

/// The output as `[outer, depth, inner]`.
struct OneHotPlan {
    depth: usize,
    inner: usize,
}

impl Mover for OneHotMover {
    const DATA: usize = 2;
    type Plan = OneHotPlan;

    fn plan(&self, _: &[Option<Argument<'_>>], outputs: &[Option<&[usize]>]) -> Result<OneHotPlan, OpError> {
        let shape = outputs.first().copied().flatten().unwrap_or(&[0]);
        let axis = axis_of(self.axis, shape.len())?;
        Ok(OneHotPlan { depth: shape[axis], inner: shape[axis + 1..].iter().product() })
    }

    fn run<T: Item>(
        &self,
        plan: &OneHotPlan,
        _: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some([off, on]), Some(output)) = (inputs.items::<T>(2), outputs.items::<T>(0)) else {
            return Ok(());
        };
        output.fill(off.clone());
        let Some(indices) = inputs.view(0) else { return Ok(()) };
        dispatch!(
            Some(indices.ty()),
            I in [u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64] =>
                set_hot(plan, indices.slice::<I>(), on, output),
            else return Err(OpError::Unsupported(format!("indices of type {}", indices.ty())))
        );
        Ok(())
    }
}

/// An index outside of −depth…depth−1 leaves its row off, as the standard says.
fn set_hot<T: Item, I: AsPrimitive<i64>>(plan: &OneHotPlan, indices: &[I], on: &T, output: &mut [T]) {
    let depth = plan.depth as i64;
    for (i, index) in indices.iter().enumerate() {
        let index: i64 = index.as_();
        let index = if index < 0 { index.saturating_add(depth) } else { index };
        if (0..depth).contains(&index) {
            let (outer, inner) = (i / plan.inner, i % plan.inner);
            output[(outer * plan.depth + index as usize) * plan.inner + inner] = on.clone();
        }
    }
}

fn non_zero(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let flags: Flags = dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64, Bool, C64, C128] =>
            Flags::Plain(|view| view.slice::<T>().iter().map(|x| *x != T::default()).collect()),
        else match node.input(0) {
            Some(ElementType::String) => Flags::Strings,
            _ => return Err(node.no_kernel()),
        }
    );
    Ok(CpuKernel::Value(Box::new(NonZero(flags))))
}

/// How elements become "not zero" flags.
enum Flags {
    Plain(fn(TensorView<'_>) -> Vec<bool>),
    /// A string is not zero when it is not empty.
    Strings,
}

struct NonZero(Flags);

impl ValueKernel for NonZero {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let shape = shape_of(inputs, 0)?;
        let value = inputs[0];
        let flags = match self.0 {
            Flags::Plain(f) => value.and_then(ValueRef::view).map(f),
            Flags::Strings => {
                value.and_then(ValueRef::strings).map(|s| s.iter().map(|s| !s.is_empty()).collect())
            }
        };
        let flags = flags.ok_or_else(|| OpError::Data("input 0 changed its type".to_owned()))?;
        let count = flags.iter().filter(|f| **f).count();
        let mut coordinates = vec![0i64; shape.len() * count];
        let positions = flags.iter().enumerate().filter(|(_, f)| **f).map(|(i, _)| i);
        for (k, position) in positions.enumerate() {
            let mut rest = position;
            for (axis, &d) in shape.iter().enumerate().rev() {
                coordinates[axis * count + k] = (rest % d) as i64;
                rest /= d;
            }
        }
        Ok(vec![Value::Tensor(Tensor::from_slice(&[shape.len(), count], &coordinates)?)])
    }
}

struct CompressKernel {
    axis: Option<i64>,
}

impl ValueKernel for CompressKernel {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let ty = type_of(inputs, 0)?;
        let shape = shape_of(inputs, 0)?;
        let condition = inputs.get(1).copied().flatten().and_then(ValueRef::view);
        let condition = condition.ok_or_else(|| OpError::Data("condition must be bool".to_owned()))?;
        let (outer, length, inner) = match self.axis {
            None => (1, shape.iter().product(), 1),
            Some(axis) => {
                let axis = axis_of(axis, shape.len())?;
                (shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product())
            }
        };
        let picks: Vec<usize> =
            condition.slice::<Bool>().iter().enumerate().filter(|(_, c)| c.get()).map(|(i, _)| i).collect();
        if let Some(i) = picks.iter().find(|&&i| i >= length) {
            return Err(OpError::Data(format!("condition {i} is true, but there are {length} elements")));
        }
        let result_shape: Vec<usize> = match self.axis {
            None => vec![picks.len()],
            Some(axis) => {
                let axis = axis_of(axis, shape.len())?;
                shape.iter().enumerate().map(|(k, &d)| if k == axis { picks.len() } else { d }).collect()
            }
        };
        let tensor = dispatch_item!(ty, T => {
            let data = items::<T>(inputs, 0)?;
            let mut result = Vec::with_capacity(outer * picks.len() * inner);
            for o in 0..outer {
                for i in &picks {
                    result.extend_from_slice(&data[(o * length + i) * inner..][..inner]);
                }
            }
            T::tensor(ty, &result_shape, result)?
        });
        Ok(vec![Value::Tensor(tensor)])
    }
}
