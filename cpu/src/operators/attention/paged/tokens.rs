//! Tokens of several sequences, one behind the other, and what happens to their queries and keys.

use std::ops::Range;

use crate::ops::OpError;
use crate::ops::attention::paged::PagedAttention;
use crate::tensor::TensorView;
use crate::threads::Pool;

use super::super::rotary::{normalise, rotate};
use super::caches::Pages;
use crate::gemm::{Activate, Store};
use crate::loops::parallel::split_mut;

/// Rows of tokens within wider rows.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) data: &'a [T],
    /// The first element of a row.
    pub(super) first: usize,
    pub(super) columns: usize,
}

impl<'a, T> Rows<'a, T> {
    pub(super) fn row(&self, token: usize) -> &'a [T] {
        &self.data[token * self.columns + self.first..]
    }
}

/// Which tokens are whose.
#[derive(Clone, Copy)]
pub(super) struct Sequences<'a> {
    /// The first token of each, and behind them their number.
    pub(super) starts: &'a [i32],
    pub(super) pasts: &'a [i32],
    /// The row of the cache that each token is written to; nowhere where it is negative.
    pub(super) slots: Option<&'a [i32]>,
}

impl Sequences<'_> {
    pub(super) fn count(&self) -> usize {
        self.pasts.len()
    }

    pub(super) fn tokens(&self, sequence: usize) -> Range<usize> {
        self.starts[sequence] as usize..self.starts[sequence + 1] as usize
    }

    pub(super) fn past(&self, sequence: usize) -> usize {
        self.pasts[sequence] as usize
    }

    /// Refuses what leads out of the tokens or out of caches of so many blocks.
    pub(super) fn check(&self, tokens: usize, pages: &Pages<'_>, blocks: usize) -> Result<(), OpError> {
        let bad = |name: &str, given: i32, allowed: String| {
            Err(OpError::Data(format!("{name} has {given}; allowed is {allowed}")))
        };
        let (mut least, last) = (0, self.starts.len() - 1);
        for (i, &start) in self.starts.iter().enumerate() {
            let tokens = tokens as i64;
            let range = if i == last { tokens } else { least }..=if i == 0 { 0 } else { tokens };
            if !range.contains(&start.into()) {
                let allowed = format!(
                    "{} to {}: it goes from 0 to {tokens}, the number of tokens, and never down",
                    range.start(),
                    range.end()
                );
                return bad("cumulative_sequence_length", start, allowed);
            }
            least = start.into();
        }
        for sequence in 0..self.count() {
            let (new, room) = (self.tokens(sequence).len(), pages.columns.saturating_mul(pages.rows));
            let past = self.pasts[sequence];
            if past < 0 || (past as usize).saturating_add(new) > room {
                let allowed = match room.checked_sub(new) {
                    Some(most) => format!("0 to {most}"),
                    None => "no number".into(),
                };
                let reason =
                    format!("{allowed}: with {new} new tokens, block_table has room for {room} keys");
                return bad("past_seqlens", past, reason);
            }
            // Blocks behind those that are used may be anything.
            let used = if new == 0 { 0 } else { (past as usize + new).div_ceil(pages.rows) };
            let outside = |&&block: &&i32| block < 0 || block as usize >= blocks;
            if let Some(&block) = pages.of(sequence)[..used].iter().find(outside) {
                let allowed = match blocks {
                    0 => "nothing: key_cache has no block".into(),
                    _ => format!("0 to {}, the blocks of key_cache less one", blocks - 1),
                };
                return bad("block_table", block, allowed);
            }
        }
        let (slots, rows) = (self.slots.unwrap_or_default(), blocks.saturating_mul(pages.rows));
        match slots.iter().find(|&&slot| slot < -1 || slot >= 0 && slot as usize >= rows) {
            Some(&slot) => {
                let allowed = format!("-1 to {}, the rows of key_cache less one", rows as i64 - 1);
                bad("slot_mapping", slot, allowed)
            }
            None => Ok(()),
        }
    }

    /// The queries of all tokens, changed, `[tokens, heads, size]`.
    pub(super) fn changed<'o, T: Store<Compute: Activate>>(
        &self,
        pool: &Pool,
        rows: Rows<'_, T>,
        change: &Change<'_, T>,
        [heads, size]: [usize; 2],
        out: &'o mut [T],
    ) -> Rows<'o, T> {
        split_mut(pool, out, heads * size, (1 << 13) / (heads * size).max(1) + 1, |range, out| {
            for (token, out) in range.zip(out.chunks_exact_mut((heads * size).max(1))) {
                let sequence = self.starts.partition_point(|&start| start as usize <= token) - 1;
                let position = self.past(sequence) + token - self.tokens(sequence).start;
                out.copy_from_slice(&rows.row(token)[..heads * size]);
                out.chunks_exact_mut(size).for_each(|head| change.apply(position, head));
            }
        });
        Rows { data: out, first: 0, columns: heads * size }
    }
}

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
}

/// The changes of queries and of keys.
pub(super) struct Changes<'a, T> {
    queries: Option<Change<'a, T>>,
    keys: Option<Change<'a, T>>,
}

impl<'a, T: Store<Compute: Activate>> Changes<'a, T> {
    pub(super) fn new(
        op: &PagedAttention,
        input: &dyn Fn(usize) -> Option<TensorView<'a>>,
        size: usize,
    ) -> Result<Self, OpError> {
        let rotation = match (op.rotary, input(8), input(9)) {
            (Some(interleaved), Some(cosines), Some(sines)) => {
                let [rows, half] = [cosines.shape()[0], cosines.shape()[1]];
                if cosines.shape() != sines.shape() || op.rotary_start + 2 * half > size {
                    return Err(OpError::Data(format!(
                        "cos_cache and sin_cache have shapes {:?} and {:?}; allowed are equal shapes with at most {} \
                         columns",
                        cosines.shape(),
                        sines.shape(),
                        size.saturating_sub(op.rotary_start) / 2
                    )));
                }
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
        Ok(Changes { queries: change(12), keys: change(13) })
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
