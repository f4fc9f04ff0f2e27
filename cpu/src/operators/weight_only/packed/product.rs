//! A product of rows with a packed weight: panels shared out among threads. Few rows are bound by reading the weight.

use super::left::ByteRows;
use super::vectors::Kind;
use super::{Packed, Panel, ROWS, Row, bytes, floats, room};
use crate::gemm::Store;
use crate::isa::halves_avx512;
use crate::kernel::KernelContext;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;
use crate::ops::weight_only::MatMulNBits;

/// Rows of A that meet a number of the weight in registers. Eight with AVX-512 took as long.
const TOGETHER: usize = 4;

/// Rows of A that stay in a processor's own cache while panels go by.
const ROWS_AT_A_TIME: usize = 256;

/// Whether this is the fastest way for `m` rows: for any number of bytes, and for so many of floats that unpacking them
/// once for all takes no less: with AVX-512 on a Zen 4 0.87 of the time for 128 rows.
pub(in super::super) fn serves(op: &MatMulNBits, m: usize) -> bool {
    let most = match vector_len() {
        16 if halves_avx512() => 96,
        16 => 1024,
        8 => 24,
        _ => 16,
    };
    m <= most || in_bytes(op)
}

fn in_bytes(op: &MatMulNBits) -> bool {
    op.rounds_left && Kind::of_machine() != Kind::Missing
}

/// Bytes of scratch that `rows` needs for `m` rows.
pub(in super::super) fn scratch(op: &MatMulNBits, m: usize) -> usize {
    if in_bytes(op) { ByteRows::memory(op, m) } else { floats_memory(op, m) }
}

pub(super) fn floats_memory(op: &MatMulNBits, m: usize) -> usize {
    m * op.blocks() * op.block * size_of::<f32>()
}

/// `y = a · weight' + bias`. With `rounds_left` A is rounded to bytes, where the processor multiplies these.
pub(in super::super) fn rows<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    m: usize,
    a: &[T],
    weight: &Packed<T>,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let kind = if in_bytes(&weight.op) { Kind::of_machine() } else { Kind::Missing };
    with_kind(cx, kind, m, a, weight, bias, y);
}

pub(super) fn with_kind<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    kind: Kind,
    m: usize,
    a: &[T],
    weight: &Packed<T>,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let op = &weight.op;
    let memory = cx.scratch::<f32>();
    let left = if kind == Kind::Missing {
        let size = op.blocks() * op.block;
        let memory = &mut memory[..m * size];
        split_mut(cx.pool, memory, size, GRAIN.div_ceil(size.max(1)), |range, part| {
            for (row, to) in range.zip(part.chunks_exact_mut(size)) {
                T::load_all(&a[row * op.k..][..op.k], &mut to[..op.k]);
                to[op.k..].fill(0.0);
            }
        });
        Left::Floats(memory, size)
    } else {
        Left::Bytes(kind, ByteRows::new(cx.pool, op, a, memory))
    };
    let halves = kind != Kind::Missing;
    let sink = Sink { out: Parts::new(y), n: op.n, bias };
    let (panels, row_blocks) = (op.n.div_ceil(ROWS), m.div_ceil(ROWS_AT_A_TIME));
    let in_block = m.div_ceil(row_blocks.max(1));
    // Some 10 µs of work.
    let grain = (1 << 18) / (op.k * ROWS * in_block).max(1) + 1;
    cx.pool.split(row_blocks * panels, grain, |range| {
        with_scratch([room(op), room(op)], |[scales, zeros]: [&mut [f32]; 2]| {
            for i in range.take_while(|_| !cx.cancelled()) {
                let (block, at) = (i / panels, i % panels);
                let panel = weight.panel(at, 0..op.blocks(), halves, [&mut *scales, &mut *zeros]);
                let (mut row, end) = (block * in_block, ((block + 1) * in_block).min(m));
                while row < end {
                    row += match end - row {
                        1 => sink.write(at, row, &left.products::<1>(panel, row)),
                        2 | 3 => sink.write(at, row, &left.products::<2>(panel, row)),
                        _ => sink.write(at, row, &left.products::<TOGETHER>(panel, row)),
                    };
                }
            }
        });
    });
}

/// A, as it is multiplied.
enum Left<'a> {
    Bytes(Kind, ByteRows<'a>),
    /// Rows of so many floats.
    Floats(&'a [f32], usize),
}

impl Left<'_> {
    /// The products of a panel with `M` rows.
    fn products<const M: usize>(&self, panel: Panel<'_>, row: usize) -> [Row<f32>; M] {
        match *self {
            Left::Bytes(kind, rows) => bytes::products::<M>(kind, panel, rows.from(row)),
            Left::Floats(rows, size) => floats::products::<M>(panel, &rows[row * size..], size),
        }
    }
}

/// Where products go, with the bias of each column.
struct Sink<'a, T> {
    out: Parts<'a, T>,
    n: usize,
    bias: Option<&'a [T]>,
}

impl<T: Store<Compute = f32>> Sink<'_, T> {
    /// Writes a panel's columns of rows of the result, and tells how many rows. Each is written once.
    fn write(&self, panel: usize, row: usize, products: &[Row<f32>]) -> usize {
        let columns = panel * ROWS..((panel + 1) * ROWS).min(self.n);
        for (row, products) in (row..).zip(products) {
            let mut sums = *products;
            if let Some(bias) = self.bias {
                sums.iter_mut().zip(&bias[columns.clone()]).for_each(|(sum, x)| *sum += x.load());
            }
            let at = row * self.n;
            // SAFETY: each row of each panel is written once.
            let out = unsafe { self.out.get(at + columns.start..at + columns.end) };
            T::store_all(&sums[..columns.len()], out);
        }
        products.len()
    }
}
