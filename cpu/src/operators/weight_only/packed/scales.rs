//! Scales of a packed weight. They are a tenth of what a product of few rows reads of 4-bit numbers in blocks of 32.

use std::ops::Range;

use super::ROWS;
use crate::gemm::Store;
use crate::loops::packed_weights::Weights as Memory;
use crate::loops::packing::Packing;
use crate::ops::weight_only::MatMulNBits;
use crate::tensor::{Element, f16};

/// By panel, by block, by row; 0 for rows that are not there.
pub(super) enum Scales<T> {
    /// As float16, which holds them all exactly. So it is where a model's own weights had 16 bits: the largest number of a
    /// block divided by a power of two.
    Halves(Memory<f16>),
    Own(Memory<T>),
}

/// Some blocks' scales.
pub(super) enum Loaded<'a> {
    Halves(&'a [f16]),
    Floats(&'a [f32]),
}

impl<T: Store<Compute = f32>> Scales<T> {
    /// `scales` are by row, by block.
    pub(super) fn new(op: &MatMulNBits, scales: &[T], packing: Packing<'_>) -> Self {
        // A piece of its own, as the weights need not be there where packed ones are.
        let halves = packing.filled(1, |halves: &mut [u8]| halves[0] = u8::from(fit_halves(scales)));
        if halves.first() == Some(&1) {
            Scales::Halves(by_panel(op, packing, |at| f16::from_f32(scales[at].load())))
        } else {
            Scales::Own(by_panel(op, packing, |at| scales[at]))
        }
    }

    /// Those of a range; as `f32` unless `halves` may be. `room` has as many numbers.
    pub(super) fn load<'a>(&'a self, range: Range<usize>, halves: bool, room: &'a mut [f32]) -> Loaded<'a> {
        let room = &mut room[..range.len()];
        match self {
            Scales::Halves(all) if halves => return Loaded::Halves(&all[range]),
            Scales::Halves(all) => <f16 as Store>::load_all(&all[range], room),
            Scales::Own(all) => match T::same(&all[range.clone()]) {
                Some(own) => return Loaded::Floats(own),
                None => T::load_all(&all[range], room),
            },
        }
        Loaded::Floats(room)
    }
}

fn by_panel<E: Element>(
    op: &MatMulNBits,
    packing: Packing<'_>,
    scale: impl Fn(usize) -> E + Sync,
) -> Memory<E> {
    super::filled(packing, op.n.div_ceil(ROWS), op.blocks() * ROWS, |panel, out: &mut [E]| {
        let rows = panel * ROWS..((panel + 1) * ROWS).min(op.n);
        for (lane, row) in rows.enumerate() {
            for block in 0..op.blocks() {
                out[block * ROWS + lane] = scale(row * op.blocks() + block);
            }
        }
    })
}

/// Whether all are the same numbers in float16.
fn fit_halves<T: Store<Compute = f32>>(scales: &[T]) -> bool {
    const RUN: usize = 256;
    let (mut wide, mut narrow, mut again) = ([0.0; RUN], [f16::ZERO; RUN], [0.0; RUN]);
    scales.chunks(RUN).all(|run| {
        let count = run.len();
        T::load_all(run, &mut wide[..count]);
        <f16 as Store>::store_all(&wide[..count], &mut narrow[..count]);
        <f16 as Store>::load_all(&narrow[..count], &mut again[..count]);
        wide[..count] == again[..count]
    })
}
