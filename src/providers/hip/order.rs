//! TopK, ArgMax, ArgMin, and sorting: launches of `kernels/order.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::along::ArgExtreme;
use crate::ops::movement::axis_of;
use crate::ops::topk::TopK;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::elements::shape_of;
use super::fill::groups;
use super::launch::{KernelName, Operand};
use super::params::{Divider, divider, is_number};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("ArgMax", extreme), Entry::new("ArgMin", extreme), Entry::new("TopK", top)];

/// Elements that one workgroup sorts in its memory.
const BLOCK: usize = 2048;
/// The most that `order_select` keeps of a row.
const MOST_SELECTED: usize = 1024;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct OrderParams {
    from: u64,
    values: u64,
    indices: u64,
    keys: u64,
    order: u64,
    rows: u64,
    inner: Divider,
    length: u32,
    padded: u32,
    k: u32,
    ty: u32,
    size: u32,
    descending: u32,
    merged: u32,
    distance: u32,
    pieces: u32,
    last: u32,
    unused: u32,
}

const _: () = assert!(size_of::<OrderParams>() == 104);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ExtremeParams {
    to: u64,
    from: u64,
    ranks: u64,
    indices: u64,
    rows: u64,
    inner: Divider,
    length: u32,
    ty: u32,
    maximum: u32,
    last: u32,
    floating: u32,
    pieces: u32,
    finish: u32,
}

const _: () = assert!(size_of::<ExtremeParams>() == 80);

fn name(name: &'static std::ffi::CStr) -> KernelName {
    KernelName { family: "order", name }
}

/// Into how many pieces rows are cut so that a workgroup for each fills a device.
fn pieces(rows: usize, length: usize) -> usize {
    /// Workgroups enough for any device.
    const WANTED: usize = 256;
    /// A piece must be worth a workgroup.
    const SHORTEST: usize = 8192;
    (WANTED / rows.max(1)).min(length / SHORTEST).max(1)
}

/// A length that the kernels can number.
fn numbered(length: usize) -> Result<u32, OpError> {
    u32::try_from(length).ok().filter(|&n| n <= 1 << 31).ok_or_else(|| {
        OpError::Unsupported(format!("an axis of {length} elements; the GPU kernel takes {}", 1u32 << 31))
    })
}

/// A sort of numbers: their places in ascending order, and the numbers in that order.
pub(super) struct Sorted {
    /// A u64 for each place.
    pub(super) keys: Operand,
    /// A u32 for each place: where the number was.
    pub(super) order: Operand,
}

/// Appends the sort of `count` u64 numbers.
pub(super) fn plan_sort(
    plan: &mut PlanBuilder<'_>,
    numbers: Operand,
    count: usize,
) -> Result<Sorted, OpError> {
    let params = OrderParams {
        rows: 1,
        inner: divider(1)?,
        length: numbered(count)?,
        ty: ElementType::U64 as u32,
        size: 8,
        ..OrderParams::zeroed()
    };
    sort_rows(plan, params, numbers)
}

/// Appends the sort of the rows that `params` describes, through global memory.
fn sort_rows(plan: &mut PlanBuilder<'_>, mut params: OrderParams, from: Operand) -> Result<Sorted, OpError> {
    let padded = (params.length as usize).next_power_of_two().max(BLOCK);
    let total = params.rows as usize * padded;
    params.padded = padded as u32;
    let sorted = Sorted { keys: plan.scratch(total * 8), order: plan.scratch(total * 4) };
    let addresses = [
        (offset_of!(OrderParams, from), from),
        (offset_of!(OrderParams, keys), sorted.keys),
        (offset_of!(OrderParams, order), sorted.order),
    ];
    let blocks = [total / BLOCK, 1, 1];
    plan.launch(name(c"order_fill"), groups(total), &params, &addresses)?;
    plan.launch(name(c"order_block"), blocks, &params, &addresses)?;
    let mut merged = BLOCK * 2;
    while merged <= padded {
        params.merged = merged as u32;
        let mut distance = merged / 2;
        while distance >= BLOCK {
            params.distance = distance as u32;
            plan.launch(name(c"order_step"), groups(total / 2), &params, &addresses)?;
            distance /= 2;
        }
        plan.launch(name(c"order_block"), blocks, &params, &addresses)?;
        merged *= 2;
    }
    Ok(sorted)
}

fn top(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| is_number(*ty)).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(TopKernel { op: node.op::<TopK>().clone(), ty }))
}

struct TopKernel {
    op: TopK,
    ty: ElementType,
}

impl HipKernel for TopKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let axis = axis_of(self.op.axis, shape.len())?;
        let Some(k) = outputs.iter().flatten().next().map(|s| s[axis]) else { return Ok(()) };
        let inner: usize = shape[axis + 1..].iter().product();
        let rows = shape[..axis].iter().product::<usize>() * inner;
        if rows == 0 || k == 0 {
            return Ok(());
        }
        let length = shape[axis];
        let mut params = OrderParams {
            rows: rows as u64,
            inner: divider(inner)?,
            length: numbered(length)?,
            padded: length.next_power_of_two() as u32,
            k: k as u32,
            ty: self.ty as u32,
            size: self.ty.size() as u32,
            descending: self.op.largest as u32,
            ..OrderParams::zeroed()
        };
        let mut addresses = vec![(offset_of!(OrderParams, from), Operand::Input(0))];
        for (i, at) in [offset_of!(OrderParams, values), offset_of!(OrderParams, indices)].iter().enumerate()
        {
            if outputs.get(i).is_some_and(Option::is_some) {
                addresses.push((*at, Operand::Output(i)));
            }
        }
        if length <= BLOCK {
            return plan.launch(name(c"order_short"), [rows, 1, 1], &params, &addresses);
        }
        if k <= MOST_SELECTED {
            // The second launch should have little to do.
            let pieces = if k <= MOST_SELECTED / 4 { pieces(rows, length) } else { 1 };
            params.pieces = pieces as u32;
            if pieces > 1 {
                let candidates = rows * pieces * k;
                addresses.push((offset_of!(OrderParams, keys), plan.scratch(candidates * 8)));
                addresses.push((offset_of!(OrderParams, order), plan.scratch(candidates * 4)));
                plan.launch(name(c"order_select"), [rows * pieces, 1, 1], &params, &addresses)?;
                params.last = 1;
            }
            return plan.launch(name(c"order_select"), [rows, 1, 1], &params, &addresses);
        }
        let sorted = sort_rows(plan, params, Operand::Input(0))?;
        params.padded = length.next_power_of_two().max(BLOCK) as u32;
        addresses.push((offset_of!(OrderParams, order), sorted.order));
        plan.launch(name(c"order_emit"), groups(rows * k), &params, &addresses)
    }
}

fn extreme(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| is_number(*ty)).ok_or_else(|| node.no_kernel())?;
    Ok(Box::new(ExtremeKernel { op: *node.op::<ArgExtreme>(), ty }))
}

struct ExtremeKernel {
    op: ArgExtreme,
    ty: ElementType,
}

impl HipKernel for ExtremeKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let axis = axis_of(self.op.axis, shape.len())?;
        let inner: usize = shape[axis + 1..].iter().product();
        let rows = shape[..axis].iter().product::<usize>() * inner;
        if shape[axis] == 0 && rows > 0 {
            return Err(OpError::Data("the axis has no elements; allowed is one or more".into()));
        }
        let pieces = if inner == 1 { pieces(rows, shape[axis]) } else { 1 };
        let mut params = ExtremeParams {
            rows: rows as u64,
            inner: divider(inner)?,
            length: numbered(shape[axis])?,
            ty: self.ty as u32,
            maximum: self.op.max as u32,
            last: self.op.last as u32,
            floating: self.ty.is_float() as u32,
            pieces: pieces as u32,
            ..ExtremeParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(ExtremeParams, to), Operand::Output(0)),
            (offset_of!(ExtremeParams, from), Operand::Input(0)),
        ];
        if inner > 1 {
            return plan.launch(name(c"extreme_lines"), groups(rows), &params, &addresses);
        }
        if pieces > 1 {
            addresses.push((offset_of!(ExtremeParams, ranks), plan.scratch(rows * pieces * 8)));
            addresses.push((offset_of!(ExtremeParams, indices), plan.scratch(rows * pieces * 4)));
            plan.launch(name(c"extreme_rows"), [rows * pieces, 1, 1], &params, &addresses)?;
            params.finish = 1;
        }
        plan.launch(name(c"extreme_rows"), [rows, 1, 1], &params, &addresses)
    }
}
