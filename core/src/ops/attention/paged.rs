//! Attention of sequences of any lengths, one behind the other, over caches in blocks (domain com.microsoft).

use std::sync::Arc;

use crate::graph::Dim;

use super::attributes::{read_rotary, read_scale, read_shared_heads};
use super::multi_head::check_split;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::tensor::ElementType;

/// Inputs: queries (or queries, keys and values side by side), keys, values, caches of keys and values in blocks, the
/// first token of each sequence, lengths of their pasts, the blocks of each sequence, cosines, sines, the place of each
/// token in the caches, sinks, weights of the normalisation of queries and keys, scales of quantized caches, bounds for
/// the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedAttention {
    pub heads: usize,
    pub kv_heads: usize,
    /// One by the root of the head size where it is `None`.
    pub scale: Option<f32>,
    /// 0 for none.
    pub softcap: f32,
    pub causal: bool,
    /// Keys before its own that a query sees; `None` is all.
    pub window: Option<usize>,
    /// Whether queries and keys are rotated, and then whether neighbours are pairs.
    pub rotary: Option<bool>,
    /// The first element of a head that is rotated.
    pub rotary_start: usize,
    /// Whether values are the leading elements of the keys, which then have one head.
    pub latent: bool,
    /// Size of a value where it is not that of a key.
    pub value_size: Option<usize>,
    /// Added to the mean square of the rows that are normalised.
    pub norm_epsilon: f32,
}

impl PagedAttention {
    /// Size of a head, where a row of queries has so many columns.
    pub fn size(&self, columns: usize, packed: bool) -> usize {
        columns / self.parts(packed)
    }

    fn parts(&self, packed: bool) -> usize {
        if packed { self.heads + 2 * self.kv_heads } else { self.heads }
    }
}

impl Operator for PagedAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        self.check_given(cx)?;
        if let Some(starts) = cx.shape_of_rank(5, 1)? {
            let batch = starts[0].sub(&Dim::Known(1));
            if batch.known().is_some_and(|n| n < 0) {
                return Err(
                    cx.input_error(5, "it has no element; allowed is one more than there are sequences")
                );
            }
            if let Some(lengths) = cx.shape_of_rank(6, 1)? {
                cx.equal(6, "its length", &batch, &lengths[0])?;
            }
            if let Some(table) = cx.shape_of_rank(7, 2)? {
                cx.equal(7, "its dimension 0", &batch, &table[0])?;
            }
        }
        let Some([tokens, columns]) = cx.shape_of_rank(0, 2)? else { return Ok(()) };
        if let (Some([Dim::Known(1)]), Some(n @ 1..)) = (cx.shape(5), tokens.known()) {
            let reason = format!("it has no sequence, and query has {n} tokens; allowed is none");
            return Err(cx.input_error(5, reason));
        }
        let parts = self.parts(!cx.has(1));
        check_split(cx, 0, columns, parts)?;
        let size = columns.floor_div(&Dim::from(parts));
        if let Some(n) = size.known() {
            self.check_sizes(n)?;
        }
        let (heads, kv_heads) = (Dim::from(self.heads), Dim::from(self.kv_heads));
        for i in [1, 2] {
            if let Some(given) = cx.shape_of_rank(i, 2)? {
                cx.equal_shape(i, [tokens, &size.mul(&kv_heads)], given)?;
            }
        }
        for (i, length) in [(10, tokens), (11, &heads), (12, &size), (13, &size)] {
            if let Some(given) = cx.shape_of_rank(i, 1)? {
                cx.equal(i, "its length", length, &given[0])?;
            }
        }
        self.check_caches(cx, &size)?;
        let value_size = self.value_size.map_or(size, Dim::from);
        cx.set_shape(0, vec![tokens.clone(), heads.mul(&value_size)]);
        Ok(())
    }
}

impl PagedAttention {
    /// Whether inputs are given that go together.
    fn check_given(&self, cx: &Infer<'_>) -> Result<(), OpError> {
        if self.latent {
            for (i, name) in [(2, "value"), (4, "value_cache")] {
                if cx.has(i) {
                    return Err(
                        cx.input_error(i, format!("with a kv_cache_layout of LATENT there is no {name}"))
                    );
                }
            }
            if !cx.has(1) {
                return Err(cx.input_error(1, "a kv_cache_layout of LATENT needs it"));
            }
        } else {
            if cx.has(1) != cx.has(2) {
                return Err(cx.input_error(1, "key and value go together"));
            }
            if !cx.has(4) {
                return Err(cx.input_error(4, "a kv_cache_layout of SEPARATE needs it"));
            }
        }
        if self.rotary.is_some() && !(cx.has(8) && cx.has(9)) {
            return Err(cx.input_error(8, "do_rotary needs cos_cache and sin_cache"));
        }
        if cx.has(12) != cx.has(13) {
            return Err(cx.input_error(12, "q_norm_weight and k_norm_weight go together"));
        }
        for i in [14, 15] {
            if cx.has(i) {
                return Err(
                    cx.input_error(i, "quantized caches are not supported; allowed is to leave it out")
                );
            }
        }
        Ok(())
    }

    fn check_sizes(&self, size: i64) -> Result<(), OpError> {
        let rejected = |name: &str, given: usize, most: i64| {
            OpError::attribute(name, format!("{given} is not allowed; allowed are 0 to {most}"))
        };
        if let Some(value) = self.value_size.filter(|&n| n as i64 > size) {
            return Err(rejected("v_head_size", value, size));
        }
        if self.scale.is_none() && self.value_size.is_some_and(|n| n as i64 != size) {
            return Err(OpError::attribute(
                "scale",
                "where v_head_size is not the size of a key it must be given",
            ));
        }
        match self.rotary_start {
            start if start as i64 > size => Err(rejected("rotary_offset", start, size)),
            _ => Ok(()),
        }
    }

    /// Shapes of the caches, and of those that come back.
    fn check_caches(&self, cx: &mut Infer<'_>, size: &Dim) -> Result<(), OpError> {
        if let Some(cosines) = cx.shape_of_rank(8, 2)? {
            if let Some(sines) = cx.shape_of_rank(9, 2)? {
                cx.equal_shape(9, cosines, sines)?;
            }
            if let (Some(half), Some(size)) = (cosines[1].known(), size.known()) {
                let most = (size - self.rotary_start as i64).max(0) / 2;
                if half > most {
                    return Err(
                        cx.input_error(8, format!("its dimension 1 is {half}; allowed is 0 to {most}"))
                    );
                }
            }
        }
        let Some(keys) = cx.shape_of_rank(3, 4)? else { return Ok(()) };
        if keys[1].known() == Some(0) {
            return Err(cx.input_error(3, "its blocks have room for no key; allowed are numbers from 1"));
        }
        for (d, want) in [(2, &Dim::from(self.kv_heads)), (3, size)] {
            cx.equal(3, &format!("its dimension {d}"), want, &keys[d])?;
        }
        cx.set_shape(1, keys.to_vec());
        if let Some(values) = cx.shape_of_rank(4, 4)? {
            cx.equal_shape(4, keys, values)?;
        }
        if !self.latent {
            cx.set_shape(2, keys.to_vec());
        }
        Ok(())
    }
}

fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let [heads, kv_heads] = read_shared_heads(a)?;
    let window = match a.int("local_window_size", -1)? {
        -1 => None,
        n if n >= 0 => Some(n as usize),
        n => {
            let reason = format!("{n} is not allowed; allowed are numbers from -1");
            return Err(OpError::attribute("local_window_size", reason));
        }
    };
    refuse_quantized_caches(a)?;
    // The type of the caches says the same.
    a.ignore("k_cache_dtype");
    a.ignore("v_cache_dtype");
    let latent = a.choice("kv_cache_layout", "SEPARATE", &[("SEPARATE", false), ("LATENT", true)])?;
    let count = |name: &str| -> Result<usize, OpError> {
        let n = a.int(name, 0)?;
        usize::try_from(n).ok().filter(|&n| n <= i32::MAX as usize).ok_or_else(|| {
            OpError::attribute(name, format!("{n} is not allowed; allowed is 0 to 2147483647"))
        })
    };
    let value_size = Some(count("v_head_size")?).filter(|&n| n > 0);
    if value_size.is_some() && !latent {
        return Err(OpError::attribute("v_head_size", "with a kv_cache_layout of SEPARATE it must be 0"));
    }
    if latent && kv_heads != 1 {
        let reason = format!("{kv_heads} is not allowed; with a kv_cache_layout of LATENT allowed is 1");
        return Err(OpError::attribute("kv_num_heads", reason));
    }
    let rotary_start = count("rotary_offset")?;
    Ok(Arc::new(PagedAttention {
        heads,
        kv_heads,
        scale: read_scale(a)?,
        softcap: a.float("softcap", 0.0)?,
        causal: a.flag("is_causal", true)?,
        window,
        rotary: read_rotary(a)?,
        rotary_start,
        latent,
        value_size,
        norm_epsilon: a.float("qk_norm_epsilon", 1e-6)?,
    }))
}

const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

/// Refuses caches of keys and values that are not floats.
fn refuse_quantized_caches(a: &AttributeReader<'_>) -> Result<(), OpError> {
    for name in ["k_quant_type", "v_quant_type"] {
        let given = a.string(name, "NONE")?;
        if given != "NONE" {
            return Err(OpError::Unsupported(format!(
                "{name} {given}: quantized caches are not supported; allowed is NONE"
            )));
        }
    }
    Ok(())
}

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "PagedAttention",
    &[1],
    "query:T, key?:T, value?:T, key_cache:T, value_cache?:T, cumulative_sequence_length:int32, past_seqlens:int32, \
     block_table:int32, cos_cache?:T, sin_cache?:T, slot_mapping?:int32, head_sink?:T, q_norm_weight?:T, \
     k_norm_weight?:T, k_scale?:float, v_scale?:float, attention_metadata?:int32 \
     -> output:T, key_cache_out?:T, value_cache_out?:T",
    &[("T", FLOATS)],
    parse,
)
.domain("com.microsoft")];
