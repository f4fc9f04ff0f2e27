//! GroupQueryAttention of com.microsoft, and SparseAttention, which is the same with blocks of keys that are hidden.

mod changes;
mod window;

use std::marker::PhantomData;

use num_traits::{AsPrimitive, Float, Zero};

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::group_query::GroupQueryAttention;
use crate::ops::attention::sparse::SparseAttention;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, bytes_of_mut, f16};

use changes::Changes;
use window::{OfSamples, WindowCache};

use super::blocks::BlockMask;
use super::extent::Extent;
use super::flash::attention;
use super::gather::{Change, Operand, Past};
use super::heads::{Heads, head_strides};
use super::mask::{Lengths, Mask, MaskTensor};
use super::problem::{Cached, Problem, ScoreOutput, Sink};
use super::quantized_cache::{Format, Kept, Quantizer};
use crate::gemm::{Activate, Store};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op: GroupQueryAttention = *node.op();
    let given = node.input(3).or(node.output(1)).or(node.output(2));
    let format = op.cache.map(|cache| Format::of(cache.element_type(given)));
    if format.is_some() && node.input(0) == Some(ElementType::F64) {
        return Err(node.no_kernel());
    }
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(GroupQuery::<T> { op, block: None, format, _type: PhantomData })))
    }, else Err(node.no_kernel()))
}

pub(super) fn build_sparse(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let &SparseAttention { heads, kv_heads, scale, rotary, block } = node.op();
    let op = GroupQueryAttention {
        heads,
        kv_heads,
        scale,
        softcap: 0.0,
        causal: true,
        window: None,
        smooth: false,
        rotary,
        scores: None,
        norm_epsilon: 0.0,
        cache: None,
        window_cache: false,
    };
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(GroupQuery::<T> { op, block: Some(block), format: None, _type: PhantomData })))
    }, else Err(node.no_kernel()))
}

struct GroupQuery<T> {
    op: GroupQueryAttention,
    /// Keys of a block, of SparseAttention.
    block: Option<usize>,
    /// Of quantized caches.
    format: Option<Format>,
    _type: PhantomData<fn(T)>,
}

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> Kernel for GroupQuery<T> {
    fn algorithm(&self) -> &'static str {
        super::flash::algorithm::<T>()
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let given = |i: usize| inputs.get(self.place(i)?).copied().flatten();
        let Some(&[batch, rows, columns]) = given(0).map(|q| q.shape) else { return Ok(Prepared::default()) };
        let size = self.op.size(columns, given(1).is_none());
        let past = given(3).map_or(0, |p| p.shape[2]);
        // Without an output for them, keys need as much room as the longest sample.
        let present = outputs.get(1).copied().flatten().or(outputs.get(2).copied().flatten());
        let kept =
            given(3).filter(|_| self.block.is_some() || self.op.window_cache).map(|past| past.shape[2]);
        let total = given(6).and_then(|t| t.value).and_then(|t| t.slice::<i32>().first().copied());
        let capacity = present.map(|shape| shape[2]).or(kept).or(total.map(|t| past.max(t.max(0) as usize)));
        let mut extent = Extent {
            batch,
            heads: self.op.heads,
            kv_heads: self.op.kv_heads,
            queries: rows,
            new: rows,
            size,
            v_size: size,
            past,
            capacity: capacity.unwrap_or(past + rows),
            scratch: [0; 4],
        };
        let [q, k, v] = extent.spaces();
        let wanted = |i: usize| outputs.get(i).is_some_and(Option::is_some);
        // Of quantized caches new rows are gathered first; a cache that is no output has memory of bytes behind them.
        let cached = |output: usize, numbers: usize| match self.op.cache {
            Some(cache) => {
                let heads = batch * self.op.kv_heads;
                let room = match self.op.window_cache {
                    true => WindowCache::room(extent.capacity, rows),
                    false => extent.capacity,
                };
                let bytes = heads * room * cache.row_bytes(size);
                let elsewhere = !wanted(output) || room > extent.capacity;
                heads * rows * size + if elsewhere { bytes.div_ceil(size_of::<T>()) } else { 0 }
            }
            None if self.op.window_cache && rows > 1 => {
                batch * self.op.kv_heads * WindowCache::room(extent.capacity, rows) * size
            }
            None if wanted(output) => 0,
            None => numbers,
        };
        let q = if self.changes(given(14).is_some()) { q } else { 0 };
        extent.scratch = [0, q, cached(1, k), cached(2, v)];
        Ok(Prepared { scratch: extent.bytes::<T>(), state: Some(Box::new(extent)) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let extent = *cx.state::<Extent>();
        let op = self.op;
        let input = |i: usize| inputs.get(self.place(i)?).copied().flatten();
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let mut slot = || slots.next().flatten();
        let (Some(y), k_out, v_out, scores) = (slot(), slot(), slot(), slot()) else { return Ok(()) };
        let (Some(q), Some(last), Some(total)) = (input(0), input(5), input(6)) else { return Ok(()) };
        let Extent { batch, heads, kv_heads, queries, size, capacity, .. } = extent;
        let lengths = match self.block {
            Some(_) => Lengths::Keys(last.slice::<i32>()),
            None => Lengths::Last(last.slice::<i32>()),
        };
        let keys = total.slice::<i32>().first().copied().unwrap_or(0);
        let prompt = keys as i64 == queries as i64;
        let keys = check_lengths(lengths, keys, prompt, &self.allowed(extent))?;
        let given = |i: usize| inputs.get(i).copied().flatten();
        let blocks = match (self.block, given(5), given(6)) {
            (Some(block), Some(rows), Some(columns)) => Some(BlockMask::new(block, rows, columns, keys)?),
            _ => None,
        };
        let past = move |sample: usize| if prompt { 0 } else { lengths.get(sample) - queries };

        let change = Changes::new(&op, &input, (lengths, prompt), &past, &extent)?;
        let moved = self.changes(input(14).is_some());
        let q_change = |sample: usize, row: usize, y: &mut [T]| change.apply(14, sample, row, y);
        let k_change = |sample: usize, row: usize, y: &mut [T]| change.apply(15, sample, row, y);
        let columns = q.shape()[2];
        let operand = |i: usize, start: usize, columns: usize, heads: usize| {
            let data = input(i).unwrap_or(q).slice::<T>();
            let rows_of =
                Heads { data: &data[start.min(data.len())..], strides: [queries * columns, size, columns] };
            Operand { rows_of, batch, heads, rows: queries, size, bias: None }
        };
        let (q, k, v) = match input(1) {
            Some(_) => {
                let kv = |i| operand(i, 0, kv_heads * size, kv_heads);
                (operand(0, 0, columns, heads), kv(1), kv(2))
            }
            None => {
                let kv = |i: usize| operand(0, (heads + i * kv_heads) * size, columns, kv_heads);
                (operand(0, 0, columns, heads), kv(0), kv(1))
            }
        };
        let [_, q_space, k_space, v_space] = extent.split::<T>(cx);
        let q = match moved {
            true => q.gather(cx.pool, None, Some(&q_change), queries, q_space),
            false => q.rows_of,
        };
        let k_change: Option<Change<'_, T>> = if moved { Some(&k_change) } else { None };
        let window = op.window.filter(|_| op.window_cache);
        let window = window.map(|n| WindowCache::new((n, capacity), lengths, batch, queries, prompt));
        let (last, most): (OfSamples<i32>, usize) =
            window.as_ref().map_or_else(Default::default, |w| w.last());
        let bring =
            Bring { cx, extent: &extent, past: &past, whole: blocks.is_some(), window: window.as_ref() };
        let k = self.bring(&bring, 0, (&k, k_change), [input(3), input(12)], (k_space, k_out))?;
        let v = self.bring(&bring, 1, (&v, None), [input(4), input(13)], (v_space, v_out))?;
        let (lengths, keys) = match window {
            Some(_) => (Lengths::Last(&last), most),
            None => (lengths, keys),
        };
        let sink = match input(11) {
            Some(scores) => Some(Sink::Heads(scores.slice::<T>())),
            None => op.smooth.then_some(Sink::Zero),
        };
        let problem = Problem {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            size,
            v_size: size,
            q,
            k,
            v,
            scale: op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: op.softcap,
            mask: Mask {
                tensor: input(10).map(MaskTensor::new),
                padding: None,
                blocks,
                causal: op.causal,
                window: [op.window.map(|n| n - 1), None],
                offset: 0,
                lengths: Some(lengths),
                aligned_to_length: (!prompt).then_some(queries),
            },
            sink,
            y_strides: head_strides(3, heads, queries, size),
        };
        let mut scores = op.scores.zip(scores);
        let output = scores
            .as_mut()
            .map(|(stage, out)| ScoreOutput { stage: *stage, data: Parts::new(out.slice::<T>()) });
        attention(cx.pool, &problem, y.slice::<T>(), output);
        if let Some((Scores::Biased, out)) = scores {
            // Scores of keys that are not seen are given as zero.
            let (hidden, zero) = (T::Compute::neg_infinity(), T::store(T::Compute::zero()));
            out.slice::<T>().iter_mut().filter(|x| x.load() == hidden).for_each(|x| *x = zero);
        }
        Ok(())
    }

    /// A cache that is one buffer for past and present: new rows are written where they belong, and nothing is copied.
    fn in_place_further(&self) -> &[(usize, usize)] {
        &[(1, 3), (2, 4)]
    }
}

impl<T> GroupQuery<T> {
    /// The operator's input that is GroupQueryAttention's input `i`.
    fn place(&self, i: usize) -> Option<usize> {
        match (self.block, i) {
            (None, _) | (_, 0..=4) => Some(i),
            // Lengths of the samples and of the longest, cosines, sines.
            (_, 5) => Some(8),
            (_, 6) => Some(7),
            (_, 7 | 8) => Some(i + 2),
            _ => None,
        }
    }

    /// The extents that limit the number of keys: where only the last ones are kept, none do.
    fn allowed(&self, extent: Extent) -> Extent {
        match self.op.window_cache {
            true => Extent { past: i32::MAX as usize, capacity: i32::MAX as usize, ..extent },
            false => extent,
        }
    }

    /// Whether queries and keys are not taken as they come.
    fn changes(&self, normalised: bool) -> bool {
        self.op.rotary.is_some() || normalised
    }
}

/// How new rows of keys and values come into their caches.
struct Bring<'a> {
    cx: &'a KernelContext<'a>,
    extent: &'a Extent,
    /// Rows of the past of each sample.
    past: &'a (dyn Fn(usize) -> usize + Sync),
    /// Whether rows of the past behind the new ones are kept.
    whole: bool,
    window: Option<&'a WindowCache>,
}

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> GroupQuery<T> {
    /// Brings new rows of keys (0) or values (1) behind those of the past, which are in the output already where they are
    /// not given. Without an output they come into `space`, which also has room for new rows that a quantized cache is made
    /// of.
    fn bring<'o>(
        &self,
        b: &Bring<'_>,
        of: usize,
        (new, change): (&Operand<'_, T>, Option<Change<'_, T>>),
        [past, scales]: [Option<TensorView<'o>>; 2],
        (space, out): (&'o mut [T], Option<&'o mut TensorViewMut<'_>>),
    ) -> Result<Cached<'o, T>, OpError> {
        let &Extent { kv_heads, size, capacity, past: past_rows, .. } = b.extent;
        if let Some((cache, format)) = self.op.cache.zip(self.format) {
            let scales = scales.map_or(&[][..], |scales| scales.slice());
            cache.check_scales(of, scales.len(), kv_heads, size)?;
            let (numbers, rest) = space.split_at_mut(new.space(new.rows));
            let numbers = new.gather(b.cx.pool, None, change, new.rows, numbers);
            let kept = match past {
                None if past_rows > 0 => Kept::InPlace,
                past => Kept::From(past.map_or(&[], |past| past.bytes()), past_rows),
            };
            let quantizer = Quantizer { format, scales, kv_heads, size };
            if let Some(window) = b.window {
                let own = |sample: usize, head: usize, out: &mut [u8]| {
                    quantizer.rows((numbers, new.rows), sample, head, out)
                };
                let places = (bytes_of_mut(rest), out.map(|out| out.bytes()));
                let past = past.map(|past| past.bytes());
                let row = cache.row_bytes(size);
                let bytes = window.bring(b.cx.pool, [kv_heads, row], &own, past, places);
                return Ok(Cached::Quantized(quantizer.heads(bytes, WindowCache::room(capacity, new.rows))));
            }
            let cache = out.map_or_else(|| bytes_of_mut(rest), |out| out.bytes());
            let rows = (numbers, new.rows);
            return Ok(Cached::Quantized(quantizer.put(b.cx.pool, rows, kept, b.past, capacity, cache)));
        }
        let (past, out) = (past.map(|past| past.slice()), out.map(|out| out.slice()));
        if let Some(window) = b.window {
            let own = |sample: usize, head: usize, out: &mut [T]| new.own_rows(sample, head, change, out);
            let data = window.bring(b.cx.pool, [kv_heads, size], &own, past, (space, out));
            let strides = head_strides(4, kv_heads, WindowCache::room(capacity, new.rows), size);
            return Ok(Heads { data, strides }.into());
        }
        let cache = out.unwrap_or(space);
        if past_rows > 0 && past.is_none() {
            return Ok(new.append(b.past, change, capacity, cache).into());
        }
        let past = past.map(|data| Past { data, capacity: past_rows, rows: b.past, whole: b.whole });
        Ok(new.gather(b.cx.pool, past, change, capacity, cache).into())
    }
}

/// The number of keys, when each sample's length fits.
fn check_lengths(lengths: Lengths<'_>, total: i32, prompt: bool, extent: &Extent) -> Result<usize, OpError> {
    let &Extent { batch, queries, past, capacity, .. } = extent;
    if total < 0 || total as usize > capacity || (total as usize) < queries {
        return Err(OpError::Data(format!(
            "total_sequence_length is {total}; allowed is {queries}, the number of queries, to {capacity}, the \
             room in the caches"
        )));
    }
    if let Lengths::Keys(given) = lengths
        && let Some(length) = given.iter().find(|&&length| length < 0)
    {
        let reason = format!("key_total_sequence_lengths has {length}; allowed are numbers from 0");
        return Err(OpError::Data(reason));
    }
    let total = total as usize;
    let (least, most) = if prompt { (0, total) } else { (queries, total.min(past + queries)) };
    match (0..batch).map(|sample| lengths.get(sample)).find(|length| !(least..=most).contains(length)) {
        Some(length) if matches!(lengths, Lengths::Last(_)) => Err(OpError::Data(format!(
            "seqlens_k has {}; allowed is {} to {}: one less than each sample's keys",
            length as i64 - 1,
            least as i64 - 1,
            most as i64 - 1
        ))),
        Some(length) => Err(OpError::Data(format!(
            "key_total_sequence_lengths has {length}; allowed is {least} to {most}"
        ))),
        None => Ok(total),
    }
}
