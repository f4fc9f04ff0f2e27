//! Copies with strides on both sides, as launches of `kernels/copy.hip`.

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::ops::OpError;

use super::super::PlanBuilder;
use super::super::elements::halved;
use super::super::launch::{GROUP, KernelName, Operand};
use super::super::params::Divider;

const MAX_RANK: usize = 12;
/// Units that a work item of `copy_strided` moves.
const PER_ITEM: usize = 4;
/// Units that one launch moves at most.
const MOST_UNITS: usize = (1 << 31) - 1;
/// The edge of a tile of `copy_transpose`, and of a wide one.
const TILE: usize = 32;
const WIDE: usize = 64;
/// Dimensions below this are not worth a tile.
const LEAST_TILED: usize = 8;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct CopyParams {
    to: u64,
    from: u64,
    count: u32,
    rank: u32,
    unit: u32,
    size: u32,
    dims: [Divider; MAX_RANK],
    to_strides: [i64; MAX_RANK],
    from_strides: [i64; MAX_RANK],
}

const _: () = assert!(size_of::<CopyParams>() == 368);

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct TransposeParams {
    to: u64,
    from: u64,
    rows: u32,
    columns: u32,
    from_row: i64,
    to_column: i64,
    rank: u32,
    size: u32,
    row_tiles: Divider,
    column_tiles: Divider,
    dims: [Divider; MAX_RANK],
    to_strides: [i64; MAX_RANK],
    from_strides: [i64; MAX_RANK],
    wide: u32,
    unused: u32,
}

const _: () = assert!(size_of::<TransposeParams>() == 416);

/// One dimension of a copy: its length, and the elements between neighbours on either side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Axis {
    pub(in super::super) length: usize,
    pub(in super::super) to: i64,
    pub(in super::super) from: i64,
}

/// `to[to_offset + Σ i·to] = from[from_offset + Σ i·from]`, in elements of `size` bytes.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct StridedCopy {
    axes: Vec<Axis>,
    to_offset: i64,
    from_offset: i64,
    /// Bytes: 1, 2, 4 or 8.
    size: usize,
}

impl StridedCopy {
    /// `size` may be 16 (complex128), which is moved as two elements of 8.
    pub(in super::super) fn new(axes: &[Axis], to_offset: usize, from_offset: usize, size: usize) -> Self {
        let (size, parts) = halved(size);
        let scale = parts as i64;
        let wider = axes.iter().map(|a| Axis { length: a.length, to: a.to * scale, from: a.from * scale });
        let part = (parts > 1).then_some(Axis { length: parts, to: 1, from: 1 });
        StridedCopy {
            axes: join(wider.chain(part)),
            to_offset: to_offset as i64 * scale,
            from_offset: from_offset as i64 * scale,
            size,
        }
    }

    /// A dense output of these dimensions; `from` are the input's strides over them.
    pub(in super::super) fn dense(dims: &[usize], from: &[i64], from_offset: usize, size: usize) -> Self {
        let to = strides_of(dims);
        let axes: Vec<Axis> =
            dims.iter().zip(to).zip(from).map(|((&length, to), &from)| Axis { length, to, from }).collect();
        StridedCopy::new(&axes, 0, from_offset, size)
    }

    /// Appends the launches.
    pub(in super::super) fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        to: Operand,
        from: Operand,
    ) -> Result<(), OpError> {
        if self.axes.len() > MAX_RANK {
            return Err(OpError::Unsupported(format!(
                "a copy over {} dimensions that cannot be joined; the GPU kernel takes {MAX_RANK}",
                self.axes.len()
            )));
        }
        let (unit, axes) = self.units();
        let count: usize = axes.iter().map(|a| a.length).product();
        if count == 0 {
            return Ok(());
        }
        if count > MOST_UNITS {
            return self.halves().iter().try_for_each(|half| half.plan(plan, to, from));
        }
        match self.tiled().filter(|_| unit == self.size) {
            Some(t) => self.plan_transpose(t, plan, to, from),
            None => self.plan_copy(unit, &axes, plan, to, from),
        }
    }

    /// The widest unit in bytes that this copy can move in, and the dimensions counted in units, with
    /// strides in bytes.
    fn units(&self) -> (usize, Vec<Axis>) {
        let size = self.size as i64;
        let mut axes: Vec<Axis> = self
            .axes
            .iter()
            .map(|a| Axis { length: a.length, to: a.to * size, from: a.from * size })
            .collect();
        let mut unit = self.size;
        if let Some((last, outer)) = axes.split_last_mut()
            && last.to == size
            && last.from == size
        {
            let fits = |unit: usize| {
                let multiple = |x: i64| x % unit as i64 == 0;
                (last.length * self.size).is_multiple_of(unit)
                    && multiple(self.to_offset * size)
                    && multiple(self.from_offset * size)
                    && outer.iter().all(|a| multiple(a.to) && multiple(a.from))
            };
            unit = [16, 8, 4, 2].into_iter().find(|&unit| unit >= self.size && fits(unit)).unwrap_or(unit);
            let width = unit as i64;
            *last = Axis { length: last.length * self.size / unit, to: width, from: width };
        }
        (unit, axes)
    }

    /// The dimension that is contiguous in the input, when another one, the last, is so in the output
    /// and both are long enough for tiles.
    fn tiled(&self) -> Option<usize> {
        let last = self.axes.len().checked_sub(1)?;
        let t = self.axes.iter().position(|a| a.from == 1 && a.length > 1)?;
        let long = |a: &Axis| a.length >= LEAST_TILED && a.length <= u32::MAX as usize;
        (t != last
            && self.axes[last].to == 1
            && self.axes[last].from != 0
            && long(&self.axes[t])
            && long(&self.axes[last]))
        .then_some(t)
    }

    fn plan_copy(
        &self,
        unit: usize,
        axes: &[Axis],
        plan: &mut PlanBuilder<'_>,
        to: Operand,
        from: Operand,
    ) -> Result<(), OpError> {
        let mut params = CopyParams::zeroed();
        let count: usize = axes.iter().map(|a| a.length).product();
        params.to = (self.to_offset * self.size as i64) as u64;
        params.from = (self.from_offset * self.size as i64) as u64;
        params.count = count as u32;
        params.rank = axes.len() as u32;
        (params.unit, params.size) = (unit as u32, self.size as u32);
        for (d, axis) in axes.iter().enumerate() {
            params.dims[d] = Divider::new(axis.length);
            (params.to_strides[d], params.from_strides[d]) = (axis.to, axis.from);
        }
        plan.launch(
            KernelName { family: "copy", name: c"copy_strided" },
            [count.div_ceil(GROUP as usize * PER_ITEM), 1, 1],
            &params,
            &[(offset_of!(CopyParams, to), to), (offset_of!(CopyParams, from), from)],
        )
    }

    fn plan_transpose(
        &self,
        t: usize,
        plan: &mut PlanBuilder<'_>,
        to: Operand,
        from: Operand,
    ) -> Result<(), OpError> {
        let size = self.size as i64;
        let last = self.axes.len() - 1;
        let (column, row) = (self.axes[t], self.axes[last]);
        let mut params = TransposeParams::zeroed();
        params.to = (self.to_offset * size) as u64;
        params.from = (self.from_offset * size) as u64;
        (params.rows, params.columns) = (row.length as u32, column.length as u32);
        (params.from_row, params.to_column) = (row.from * size, column.to * size);
        params.size = self.size as u32;
        let wide = self.whole_units(t);
        params.wide = wide as u32;
        let edge = if wide { WIDE } else { TILE };
        let (row_tiles, column_tiles) = (row.length.div_ceil(edge), column.length.div_ceil(edge));
        (params.row_tiles, params.column_tiles) = (Divider::new(row_tiles), Divider::new(column_tiles));
        let mut groups = row_tiles * column_tiles;
        for (d, axis) in self.axes.iter().enumerate().filter(|&(d, _)| d != t && d != last) {
            let at = params.rank as usize;
            params.dims[at] = Divider::new(self.axes[d].length);
            (params.to_strides[at], params.from_strides[at]) = (axis.to * size, axis.from * size);
            params.rank += 1;
            groups *= axis.length;
        }
        plan.launch(
            KernelName { family: "copy", name: c"copy_transpose" },
            [groups, 1, 1],
            &params,
            &[(offset_of!(TransposeParams, to), to), (offset_of!(TransposeParams, from), from)],
        )
    }

    /// Whether both sides of a transposition of the dimension `t` are whole units of 16 bytes, of elements of
    /// two or four bytes.
    fn whole_units(&self, t: usize) -> bool {
        let last = self.axes.len() - 1;
        let whole = |elements: i64| elements * self.size as i64 % 16 == 0;
        let strides = self.axes.iter().enumerate().all(|(d, axis)| {
            let (to, from) = (d == last || whole(axis.to), d == t || whole(axis.from));
            to && from && (d != last && d != t || whole(axis.length as i64) && axis.length >= WIDE)
        });
        matches!(self.size, 2 | 4) && strides && whole(self.to_offset) && whole(self.from_offset)
    }

    /// This copy in two parts, cut at its outermost dimension.
    fn halves(&self) -> [StridedCopy; 2] {
        let (mut first, mut second) = (self.clone(), self.clone());
        let length = self.axes[0].length / 2;
        first.axes[0].length = length;
        second.axes[0].length -= length;
        second.to_offset += self.axes[0].to * length as i64;
        second.from_offset += self.axes[0].from * length as i64;
        [first, second]
    }
}

/// The strides of a dense tensor.
pub(in super::super) fn strides_of(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut step = 1;
    for (stride, &length) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step *= length as i64;
    }
    strides
}

/// The dimensions without those of length 1, neighbours joined where both sides go on from one to the
/// next.
fn join(axes: impl Iterator<Item = Axis>) -> Vec<Axis> {
    let mut joined: Vec<Axis> = Vec::new();
    for axis in axes.filter(|a| a.length != 1) {
        let length = axis.length as i64;
        match joined.last_mut() {
            Some(last) if last.to == axis.to * length && last.from == axis.from * length => {
                *last = Axis { length: last.length * axis.length, ..axis };
            }
            _ => joined.push(axis),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_as_wide_as_the_strides_allow() {
        // dims, the input's strides, element size: the unit, and the dimensions in units.
        for (dims, from, size, unit, units) in [
            (vec![2, 3, 64], vec![64, 128, 1], 2, 16, vec![2, 3, 8]),
            (vec![2, 3, 6], vec![6, 12, 1], 2, 4, vec![2, 3, 3]),
            (vec![3, 5], vec![5, 1], 1, 1, vec![15]),
            (vec![3, 5], vec![1, 3], 4, 4, vec![3, 5]),
            (vec![4], vec![1], 16, 16, vec![4]),
            (vec![], vec![], 8, 8, vec![]),
        ] {
            let copy = StridedCopy::dense(&dims, &from, 0, size);
            let (got, axes) = copy.units();
            let lengths: Vec<usize> = axes.iter().map(|a| a.length).collect();
            assert_eq!((got, lengths), (unit, units), "{dims:?} {from:?}");
        }
    }

    #[test]
    fn large_copies_are_cut() {
        let copy = StridedCopy::dense(&[5, 7], &[14, 2], 3, 4);
        let [first, second] = copy.halves();
        assert_eq!((first.axes[0].length, first.from_offset, first.to_offset), (17, 3, 0));
        assert_eq!((second.axes[0].length, second.from_offset, second.to_offset), (18, 3 + 34, 17));
    }
}
