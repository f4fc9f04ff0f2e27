//! Attention whose queries share keys and values, with its cache (domain com.microsoft).

use std::sync::Arc;

use crate::graph::{Dim, Fact};

use super::Scores;
use super::attributes::{read_rotary, read_scale, read_shared_heads};
use super::multi_head::{check_bias, check_split};
use super::quantized_cache::{QuantizedCache, check_caches};
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::tensor::ElementType;

/// Inputs: queries (or queries, keys and values side by side), keys, values, caches of keys and values,
/// the index of each sample's last key, the longest total length, cosines, sines, positions, attention
/// bias, sinks, scales of quantized caches, weights of the normalisation of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupQueryAttention {
    pub heads: usize,
    pub kv_heads: usize,
    /// One by the root of the head size where it is `None`.
    pub scale: Option<f32>,
    /// 0 for none.
    pub softcap: f32,
    pub causal: bool,
    /// Keys that a query sees: its own and those before it; `None` is all.
    pub window: Option<usize>,
    /// Whether the softmax has one more score, 0.
    pub smooth: bool,
    /// Whether queries and keys are rotated, and then whether neighbours are pairs.
    pub rotary: Option<bool>,
    /// What output 3 holds.
    pub scores: Option<Scores>,
    /// Added to the mean square of the rows that are normalised.
    pub norm_epsilon: f32,
    /// How the caches are kept where they are not of the type of the queries.
    pub cache: Option<QuantizedCache>,
    /// Whether the caches keep no more keys than they have room for, which is at least the window: the last ones, from
    /// the first row on.
    pub window_cache: bool,
}

impl GroupQueryAttention {
    /// Size of a head, where a row of queries has so many columns.
    pub fn size(&self, columns: usize, packed: bool) -> usize {
        columns / if packed { self.heads + 2 * self.kv_heads } else { self.heads }
    }

    /// The room of caches that keep the last keys must be known to be enough, and nothing may be told of keys that are
    /// not kept.
    fn check_window_cache(&self, cx: &Infer<'_>) -> Result<(), OpError> {
        if !cx.has(3) {
            return Err(cx.input_error(3, "a sliding_window_cache needs it: it tells the room in the caches"));
        }
        if cx.has(10) {
            return Err(cx.input_error(10, "with a sliding_window_cache it is not supported"));
        }
        let room = cx.shape_of_rank(3, 4)?.and_then(|past| past[2].known());
        match (room, self.window) {
            (Some(room), Some(window)) if room < window as i64 => {
                let reason = format!(
                    "there is room for {room} keys; allowed are {window} and more, the local_window_size"
                );
                Err(cx.input_error(3, reason))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for GroupQueryAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if cx.has(1) != cx.has(2) {
            return Err(cx.input_error(1, "key and value go together"));
        }
        if cx.has(3) != cx.has(4) {
            return Err(cx.input_error(3, "past_key and past_value go together"));
        }
        if self.rotary.is_some() && !(cx.has(7) && cx.has(8)) {
            return Err(cx.input_error(7, "do_rotary needs cos_cache and sin_cache"));
        }
        if cx.has(14) != cx.has(15) {
            return Err(cx.input_error(14, "q_norm_weight and k_norm_weight go together"));
        }
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
        if let Some(lengths) = cx.shape(5)
            && let Some(product) = lengths.iter().try_fold(1, |n, d| Some(n * d.known()?))
        {
            cx.equal(5, "its number of elements", batch, &Dim::Known(product))?;
        }
        if let Some(sinks) = cx.shape_of_rank(11, 1)? {
            cx.equal(11, "its length", &heads, &sinks[0])?;
        }
        for i in [14, 15] {
            if let Some(weight) = cx.shape_of_rank(i, 1)? {
                cx.equal(i, "its length", &size, &weight[0])?;
            }
        }
        let row = check_caches(cx, self.cache, self.kv_heads, &size)?;
        if self.window_cache {
            self.check_window_cache(cx)?;
        }
        let total = cx.ints(6).and_then(|n| n.first().cloned());
        let mut capacity = total.clone();
        if let Some(past) = cx.shape_of_rank(3, 4)? {
            for (i, want) in [(0, batch), (1, &kv_heads), (3, &row)] {
                cx.equal(3, &format!("its dimension {i}"), want, &past[i])?;
            }
            if let Some(values) = cx.shape_of_rank(4, 4)? {
                cx.equal_shape(4, past, values)?;
            }
            capacity = match self.window_cache {
                true => Some(past[2].clone()),
                false => capacity.map(|n| n.max_of(&past[2])),
            };
        } else if cx.has(3) {
            capacity = None;
        }
        let fit = [batch, &heads, rows];
        check_bias(cx, 10, fit, total.as_ref())?;
        let capacity = capacity.unwrap_or_else(|| cx.unknown());
        let total = total.unwrap_or_else(|| cx.unknown());
        let present = vec![batch.clone(), kv_heads, capacity, row];
        cx.set_shape(0, vec![batch.clone(), rows.clone(), heads.mul(&size)]);
        cx.set_shape(1, present.clone());
        cx.set_shape(2, present);
        cx.set_shape(3, vec![batch.clone(), heads, rows.clone(), total]);
        Ok(())
    }

    /// The total length, where keys and values of the past come in a buffer that has room for it.
    fn limited_shape_input(&self, inputs: &[Option<Fact>]) -> Option<(usize, i64)> {
        let given = |i: usize| inputs.get(i).and_then(Option::as_ref);
        // Scores and a bias have as many columns as there are keys.
        if self.scores.is_some() || given(10).is_some() {
            return None;
        }
        let room = given(3)?.shape.as_ref()?.get(2)?.known()?;
        let room = if self.window_cache { i64::from(i32::MAX) } else { room };
        Some((6, room))
    }
}

fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let [heads, kv_heads] = read_shared_heads(a)?;
    let window = match a.int("local_window_size", -1)? {
        -1 => None,
        n if n > 0 => Some(n as usize),
        n => {
            let reason = format!("{n} is not allowed; allowed are -1 and numbers from 1");
            return Err(OpError::attribute("local_window_size", reason));
        }
    };
    let causal = a.flag("causal", true)?;
    if !causal && window.is_some() {
        return Err(OpError::attribute("local_window_size", "without causal it must be -1"));
    }
    let scores = match a.int("qk_output", 0)? {
        0 => None,
        1 => Some(Scores::Biased),
        2 => Some(Scores::Probabilities),
        n => {
            let reason = format!("{n} is not allowed; allowed is 0 to 2");
            return Err(OpError::attribute("qk_output", reason));
        }
    };
    let op = GroupQueryAttention {
        heads,
        kv_heads,
        scale: read_scale(a)?,
        softcap: a.float("softcap", 0.0)?,
        causal,
        window,
        smooth: a.int("smooth_softmax", -1)? == 1,
        rotary: read_rotary(a)?,
        scores,
        norm_epsilon: a.float("qk_norm_epsilon", 1e-6)?,
        cache: QuantizedCache::read(a)?,
        window_cache: a.flag("sliding_window_cache", false)?,
    };
    if op.window_cache && op.window.is_none() {
        return Err(OpError::attribute("sliding_window_cache", "it needs a local_window_size"));
    }
    if op.window_cache && op.scores.is_some() {
        let reason = "a sliding_window_cache with qk_output is not supported";
        return Err(OpError::Unsupported(reason.into()));
    }
    Ok(Arc::new(op))
}

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "GroupQueryAttention",
    &[1],
    "query:T, key?:T, value?:T, past_key?:C, past_value?:C, seqlens_k:int32, total_sequence_length:int32, \
     cos_cache?:T, sin_cache?:T, position_ids?:int64, attention_bias?:T, head_sink?:T, k_scale?:float, \
     v_scale?:float, q_norm_weight?:T, k_norm_weight?:T \
     -> output:T, present_key?:C, present_value?:C, output_qk?:T",
    &[
        ("T", Types::FLOAT),
        ("C", Types::FLOAT.and(Types::of(&[ElementType::I8, ElementType::U8, ElementType::F8E4M3FN]))),
    ],
    parse,
)
.shape_inputs(&[6])
.domain("com.microsoft")];
