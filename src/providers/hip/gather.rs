//! Gather, GatherElements, GatherND and ReverseSequence: launches of `kernels/index.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;
use crate::ops::crop::ReverseSequence;
use crate::ops::gather::Gather;
use crate::ops::movement::axis_of;
use crate::providers::{Argument, NodeContext};

use super::copy::strides_of;
use super::elements::{element_size, halved, shape_of};
use super::fill::groups;
use super::launch::{GROUP, KernelName, Operand};
use super::params::{Divider, divider};
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Gather", gather),
    Entry::new("GatherElements", gather),
    Entry::new("GatherND", gather),
    Entry::new("ReverseSequence", reverse),
];

pub(super) const MAX_RANK: usize = 8;

/// Units that a work item of `gather_slices` moves where there are many; else one, so that every processor has some.
const SLICE_UNITS: usize = 4;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct GatherParams {
    to: u64,
    from: u64,
    indices: u64,
    errors: u64,
    count: u64,
    length: u64,
    index_count: Divider,
    inner: Divider,
    index_size: u32,
    unit: u32,
    size: u32,
    each: u32,
    early: u32,
    unused: u32,
}

const _: () = assert!(size_of::<GatherParams>() == 96);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct ElementsParams {
    pub(super) to: u64,
    from: u64,
    pub(super) indices: u64,
    pub(super) errors: u64,
    pub(super) count: u64,
    length: u64,
    along: i64,
    rank: u32,
    index_size: u32,
    size: u32,
    parts: u32,
    dims: [Divider; MAX_RANK],
    strides: [i64; MAX_RANK],
}

const _: () = assert!(size_of::<ElementsParams>() == 232);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct TuplesParams {
    pub(super) to: u64,
    from: u64,
    pub(super) indices: u64,
    pub(super) errors: u64,
    pub(super) count: u64,
    inner: Divider,
    batch: Divider,
    batch_slices: u64,
    index_size: u32,
    depth: u32,
    unit: u32,
    size: u32,
    lengths: [u64; MAX_RANK],
    strides: [u64; MAX_RANK],
}

const _: () = assert!(size_of::<TuplesParams>() == 216);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ReverseParams {
    to: u64,
    from: u64,
    lengths: u64,
    errors: u64,
    count: u64,
    second: Divider,
    inner: Divider,
    time_length: u32,
    time_first: u32,
    index_size: u32,
    unit: u32,
    size: u32,
    unused: u32,
}

const _: () = assert!(size_of::<ReverseParams>() == 88);

pub(super) fn name(name: &'static std::ffi::CStr) -> KernelName {
    KernelName { family: "index", name }
}

/// The unit in bytes that runs of `elements` elements can be moved in, and how many of them a run has.
pub(super) fn units(elements: usize, size: usize) -> (usize, usize) {
    let bytes = elements * size;
    let (least, _) = halved(size);
    let fits = |unit: &usize| *unit >= least && bytes.is_multiple_of(*unit);
    let unit = [16, 8, 4, 2].into_iter().find(fits).unwrap_or(least);
    (unit, bytes / unit)
}

impl ElementsParams {
    /// For indices of a shape into an axis of data of another.
    pub(super) fn new(data: &[usize], indices: &[usize], axis: i64, index: usize) -> Result<Self, OpError> {
        let axis = axis_of(axis, data.len())?;
        check_rank(data.len())?;
        let mut params = ElementsParams {
            count: indices.iter().product::<usize>() as u64,
            length: data[axis] as u64,
            rank: data.len() as u32,
            index_size: index as u32,
            ..ElementsParams::zeroed()
        };
        for (k, (&dim, stride)) in indices.iter().zip(strides_of(data)).enumerate() {
            // The outermost length is not divided by.
            params.dims[k] = if k == 0 { Divider::new(dim) } else { divider(dim)? };
            if k == axis {
                params.along = stride;
            } else {
                params.strides[k] = stride;
            }
        }
        Ok(params)
    }
}

impl TuplesParams {
    /// For `[.., depth]` indices into data that share `batch` leading axes. Also gives the elements of a
    /// slice.
    pub(super) fn new(
        data: &[usize],
        indices: &[usize],
        batch: usize,
        index: usize,
    ) -> Result<(Self, usize), OpError> {
        let Some((&depth, outer)) = indices.split_last() else {
            return Err(OpError::Data("the indices have rank 0; allowed is 1 and above".to_owned()));
        };
        check_rank(depth)?;
        let indexed = &data[batch..batch + depth];
        let mut params = TuplesParams {
            count: outer.iter().product::<usize>() as u64,
            batch: divider(outer[batch..].iter().product())?,
            batch_slices: indexed.iter().product::<usize>() as u64,
            index_size: index as u32,
            depth: depth as u32,
            ..TuplesParams::zeroed()
        };
        for (k, (&length, stride)) in indexed.iter().zip(strides_of(indexed)).enumerate() {
            (params.lengths[k], params.strides[k]) = (length as u64, stride as u64);
        }
        Ok((params, data[batch + depth..].iter().product()))
    }
}

fn check_rank(rank: usize) -> Result<(), OpError> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(OpError::Unsupported(format!("{rank} indexed dimensions; the GPU kernel takes {MAX_RANK}")))
}

fn gather(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (size, index) = (element_size(node, 0)?, element_size(node, 1)?);
    Ok(Box::new(GatherKernel { op: node.op::<Gather>().clone(), size, index }))
}

struct GatherKernel {
    op: Gather,
    /// Bytes of an element.
    size: usize,
    /// Bytes of an index.
    index: usize,
}

impl HipKernel for GatherKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let (data, indices) = (shape_of(inputs, 0)?, shape_of(inputs, 1)?);
        match self.op {
            Gather::Slices { axis } => self.slices(plan, data, indices, axis),
            Gather::Elements { axis } => self.elements(plan, data, indices, axis),
            Gather::Tuples { batch } => self.tuples(plan, data, indices, batch),
        }
    }
}

impl GatherKernel {
    fn slices(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        indices: &[usize],
        axis: i64,
    ) -> Result<(), OpError> {
        let axis = axis_of(axis, data.len())?;
        let (unit, inner) = units(data[axis + 1..].iter().product(), self.size);
        let index_count: usize = indices.iter().product();
        let count = data[..axis].iter().product::<usize>() * index_count * inner;
        let many = count > 2 * plan.provider.unit().compute_units * GROUP as usize * SLICE_UNITS;
        let each = if many { SLICE_UNITS } else { 1 };
        // A few rows of tokens, which a decoder's first product waits for; not where the run's first kernel brings them.
        let early = !many && plan.is_constant(Operand::Input(0)) && plan.is_settled(Operand::Input(1));
        let params = GatherParams {
            each: each as u32,
            early: early.into(),
            count: count as u64,
            length: data[axis] as u64,
            index_count: divider(index_count)?,
            inner: divider(inner)?,
            index_size: self.index as u32,
            unit: unit as u32,
            size: halved(self.size).0 as u32,
            ..GatherParams::zeroed()
        };
        check_empty(data[axis], count)?;
        if early {
            plan.lets_next_start();
        }
        plan.launch(
            name(c"gather_slices"),
            groups(count.div_ceil(each)),
            &params,
            &[
                (offset_of!(GatherParams, to), Operand::Output(0)),
                (offset_of!(GatherParams, from), Operand::Input(0)),
                (offset_of!(GatherParams, indices), Operand::Input(1)),
                (offset_of!(GatherParams, errors), Operand::Errors),
            ],
        )
    }

    fn elements(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        indices: &[usize],
        axis: i64,
    ) -> Result<(), OpError> {
        let mut params = ElementsParams::new(data, indices, axis, self.index)?;
        let (size, parts) = halved(self.size);
        (params.size, params.parts) = (size as u32, parts as u32);
        check_empty(params.length as usize, params.count as usize)?;
        plan.launch(
            name(c"gather_elements"),
            groups(params.count as usize),
            &params,
            &[
                (offset_of!(ElementsParams, to), Operand::Output(0)),
                (offset_of!(ElementsParams, from), Operand::Input(0)),
                (offset_of!(ElementsParams, indices), Operand::Input(1)),
                (offset_of!(ElementsParams, errors), Operand::Errors),
            ],
        )
    }

    fn tuples(
        &self,
        plan: &mut PlanBuilder<'_>,
        data: &[usize],
        indices: &[usize],
        batch: usize,
    ) -> Result<(), OpError> {
        let (mut params, slice) = TuplesParams::new(data, indices, batch, self.index)?;
        let (unit, inner) = units(slice, self.size);
        params.inner = divider(inner)?;
        params.count *= inner as u64;
        (params.unit, params.size) = (unit as u32, halved(self.size).0 as u32);
        check_empty(data.iter().product(), params.count as usize)?;
        plan.launch(
            name(c"gather_tuples"),
            groups(params.count as usize),
            &params,
            &[
                (offset_of!(TuplesParams, to), Operand::Output(0)),
                (offset_of!(TuplesParams, from), Operand::Input(0)),
                (offset_of!(TuplesParams, indices), Operand::Input(1)),
                (offset_of!(TuplesParams, errors), Operand::Errors),
            ],
        )
    }
}

/// Where there is nothing to pick from, no index can be within its axis.
pub(super) fn check_empty(length: usize, picks: usize) -> Result<(), OpError> {
    if length == 0 && picks > 0 {
        return Err(OpError::Data("an index is out of range: the axis is empty".to_owned()));
    }
    Ok(())
}

fn reverse(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (size, index) = (element_size(node, 0)?, element_size(node, 1)?);
    Ok(Box::new(ReverseKernel { time_axis: node.op::<ReverseSequence>().time_axis, size, index }))
}

struct ReverseKernel {
    time_axis: usize,
    /// Bytes of an element.
    size: usize,
    /// Bytes of a length.
    index: usize,
}

impl HipKernel for ReverseKernel {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        _: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let [first, second, rest @ ..] = shape else {
            return Err(OpError::Data(format!("the input has rank {}; at least 2 is needed", shape.len())));
        };
        let (unit, inner) = units(rest.iter().product(), self.size);
        let count = first * second * inner;
        let params = ReverseParams {
            count: count as u64,
            second: divider(*second)?,
            inner: divider(inner)?,
            time_length: shape[self.time_axis] as u32,
            time_first: (self.time_axis == 0) as u32,
            index_size: self.index as u32,
            unit: unit as u32,
            size: halved(self.size).0 as u32,
            ..ReverseParams::zeroed()
        };
        plan.launch(
            name(c"reverse_sequences"),
            groups(count),
            &params,
            &[
                (offset_of!(ReverseParams, to), Operand::Output(0)),
                (offset_of!(ReverseParams, from), Operand::Input(0)),
                (offset_of!(ReverseParams, lengths), Operand::Input(1)),
                (offset_of!(ReverseParams, errors), Operand::Errors),
            ],
        )
    }
}
