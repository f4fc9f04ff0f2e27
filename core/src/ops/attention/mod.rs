//! Scaled dot-product attention and rotary position embedding.

mod attributes;
pub mod flex;
pub mod group_query;
pub mod multi_head;
pub mod packed;
pub mod paged;
pub mod quantized_cache;
pub mod recurrent;
pub mod rotary;
pub mod sparse;

use std::sync::Arc;

use crate::graph::Dim;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use packed::Packed;

/// What the fourth output holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scores {
    /// Scaled products of queries and keys.
    Raw,
    SoftCapped,
    /// With mask and bias added.
    Biased,
    Probabilities,
}

/// Attention of ai.onnx. Inputs: Q, K, V, mask, past key, past value, valid lengths of an outer cache.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    pub causal: bool,
    /// Heads of queries and of keys, for inputs of rank 3.
    pub heads: Option<(usize, usize)>,
    /// One by the root of the head size where it is `None`.
    pub scale: Option<f32>,
    /// 0 for none.
    pub softcap: f32,
    pub scores: Scores,
    /// Keys to the left and to the right of a query that it sees; `None` is all.
    pub window: [Option<usize>; 2],
    /// Whether a mask of one column stands for all keys (`rukh.Attention`), not for the first one.
    pub mask_broadcasts: bool,
    /// Where heads lie within the columns of wider matrices (`rukh.Attention`).
    pub packed: Option<Packed>,
}

fn read_heads(a: &AttributeReader<'_>, name: &str) -> Result<Option<usize>, OpError> {
    match a.optional_int(name)? {
        None | Some(0) => Ok(None),
        Some(n) if n > 0 && n <= i32::MAX as i64 => Ok(Some(n as usize)),
        Some(n) => Err(OpError::attribute(name, format!("{n} is not allowed; allowed is 1 to 2147483647"))),
    }
}

fn parse_attention(a: &AttributeReader<'_>) -> Result<Attention, OpError> {
    let heads = match (read_heads(a, "q_num_heads")?, read_heads(a, "kv_num_heads")?) {
        (Some(q), Some(kv)) => Some((q, kv)),
        (None, None) => None,
        _ => return Err(OpError::attribute("q_num_heads", "it goes together with kv_num_heads")),
    };
    let scores = match a.int("qk_matmul_output_mode", 0)? {
        0 => Scores::Raw,
        1 => Scores::SoftCapped,
        2 => Scores::Biased,
        3 => Scores::Probabilities,
        n => {
            let reason = format!("{n} is not allowed; allowed is 0 to 3");
            return Err(OpError::attribute("qk_matmul_output_mode", reason));
        }
    };
    // Softmax runs in f32 at least (f64 for double), so a precision asked for is met or exceeded.
    a.element_type("softmax_precision")?;
    let window = |name: &str| -> Result<Option<usize>, OpError> {
        match if a.opset() >= 25 { a.int(name, -1)? } else { -1 } {
            -1 => Ok(None),
            n if n >= 0 => Ok(Some(n as usize)),
            n => Err(OpError::attribute(name, format!("{n} is not allowed; allowed are numbers from -1"))),
        }
    };
    Ok(Attention {
        causal: a.flag("is_causal", false)?,
        heads,
        scale: a.optional_float("scale")?,
        softcap: a.float("softcap", 0.0)?,
        scores,
        window: [window("left_window_size")?, window("right_window_size")?],
        mask_broadcasts: false,
        packed: None,
    })
}

/// Batch, heads, sequence and head size of an operand of rank 3 or 4.
type Split = [Dim; 4];

impl Attention {
    fn split(&self, cx: &Infer<'_>, input: usize) -> Result<Option<Split>, OpError> {
        if let (Some(packed), Some((q, kv))) = (&self.packed, self.heads) {
            return packed.split(cx, input, if input == 0 { q } else { kv });
        }
        let Some(shape) = cx.shape(input) else { return Ok(None) };
        match (shape, self.heads) {
            ([b, h, s, d], _) => Ok(Some([b.clone(), h.clone(), s.clone(), d.clone()])),
            ([b, s, hidden], Some((q, kv))) => {
                let heads = Dim::from(if input == 0 { q } else { kv });
                if let Some(n) = hidden.known()
                    && heads.known().is_some_and(|h| n % h != 0)
                {
                    let reason = format!("its last dimension {n} cannot be split into {heads} heads");
                    return Err(cx.input_error(input, reason));
                }
                Ok(Some([b.clone(), heads.clone(), s.clone(), hidden.floor_div(&heads)]))
            }
            ([_, _, _], None) => Err(OpError::attribute("q_num_heads", "inputs of rank 3 need it")),
            _ => {
                let reason = format!("its rank is {}; allowed are 3 and 4", shape.len());
                Err(cx.input_error(input, reason))
            }
        }
    }
}

impl Operator for Attention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (q, k, v) = (self.split(cx, 0)?, self.split(cx, 1)?, self.split(cx, 2)?);
        let (Some([batch, heads, queries, size]), Some(k), Some(v)) = (q, k, v) else { return Ok(()) };
        let [k_batch, kv_heads, keys, k_size] = &k;
        cx.equal(1, "its batch", &batch, k_batch)?;
        cx.equal(1, "its head size", &size, k_size)?;
        cx.equal(2, "its batch", &batch, &v[0])?;
        cx.equal(2, "its number of heads", kv_heads, &v[1])?;
        cx.equal(2, "its sequence length", keys, &v[2])?;
        if let (Some(q), Some(kv)) = (heads.known(), kv_heads.known())
            && (kv == 0 || q % kv != 0)
        {
            return Err(cx.input_error(1, format!("{q} query heads cannot share {kv} key heads")));
        }
        if cx.has(4) != cx.has(5) {
            return Err(cx.input_error(4, "past_key and past_value go together"));
        }
        let mut total = keys.clone();
        if cx.has(4) {
            let (Some(pk), Some(pv)) = (cx.shape_of_rank(4, 4)?, cx.shape_of_rank(5, 4)?) else {
                return Ok(());
            };
            let past = pk[2].clone();
            for (input, given, want) in
                [(4, pk, [&batch, kv_heads, &past, &size]), (5, pv, [&batch, kv_heads, &past, &v[3]])]
            {
                cx.equal_shape(input, want, given)?;
            }
            total = total.add(&past);
        }
        if let Some(lengths) = cx.shape_of_rank(6, 1)? {
            cx.equal(6, "its length", &batch, &lengths[0])?;
        }
        self.check_mask(cx, &[batch.clone(), heads.clone(), queries.clone(), total.clone()])?;
        let y = match cx.shape(0).map(<[_]>::len) {
            Some(3) => {
                let columns = heads.mul(&v[3]);
                let [first, second] = match &self.packed {
                    Some(packed) => packed.batch_and_rows(&batch, &queries),
                    None => [batch.clone(), queries.clone()],
                };
                vec![first, second, columns]
            }
            _ => vec![batch.clone(), heads.clone(), queries.clone(), v[3].clone()],
        };
        cx.set_shape(0, y);
        cx.set_shape(1, vec![batch.clone(), kv_heads.clone(), total.clone(), size]);
        cx.set_shape(2, vec![batch.clone(), kv_heads.clone(), total.clone(), v[3].clone()]);
        cx.set_shape(3, vec![batch, heads, queries, total]);
        Ok(())
    }
}

impl Attention {
    /// The mask broadcasts to the scores; its last dimension may be shorter.
    fn check_mask(&self, cx: &Infer<'_>, scores: &[Dim; 4]) -> Result<(), OpError> {
        let Some(mask) = cx.shape(3) else { return Ok(()) };
        let pairs = || mask.iter().rev().zip(scores.iter().rev()).enumerate();
        let fits = mask.len() <= 4
            && !mask.is_empty()
            && pairs().all(|(i, (m, s))| match (m.known(), s.known()) {
                (Some(m), Some(s)) => m == s || m == 1 || (i == 0 && m < s),
                _ => true,
            });
        if fits {
            return Ok(());
        }
        Err(cx.input_error(
            3,
            format!("its shape {mask:?} does not broadcast to that of the scores, {scores:?}"),
        ))
    }
}

/// Rotary position embedding. Inputs: X, caches of cosines and sines, and positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotaryEmbedding {
    /// Whether pairs are neighbours; else the halves of a head are paired.
    pub interleaved: bool,
    /// Leading elements of a head that are rotated; 0 for all.
    pub rotated: usize,
    /// Heads, for an input of rank 3; 0 where it is not given.
    pub heads: usize,
    /// Where the inputs are: cosines, sines, positions.
    pub inputs: [usize; 3],
    pub scale: f32,
}

impl Operator for RotaryEmbedding {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(x) = cx.shape(0) {
            if x.len() != 3 && x.len() != 4 {
                return Err(cx.input_error(0, format!("its rank is {}; allowed are 3 and 4", x.len())));
            }
            if x.len() == 3
                && self.heads != 0
                && let Some(hidden) = x[2].known()
                && hidden % self.heads as i64 != 0
            {
                let reason = format!("its last dimension {hidden} cannot be split into {} heads", self.heads);
                return Err(cx.input_error(0, reason));
            }
            cx.set_shape(0, x.to_vec());
        }
        Ok(())
    }
}

fn parse_rotary(a: &AttributeReader<'_>, inputs: [usize; 3]) -> Result<RotaryEmbedding, OpError> {
    let count = |name: &str| -> Result<usize, OpError> {
        let n = a.int(name, 0)?;
        usize::try_from(n)
            .map_err(|_| OpError::attribute(name, format!("{n} is not allowed; allowed are numbers from 0")))
    };
    Ok(RotaryEmbedding {
        interleaved: a.flag("interleaved", false)?,
        rotated: count("rotary_embedding_dim")?,
        heads: count("num_heads")?,
        inputs,
        scale: 1.0,
    })
}

const MASKS: Types = Types::NUMERIC.and(Types::BOOL);

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Attention",
        &[23, 24, 25],
        "Q:T1, K:T1, V:T2, attn_mask?:U, past_key?:T1, past_value?:T2, nonpad_kv_seqlen?:int64 \
         -> Y:T1, present_key?:T1, present_value?:T2, qk_matmul_output?:T1",
        &[("T1", Types::FLOAT), ("T2", Types::FLOAT), ("U", MASKS)],
        |a| Ok(Arc::new(parse_attention(a)?)),
    ),
    // What the fusions of this library make where the mask may have one column, or where heads lie within wider
    // matrices.
    Declaration::new(
        "Attention",
        &[1],
        "Q:T1, K:T1, V:T2, attn_mask?:U -> Y:T1",
        &[("T1", Types::FLOAT), ("T2", Types::FLOAT), ("U", MASKS)],
        |a| {
            let packed = Packed::read(a)?;
            let op = parse_attention(a)?;
            if packed.is_some() && op.heads.is_none() {
                return Err(OpError::attribute("q_num_heads", "heads within matrices need it"));
            }
            Ok(Arc::new(Attention { mask_broadcasts: true, packed, ..op }))
        },
    )
    .domain("rukh"),
    Declaration::new(
        "RotaryEmbedding",
        &[23],
        "X:T, cos_cache:T, sin_cache:T, position_ids?:int64 -> Y:T",
        &[("T", Types::FLOAT)],
        |a| Ok(Arc::new(parse_rotary(a, [1, 2, 3])?)),
    ),
    Declaration::new(
        "RotaryEmbedding",
        &[1],
        "input:T, position_ids:int64, cos_cache:T, sin_cache:T -> output:T",
        &[("T", Types::FLOAT)],
        |a| {
            a.ignore("is_packed_batching");
            let scale = a.float("scale", 1.0)?;
            Ok(Arc::new(RotaryEmbedding { scale, ..parse_rotary(a, [2, 3, 1])? }))
        },
    )
    .domain("com.microsoft"),
];
