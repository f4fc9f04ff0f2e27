//! The output transform `Aᵀ · sums · A`: as vectors of tiles, then as lines.

use std::ops::Range;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::tiling::{TileSize, Tiling, times};
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::masks::{LONGEST, Masks};

/// Transforms the sums of some output channels into outputs.
pub(crate) struct OutputTransform<'a> {
    pub(crate) tiling: &'a Tiling,
    /// For each element of a transformed tile, a matrix of a row for each channel from the `first` on; and a vector more.
    pub(crate) sums: &'a [f32],
    /// Elements from one of these matrices to the next.
    pub(crate) step: usize,
    pub(crate) first: usize,
    /// The channels to write.
    pub(crate) rows: Range<usize>,
    pub(crate) epilogue: F32Epilogue<'a>,
    /// As `scratch_lens` says.
    pub(crate) scratch: &'a mut [f32],
}

pub(crate) fn scratch_len(tiling: &Tiling) -> usize {
    let m = tiling.size.outputs();
    m * m * (tiling.count() + LONGEST)
}

impl SimdOp for OutputTransform<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match self.tiling.size {
            TileSize::Small => self.run::<I, 2, 4>(isa),
            TileSize::Large => self.run::<I, 4, 6>(isa),
        }
    }
}

impl OutputTransform<'_> {
    /// For tiles of `M` outputs and `N` inputs along each axis.
    #[inline(always)]
    fn run<I: Isa, const M: usize, const N: usize>(self, isa: I) {
        let OutputTransform { tiling, sums, step, first, rows, epilogue, scratch } = self;
        let ops = isa.f32();
        let masks = Masks::new(isa);
        let ([height, width], count) = (tiling.output, tiling.count());
        let across = tiling.tiles[1];
        let of_line = M * (count + LONGEST);
        for row in rows {
            for t in (0..count).step_by(ops.len()) {
                let from = (row - first) * count + t;
                let mut columns = [[ops.zero(); M]; N];
                for (j, column) in columns.iter_mut().enumerate() {
                    let mut transformed = [ops.zero(); N];
                    for (i, number) in transformed.iter_mut().enumerate() {
                        *number = ops.load(&sums[(i * N + j) * step + from..]);
                    }
                    *column = transform(isa, transformed);
                }
                for (i, line) in (0..M).zip(scratch.chunks_exact_mut(of_line)) {
                    let mut transformed = [ops.zero(); N];
                    for (number, column) in transformed.iter_mut().zip(&columns) {
                        *number = column[i];
                    }
                    interleave(isa, transform::<I, N, M>(isa, transformed), &mut line[M * t..]);
                }
            }
            let at = epilogue.start + row * epilogue.columns;
            // SAFETY: every part of an output channel is computed once.
            let out = unsafe { epilogue.out.get(at..at + height * width) };
            for (y, out) in out.chunks_exact_mut(width).enumerate() {
                let line = &scratch[y % M * of_line + y / M * M * across..][..width];
                epilogue.line(isa, &masks, line, row, at + y * width, out);
            }
        }
    }
}

/// One of each vector in turn.
#[inline(always)]
fn interleave<I: Isa, const M: usize>(isa: I, values: [I::F32; M], out: &mut [f32]) {
    let ops = isa.f32();
    let mut arrays = [[0.0; LONGEST]; M];
    for (array, value) in arrays.iter_mut().zip(values) {
        ops.store(value, array);
    }
    let out = &mut out[..M * LONGEST];
    for k in 0..LONGEST {
        for i in 0..M {
            out[M * k + i] = arrays[i][k];
        }
    }
}

/// `Aᵀ` times a column.
#[inline(always)]
pub(super) fn transform<I: Isa, const N: usize, const M: usize>(isa: I, x: [I::F32; N]) -> [I::F32; M] {
    let ops = isa.f32();
    let mut y = [ops.zero(); M];
    if N == 4 {
        y[0] = ops.add(ops.add(x[0], x[1]), x[2]);
        y[1] = ops.add(ops.sub(x[1], x[2]), x[3]);
        return y;
    }
    let (s, d) = (ops.add(x[1], x[2]), ops.sub(x[1], x[2]));
    y[0] = ops.add(ops.add(x[0], s), ops.add(x[3], x[4]));
    y[1] = times(isa, -2.0, x[4], times(isa, 0.5, x[3], d));
    y[2] = times(isa, 4.0, x[4], times(isa, 0.25, x[3], s));
    y[3] = times(isa, -8.0, x[4], times(isa, 0.125, x[3], ops.add(d, x[5])));
    y
}
