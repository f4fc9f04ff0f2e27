//! MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft.

use std::marker::PhantomData;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::attention::Scores;
use crate::ops::attention::multi_head::MultiHeadAttention;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use super::extent::Extent;
use super::flash::attention;
use super::gather::{Operand, Past};
use super::heads::{Heads, head_strides};
use super::mask::{Mask, MaskTensor};
use super::padding::Padding;
use super::problem::{Problem, ScoreOutput};
use crate::gemm::{Activate, Store};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(MultiHead::<T>(*node.op(), PhantomData))))
    }, else Err(node.no_kernel()))
}

/// Rows of the past: as many as there are, or what an input tells of a shared buffer.
pub(super) fn past_rows(length: Option<TensorView<'_>>, extent: &Extent) -> Result<usize, OpError> {
    let Some(&length) = length.and_then(|view| view.slice::<i32>().first()) else { return Ok(extent.past) };
    let room = extent.capacity as i64 - extent.new as i64;
    if length < 0 || length as i64 > room || length as usize > extent.past {
        return Err(OpError::Data(format!(
            "past_sequence_length is {length}; allowed is 0 to {room}, the room that {} new rows leave",
            extent.new
        )));
    }
    Ok(length as usize)
}

/// The input that tells in which beam's cache each row of a beam's past lies: `[samples, beams, length]`.
const CACHE_INDIRECTION: usize = 9;

/// Caches whose rows belong to other beams of the sample.
struct Beams<'a> {
    origins: &'a [i32],
    beams: usize,
    length: usize,
    past: usize,
}

impl<'a> Beams<'a> {
    /// `None` where every row is a sequence's own.
    fn new(view: TensorView<'a>, batch: usize, past: usize) -> Result<Option<Self>, OpError> {
        let (origins, shape) = (view.slice::<i32>(), view.shape());
        let &[samples, beams, length] = shape else {
            return Err(OpError::Data(format!("cache_indirection has rank {}; allowed is 3", shape.len())));
        };
        if samples * beams != batch || length < past {
            let reason = format!(
                "cache_indirection has shape {shape:?}; allowed is [samples, beams, length] of {batch} sequences \
                 and {past} rows or more"
            );
            return Err(OpError::Data(reason));
        }
        let used = || origins.chunks(length.max(1)).flat_map(|row| &row[..past]);
        if let Some(wrong) = used().find(|&&beam| usize::try_from(beam).map_or(true, |beam| beam >= beams)) {
            return Err(OpError::Data(format!("cache_indirection names beam {wrong}; there are {beams}")));
        }
        Ok((beams > 1).then_some(Beams { origins, beams, length, past }))
    }

    /// Each sequence's rows, from wherever they lie.
    fn rows<T: Copy>(&self, from: &Heads<'_, T>, heads: usize, keys: usize, size: usize) -> Vec<T> {
        let sequences = self.origins.len() / self.length.max(1);
        let mut rows = Vec::with_capacity(sequences * heads * keys * size);
        for sequence in 0..sequences {
            let first = sequence - sequence % self.beams;
            for head in 0..heads {
                for row in 0..keys {
                    let owner = match row < self.past {
                        true => first + self.origins[sequence * self.length + row] as usize,
                        false => sequence,
                    };
                    rows.extend_from_slice(&from.from(owner, head, row)[..size]);
                }
            }
        }
        rows
    }
}

struct MultiHead<T>(MultiHeadAttention, PhantomData<fn(T)>);

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> MultiHead<T> {
    fn extent(&self, shape: &dyn Fn(usize) -> Option<Vec<usize>>) -> Option<Extent> {
        let MultiHeadAttention { options, inputs, shared } = self.0;
        let heads = options.heads;
        let q = shape(0)?;
        let (batch, queries) = (q[0], q[1]);
        let (size, new, v_size) = match (&q[..], shape(1).as_deref(), shape(2).as_deref()) {
            (&[_, rows, _, _, size], ..) => (size, rows, size),
            (&[_, rows, hidden], None, _) => (hidden / 3 / heads, rows, hidden / 3 / heads),
            (_, Some(&[_, rows, _, _, size]), _) => (size, rows, size),
            (_, Some(&[_, rows, hidden]), Some(&[_, _, v])) => (hidden / heads, rows, v / heads),
            (_, Some(&[_, _, rows, size]), Some(&[_, _, _, v])) => (size, rows, v),
            _ => return None,
        };
        let past = shape(inputs.past[0]).map_or(0, |p| p[2]);
        let shared = shape(inputs.past[0]).is_some() && (shared || shape(inputs.past_length).is_some());
        let capacity = if shared { past } else { past + new };
        let scratch = [0; 4];
        Some(Extent { batch, heads, kv_heads: heads, queries, new, size, v_size, past, capacity, scratch })
    }

    /// Queries, keys and values where the inputs have them. Keys and values that come as heads are
    /// those of a cache, which has their bias already.
    fn operands<'a>(
        &self,
        extent: &Extent,
        input: &dyn Fn(usize) -> Option<TensorView<'a>>,
    ) -> Option<[Operand<'a, T>; 3]> {
        let &Extent { batch, heads, queries, new, size, v_size, .. } = extent;
        let q = input(0)?;
        let bias = input(self.0.inputs.bias).map(|view| view.slice::<T>());
        let part = |view: TensorView<'a>, start: usize, strides: [usize; 3]| {
            let data = view.slice::<T>();
            Heads { data: &data[start.min(data.len())..], strides }
        };
        let hidden = heads * size;
        let plain = |view: TensorView<'a>, rows: usize, size: usize| {
            part(view, 0, head_strides(view.rank(), heads, rows, size))
        };
        // Heads whose parts lie side by side.
        let nested = |view, rows: usize, parts: usize, i: usize| {
            part(view, i * size, [rows * hidden * parts, parts * size, hidden * parts])
        };
        let (q_rows, k_rows, v_rows) = match (q.rank(), input(1), input(2)) {
            (5, ..) => (nested(q, queries, 3, 0), nested(q, queries, 3, 1), nested(q, queries, 3, 2)),
            (_, None, _) => {
                let row = |i: usize| part(q, i * hidden, [queries * 3 * hidden, size, 3 * hidden]);
                (row(0), row(1), row(2))
            }
            (_, Some(kv), None) => (plain(q, queries, size), nested(kv, new, 2, 0), nested(kv, new, 2, 1)),
            (_, Some(k), Some(v)) => (plain(q, queries, size), plain(k, new, size), plain(v, new, v_size)),
        };
        let cached = input(1).is_some_and(|k| k.rank() == 4);
        let bias_at = |start: usize| bias.map(|bias| &bias[start..]);
        let operand = |rows_of, rows, size, bias| Operand { rows_of, batch, heads, rows, size, bias };
        Some([
            operand(q_rows, queries, size, bias_at(0)),
            operand(k_rows, new, size, bias_at(hidden).filter(|_| !cached)),
            operand(v_rows, new, v_size, bias_at(2 * hidden).filter(|_| !cached)),
        ])
    }
}

impl<T: Store<Compute: Activate + AsPrimitive<f64>>> Kernel for MultiHead<T> {
    fn algorithm(&self) -> &'static str {
        super::flash::algorithm::<T>()
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let given = |i: usize| inputs.get(i).copied().flatten();
        let Some(mut extent) = self.extent(&|i| given(i).map(|a| a.shape.to_vec())) else {
            return Ok(Prepared::default());
        };
        let wanted = |i: usize| outputs.get(i).is_some_and(Option::is_some);
        let [q, k, v] = extent.spaces();
        let (bias, past) = (given(self.0.inputs.bias).is_some(), given(self.0.inputs.past[0]).is_some());
        // Keys and values without an output of their own lie in temporary memory.
        let moved = past || bias;
        extent.scratch = [
            0,
            if bias { q } else { 0 },
            if moved && !wanted(1) { k } else { 0 },
            if moved && !wanted(2) { v } else { 0 },
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
        let input = |i: usize| inputs.get(i).copied().flatten();
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let mut slot = || slots.next().flatten();
        let (Some(y), k_out, v_out, scores) = (slot(), slot(), slot(), slot()) else { return Ok(()) };
        let Some([q, k, v]) = self.operands(&extent, &input) else { return Ok(()) };
        let at = self.0.inputs;
        let Extent { batch, heads, queries, new, size, v_size, capacity, .. } = extent;
        let past = past_rows(input(at.past_length).filter(|_| input(at.past[0]).is_some()), &extent)?;
        let [_, q_space, k_space, v_space] = extent.split::<T>(cx);
        let q = match q.bias {
            Some(_) => q.gather(cx.pool, None, None, queries, q_space),
            None => q.rows_of,
        };
        let rows = |_| past;
        let gather = |operand: Operand<'_, T>, i: usize, out| {
            let past = input(at.past[i]);
            let whole = extent.past == capacity;
            let past =
                past.map(|view| Past { data: view.slice(), capacity: extent.past, rows: &rows, whole });
            operand.gather(cx.pool, past, None, capacity, out)
        };
        let moved = input(at.past[0]).is_some() || input(at.bias).is_some();
        let k = match k_out {
            Some(out) => gather(k, 0, out.slice::<T>()),
            None if moved => gather(k, 0, k_space),
            None => k.rows_of,
        };
        let v = match v_out {
            Some(out) => gather(v, 1, out.slice::<T>()),
            None if moved => gather(v, 1, v_space),
            None => v.rows_of,
        };
        let options = self.0.options;
        let keys = past + new;
        let beams = input(CACHE_INDIRECTION).filter(|_| input(at.past[0]).is_some());
        let beams = beams.map(|view| Beams::new(view, batch, past)).transpose()?.flatten();
        let [own_k, own_v] = match &beams {
            Some(beams) => [beams.rows(&k, heads, keys, size), beams.rows(&v, heads, keys, v_size)],
            None => [Vec::new(), Vec::new()],
        };
        let of_beams = |data, size| Heads { data, strides: head_strides(4, heads, keys, size) };
        let (k, v) = match beams {
            Some(_) => (of_beams(&own_k[..], size), of_beams(&own_v[..], v_size)),
            None => (k, v),
        };
        let filter = options.filter;
        let padding = input(at.mask).map(|m| Padding::new(m, batch, past, keys, filter)).transpose()?;
        let problem = Problem {
            batch,
            heads,
            kv_heads: heads,
            queries,
            keys,
            size,
            v_size,
            q,
            k: k.into(),
            v: v.into(),
            scale: options.scale.unwrap_or(1.0 / (size as f32).sqrt()),
            softcap: 0.0,
            mask: Mask {
                tensor: input(at.attention_bias).map(MaskTensor::new),
                padding,
                blocks: None,
                causal: options.causal,
                window: [None; 2],
                offset: past as isize,
                lengths: None,
                aligned_to_length: None,
            },
            sink: None,
            y_strides: head_strides(3, heads, queries, v_size),
        };
        let scores = scores.map(|out| ScoreOutput { stage: Scores::Biased, data: Parts::new(out.slice()) });
        attention(cx.pool, &problem, y.slice::<T>(), scores);
        Ok(())
    }
}
