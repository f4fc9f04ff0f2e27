//! The products of a convolution of pairs.

use std::ops::Range;

use super::{BLOCK, CACHED, GRAIN, MANY, PairRows, Plan, ROWS};
use crate::conv::Patches;
use crate::gemm::Source;
use crate::gemm::pairs::{self, Tile};
use crate::kernel::KernelContext;
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};

/// Takes the sums of a row at some positions.
pub(super) type Write<'a> = dyn Fn(usize, Range<usize>, &mut [i32]) + Sync + 'a;

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
        let Plan { table, dot_groups, channels, .. } = self.plan;
        let (plane, count) = (table.plane(), self.rows.groups * dot_groups);
        if plane == 0 {
            return;
        }
        split_mut(cx.pool, &mut planes[..count * plane], plane, (1 << 15) / plane + 1, |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(plane)) {
                let (group, first) = (i / dot_groups, i % dot_groups * 4);
                // In the place of channels that are missing, whose weights are 0, the last one.
                let lines = [0, 1, 2, 3].map(|j| {
                    let channel = group * channels + (first + j).min(channels - 1);
                    &image[channel * plane..][..plane]
                });
                widest(Interleave { lines, flip: u32::from_le_bytes([self.flip; 4]), out });
            }
        });
    }

    /// Gives sums to `write`: row, positions, sums.
    pub(super) fn multiply(&self, cx: &KernelContext<'_>, planes: &[u32], write: &Write<'_>) {
        let &PairRows { groups, m, depth, .. } = self.rows;
        if let (Some(rows), Some(tiling)) = (&self.rows.winograd, &self.plan.tiling) {
            let planes = (planes, u32::from_le_bytes([self.zero; 4]));
            return rows.multiply(cx.pool, tiling, planes, &|row, columns, sums| {
                widest(Begin { sums, first: self.first[row] });
                write(row, columns, sums);
            });
        }
        let (strips, threads) = (m.div_ceil(ROWS), cx.pool.threads());
        // An odd number of widths: lines that are a power of two apart would share places in the caches.
        // Pairs of what is gathered lie beside it.
        let words = depth * if self.rows.is_cut { 1 } else { 3 };
        let widths = (CACHED / (words * pairs::WIDTH)).clamp(BLOCK.0, BLOCK.1);
        let most = (widths - (widths + 1) % 2) * pairs::WIDTH;
        let wanted = (m * depth * 4 * self.columns / GRAIN).clamp(1, 2 * threads);
        // Blocks are whole vectors. Those of few would differ too much: threads have parts of the strips then, which is also
        // less of a large weight to read for each.
        let widths = self.columns.div_ceil(pairs::WIDTH);
        // Measured with two threads. Many would gather more than once, for each part of the strips, what is less than their weight.
        let least = if threads > MANY && m * depth < CACHED { 1 } else { BLOCK.0 };
        let shares = if threads > 1 { wanted.div_ceil(groups).min(widths / least) } else { 1 };
        let blocks = self.columns.div_ceil(most).max(shares);
        let parts = wanted.div_ceil(groups * blocks).clamp(1, strips);
        let work = m * depth * 4 * self.columns / (blocks * parts);
        cx.pool.split(groups * blocks * parts, GRAIN.div_ceil(work.max(1)), |range| {
            for i in range.take_while(|_| !cx.pool.cancelled()) {
                let (group, i) = (i / (blocks * parts), i % (blocks * parts));
                let (block, part) = (i / parts, i % parts);
                let start = |block: usize| (widths * block / blocks * pairs::WIDTH).min(self.columns);
                let strips = strips * part / parts..strips * (part + 1) / parts;
                self.block(planes, group, strips, start(block)..start(block + 1), write);
            }
        });
    }

    fn block(
        &self,
        planes: &[u32],
        group: usize,
        strips: Range<usize>,
        columns: Range<usize>,
        write: &Write<'_>,
    ) {
        let (&PairRows { m, depth, is_cut, .. }, Plan { table, dot_groups, in_place, .. }) =
            (self.rows, self.plan);
        let (plane, count) = (table.plane(), columns.len());
        let width = count.next_multiple_of(pairs::WIDTH);
        let pitch = width + (width / pairs::WIDTH + 1) % 2 * pairs::WIDTH;
        let with_totals = !self.rows.zeros.is_empty();
        let lengths = [
            if *in_place { 0 } else { depth * pitch },
            ROWS * width,
            if with_totals { width } else { 0 },
            if is_cut { 0 } else { 2 * ROWS * depth },
            if is_cut { 0 } else { 2 * depth * width },
        ];
        with_scratch(lengths, |[gathered, sums, totals, wide_left, wide_right]: [&mut [u32]; 5]| {
            let (sums, totals): (&mut [i32], &mut [i32]) =
                (bytemuck::cast_slice_mut(sums), bytemuck::cast_slice_mut(totals));
            let patches = Patches {
                table,
                images: planes,
                channels: *dot_groups,
                interleaved: None,
                load: |x: u32| x,
                padding: u32::from_le_bytes([self.zero; 4]),
            };
            for (row, out) in gathered.chunks_exact_mut(pitch).enumerate() {
                patches.fill(group, row..row + 1, columns.clone(), &mut out[..count]);
            }
            let (right, pitch) = match in_place {
                true => (&planes[group * dot_groups * plane + columns.start..], plane),
                false => (&*gathered, pitch),
            };
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
            };
            if with_totals {
                assert!(self.rows.ones.len() >= depth && totals.len() >= width);
                let tile = Tile { out: totals.as_mut_ptr(), ..tile };
                // SAFETY: a weight is packed where there are the instructions; all lies inside by the assertions.
                unsafe { tile.compute::<1, false, true>(count) };
            }
            let mut ready = false;
            for strip in strips {
                let number = group * m.div_ceil(ROWS) + strip;
                let left = &self.rows.dot_groups[number * ROWS * depth..][..ROWS * depth];
                if let Some(rests) = self.rows.rests.of(number) {
                    let tile = Tile { left: left.as_ptr(), step: ROWS, ..tile };
                    // SAFETY: as above.
                    unsafe {
                        tile.compute::<ROWS, false, true>(count);
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
                for row in strip * ROWS..(strip * ROWS + ROWS).min(m) {
                    let (sums, row) = (&mut sums[row % ROWS * width..][..count], group * m + row);
                    let first = self.first[row];
                    match self.rows.zeros.get(row) {
                        Some(&zero) if zero != 0 => widest(BeginShifted { sums, first, zero, totals }),
                        _ => widest(Begin { sums, first }),
                    }
                    write(row, columns.clone(), sums);
                }
            }
        });
    }
}

/// Makes dot groups of bytes of four lines.
struct Interleave<'a> {
    lines: [&'a [u8]; 4],
    flip: u32,
    out: &'a mut [u32],
}

impl Loop for Interleave<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Interleave { lines: [a, b, c, d], flip, out } = self;
        let n = out.len();
        let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
        for j in 0..n {
            out[j] = flip ^ u32::from_le_bytes([a[j], b[j], c[j], d[j]]);
        }
    }
}

/// Adds what the sums of a row begin with.
struct Begin<'a> {
    sums: &'a mut [i32],
    first: i32,
}

impl Loop for Begin<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.sums.iter_mut().for_each(|sum| *sum = sum.wrapping_add(self.first));
    }
}

/// The same, less a zero point times the total of each position.
struct BeginShifted<'a> {
    sums: &'a mut [i32],
    first: i32,
    zero: i32,
    totals: &'a [i32],
}

impl Loop for BeginShifted<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (first, zero) = (self.first, self.zero);
        for (sum, &total) in self.sums.iter_mut().zip(self.totals) {
            *sum = sum.wrapping_add(first).wrapping_sub(total.wrapping_mul(zero));
        }
    }
}
