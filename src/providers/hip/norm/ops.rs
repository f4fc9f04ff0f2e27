//! The operators that normalise rows: layer, RMS, group and instance normalisation.

use crate::ops::fused::SkipNorm;
use crate::ops::layer_norm::LayerNorm;
use crate::ops::norm::GroupNorm;
use crate::ops::{OpError, normalize_axis};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::launch::Operand;
use super::super::{Entry, HipKernel, PlanBuilder};
use super::{Lie, Norm, Parameter, float, nhwc, permuted, wanted};

const MICROSOFT: &str = "com.microsoft";

pub(in super::super) const KERNELS: &[Entry] = &[
    Entry::new("GroupNormalization", group_norm),
    Entry::new("InstanceNormalization", group_norm),
    Entry::new("LayerNormalization", layer_norm),
    Entry::new("NhwcGroupNormalization", nhwc::build).domain("rukh"),
    Entry::new("PermutedLayerNormalization", permuted::build).domain("rukh"),
    Entry::new("RMSNormalization", layer_norm),
    Entry::new("SimplifiedLayerNormalization", layer_norm),
    Entry::new("SkipLayerNormalization", skip_norm).domain(MICROSOFT),
    Entry::new("SkipSimplifiedLayerNormalization", skip_norm).domain(MICROSOFT),
];

/// Element types of a node's operands.
struct Types {
    x: ElementType,
    parameters: ElementType,
    out: ElementType,
    stat: ElementType,
}

impl Types {
    fn of(node: &NodeContext<'_>) -> Result<Self, OpError> {
        let x = float(node, 0)?;
        let stat = (1..3).find_map(|i| node.output(i)).unwrap_or(ElementType::F32);
        let parameters = if node.has_input(2) { float(node, 2)? } else { float(node, 1)? };
        let out = node.output(0).filter(|ty| ty.is_float()).unwrap_or(x);
        Ok(Types { x, parameters, out, stat })
    }
}

fn layer_norm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    float(node, 1)?;
    Ok(Box::new(LayerNormKernel { op: *node.op::<LayerNorm>(), types: Types::of(node)? }))
}

struct LayerNormKernel {
    op: LayerNorm,
    types: Types,
}

impl HipKernel for LayerNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let axis = normalize_axis("axis", self.op.axis, x.shape.len())?;
        let (rows, along) = (x.shape[..axis].iter().product(), x.shape[axis..].iter().product());
        let mut norm = Norm::new(rows, along, self.op.epsilon, self.types.x, self.types.out);
        if wanted(outputs, 0).is_none() {
            norm.y.0 = plan.scratch(rows * along * self.types.out.size());
        }
        norm.rms = self.op.rms;
        norm.stat_type = self.types.stat;
        let parameter = |i: usize| {
            let given = inputs.get(i).copied().flatten()?;
            Some(Parameter::broadcast(Operand::Input(i), self.types.parameters, given.shape, x.shape, axis))
        };
        norm.scale = parameter(1).transpose()?;
        norm.shift = parameter(2).transpose()?;
        // RMS normalisation has no output for the mean.
        if self.op.rms {
            norm.deviation = wanted(outputs, 1);
        } else {
            (norm.mean, norm.deviation) = (wanted(outputs, 1), wanted(outputs, 2));
        }
        norm.launch(plan)
    }

    fn in_place(&self) -> &[usize] {
        if self.types.x == self.types.out { &[0] } else { &[] }
    }
}

fn skip_norm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(SkipNormKernel { op: *node.op::<SkipNorm>(), ty: float(node, 0)? }))
}

struct SkipNormKernel {
    op: SkipNorm,
    ty: ElementType,
}

impl HipKernel for SkipNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(skip)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let along = x.shape.last().copied().unwrap_or(1);
        let rows = x.shape.iter().product::<usize>() / along.max(1);
        let skip_rows = skip.shape.iter().product::<usize>() / along.max(1);
        let mut norm = Norm::new(rows, along, self.op.epsilon, self.ty, self.ty);
        if wanted(outputs, 0).is_none() {
            norm.y.0 = plan.scratch(rows * along * self.ty.size());
        }
        norm.rms = self.op.rms;
        norm.skip = Some((Operand::Input(1), skip_rows.max(1)));
        let given = |i: usize| inputs.get(i).copied().flatten().map(|_| Operand::Input(i));
        let parameter = |i: usize| given(i).map(|at| Parameter::new(at, self.ty, Lie::PerElement));
        norm.scale = parameter(2);
        if self.op.rms {
            norm.bias = given(3);
        } else {
            (norm.shift, norm.bias) = (parameter(3), given(4));
        }
        (norm.mean, norm.deviation) = (wanted(outputs, 1), wanted(outputs, 2));
        norm.sum = wanted(outputs, 3);
        norm.launch(plan)
    }
}

fn group_norm(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(GroupNormKernel { op: *node.op::<GroupNorm>(), ty: float(node, 0)? }))
}

struct GroupNormKernel {
    op: GroupNorm,
    ty: ElementType,
}

impl HipKernel for GroupNormKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let Some([batch, channels, space @ ..]) = inputs[0].map(|x| x.shape) else { return Ok(()) };
        let inner: usize = space.iter().product();
        let groups = self.op.groups.unwrap_or(*channels).max(1);
        let in_group = channels / groups;
        let mut norm = Norm::new(batch * groups, in_group * inner, self.op.epsilon, self.ty, self.ty);
        norm.scale = Some(Parameter::new(Operand::Input(1), self.ty, Lie::ByGroup));
        norm.shift = Some(Parameter::new(Operand::Input(2), self.ty, Lie::ByGroup));
        norm.by_group = match self.op.scale_by_group {
            true => (in_group * inner, groups, 1),
            false => (inner, groups, in_group),
        };
        norm.launch(plan)
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}
