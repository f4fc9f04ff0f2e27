//! PagedAttention of com.microsoft: one sequence after the other, by all threads. Keys and values are read where they lie
//! if a sequence's blocks follow one another; otherwise they are brought together first. Bound as other attention, and
//! by that copy.

mod caches;
mod changes;
mod tokens;

use std::marker::PhantomData;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::attention::paged::PagedAttention;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::flash::attention;
use super::heads::Heads;
use super::mask::Mask;
use super::problem::{Problem, Sink};
use crate::gemm::{Activate, Store};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use caches::{Pages, updated};
use changes::Changes;
use tokens::{Rows, Sequences};

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(Paged::<T>(*node.op(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Paged<T>(PagedAttention, PhantomData<fn(T)>);

/// What shapes tell.
#[derive(Clone, Copy)]
struct Extent {
    /// Size of a key, and of a value.
    sizes: [usize; 2],
    /// Elements of temporary memory: queries that are changed, caches of keys and values that are no outputs, keys and
    /// values of one sequence brought together.
    scratch: [usize; 5],
}

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> Kernel for Paged<T> {
    fn algorithm(&self) -> &'static str {
        super::flash::algorithm::<T>()
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let shape = |i: usize| inputs.get(i).copied().flatten().map(|input| input.shape);
        let (Some(&[tokens, columns]), Some(&[blocks, rows, heads, _]), Some(&[_, pages])) =
            (shape(0), shape(3), shape(7))
        else {
            return Ok(Prepared::default());
        };
        let size = self.0.size(columns, shape(1).is_none());
        let value_size = self.0.value_size.unwrap_or(size);
        let wanted = |i: usize| outputs.get(i).is_some_and(Option::is_some);
        // No sequence has more keys than there are in the caches.
        let together = [pages.min(blocks), rows, heads, size].into_iter().try_fold(1, usize::checked_mul);
        let Some(together) = together.or((blocks == 0).then_some(0)) else {
            return Err(OpError::Data(format!(
                "key_cache has {blocks} blocks of {rows} keys: that is more than memory can hold"
            )));
        };
        // What does not fit into a number has no element: another dimension is 0.
        let cache = [blocks, rows, heads, size].into_iter().try_fold(1, usize::checked_mul).unwrap_or(0);
        let changed = self.0.rotary.is_some() || shape(12).is_some();
        let separate = |n: usize| if self.0.latent { 0 } else { n };
        let scratch = [
            if changed { tokens * self.0.heads * size } else { 0 },
            if wanted(1) { 0 } else { cache },
            if wanted(2) { 0 } else { separate(cache) },
            together,
            separate(together),
        ];
        let extent = Extent { sizes: [size, value_size], scratch };
        let bytes = scratch.iter().sum::<usize>() * size_of::<T>();
        Ok(Prepared { scratch: bytes, state: Some(Box::new(extent)) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let op = self.0;
        let Extent { sizes: [size, v_size], scratch } = *cx.state::<Extent>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let mut slot = || slots.next().flatten();
        let (y, k_out, v_out) = (slot(), slot(), slot());
        let (Some(q), Some(starts), Some(pasts), Some(table)) = (input(0), input(5), input(6), input(7))
        else {
            return Ok(());
        };
        let mut rest = cx.scratch::<T>();
        let [queries, k_space, v_space, k_dense, v_dense] = scratch.map(|len| {
            let (part, behind) = std::mem::take(&mut rest).split_at_mut(len);
            rest = behind;
            part
        });
        let sizes_of = |shape: &[usize]| <[usize; 4]>::try_from(shape).ok();
        let cache = input(3).and_then(|cache| sizes_of(cache.shape()));
        let cache = cache.or(k_out.as_ref().and_then(|out| sizes_of(out.shape())));
        let Some([blocks, rows, kv_heads, _]) = cache else { return Ok(()) };
        let pages = Pages { table: table.slice(), columns: table.shape()[1], rows, heads: kv_heads, size };
        let sequences =
            Sequences { starts: starts.slice(), pasts: pasts.slice(), slots: input(10).map(|s| s.slice()) };
        pages.check(&sequences, q.shape()[0], blocks)?;
        let change = Changes::new(&op, &input);
        change.check(&sequences)?;

        let columns = q.shape()[1];
        let head = |i: usize, first: usize, columns: usize| Rows {
            data: input(i).unwrap_or(q).slice::<T>(),
            first: first * size,
            columns,
        };
        let [keys, values] = [0, 1].map(|i| match input(1) {
            Some(_) => head(1 + i, 0, kv_heads * size),
            None => head(0, op.heads + i * kv_heads, columns),
        });
        let k = updated(cx.pool, input(3), k_out.map(|out| out.slice()), k_space);
        pages.write(cx.pool, &sequences, keys, change.of_keys(), k);
        let mut v = None;
        if !op.latent {
            let cache = updated(cx.pool, input(4), v_out.map(|out| out.slice()), v_space);
            pages.write(cx.pool, &sequences, values, None, cache);
            v = Some(&*cache);
        }
        let Some(y) = y else { return Ok(()) };
        let q = Rows { data: q.slice::<T>(), first: 0, columns };
        let q = match change.of_queries() {
            Some(change) => change.apply_to_all(cx.pool, &sequences, q, [op.heads, size], queries),
            None => q,
        };
        let (k, y, width) = (&*k, y.slice::<T>(), op.heads * v_size);
        for sequence in 0..sequences.count() {
            let tokens = sequences.tokens(sequence);
            let keys = sequences.past(sequence) + tokens.len();
            if tokens.is_empty() || cx.cancelled() {
                continue;
            }
            let k = pages.rows(cx.pool, sequence, keys, k, k_dense);
            let v = match v {
                Some(v) => pages.rows(cx.pool, sequence, keys, v, v_dense),
                None => k,
            };
            let problem = Problem {
                batch: 1,
                heads: op.heads,
                kv_heads,
                queries: tokens.len(),
                keys,
                size,
                v_size,
                q: Heads { data: &q.data[tokens.start * q.columns..], strides: [0, size, q.columns] },
                k: k.into(),
                v: v.into(),
                scale: op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
                softcap: op.softcap,
                mask: Mask {
                    tensor: None,
                    padding: None,
                    blocks: None,
                    causal: op.causal,
                    window: [op.window, None],
                    offset: sequences.past(sequence) as isize,
                    lengths: None,
                    aligned_to_length: None,
                },
                sink: input(11).map(|sinks| Sink::Heads(sinks.slice::<T>())),
                y_strides: [0, v_size, width],
            };
            attention(cx.pool, &problem, &mut y[tokens.start * width..tokens.end * width], None);
        }
        Ok(())
    }

    /// Caches that stay where they are: rows of new tokens are written, and nothing is copied.
    fn in_place_further(&self) -> &[(usize, usize)] {
        &[(1, 3), (2, 4)]
    }
}

#[cfg(test)]
mod tests;
