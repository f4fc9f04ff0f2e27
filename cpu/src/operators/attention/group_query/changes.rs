//! What becomes of each row of queries and keys before it is used.

use crate::ops::OpError;
use crate::ops::attention::group_query::GroupQueryAttention;
use crate::tensor::TensorView;

use super::super::extent::Extent;
use super::super::mask::Lengths;
use super::super::rotary::{normalise, rotate};
use crate::gemm::{Activate, Store};

/// What happens to each row of queries and keys: a normalisation, then a rotation.
pub(super) struct Changes<'a, T> {
    weights: [Option<&'a [T]>; 2],
    epsilon: f32,
    rotation: Option<Rotation<'a, T>>,
}

struct Rotation<'a, T> {
    interleaved: bool,
    /// Half of the elements that are rotated.
    half: usize,
    cosines: &'a [T],
    sines: &'a [T],
    positions: Option<&'a [i64]>,
    /// Whether only the first position counts, which is that of every sample's first row.
    prompt: bool,
    queries: usize,
    lengths: Lengths<'a>,
    past: &'a (dyn Fn(usize) -> usize + Sync),
}

impl<'a, T: Store<Compute: Activate>> Changes<'a, T> {
    pub(super) fn new(
        op: &GroupQueryAttention,
        input: &dyn Fn(usize) -> Option<TensorView<'a>>,
        (lengths, prompt): (Lengths<'a>, bool),
        past: &'a (dyn Fn(usize) -> usize + Sync),
        extent: &Extent,
    ) -> Result<Self, OpError> {
        let weights = [14, 15].map(|i| input(i).map(|view| view.slice::<T>()));
        let mut changes = Changes { weights, epsilon: op.norm_epsilon, rotation: None };
        let (Some(interleaved), Some(cosines), Some(sines)) = (op.rotary, input(7), input(8)) else {
            return Ok(changes);
        };
        let &Extent { batch, queries, size, .. } = extent;
        let [rows, half] = match *cosines.shape() {
            [rows, half] if cosines.shape() == sines.shape() && 2 * half <= size => [rows, half],
            _ => {
                return Err(OpError::Data(format!(
                    "cos_cache and sin_cache have shapes {:?} and {:?}; allowed are equal shapes of rank 2 \
                     with at most {} columns",
                    cosines.shape(),
                    sines.shape(),
                    size / 2
                )));
            }
        };
        let positions = input(9).map(|view| view.slice::<i64>());
        let rotation = Rotation {
            interleaved,
            half,
            cosines: cosines.slice(),
            sines: sines.slice(),
            positions,
            prompt,
            queries,
            lengths,
            past,
        };
        for (sample, row) in (0..batch).flat_map(|b| (0..queries).map(move |s| (b, s))) {
            let position = rotation.position(sample, row).ok_or_else(|| {
                OpError::Data(format!("position_ids has too few elements for {batch} times {queries} rows"))
            })?;
            if position < 0 || position >= rows as i64 {
                return Err(OpError::Data(format!(
                    "a position is {position}; allowed is 0 to {}, the rows of cos_cache less one",
                    rows as i64 - 1
                )));
            }
        }
        changes.rotation = Some(rotation);
        Ok(changes)
    }

    /// Changes one row of queries (`weight` 14) or keys (15).
    pub(super) fn apply(&self, weight: usize, sample: usize, row: usize, y: &mut [T]) {
        if let Some(weight) = self.weights[weight - 14] {
            normalise(weight, self.epsilon, y);
        }
        if let Some(rotation) = &self.rotation {
            let at = rotation.position(sample, row).unwrap_or(0) as usize * rotation.half;
            let range = at..at + rotation.half;
            rotate(rotation.interleaved, 1.0, &rotation.cosines[range.clone()], &rotation.sines[range], y);
        }
    }
}

impl<T> Rotation<'_, T> {
    /// The position of a row. Rows beyond a sample's length take the cache's first row: nobody
    /// reads them.
    fn position(&self, sample: usize, row: usize) -> Option<i64> {
        if let Some(positions) = self.positions {
            return match self.prompt {
                true => positions.first().map(|first| first.saturating_add(row as i64)),
                false => positions.get(sample * self.queries + row).copied(),
            };
        }
        let position = (self.past)(sample) + row;
        Some(if position < self.lengths.get(sample) { position as i64 } else { 0 })
    }
}
