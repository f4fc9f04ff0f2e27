//! Convolution, plain and fused.

pub mod deform;
pub mod shape;
pub mod transpose;

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::activation::Activation;
use super::channel_blocked::{
    channel_blocked_conv_shape, channel_blocked_image_shape, into_blocks, read_channel_blocked,
};
use super::window::{Window, check_weight_rank};
use super::{Declaration, Infer, OpError, Operator, Types};
use shape::{conv_shape, infer_conv};

/// `activation(W ∗ X + B + residual)`. The residual is input 3, which only the fused forms have.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    pub window: Window,
    pub group: usize,
    pub activation: Activation,
    /// Whether the input is channel-blocked, and whether output and residual are (of rukh).
    pub channel_blocked: [bool; 2],
}

/// The input of a convolution that is added to the outputs before the activation.
pub const RESIDUAL: usize = 3;

impl Operator for Conv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if self.channel_blocked.contains(&true) {
            check_weight_rank(cx, 1)?;
            if let Some(shape) =
                channel_blocked_conv_shape(cx, &self.window, self.group, 1, self.channel_blocked)?
            {
                cx.set_shape(0, shape);
            }
        } else {
            infer_conv(&self.window, self.group, cx, 1)?;
        }
        if let (Some(bias), Some(w)) = (cx.shape_of_rank(2, 1)?, cx.shape(1)) {
            cx.equal(2, "its length", &w[0], &bias[0])?;
        }
        if let (Some(shape), Some(residual)) = (cx.output_shape(0), cx.shape(RESIDUAL)) {
            if residual.len() != shape.len() {
                let reason = format!("its shape is {residual:?}; allowed is {shape:?}");
                return Err(cx.input_error(RESIDUAL, reason));
            }
            for (want, given) in shape.iter().zip(residual) {
                cx.equal(RESIDUAL, "its dimension", want, given)?;
            }
        }
        Ok(())
    }
}

/// A pointwise convolution (weight: input 1, bias: input 2) with an activation, and a depthwise one of what it gives
/// (weight: input 3, bias: input 4).
#[derive(Clone, Debug, PartialEq)]
pub struct ConvPair {
    pub first: Activation,
    pub second: Conv,
}

impl ConvPair {
    /// Whether a depthwise convolution with such a window may be the second.
    pub fn allows(window: &Window) -> bool {
        let all = |list: &[i64], allowed: &[i64]| {
            allowed.iter().any(|x| list.iter().all(|y| x == y)) && list.len() <= 2
        };
        window.kernel.len() == 2
            && all(&window.kernel, &[3, 5])
            && all(&window.strides, &[1, 2])
            && all(&window.dilations, &[1])
    }

    fn parse(a: &super::AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        let (window, group, activation) = (Window::read(a)?, read_group(a)?, Activation::read(a)?);
        if !Self::allows(&window) {
            let reason = format!(
                "a kernel of {:?} with strides {:?} and dilations {:?} is not allowed; allowed are kernels of 3 x 3 and \
                 5 x 5 with strides of 1 or 2",
                window.kernel, window.strides, window.dilations
            );
            return Err(OpError::attribute("kernel_shape", reason));
        }
        let first = Activation::read_from(a, ["first_activation", "first_activation_params"])?;
        let channel_blocked = read_channel_blocked(a)?;
        Ok(Arc::new(ConvPair { first, second: Conv { window, group, activation, channel_blocked } }))
    }
}

impl Operator for ConvPair {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let [blocked_input, blocked_output] = self.second.channel_blocked;
        let x = match blocked_input {
            true => channel_blocked_image_shape(cx)?,
            false => cx.shape_of_rank(0, 4)?.map(<[Dim]>::to_vec),
        };
        let (Some(x), Some(w)) = (x, cx.shape_of_rank(1, 4)?) else { return Ok(()) };
        cx.equal(1, "the channels of X that W1 takes", &x[1], &w[1])?;
        for kernel in &w[2..] {
            cx.equal(1, "the kernel of W1", &Dim::Known(1), kernel)?;
        }
        let between = [&[x[0].clone(), w[0].clone()], &x[2..]].concat();
        let group = Dim::from(self.second.group);
        if let Some(w) = cx.shape_of_rank(3, 4)? {
            cx.equal(3, "its output channels, of which each has a group", &group, &w[0])?;
            cx.equal(3, "its channels of a group", &Dim::Known(1), &w[1])?;
        }
        for bias in [2, 4] {
            if let Some(bias_shape) = cx.shape_of_rank(bias, 1)? {
                cx.equal(bias, "its length", &group, &bias_shape[0])?;
            }
        }
        let mut shape = conv_shape(&self.second.window, self.second.group, cx, &between, 3)?;
        if blocked_output {
            shape = into_blocks(cx, shape)?;
        }
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// Reads `group`.
pub fn read_group(a: &super::AttributeReader<'_>) -> Result<usize, OpError> {
    let group = a.int("group", 1)?;
    usize::try_from(group).ok().filter(|&g| g > 0 && g <= i32::MAX as usize).ok_or_else(|| {
        OpError::attribute("group", format!("{group} is not allowed; allowed is 1 to 2147483647"))
    })
}

fn read_conv(a: &super::AttributeReader<'_>) -> Result<Conv, OpError> {
    let (window, group) = (Window::read(a)?, read_group(a)?);
    Ok(Conv { window, group, activation: Activation::Identity, channel_blocked: [false; 2] })
}

fn parse_fused(a: &super::AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Conv { activation: Activation::read(a)?, ..read_conv(a)? }))
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Conv", &[1, 11, 22], "X:T, W:T, B?:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(read_conv(a)?))
    }),
    Declaration::new("FusedConv", &[1], "X:T, W:T, B?:T, Z?:T -> Y:T", &[("T", Types::FLOAT)], parse_fused)
        .domain("com.microsoft"),
    // What the passes of this library make.
    Declaration::new(
        "FusedConv",
        &[1],
        "X:T, W:T, B?:T, Z?:T -> Y:T",
        &[("T", Types::of(&[ElementType::BF16]))],
        |a| {
            let (activation, channel_blocked) = (Activation::read(a)?, read_channel_blocked(a)?);
            Ok(Arc::new(Conv { activation, channel_blocked, ..read_conv(a)? }))
        },
    )
    .domain("rukh"),
    Declaration::new(
        "ConvPair",
        &[1],
        "X:T, W1:T, B1?:T, W2:T, B2?:T -> Y:T",
        &[("T", Types::FLOAT)],
        ConvPair::parse,
    )
    .domain("rukh"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Attributes, Fact, Node, OpName, ValueId};
    use crate::ops::{Unknowns, resolve};
    use crate::tensor::{ElementType, ValueType};

    #[test]
    fn a_weight_of_too_low_a_rank_is_refused_for_any_image() {
        for name in ["Conv", "ConvTranspose"] {
            for shape in [vec![], vec![Dim::Known(4)], vec![Dim::Known(4); 2]] {
                let node = Node {
                    name: "test".into(),
                    op: OpName { domain: String::new(), name: name.into(), opset: 22 },
                    attributes: Attributes::default(),
                    inputs: vec![Some(ValueId(0)), Some(ValueId(1))],
                    outputs: vec![Some(ValueId(2))],
                };
                let (registered, op) = resolve(&node).unwrap();
                let image =
                    Fact { ty: Some(ValueType::Tensor(ElementType::F32)), shape: None, elements: None };
                let weight = Fact::tensor(ElementType::F32, shape);
                let (facts, mut unknowns) = ([Some(&image), Some(&weight)], Unknowns::default());
                let mut cx =
                    Infer::new(&registered.signature, &facts, &[None, None], 1, &mut unknowns).unwrap();
                let error = op.infer(&mut cx).unwrap_err().to_string();
                assert!(error.contains("input 1 (W)") && error.contains("ranks from 3"), "{error}");
            }
        }
    }
}
