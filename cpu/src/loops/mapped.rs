//! Copies where each output coordinate maps to an input coordinate, or to none: Pad, cropping, and
//! resizing to the nearest element.

use smallvec::SmallVec;

use crate::threads::Pool;

use super::item::Item;
use super::padded_rows::PaddedRows;
use super::parallel::{GRAIN, split_mut};
use super::simd::widest;
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
    /// Whether all other coordinates of that map are nowhere.
    padded: bool,
    /// Whether the elements along the last map are those of a line, each twice.
    doubled: bool,
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
        let padded = offsets.last().is_some_and(|map| {
            let outside = map[..straight.start].iter().chain(&map[straight.end..]);
            !straight.is_empty() && outside.into_iter().all(|&offset| offset == NOWHERE)
        });
        let doubled = offsets.last().is_some_and(|map| {
            let mut pairs = map.iter().enumerate();
            block == 1 && map.len().is_multiple_of(2) && pairs.all(|(i, &offset)| offset == i as isize / 2)
        });
        Mapped { offsets, block, straight, padded, doubled }
    }

    pub(crate) fn run<T: Item>(&self, pool: &Pool, input: &[T], fill: &T, output: &mut [T]) {
        let Some((inner, outer)) = self.offsets.split_last() else {
            output.clone_from_slice(input);
            return;
        };
        let block = self.block;
        let row_size = inner.len() * block;
        split_mut(pool, output, row_size, (GRAIN / row_size.max(1)).max(1), |rows, output| {
            if self.padded
                && let (Some(input), Some(fill)) = (T::bytes(input), T::bytes(std::slice::from_ref(fill)))
                && let Some(output) = T::bytes_mut(output)
            {
                let (size, first) = (fill.len(), inner[self.straight.start] as usize);
                let starts = Rows::starting_at(rows.start, outer).take(rows.len());
                return widest(PaddedRows {
                    input,
                    output,
                    row: row_size * size,
                    starts: starts.map(|start| start.map(|start| (start + first) * size)),
                    before: self.straight.start * block * size,
                    length: self.straight.len() * block * size,
                    fill: std::array::from_fn(|i| fill[i % size]),
                });
            }
            let mut last = None;
            for (i, start) in Rows::starting_at(rows.start, outer).take(rows.len()).enumerate() {
                let (before, row) = output[..(i + 1) * row_size].split_at_mut(i * row_size);
                let Some(base) = start else {
                    row.fill(fill.clone());
                    last = None;
                    continue;
                };
                if last.replace(base) == Some(base) {
                    row.clone_from_slice(&before[(i - 1) * row_size..]);
                    continue;
                }
                if self.doubled {
                    for (pair, x) in row.as_chunks_mut::<2>().0.iter_mut().zip(&input[base..]) {
                        pair.iter_mut().for_each(|y| y.clone_from(x));
                    }
                    continue;
                }
                let copy = |row: &mut [T], range: std::ops::Range<usize>| {
                    if range.is_empty() {
                        return;
                    }
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

/// Where the rows of the output begin in the input, in order; `None` when one is nowhere. Axes are counted, not divided for: a
/// division takes as long as copying a short row.
struct Rows<'a> {
    /// For each outer axis its offsets, and the coordinate of the next row.
    axes: SmallVec<[(&'a [isize], usize); 8]>,
    /// Where the rows along the last of these axes begin: most rows differ from the one before along that axis alone.
    before: Option<usize>,
}

impl<'a> Rows<'a> {
    /// The rows from `first` on, without an end.
    fn starting_at(first: usize, outer: &'a [Vec<isize>]) -> Self {
        let mut axes: SmallVec<[(&[isize], usize); 8]> = outer.iter().map(|map| (&map[..], 0)).collect();
        let mut rest = first;
        for (map, at) in axes.iter_mut().rev() {
            let length = map.len().max(1);
            (rest, *at) = (rest / length, rest % length);
        }
        let mut rows = Rows { axes, before: None };
        rows.before = rows.start_of_last();
        rows
    }

    fn start_of_last(&self) -> Option<usize> {
        let (_, others) = self.axes.split_last()?;
        others.iter().map(|&(map, at)| usize::try_from(map[at]).ok()).sum()
    }
}

impl Iterator for Rows<'_> {
    type Item = Option<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Option<usize>> {
        let Some(((map, at), others)) = self.axes.split_last_mut() else { return Some(Some(0)) };
        let start = usize::try_from(map[*at]).ok().zip(self.before).map(|(offset, before)| before + offset);
        *at += 1;
        if *at == map.len() {
            *at = 0;
            for (map, at) in others.iter_mut().rev() {
                *at += 1;
                if *at < map.len() {
                    break;
                }
                *at = 0;
            }
            self.before = self.start_of_last();
        }
        Some(start)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other() {
        let outer = [vec![0isize, 60], vec![40, NOWHERE, 0], vec![1, 2]];
        let divided = |row: usize| {
            let starts = [outer[0][row / 6 % 2], outer[1][row / 2 % 3], outer[2][row % 2]];
            starts.iter().map(|&start| usize::try_from(start).ok()).sum()
        };
        for first in 0..12 {
            let rows: Vec<Option<usize>> = Rows::starting_at(first, &outer).take(12 - first).collect();
            assert_eq!(rows, (first..12).map(divided).collect::<Vec<Option<usize>>>(), "from {first}");
        }
    }

    #[test]
    fn every_coordinate_is_mapped() {
        mapped(|i| [i]);
        mapped(|i| [i, 0, 1, i]);
        mapped(|i| [i; 16]);
        mapped(|i| i.to_string());
    }

    fn mapped<T: Item + Clone + PartialEq + std::fmt::Debug>(item: fn(u8) -> T) {
        let doubled = |n: isize| (0..2 * n).map(|i| i / 2).collect::<Vec<_>>();
        for (shape, maps) in [
            ([3, 4], [doubled(3), doubled(4)]),
            ([3, 4], [vec![2, 2, NOWHERE, NOWHERE, 2, 0, 0], doubled(4)]),
            ([3, 5], [vec![1, 1, 0], vec![4, NOWHERE, 0, 1, 2]]),
            ([2, 3], [vec![0, 0, 0, 1], vec![0, 0, 1]]),
            ([2, 3], [vec![1, 1, 0, 1], vec![0, 1, 2]]),
            ([3, 4], [vec![NOWHERE, 0, 1, 2, NOWHERE], vec![NOWHERE, 0, 1, 2, 3, NOWHERE, NOWHERE]]),
            ([3, 4], [vec![1, 2, NOWHERE], vec![2, 3, NOWHERE]]),
            ([3, 4], [vec![NOWHERE, 1], vec![NOWHERE, 1]]),
        ] {
            let input: Vec<T> = (1..).map(item).take(shape[0] * shape[1]).collect();
            let mut output = vec![item(0); maps[0].len() * maps[1].len()];
            Mapped::new(&shape, &maps).run(&Pool::new(2), &input, &item(99), &mut output);
            let at = |i: usize| {
                let (y, x) = (maps[0][i / maps[1].len()], maps[1][i % maps[1].len()]);
                if y == NOWHERE || x == NOWHERE {
                    item(99)
                } else {
                    input[y as usize * shape[1] + x as usize].clone()
                }
            };
            assert_eq!(output, (0..output.len()).map(at).collect::<Vec<_>>(), "{shape:?} {maps:?}");
        }
    }
}
