//! Reductions over any axes, for the Reduce operators and for what is built on them.

mod layout;
mod ops;
mod params;
#[cfg(test)]
mod tests;

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::PlanBuilder;
use super::launch::{COUNTERS, GROUP, KernelName, Operand};
use super::map::Class;
use super::params::{Axes, Divider, MANY_GROUPS, power_of_two};
use params::ReduceParams;

pub(super) use layout::Layout;
pub(super) use ops::KERNELS;
pub(super) use params::{Finish, Op};

/// A reduction of a tensor.
pub(super) struct Reduction<'a> {
    /// The type that is computed in.
    pub(super) class: Class,
    pub(super) op: Op,
    pub(super) finish: Finish,
    /// The exponent of SumPower.
    pub(super) power: f64,
    /// What Plus adds.
    pub(super) added: i64,
    pub(super) layout: &'a Layout,
    pub(super) from: (Operand, ElementType),
    /// Subtracted from each element first: a value for each output, of the class's own type.
    pub(super) center: Option<Operand>,
    pub(super) to: (Operand, ElementType),
}

/// Elements of a pack, as `PACK` in the kernel.
const PACK: usize = 4;
/// Bytes of a unit, and its elements at most.
const UNIT_BYTES: usize = 16;
const UNIT: usize = 8;

/// Rows that a work item takes without a split, as to put parts together takes as long as many of them; and those that
/// it takes of a part. Measured on an H200.
const ALONE: usize = 32;
const PIECE: usize = 8;

/// Workgroups of light reductions for each processor, which has room for five of them on NVIDIA.
const LIGHT_GROUPS: usize = 4;

#[derive(Clone, Copy)]
enum Kernel {
    Rows,
    Columns,
}

fn kernel(class: Class, kernel: Kernel, is_light: bool) -> KernelName {
    if is_light {
        let name = [c"reduce_runs", c"reduce_strips"][kernel as usize];
        return KernelName { family: "reduce_light", name };
    }
    let (family, names) = match class {
        Class::F32 => ("reduce_f32", [c"reduce_rows_f32", c"reduce_columns_f32"]),
        Class::F64 => ("reduce_f64", [c"reduce_rows_f64", c"reduce_columns_f64"]),
        Class::I64 => ("reduce_i64", [c"reduce_rows_i64", c"reduce_columns_i64"]),
        Class::U64 => ("reduce_u64", [c"reduce_rows_u64", c"reduce_columns_u64"]),
    };
    KernelName { family, name: names[kernel as usize] }
}

impl Reduction<'_> {
    /// Appends the launch.
    pub(super) fn launch(&self, plan: &mut PlanBuilder<'_>) -> Result<(), OpError> {
        let layout = self.layout;
        let mut params = ReduceParams::zeroed();
        params.outputs = layout.outputs as u64;
        params.count = layout.count as u64;
        params.divisor = layout.count as f64;
        params.power = self.power;
        params.added = self.added;
        params.neutral = self.neutral();
        params.ty = self.from.1 as u32;
        params.out_type = self.to.1 as u32;
        params.op = self.op as u32;
        params.finish = self.finish as u32;
        params.kept = Axes::new(&layout.kept)?;
        params.reduced = Axes::new(&layout.reduced)?;
        let (first, groups, pieces) = match layout.row {
            None => {
                let team = self.team();
                params.team = team as u32;
                let run = layout.reduced.last().map_or(1, |l| l.0);
                params.whole_packs = run.is_multiple_of(PACK) as u32;
                let pieces = if team == GROUP as usize { layout.count.div_ceil(16 * team) } else { 1 };
                (Kernel::Rows, layout.outputs.div_ceil(GROUP as usize / team), pieces)
            }
            Some(row) => {
                let (lanes, tiles) = self.side_by_side(row, plan.provider.unit().compute_units);
                params.team = lanes as u32;
                params.row = row as u64;
                params.tiles = Divider::new(tiles);
                let items = GROUP as usize / lanes;
                (Kernel::Columns, layout.outputs / row.max(1) * tiles, self.pieces(items))
            }
        };
        // Light ones all have room at the same time: a few that had to wait would take as long again as all the others.
        let many = match self.is_light() {
            true => MANY_GROUPS.min(LIGHT_GROUPS * plan.provider.unit().compute_units),
            false => MANY_GROUPS,
        };
        let wanted = (many / groups.max(1)).clamp(1, pieces.max(1));
        // Whole units, so that those of every part start aligned.
        let chunk = layout.count.div_ceil(wanted).next_multiple_of(UNIT).max(UNIT);
        let splits = layout.count.div_ceil(chunk).max(1);
        params.chunk = chunk as u64;
        params.splits = splits as u32;
        let out = (offset_of!(ReduceParams, out), self.to.0);
        let mut addresses = vec![(offset_of!(ReduceParams, input), self.from.0), out];
        if let Some(center) = self.center {
            addresses.push((offset_of!(ReduceParams, center), center));
        }
        if splits > 1 {
            let size = if self.class == Class::F32 { 4 } else { 8 };
            let partials = plan.scratch(splits * layout.outputs * 2 * size);
            addresses.push((offset_of!(ReduceParams, partials), partials));
            // Split outputs are of fewer workgroups than there are words.
            const { assert!(MANY_GROUPS <= COUNTERS) };
            addresses.push((offset_of!(ReduceParams, arrived), Operand::Counters));
        }
        plan.launch(kernel(self.class, first, self.is_light()), [groups, splits, 1], &params, &addresses)
    }

    /// Whether the kernels of `kernels/include/rukh/reduce_light.h` take it, whatever its address.
    fn is_light(&self) -> bool {
        let Layout { ref reduced, row, count, .. } = *self.layout;
        let short = |ty| matches!(ty, ElementType::F32 | ElementType::F16 | ElementType::BF16);
        let dense = match row {
            None => {
                matches!(reduced[..], [] | [(_, 1)])
                    && (count * self.from.1.size()).is_multiple_of(UNIT_BYTES)
            }
            Some(row) => reduced.len() == 1 && row.is_multiple_of(PACK) && count < 1 << 30,
        };
        dense
            && self.class == Class::F32
            && self.center.is_none()
            && short(self.from.1)
            && short(self.to.1)
            && matches!(self.op, Op::Sum | Op::SumAbs | Op::SumSquare | Op::Max | Op::Min)
            && matches!(self.finish, Finish::Plain | Finish::Mean | Finish::Root)
    }

    /// Parts of the reduced elements of a column, of which a workgroup takes so many at a time.
    fn pieces(&self, at_a_time: usize) -> usize {
        let count = self.layout.count;
        if count <= ALONE * at_a_time { 1 } else { count.div_ceil(PIECE * at_a_time) }
    }

    /// Packs of columns of a workgroup, and workgroups of all columns: fewer packs than a wave has while work items
    /// would take row after row and processors have nothing to do, down to what a cache line is made of.
    fn side_by_side(&self, row: usize, compute_units: usize) -> (usize, usize) {
        const LEAST: usize = 8;
        let (layout, most) = (self.layout, GROUP as usize);
        let side = (most / power_of_two(layout.count, most)).max(32);
        let mut lanes = power_of_two(row.div_ceil(PACK), side);
        let groups = |lanes: usize| layout.outputs / row.max(1) * row.div_ceil(lanes * PACK);
        let workgroups = |lanes: usize| groups(lanes) * self.pieces(most / lanes);
        while lanes > LEAST && layout.count > most / lanes && workgroups(lanes) < compute_units {
            lanes /= 2;
        }
        (lanes, row.div_ceil(lanes * PACK))
    }

    /// Work items for an output of the rows kernel: 64 elements each, or 128 bytes of light ones, fewer while that leaves a
    /// large device idle.
    fn team(&self) -> usize {
        let (outputs, count, most) = (self.layout.outputs, self.layout.count, GROUP as usize);
        let each = if self.is_light() { 128 / self.from.1.size() } else { 64 };
        let mut team = power_of_two(count.div_ceil(each), most);
        while outputs * team < MANY_GROUPS * most && team < power_of_two(count.div_ceil(PACK), most) {
            team *= 2;
        }
        team
    }

    /// The bits of what changes nothing when it is put together with an element.
    fn neutral(&self) -> u64 {
        let (class, ty) = (self.class, self.from.1);
        let limit = |high: bool| match class {
            Class::F32 | Class::F64 => class.bits(if high { f64::INFINITY } else { f64::NEG_INFINITY }),
            _ => integer_limit(ty, high) as u64,
        };
        match self.op {
            Op::Sum | Op::SumAbs | Op::SumSquare | Op::SumPower => 0,
            Op::Prod => class.bits(1.0),
            Op::Max | Op::LogSumExp => limit(false),
            Op::Min | Op::MinMax => limit(true),
        }
    }
}

/// The smallest or largest value of an integer type.
fn integer_limit(ty: ElementType, high: bool) -> i64 {
    let bits = 8 * ty.size() as u32;
    match (ty, ty.is_signed_integer(), high) {
        (ElementType::Bool, _, high) => high as i64,
        (_, true, true) => i64::MAX >> (64 - bits),
        (_, true, false) => i64::MIN >> (64 - bits),
        (_, false, true) => (u64::MAX >> (64 - bits)) as i64,
        (_, false, false) => 0,
    }
}
