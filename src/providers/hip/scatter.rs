//! ScatterElements (Scatter), ScatterND and TensorScatter: launches of `kernels/scatter.hip`, after
//! those of `kernels/index.hip` that list where each update goes.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::movement::axis_of;
use crate::ops::scatter::{Reduction, Scatter};
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::copy::{Axis, StridedCopy};
use super::elements::{element_size, halved, shape_of};
use super::fill::groups;
use super::gather::{self, ElementsParams, TuplesParams, check_empty, units};
use super::launch::{KernelName, Operand};
use super::order::plan_sort;
use super::params::{Divider, divider, is_number};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Scatter", build),
    Entry::new("ScatterElements", build),
    Entry::new("ScatterND", build),
    Entry::new("TensorScatter", build),
];

/// Up to this many updates are compared with each other; more are sorted.
const MOST_COMPARED: usize = 1 << 15;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ClaimParams {
    places: u64,
    slots: u64,
    count: u64,
    clear: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ClaimParams>() == 32);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WriteParams {
    to: u64,
    updates: u64,
    places: u64,
    slots: u64,
    count: u64,
    inner: Divider,
    unit: u32,
    size: u32,
    unused: u32,
}

const _: () = assert!(size_of::<WriteParams>() == 64);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ChainParams {
    places: u64,
    next: u64,
    first: u64,
    count: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ChainParams>() == 32);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SortedParams {
    places: u64,
    order: u64,
    next: u64,
    first: u64,
    count: u32,
    unused: u32,
}

const _: () = assert!(size_of::<SortedParams>() == 40);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ReduceParams {
    to: u64,
    updates: u64,
    places: u64,
    next: u64,
    first: u64,
    count: u64,
    inner: Divider,
    ty: u32,
    reduction: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ReduceParams>() == 72);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CacheParams {
    to: u64,
    updates: u64,
    starts: u64,
    errors: u64,
    count: u64,
    block: Divider,
    update: Divider,
    prefix: Divider,
    length: u32,
    circular: u32,
    unit: u32,
    size: u32,
    unused: u32,
}

const _: () = assert!(size_of::<CacheParams>() == 96);

fn name(name: &'static std::ffi::CStr) -> KernelName {
    KernelName { family: "scatter", name }
}

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let op = node.op::<Scatter>().clone();
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let reduces = match op {
        Scatter::Elements { reduction, .. } | Scatter::Tuples { reduction } => {
            reduction != Reduction::Replace
        }
        Scatter::Cache { .. } => false,
    };
    if reduces && !is_number(ty) {
        return Err(node.no_kernel());
    }
    let index = match op {
        Scatter::Cache { .. } => 8,
        _ => element_size(node, 1)?,
    };
    Ok(Box::new(ScatterKernel { op, ty, size: element_size(node, 0)?, index }))
}

struct ScatterKernel {
    op: Scatter,
    ty: ElementType,
    /// Bytes of an element.
    size: usize,
    /// Bytes of an index.
    index: usize,
}

impl HipKernel for ScatterKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (data, second) = (shape_of(inputs, 0)?, shape_of(inputs, 1)?);
        let elements = data.iter().product();
        let axes = [Axis { length: elements, to: 1, from: 1 }];
        StridedCopy::new(&axes, 0, 0, self.size).plan(plan, Operand::Output(0), Operand::Input(0))?;
        let (places, reduction) = match self.op {
            Scatter::Elements { axis, reduction } => {
                (self.element_places(plan, data, second, axis)?, reduction)
            }
            Scatter::Tuples { reduction } => (self.tuple_places(plan, data, second)?, reduction),
            Scatter::Cache { axis, circular } => {
                let has_starts = inputs.get(2).is_some_and(Option::is_some);
                return self.cache(plan, data, second, axis, circular, has_starts);
            }
        };
        if places.count == 0 || places.slice == 0 {
            return Ok(());
        }
        check_empty(elements, places.count)?;
        match reduction {
            Reduction::Replace => self.replace(plan, &places, elements / places.slice),
            reduction => self.reduce(plan, &places, reduction),
        }
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Where the updates go.
struct Places {
    /// A u64 for each update: the number of its slice.
    list: Operand,
    count: usize,
    /// Elements of a slice.
    slice: usize,
}

impl ScatterKernel {
    fn element_places(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        indices: &[usize],
        axis: i64,
    ) -> Result<Places, OpError> {
        let params = ElementsParams::new(data, indices, axis, self.index)?;
        let count = params.count as usize;
        let list = plan.scratch(count * 8);
        let addresses = [
            (offset_of!(ElementsParams, to), list),
            (offset_of!(ElementsParams, indices), Operand::Input(1)),
            (offset_of!(ElementsParams, errors), Operand::Errors),
        ];
        plan.launch(gather::name(c"place_elements"), groups(count), &params, &addresses)?;
        Ok(Places { list, count, slice: 1 })
    }

    fn tuple_places(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        indices: &[usize],
    ) -> Result<Places, OpError> {
        let (params, slice) = TuplesParams::new(data, indices, 0, self.index)?;
        let count = params.count as usize;
        let list = plan.scratch(count * 8);
        let addresses = [
            (offset_of!(TuplesParams, to), list),
            (offset_of!(TuplesParams, indices), Operand::Input(1)),
            (offset_of!(TuplesParams, errors), Operand::Errors),
        ];
        plan.launch(gather::name(c"place_tuples"), groups(count), &params, &addresses)?;
        Ok(Places { list, count, slice })
    }

    /// The last update of a place stays.
    fn replace(&self, plan: &mut PlanBuilder<'_>, places: &Places, slots: usize) -> Result<(), OpError> {
        check_count(places.count, u32::MAX as usize)?;
        let slot_list = plan.scratch(slots * 4);
        let addresses =
            [(offset_of!(ClaimParams, places), places.list), (offset_of!(ClaimParams, slots), slot_list)];
        for clear in [1, 0] {
            let params = ClaimParams { count: places.count as u64, clear, ..ClaimParams::zeroed() };
            plan.launch(name(c"scatter_claim"), groups(places.count), &params, &addresses)?;
        }
        let (unit, inner) = units(places.slice, self.size);
        let params = WriteParams {
            count: (places.count * inner) as u64,
            inner: divider(inner)?,
            unit: unit as u32,
            size: halved(self.size).0 as u32,
            ..WriteParams::zeroed()
        };
        plan.launch(
            name(c"scatter_write"),
            groups(places.count * inner),
            &params,
            &[
                (offset_of!(WriteParams, to), Operand::Output(0)),
                (offset_of!(WriteParams, updates), Operand::Input(2)),
                (offset_of!(WriteParams, places), places.list),
                (offset_of!(WriteParams, slots), slot_list),
            ],
        )
    }

    /// Updates of a place are combined with it in their order.
    fn reduce(
        &self,
        plan: &mut PlanBuilder<'_>,
        places: &Places,
        reduction: Reduction,
    ) -> Result<(), OpError> {
        check_count(places.count, 1 << 31)?;
        let count = places.count as u32;
        let (next, first) = (plan.scratch(places.count * 4), plan.scratch(places.count * 4));
        if places.count <= MOST_COMPARED {
            let params = ChainParams { count, ..ChainParams::zeroed() };
            let addresses = [
                (offset_of!(ChainParams, places), places.list),
                (offset_of!(ChainParams, next), next),
                (offset_of!(ChainParams, first), first),
            ];
            plan.launch(name(c"scatter_chain"), groups(places.count), &params, &addresses)?;
        } else {
            let sorted = plan_sort(plan, places.list, places.count)?;
            let params = SortedParams { count, ..SortedParams::zeroed() };
            let addresses = [
                (offset_of!(SortedParams, places), sorted.keys),
                (offset_of!(SortedParams, order), sorted.order),
                (offset_of!(SortedParams, next), next),
                (offset_of!(SortedParams, first), first),
            ];
            plan.launch(name(c"scatter_chain_sorted"), groups(places.count), &params, &addresses)?;
        }
        let total = places.count * places.slice;
        let params = ReduceParams {
            count: total as u64,
            inner: divider(places.slice)?,
            ty: self.ty as u32,
            reduction: match reduction {
                Reduction::Replace => 0,
                Reduction::Add => 1,
                Reduction::Multiply => 2,
                Reduction::Maximum => 3,
                Reduction::Minimum => 4,
            },
            ..ReduceParams::zeroed()
        };
        let kernel = match self.ty {
            ElementType::F32 | ElementType::F16 | ElementType::BF16 => c"scatter_reduce_f32",
            ElementType::F64 => c"scatter_reduce_f64",
            ElementType::U64 => c"scatter_reduce_u64",
            _ => c"scatter_reduce_i64",
        };
        plan.launch(
            name(kernel),
            groups(total),
            &params,
            &[
                (offset_of!(ReduceParams, to), Operand::Output(0)),
                (offset_of!(ReduceParams, updates), Operand::Input(2)),
                (offset_of!(ReduceParams, places), places.list),
                (offset_of!(ReduceParams, next), next),
                (offset_of!(ReduceParams, first), first),
            ],
        )
    }

    fn cache(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        update: &[usize],
        axis: i64,
        circular: bool,
        has_starts: bool,
    ) -> Result<(), OpError> {
        let axis = axis_of(axis, data.len())?;
        let (unit, block) = units(data[axis + 1..].iter().product(), self.size);
        let prefix: usize = data[1..axis].iter().product();
        let count = data[0] * prefix * update[axis] * block;
        let length = u32::try_from(data[axis])
            .map_err(|_| OpError::Unsupported(format!("a cache of {} positions", data[axis])))?;
        let params = CacheParams {
            count: count as u64,
            block: divider(block)?,
            update: divider(update[axis])?,
            prefix: divider(prefix)?,
            length,
            circular: circular as u32,
            unit: unit as u32,
            size: halved(self.size).0 as u32,
            ..CacheParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(CacheParams, to), Operand::Output(0)),
            (offset_of!(CacheParams, updates), Operand::Input(1)),
            (offset_of!(CacheParams, errors), Operand::Errors),
        ];
        if has_starts {
            addresses.push((offset_of!(CacheParams, starts), Operand::Input(2)));
        }
        plan.launch(name(c"scatter_cache"), groups(count), &params, &addresses)
    }
}

fn check_count(count: usize, most: usize) -> Result<(), OpError> {
    if count < most {
        return Ok(());
    }
    Err(OpError::Unsupported(format!("{count} updates; the GPU kernel takes fewer than {most}")))
}
