//! Products with a constant right operand of float16 or bfloat16 numbers that stays as it is in memory: half of what
//! `f32` takes, to keep and, where there are few rows, to read. Numbers are converted in registers.
//!
//! A panel has `COLUMNS` columns, row after row: `[depth, COLUMNS]`. Of bfloat16 numbers a word of 32 bits has those of
//! columns `i` and `i + COLUMNS / 2`, so that a shift and a mask give vectors of neighbouring columns.

use std::ops::Range;

use rten_simd::ops::{BitOps, Extend, IntOps, NumOps};
use rten_simd::{Isa, Simd, SimdOp};

use super::dot::isa::{Bf16Pair, DotGroup};
use super::epilogue::Epilogue;
use super::operand::{Left, Product as Operands};
use super::shape::Matrix;
use super::tile::Shared;
use crate::isa::Dispatch;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;
use crate::tensor::ElementType;
use crate::threads::Pool;

/// Columns of a panel: of float16 numbers a line of a cache.
const COLUMNS: usize = 32;
/// Rows up to which a panel is multiplied as it is.
const FEW: usize = 16;
/// For more rows, columns and depths that are converted at a time, and rows that meet them.
const TILE: usize = 96;
const DEPTHS: usize = 512;
const ROWS: usize = 256;
/// How far ahead of what is multiplied a panel is fetched, in numbers.
const AHEAD: usize = 2048;

/// A right operand.
pub(crate) struct HalfWeight {
    data: Weights<u16>,
    bfloat16: bool,
    k: usize,
    n: usize,
}

/// Whether numbers of this type are better kept: with instructions that convert them, and for bfloat16 numbers without
/// those that multiply them.
pub(crate) fn keeps_halves(ty: ElementType) -> bool {
    match ty {
        ElementType::F16 => converts(),
        ElementType::BF16 => converts() && !Bf16Pair::available(),
        _ => false,
    }
}

impl HalfWeight {
    /// The bits of a `k × n` matrix, or of its transpose.
    pub(super) fn new(
        bits: &[u16],
        bfloat16: bool,
        transposed: bool,
        (k, n): (usize, usize),
        packing: Packing<'_>,
    ) -> Self {
        let size = k * COLUMNS;
        let data = packing.filled(n.div_ceil(COLUMNS) * size, |all| {
            split_mut(packing.pool, all, size, (1 << 15) / size.max(1) + 1, |range, part| {
                for (panel, out) in range.zip(part.chunks_exact_mut(size.max(1))) {
                    let columns = panel * COLUMNS..((panel + 1) * COLUMNS).min(n);
                    for (depth, out) in out.chunks_exact_mut(COLUMNS).enumerate() {
                        for (i, column) in columns.clone().enumerate() {
                            let at = if transposed { column * k + depth } else { depth * n + column };
                            out[place(i, bfloat16)] = bits[at];
                        }
                    }
                }
            });
        });
        HalfWeight { data, bfloat16, k, n }
    }

    /// The product with all of a batch of left operands; its rows go to the epilogue.
    pub(super) fn multiply(&self, pool: &Pool, product: &Operands<'_, f32>, epilogue: &dyn Epilogue<f32>) {
        let rows = product.batch * product.m;
        if rows == 0 || self.n == 0 {
            return;
        }
        match rows <= FEW {
            true => self.few(pool, product, rows, epilogue),
            false => self.many(pool, product, rows, epilogue),
        }
    }

    fn few(&self, pool: &Pool, product: &Operands<'_, f32>, rows: usize, epilogue: &dyn Epilogue<f32>) {
        with_scratch([rows * self.k], |[wide]: [&mut [f32]; 1]| {
            for row in 0..rows {
                load(product, row, 0..self.k, &mut wide[row * self.k..][..self.k]);
            }
            self.times(pool, wide, (rows, product.m), epilogue);
        });
    }

    /// `rows` rows, `each` of which are a matrix, times the panels.
    fn times(&self, pool: &Pool, wide: &[f32], (rows, each): (usize, usize), epilogue: &dyn Epilogue<f32>) {
        let most = if vector_len() == 16 { 4 } else { 2 };
        let grain = (1 << 17) / (self.k * COLUMNS * rows).max(1) + 1;
        pool.split(self.n.div_ceil(COLUMNS), grain, |range| {
            for at in range {
                let panel = &self.data[at * self.k * COLUMNS..][..self.k * COLUMNS];
                let columns = at * COLUMNS..((at + 1) * COLUMNS).min(self.n);
                let mut row = 0;
                while row < rows {
                    let (k, bfloat16, a) = (self.k, self.bfloat16, &wide[row * self.k..]);
                    let mut sums = [[0.0; COLUMNS]; 4];
                    let count = match (rows - row).min(most) {
                        1 => {
                            sums[..1].copy_from_slice(&Product::<1> { panel, a, k, bfloat16 }.widest());
                            1
                        }
                        2 | 3 => {
                            sums[..2].copy_from_slice(&Product::<2> { panel, a, k, bfloat16 }.widest());
                            2
                        }
                        _ => {
                            sums = Product::<4> { panel, a, k, bfloat16 }.widest();
                            4
                        }
                    };
                    for (row, sums) in (row..row + count).zip(&mut sums) {
                        let sums = &mut sums[..columns.len()];
                        epilogue.write(row / each, row % each, columns.start, sums);
                    }
                    row += count;
                }
            }
        });
    }

    /// Tiles of the result, whose columns are converted some depths at a time.
    fn many(&self, pool: &Pool, product: &Operands<'_, f32>, rows: usize, epilogue: &dyn Epilogue<f32>) {
        let (k, n) = (self.k, self.n);
        let (row_blocks, column_blocks) = (rows.div_ceil(ROWS), n.div_ceil(TILE));
        let block = rows.div_ceil(row_blocks);
        pool.for_each(row_blocks * column_blocks, &|at| {
            // Neighbouring tiles have the same columns.
            let (row, column) = (at % row_blocks * block, at / row_blocks * TILE);
            let (rows, columns) = (row..(row + block).min(rows), column..(column + TILE).min(n));
            let depth = DEPTHS.min(k);
            let room = Shared::<f32>::scratch_len(depth, columns.len());
            let lengths = [room, rows.len() * depth, rows.len() * columns.len()];
            with_scratch(lengths, |[room, wide, sums]: [&mut [f32]; 3]| {
                if k == 0 {
                    sums.fill(0.0);
                }
                for start in (0..k).step_by(DEPTHS) {
                    let depths = start..(start + DEPTHS).min(k);
                    let wide = &mut wide[..rows.len() * depths.len()];
                    for (row, wide) in rows.clone().zip(wide.chunks_exact_mut(depths.len())) {
                        load(product, row, depths.clone(), wide);
                    }
                    let b = Shared::of_panels(depths.len(), columns.len(), room, |panel, out| {
                        let own = columns.start + panel.start..(columns.start + panel.end).min(columns.end);
                        self.convert(own, depths.clone(), panel.len(), out);
                    });
                    b.multiply(sums, rows.len(), Matrix::new(&*wide, depths.len()), start > 0);
                }
                for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(columns.len())) {
                    epilogue.write(row / product.m, row % product.m, columns.start, sums);
                }
            });
        });
    }

    /// Writes some columns as `f32`, of each depth `width` numbers.
    fn convert(&self, columns: Range<usize>, depths: Range<usize>, width: usize, out: &mut [f32]) {
        let mut column = columns.start;
        while column < columns.end {
            let (panel, first) = (column / COLUMNS, column % COLUMNS);
            let count = (COLUMNS - first).min(columns.end - column);
            let panel = &self.data[(panel * self.k + depths.start) * COLUMNS..][..depths.len() * COLUMNS];
            let (own, at) = (first..first + count, column - columns.start);
            Lines { panel, bfloat16: self.bfloat16, columns: own, at, width, out }.widest();
            column += count;
        }
    }
}

/// Where a column of a panel lies in its rows.
fn place(column: usize, bfloat16: bool) -> usize {
    if bfloat16 { column % (COLUMNS / 2) * 2 + column / (COLUMNS / 2) } else { column }
}

/// Whether the processor has instructions for what else were many of them for a number.
fn converts() -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::isa::has_avx2();
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}

/// Writes a part of a row of the left operand, counted over all of the batch.
fn load(product: &Operands<'_, f32>, row: usize, depths: Range<usize>, out: &mut [f32]) {
    let (batch, row) = (row / product.m, row % product.m);
    match product.a {
        Left::Source(source) => source.fill(batch, row..row + 1, depths, out),
        Left::Plain(Matrix { data, row_stride, column_stride }, offsets) => {
            let start = offsets.at(batch) + row * row_stride;
            out.iter_mut().zip(depths).for_each(|(y, depth)| *y = data[start + depth * column_stride]);
        }
        Left::Packed(..) => unreachable!("both operands of a product are packed"),
    }
}

/// A panel times `M` rows of `k` numbers.
struct Product<'a, const M: usize> {
    panel: &'a [u16],
    a: &'a [f32],
    k: usize,
    bfloat16: bool,
}

impl<const M: usize> SimdOp for Product<'_, M> {
    type Output = [[f32; COLUMNS]; M];

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> Self::Output {
        match (isa.f32().len(), self.bfloat16) {
            (16, false) => self.sums::<I, 2, false>(isa),
            (16, true) => self.sums::<I, 2, true>(isa),
            (8, false) => self.sums::<I, 4, false>(isa),
            (8, true) => self.sums::<I, 4, true>(isa),
            (_, false) => self.sums::<I, 8, false>(isa),
            (_, true) => self.sums::<I, 8, true>(isa),
        }
    }
}

impl<const M: usize> Product<'_, M> {
    #[inline(always)]
    fn sums<I: Isa, const V: usize, const BFLOAT16: bool>(self, isa: I) -> [[f32; COLUMNS]; M] {
        let ops = isa.f32();
        let len = COLUMNS / V;
        assert!(ops.len() == len && self.panel.len() == self.k * COLUMNS && self.a.len() >= M * self.k);
        // Those of even and of odd depths: an addition waits for the one before.
        let mut sums = [[[ops.zero(); V]; M]; 2];
        for pair in 0..self.k / 2 {
            for (i, sums) in sums.iter_mut().enumerate() {
                let depth = 2 * pair + i;
                ops.prefetch(self.panel.as_ptr().wrapping_add(depth * COLUMNS + AHEAD).cast());
                self.add::<I, V, BFLOAT16>(isa, depth, sums);
            }
        }
        if self.k % 2 == 1 {
            self.add::<I, V, BFLOAT16>(isa, self.k - 1, &mut sums[0]);
        }
        let mut out = [[0.0; COLUMNS]; M];
        for m in 0..M {
            for v in 0..V {
                ops.store(ops.add(sums[0][m][v], sums[1][m][v]), &mut out[m][v * len..][..len]);
            }
        }
        out
    }

    /// Adds the products of one depth.
    #[inline(always)]
    fn add<I: Isa, const V: usize, const BFLOAT16: bool>(
        &self,
        isa: I,
        depth: usize,
        sums: &mut [[I::F32; V]; M],
    ) {
        let ops = isa.f32();
        let row = &self.panel[depth * COLUMNS..][..COLUMNS];
        // SAFETY: the row is whole.
        let line = unsafe { vectors::<I, V, BFLOAT16>(isa, row.as_ptr()) };
        for (m, sums) in sums.iter_mut().enumerate() {
            let a = ops.splat(self.a[m * self.k + depth]);
            for v in 0..V {
                sums[v] = ops.mul_add(a, line[v], sums[v]);
            }
        }
    }
}

/// A row of a panel as vectors of neighbouring columns.
///
/// # Safety
/// `at` must be valid for `COLUMNS` numbers.
#[inline(always)]
unsafe fn vectors<I: Isa, const V: usize, const BFLOAT16: bool>(isa: I, at: *const u16) -> [I::F32; V] {
    let (ops, ints, halves) = (isa.f32(), isa.i32(), isa.f16());
    let len = COLUMNS / V;
    let mut line = [ops.zero(); V];
    for h in 0..V / 2 {
        // SAFETY: all vectors lie within the row, by the caller's promise.
        unsafe {
            if BFLOAT16 {
                let words = ints.load_ptr(at.add(h * 2 * len).cast());
                line[h] = ints.shift_left::<16>(words).reinterpret_cast();
                line[V / 2 + h] = ints.and(words, ints.splat(!0xffff)).reinterpret_cast();
            } else {
                let pair = halves.load_ptr(at.add(h * 2 * len).cast());
                line[2 * h] = halves.extend_low(pair);
                line[2 * h + 1] = halves.extend_high(pair);
            }
        }
    }
    line
}

/// Converts some columns of a panel's rows.
struct Lines<'a> {
    panel: &'a [u16],
    bfloat16: bool,
    columns: Range<usize>,
    /// Where the first column goes, and how far apart rows are.
    at: usize,
    width: usize,
    out: &'a mut [f32],
}

impl SimdOp for Lines<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        match (isa.f32().len(), self.bfloat16) {
            (16, false) => self.convert::<I, 2, false>(isa),
            (16, true) => self.convert::<I, 2, true>(isa),
            (8, false) => self.convert::<I, 4, false>(isa),
            (8, true) => self.convert::<I, 4, true>(isa),
            (_, false) => self.convert::<I, 8, false>(isa),
            (_, true) => self.convert::<I, 8, true>(isa),
        }
    }
}

impl Lines<'_> {
    #[inline(always)]
    fn convert<I: Isa, const V: usize, const BFLOAT16: bool>(self, isa: I) {
        let (ops, len) = (isa.f32(), COLUMNS / V);
        assert_eq!(ops.len(), len, "vectors of a row");
        let Range { start, end } = self.columns;
        for (row, out) in self.panel.chunks_exact(COLUMNS).zip(self.out.chunks_mut(self.width)) {
            // SAFETY: the row is whole.
            let vectors = unsafe { vectors::<I, V, BFLOAT16>(isa, row.as_ptr()) };
            let out = &mut out[self.at..][..end - start];
            for (v, vector) in vectors.into_iter().enumerate() {
                let own = v * len..(v + 1) * len;
                if start <= own.start && own.end <= end {
                    ops.store(vector, &mut out[own.start - start..][..len]);
                } else if start < own.end && own.start < end {
                    let mut part = [0.0; COLUMNS];
                    ops.store(vector, &mut part[own.clone()]);
                    let wanted = own.start.max(start)..own.end.min(end);
                    out[wanted.start - start..wanted.end - start].copy_from_slice(&part[wanted]);
                }
            }
        }
    }
}
