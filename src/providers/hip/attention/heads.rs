//! Queries, keys and values in memory, and past keys joined with new ones.

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::Matrix;
use super::super::launch::{GROUP, KernelName, Operand};
use super::params::JoinParams;

/// A tensor `[batch, heads, rows, size]` somewhere, its last dimension contiguous.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads {
    pub(super) at: Operand,
    /// Elements from the operand's begin.
    pub(super) offset: usize,
    pub(super) heads: usize,
    pub(super) rows: usize,
    pub(super) size: usize,
    /// Elements between batches, heads and rows.
    pub(super) strides: [usize; 3],
}

impl Heads {
    /// An operand of rank 4, or of rank 3 with its heads side by side in a row.
    pub(super) fn new(at: Operand, shape: &[usize], heads: Option<usize>) -> Self {
        match (shape, heads) {
            (&[_, heads, rows, size], _) => Heads::dense(at, heads, rows, size),
            (&[_, rows, hidden], Some(heads)) => {
                let size = hidden / heads;
                Heads { at, offset: 0, heads, rows, size, strides: [rows * hidden, size, hidden] }
            }
            _ => Heads::dense(at, 1, 0, 0),
        }
    }

    pub(super) fn dense(at: Operand, heads: usize, rows: usize, size: usize) -> Self {
        Heads { at, offset: 0, heads, rows, size, strides: [heads * rows * size, rows * size, size] }
    }

    /// From another element of the operand on.
    pub(super) fn from(self, offset: usize) -> Self {
        Heads { offset, ..self }
    }

    /// The first rows of each head alone.
    pub(super) fn first(self, rows: usize) -> Self {
        Heads { rows, ..self }
    }

    /// One head as a matrix, from a batch, head and row on.
    pub(super) fn matrix(&self, first: [usize; 3]) -> Matrix {
        let within: usize = first.iter().zip(self.strides).map(|(i, s)| i * s).sum();
        Matrix { offset: self.offset + within, ..Matrix::new(self.at, self.strides[2], 1) }
    }

    /// Rows of the past, if there are any, and these in one tensor without gaps.
    pub(super) fn join(
        &self,
        plan: &mut PlanBuilder<'_>,
        ty: ElementType,
        batch: usize,
        past: Option<(Operand, usize)>,
        out: Operand,
    ) -> Result<Heads, OpError> {
        let past_rows = past.map_or(0, |(_, rows)| rows);
        let joined = Heads::dense(out, self.heads, past_rows + self.rows, self.size);
        let count = batch * joined.strides[0];
        let bytes = self.size * ty.size();
        // The new tensor's rows begin at multiples of its row's size.
        let width = [16, 8, 4, 2].into_iter().find(|w| bytes.is_multiple_of(*w)).unwrap_or(2);
        let words = |elements: usize| elements * ty.size() / width;
        let params = JoinParams {
            fresh: (self.offset * ty.size()) as u64,
            count: words(count) as u64,
            strides: self.strides.map(|s| words(s) as i64),
            heads: self.heads as u32,
            past_rows: past_rows as u32,
            rows: self.rows as u32,
            words: words(self.size) as u32,
            width: width as u32,
            ..JoinParams::zeroed()
        };
        let mut addresses =
            vec![(offset_of!(JoinParams, fresh), self.at), (offset_of!(JoinParams, out), out)];
        if let Some((past, _)) = past {
            addresses.push((offset_of!(JoinParams, past), past));
        }
        let kernel = KernelName { family: "attention", name: c"attention_join" };
        plan.launch(kernel, [words(count).div_ceil(GROUP as usize), 1, 1], &params, &addresses)?;
        Ok(joined)
    }
}
