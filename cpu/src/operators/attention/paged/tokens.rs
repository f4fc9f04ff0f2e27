//! Tokens of several sequences, one behind the other.

use std::ops::Range;

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
}
