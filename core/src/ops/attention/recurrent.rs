//! Operators of linear-time sequence models: LinearAttention, CausalConvWithState.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, ValueType};

use crate::ops::activation::Activation;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

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
}

impl Operator for LinearAttention {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        for (input, name, wanted) in [(4, "decay", self.gated), (5, "beta", self.delta)] {
            if cx.has(input) != wanted {
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
        for (input, last, heads) in [(0, &q[2], &heads), (1, &k[2], &kv_heads), (2, &v[2], &kv_heads)] {
            if let (Some(n), Some(h)) = (last.known(), heads.known())
                && n % h != 0
            {
                let reason = format!("its last dimension {n} cannot be split into {h} heads");
                return Err(cx.input_error(input, reason));
            }
        }
        let (d_k, d_v) = (q[2].floor_div(&heads), v[2].floor_div(&kv_heads));
        for (input, shape, last) in [(1, k, kv_heads.mul(&d_k)), (2, v, v[2].clone())] {
            for (i, (want, given)) in [&q[0], &q[1], &last].into_iter().zip(shape).enumerate() {
                cx.equal(input, &format!("its dimension {i}"), want, given)?;
            }
        }
        let state = vec![q[0].clone(), kv_heads.clone(), d_k.clone(), d_v.clone()];
        if let Some(past) = cx.shape_of_rank(3, 4)? {
            for (i, (want, given)) in state.iter().zip(past).enumerate() {
                cx.equal(3, &format!("its dimension {i}"), want, given)?;
            }
        }
        for (input, allowed) in
            [(4, [kv_heads.clone(), kv_heads.mul(&d_k)]), (5, [kv_heads.clone(), Dim::Known(1)])]
        {
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
        cx.set_shape(0, vec![q[0].clone(), q[1].clone(), heads.mul(&d_v)]);
        cx.set_shape(1, state);
        Ok(())
    }
}

fn parse_linear(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let heads = |name: &str| -> Result<usize, OpError> {
        let n = a.required_int(name)?;
        usize::try_from(n).ok().filter(|&n| n > 0 && n <= i32::MAX as usize).ok_or_else(|| {
            OpError::attribute(name, format!("{n} is not allowed; allowed are numbers above 0"))
        })
    };
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
    let (heads, kv_heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    if !heads.is_multiple_of(kv_heads) {
        let reason = format!("{heads} is not a multiple of kv_num_heads, {kv_heads}");
        return Err(OpError::attribute("q_num_heads", reason));
    }
    Ok(Arc::new(LinearAttention { heads, kv_heads, scale: a.float("scale", 0.0)?, gated, delta }))
}

/// A causal depthwise convolution over time. Inputs: X, W, B, past state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CausalConv {
    pub activation: Activation,
}

impl Operator for CausalConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(x), Some(w)) = (cx.shape_of_rank(0, 3)?, cx.shape_of_rank(1, 3)?) else { return Ok(()) };
        cx.equal(1, "its channels", &x[1], &w[0])?;
        cx.equal(1, "its dimension 1", &Dim::Known(1), &w[1])?;
        if let Some(bias) = cx.shape_of_rank(2, 1)? {
            cx.equal(2, "its length", &x[1], &bias[0])?;
        }
        let state = vec![x[0].clone(), x[1].clone(), w[2].sub(&Dim::Known(1))];
        if let Some(past) = cx.shape_of_rank(3, 3)? {
            for (i, (want, given)) in state.iter().zip(past).enumerate() {
                cx.equal(3, &format!("its dimension {i}"), want, given)?;
            }
        }
        if w[2].known() == Some(0) {
            return Err(cx.input_error(1, "its kernel has no element; allowed are numbers above 0"));
        }
        cx.set_shape(0, x.to_vec());
        cx.set_shape(1, state);
        Ok(())
    }
}

const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "LinearAttention",
        &[27],
        "query:T, key:T, value:T, past_state?:S, decay?:T, beta?:T -> output:T, present_state:S",
        &[("T", FLOATS), ("S", FLOATS)],
        parse_linear,
    ),
    Declaration::new(
        "CausalConvWithState",
        &[27],
        "input:T, weight:T, bias?:T, past_state?:T -> output:T, present_state:T",
        &[("T", FLOATS)],
        |a| {
            let choices =
                [("none", Activation::Identity), ("silu", Activation::Silu), ("swish", Activation::Silu)];
            Ok(Arc::new(CausalConv { activation: a.choice("activation", "none", &choices)? }))
        },
    ),
];
