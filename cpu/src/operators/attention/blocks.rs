//! Which blocks of keys each block of queries sees.

use std::ops::Range;

use crate::ops::OpError;
use crate::tensor::TensorView;

use crate::gemm::Activate;

/// Rows of compressed sparse matrices, which heads take in turn: a row is a block of queries, its columns are the blocks of
/// keys that it sees.
pub(super) struct BlockMask<'a> {
    /// Where rows begin among the columns, and where the last one ends; for each matrix.
    rows: &'a [i32],
    columns: &'a [i32],
    matrices: usize,
    /// Keys, and queries, of a block.
    block: usize,
}

impl<'a> BlockMask<'a> {
    /// The matrices, when they are such and have rows for `total` keys.
    pub(super) fn new(
        block: usize,
        rows: TensorView<'a>,
        columns: TensorView<'a>,
        total: usize,
    ) -> Result<Self, OpError> {
        let (matrices, count) = (rows.shape()[0], rows.shape()[1] - 1);
        let mask = BlockMask { rows: rows.slice(), columns: columns.slice(), matrices, block };
        if total > count * block {
            return Err(OpError::Data(format!(
                "total_sequence_length is {total}; allowed is 0 to {}, the {count} rows of block_row_indices times \
                 sparse_block_size, {block}",
                count * block
            )));
        }
        let most = columns.shape()[1];
        for matrix in 0..matrices {
            let rows = &mask.rows[matrix * (count + 1)..][..count + 1];
            let mut least = 0;
            for &begin in rows {
                if begin < least || begin as usize > most {
                    return Err(OpError::Data(format!(
                        "block_row_indices has {begin}; allowed is {least} to {most}: it begins behind the row before, \
                         and within block_col_indices"
                    )));
                }
                least = begin;
            }
            let columns = &mask.columns[matrix * most..][rows[0] as usize..rows[count] as usize];
            if let Some(bad) = columns.iter().find(|&&column| column < 0 || column as usize >= count) {
                return Err(OpError::Data(format!(
                    "block_col_indices has {bad}; allowed is 0 to {}, the blocks of block_row_indices",
                    count - 1
                )));
            }
        }
        Ok(mask)
    }

    /// The blocks that a head's query at this position sees.
    fn seen(&self, head: usize, position: usize) -> &'a [i32] {
        let matrix = head % self.matrices;
        let rows =
            &self.rows[matrix * (self.rows.len() / self.matrices)..][..self.rows.len() / self.matrices];
        match rows.get(position / self.block..).unwrap_or_default() {
            &[begin, end, ..] => {
                let columns = self.columns.len() / self.matrices;
                &self.columns[matrix * columns..][begin as usize..end as usize]
            }
            _ => &[],
        }
    }

    /// Whether a query sees a block.
    fn sees(&self, head: usize, position: usize, block: usize) -> bool {
        self.seen(head, position).contains(&(block as i32))
    }

    /// Whether no query at these positions sees a block of these keys.
    pub(super) fn hides_all(&self, head: usize, positions: Range<usize>, keys: Range<usize>) -> bool {
        let blocks = |range: &Range<usize>| range.start / self.block..range.end.div_ceil(self.block);
        let hidden = |row: usize| blocks(&keys).all(|block| !self.sees(head, row * self.block, block));
        blocks(&positions).all(hidden)
    }

    /// Hides scores of keys from `start` on that a query does not see.
    pub(super) fn add<C: Activate>(&self, head: usize, position: usize, start: usize, scores: &mut [C]) {
        let mut rest = scores;
        let mut key = start;
        while !rest.is_empty() {
            let len = (self.block - key % self.block).min(rest.len());
            let (own, behind) = rest.split_at_mut(len);
            if !self.sees(head, position, key / self.block) {
                own.fill(C::neg_infinity());
            }
            (rest, key) = (behind, key + len);
        }
    }
}

#[cfg(test)]
mod tests;
