//! Copies where each output coordinate has a coordinate of the input or none, as launches of
//! `copy_mapped` in `kernels/copy.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::elements::halved;
use super::super::fill::Fill;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::{Divider, divider};
use super::strided::strides_of;

const MAX_RANK: usize = 10;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct AxisRule {
    before: i64,
    length: i64,
    stride: i64,
    dim: Divider,
    rule: u32,
    list: u32,
    unused: u32,
}

const _: () = assert!(size_of::<AxisRule>() == 48);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct MappedParams {
    to: u64,
    from: u64,
    table: u64,
    fill: Fill,
    count: u64,
    rank: u32,
    unit: u32,
    size: u32,
    fill_size: u32,
    axes: [AxisRule; MAX_RANK],
}

const _: () = assert!(size_of::<MappedParams>() == 552);

/// `Rule` in the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub(in super::super) enum Rule {
    Same = 0,
    /// The fill value outside.
    Constant = 1,
    Edge = 2,
    Reflect = 3,
    Wrap = 4,
}

/// Where the coordinates of one output axis lie in the input.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) enum AxisMap {
    /// Coordinate `i` is `i - before` where the input has that, else what the rule says.
    Shifted { output: usize, before: i64, rule: Rule },
    /// The coordinate of each output coordinate; −1 stands for the fill value.
    Listed(Vec<i32>),
}

impl AxisMap {
    pub(in super::super) fn same(length: usize) -> Self {
        AxisMap::Shifted { output: length, before: 0, rule: Rule::Same }
    }

    fn output(&self) -> usize {
        match self {
            AxisMap::Shifted { output, .. } => *output,
            AxisMap::Listed(list) => list.len(),
        }
    }

    fn is_same(&self) -> bool {
        matches!(self, AxisMap::Shifted { rule: Rule::Same, .. })
    }
}

/// A copy from a dense input of some shape to a dense output, with one map for each axis.
pub(in super::super) struct MappedCopy {
    /// The input's axes (neighbours that stay as they are joined), their strides in bytes.
    axes: Vec<(AxisMap, usize, i64)>,
    /// Bytes of what is moved, and of an element, which may have two of them.
    size: usize,
    element: usize,
}

impl MappedCopy {
    pub(in super::super) fn new(shape: &[usize], maps: &[AxisMap], element: usize) -> Self {
        let (size, parts) = halved(element);
        let mut axes: Vec<(AxisMap, usize, i64)> = Vec::new();
        let strides = strides_of(shape);
        for ((map, &length), stride) in maps.iter().zip(shape).zip(strides) {
            let stride = stride * (size * parts) as i64;
            match axes.last_mut() {
                Some((last, joined, step)) if map.is_same() && last.is_same() => {
                    *joined *= length;
                    *last = AxisMap::same(*joined);
                    *step = stride;
                }
                _ => axes.push((map.clone(), length, stride)),
            }
        }
        if parts > 1 {
            axes.push((AxisMap::same(parts), parts, size as i64));
        }
        MappedCopy { axes, size, element }
    }

    /// Appends the launch; `fill_input` is an input that has the fill value, else it is `fill`.
    pub(in super::super) fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        fill: Fill,
        fill_input: Option<usize>,
    ) -> Result<(), OpError> {
        let mut params = MappedParams::zeroed();
        if self.axes.len() > MAX_RANK {
            let rank = self.axes.len();
            return Err(OpError::Unsupported(format!("{rank} dimensions; the GPU kernel takes {MAX_RANK}")));
        }
        let unit = self.unit();
        (params.unit, params.size, params.rank) = (unit as u32, self.size as u32, self.axes.len() as u32);
        (params.fill, params.fill_size) = (fill, self.element as u32);
        let mut lists: Vec<i32> = Vec::new();
        let mut count = 1;
        for (d, (map, length, stride)) in self.axes.iter().enumerate() {
            let axis = &mut params.axes[d];
            let mut output = map.output();
            (axis.length, axis.stride) = (*length as i64, *stride);
            if d + 1 == self.axes.len() && map.is_same() {
                // The innermost axis in units.
                output = output * self.size / unit;
                axis.stride = unit as i64;
            }
            // The outermost length is not divided by.
            axis.dim = if d == 0 { Divider::new(output) } else { divider(output)? };
            match map {
                AxisMap::Shifted { before, rule, .. } => (axis.before, axis.rule) = (*before, *rule as u32),
                AxisMap::Listed(list) => {
                    (axis.list, axis.rule) = (lists.len() as u32, 5);
                    lists.extend_from_slice(list);
                }
            }
            count *= output;
        }
        params.count = count as u64;
        let mut addresses = vec![
            (offset_of!(MappedParams, to), Operand::Output(0)),
            (offset_of!(MappedParams, from), Operand::Input(0)),
        ];
        if !lists.is_empty() {
            addresses.push((offset_of!(MappedParams, table), plan.table(&lists)));
        }
        if let Some(i) = fill_input {
            addresses.push((offset_of!(MappedParams, fill) + offset_of!(Fill, address), Operand::Input(i)));
        }
        plan.launch(
            KernelName { family: "copy", name: c"copy_mapped" },
            [count.div_ceil(GROUP as usize), 1, 1],
            &params,
            &addresses,
        )
    }

    /// The widest unit that the innermost axis, when it stays as it is, can be moved in.
    fn unit(&self) -> usize {
        match self.axes.last() {
            Some((map, length, _)) if map.is_same() => {
                let bytes = length * self.size;
                [16, 8, 4, 2]
                    .into_iter()
                    .find(|&unit| unit >= self.size && bytes.is_multiple_of(unit))
                    .unwrap_or(self.size)
            }
            _ => self.size,
        }
    }
}
