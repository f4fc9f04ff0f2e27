//! Softmax, LogSoftmax and Hardmax.

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::softmax::{Normalizer, Softmax};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::launch::{GROUP, KernelName, Operand};
use super::map::Class;
use super::params::{Divider, MANY_GROUPS, power_of_two, row_team};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Hardmax", build), Entry::new("LogSoftmax", build), Entry::new("Softmax", build)];

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SoftmaxParams {
    input: u64,
    out: u64,
    partials: u64,
    rows: u64,
    along: u64,
    chunk: u64,
    inner: u64,
    ty: u32,
    out_type: u32,
    mode: u32,
    team: u32,
    splits: u32,
    tiles: Divider,
    pack: u32,
    unused: u32,
}

const _: () = assert!(size_of::<SoftmaxParams>() == 96);

/// Elements of a pack, as in the kernel.
const PACK: usize = 4;
/// Elements of a row that a work item keeps.
const KEPT: usize = 32;

#[derive(Clone, Copy)]
enum Kernel {
    Rows,
    Parts,
    Apply,
    Columns,
    Hard,
}

fn kernel(class: Class, kernel: Kernel) -> KernelName {
    let (family, names) = match class {
        Class::F64 => (
            "softmax_f64",
            [
                c"softmax_rows_f64",
                c"softmax_parts_f64",
                c"softmax_apply_f64",
                c"softmax_columns_f64",
                c"hardmax_lines_f64",
            ],
        ),
        _ => (
            "softmax_f32",
            [
                c"softmax_rows_f32",
                c"softmax_parts_f32",
                c"softmax_apply_f32",
                c"softmax_columns_f32",
                c"hardmax_lines_f32",
            ],
        ),
    };
    KernelName { family, name: names[kernel as usize] }
}

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| ty.is_float()).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(SoftmaxKernel { op: *node.op::<Softmax>(), ty }))
}

struct SoftmaxKernel {
    op: Softmax,
    ty: ElementType,
}

impl HipKernel for SoftmaxKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(Some(_))) = (inputs[0], outputs.first()) else { return Ok(()) };
        let (outer, along, inner) = self.op.split(x.shape)?;
        let (from, to) = ((Operand::Input(0), self.ty), (Operand::Output(0), self.ty));
        softmax(plan, self.op.normalizer, [outer, along, inner], from, to)
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Normalises the middle dimension of `[outer, along, inner]`.
pub(super) fn softmax(
    plan: &mut PlanBuilder<'_>,
    normalizer: Normalizer,
    [outer, along, inner]: [usize; 3],
    from: (Operand, ElementType),
    to: (Operand, ElementType),
) -> Result<(), OpError> {
    if outer * along * inner == 0 {
        return Ok(());
    }
    let class = if from.1 == ElementType::F64 { Class::F64 } else { Class::F32 };
    let mut params = SoftmaxParams::zeroed();
    params.rows = outer as u64;
    params.along = along as u64;
    params.inner = inner as u64;
    params.ty = from.1 as u32;
    params.out_type = to.1 as u32;
    params.mode = match normalizer {
        Normalizer::Softmax => 0,
        Normalizer::LogSoftmax => 1,
        Normalizer::Hardmax => 2,
    };
    let mut addresses =
        vec![(offset_of!(SoftmaxParams, input), from.0), (offset_of!(SoftmaxParams, out), to.0)];
    let most = GROUP as usize;
    if inner == 1 && along <= most * KEPT {
        params.pack = row_pack([from.1, to.1]);
        let team = row_team(outer, along, params.pack as usize, most);
        params.team = team as u32;
        let groups = outer.div_ceil(most / team);
        return plan.launch(kernel(class, Kernel::Rows), [groups, 1, 1], &params, &addresses);
    }
    if normalizer == Normalizer::Hardmax {
        return plan.launch(kernel(class, Kernel::Hard), [outer * inner, 1, 1], &params, &addresses);
    }
    if inner > 1 {
        let side = (most / power_of_two(along, most)).max(32);
        let lanes = power_of_two(inner.div_ceil(PACK), side);
        let tiles = inner.div_ceil(lanes * PACK);
        params.team = lanes as u32;
        params.tiles = Divider::new(tiles);
        return plan.launch(kernel(class, Kernel::Columns), [outer * tiles, 1, 1], &params, &addresses);
    }
    let wanted = (MANY_GROUPS / outer).clamp(1, along.div_ceil(2048));
    let chunk = along.div_ceil(wanted).next_multiple_of(most * PACK);
    let splits = along.div_ceil(chunk);
    params.chunk = chunk as u64;
    params.splits = splits as u32;
    let partials = plan.scratch(outer * splits * 2 * size_of::<f64>());
    addresses.push((offset_of!(SoftmaxParams, partials), partials));
    plan.launch(kernel(class, Kernel::Parts), [outer * splits, 1, 1], &params, &addresses)?;
    plan.launch(kernel(class, Kernel::Apply), [outer * splits, 1, 1], &params, &addresses)
}

/// Elements of a pack for operands of these types, as `rows.h` wants.
pub(super) fn row_pack(types: impl IntoIterator<Item = ElementType>) -> u32 {
    let smallest = types.into_iter().map(ElementType::size).min();
    smallest.map_or(4, |size| 16 / size as u32)
}
