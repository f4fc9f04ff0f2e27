//! Keys and values in blocks.

use crate::ops::OpError;
use crate::tensor::TensorView;
use crate::threads::Pool;

use super::super::heads::Heads;
use super::changes::Change;
use super::tokens::{Rows, Sequences};
use crate::gemm::{Activate, Store};
use crate::loops::parallel::{GRAIN, Parts, split_mut};

/// Where the rows of sequences lie in caches `[blocks, rows, heads, size]`.
pub(super) struct Pages<'a> {
    /// The blocks of each sequence, `columns` of them.
    pub(super) table: &'a [i32],
    pub(super) columns: usize,
    pub(super) rows: usize,
    pub(super) heads: usize,
    pub(super) size: usize,
}

/// The cache that new rows go into: the output, which has the input's elements where there is no input, or temporary
/// memory.
pub(super) fn updated<'a, T: Copy + crate::tensor::Element>(
    pool: &Pool,
    given: Option<TensorView<'_>>,
    out: Option<&'a mut [T]>,
    space: &'a mut [T],
) -> &'a mut [T] {
    let out = out.unwrap_or(space);
    if let Some(given) = given {
        let given = given.slice::<T>();
        split_mut(pool, out, 1, GRAIN, |range, out| out.copy_from_slice(&given[range]));
    }
    out
}

impl Pages<'_> {
    /// Refuses what leads out of the tokens or out of caches of so many blocks.
    pub(super) fn check(
        &self,
        sequences: &Sequences<'_>,
        tokens: usize,
        blocks: usize,
    ) -> Result<(), OpError> {
        let bad = |name: &str, given: i32, allowed: String| {
            Err(OpError::Data(format!("{name} has {given}; allowed is {allowed}")))
        };
        let (mut least, last) = (0, sequences.starts.len() - 1);
        for (i, &start) in sequences.starts.iter().enumerate() {
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
        for sequence in 0..sequences.count() {
            let new = sequences.tokens(sequence).len();
            let room = self.columns.min(blocks).saturating_mul(self.rows);
            let past = sequences.pasts[sequence];
            if past < 0 || (past as usize).saturating_add(new) > room {
                let allowed = match room.checked_sub(new) {
                    Some(most) => format!("0 to {most}"),
                    None => "no number".into(),
                };
                let reason = format!(
                    "{allowed}: with {new} new tokens, block_table and key_cache have room for {room} keys"
                );
                return bad("past_seqlens", past, reason);
            }
            // Blocks behind those that are used may be anything.
            let used = if new == 0 { 0 } else { (past as usize + new).div_ceil(self.rows) };
            let outside = |&&block: &&i32| block < 0 || block as usize >= blocks;
            if let Some(&block) = self.of(sequence)[..used].iter().find(outside) {
                let allowed = match blocks {
                    0 => "nothing: key_cache has no block".into(),
                    _ => format!("0 to {}, the blocks of key_cache less one", blocks - 1),
                };
                return bad("block_table", block, allowed);
            }
        }
        let (slots, rows) = (sequences.slots.unwrap_or_default(), blocks.saturating_mul(self.rows));
        match slots.iter().find(|&&slot| slot < -1 || slot >= 0 && slot as usize >= rows) {
            Some(&slot) => {
                let allowed = format!("-1 to {}, the rows of key_cache less one", rows as i64 - 1);
                bad("slot_mapping", slot, allowed)
            }
            None => Ok(()),
        }
    }

    /// The blocks of one sequence.
    pub(super) fn of(&self, sequence: usize) -> &[i32] {
        &self.table[sequence * self.columns..][..self.columns]
    }

    /// The place of a position of a sequence, counted in rows of the cache.
    pub(super) fn slot(&self, sequence: usize, position: usize) -> usize {
        self.of(sequence)[position / self.rows] as usize * self.rows + position % self.rows
    }

    /// Writes the rows of new tokens. Those of a head are written one after the other: where two have the same place, the
    /// last one stays.
    pub(super) fn write<T: Store<Compute: Activate>>(
        &self,
        pool: &Pool,
        sequences: &Sequences<'_>,
        rows: Rows<'_, T>,
        change: Option<&Change<'_, T>>,
        cache: &mut [T],
    ) {
        let &Pages { heads, size, .. } = self;
        let cache = Parts::new(cache);
        pool.for_each(heads, &|head| {
            for sequence in 0..sequences.count() {
                for (row, token) in sequences.tokens(sequence).enumerate() {
                    let position = sequences.past(sequence) + row;
                    let slot = match sequences.slots {
                        Some(slots) if slots[token] < 0 => continue,
                        Some(slots) => slots[token] as usize,
                        None => self.slot(sequence, position),
                    };
                    let at = (slot * heads + head) * size;
                    // SAFETY: each head's rows belong to one task.
                    let to = unsafe { cache.get(at..at + size) };
                    to.copy_from_slice(&rows.row(token)[head * size..][..size]);
                    if let Some(change) = change {
                        change.apply(position, to);
                    }
                }
            }
        });
    }

    /// The first `count` rows of a sequence, where they are or brought together in `dense`.
    pub(super) fn rows<'a, T: Copy + Send + Sync>(
        &self,
        pool: &Pool,
        sequence: usize,
        count: usize,
        cache: &'a [T],
        dense: &'a mut [T],
    ) -> Heads<'a, T> {
        let &Pages { rows, heads, size, .. } = self;
        let blocks = &self.of(sequence)[..count.div_ceil(rows)];
        let stride = heads * size;
        if blocks.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) {
            let first = blocks.first().map_or(0, |&block| block as usize);
            return Heads { data: &cache[first * rows * stride..], strides: [0, size, stride] };
        }
        let dense = &mut dense[..count * stride];
        split_mut(pool, dense, stride, GRAIN / stride.max(1) + 1, |range, out| {
            let mut rest = out;
            let mut position = range.start;
            while position < range.end {
                let len = (rows - position % rows).min(range.end - position);
                let (to, behind) = rest.split_at_mut(len * stride);
                let from = blocks[position / rows] as usize * rows + position % rows;
                to.copy_from_slice(&cache[from * stride..][..len * stride]);
                (rest, position) = (behind, position + len);
            }
        });
        Heads { data: dense, strides: [0, size, stride] }
    }
}
