//! ScatterElements (Scatter), ScatterND and TensorScatter.

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::scatter::{Reduction, Scatter};
use crate::tensor::{Bool, Element, TensorView, TensorViewMut, bf16, f16};

use super::gather::{ElementsPlan, TuplesPlan};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Scatter", build),
    Entry::new("ScatterElements", build),
    Entry::new("ScatterND", build),
    Entry::new("TensorScatter", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Scatter>().clone();
    let (target, reduction) = match op {
        Scatter::Elements { axis, reduction } => (Target::Elements { axis }, reduction),
        Scatter::Tuples { reduction } => (Target::Tuples, reduction),
        Scatter::Cache { axis, circular } => {
            return mover::build::<Scatter, _>(node, Cache { axis, circular });
        }
    };
    if reduction == Reduction::Replace {
        return mover::build::<Scatter, _>(node, Replace { target });
    }
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64, Bool] =>
            Ok(CpuKernel::Tensor(Box::new(Reduce::<T> { target, combine: T::combiner(reduction) }))),
        else Err(node.no_kernel())
    )
}

/// Which elements the indices name.
#[derive(Clone, Copy)]
enum Target {
    Elements { axis: i64 },
    Tuples,
}

enum Plan {
    Elements(ElementsPlan),
    Tuples(TuplesPlan),
}

impl Target {
    fn plan(self, inputs: &[Option<Argument<'_>>]) -> Result<Plan, OpError> {
        let data = data_shape(inputs)?;
        let indices = inputs.get(1).copied().flatten();
        let indices = indices.ok_or_else(|| OpError::Data("the indices are missing".to_owned()))?.shape;
        Ok(match self {
            Target::Elements { axis } => Plan::Elements(ElementsPlan::new(data, indices, axis)?),
            Target::Tuples => Plan::Tuples(TuplesPlan::new(data, indices, 0)),
        })
    }
}

impl Plan {
    /// Combines each update with the element it is for, in the order of the indices: that order
    /// decides where an index occurs twice, so this runs on one thread.
    fn scatter<T: Clone>(
        &self,
        indices: Option<TensorView<'_>>,
        updates: &[T],
        output: &mut [T],
        combine: impl Fn(&mut T, &T),
    ) -> Result<(), OpError> {
        let indices = Ints::required(indices, "indices")?;
        match self {
            Plan::Elements(plan) => {
                let inside = plan.walk(indices, 0..plan.row_count(), |i, position| {
                    combine(&mut output[position], &updates[i])
                });
                if !inside {
                    indices.check(plan.axis_length)?;
                }
            }
            Plan::Tuples(plan) => {
                plan.check(indices)?;
                if plan.block > 0 {
                    for (t, update) in updates.chunks_exact(plan.block).enumerate() {
                        let at = plan.position(indices, t);
                        output[at..at + plan.block].iter_mut().zip(update).for_each(|(y, x)| combine(y, x));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The last update of an element stays. Bound: one read and one write of the data, unless it is
/// written in place.
struct Replace {
    target: Target,
}

impl Mover for Replace {
    const IN_PLACE: &'static [usize] = &[0];
    type Plan = Plan;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Plan, OpError> {
        self.target.plan(inputs)
    }

    fn run<T: Item>(
        &self,
        plan: &Plan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let Some(output) = outputs.items::<T>(0) else { return Ok(()) };
        copy_data(cx, inputs.items::<T>(0), output);
        let updates = inputs.items::<T>(2).unwrap_or_default();
        plan.scatter(inputs.view(1), updates, output, |y, x| y.clone_from(x))
    }
}

/// The data come first, unless they lie in the output already.
fn copy_data<T: Clone + Send + Sync>(cx: &KernelContext<'_>, data: Option<&[T]>, output: &mut [T]) {
    if let Some(data) = data {
        split_mut(cx.pool, output, 1, 4 * GRAIN, |range, part| part.clone_from_slice(&data[range]));
    }
}

struct Reduce<T> {
    target: Target,
    combine: fn(T, T) -> T,
}

impl<T: Element> Kernel for Reduce<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let output = output.slice::<T>();
        copy_data(cx, inputs[0].map(|data| data.slice::<T>()), output);
        let updates = inputs[2].map(|u| u.slice::<T>()).unwrap_or_default();
        cx.state::<Plan>().scatter(inputs[1], updates, output, |y, &x| *y = (self.combine)(*y, x))
    }

    fn prepare(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Prepared, OpError> {
        Ok(Prepared { state: Some(Box::new(self.target.plan(inputs)?)), scratch: 0 })
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Arithmetic of reductions. Integers wrap; a NaN wins over any number, as in numpy.
trait Combine: Element {
    fn combiner(reduction: Reduction) -> fn(Self, Self) -> Self;
}

macro_rules! combine {
    ($($ty:ty: $add:expr, $mul:expr, $max:expr, $min:expr);* $(;)?) => {$(
        impl Combine for $ty {
            fn combiner(reduction: Reduction) -> fn(Self, Self) -> Self {
                match reduction {
                    Reduction::Replace => |_, x| x,
                    Reduction::Add => $add,
                    Reduction::Multiply => $mul,
                    Reduction::Maximum => $max,
                    Reduction::Minimum => $min,
                }
            }
        }
    )*};
}
macro_rules! combine_ints {
    ($($ty:ty),*) => { combine! { $($ty: |y, x| y.wrapping_add(x), |y, x| y.wrapping_mul(x), |y, x| y.max(x), |y, x| y.min(x));* } };
}
macro_rules! combine_floats {
    ($($ty:ty),*) => { combine! { $($ty: |y, x| y + x, |y, x| y * x,
        |y, x| if x > y || x.is_nan() { x } else { y }, |y, x| if x < y || x.is_nan() { x } else { y });* } };
}
combine_ints!(u8, u16, u32, u64, i8, i16, i32, i64);
combine_floats!(f32, f64, f16, bf16);
combine! {
    Bool: |y, x| (y.get() || x.get()).into(), |y, x| (y.get() && x.get()).into(),
        |y, x| (y.get() || x.get()).into(), |y, x| (y.get() && x.get()).into();
}

/// The key-value cache of attention: `update` replaces a run of positions of the axis.
struct Cache {
    axis: i64,
    circular: bool,
}

/// The cache as `[batch, prefix, length, block]`, and the length of the update.
struct CachePlan {
    batch: usize,
    prefix: usize,
    length: usize,
    update: usize,
    block: usize,
}

impl Mover for Cache {
    const IN_PLACE: &'static [usize] = &[0];
    type Plan = CachePlan;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<CachePlan, OpError> {
        let shape = data_shape(inputs)?;
        let axis = axis_of(self.axis, shape.len())?;
        let update = inputs.get(1).copied().flatten();
        Ok(CachePlan {
            batch: shape[0],
            prefix: shape[1..axis].iter().product(),
            length: shape[axis],
            update: update.map_or(0, |u| u.shape[axis]),
            block: shape[axis + 1..].iter().product(),
        })
    }

    fn run<T: Item>(
        &self,
        plan: &CachePlan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let Some(output) = outputs.items::<T>(0) else { return Ok(()) };
        copy_data(cx, inputs.items::<T>(0), output);
        let updates = inputs.items::<T>(1).unwrap_or_default();
        let starts = inputs.view(2).map(|view| Ints::required(Some(view), "write_indices")).transpose()?;
        let (length, count, block) = (plan.length, plan.update, plan.block);
        for b in 0..plan.batch {
            let start = starts.map_or(0, |s| s.get(b));
            let last = if self.circular { i64::MAX } else { (length - count) as i64 };
            if !(0..=last).contains(&start) {
                let reason =
                    format!("write index {start} of batch {b} is out of range; allowed are 0 to {last}");
                return Err(OpError::Data(reason));
            }
            for p in b * plan.prefix..(b + 1) * plan.prefix {
                for s in 0..count {
                    let to = p * length + (start as usize % length.max(1) + s) % length.max(1);
                    let from = p * count + s;
                    output[to * block..(to + 1) * block]
                        .clone_from_slice(&updates[from * block..(from + 1) * block]);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    #[test]
    fn reductions_in_the_order_of_the_indices() {
        // numpy: y[i] = f(y[i], u) one after the other.
        for (reduction, want) in [
            ("none", [9.0f32, 2.0, 7.0]),
            ("add", [14.0, 2.0, 10.0]),
            ("mul", [36.0, 2.0, 21.0]),
            ("max", [9.0, 2.0, 7.0]),
            ("min", [1.0, 2.0, 3.0]),
        ] {
            let attributes = [("reduction", Attribute::String(reduction.into()))];
            let (data, updates) = (t(&[3], &[1.0f32, 2.0, 3.0]), t(&[3], &[4.0f32, 7.0, 9.0]));
            let elements_of = |op: &str, indices| {
                let inputs = [data.clone(), indices, updates.clone()];
                elements::<f32>(&run(op, 18, &attributes, &inputs, 1).unwrap()[0]).1
            };
            assert_eq!(elements_of("ScatterElements", t(&[3], &[0i64, -1, 0])), want, "{reduction}");
            assert_eq!(elements_of("ScatterND", t(&[3, 1], &[0i64, -1, 0])), want, "{reduction}");
        }
    }

    #[test]
    fn indices_are_checked() {
        for (op, indices) in [
            ("ScatterElements", t(&[1], &[3i64])),
            ("ScatterND", t(&[1, 1], &[-4i64])),
            ("Gather", t(&[1], &[3i64])),
        ] {
            let mut inputs = vec![t(&[3], &[0u8; 3]), indices];
            if op != "Gather" {
                inputs.push(t(&[1], &[1u8]));
            }
            let error = run(op, 18, &[], &inputs, 1).unwrap_err().to_string();
            assert!(error.contains("allowed are -3 to 2"), "{op}: {error}");
        }
    }
}
