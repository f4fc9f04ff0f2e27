//! Normalisations over axes that are no rows, made of reductions and elementwise programs.

use crate::ops::norm::BatchNorm;
use crate::ops::norm_axes::{LpNorm, MeanVariance};
use crate::ops::{OpError, normalize_axis};
use crate::providers::{Argument, NodeContext};
use crate::tensor::{ElementType, Tensor, bf16, f16};

use super::super::launch::Operand;
use super::super::map::{Class, MapOp, MapTensor, Program};
use super::super::reduce::{Finish, Layout, Op, Reduction};
use super::super::{Entry, HipKernel, PlanBuilder};

pub(in super::super) const KERNELS: &[Entry] = &[
    Entry::new("BatchNormalization", batch_norm),
    Entry::new("LpNormalization", lp_norm),
    Entry::new("MeanVarianceNormalization", mean_variance),
];

/// The float type of an input, the class that computes with it, and the class's own type.
#[derive(Clone, Copy)]
struct Float {
    ty: ElementType,
    class: Class,
    own: ElementType,
}

impl Float {
    fn of(node: &NodeContext<'_>, i: usize) -> Result<Self, OpError> {
        let ty = node.input(i).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
        Ok(match ty {
            ElementType::F64 => Float { ty, class: Class::F64, own: ty },
            _ => Float { ty, class: Class::F32, own: ElementType::F32 },
        })
    }

    /// Temporary numbers of the class's type.
    fn scratch(self, plan: &mut PlanBuilder<'_>, shape: &[usize]) -> MapTensor {
        let bytes = shape.iter().product::<usize>() * self.own.size();
        MapTensor::new(plan.scratch(bytes), self.own, shape)
    }

    /// A reduction of input 0, of a given shape, into temporary numbers.
    fn reduce(
        self,
        plan: &mut PlanBuilder<'_>,
        (shape, reduced): (&[usize], &[bool]),
        (op, finish): (Op, Finish),
        center: Option<Operand>,
    ) -> Result<MapTensor, OpError> {
        let layout = Layout::new(shape, reduced);
        let kept: Vec<usize> = shape.iter().zip(reduced).map(|(&d, &r)| if r { 1 } else { d }).collect();
        let to = self.scratch(plan, &kept);
        let reduction = Reduction {
            class: self.class,
            op,
            finish,
            power: 0.0,
            added: 0,
            layout: &layout,
            from: (Operand::Input(0), self.ty),
            center,
            to: (to.operand, to.ty),
        };
        reduction.launch(plan)?;
        Ok(to)
    }

    /// Mean and mean squared deviation.
    fn moments(
        self,
        plan: &mut PlanBuilder<'_>,
        over: (&[usize], &[bool]),
    ) -> Result<[MapTensor; 2], OpError> {
        let mean = self.reduce(plan, over, (Op::Sum, Finish::Mean), None)?;
        let variance = self.reduce(plan, over, (Op::SumSquare, Finish::Mean), Some(mean.operand))?;
        Ok([mean, variance])
    }
}

fn batch_norm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let float = Float::of(node, 0)?;
    let mut types = [float.ty; 5];
    for (i, ty) in types.iter_mut().enumerate().skip(1) {
        *ty = Float::of(node, i)?.ty;
    }
    let op = *node.op::<BatchNorm>();
    let outputs = (0..5).map(|i| node.output(i).unwrap_or(float.ty)).collect();
    let folded = if op.training { None } else { fold(node, op.epsilon) };
    Ok(Box::new(BatchNormKernel { op, float, types, outputs, folded }))
}

struct BatchNormKernel {
    op: BatchNorm,
    float: Float,
    types: [ElementType; 5],
    outputs: Vec<ElementType>,
    /// Factor and offset of each channel, when the parameters are constants.
    folded: Option<[Vec<f64>; 2]>,
}

/// Factor and offset of each channel from constant parameters.
fn fold(node: &NodeContext<'_>, epsilon: f32) -> Option<[Vec<f64>; 2]> {
    let values = |i: usize| numbers(node.constant(i)?);
    let (scale, bias, mean, variance) = (values(1)?, values(2)?, values(3)?, values(4)?);
    let factors: Vec<f64> =
        scale.iter().zip(&variance).map(|(s, v)| s / (v + epsilon as f64).sqrt()).collect();
    let offsets = bias.iter().zip(&mean).zip(&factors).map(|((b, m), f)| b - m * f).collect();
    Some([factors, offsets])
}

fn numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let tensor = tensor.aligned().ok()?;
    let view = tensor.view();
    Some(match tensor.ty() {
        ElementType::F32 => view.slice::<f32>().iter().map(|&x| x as f64).collect(),
        ElementType::F64 => view.slice::<f64>().to_vec(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::BF16 => view.slice::<bf16>().iter().map(|x| x.to_f64()).collect(),
        _ => return None,
    })
}

impl HipKernel for BatchNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let behind = |from: usize| x.shape.get(from..).unwrap_or(&[]).iter().product::<usize>();
        let batch = x.shape.first().copied().unwrap_or(1);
        let (channels, inner) = match self.op.spatial {
            true => (x.shape.get(1).copied().unwrap_or(1), behind(2)),
            false => (behind(1), 1),
        };
        let (shape, per_channel) = ([batch, channels, inner], [channels, 1]);
        let given = |i: usize| MapTensor::new(Operand::Input(i), self.types[i], &per_channel);
        let wanted = |i: usize| outputs.get(i).copied().flatten().is_some();
        let (float, class) = (self.float, self.float.class);
        let [factor, offset] = if let Some(folded) = &self.folded {
            folded.each_ref().map(|numbers| {
                let table = match class {
                    Class::F64 => plan.table(numbers),
                    _ => plan.table(&numbers.iter().map(|&x| x as f32).collect::<Vec<_>>()),
                };
                MapTensor::new(table, float.own, &per_channel)
            })
        } else {
            let [mean, variance] = if self.op.training {
                let moments = float.moments(plan, (&shape, &[true, false, true]))?;
                let [mean, variance] =
                    moments.map(|moment| MapTensor::new(moment.operand, moment.ty, &per_channel));
                let momentum = self.op.momentum as f64;
                for (k, moment) in [&mean, &variance].into_iter().enumerate() {
                    let of = |output: usize| {
                        MapTensor::new(Operand::Output(output), self.outputs[output], &per_channel)
                    };
                    let moment = || MapTensor::new(moment.operand, moment.ty, &per_channel);
                    if wanted(1 + k) {
                        Program::new(class)
                            .input(MapOp::Load, 0)
                            .number(MapOp::Mul, momentum)
                            .number(MapOp::Save0, 0.0)
                            .input(MapOp::Load, 1)
                            .number(MapOp::Mul, 1.0 - momentum)
                            .saved(MapOp::Add)
                            .launch(plan, &of(1 + k), &[given(3 + k), moment()])?;
                    }
                    if wanted(3 + k) {
                        Program::new(class).input(MapOp::Load, 0).launch(plan, &of(3 + k), &[moment()])?;
                    }
                }
                [mean, variance]
            } else {
                [given(3), given(4)]
            };
            let (factor, offset) = (float.scratch(plan, &per_channel), float.scratch(plan, &per_channel));
            Program::new(class)
                .input(MapOp::Load, 0)
                .number(MapOp::Add, self.op.epsilon as f64)
                .number(MapOp::Sqrt, 0.0)
                .input(MapOp::ReverseDiv, 1)
                .launch(plan, &factor, &[variance, given(1)])?;
            let factors = MapTensor::new(factor.operand, factor.ty, &per_channel);
            Program::new(class)
                .input(MapOp::Load, 0)
                .input(MapOp::Mul, 1)
                .input(MapOp::ReverseSub, 2)
                .launch(plan, &offset, &[mean, factors, given(2)])?;
            [factor, offset]
        };
        if !wanted(0) {
            return Ok(());
        }
        let out = MapTensor::new(Operand::Output(0), float.ty, &shape);
        let x = MapTensor::new(Operand::Input(0), float.ty, &shape);
        Program::new(class).input(MapOp::Load, 0).input(MapOp::Mul, 1).input(MapOp::Add, 2).launch(
            plan,
            &out,
            &[x, factor, offset],
        )
    }

    fn in_place(&self) -> &[usize] {
        if self.op.training { &[] } else { &[0] }
    }
}

fn mean_variance(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(MeanVarianceKernel { op: node.op::<MeanVariance>().clone(), float: Float::of(node, 0)? }))
}

struct MeanVarianceKernel {
    op: MeanVariance,
    float: Float,
}

impl HipKernel for MeanVarianceKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        /// What the standard adds to the deviation.
        const EPSILON: f64 = 1e-9;
        let Some(x) = inputs[0] else { return Ok(()) };
        let reduced = self.op.reduced(x.shape.len())?;
        let [mean, variance] = self.float.moments(plan, (x.shape, &reduced))?;
        let out = MapTensor::new(Operand::Output(0), self.float.ty, x.shape);
        let x = MapTensor::new(Operand::Input(0), self.float.ty, x.shape);
        Program::new(self.float.class)
            .input(MapOp::Load, 2)
            .number(MapOp::Sqrt, 0.0)
            .number(MapOp::Add, EPSILON)
            .number(MapOp::Save0, 0.0)
            .input(MapOp::Load, 0)
            .input(MapOp::Sub, 1)
            .saved(MapOp::Div)
            .launch(plan, &out, &[x, mean, variance])
    }
}

fn lp_norm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(LpNormKernel { op: *node.op::<LpNorm>(), float: Float::of(node, 0)? }))
}

struct LpNormKernel {
    op: LpNorm,
    float: Float,
}

impl HipKernel for LpNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis("axis", self.op.axis, x.shape.len())?;
        let reduced: Vec<bool> = (0..x.shape.len()).map(|d| d == axis).collect();
        let how = if self.op.p == 1 { (Op::SumAbs, Finish::Plain) } else { (Op::SumSquare, Finish::Root) };
        let norm = self.float.reduce(plan, (x.shape, &reduced), how, None)?;
        let out = MapTensor::new(Operand::Output(0), self.float.ty, x.shape);
        let x = MapTensor::new(Operand::Input(0), self.float.ty, x.shape);
        // Where the norm is zero, so is the result.
        Program::new(self.float.class)
            .input(MapOp::Load, 0)
            .input(MapOp::Div, 1)
            .number(MapOp::Save0, 0.0)
            .input(MapOp::Load, 1)
            .number(MapOp::Select, 0.0)
            .launch(plan, &out, &[x, norm])
    }
}
