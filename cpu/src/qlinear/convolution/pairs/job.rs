//! The products of a convolution of pairs.

use std::ops::Range;

use super::gather::{gather, interleave, interleave_picked};
use super::{BLOCK, CACHED, GRAIN, PairRows, Plan, ROWS, odd_widths};
use crate::gemm::pairs::{self, Rest, Tile};
use crate::kernel::KernelContext;
use crate::loops::fetch::into_second_cache;
use crate::loops::parallel::{Shares, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};

/// Takes the sums of a row at some positions, and what they begin with; of one position those of several rows.
pub(super) type Write<'a> = dyn Fn(usize, Range<usize>, &mut [i32], i32) + Sync + 'a;

/// Fetches into the cache what the sums of a row at some positions are stored to and added to.
pub(super) type Fetch<'a> = dyn Fn(usize, Range<usize>) + Sync + 'a;

/// Where sums go.
#[derive(Clone, Copy)]
pub(super) struct Output<'a> {
    pub(super) write: &'a Write<'a>,
    pub(super) fetch: &'a Fetch<'a>,
}

/// Lines of dot groups, so many words apart.
type Lines<'a> = (&'a [u32], usize);

/// The convolution of an image.
pub(super) struct Job<'a> {
    pub(super) rows: &'a PairRows,
    pub(super) plan: &'a Plan,
    /// What the sums of each row begin with.
    pub(super) first: &'a [i32],
    /// 128 where the image's bytes are signed.
    pub(super) flip: u8,
    /// What lies around the image.
    pub(super) zero: u8,
    /// Positions.
    pub(super) columns: usize,
}

impl Job<'_> {
    /// Makes planes of dot groups.
    pub(super) fn arrange(&self, cx: &KernelContext<'_>, image: &[u8], planes: &mut [u32]) {
        assert!(pairs::available());
        let Plan { table, dot_groups, channels, plane, picks, .. } = self.plan;
        let (size, count) = (table.plane(), self.rows.groups * dot_groups);
        // Of an empty image what lies around it remains.
        if let Some(padded) = &self.plan.padded {
            let (bytes, plane): (&mut [u8], _) = (bytemuck::cast_slice_mut(planes), padded.plane());
            let channels = self.rows.groups * channels;
            let grain = (1 << 15) / plane + 1;
            return split_mut(cx.pool, &mut bytes[..channels * plane], plane, grain, |range, out| {
                for (channel, out) in range.zip(out.chunks_exact_mut(plane)) {
                    padded.fill(&image[channel * size..][..size], self.flip, self.zero, out);
                }
            });
        }
        if size == 0 || *plane == 0 {
            return;
        }
        let flip = u32::from_le_bytes([self.flip; 4]);
        split_mut(cx.pool, &mut planes[..count * plane], *plane, (1 << 15) / plane + 1, |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(*plane)) {
                let (group, first) = (i / dot_groups, i % dot_groups * 4);
                // In the place of channels that are missing, whose weights are 0, the last one.
                let lines = [0, 1, 2, 3].map(|j| {
                    let at = (first + j).min(channels - 1);
                    let channel = group * channels + self.rows.order.get(at).map_or(at, |&at| at as usize);
                    &image[channel * size..][..size]
                });
                match picks {
                    true => interleave_picked(table, lines, flip, out),
                    false => interleave(lines, 1, flip, out),
                }
            }
        });
    }

    /// Gives sums to `to`. `shared` is memory for what threads make together.
    pub(super) fn multiply(
        &self,
        cx: &KernelContext<'_>,
        planes: &[u32],
        shared: &mut [u32],
        to: Output<'_>,
    ) {
        let (&PairRows { groups, m, depth, .. }, pool) = (self.rows, cx.pool);
        let Plan { dot_groups, in_place, plane, .. } = self.plan;
        let tiling = self.plan.tiling.as_ref();
        if let Some((rows, tiling)) = tiling.and_then(|tiling| Some((self.rows.winograd(tiling)?, tiling))) {
            let planes = (planes, u32::from_le_bytes([self.zero; 4]));
            return rows.multiply(pool, tiling, planes, shared, &|row, columns, sums, first| {
                (to.write)(row, columns, sums, first.wrapping_add(self.first[row]));
            });
        }
        // Pairs of what is gathered lie beside it.
        let words = depth * if self.rows.is_cut { 1 } else { 3 };
        let most = (CACHED / (words * pairs::WIDTH)).clamp(BLOCK.0, BLOCK.1);
        let work = m.next_multiple_of(ROWS) * depth * 4 * self.columns;
        let threads = match (2 * work / GRAIN).clamp(1, pool.threads()) {
            threads if groups == 1 => threads,
            threads => (2 * threads).div_ceil(groups),
        };
        // Of small groups some are taken together.
        let each_run = |shares: Shares, body: &(dyn Fn(usize, Range<usize>) + Sync)| {
            let (runs, all) = (shares.runs(), groups * shares.runs());
            let together = (GRAIN / 4 * runs / work.max(1)).max(1);
            pool.for_each(all.div_ceil(together), &|at| {
                for i in at * together..((at + 1) * together).min(all) {
                    let run = shares.run(i % runs);
                    if !run.is_empty() && !pool.cancelled() {
                        body(i / runs, run);
                    }
                }
            });
        };
        let of_group = |group: usize| -> Lines<'_> { (&planes[group * dot_groups * plane..], *plane) };
        if self.columns == 1 && self.rows.zeros.is_empty() && *in_place {
            let shares = Shares::new(m.div_ceil(ROWS), threads, usize::MAX, 1);
            return each_run(shares, &|group, strips| self.position(of_group(group), group, strips, to));
        }
        if let Some(pitch) = self.plan.shared {
            let lines = &mut shared[..if *in_place { 0 } else { groups * depth * pitch }];
            split_mut(pool, lines, pitch, (1 << 15) / pitch + 1, |range, out| {
                for (line, out) in range.zip(out.chunks_exact_mut(pitch)) {
                    self.gather(planes, line / depth, line % depth, 0..self.columns, out);
                }
            });
            let lines = &*lines;
            let strips = m.div_ceil(ROWS);
            let shares = Shares::new(strips, threads, strips, (GRAIN / 4 * strips).div_ceil(work));
            return each_run(shares, &|group, strips| {
                let (words, pitch) = match in_place {
                    true => of_group(group),
                    false => (&lines[group * depth * pitch..], pitch),
                };
                for start in (0..self.columns).step_by(most * pairs::WIDTH) {
                    let columns = start..(start + most * pairs::WIDTH).min(self.columns);
                    self.block((&words[start..], pitch), group, strips.clone(), columns, to);
                }
            });
        }
        // Blocks are whole vectors.
        let widths = self.columns.div_ceil(pairs::WIDTH);
        let shares = Shares::new(widths, threads, most, BLOCK.0.max((GRAIN / 4 * widths).div_ceil(work)));
        each_run(shares, &|group, widths| {
            let columns = widths.start * pairs::WIDTH..(widths.end * pairs::WIDTH).min(self.columns);
            let strips = 0..m.div_ceil(ROWS);
            if *in_place {
                let (words, pitch) = of_group(group);
                return self.block((&words[columns.start..], pitch), group, strips, columns, to);
            }
            let pitch = odd_widths(columns.len());
            with_scratch([depth * pitch], |[lines]: [&mut [u32]; 1]| {
                for (line, out) in lines.chunks_exact_mut(pitch).enumerate() {
                    self.gather(planes, group, line, columns.clone(), out);
                }
                self.block((lines, pitch), group, strips, columns.clone(), to);
            });
        });
    }

    /// What some positions read of a line.
    fn gather(&self, planes: &[u32], group: usize, line: usize, columns: Range<usize>, out: &mut [u32]) {
        assert!(pairs::available());
        let Plan { table, dot_groups, channels, padded, .. } = self.plan;
        let (first, out) = (columns.start, &mut out[..columns.len()]);
        if let Some(padded) = padded {
            let positions = channels * table.kernel();
            // In the place of those that are missing, whose weights are 0, the last one.
            let all = [0, 1, 2, 3].map(|j| group * positions + (4 * line + j).min(positions - 1));
            return padded.gather(bytemuck::cast_slice(planes), all, first, out);
        }
        let (channel, tap) = (line / table.kernel(), line % table.kernel());
        let plane = &planes[(group * dot_groups + channel) * table.plane()..];
        gather(table, tap, plane, u32::from_le_bytes([self.zero; 4]), first, out);
    }

    /// Some strips of a group where there is one position: sums of all their rows at once.
    fn position(&self, (right, pitch): Lines<'_>, group: usize, strips: Range<usize>, to: Output<'_>) {
        let &PairRows { m, depth, .. } = self.rows;
        assert!(right.len() > (depth - 1) * pitch);
        with_scratch([strips.len() * ROWS], |[sums]: [&mut [i32]; 1]| {
            for (strip, sums) in strips.clone().zip(sums.as_chunks_mut::<ROWS>().0) {
                let number = group * m.div_ceil(ROWS) + strip;
                let left = &self.rows.dot_groups[number * ROWS * depth..][..ROWS * depth];
                let tile = Tile {
                    out: sums.as_mut_ptr(),
                    columns: 1,
                    left: left.as_ptr(),
                    row: 1,
                    step: ROWS,
                    right: right.as_ptr(),
                    pitch,
                    depth,
                    adds: false,
                };
                let rests = self.rows.rests.of(number);
                // SAFETY: a weight is packed where there are the instructions; all lies inside by the assertion.
                unsafe {
                    match rests {
                        Some(_) => tile.compute_columns::<true>(1),
                        None => tile.compute_columns::<false>(1),
                    }
                }
                for rest in rests.into_iter().flatten().map(|&rest| Rest::of(rest)) {
                    sums[rest.column] =
                        sums[rest.column].wrapping_add(rest.product(right[rest.depth * pitch]));
                }
            }
            let rows = strips.start * ROWS..(strips.end * ROWS).min(m);
            let first = &self.first[group * m + rows.start..];
            sums.iter_mut().zip(first).for_each(|(sum, &first)| *sum = sum.wrapping_add(first));
            (to.write)(group * m + rows.start, 0..1, &mut sums[..rows.len()], 0);
        });
    }

    /// Some strips of a group at some positions, whose lines begin there.
    fn block(
        &self,
        (right, pitch): Lines<'_>,
        group: usize,
        strips: Range<usize>,
        columns: Range<usize>,
        to: Output<'_>,
    ) {
        if strips.is_empty() {
            return;
        }
        let &PairRows { m, depth, is_cut, .. } = self.rows;
        let count = columns.len();
        let width = count.next_multiple_of(pairs::WIDTH);
        let with_totals = !self.rows.zeros.is_empty();
        let lengths = [
            ROWS * width,
            if with_totals { width } else { 0 },
            if is_cut { 0 } else { 2 * ROWS * depth },
            if is_cut { 0 } else { 2 * depth * width },
        ];
        with_scratch(lengths, |[sums, totals, wide_left, wide_right]: [&mut [u32]; 4]| {
            let (sums, totals): (&mut [i32], &mut [i32]) =
                (bytemuck::cast_slice_mut(sums), bytemuck::cast_slice_mut(totals));
            assert!(right.len() >= (depth - 1) * pitch + width && sums.len() >= ROWS * width);
            let tile = Tile {
                out: sums.as_mut_ptr(),
                columns: width,
                left: self.rows.ones.as_ptr(),
                row: 1,
                step: 1,
                right: right.as_ptr(),
                pitch,
                depth,
                adds: false,
            };
            if with_totals {
                assert!(self.rows.ones.len() >= depth && totals.len() >= width);
                let tile = Tile { out: totals.as_mut_ptr(), ..tile };
                // SAFETY: a weight is packed where there are the instructions; all lies inside by the assertions.
                unsafe { tile.compute::<1, false>(count) };
            }
            let mut ready = false;
            let end = strips.end;
            for strip in strips {
                let rows = strip * ROWS..(strip * ROWS + ROWS).min(m);
                for row in rows.clone() {
                    (to.fetch)(group * m + row, columns.clone());
                }
                let number = group * m.div_ceil(ROWS) + strip;
                let left = &self.rows.dot_groups[number * ROWS * depth..][..ROWS * depth];
                if strip + 1 < end {
                    // A large weight comes from memory at each run.
                    into_second_cache(&self.rows.dot_groups[(number + 1) * ROWS * depth..][..ROWS * depth]);
                }
                if let Some(rests) = self.rows.rests.of(number) {
                    let tile = Tile { left: left.as_ptr(), step: ROWS, ..tile };
                    // SAFETY: as above.
                    unsafe {
                        tile.compute::<ROWS, false>(count);
                        tile.add_rests(width, rests);
                    }
                } else {
                    if !ready {
                        pairs::widen_to_panels(right, pitch, depth, count, wide_right);
                        ready = true;
                    }
                    pairs::widen(left, ROWS, true, wide_left);
                    let (left, right) = (wide_left.as_ptr(), wide_right.as_ptr());
                    let (step, pitch, depth) = (ROWS, pairs::WIDTH, 2 * depth);
                    // SAFETY: as above, with two lines of pairs for each of dot groups.
                    unsafe {
                        Tile { left, step, right, pitch, depth, ..tile }
                            .compute_wide::<ROWS>(count, depth * pairs::WIDTH);
                    }
                }
                for row in rows {
                    let (sums, row) = (&mut sums[row % ROWS * width..][..count], group * m + row);
                    if let Some(&zero) = self.rows.zeros.get(row).filter(|&&zero| zero != 0) {
                        widest(Shift { sums, zero, totals });
                    }
                    (to.write)(row, columns.clone(), sums, self.first[row]);
                }
            }
        });
    }
}

/// Takes a zero point times the total of each position off the sums of a row.
struct Shift<'a> {
    sums: &'a mut [i32],
    zero: i32,
    totals: &'a [i32],
}

impl Loop for Shift<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let zero = self.zero;
        for (sum, &total) in self.sums.iter_mut().zip(self.totals) {
            *sum = sum.wrapping_sub(total.wrapping_mul(zero));
        }
    }
}
