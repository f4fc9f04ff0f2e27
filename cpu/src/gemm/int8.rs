//! Exact products of 8-bit integers: with the processor's dot products of bytes, or by pairs with AVX2, where it is known to
//! have them (`dot::int8`); else by the crate `rten-gemm`, or in `f32` where the crate's would saturate (`exact`).

use std::ops::Range;

use rten_gemm::{GemmExecutor, GemmInputA, GemmInputB, GemmOptions, QuantParams};
use rten_tensor::NdTensorView;

use super::dot::int8::{Int8Right, LONGEST, byte_products, multiply_dots};
use super::epilogue::Epilogue;
use super::exact::{Accumulate, multiply_exact};
use super::int8_row::Row;
use super::operand::{ByteMatrix, Source};
use super::shape::GemmShape;
use crate::isa::{self, Level};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::threads::Pool;

/// Blocks of the product, of which one thread computes one.
const ROWS: usize = 256;
const COLUMNS: usize = 512;
const DEPTH: usize = 1024;
/// Multiplications worth handing to another thread: about 20 µs of work.
const GRAIN: usize = 1 << 21;

type Executor = GemmExecutor<u8, i8, i32>;

thread_local! {
    /// The kernels for this processor. The crate does not let threads share them.
    static EXECUTOR: Executor = executor();
}

/// The kernels, after one product of the largest block: the crate's buffers on this thread have their final
/// size then, and no later product allocates.
fn executor() -> Executor {
    let executor = Executor::default();
    let mut out = vec![0; ROWS * COLUMNS];
    // On the heap: arrays would be constants of the library, almost a megabyte of zeros.
    let (a, b) = (vec![0; ROWS * DEPTH], vec![0; DEPTH * COLUMNS]);
    multiply_block(&executor, &mut out, &a, &b, &[0; ROWS], &[0; COLUMNS], false);
    executor
}

/// Writes the batch of products `a · b` to `out`, `m × n` elements each.
pub(crate) fn multiply_bytes<S: Accumulate>(
    pool: &Pool,
    shape: GemmShape,
    a: &dyn ByteMatrix,
    b: &dyn ByteMatrix,
    out: &mut [S],
) {
    let GemmShape { m, n, k, .. } = shape;
    // The first that fits.
    if m > 1 && byte_products(k) {
        // A row alone is bound by reading the right operand, which packing does as well.
        let (right, sums) = (Int8Right { matrix: b, packed: None, bias: &[] }, ByteSums::new(out, m, n));
        multiply_dots(pool, shape, a, &right, &sums);
    } else if k > LONGEST || m > 1 && saturates() {
        // Sums that may not fit into 32 bits, and where the crate's products would saturate; those of a row alone are
        // not the crate's.
        let (a, b) = (Floats { bytes: a, left: true }, Floats { bytes: b, left: false });
        multiply_exact(pool, shape, &a, &b, out);
    } else {
        multiply_integers(pool, shape, a, b, out);
    }
}

/// Whether the crate's products may saturate here: they do where it adds pairs of products in 16 bits, as it does with AVX2.
/// With AVX2 this is asked only where `RUKH_CPU_ISA`, which the crate does not read, hides it from `byte_products`.
fn saturates() -> bool {
    (cfg!(target_arch = "x86_64") && isa::limit() < Level::Avx512Dot) || EXECUTOR.with(Executor::may_saturate)
}

fn multiply_integers<S: Accumulate>(
    pool: &Pool,
    shape: GemmShape,
    a: &dyn ByteMatrix,
    b: &dyn ByteMatrix,
    out: &mut [S],
) {
    if shape.is_empty() {
        return;
    }
    let GemmShape { m, n, k, .. } = shape;
    let (rows, columns) = tile_size(shape, pool.threads());
    let out = Parts::new(out);
    let work = rows * columns * k.max(1);
    pool.split(shape.tiles(rows, columns), GRAIN.div_ceil(work), |range| {
        for tile in range.take_while(|_| !pool.cancelled()) {
            let (t, rows, columns) = shape.tile((rows, columns), tile);
            with_tile(a, b, t, (&rows, &columns), k, |sums| {
                for (i, sums) in rows.clone().zip(sums.chunks_exact(columns.len())) {
                    let at = (t * m + i) * n + columns.start;
                    // SAFETY: tiles do not overlap, and each is computed once.
                    widest(Store { out: unsafe { out.get(at..at + sums.len()) }, sums });
                }
            });
        }
    });
}

/// Rows and columns of a tile: large, but enough tiles for all threads.
fn tile_size(shape: GemmShape, threads: usize) -> (usize, usize) {
    let wanted = (shape.work() / GRAIN).clamp(1, threads * 2);
    let even =
        |count: usize, most: usize| count.div_ceil(count.div_ceil(most)).next_multiple_of(32).min(most);
    let (mut rows, mut columns) = (even(shape.m, ROWS), even(shape.n, COLUMNS));
    while shape.tiles(rows, columns) < wanted {
        if columns > 128 && columns * 2 > rows {
            columns = (columns / 2).next_multiple_of(32);
        } else if rows > 32 {
            rows = (rows / 2).next_multiple_of(32);
        } else {
            break;
        }
    }
    (rows, columns)
}

/// Computes a tile in the thread's scratch.
fn with_tile(
    a: &dyn ByteMatrix,
    b: &dyn ByteMatrix,
    batch: usize,
    (rows, columns): (&Range<usize>, &Range<usize>),
    k: usize,
    body: impl FnOnce(&[i32]),
) {
    let (m, n, depth) = (rows.len(), columns.len(), DEPTH.min(k));
    let lengths = [m * n, (m * depth).div_ceil(4), (n * depth).div_ceil(4), m.div_ceil(4), n.div_ceil(4)];
    with_scratch(lengths, |[sums, a_block, b_block, a_zeros, b_zeros]: [&mut [i32]; 5]| {
        let (a_zeros, b_zeros) = (bytes(a_zeros, m), bytes(b_zeros, n));
        a_zeros.iter_mut().zip(rows.clone()).for_each(|(zero, i)| *zero = a.zero(batch, i, false));
        b_zeros.iter_mut().zip(columns.clone()).for_each(|(zero, j)| *zero = b.zero(batch, j, true));
        if k == 0 {
            sums.fill(0);
        }
        for start in (0..k).step_by(DEPTH) {
            let depths = start..(start + DEPTH).min(k);
            let a_block = bytes(a_block, m * depths.len());
            let b_block = bytes(b_block, n * depths.len());
            a.fill(batch, rows.clone(), depths.clone(), false, a_block);
            b.fill(batch, depths, columns.clone(), true, b_block);
            let (b_block, b_zeros) = (bytemuck::cast_slice(b_block), bytemuck::cast_slice(b_zeros));
            match m {
                1 => {
                    widest(Row { sums, a: a_block, b: b_block, a_zero: a_zeros[0], b_zeros, add: start > 0 })
                }
                _ => {
                    EXECUTOR.with(|e| multiply_block(e, sums, a_block, b_block, a_zeros, b_zeros, start > 0))
                }
            }
        }
        body(sums);
    });
}

fn bytes(integers: &mut [i32], count: usize) -> &mut [u8] {
    &mut bytemuck::cast_slice_mut(integers)[..count]
}

fn multiply_block(
    executor: &Executor,
    out: &mut [i32],
    a: &[u8],
    b: &[i8],
    a_zeros: &[u8],
    b_zeros: &[i8],
    add: bool,
) {
    let (m, n) = (a_zeros.len(), b_zeros.len());
    let depth = a.len() / m;
    // The crate takes different zero points of rows or columns amiss beyond as many as it computes at once, which is
    // eight on some processors.
    let (same_rows, same_columns) =
        (a_zeros.iter().all(|&zero| zero == a_zeros[0]), b_zeros.iter().all(|&zero| zero == b_zeros[0]));
    let (left, right) = (NdTensorView::from_data([m, depth], a), NdTensorView::from_data([depth, n], b));
    let options = GemmOptions {
        beta: i32::from(add),
        a_quant: same_rows.then_some(QuantParams { zero_point: a_zeros }),
        b_quant: same_columns.then_some(QuantParams { zero_point: b_zeros }),
        ..GemmOptions::default()
    };
    if let Err(error) = executor.gemm(out, GemmInputA::Unpacked(left), GemmInputB::Unpacked(right), options) {
        // Extents are ours: an error is a defect of the library.
        panic!("a product of {m} × {depth} × {n}: {error}");
    }
    if !same_columns {
        take_columns_off(out, a, if same_rows { a_zeros[0] } else { 0 }, b_zeros);
    }
    if !same_rows {
        take_rows_off(out, b, a_zeros, b_zeros);
    }
}

/// Takes the zero point of each column times the sums of the rows of `a` off a product.
fn take_columns_off(out: &mut [i32], a: &[u8], a_zero: u8, b_zeros: &[i8]) {
    let n = b_zeros.len();
    let depth = a.len() / (out.len() / n);
    for (out, a) in out.chunks_exact_mut(n).zip(a.chunks_exact(depth)) {
        let total: i32 = a.iter().map(|&x| i32::from(x) - i32::from(a_zero)).sum();
        out.iter_mut().zip(b_zeros).for_each(|(out, &zero)| *out -= i32::from(zero) * total);
    }
}

/// Takes the zero point of each row times the sums of the columns of `b` off a product.
fn take_rows_off(out: &mut [i32], b: &[i8], a_zeros: &[u8], b_zeros: &[i8]) {
    let n = b_zeros.len();
    for (j, &zero) in b_zeros.iter().enumerate() {
        let total: i32 = b.iter().skip(j).step_by(n).map(|&x| i32::from(x) - i32::from(zero)).sum();
        for (out, &zero) in out.chunks_exact_mut(n).zip(a_zeros) {
            out[j] -= i32::from(zero) * total;
        }
    }
}

/// Stores sums as they are.
pub(crate) struct ByteSums<'a, S> {
    out: Parts<'a, S>,
    m: usize,
    n: usize,
}

impl<'a, S> ByteSums<'a, S> {
    /// In row-major `m × n` matrices.
    pub(crate) fn new(out: &'a mut [S], m: usize, n: usize) -> Self {
        ByteSums { out: Parts::new(out), m, n }
    }
}

impl<S: Accumulate> Epilogue<i32> for ByteSums<'_, S> {
    fn write(&self, batch: usize, row: usize, start: usize, sums: &mut [i32]) {
        let at = (batch * self.m + row) * self.n + start;
        // SAFETY: a product gives each of its sums once.
        widest(Store { out: unsafe { self.out.get(at..at + sums.len()) }, sums });
    }
}

struct Store<'a, S> {
    out: &'a mut [S],
    sums: &'a [i32],
}

impl<S: Accumulate> Loop for Store<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.out.iter_mut().zip(self.sums).for_each(|(y, &x)| *y = S::of(x));
    }
}

/// Bytes less their zero points, as floats.
struct Differences<'a> {
    out: &'a mut [f32],
    bytes: &'a [u8],
    zeros: &'a [u8],
}

impl Loop for Differences<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let numbers = self.bytes.iter().zip(self.zeros);
        for (y, (&x, &zero)) in self.out.iter_mut().zip(numbers) {
            *y = (i32::from(x) - i32::from(zero)) as f32;
        }
    }
}

/// The differences, in `f32`.
struct Floats<'a> {
    bytes: &'a dyn ByteMatrix,
    left: bool,
}

impl Source<f32> for Floats<'_> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [f32]) {
        if columns.is_empty() {
            return;
        }
        // Those of all columns once, not again with each row.
        with_scratch([columns.len(); 2], |[line, zeros]: [&mut [u8]; 2]| {
            if !self.left {
                let each = zeros.iter_mut().zip(columns.clone());
                each.for_each(|(zero, j)| *zero = self.bytes.zero(batch, j, false));
            }
            for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
                self.bytes.fill(batch, row..row + 1, columns.clone(), false, line);
                if self.left {
                    zeros.fill(self.bytes.zero(batch, row, false));
                }
                widest(Differences { out, bytes: line, zeros });
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of unsigned bytes, with a zero point for each row (or column).
    struct Table {
        data: Vec<u8>,
        columns: usize,
        zeros: Vec<u8>,
    }

    impl ByteMatrix for Table {
        fn fill(&self, _: usize, rows: Range<usize>, columns: Range<usize>, signed: bool, out: &mut [u8]) {
            let elements = rows.flat_map(|i| columns.clone().map(move |j| i * self.columns + j));
            out.iter_mut().zip(elements).for_each(|(y, i)| *y = self.data[i] ^ (u8::from(signed) << 7));
        }

        fn zero(&self, _: usize, at: usize, signed: bool) -> u8 {
            self.zeros[at] ^ (u8::from(signed) << 7)
        }
    }

    /// Against the definition: both ways, more than a block in each direction, and the largest differences.
    #[test]
    fn both_ways_are_exact() {
        let pool = Pool::new(2);
        let byte = |i: usize| (i * 131 % 257 % 256) as u8;
        for (m, n, k) in [(1, 1, 1), (1, 700, 1030), (3, 5, 0), (2, 33, 2000), (300, 600, 67), (64, 9, 5)] {
            let a =
                Table { data: (0..m * k).map(byte).collect(), columns: k, zeros: (0..m).map(byte).collect() };
            let b = Table {
                data: (0..k * n).map(|i| byte(i / 3 + 7)).collect(),
                columns: n,
                zeros: (0..n).map(|j| if j % 2 == 0 { 255 } else { byte(j * j) }).collect(),
            };
            let less = |table: &Table, i: usize, zero: usize| {
                i64::from(table.data[i]) - i64::from(table.zeros[zero])
            };
            let sum = |i: usize, j: usize| {
                (0..k).map(|p| less(&a, i * k + p, i) * less(&b, p * n + j, j)).sum::<i64>()
            };
            let want: Vec<i64> = (0..m * n).map(|i| sum(i / n, i % n)).collect();
            let (mut ints, mut floats, mut wide) =
                (vec![7i32; m * n], vec![7i32; m * n], vec![7.0f64; m * n]);
            let shape = GemmShape { batch: 1, m, n, k };
            match saturates() {
                // What the library never does here.
                true => multiply_bytes(&pool, shape, &a, &b, &mut ints),
                false => multiply_integers(&pool, shape, &a, &b, &mut ints),
            }
            multiply_bytes(&pool, shape, &a, &b, &mut wide);
            let (a, b) = (Floats { bytes: &a, left: true }, Floats { bytes: &b, left: false });
            multiply_exact(&pool, shape, &a, &b, &mut floats);
            assert!(ints.iter().zip(&want).all(|(&x, &y)| i64::from(x) == y), "{m} × {n} × {k}");
            assert!(wide.iter().zip(&want).all(|(&x, &y)| x == y as f64), "{m} × {n} × {k}");
            assert_eq!(ints, floats);
        }
    }

    /// The crate's products alone, which few processors are left to. Numbers are so small that none saturates.
    #[test]
    fn every_row_and_column_has_its_zero_point() {
        let executor = Executor::default();
        let (m, n, depth) = (37, 90, 29);
        let small = |i: usize| i * i % 23;
        let a: Vec<u8> = (0..m * depth).map(|i| small(i) as u8).collect();
        let b: Vec<i8> = (0..depth * n).map(|i| small(i + 5) as i8 - 11).collect();
        for (rows_differ, columns_differ) in [(false, false), (true, false), (false, true), (true, true)] {
            let a_zeros: Vec<u8> = (0..m).map(|i| if rows_differ { small(i) as u8 } else { 9 }).collect();
            let b_zeros: Vec<i8> =
                (0..n).map(|j| if columns_differ { small(j + 2) as i8 - 7 } else { -3 }).collect();
            let mut out = vec![1; m * n];
            multiply_block(&executor, &mut out, &a, &b, &a_zeros, &b_zeros, true);
            for (at, &got) in out.iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let term = |k: usize| {
                    (i32::from(a[i * depth + k]) - i32::from(a_zeros[i]))
                        * (i32::from(b[k * n + j]) - i32::from(b_zeros[j]))
                };
                let want = 1 + (0..depth).map(term).sum::<i32>();
                assert_eq!(got, want, "row {i}, column {j}; differ {rows_differ} {columns_differ}");
            }
        }
    }
}
