//! GroupQueryAttention of com.microsoft, and SparseAttention, which is the same with blocks of keys that are hidden.

use std::marker::PhantomData;

use num_traits::{AsPrimitive, Float, Zero};

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::group_query::GroupQueryAttention;
use crate::ops::attention::sparse::SparseAttention;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::blocks::BlockMask;
use super::extent::Extent;
use super::flash::attention;
use super::gather::{Change, Operand, Past};
use super::mask::{Lengths, Mask, MaskTensor};
use super::problem::{Heads, Problem, ScoreOutput, Sink, head_strides};
use super::rotary::{normalise, rotate};
use crate::gemm::{Activate, Store};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(GroupQuery::<T> { op: *node.op(), block: None, _type: PhantomData })))
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
    };
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(GroupQuery::<T> { op, block: Some(block), _type: PhantomData })))
    }, else Err(node.no_kernel()))
}

struct GroupQuery<T> {
    op: GroupQueryAttention,
    /// Keys of a block, of SparseAttention.
    block: Option<usize>,
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
        let kept = self.block.and(given(3)).map(|past| past.shape[2]);
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
        extent.scratch = [
            0,
            if self.changes(given(14).is_some()) { q } else { 0 },
            if wanted(1) { 0 } else { k },
            if wanted(2) { 0 } else { v },
        ];
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
        let keys = check_lengths(lengths, keys, prompt, &extent)?;
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
        let gather = |new: Operand<'_, T>, i: usize, change: Option<Change<'_, T>>, out| {
            if extent.past > 0 && input(i).is_none() {
                return new.append(&past, change, capacity, out);
            }
            let data = input(i).map(|view| view.slice());
            let past =
                data.map(|data| Past { data, capacity: extent.past, rows: &past, whole: blocks.is_some() });
            new.gather(cx.pool, past, change, capacity, out)
        };
        let k_change: Option<Change<'_, T>> = if moved { Some(&k_change) } else { None };
        let k = gather(k, 3, k_change, k_out.map_or(k_space, |out| out.slice()));
        let v = gather(v, 4, None, v_out.map_or(v_space, |out| out.slice()));
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

    /// Whether queries and keys are not taken as they come.
    fn changes(&self, normalised: bool) -> bool {
        self.op.rotary.is_some() || normalised
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

/// What happens to each row of queries and keys: a normalisation, then a rotation.
struct Changes<'a, T> {
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
    fn new(
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
    fn apply(&self, weight: usize, sample: usize, row: usize, y: &mut [T]) {
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
