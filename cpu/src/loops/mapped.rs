//! Copies where each output coordinate maps to an input coordinate, or to none: Pad, cropping, and
//! resizing to the nearest element.

use crate::threads::Pool;

use super::item::Item;
use super::parallel::{GRAIN, split_mut};
use super::strided::strides_of;

pub(crate) use crate::provider::resample::NOWHERE;

/// `output[i, j, …] = input[map₀[i], map₁[j], …]`, or the fill value where one of them is nowhere.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// For each axis that moves, the offset in the input of each output coordinate.
    offsets: Vec<Vec<isize>>,
    /// Elements of the trailing axes that stay as they are.
    block: usize,
    /// The output coordinates of the last map whose offsets are consecutive blocks.
    straight: std::ops::Range<usize>,
}

impl Mapped {
    /// `maps[k][i]` is the coordinate along axis `k` of `shape`, or [`NOWHERE`].
    pub(crate) fn new(shape: &[usize], maps: &[Vec<isize>]) -> Self {
        let identity = |k: &usize| {
            maps[*k].len() == shape[*k] && maps[*k].iter().enumerate().all(|(i, &m)| m == i as isize)
        };
        let trailing = (0..shape.len()).rev().take_while(identity).count();
        let moved = shape.len() - trailing;
        let block = shape[moved..].iter().product();
        let strides = strides_of(shape);
        let offsets: Vec<Vec<isize>> = maps[..moved]
            .iter()
            .zip(&strides)
            .map(|(map, stride)| {
                map.iter().map(|&m| if m == NOWHERE { NOWHERE } else { m * stride }).collect()
            })
            .collect();
        let straight = offsets.last().map_or(0..0, |map| longest_run(map, block as isize));
        Mapped { offsets, block, straight }
    }

    pub(crate) fn run<T: Item>(&self, pool: &Pool, input: &[T], fill: &T, output: &mut [T]) {
        let Some((inner, outer)) = self.offsets.split_last() else {
            output.clone_from_slice(input);
            return;
        };
        let block = self.block;
        let row_size = inner.len() * block;
        split_mut(pool, output, row_size, (GRAIN / row_size.max(1)).max(1), |rows, output| {
            for (r, row) in rows.zip(output.chunks_exact_mut(row_size)) {
                let Some(base) = outer_offset(outer, r) else {
                    row.fill(fill.clone());
                    continue;
                };
                let copy = |row: &mut [T], range: std::ops::Range<usize>| {
                    if block == 1 {
                        for (y, &offset) in row[range.clone()].iter_mut().zip(&inner[range]) {
                            y.clone_from(
                                usize::try_from(offset).map_or(fill, |offset| &input[base + offset]),
                            );
                        }
                        return;
                    }
                    for (y, &offset) in
                        row[range.start * block..range.end * block].chunks_exact_mut(block).zip(&inner[range])
                    {
                        match usize::try_from(offset) {
                            Ok(offset) => y.clone_from_slice(&input[base + offset..][..block]),
                            Err(_) => y.fill(fill.clone()),
                        }
                    }
                };
                let straight = self.straight.clone();
                copy(row, 0..straight.start);
                if !straight.is_empty() {
                    let from = base + inner[straight.start] as usize;
                    let middle = &mut row[straight.start * block..straight.end * block];
                    middle.clone_from_slice(&input[from..from + middle.len()]);
                }
                copy(row, straight.end..inner.len());
            }
        });
    }
}

/// The sum of the outer axes' offsets for row `r`; `None` when one is nowhere.
fn outer_offset(outer: &[Vec<isize>], r: usize) -> Option<usize> {
    let mut rest = r;
    let mut sum = 0usize;
    for map in outer.iter().rev() {
        sum += usize::try_from(map[rest % map.len()]).ok()?;
        rest /= map.len();
    }
    Some(sum)
}

/// The longest range in which each offset is `step` above the one before.
fn longest_run(map: &[isize], step: isize) -> std::ops::Range<usize> {
    let mut best = 0..0;
    let mut start = 0;
    for i in 0..map.len() {
        if map[i] == NOWHERE {
            start = i + 1;
            continue;
        }
        if i > start && map[i] != map[i - 1] + step {
            start = i;
        }
        if i + 1 - start > best.len() {
            best = start..i + 1;
        }
    }
    best
}
