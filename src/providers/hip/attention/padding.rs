//! Masks of com.microsoft's attention operators: integers that tell which keys count. They become numbers
//! that are added to the scores, together with those that a node adds anyway.

use std::mem::offset_of;

use bytemuck::Zeroable;

use crate::ops::OpError;
use crate::providers::Argument;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{GROUP, KernelName, Operand};
use super::params::PaddingParams;
use super::scores::{FirstQuery, MaskTensor, Problem};

/// A mask's kind, as `kernels/heads.hip` numbers them.
const ENDS: u32 = 0;
const RANGES: u32 = 1;
const EACH: u32 = 2;

/// The mask of integers at an input.
#[derive(Clone, Copy)]
pub(super) struct Padding<'a> {
    pub(super) at: Operand,
    pub(super) mask: Argument<'a>,
    /// Added to the scores of keys that do not count.
    pub(super) filter: f32,
}

impl Padding<'_> {
    /// The mask as numbers, with the problem's own mask of type `T` added.
    pub(super) fn plan(&self, plan: &mut PlanBuilder<'_>, problem: &Problem) -> Result<MaskTensor, OpError> {
        let &Problem { batch, ref q, ref k, first, .. } = problem;
        let keys = k.rows;
        let past = match first {
            FirstQuery::At(past) => past.max(0) as usize,
            FirstQuery::BeforeEnd | FirstQuery::BeforeEndOrStart => 0,
        };
        let mut p = PaddingParams::zeroed();
        let mut by_query = true;
        match *self.mask.shape {
            [n] if n == 2 * batch && batch > 0 => (p.kind, by_query) = (RANGES, false),
            [n] if n >= batch => (p.kind, by_query) = (ENDS, false),
            [_, n] if n == keys => {
                (p.kind, by_query) = (EACH, false);
                p.mask_strides = [n as i64, 0];
            }
            [_, queries, n] if n == keys => {
                p.kind = EACH;
                p.mask_strides = [(queries * n) as i64, n as i64];
            }
            [_, 1, rows, n] if n >= keys && rows >= past + q.rows => {
                p.kind = EACH;
                p.mask_strides = [(rows * n) as i64, n as i64];
                p.mask = (past * n * size_of::<i32>()) as u64;
            }
            ref shape => {
                return Err(OpError::Data(format!("the mask's shape is {shape:?}; there are {keys} keys")));
            }
        }
        let mut addresses = vec![(offset_of!(PaddingParams, mask), self.at)];
        let mut by_head = false;
        if let Some(bias) = problem.mask {
            if bias.keys != keys {
                let reason = format!("attention_bias has {} columns; there are {keys} keys", bias.keys);
                return Err(OpError::Data(reason));
            }
            (p.bias_type, p.bias_strides) = (bias.ty as u32, bias.strides);
            by_head = bias.strides[1] != 0;
            by_query |= bias.strides[2] != 0;
            addresses.push((offset_of!(PaddingParams, bias), bias.at));
        }
        let shape = [batch, if by_head { q.heads } else { 1 }, if by_query { q.rows } else { 1 }, keys];
        [p.batch, p.heads, p.queries, p.keys] = shape.map(|n| n as u32);
        p.filter = self.filter;
        let count: usize = shape.iter().product();
        p.count = count as u64;
        let out = plan.scratch(count * size_of::<f32>());
        addresses.push((offset_of!(PaddingParams, out), out));
        let kernel = KernelName { family: "heads", name: c"heads_padding" };
        plan.launch(kernel, [count.div_ceil(GROUP as usize), 1, 1], &p, &addresses)?;
        Ok(MaskTensor::new(out, ElementType::F32, &shape))
    }
}

/// Rows of the past: as many as there is room for, or what an input tells of a shared buffer.
pub(super) fn past_rows(
    length: Option<Argument<'_>>,
    past: usize,
    new: usize,
    capacity: usize,
) -> Result<usize, OpError> {
    let Some(&length) = length.as_ref().and_then(|l| l.value.as_ref()?.slice::<i32>().first()) else {
        return Ok(past);
    };
    let room = capacity as i64 - new as i64;
    if length < 0 || i64::from(length) > room || length as usize > past {
        return Err(OpError::Data(format!(
            "past_sequence_length is {length}; allowed is 0 to {room}, the room that {new} new rows leave"
        )));
    }
    Ok(length as usize)
}
