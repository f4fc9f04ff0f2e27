//! Pad and CenterCropPad.

use crate::ops::OpError;
use crate::ops::crop::CenterCropPad;
use crate::ops::pad::{AXES_INPUT, Pad, PadMode, amounts};
use crate::providers::ints::{required_ints, shape_input};
use crate::providers::{Argument, NodeContext};

use super::super::fill::Fill;
use super::super::{HipKernel, PlanBuilder};
use super::mapped::{AxisMap, MappedCopy, Rule};
use super::{element_size, shape_of};

pub(super) fn pad(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = node.op::<Pad>().clone();
    let fill = match (op.value, node.input(0)) {
        (Some(value), Some(ty)) if value != 0.0 => {
            Fill::of_number(value, ty).ok_or_else(|| node.no_kernel())?
        }
        _ => Fill::default(),
    };
    let fill_input = node.has_input(2).then_some(2);
    Ok(Box::new(PadKernel { op, fill, fill_input, size: element_size(node, 0)? }))
}

struct PadKernel {
    op: Pad,
    /// The constant of opsets before 11.
    fill: Fill,
    /// The input that has the constant.
    fill_input: Option<usize>,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for PadKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let pads = required_ints(&self.op.pads, inputs)?;
        let axes = shape_input(inputs, AXES_INPUT)?;
        let maps = amounts(&pads, axes.as_deref(), shape.len())?
            .into_iter()
            .zip(shape)
            .map(|((before, after), &n)| axis_map(self.op.mode, before, after, n))
            .collect::<Result<Vec<_>, _>>()?;
        MappedCopy::new(shape, &maps, self.size).plan(plan, self.fill, self.fill_input)
    }
}

fn axis_map(mode: PadMode, before: i64, after: i64, n: usize) -> Result<AxisMap, OpError> {
    if before == 0 && after == 0 {
        return Ok(AxisMap::same(n));
    }
    let output = (n as i64).saturating_add(before).saturating_add(after);
    let output = usize::try_from(output)
        .map_err(|_| OpError::Data(format!("pads {before} and {after} cut more than an axis of {n} has")))?;
    if n == 0 && output > 0 && mode != PadMode::Constant {
        return Err(OpError::Data(format!("an axis of length 0 has no element to pad with ({mode:?})")));
    }
    let rule = match mode {
        PadMode::Constant => Rule::Constant,
        PadMode::Edge => Rule::Edge,
        PadMode::Reflect => Rule::Reflect,
        PadMode::Wrap => Rule::Wrap,
    };
    Ok(AxisMap::Shifted { output, before, rule })
}

pub(super) fn centre(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(CentreKernel { op: node.op::<CenterCropPad>().clone(), size: element_size(node, 0)? }))
}

struct CentreKernel {
    op: CenterCropPad,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for CentreKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let sizes = shape_input(inputs, 1)?.unwrap_or_default();
        let mut maps: Vec<AxisMap> = shape.iter().map(|&n| AxisMap::same(n)).collect();
        for (axis, size) in self.op.axes(shape.len())?.into_iter().zip(sizes) {
            let n = shape[axis] as i64;
            // An odd difference leaves (or takes) one more at the end.
            let before = if size < n { -((n - size) / 2) } else { (size - n) / 2 };
            if size != n {
                let output = size.max(0) as usize;
                maps[axis] = AxisMap::Shifted { output, before, rule: Rule::Constant };
            }
        }
        MappedCopy::new(shape, &maps, self.size).plan(plan, Fill::default(), None)
    }
}
