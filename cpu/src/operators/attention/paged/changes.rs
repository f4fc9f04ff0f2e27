//! What happens to queries and keys of tokens.

use crate::ops::OpError;
use crate::ops::attention::paged::PagedAttention;
use crate::tensor::TensorView;
use crate::threads::Pool;

use super::super::rotary::{normalise, rotate};
use super::tokens::{Rows, Sequences};
use crate::gemm::{Activate, Store};
use crate::loops::parallel::split_mut;

/// What happens to a row of a head: a normalisation, then a rotation.
pub(super) struct Change<'a, T> {
    weight: Option<&'a [T]>,
    epsilon: f32,
    rotation: Option<Rotation<'a, T>>,
}

#[derive(Clone, Copy)]
struct Rotation<'a, T> {
    interleaved: bool,
    /// The first element that is rotated.
    start: usize,
    half: usize,
    rows: usize,
    cosines: &'a [T],
    sines: &'a [T],
}

impl<T: Store<Compute: Activate>> Change<'_, T> {
    pub(super) fn apply(&self, position: usize, y: &mut [T]) {
        if let Some(weight) = self.weight {
            normalise(weight, self.epsilon, y);
        }
        if let Some(rotation) = &self.rotation {
            let range = position * rotation.half..(position + 1) * rotation.half;
            let (cosines, sines) = (&rotation.cosines[range.clone()], &rotation.sines[range]);
            rotate(rotation.interleaved, 1.0, cosines, sines, &mut y[rotation.start..]);
        }
    }

    /// The queries of all tokens, changed, `[tokens, heads, size]`.
    pub(super) fn apply_to_all<'o>(
        &self,
        pool: &Pool,
        sequences: &Sequences<'_>,
        rows: Rows<'_, T>,
        [heads, size]: [usize; 2],
        out: &'o mut [T],
    ) -> Rows<'o, T> {
        split_mut(pool, out, heads * size, (1 << 13) / (heads * size).max(1) + 1, |range, out| {
            for (token, out) in range.zip(out.chunks_exact_mut((heads * size).max(1))) {
                let sequence = sequences.starts.partition_point(|&start| start as usize <= token) - 1;
                let position = sequences.past(sequence) + token - sequences.tokens(sequence).start;
                out.copy_from_slice(&rows.row(token)[..heads * size]);
                out.chunks_exact_mut(size).for_each(|head| self.apply(position, head));
            }
        });
        Rows { data: out, first: 0, columns: heads * size }
    }
}

/// The changes of queries and of keys.
pub(super) struct Changes<'a, T> {
    queries: Option<Change<'a, T>>,
    keys: Option<Change<'a, T>>,
}

impl<'a, T: Store<Compute: Activate>> Changes<'a, T> {
    pub(super) fn new(op: &PagedAttention, input: &dyn Fn(usize) -> Option<TensorView<'a>>) -> Self {
        let rotation = match (op.rotary, input(8), input(9)) {
            (Some(interleaved), Some(cosines), Some(sines)) => {
                let [rows, half] = [cosines.shape()[0], cosines.shape()[1]];
                let (cosines, sines) = (cosines.slice(), sines.slice());
                Some(Rotation { interleaved, start: op.rotary_start, half, rows, cosines, sines })
            }
            _ => None,
        };
        let change = |i: usize| {
            let weight = input(i).map(|weight| weight.slice::<T>());
            let changes = weight.is_some() || rotation.is_some();
            changes.then_some(Change { weight, epsilon: op.norm_epsilon, rotation })
        };
        Changes { queries: change(12), keys: change(13) }
    }

    /// Refuses positions that the caches of cosines do not reach.
    pub(super) fn check(&self, sequences: &Sequences<'_>) -> Result<(), OpError> {
        let Some(rotation) = self.queries.as_ref().and_then(|change| change.rotation) else { return Ok(()) };
        for sequence in 0..sequences.count() {
            let new = sequences.tokens(sequence).len();
            let last = sequences.past(sequence) + new;
            if new > 0 && last > rotation.rows {
                return Err(OpError::Data(format!(
                    "a position is {}; allowed is 0 to {}, the rows of cos_cache less one",
                    last - 1,
                    rotation.rows as i64 - 1
                )));
            }
        }
        Ok(())
    }

    pub(super) fn of_queries(&self) -> Option<&Change<'a, T>> {
        self.queries.as_ref()
    }

    pub(super) fn of_keys(&self) -> Option<&Change<'a, T>> {
        self.keys.as_ref()
    }
}
