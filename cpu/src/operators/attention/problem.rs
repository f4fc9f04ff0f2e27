//! What an attention is asked to compute: operands with their strides, mask, sinks.

use crate::ops::attention::Scores;

use super::heads::Heads;
use super::mask::Mask;
use super::quantized_cache::QuantizedHeads;
use crate::gemm::{Activate, Rows, Store};
use crate::loops::parallel::Parts;

/// Keys or values: numbers where they lie, or what a quantized cache keeps.
pub(super) enum Cached<'a, T> {
    Numbers(Heads<'a, T>),
    Quantized(QuantizedHeads<'a>),
}

impl<'a, T> From<Heads<'a, T>> for Cached<'a, T> {
    fn from(heads: Heads<'a, T>) -> Self {
        Cached::Numbers(heads)
    }
}

impl<'a, T: Store<Compute: Activate>> Cached<'a, T> {
    /// The numbers, where they are no quantized cache.
    pub(super) fn numbers(&self) -> Option<&Heads<'a, T>> {
        match self {
            Cached::Numbers(heads) => Some(heads),
            Cached::Quantized(_) => None,
        }
    }

    /// Whether `rows` converts numbers.
    pub(super) fn converts(&self) -> bool {
        !T::SAME || self.numbers().is_none()
    }

    /// `count` rows of a head from `row` on, of `size` numbers; in `copy` where they must be converted.
    pub(super) fn rows<'r>(
        &self,
        [batch, head, row]: [usize; 3],
        (count, size): (usize, usize),
        copy: &'r mut [T::Compute],
    ) -> Rows<'r, T::Compute>
    where
        'a: 'r,
    {
        let (data, stride) = match self {
            Cached::Numbers(heads) => (heads.from(batch, head, row), heads.strides[2]),
            Cached::Quantized(heads) => {
                let copy = &mut copy[..count * size];
                heads.load([batch, head, row], copy);
                return Rows { data: copy, stride: size, count, size, fetch: false };
            }
        };
        if let Some(data) = T::same(data) {
            return Rows { data, stride, count, size, fetch: true };
        }
        let copy = &mut copy[..count * size];
        if stride == size {
            T::load_all(&data[..count * size], copy);
        } else {
            let each = copy.chunks_exact_mut(size).enumerate();
            each.for_each(|(row, copy)| T::load_all(&data[row * stride..][..size], copy));
        }
        Rows { data: copy, stride: size, count, size, fetch: false }
    }
}

/// One attention over a batch.
pub(super) struct Problem<'a, T> {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) size: usize,
    pub(super) v_size: usize,
    pub(super) q: Heads<'a, T>,
    pub(super) k: Cached<'a, T>,
    pub(super) v: Cached<'a, T>,
    pub(super) scale: f32,
    pub(super) softcap: f32,
    pub(super) mask: Mask<'a>,
    pub(super) sink: Option<Sink<'a, T>>,
    pub(super) y_strides: [usize; 3],
}

/// One more score of each row, which takes its part of the softmax and has no value.
#[derive(Clone, Copy)]
pub(super) enum Sink<'a, T> {
    Zero,
    /// One for each head.
    Heads(&'a [T]),
}

/// The scores to write, and at which stage.
pub(super) struct ScoreOutput<'a, T> {
    pub(super) stage: Scores,
    pub(super) data: Parts<'a, T>,
}
