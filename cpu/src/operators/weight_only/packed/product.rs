//! A product of rows with a packed weight: panels shared out among threads. Few rows are bound by reading the weight.

use super::kind::Kind;
use super::left::Rounded;
use super::{Packed, Panel, ROWS, Row, floats, integers, pairs, room};
use crate::gemm::Store;
use crate::isa::halves_avx512;
use crate::kernel::KernelContext;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::vector_len;
use crate::ops::weight_only::MatMulNBits;

/// Rows of A that meet a number of the weight in registers. Eight with AVX-512 took as long.
const TOGETHER: usize = 4;
/// The same for pairs with AVX-512, which more instructions unpack: eight take 0.95 of the time of four.
const PAIRS_TOGETHER: usize = 8;

/// Rows of A that stay in a processor's own cache while panels go by.
const ROWS_AT_A_TIME: usize = 256;

/// Whether this is the fastest way for `m` rows.
pub(in super::super) fn serves(op: &MatMulNBits, m: usize) -> bool {
    m <= fewer_rows() || way(op, m) != Way::Floats
}

/// So many rows of floats that unpacking them once for all takes no less: with AVX-512 on a Zen 4 0.87 of the time for 128
/// rows.
fn fewer_rows() -> usize {
    match vector_len() {
        16 if halves_avx512() => 96,
        16 => 1024,
        8 => 24,
        _ => 16,
    }
}

/// What A is multiplied as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Floats,
    /// Integers of 8 bits.
    Bytes(Kind),
    /// Integers of 16 bits.
    Pairs(Kind),
}

/// Bytes are the fastest for any number of rows. So are pairs in vectors of 16 lanes; with AVX2 many rows took 0.97 to 1.2 of
/// the time of floats that are unpacked once for all.
pub(super) fn way(op: &MatMulNBits, m: usize) -> Way {
    let pairs = |kind: Kind| {
        let lanes = kind.lanes();
        pairs::fit(op) && lanes == vector_len() && (lanes == 16 || m <= fewer_rows())
    };
    match (Kind::of_machine(), op.left_bits) {
        (Kind::Missing, _) => Way::Floats,
        (kind, 8) => Way::Bytes(kind),
        (kind, 16) if pairs(kind) => Way::Pairs(kind),
        _ => Way::Floats,
    }
}

/// Bytes of scratch that `rows` needs for `m` rows.
pub(in super::super) fn scratch(op: &MatMulNBits, m: usize) -> usize {
    match way(op, m) {
        Way::Floats => floats_memory(op, m),
        Way::Bytes(_) => Rounded::<i8>::memory(op, m),
        Way::Pairs(_) => Rounded::<i16>::memory(op, m),
    }
}

pub(super) fn floats_memory(op: &MatMulNBits, m: usize) -> usize {
    m * op.blocks() * op.block * size_of::<f32>()
}

/// `y = a · weight' + bias`. A is rounded to the integers that `left_bits` tells, where the processor multiplies these.
pub(in super::super) fn rows<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    m: usize,
    a: &[T],
    weight: &Packed<T>,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    by_way(cx, way(&weight.op, m), m, a, weight, bias, y);
}

pub(super) fn by_way<T: Store<Compute = f32>>(
    cx: &KernelContext<'_>,
    way: Way,
    m: usize,
    a: &[T],
    weight: &Packed<T>,
    bias: Option<&[T]>,
    y: &mut [T],
) {
    let op = &weight.op;
    let memory = cx.scratch::<f32>();
    let left = match way {
        Way::Floats => {
            let size = op.blocks() * op.block;
            let memory = &mut memory[..m * size];
            split_mut(cx.pool, memory, size, GRAIN.div_ceil(size.max(1)), |range, part| {
                for (row, to) in range.zip(part.chunks_exact_mut(size)) {
                    T::load_all(&a[row * op.k..][..op.k], &mut to[..op.k]);
                    to[op.k..].fill(0.0);
                }
            });
            Left::Floats(memory, size)
        }
        Way::Bytes(kind) => Left::Bytes(kind, Rounded::new(cx.pool, op, a, memory)),
        Way::Pairs(kind) => Left::Pairs(kind, Rounded::new(cx.pool, op, a, memory)),
    };
    let halves = way != Way::Floats;
    let together = match way {
        Way::Pairs(kind) if kind.lanes() == 16 => PAIRS_TOGETHER,
        _ => TOGETHER,
    };
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
                        PAIRS_TOGETHER.. if together == PAIRS_TOGETHER => {
                            sink.write(at, row, &left.products::<PAIRS_TOGETHER>(panel, row))
                        }
                        _ => sink.write(at, row, &left.products::<TOGETHER>(panel, row)),
                    };
                }
            }
        });
    });
}

/// A, as it is multiplied.
enum Left<'a> {
    Bytes(Kind, Rounded<'a, i8>),
    Pairs(Kind, Rounded<'a, i16>),
    /// Rows of so many floats.
    Floats(&'a [f32], usize),
}

impl Left<'_> {
    /// The products of a panel with `M` rows.
    fn products<const M: usize>(&self, panel: Panel<'_>, row: usize) -> [Row<f32>; M] {
        match *self {
            Left::Bytes(kind, rows) => integers::products::<M>(kind, panel, rows.from(row)),
            Left::Pairs(kind, rows) => integers::products::<M>(kind, panel, rows.from(row)),
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
