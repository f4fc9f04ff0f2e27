//! Attention in which each block of queries sees some blocks of keys (domain com.microsoft).

use std::sync::Arc;

use crate::graph::Dim;

use super::attributes::{read_rotary, read_scale, read_shared_heads};
use super::multi_head::check_split;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::tensor::ElementType;

/// Inputs: queries (or queries, keys and values side by side), keys, values, caches of keys and values, the blocks that
/// are seen as rows of a compressed sparse matrix: where each row begins, and its columns; the longest total length, the
/// number of each sample's keys, cosines, sines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseAttention {
    pub heads: usize,
    pub kv_heads: usize,
    /// One by the root of the head size where it is `None`.
    pub scale: Option<f32>,
    /// Whether queries and keys are rotated, and then whether neighbours are pairs.
    pub rotary: Option<bool>,
    /// Queries, and keys, of a block.
    pub block: usize,
}

impl Operator for SparseAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if cx.has(1) != cx.has(2) {
            return Err(cx.input_error(1, "key and value go together"));
        }
        if self.rotary.is_some() && !(cx.has(9) && cx.has(10)) {
            return Err(cx.input_error(9, "do_rotary needs cos_cache and sin_cache"));
        }
        self.check_layout(cx)?;
        let Some([batch, rows, columns]) = cx.shape_of_rank(0, 3)? else { return Ok(()) };
        let (heads, kv_heads) = (Dim::from(self.heads), Dim::from(self.kv_heads));
        let parts = if cx.has(1) { self.heads } else { self.heads + 2 * self.kv_heads };
        check_split(cx, 0, columns, parts)?;
        let size = columns.floor_div(&Dim::from(parts));
        for i in [1, 2] {
            if let Some(given) = cx.shape_of_rank(i, 3)? {
                cx.equal_shape(i, [batch, rows, &size.mul(&kv_heads)], given)?;
            }
        }
        if let Some(lengths) = cx.shape_of_rank(8, 1)? {
            cx.equal(8, "its length", batch, &lengths[0])?;
        }
        cx.set_shape(0, vec![batch.clone(), rows.clone(), heads.mul(&size)]);
        let Some(past) = cx.shape_of_rank(3, 4)? else { return Ok(()) };
        for (d, want) in [(0, batch), (1, &kv_heads), (3, &size)] {
            cx.equal(3, &format!("its dimension {d}"), want, &past[d])?;
        }
        if let Some(values) = cx.shape_of_rank(4, 4)? {
            cx.equal_shape(4, past, values)?;
        }
        cx.set_shape(1, past.to_vec());
        cx.set_shape(2, past.to_vec());
        Ok(())
    }
}

impl SparseAttention {
    /// Shapes of what tells the blocks that are seen.
    fn check_layout(&self, cx: &Infer<'_>) -> Result<(), OpError> {
        let Some(rows) = cx.shape_of_rank(5, 2)? else { return Ok(()) };
        match rows[0].known() {
            Some(n) if n < 1 || self.heads as i64 % n != 0 => {
                let heads = self.heads;
                let reason = format!("its dimension 0 is {n}; allowed are divisors of num_heads, {heads}");
                return Err(cx.input_error(5, reason));
            }
            _ => {}
        }
        if rows[1].known().is_some_and(|n| n < 2) {
            let reason = format!("its dimension 1 is {}; allowed are numbers from 2", rows[1]);
            return Err(cx.input_error(5, reason));
        }
        if let Some(columns) = cx.shape_of_rank(6, 2)? {
            cx.equal(6, "its dimension 0", &rows[0], &columns[0])?;
        }
        Ok(())
    }
}

fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let [heads, kv_heads] = read_shared_heads(a)?;
    let block = match a.required_int("sparse_block_size")? {
        n @ (16 | 32 | 64 | 128) => n as usize,
        n => {
            let reason = format!("{n} is not allowed; allowed are 16, 32, 64 and 128");
            return Err(OpError::attribute("sparse_block_size", reason));
        }
    };
    Ok(Arc::new(SparseAttention { heads, kv_heads, scale: read_scale(a)?, rotary: read_rotary(a)?, block }))
}

const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "SparseAttention",
    &[1],
    "query:T, key?:T, value?:T, past_key:T, past_value:T, block_row_indices:int32, block_col_indices:int32, \
     total_sequence_length:int32, key_total_sequence_lengths:int32, cos_cache?:T, sin_cache?:T \
     -> output:T, present_key:T, present_value:T",
    &[("T", FLOATS)],
    parse,
)
.domain("com.microsoft")];
