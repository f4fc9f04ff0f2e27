//! Normalisations of rows: by mean and variance, or by the root mean square.

mod batch;
mod nhwc;
mod ops;
mod params;
mod permuted;
#[cfg(test)]
mod tests;

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::providers::NodeContext;
use crate::tensor::ElementType;

use super::PlanBuilder;
use super::launch::{GROUP, KernelName, Operand};
use super::params::{Axes, Divider, MANY_GROUPS, divider, row_team};
use super::softmax::row_pack;
use super::unit::Unit;
use params::{Lie, NormParams, ParameterParams};

pub(super) use batch::KERNELS as BATCH_KERNELS;
pub(super) use ops::KERNELS;

/// Elements of a row that a work item keeps: four groups of 8.
const KEPT: usize = 32;
/// Workgroups of `GROUP` work items for each processor of NVIDIA's where rows follow each other, twice what has room there: two
/// took 152 µs on an H200 for 537 MB of RMSNormalization, four 148, eight 149; one for each row 220.
const RESIDENT: usize = 4;
/// Elements that every pack divides.
const PACK: usize = 8;

/// The float type of an input.
fn float(node: &NodeContext<'_>, i: usize) -> Result<ElementType, OpError> {
    node.input(i).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())
}

/// The output with this number when it is wanted.
fn wanted(outputs: &[Option<&[usize]>], i: usize) -> Option<Operand> {
    outputs.get(i).copied().flatten().map(|_| Operand::Output(i))
}

/// A scale or shift and its place beside the rows.
struct Parameter {
    operand: Operand,
    ty: ElementType,
    lie: Lie,
    axes: Axes,
}

impl Parameter {
    fn new(operand: Operand, ty: ElementType, lie: Lie) -> Self {
        Parameter { operand, ty, lie, axes: Axes::default() }
    }

    /// A parameter of shape `given` beside an input of `shape`, of which all dimensions from `axis` on
    /// make a row.
    fn broadcast(
        operand: Operand,
        ty: ElementType,
        given: &[usize],
        shape: &[usize],
        axis: usize,
    ) -> Result<Self, OpError> {
        let (count, row): (usize, usize) = (given.iter().product(), shape[axis..].iter().product());
        if count == 1 {
            return Ok(Self::new(operand, ty, Lie::One));
        }
        // One row, whatever ones stand before its shape.
        if count == row && given.ends_with(&shape[axis..]) {
            return Ok(Self::new(operand, ty, Lie::PerElement));
        }
        let mut loops: Vec<(usize, usize)> = Vec::new();
        let mut stride = 1;
        for (back, &size) in shape.iter().rev().enumerate() {
            let own = given.len().checked_sub(back + 1).map_or(1, |d| given[d]);
            let step = if own == 1 { 0 } else { stride };
            stride *= own;
            match loops.last_mut() {
                // The dimension goes on where the one inside it ends.
                Some(last) if step == last.0 * last.1 => last.0 *= size,
                _ => loops.push((size, step)),
            }
        }
        loops.reverse();
        Ok(Parameter { operand, ty, lie: Lie::Any, axes: Axes::new(&loops)? })
    }

    fn params(&self) -> ParameterParams {
        ParameterParams { address: 0, ty: self.ty as u32, lie: self.lie as u32, axes: self.axes }
    }
}

/// A normalisation of `rows` rows of `along` elements.
struct Norm {
    rows: usize,
    along: usize,
    epsilon: f32,
    rms: bool,
    x: (Operand, ElementType),
    y: (Operand, ElementType),
    scale: Option<Parameter>,
    shift: Option<Parameter>,
    /// Added to x first: rows that repeat after so many, and one row for all.
    skip: Option<(Operand, usize)>,
    bias: Option<Operand>,
    /// A permutation of the rows, or of each so many, for the skip alone or (`true`) for x and the sum too.
    places: Option<(Operand, usize, bool)>,
    /// Where the sum goes, and the statistics.
    sum: Option<Operand>,
    mean: Option<Operand>,
    deviation: Option<Operand>,
    stat_type: ElementType,
    /// For parameters by group: elements that share one, groups, parameters of a group.
    by_group: (usize, usize, usize),
}

/// Work items of a row. A wave at most where that is enough, as waves of a team wait for each other; but of few rows
/// each is over sooner with a pack an item.
fn team(rows: usize, along: usize, pack: usize, unit: Unit) -> usize {
    let widest = if rows <= 2 * unit.compute_units { GROUP as usize / 2 } else { unit.wave };
    row_team(rows, along, pack, widest)
}

/// Work items of a workgroup for so many in all: a wave while there are processors without any, and at most half of
/// what there may be, as what is left at the end then is little.
fn workgroup(items: usize, unit: Unit) -> usize {
    let mut size = unit.wave;
    while size < GROUP as usize / 2 && items > 2 * unit.compute_units * size {
        size *= 2;
    }
    size
}

/// Workgroups of `block` work items that share so many tasks, so that each has the same number, or one less.
fn lasting(tasks: usize, block: usize, unit: Unit) -> usize {
    let most = (RESIDENT * unit.compute_units * GROUP as usize / block).max(1);
    tasks.div_ceil(tasks.div_ceil(most))
}

/// `norm(x + skip) · scale` by the root mean square of each row of x.
#[derive(Clone, Debug)]
pub(super) struct Rms {
    pub(super) epsilon: f32,
    pub(super) scale: Operand,
    /// It lies like x.
    pub(super) skip: Option<Operand>,
    /// Where x + skip is stored, lying like x.
    pub(super) sum: Option<Operand>,
}

/// Appends the RMS normalisation of rows of so many elements, from an operand to another.
pub(super) fn launch_rms(
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    [rows, along]: [usize; 2],
    before: &Rms,
    [x, y]: [Operand; 2],
) -> Result<(), OpError> {
    let mut norm = Norm::new(rows, along, before.epsilon, ty, ty);
    (norm.x.0, norm.y.0) = (x, y);
    norm.rms = true;
    norm.scale = Some(Parameter::new(before.scale, ty, Lie::PerElement));
    norm.skip = before.skip.map(|skip| (skip, rows.max(1)));
    norm.sum = before.sum;
    norm.launch(plan)
}

impl Norm {
    fn new(rows: usize, along: usize, epsilon: f32, ty: ElementType, out: ElementType) -> Self {
        Norm {
            rows,
            along,
            epsilon,
            rms: false,
            x: (Operand::Input(0), ty),
            y: (Operand::Output(0), out),
            scale: None,
            shift: None,
            skip: None,
            bias: None,
            places: None,
            sum: None,
            mean: None,
            deviation: None,
            stat_type: ElementType::F32,
            by_group: (1, 1, 1),
        }
    }

    fn launch(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let (rows, along) = (self.rows, self.along);
        if rows * along == 0 {
            return Ok(());
        }
        let mut params = NormParams::zeroed();
        let mut addresses =
            vec![(offset_of!(NormParams, x), self.x.0), (offset_of!(NormParams, y), self.y.0)];
        params.rows = rows as u64;
        params.along = along as u64;
        params.epsilon = self.epsilon as f64;
        params.ty = self.x.1 as u32;
        params.out_type = self.y.1 as u32;
        params.stat_type = self.stat_type as u32;
        params.rms = self.rms as u32;
        let (inner, groups, per_group) = self.by_group;
        params.inner = Divider::new(inner);
        params.groups = groups as u32;
        params.per_group = per_group as u32;
        if let Some(scale) = &self.scale {
            params.scale = scale.params();
            addresses.push((offset_of!(NormParams, scale.address), scale.operand));
        }
        if let Some(shift) = &self.shift {
            params.shift = shift.params();
            addresses.push((offset_of!(NormParams, shift.address), shift.operand));
        }
        if let Some((places, period, moved)) = self.places {
            (params.period, params.moved) = (divider(period)?, moved as u32);
            addresses.push((offset_of!(NormParams, places), places));
        }
        params.skip_rows = divider(self.skip.map_or(1, |(_, rows)| rows))?;
        for (at, operand) in [
            (offset_of!(NormParams, skip), self.skip.map(|(skip, _)| skip)),
            (offset_of!(NormParams, bias), self.bias),
            (offset_of!(NormParams, sum), self.sum),
            (offset_of!(NormParams, mean), self.mean),
            (offset_of!(NormParams, deviation), self.deviation),
        ] {
            addresses.extend(operand.map(|operand| (at, operand)));
        }
        let wide = self.x.1 == ElementType::F64;
        let name = |f32, f64| match wide {
            true => KernelName { family: "norm_f64", name: f64 },
            false => KernelName { family: "norm_f32", name: f32 },
        };
        let parameters = [&self.scale, &self.shift].into_iter().flatten().map(|p| p.ty);
        params.pack = row_pack(parameters.chain([self.x.1, self.y.1]));
        let most = GROUP as usize * KEPT;
        if along <= most {
            let unit = plan.provider.unit();
            let team = team(rows, along, params.pack as usize, unit);
            let teams = (workgroup(rows * team, unit) / team).max(1);
            let block = teams * team;
            (params.team, params.teams) = (team as u32, teams as u32);
            let mut groups = rows.div_ceil(teams);
            if unit.mma_sync && self.follow(&params) {
                groups = lasting(groups, block, unit);
            }
            params.step = (groups * teams) as u64;
            params.early = (groups * teams >= rows && self.has_constants(plan)).into();
            let kernel = name(c"norm_rows_f32", c"norm_rows_f64");
            return plan.launch_with(kernel, [groups, 1, 1], block as u32, 0, &params, &addresses);
        }
        let wanted = (MANY_GROUPS / rows).clamp(along.div_ceil(most), along.div_ceil(GROUP as usize * PACK));
        let chunk = along.div_ceil(wanted).next_multiple_of(PACK);
        let splits = along.div_ceil(chunk);
        params.chunk = chunk as u64;
        params.splits = splits as u32;
        let partials = plan.scratch(rows * splits * 2 * size_of::<f64>());
        addresses.push((offset_of!(NormParams, partials), partials));
        let grid = [rows * splits, 1, 1];
        plan.launch(name(c"norm_parts_f32", c"norm_parts_f64"), grid, &params, &addresses)?;
        plan.launch(name(c"norm_apply_f32", c"norm_apply_f64"), grid, &params, &addresses)
    }

    /// Whether all that the kernel reads besides rows are constants, which it may read before the kernels before have ended.
    fn has_constants(&self, plan: &PlanBuilder<'_>) -> bool {
        let mut parameters = [&self.scale, &self.shift].into_iter().flatten();
        self.places.is_none() && parameters.all(|parameter| plan.is_constant(parameter.operand))
    }

    /// Whether rows follow each other in a team, the next one read while one is normalised (`norm_many`): whole groups in
    /// four loads of a work item, all of one type of 32 or 16 bits, with nothing added.
    fn follow(&self, params: &NormParams) -> bool {
        let ty = self.x.1;
        let plain = |p: &Option<Parameter>| p.as_ref().is_none_or(|p| p.lie == Lie::PerElement && p.ty == ty);
        let group = params.team as usize * PACK;
        let most = (params.team * 4 * params.pack) as usize;
        ty != ElementType::F64
            && self.y.1 == ty
            && plain(&self.scale)
            && plain(&self.shift)
            && self.skip.is_none()
            && self.bias.is_none()
            && self.sum.is_none()
            && self.places.is_none()
            && self.along.is_multiple_of(group)
            && self.along <= most
    }
}
