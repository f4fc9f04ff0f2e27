//! Resize and Upsample. Nearest neighbours are a copy; interpolation takes up to three axes a launch.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::resize::{Axis, Mode, Resize};
use crate::providers::resample::{Taps, geometry, interpolation, is_identity, nearest};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::copy::{AxisMap, MappedCopy, strides_of};
use super::super::elements::{element_size, shape_of};
use super::super::fill::{Fill, groups};
use super::super::launch::Operand;
use super::super::params::{Divider, divider};
use super::super::{HipKernel, PlanBuilder};
use super::{is_wide, name};

const MAX_RANK: usize = 8;
/// Axes that one launch interpolates.
const MAX_ACTIVE: usize = 3;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ResizeAxis {
    stride: u64,
    output: Divider,
    taps: u32,
    table: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ResizeAxis>() == 32);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ResizeParams {
    to: u64,
    from: u64,
    positions: u64,
    weights: u64,
    count: u64,
    rank: u32,
    from_type: u32,
    to_type: u32,
    extrapolation: f32,
    axes: [ResizeAxis; MAX_RANK],
}

const _: () = assert!(size_of::<ResizeParams>() == 312);

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = node.op::<Resize>().clone();
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    if op.mode == Mode::Nearest {
        let size = element_size(node, 0)?;
        let fill = Fill::of_number(op.extrapolation, ty).unwrap_or_default();
        return Ok(Box::new(Nearest { op, fill, size }));
    }
    let wide = is_wide(ty).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(Interpolation { op, ty, wide }))
}

struct Nearest {
    op: Resize,
    /// The extrapolation value.
    fill: Fill,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for Nearest {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let map = |axis: &Axis| {
            if is_identity(axis) {
                return AxisMap::same(axis.length);
            }
            AxisMap::Listed(nearest(&self.op, axis).into_iter().map(|i| i as i32).collect())
        };
        let maps: Vec<AxisMap> = geometry(&self.op, shape, inputs)?.iter().map(map).collect();
        MappedCopy::new(shape, &maps, self.size).plan(plan, self.fill, None)
    }
}

struct Interpolation {
    op: Resize,
    ty: ElementType,
    /// Whether sums are computed in f64.
    wide: bool,
}

impl HipKernel for Interpolation {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let mut shape = shape_of(inputs, 0)?.to_vec();
        let axes = geometry(&self.op, &shape, inputs)?;
        let mut active: Vec<usize> = (0..axes.len()).filter(|&k| !is_identity(&axes[k])).collect();
        // Those that shrink first, so that later launches have less to do.
        active.sort_by(|&a, &b| axes[a].scale.total_cmp(&axes[b].scale));
        let launches = active.len().div_ceil(MAX_ACTIVE).max(1);
        let middle = if self.wide { ElementType::F64 } else { ElementType::F32 };
        let mut from = (Operand::Input(0), self.ty);
        for i in 0..launches {
            let end = active.len().min((i + 1) * MAX_ACTIVE);
            let now = &active[i * MAX_ACTIVE..end];
            let mut wanted = shape.clone();
            now.iter().for_each(|&k| wanted[k] = axes[k].output);
            let to = if i + 1 == launches {
                (Operand::Output(0), self.ty)
            } else {
                (plan.scratch(wanted.iter().product::<usize>() * middle.size()), middle)
            };
            self.launch(plan, &axes, now, &shape, &wanted, from, to)?;
            (shape, from) = (wanted, to);
        }
        Ok(())
    }
}

impl Interpolation {
    /// Appends a launch that makes `wanted` of `shape`, which differ in the active axes.
    #[allow(clippy::too_many_arguments)]
    fn launch(
        &self,
        plan: &mut PlanBuilder<'_>,
        axes: &[Axis],
        active: &[usize],
        shape: &[usize],
        wanted: &[usize],
        from: (Operand, ElementType),
        to: (Operand, ElementType),
    ) -> Result<(), OpError> {
        let count: usize = wanted.iter().product();
        let mut params = ResizeParams {
            count: count as u64,
            from_type: from.1 as u32,
            to_type: to.1 as u32,
            extrapolation: self.op.extrapolation,
            ..ResizeParams::zeroed()
        };
        let (mut positions, mut weights): (Vec<i32>, Vec<f64>) = (Vec::new(), Vec::new());
        let mut rank = 0;
        let mut last_active = true;
        for (k, stride) in strides_of(shape).into_iter().enumerate() {
            let is_active = active.contains(&k);
            if !is_active && !last_active {
                // Joined with the axis before, which stays as it is too.
                let before = &mut params.axes[rank - 1];
                before.output = divider(before.output.divisor as usize * wanted[k])?;
                before.stride = stride as u64;
                continue;
            }
            if rank == MAX_RANK {
                return Err(OpError::Unsupported(format!("more than {MAX_RANK} axes to resize on a GPU")));
            }
            let axis = &mut params.axes[rank];
            (axis.stride, axis.output) = (stride as u64, divider(wanted[k])?);
            if is_active {
                let taps = interpolation(&self.op, &axes[k]);
                (axis.taps, axis.table) = (taps.count as u32, positions.len() as u32);
                append(&taps, &mut positions, &mut weights);
            }
            rank += 1;
            last_active = is_active;
        }
        params.rank = rank as u32;
        let mut addresses =
            vec![(offset_of!(ResizeParams, to), to.0), (offset_of!(ResizeParams, from), from.0)];
        if !positions.is_empty() {
            addresses.push((offset_of!(ResizeParams, positions), plan.table(&positions)));
            let table = if self.wide {
                plan.table(&weights)
            } else {
                plan.table(&weights.iter().map(|&w| w as f32).collect::<Vec<_>>())
            };
            addresses.push((offset_of!(ResizeParams, weights), table));
        }
        plan.launch(name(self.wide, c"resize_f32", c"resize_f64"), groups(count), &params, &addresses)
    }
}

/// Adds an axis's taps to the tables; positions whose value is the extrapolation value become −1.
fn append(taps: &Taps, positions: &mut Vec<i32>, weights: &mut Vec<f64>) {
    for (of_one, &outside) in taps.positions.chunks_exact(taps.count).zip(&taps.outside) {
        positions.extend(of_one.iter().map(|&p| if outside { -1 } else { p as i32 }));
    }
    weights.extend_from_slice(&taps.weights);
}
