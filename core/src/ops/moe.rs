//! Mixtures of experts (domain com.microsoft): each row goes through the few feed-forward networks that a
//! router chooses for it.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType::{BF16, F16, F32};

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `Σ weight · (activation(x·W1ᵀ + b1) · W2ᵀ + b2)` over the `k` experts with the largest router scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Experts {
    pub k: usize,
    pub activation: ExpertActivation,
    /// Whether the weights of the chosen experts are made to sum to 1.
    pub normalize: bool,
    pub inputs: ExpertInputs,
    pub quantized: Option<QuantizedExperts>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExpertActivation {
    Relu,
    /// By tanh.
    Gelu,
    Silu,
    Identity,
    /// `g · sigmoid(alpha·g) · (l + beta)`, `g` limited from above and `l` on both sides.
    SwiGlu {
        alpha: f32,
        beta: f32,
        limit: Option<f32>,
        layout: GateLayout,
    },
}

/// Where the two operands of a gate are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateLayout {
    /// The second is the product with the third weights.
    Apart,
    Interleaved,
    Halves,
}

/// Which input is what; rows and router scores are the first two. For each of the up to three products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertInputs {
    pub weights: [usize; 3],
    pub biases: [usize; 3],
    /// Of quantized weights.
    pub scales: [usize; 3],
    pub zero_points: [usize; 3],
    /// Scores to weight the experts with, where they differ from those to choose by.
    pub router_weights: usize,
}

/// Weights of few bits, packed into bytes from the low bits on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedExperts {
    pub bits: [usize; 3],
    /// Elements of a row that share a scale; all where it is `None`.
    pub block: Option<usize>,
}

impl Experts {
    /// Columns of the first product for each of the second's rows.
    pub fn fusion(&self) -> usize {
        match self.activation {
            ExpertActivation::SwiGlu { layout: GateLayout::Interleaved | GateLayout::Halves, .. } => 2,
            _ => 1,
        }
    }
}

impl Operator for Experts {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let at = self.inputs;
        let gated = matches!(self.activation, ExpertActivation::SwiGlu { layout: GateLayout::Apart, .. });
        if gated && !cx.has(at.weights[2]) {
            return Err(cx.input_error(at.weights[2], "swiglu without fusion needs the third weights"));
        }
        if self.fusion() == 2 && cx.has(at.weights[2]) {
            return Err(cx.input_error(at.weights[2], "fused swiglu has no third weights"));
        }
        let Some(x) = cx.shape(0) else { return Ok(()) };
        let (tokens, hidden) = match x {
            [tokens, hidden] => (tokens.clone(), hidden.clone()),
            [batch, rows, hidden] => (batch.mul(rows), hidden.clone()),
            _ => return Err(cx.input_error(0, format!("its rank is {}; allowed are 2 and 3", x.len()))),
        };
        let Some([rows, experts]) = cx.shape_of_rank(1, 2)? else { return Ok(()) };
        cx.equal(1, "its number of rows", &tokens, rows)?;
        if let Some(n) = experts.known()
            && n < self.k as i64
        {
            return Err(cx.input_error(1, format!("it has {n} experts, of which {} are wanted", self.k)));
        }
        if let Some(weights) = cx.shape_of_rank(at.router_weights, 2)? {
            cx.equal(at.router_weights, "its number of rows", &tokens, &weights[0])?;
            cx.equal(at.router_weights, "its number of experts", experts, &weights[1])?;
        }
        if let Some(fc1) = cx.shape_of_rank(at.weights[0], 3)? {
            let inter = fc1[1].floor_div(&Dim::from(self.fusion()));
            let extents = [(&fc1[1], &hidden), (&hidden, &inter), (&inter, &hidden)];
            for (i, (n, k)) in extents.into_iter().enumerate() {
                self.check_product(cx, i, [experts, n, k])?;
            }
        }
        cx.set_shape(0, x.to_vec());
        Ok(())
    }
}

impl Experts {
    /// Weights `[experts, n, k]` and what belongs to them.
    fn check_product(&self, cx: &Infer<'_>, i: usize, [experts, n, k]: [&Dim; 3]) -> Result<(), OpError> {
        let at = self.inputs;
        let packed = match self.quantized {
            Some(q) => k.mul(&Dim::from(q.bits[i])).ceil_div(&Dim::Known(8)),
            None => k.clone(),
        };
        if let Some(weights) = cx.shape_of_rank(at.weights[i], 3)? {
            for (d, want) in [(0, experts), (1, n), (2, &packed)] {
                cx.equal(at.weights[i], &format!("its dimension {d}"), want, &weights[d])?;
            }
        } else {
            return Ok(());
        }
        if let Some(bias) = cx.shape_of_rank(at.biases[i], 2)? {
            cx.equal(at.biases[i], "its number of experts", experts, &bias[0])?;
            cx.equal(at.biases[i], "its number of columns", n, &bias[1])?;
        }
        let Some(q) = self.quantized else { return Ok(()) };
        if !cx.has(at.scales[i]) {
            return Err(cx.input_error(at.scales[i], "quantized weights need their scales"));
        }
        let (Some(experts), Some(n), Some(k)) = (experts.known(), n.known(), k.known()) else {
            return Ok(());
        };
        let (bits, block) = (q.bits[i] as i64, q.block.map_or(k, |block| block as i64));
        if (k * bits) % 8 != 0 || k % block.max(1) != 0 {
            let reason = format!("rows of {k} elements are no whole bytes or blocks of {block}");
            return Err(cx.input_error(at.weights[i], reason));
        }
        let blocks = k / block.max(1);
        let points = match q.block {
            Some(_) => experts * n * (blocks * bits + 7).div_euclid(8),
            None => experts * (n * bits + 7).div_euclid(8),
        };
        for (input, want) in [(at.scales[i], experts * n * blocks), (at.zero_points[i], points)] {
            let Some(shape) = cx.shape(input) else { continue };
            let count = shape.iter().try_fold(1, |product, d| Some(product * d.known()?));
            if count.is_some_and(|count| count != want) {
                let reason = format!("its shape is {shape:?}; it must have {want} elements");
                return Err(cx.input_error(input, reason));
            }
        }
        Ok(())
    }
}

fn parse(
    a: &AttributeReader<'_>,
    inputs: ExpertInputs,
    quantized: Option<QuantizedExperts>,
) -> Result<Arc<dyn Operator>, OpError> {
    let layout = match a.int("swiglu_fusion", 0)? {
        0 => GateLayout::Apart,
        1 => GateLayout::Interleaved,
        2 => GateLayout::Halves,
        n => {
            let reason = format!("{n} is not allowed; allowed is 0 to 2");
            return Err(OpError::attribute("swiglu_fusion", reason));
        }
    };
    let gate = ExpertActivation::SwiGlu {
        alpha: a.float("activation_alpha", 1.0)?,
        beta: a.float("activation_beta", 0.0)?,
        limit: a.optional_float("swiglu_limit")?,
        layout,
    };
    let activations = [
        ("relu", ExpertActivation::Relu),
        ("gelu", ExpertActivation::Gelu),
        ("silu", ExpertActivation::Silu),
        ("identity", ExpertActivation::Identity),
        ("swiglu", gate),
    ];
    if a.flag("swiglu_limit_after_activation", false)? {
        return Err(OpError::Unsupported("swiglu_limit_after_activation is not supported".into()));
    }
    if a.flag("use_sparse_mixer", false)? {
        return Err(OpError::Unsupported("use_sparse_mixer is not supported".into()));
    }
    let k = a.int("k", 1)?;
    let k = usize::try_from(k)
        .ok()
        .filter(|&k| k > 0)
        .ok_or_else(|| OpError::attribute("k", format!("{k} is not allowed; allowed are numbers from 1")))?;
    Ok(Arc::new(Experts {
        k,
        activation: a.choice("activation_type", "relu", &activations)?,
        normalize: a.flag("normalize_routing_weights", false)?,
        inputs,
        quantized,
    }))
}

/// An input that the operator does not have.
const NONE: usize = usize::MAX;

fn parse_plain(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let inputs = ExpertInputs {
        weights: [2, 4, 6],
        biases: [3, 5, 7],
        scales: [NONE; 3],
        zero_points: [NONE; 3],
        router_weights: NONE,
    };
    parse(a, inputs, None)
}

fn parse_quantized(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let inputs = ExpertInputs {
        weights: [2, 5, 8],
        biases: [4, 7, 10],
        scales: [3, 6, 9],
        zero_points: [11, 12, 13],
        router_weights: 14,
    };
    let kind = a.string("quant_type", "int")?;
    if kind != "int" {
        return Err(OpError::Unsupported(format!("quant_type {kind} is not supported; int is")));
    }
    // Layouts of other devices; products are computed in float.
    if a.int("weights_prepacked", -1)? == 1 {
        return Err(OpError::Unsupported("weights_prepacked 1 is a layout of other devices".into()));
    }
    a.ignore("accuracy_level");
    let all = a.int("expert_weight_bits", 4)?;
    let mut bits = [0; 3];
    let names = ["fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"];
    for (bits, name) in bits.iter_mut().zip(names) {
        *bits = match a.int(name, all)? {
            n @ (2 | 4 | 8) => n as usize,
            n => return Err(OpError::attribute(name, format!("{n} is not allowed; allowed are 2, 4 and 8"))),
        };
    }
    let block = a.int("block_size", 0)?;
    let block = usize::try_from(block).ok().filter(|&block| block > 0);
    parse(a, inputs, Some(QuantizedExperts { bits, block }))
}

const FLOAT: Types = Types::of(&[F32, F16, BF16]);

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "MoE",
        &[1],
        "input:T, router_probs:T, fc1_experts_weights:T, fc1_experts_bias?:T, fc2_experts_weights:T, \
         fc2_experts_bias?:T, fc3_experts_weights?:T, fc3_experts_bias?:T -> output:T",
        &[("T", FLOAT)],
        parse_plain,
    )
    .domain("com.microsoft"),
    Declaration::new(
        "QMoE",
        &[1],
        "input:T, router_probs:T, fc1_experts_weights:uint8, fc1_scales?:T2, fc1_experts_bias?:T, \
         fc2_experts_weights:uint8, fc2_scales?:T2, fc2_experts_bias?:T, fc3_experts_weights?:uint8, \
         fc3_scales?:T2, fc3_experts_bias?:T, fc1_zero_points?:uint8, fc2_zero_points?:uint8, \
         fc3_zero_points?:uint8, router_weights?:T -> output:T",
        &[("T", FLOAT), ("T2", FLOAT)],
        parse_quantized,
    )
    .domain("com.microsoft"),
];
