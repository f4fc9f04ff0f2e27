//! The Reduce operators, and the poolings over whole planes, which are reductions too.

use crate::ops::OpError;
use crate::ops::pool::{GlobalPool, Reduction as Pooling};
use crate::ops::reduce::{Axes, Reduce, Reduction as Kind, SumPlus};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::map::Class;
use super::super::{Entry, HipKernel, PlanBuilder};
use super::{Finish, Layout, Op, Reduction};

pub(in super::super) const KERNELS: &[Entry] = &[
    Entry::new("GlobalAveragePool", global_pool),
    Entry::new("GlobalLpPool", global_pool),
    Entry::new("GlobalMaxPool", global_pool),
    Entry::new("ReduceL1", reduce),
    Entry::new("ReduceL2", reduce),
    Entry::new("ReduceLogSum", reduce),
    Entry::new("ReduceLogSumExp", reduce),
    Entry::new("ReduceMax", reduce),
    Entry::new("ReduceMean", reduce),
    Entry::new("ReduceMin", reduce),
    Entry::new("ReduceProd", reduce),
    Entry::new("ReduceSum", reduce),
    Entry::new("ReduceSumSquare", reduce),
    Entry::new("ReduceSum", sum_plus).domain("rukh"),
];

/// A reduction whose axes come from the operator.
struct ReduceKernel {
    axes: Over,
    class: Class,
    op: Op,
    finish: Finish,
    power: f64,
    added: i64,
    ty: ElementType,
    to: ElementType,
}

enum Over {
    Given(Reduce),
    /// All axes behind batch and channels.
    Space,
}

fn reduce(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let mut class = Class::of(ty).ok_or_else(|| node.no_kernel())?;
    let op = node.op::<Reduce>();
    let (step, finish) = match op.reduction {
        Kind::L1 => (Op::SumAbs, Finish::Plain),
        Kind::L2 => (Op::SumSquare, Finish::Root),
        Kind::LogSum => (Op::Sum, Finish::Log),
        Kind::LogSumExp => (Op::LogSumExp, Finish::LogExp),
        Kind::Max => (Op::Max, Finish::Plain),
        Kind::Mean => (Op::Sum, Finish::Mean),
        Kind::Min => (Op::Min, Finish::Plain),
        Kind::Prod => (Op::Prod, Finish::Plain),
        Kind::Sum => (Op::Sum, Finish::Plain),
        Kind::SumSquare => (Op::SumSquare, Finish::Plain),
    };
    if ty.is_unsigned_integer() {
        class = Class::U64;
    }
    if step == Op::LogSumExp && !ty.is_float() {
        class = Class::F64;
    }
    let axes = Over::Given(op.clone());
    Ok(Box::new(ReduceKernel { axes, class, op: step, finish, power: 0.0, added: 0, ty, to: ty }))
}

fn sum_plus(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let SumPlus { ref reduce, added, to } = *node.op::<SumPlus>();
    // The sum would have to wrap around before it gets wider.
    if to.size() > ty.size() {
        return Err(node.no_kernel());
    }
    let (axes, class) = (Over::Given(reduce.clone()), Class::I64);
    Ok(Box::new(ReduceKernel { axes, class, op: Op::Sum, finish: Finish::Plus, power: 0.0, added, ty, to }))
}

fn global_pool(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    let class = Class::of(ty).ok_or_else(|| node.no_kernel())?;
    let pooling = node.op::<GlobalPool>().reduction;
    let (op, finish, power) = pooling_steps(pooling);
    Ok(Box::new(ReduceKernel { axes: Over::Space, class, op, finish, power, added: 0, ty, to: ty }))
}

/// A pooling's way to put the elements of a window together.
fn pooling_steps(pooling: Pooling) -> (Op, Finish, f64) {
    match pooling {
        Pooling::Max => (Op::Max, Finish::Plain, 0.0),
        Pooling::Average { .. } => (Op::Sum, Finish::Mean, 0.0),
        Pooling::Norm { p: 1.0 } => (Op::SumAbs, Finish::Plain, 0.0),
        Pooling::Norm { p: 2.0 } => (Op::SumSquare, Finish::Root, 0.0),
        Pooling::Norm { p } => (Op::SumPower, Finish::RootP, p as f64),
    }
}

impl HipKernel for ReduceKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(Some(_))) = (inputs[0], outputs.first()) else { return Ok(()) };
        let reduced = match &self.axes {
            Over::Space => (0..x.shape.len()).map(|d| d >= 2).collect(),
            Over::Given(op) => op.reduced(&given_axes(op, inputs)?, x.shape.len())?,
        };
        let layout = Layout::new(x.shape, &reduced);
        let reduction = Reduction {
            class: self.class,
            op: self.op,
            finish: self.finish,
            power: self.power,
            added: self.added,
            layout: &layout,
            from: (Operand::Input(0), self.ty),
            center: None,
            to: (Operand::Output(0), self.to),
        };
        reduction.launch(plan)
    }
}

fn given_axes(op: &Reduce, inputs: &[Option<Argument<'_>>]) -> Result<Vec<i64>, OpError> {
    match (&op.axes, inputs.get(1).copied().flatten()) {
        (Axes::Attribute(axes), _) => Ok(axes.clone().unwrap_or_default()),
        (Axes::Input, None) => Ok(Vec::new()),
        (Axes::Input, Some(axes)) => match axes.value {
            Some(value) => Ok(value.slice::<i64>().to_vec()),
            None => Err(OpError::Unsupported("the axes of a reduction are not known".into())),
        },
    }
}
