//! Attention over several heads, as optimised transformers have it (domain com.microsoft): with the
//! projection of its inputs, and on projected ones.

use std::sync::Arc;

use crate::graph::Dim;

use super::attributes::{read_heads, read_scale};
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// What all forms have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadOptions {
    pub heads: usize,
    /// One by the root of the head size where it is `None`.
    pub scale: Option<f32>,
    pub causal: bool,
    /// Added to the scores of keys that a mask hides.
    pub filter: f32,
}

/// Attention with its projection. Inputs: rows, weights of queries, keys and values side by side, their
/// bias, mask, keys and values of the past, attention bias, length of the past in a shared buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectedAttention {
    pub options: HeadOptions,
    /// Columns of queries, keys and values; a third of the weights' each where it is `None`.
    pub hidden: Option<[usize; 3]>,
    /// Whether past and present have room for more than they hold.
    pub shared: bool,
}

/// Attention on projected inputs: queries, keys, values, and where the others are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiHeadAttention {
    pub options: HeadOptions,
    pub inputs: MultiHeadInputs,
    /// Whether past and present have room for more than they hold.
    pub shared: bool,
}

/// Which input is what; queries, keys and values are the first three.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiHeadInputs {
    pub bias: usize,
    pub mask: usize,
    pub attention_bias: usize,
    pub past: [usize; 2],
    pub past_length: usize,
}

impl ProjectedAttention {
    /// Columns of queries, keys and values in weights of so many columns.
    pub fn columns(&self, all: usize) -> [usize; 3] {
        self.hidden.unwrap_or([all / 3; 3])
    }
}

impl Operator for ProjectedAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(x), Some(w)) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(1, 2)?) else { return Ok(()) };
        cx.equal(1, "its number of rows", &x[2], &w[0])?;
        if let Some(bias) = cx.shape_of_rank(2, 1)? {
            cx.equal(2, "its length", &w[1], &bias[0])?;
        }
        let heads = Dim::from(self.options.heads);
        let [q, k, v] = match self.hidden {
            Some(hidden) => hidden.map(Dim::from),
            None => [0; 3].map(|_| w[1].floor_div(&Dim::Known(3))),
        };
        let sum = q.add(&k).add(&v);
        cx.equal(1, "its number of columns", &sum, &w[1])?;
        for hidden in [&q, &v] {
            check_split(cx, 1, hidden, self.options.heads)?;
        }
        let (batch, rows) = (x[0].clone(), x[1].clone());
        let (size, v_size) = (q.floor_div(&heads), v.floor_div(&heads));
        let mut total = Some(rows.clone());
        let mut present = vec![Dim::Known(2), batch.clone(), heads.clone(), rows.clone(), size.clone()];
        if q != k {
            return Err(OpError::attribute("qkv_hidden_sizes", "queries and keys differ in size"));
        }
        if let Some(past) = cx.shape_of_rank(4, 5)? {
            cx.equal(4, "its head size", &size, &v_size)?;
            for (i, want) in [(0, Dim::Known(2)), (1, batch.clone()), (2, heads.clone()), (4, size)] {
                cx.equal(4, &format!("its dimension {i}"), &want, &past[i])?;
            }
            present = past.to_vec();
            total = if self.shared { None } else { Some(past[3].add(&rows)) };
            if let Some(total) = &total {
                present[3] = total.clone();
            }
        } else if cx.has(4) {
            return Ok(());
        }
        if self.shared && (!cx.has(4) || !cx.has(6)) {
            let reason = "past_present_share_buffer needs past and past_sequence_length";
            return Err(cx.input_error(4, reason));
        }
        check_mask(cx, 3, [&batch, &rows], total.as_ref())?;
        check_bias(cx, 5, [&batch, &heads, &rows], total.as_ref())?;
        cx.set_shape(0, vec![batch, rows, v]);
        cx.set_shape(1, present);
        Ok(())
    }
}

impl Operator for MultiHeadAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let inputs = self.inputs;
        let Some(q) = cx.shape(0) else { return Ok(()) };
        let heads = Dim::from(self.options.heads);
        if (cx.has(1) && cx.shape(1).is_none()) || (cx.has(2) && cx.shape(2).is_none()) {
            return Ok(());
        }
        let (batch, rows) = match q {
            [b, s, _] | [b, s, _, _, _] => (b.clone(), s.clone()),
            _ => return Err(cx.input_error(0, format!("its rank is {}; allowed are 3 and 5", q.len()))),
        };
        let Some((size, keys, v_size)) = self.sizes(cx, q)? else { return Ok(()) };
        let hidden = |size: &Dim| size.mul(&heads);
        if let Some(bias) = cx.shape_of_rank(inputs.bias, 1)? {
            let want = hidden(&size).add(&hidden(&size)).add(&hidden(&v_size));
            cx.equal(inputs.bias, "its length", &want, &bias[0])?;
        }
        if cx.has(inputs.past[0]) != cx.has(inputs.past[1]) {
            return Err(cx.input_error(inputs.past[0], "past_key and past_value go together"));
        }
        let (mut total, mut capacity) = (Some(keys.clone()), keys.clone());
        if cx.has(inputs.past[0]) {
            let pasts = (cx.shape_of_rank(inputs.past[0], 4)?, cx.shape_of_rank(inputs.past[1], 4)?);
            let (Some(pk), Some(pv)) = pasts else { return Ok(()) };
            for (input, given, size) in [(inputs.past[0], pk, &size), (inputs.past[1], pv, &v_size)] {
                for (i, want) in [(0, &batch), (1, &heads), (2, &pk[2]), (3, size)] {
                    cx.equal(input, &format!("its dimension {i}"), want, &given[i])?;
                }
            }
            let shared = self.shared || cx.has(inputs.past_length);
            total = if shared { None } else { Some(pk[2].add(&keys)) };
            capacity = total.clone().unwrap_or_else(|| pk[2].clone());
            if total.is_none()
                && let Some(past) = cx.ints(inputs.past_length)
            {
                total = past.first().map(|past| past.add(&keys));
            }
        }
        check_mask(cx, inputs.mask, [&batch, &rows], total.as_ref())?;
        check_bias(cx, inputs.attention_bias, [&batch, &heads, &rows], total.as_ref())?;
        cx.set_shape(0, vec![batch.clone(), rows.clone(), hidden(&v_size)]);
        cx.set_shape(1, vec![batch.clone(), heads.clone(), capacity.clone(), size]);
        cx.set_shape(2, vec![batch.clone(), heads.clone(), capacity, v_size]);
        let total = total.unwrap_or_else(|| cx.unknown());
        cx.set_shape(3, vec![batch, heads, rows, total]);
        Ok(())
    }
}

impl MultiHeadAttention {
    /// Head size of queries and keys, rows of keys, and head size of values.
    fn sizes(&self, cx: &Infer<'_>, q: &[Dim]) -> Result<Option<(Dim, Dim, Dim)>, OpError> {
        let heads = Dim::from(self.options.heads);
        let packed = |i: usize, shape: &[Dim], parts: i64| {
            cx.equal(i, "its number of heads", &heads, &shape[2])?;
            cx.equal(i, "its dimension 3", &Dim::Known(parts), &shape[3])
        };
        let (key, value) = (cx.shape(1), cx.shape(2));
        if let [_, s, _, _, size] = q {
            packed(0, q, 3)?;
            if key.is_some() || value.is_some() {
                return Err(cx.input_error(1, "queries of rank 5 hold the keys and values"));
            }
            return Ok(Some((size.clone(), s.clone(), size.clone())));
        }
        let Some(key) = key else {
            // Queries, keys and values side by side in each row.
            let hidden = q[2].floor_div(&Dim::Known(3));
            check_split(cx, 0, &q[2], 3 * self.options.heads)?;
            let size = hidden.floor_div(&heads);
            return Ok(Some((size.clone(), q[1].clone(), size)));
        };
        check_split(cx, 0, &q[2], self.options.heads)?;
        let size = q[2].floor_div(&heads);
        cx.equal(1, "its batch", &q[0], &key[0])?;
        let (rows, v_size) = match (key, value) {
            ([_, rows, _, _, k_size], None) => {
                packed(1, key, 2)?;
                cx.equal(1, "its head size", &size, k_size)?;
                (rows, size.clone())
            }
            ([_, rows, k_hidden], Some([b, v_rows, v_hidden])) => {
                cx.equal(1, "its last dimension", &q[2], k_hidden)?;
                cx.equal(2, "its batch", &q[0], b)?;
                cx.equal(2, "its number of rows", rows, v_rows)?;
                check_split(cx, 2, v_hidden, self.options.heads)?;
                (rows, v_hidden.floor_div(&heads))
            }
            ([_, k_heads, rows, k_size], Some([b, v_heads, v_rows, v_size])) => {
                cx.equal(1, "its number of heads", &heads, k_heads)?;
                cx.equal(1, "its head size", &size, k_size)?;
                cx.equal(2, "its batch", &q[0], b)?;
                cx.equal(2, "its number of heads", &heads, v_heads)?;
                cx.equal(2, "its number of rows", rows, v_rows)?;
                (rows, v_size.clone())
            }
            _ => {
                let reason = format!(
                    "its rank is {} with values of rank {}; allowed are 3 with 3, 4 with 4, and 5 without values",
                    key.len(),
                    value.map_or("-".to_owned(), |v| v.len().to_string())
                );
                return Err(cx.input_error(1, reason));
            }
        };
        Ok(Some((size, rows.clone(), v_size)))
    }
}

/// Refuses a dimension that does not split into the heads.
pub(super) fn check_split(cx: &Infer<'_>, i: usize, dim: &Dim, heads: usize) -> Result<(), OpError> {
    match dim.known() {
        Some(n) if n % heads as i64 != 0 => {
            Err(cx.input_error(i, format!("{n} columns cannot be split into {heads} heads")))
        }
        _ => Ok(()),
    }
}

/// A mask is `[batch]` lengths, `[2·batch]` ends and starts, `[3·batch + 2]` lengths and offsets, or ones
/// and zeros: `[batch, total]`, `[batch, rows, total]`, `[batch, 1, max, max]`. One column hides nothing.
fn check_mask(
    cx: &Infer<'_>,
    i: usize,
    [batch, rows]: [&Dim; 2],
    total: Option<&Dim>,
) -> Result<(), OpError> {
    let Some(mask) = cx.shape(i) else { return Ok(()) };
    let (batch, rows, total) = (batch.known(), rows.known(), total.and_then(Dim::known));
    let same = |a: &Dim, b: Option<i64>| a.known().zip(b).is_none_or(|(a, b)| a == b);
    let fits = match mask {
        [n] => [batch, batch.map(|b| 2 * b), batch.map(|b| 3 * b + 2)].into_iter().any(|want| same(n, want)),
        [b, t] if t.known() == Some(1) => same(b, batch) || b.known() == Some(1),
        [b, t] => same(b, batch) && same(t, total),
        [b, s, t] => same(b, batch) && same(s, rows) && same(t, total),
        [b, one, m, n] => {
            let enough = n.known().zip(total).is_none_or(|(n, total)| n >= total);
            same(b, batch) && same(one, Some(1)) && same(m, n.known()) && enough
        }
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(cx.input_error(
        i,
        format!(
            "its shape is {mask:?}; allowed are [batch], [2·batch], [3·batch + 2], [batch, total], \
             [batch, rows, total] and [batch, 1, max, max]"
        ),
    ))
}

/// What is added to the scores: `[batch or 1, heads or 1, rows, total]`.
pub(super) fn check_bias(
    cx: &Infer<'_>,
    i: usize,
    [batch, heads, rows]: [&Dim; 3],
    total: Option<&Dim>,
) -> Result<(), OpError> {
    let Some(bias) = cx.shape_of_rank(i, 4)? else { return Ok(()) };
    let same = |a: &Dim, b: &Dim| a.known().zip(b.known()).is_none_or(|(a, b)| a == b);
    let one = Dim::Known(1);
    let fits = [(0, batch), (1, heads)].iter().all(|&(i, d)| same(&bias[i], d) || bias[i] == one)
        && same(&bias[2], rows)
        && total.is_none_or(|total| same(&bias[3], total));
    if fits {
        return Ok(());
    }
    let total = total.map_or("total".to_owned(), ToString::to_string);
    let allowed = format!("[{batch} or 1, {heads} or 1, {rows}, {total}]");
    Err(cx.input_error(i, format!("its shape is {bias:?}; allowed is {allowed}")))
}

fn read_options(a: &AttributeReader<'_>) -> Result<HeadOptions, OpError> {
    Ok(HeadOptions {
        heads: read_heads(a, "num_heads")?,
        scale: read_scale(a)?,
        causal: a.flag("unidirectional", false)?,
        filter: a.float("mask_filter_value", -10000.0)?,
    })
}

fn parse_projected(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    if a.flag("do_rotary", false)? {
        return Err(OpError::Unsupported("do_rotary of Attention is not supported".into()));
    }
    a.ignore("rotary_embedding_dim");
    let options = read_options(a)?;
    let hidden = match a.ints("qkv_hidden_sizes")? {
        None | Some([]) => None,
        Some(&[q, k, v]) if [q, k, v].iter().all(|&n| n > 0 && n % options.heads as i64 == 0) => {
            Some([q as usize, k as usize, v as usize])
        }
        Some(given) => {
            let heads = options.heads;
            let reason = format!("{given:?} is not allowed; allowed are three multiples of {heads} heads");
            return Err(OpError::attribute("qkv_hidden_sizes", reason));
        }
    };
    let shared = a.flag("past_present_share_buffer", false)?;
    Ok(Arc::new(ProjectedAttention { options, hidden, shared }))
}

fn parse_multi_head(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let inputs = MultiHeadInputs { bias: 3, mask: 4, attention_bias: 5, past: [6, 7], past_length: 8 };
    Ok(Arc::new(MultiHeadAttention { options: read_options(a)?, inputs, shared: false }))
}

/// One new row for each sequence; the cache may have room for more.
fn parse_decoder(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let inputs = MultiHeadInputs { bias: 10, mask: 3, attention_bias: 4, past: [5, 6], past_length: 7 };
    // The scores are given whenever output 3 is wanted.
    a.ignore("output_qk");
    let shared = a.flag("past_present_share_buffer", false)?;
    Ok(Arc::new(MultiHeadAttention { options: read_options(a)?, inputs, shared }))
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];
const DOMAIN: &str = "com.microsoft";

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Attention",
        &[1],
        "input:T, weights:T, bias?:T, mask_index?:int32, past?:T, attention_bias?:T, \
         past_sequence_length?:int32 -> output:T, present?:T",
        FLOAT,
        parse_projected,
    )
    .domain(DOMAIN),
    Declaration::new(
        "MultiHeadAttention",
        &[1],
        "query:T, key?:T, value?:T, bias?:T, key_padding_mask?:int32, attention_bias?:T, past_key?:T, \
         past_value?:T, past_sequence_length?:int32, cache_indirection?:int32 \
         -> output:T, present_key?:T, present_value?:T, qk?:T",
        FLOAT,
        parse_multi_head,
    )
    .shape_inputs(&[8])
    .domain(DOMAIN),
    Declaration::new(
        "DecoderMaskedMultiHeadAttention",
        &[1],
        "query:T, key?:T, value?:T, mask_index?:int32, attention_bias?:T, past_key?:T, past_value?:T, \
         past_sequence_length?:int32, beam_width?:int32, cache_indirection?:int32, bias?:T \
         -> output:T, present_key?:T, present_value?:T, qk?:T",
        FLOAT,
        parse_decoder,
    )
    .shape_inputs(&[7])
    .domain(DOMAIN),
];
