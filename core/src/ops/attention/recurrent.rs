//! Operators of linear-time sequence models: LinearAttention, CausalConvWithState, in the standard and in
//! com.microsoft, and LinearAttentionGate of com.microsoft.

use std::sync::Arc;

use super::attributes::read_heads;
use crate::graph::Dim;
use crate::ops::activation::Activation;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::tensor::{ElementType, ValueType};

/// Attention whose state is one matrix a head. Inputs: query, key, value, past state, decay, beta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearAttention {
    pub heads: usize,
    pub kv_heads: usize,
    /// One by the root of the key size where it is 0.
    pub scale: f32,
    /// Whether the state decays.
    pub gated: bool,
    /// Whether only what the state does not hold yet is written.
    pub delta: bool,
    /// As in com.microsoft: several heads of values may share one of queries or of keys, and what the rule does not take
    /// is ignored.
    pub microsoft: bool,
}

impl LinearAttention {
    /// Heads of the output.
    pub fn output_heads(&self) -> usize {
        self.heads.max(self.kv_heads)
    }

    /// Heads of keys with so many columns in all, each of `size`.
    pub fn key_heads(&self, columns: usize, size: usize) -> Result<usize, String> {
        if !self.microsoft || size == 0 {
            return Ok(self.kv_heads);
        }
        let heads = columns / size;
        if columns.is_multiple_of(size) && heads > 0 && self.kv_heads.is_multiple_of(heads) {
            return Ok(heads);
        }
        Err(format!(
            "its last dimension is {columns}; with heads of {size}, allowed is a number of heads that divides kv_num_heads, {}",
            self.kv_heads
        ))
    }
}

impl Operator for LinearAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        for (input, name, wanted) in [(4, "decay", self.gated), (5, "beta", self.delta)] {
            if cx.has(input) != wanted && (wanted || !self.microsoft) {
                let verb = if wanted { "needs" } else { "does not take" };
                return Err(cx.input_error(input, format!("the update rule {verb} {name}")));
            }
        }
        // Without a state to take the type from, it is that of the query.
        let state_type = cx.element_type(3).or(cx.element_type(0));
        if let Some(ty) = state_type {
            cx.set_type(1, ValueType::Tensor(ty));
        }
        let (q, k, v) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(1, 3)?, cx.shape_of_rank(2, 3)?);
        let (Some(q), Some(k), Some(v)) = (q, k, v) else { return Ok(()) };
        let (heads, kv_heads) = (Dim::from(self.heads), Dim::from(self.kv_heads));
        let d_k = q[2].floor_div(&heads);
        // In com.microsoft keys have as many heads as their columns make of the queries' size; until both are known, one,
        // which refuses nothing.
        let key_heads = match (self.microsoft, k[2].known(), d_k.known()) {
            (false, ..) => kv_heads.clone(),
            (true, Some(columns), Some(size)) => {
                let [columns, size] = [columns, size].map(|n| usize::try_from(n).unwrap_or(0));
                Dim::from(self.key_heads(columns, size).map_err(|reason| cx.input_error(1, reason))?)
            }
            (true, ..) => Dim::Known(1),
        };
        for (input, last, heads) in [(0, &q[2], &heads), (1, &k[2], &key_heads), (2, &v[2], &kv_heads)] {
            if let (Some(n), Some(h)) = (last.known(), heads.known())
                && n % h != 0
            {
                let reason = format!("its last dimension {n} cannot be split into {h} heads");
                return Err(cx.input_error(input, reason));
            }
        }
        let d_v = v[2].floor_div(&kv_heads);
        let key_columns = if self.microsoft { k[2].clone() } else { kv_heads.mul(&d_k) };
        for (input, shape, last) in [(1, k, key_columns), (2, v, v[2].clone())] {
            cx.equal_shape(input, [&q[0], &q[1], &last], shape)?;
        }
        let state = vec![q[0].clone(), kv_heads.clone(), d_k.clone(), d_v.clone()];
        if let Some(past) = cx.shape_of_rank(3, 4)? {
            cx.equal_shape(3, &state, past)?;
        }
        for (input, taken, allowed) in [
            (4, self.gated, [kv_heads.clone(), kv_heads.mul(&d_k)]),
            (5, self.delta, [kv_heads.clone(), Dim::Known(1)]),
        ] {
            if !taken {
                continue;
            }
            let Some(gate) = cx.shape_of_rank(input, 3)? else { continue };
            cx.equal(input, "its batch", &q[0], &gate[0])?;
            cx.equal(input, "its length", &q[1], &gate[1])?;
            if gate[2].known().is_some() && allowed.iter().all(|d| d.known().is_some() && *d != gate[2]) {
                let reason = format!(
                    "its last dimension is {}; allowed are {} and {}",
                    gate[2], allowed[0], allowed[1]
                );
                return Err(cx.input_error(input, reason));
            }
        }
        cx.set_shape(0, vec![q[0].clone(), q[1].clone(), Dim::from(self.output_heads()).mul(&d_v)]);
        cx.set_shape(1, state);
        Ok(())
    }
}

fn parse_linear(a: &AttributeReader<'_>, microsoft: bool) -> Result<Arc<dyn Operator>, OpError> {
    a.ignore("chunk_size");
    let (gated, delta) = a.choice(
        "update_rule",
        "gated_delta",
        &[
            ("linear", (false, false)),
            ("gated", (true, false)),
            ("delta", (false, true)),
            ("gated_delta", (true, true)),
        ],
    )?;
    let (heads, kv_heads) = (read_heads(a, "q_num_heads")?, read_heads(a, "kv_num_heads")?);
    let shared = microsoft && kv_heads.is_multiple_of(heads);
    if !heads.is_multiple_of(kv_heads) && !shared {
        let reason = format!("{heads} is not a multiple of kv_num_heads, {kv_heads}");
        return Err(OpError::attribute("q_num_heads", reason));
    }
    let scale = a.float("scale", 0.0)?;
    Ok(Arc::new(LinearAttention { heads, kv_heads, scale, gated, delta, microsoft }))
}

/// Refuses attributes of com.microsoft that are not what they are by themselves.
fn only_default(a: &AttributeReader<'_>, attributes: &[(&str, i64)]) -> Result<(), OpError> {
    for &(name, allowed) in attributes {
        let given = a.int(name, allowed)?;
        if given != allowed {
            return Err(OpError::attribute(
                name,
                format!("{given} is not supported; supported is {allowed}"),
            ));
        }
    }
    Ok(())
}

/// A causal depthwise convolution over time. Inputs: X, W, B, past state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CausalConv {
    pub activation: Activation,
    /// Positions from one element of the kernel to the next.
    pub dilation: usize,
    /// Whether inputs, outputs and states are `[batch, time, channels…]`, with any number of dimensions of channels.
    pub channels_last: bool,
}

impl CausalConv {
    /// Batches, channels and positions of an input.
    pub fn sizes(&self, shape: &[usize]) -> Option<[usize; 3]> {
        match *shape {
            [batch, length, ref channels @ ..] if self.channels_last => {
                Some([batch, channels.iter().product(), length])
            }
            [batch, channels, length] => Some([batch, channels, length]),
            _ => None,
        }
    }
}

impl Operator for CausalConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let x = if self.channels_last { cx.shape(0) } else { cx.shape_of_rank(0, 3)? };
        let (Some(x), Some(w)) = (x, cx.shape_of_rank(1, 3)?) else { return Ok(()) };
        if x.len() < 3 {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 3 or more", x.len())));
        }
        let channels = match self.channels_last {
            true => x[2..].iter().fold(Dim::Known(1), |all, dim| all.mul(dim)),
            false => x[1].clone(),
        };
        cx.equal(1, "its channels", &channels, &w[0])?;
        cx.equal(1, "its dimension 1", &Dim::Known(1), &w[1])?;
        if let Some(bias) = cx.shape_of_rank(2, 1)? {
            cx.equal(2, "its length", &channels, &bias[0])?;
        }
        let mut state = x.to_vec();
        let time = if self.channels_last { 1 } else { 2 };
        state[time] = w[2].sub(&Dim::Known(1)).mul(&Dim::from(self.dilation));
        if let Some(past) = cx.shape_of_rank(3, x.len())? {
            cx.equal_shape(3, &state, past)?;
        }
        if w[2].known() == Some(0) {
            return Err(cx.input_error(1, "its kernel has no element; allowed are numbers above 0"));
        }
        cx.set_shape(0, x.to_vec());
        cx.set_shape(1, state);
        Ok(())
    }
}

fn parse_causal(a: &AttributeReader<'_>, microsoft: bool) -> Result<Arc<dyn Operator>, OpError> {
    let choices = [("none", Activation::Identity), ("silu", Activation::Silu), ("swish", Activation::Silu)];
    let activation = a.choice("activation", "none", &choices)?;
    if !microsoft {
        return Ok(Arc::new(CausalConv { activation, dilation: 1, channels_last: false }));
    }
    // What is left are several dimensions of time, and what no kernel of ONNX Runtime's for the CPU takes either.
    let others =
        ["state_window", "state_update_capacity", "state_length", "input_channel_offset", "input_channels"];
    only_default(a, &others.map(|name| (name, 0)))?;
    only_default(a, &[("ndim", 1), ("state_channels_last", -1)])?;
    let dilation = match a.int("dilation", 1)? {
        n if (1..=i32::MAX.into()).contains(&n) => n as usize,
        n => {
            return Err(OpError::attribute(
                "dilation",
                format!("{n} is not allowed; allowed are numbers above 0"),
            ));
        }
    };
    Ok(Arc::new(CausalConv { activation, dilation, channels_last: a.flag("channels_last", false)? }))
}

/// The gates of linear attention from projections: `scale · softplus(a + bias)`, and `sigmoid(b)`; `passes` replaces it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearAttentionGate;

impl Operator for LinearAttentionGate {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if cx.output_count() > 1 && !cx.has(3) {
            return Err(cx.input_error(3, "output 1 (beta) needs it"));
        }
        if let Some(a) = cx.shape_of_rank(0, 3)? {
            for input in [1, 2] {
                if let Some(vector) = cx.shape_of_rank(input, 1)? {
                    cx.equal(input, "its length", &a[2], &vector[0])?;
                }
            }
            cx.set_shape(0, a.to_vec());
        }
        if let Some(b) = cx.shape_of_rank(3, 3)?
            && cx.output_count() > 1
        {
            cx.set_shape(1, b.to_vec());
        }
        Ok(())
    }
}

const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

const FLOAT: Types = Types::of(&[ElementType::F32]);
const LINEAR: &str = "query:T, key:T, value:T, past_state?:S, decay?:T, beta?:T -> output:T, present_state:S";
const CAUSAL: &str = "input:T, weight:T, bias?:T, past_state?:T -> output:T, present_state:T";
const MICROSOFT: &str = "com.microsoft";

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("LinearAttention", &[27], LINEAR, &[("T", FLOATS), ("S", FLOATS)], |a| {
        parse_linear(a, false)
    }),
    Declaration::new("LinearAttention", &[1], LINEAR, &[("T", FLOATS), ("S", FLOATS)], |a| {
        only_default(a, &[("state_window", 0)])?;
        parse_linear(a, true)
    })
    .domain(MICROSOFT),
    Declaration::new("CausalConvWithState", &[27], CAUSAL, &[("T", FLOATS)], |a| parse_causal(a, false)),
    Declaration::new("CausalConvWithState", &[1], CAUSAL, &[("T", FLOATS)], |a| parse_causal(a, true))
        .domain(MICROSOFT),
    Declaration::new(
        "LinearAttentionGate",
        &[1],
        "a:T, dt_bias:TF, decay_scale:TF, b?:T -> decay:T, beta?:T",
        &[("T", FLOATS), ("TF", FLOAT)],
        |_| Ok(Arc::new(LinearAttentionGate)),
    )
    .domain(MICROSOFT),
];
