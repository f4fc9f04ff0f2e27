//! Attention of ai.onnx and of com.microsoft.
//!
//! Who computes the attention of the operators here, the first that fits:
//!
//! | operands | by | reason |
//! |---|---|---|
//! | bfloat16, no scores wanted, from 4 queries on, on a processor with dot products of bfloat16 pairs | `halves` | twice the multiplications of an instruction on `f32`, nothing is converted; with fewer queries packing keys and values takes longer than it saves |
//! | up to 3 queries, no scores wanted | `few_queries` | bound by keys and values: each is read once for all heads that share it, in parts of the keys for all threads |
//! | other | `flash` | tiles of queries and keys, the scores are never whole in memory; half types are computed in `f32` |
//!
//! `linear` has no softmax, and so a state instead of keys.

mod blocks;
mod causal_conv;
mod exponentials;
mod extent;
mod few_queries;
mod flash;
mod gather;
mod group_query;
mod halves;
mod heads;
mod linear;
mod mask;
mod multi_head;
mod padding;
mod paged;
mod problem;
mod projected;
mod quantized_cache;
mod rotary;
mod softmax_step;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::attention::Attention;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{Activate, Store};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;
use flash::attention;
use gather::{Convert, Operand, Past, Values, converted};
use heads::{Heads, head_strides};
use mask::{Lengths, Mask, MaskTensor};
use problem::{Problem, ScoreOutput};

const MICROSOFT: &str = "com.microsoft";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Attention", build),
    Entry::new("Attention", build).domain("rukh"),
    Entry::new("RotaryEmbedding", rotary::build),
    Entry::new("RotaryEmbedding", rotary::build_heads).domain("rukh"),
    Entry::new("LinearAttention", linear::build),
    Entry::new("CausalConvWithState", causal_conv::build),
    Entry::new("LinearAttention", linear::build).domain(MICROSOFT),
    Entry::new("CausalConvWithState", causal_conv::build).domain(MICROSOFT),
    Entry::new("RotaryEmbedding", rotary::build).domain(MICROSOFT),
    Entry::new("Attention", projected::build).domain(MICROSOFT),
    Entry::new("MultiHeadAttention", multi_head::build).domain(MICROSOFT),
    Entry::new("DecoderMaskedMultiHeadAttention", multi_head::build).domain(MICROSOFT),
    Entry::new("GroupQueryAttention", group_query::build).domain(MICROSOFT),
    Entry::new("SparseAttention", group_query::build_sparse).domain(MICROSOFT),
    Entry::new("PagedAttention", paged::build).domain(MICROSOFT),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let op = node.op::<Attention>().clone();
        if op.packed.is_some() && node.input(2) != node.input(0) {
            return Err(node.no_kernel());
        }
        let convert = match node.input(2) {
            same if same == node.input(0) => None,
            Some(ElementType::F32) => Some(converted::<T, f32> as Convert<T>),
            Some(ElementType::F16) => Some(converted::<T, f16> as Convert<T>),
            Some(ElementType::BF16) => Some(converted::<T, bf16> as Convert<T>),
            Some(ElementType::F64) => Some(converted::<T, f64> as Convert<T>),
            _ => return Err(node.no_kernel()),
        };
        Ok(CpuKernel::Tensor(Box::new(AttentionKernel::<T> { op, convert })))
    }, else Err(node.no_kernel()))
}

struct AttentionKernel<T> {
    op: Attention,
    /// Brings values of another type than that of queries and keys into theirs.
    convert: Option<Convert<T>>,
}

/// Heads, rows and head size of an operand.
fn sizes(shape: &[usize], heads: Option<usize>) -> [usize; 3] {
    match (shape, heads) {
        (&[_, heads, rows, size], _) => [heads, rows, size],
        (&[_, rows, hidden], Some(heads)) => [heads, rows, hidden / heads],
        _ => [1, 0, 0],
    }
}

impl<T: Store> AttentionKernel<T> {
    fn sizes(&self, operand: usize, shape: &[usize], heads: Option<usize>) -> [usize; 3] {
        match (self.op.packed, shape) {
            (Some(packed), [first, second, _]) => {
                [heads.unwrap_or(1), packed.batch_and_rows(first, second)[1], packed.size(operand)]
            }
            _ => sizes(shape, heads),
        }
    }

    /// The heads of an operand: how many, their rows and elements.
    fn heads<'a>(
        &self,
        operand: usize,
        view: TensorView<'a>,
        [heads, rows, size]: [usize; 3],
    ) -> Heads<'a, T> {
        let data = view.slice::<T>();
        match (self.op.packed, view.shape()) {
            (Some(packed), &[first, second, columns]) => Heads {
                data: &data[packed.offsets[operand].min(data.len())..],
                strides: packed.strides(operand, &[first, second, columns]),
            },
            _ => Heads { data, strides: head_strides(view.rank(), heads, rows, size) },
        }
    }
}

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> Kernel for AttentionKernel<T> {
    fn algorithm(&self) -> &'static str {
        flash::algorithm::<T>()
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        // Past and new keys are joined in the outputs, or in temporary memory where those are not
        // wanted; so are values of another type.
        let kv_heads = self.op.heads.map(|h| h.1);
        let mut scratch = 0;
        for (past, new, output) in [(4, 1, 1), (5, 2, 2)] {
            let past = inputs.get(past).copied().flatten().map(|past| past.shape[2]);
            let wanted = outputs.get(output).is_some_and(Option::is_some);
            let converted = output == 2 && self.convert.is_some();
            if let Some(new) = inputs[new].filter(|_| converted || (past.is_some() && !wanted)) {
                let [heads, rows, size] = sizes(new.shape, kv_heads);
                scratch += new.shape[0] * heads * (past.unwrap_or(0) + rows) * size;
            }
        }
        Ok(Prepared { state: None, scratch: scratch * size_of::<T>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [Some(q), Some(k), Some(v), ..] = *inputs else { return Ok(()) };
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (q_heads, kv_heads) = (self.op.heads.map(|h| h.0), self.op.heads.map(|h| h.1));
        let [heads, queries, size] = self.sizes(0, q.shape(), q_heads);
        let [kv_heads, new, _] = self.sizes(1, k.shape(), kv_heads);
        let v_size = self.sizes(2, v.shape(), Some(kv_heads))[2];
        let batch = match self.op.packed {
            Some(packed) => packed.batch_and_rows(&q.shape()[0], &q.shape()[1])[0],
            None => q.shape()[0],
        };
        let past = input(4).map_or(0, |past| past.shape()[2]);
        let keys = past + new;
        let lengths = input(6).map(|l| l.slice::<i64>());
        if let Some(&length) = lengths.into_iter().flatten().find(|&&l| l < 0 || l as usize > keys) {
            return Err(OpError::Data(format!(
                "nonpad_kv_seqlen has {length}; allowed is 0 to {keys}, the length of the keys"
            )));
        }

        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let (Some(Some(y)), key_out, value_out, scores) =
            (slots.next(), slots.next().flatten(), slots.next().flatten(), slots.next().flatten())
        else {
            return Ok(());
        };
        // Joined keys and values without an output of their own lie in temporary memory.
        let rest = if input(4).is_some() && key_out.is_none() { batch * kv_heads * keys * size } else { 0 };
        let (key_scratch, value_scratch) = cx.scratch::<T>().split_at_mut(rest);
        let operand =
            |rows_of, size| Operand { rows_of, batch, heads: kv_heads, rows: new, size, bias: None };
        let k = operand(self.heads(1, k, [kv_heads, new, size]), size);
        let k = join(cx, k, input(4), key_out.map(|out| out.slice()), key_scratch);
        let v = match self.convert {
            Some(convert) => {
                let values =
                    Values { new: v, past: input(5), batch, heads: kv_heads, rows: new, size: v_size };
                convert(cx, values, value_out, value_scratch)
            }
            None => {
                let v = operand(self.heads(2, v, [kv_heads, new, v_size]), v_size);
                join(cx, v, input(5), value_out.map(|out| out.slice()), value_scratch)
            }
        };
        let problem = Problem {
            batch,
            heads,
            kv_heads,
            queries,
            keys,
            size,
            v_size,
            q: self.heads(0, q, [heads, queries, size]),
            k: k.into(),
            v: v.into(),
            scale: self.op.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: self.op.softcap,
            mask: Mask {
                tensor: input(3).map(MaskTensor::new).map(|mask| match self.op.mask_broadcasts {
                    true => mask.repeating(),
                    false => mask,
                }),
                padding: None,
                blocks: None,
                causal: self.op.causal,
                window: self.op.window,
                offset: past as isize,
                lengths: lengths.map(Lengths::Counts),
                aligned_to_length: (lengths.is_some() && input(4).is_none()).then_some(queries),
            },
            sink: None,
            y_strides: match (self.op.packed, q.shape()) {
                (Some(packed), &[first, second, _]) => {
                    packed.result_strides(&[first, second, heads * v_size])
                }
                _ => head_strides(q.rank(), heads, queries, v_size),
            },
        };
        let scores =
            scores.map(|out| ScoreOutput { stage: self.op.scores, data: Parts::new(out.slice::<T>()) });
        attention(cx.pool, &problem, y.slice::<T>(), scores);
        Ok(())
    }
}

/// Past and new rows of each head one after the other, in the output when there is one, else in
/// temporary memory; without either, the new ones where they are.
fn join<'a, T: Store<Compute: Activate>>(
    cx: &KernelContext<'_>,
    new: Operand<'a, T>,
    past: Option<TensorView<'a>>,
    out: Option<&'a mut [T]>,
    scratch: &'a mut [T],
) -> Heads<'a, T> {
    let past_rows = past.map_or(0, |p| p.shape()[2]);
    let capacity = past_rows + new.rows;
    let space = new.space(capacity);
    let out = match (out, past) {
        (Some(out), _) => out,
        (None, Some(_)) => &mut scratch[..space],
        (None, None) => return new.rows_of,
    };
    let rows = |_| past_rows;
    let past = past.map(|p| Past { data: p.slice::<T>(), capacity: past_rows, rows: &rows, whole: false });
    new.gather(cx.pool, past, None, capacity, out)
}

#[cfg(test)]
mod tests;
