//! Products of 8-bit numbers: MatMulInteger, QLinearMatMul and their relatives, ConvInteger,
//! QLinearConv.

pub mod elementwise;
pub mod pool;
pub mod transformer;

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use self::pool::{channels_first, to_channels_last};
use super::activation::Activation;
use super::channel_blocked::{channel_blocked_conv_shape, read_channel_blocked};
use super::conv::read_group;
use super::conv::shape::conv_shape;
use super::matmul::{Gemm, MatMul, check_addend, set_product_shape};
use super::quantize::check_parameter;
use super::window::{Window, check_weight_rank};
use super::{Declaration, Infer, OpError, Operator, Types};

/// The product of stacks of matrices of 8-bit numbers. MatMulInteger has inputs A, B and their zero
/// points and gives sums; QLinearMatMul has each operand, its scale and its zero point, then scale
/// and zero point of the output. MatMulIntegerToFloat has A, B, their scales, their zero points and a
/// bias, and gives floats, as DynamicQuantizeMatMul does, whose A is of floats that the operator
/// quantizes itself: A, B, scale and zero point of B, bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QuantizedMatMul {
    Sums,
    Requantized,
    Float,
    Dynamic,
}

impl QuantizedMatMul {
    /// The input that is the right operand.
    pub fn right(self) -> usize {
        match self {
            QuantizedMatMul::Requantized => 3,
            _ => 1,
        }
    }

    /// The input that is a float bias by column.
    pub fn bias(self) -> Option<usize> {
        match self {
            QuantizedMatMul::Float => Some(6),
            QuantizedMatMul::Dynamic => Some(4),
            _ => None,
        }
    }
}

impl Operator for QuantizedMatMul {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(a), Some(b)) = (cx.shape(0), cx.shape(self.right())) else { return Ok(()) };
        if let Some(input) = self.bias()
            && let (Some(bias), Some(columns)) = (cx.shape_of_rank(input, 1)?, b.last())
        {
            cx.equal(input, "its length", columns, &bias[0])?;
        }
        set_product_shape(&MatMul::PLAIN, cx, 0, a, self.right(), b).map(|_| ())
    }
}

/// `alpha·(A' · B' + C)` for matrices of 8-bit numbers A and B, each with scale and zero point, and a
/// C that counts in units of their scales' product; then scale and zero point of a quantized output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantizedGemm {
    pub alpha: f32,
    pub transpose: [bool; 2],
    /// Whether the output is quantized; else it is of floats.
    pub requantized: bool,
}

impl Operator for QuantizedGemm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        [1, 2, 7, 8].into_iter().try_for_each(|i| check_parameter(cx, i))?;
        if self.requantized != cx.has(8) {
            return Err(cx.input_error(8, "it must be given when y_scale is, and only then"));
        }
        match (self.requantized, cx.element_type(8)) {
            (false, _) => cx.set_element_type(0, ElementType::F32),
            (true, Some(ty)) => cx.set_element_type(0, ty),
            _ => {}
        }
        let gemm = Gemm {
            alpha: self.alpha,
            beta: 1.0,
            transpose: self.transpose,
            activation: Activation::Identity,
        };
        let shape = gemm.product_shape(cx, [0, 3])?;
        check_addend(cx, 6, &shape)?;
        cx.set_shape(0, shape);
        Ok(())
    }
}

/// The input of `rukh.QLinearConv` that is added to the outputs.
pub const RESIDUAL: usize = 9;

/// A convolution of 8-bit numbers. ConvInteger has inputs x, w and their zero points and gives sums;
/// QLinearConv has x and w each with scale and zero point, scale and zero point of the output, and a
/// bias.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedConv {
    pub window: Window,
    pub group: usize,
    pub requantized: bool,
    /// Whether channels are the last dimension of x and y (of com.microsoft); w always has them second.
    pub channels_last: bool,
    /// Whether the input is channel-blocked, and whether output and residual are (of rukh).
    pub channel_blocked: [bool; 2],
}

impl QuantizedConv {
    /// The input that is the weight.
    pub fn weight(&self) -> usize {
        if self.requantized { 3 } else { 1 }
    }

    /// The input that is its zero point.
    pub fn weight_zero(&self) -> usize {
        if self.requantized { 5 } else { 3 }
    }
}

impl Operator for QuantizedConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        check_weight_rank(cx, self.weight())?;
        let shape = if self.channel_blocked.contains(&true) {
            channel_blocked_conv_shape(cx, &self.window, self.group, self.weight(), self.channel_blocked)?
        } else if let Some(x) = channels_first(cx, self.channels_last)? {
            let shape = conv_shape(&self.window, self.group, cx, &x, self.weight())?;
            Some(if self.channels_last { to_channels_last(shape) } else { shape })
        } else {
            None
        };
        let Some(shape) = shape else { return Ok(()) };
        cx.set_shape(0, shape);
        if self.requantized
            && let (Some(bias), Some(w)) = (cx.shape_of_rank(8, 1)?, cx.shape(3))
        {
            cx.equal(8, "its length", &w[0], &bias[0])?;
        }
        if let (Some(residual), Some(output)) = (cx.shape(RESIDUAL), cx.output_shape(0)) {
            let same = |(a, b): (&Dim, &Dim)| a.known().zip(b.known()).is_none_or(|(a, b)| a == b);
            if residual.len() != output.len() || !residual.iter().zip(output).all(same) {
                let reason = format!("its shape is {residual:?}; allowed is {output:?}");
                return Err(cx.input_error(RESIDUAL, reason));
            }
        }
        Ok(())
    }
}

const BYTES: Types = Types::of(&[ElementType::I8, ElementType::U8]);
const BYTES_AND_FLOAT8: Types = BYTES.and(Types::of(&[
    ElementType::F8E4M3FN,
    ElementType::F8E4M3FNUZ,
    ElementType::F8E5M2,
    ElementType::F8E5M2FNUZ,
]));
const SCALES: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

const DOMAIN: &str = "com.microsoft";

const QLINEAR_CONV: &str = "x:T1, x_scale:float, x_zero_point:T1, w:T2, w_scale:float, w_zero_point:T2, \
    y_scale:float, y_zero_point:T3, B?:int32 -> y:T3";

fn read_conv(a: &super::AttributeReader<'_>, requantized: bool) -> Result<QuantizedConv, OpError> {
    let (window, group) = (Window::read(a)?, read_group(a)?);
    Ok(QuantizedConv { window, group, requantized, channels_last: false, channel_blocked: [false; 2] })
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "MatMulInteger",
        &[10],
        "A:T1, B:T2, a_zero_point?:T1, b_zero_point?:T2 -> Y:int32",
        &[("T1", BYTES), ("T2", BYTES)],
        |_| Ok(Arc::new(QuantizedMatMul::Sums)),
    ),
    Declaration::new(
        "QLinearMatMul",
        &[10, 21],
        "a:T1, a_scale:TS, a_zero_point:T1, b:T2, b_scale:TS, b_zero_point:T2, y_scale:TS, y_zero_point:T3 -> y:T3",
        &[("T1", BYTES_AND_FLOAT8), ("T2", BYTES_AND_FLOAT8), ("T3", BYTES_AND_FLOAT8), ("TS", SCALES)],
        |_| Ok(Arc::new(QuantizedMatMul::Requantized)),
    ),
    Declaration::new(
        "ConvInteger",
        &[10],
        "x:T1, w:T2, x_zero_point?:T1, w_zero_point?:T2 -> y:int32",
        &[("T1", BYTES), ("T2", BYTES)],
        |a| Ok(Arc::new(read_conv(a, false)?)),
    ),
    Declaration::new(
        "QLinearConv",
        &[10],
        QLINEAR_CONV,
        &[("T1", BYTES), ("T2", BYTES), ("T3", BYTES)],
        |a| Ok(Arc::new(read_conv(a, true)?)),
    ),
    Declaration::new(
        "QLinearConv",
        &[1],
        QLINEAR_CONV,
        &[("T1", BYTES), ("T2", BYTES), ("T3", BYTES)],
        |a| {
            let channels_last = a.flag("channels_last", false)?;
            Ok(Arc::new(QuantizedConv { channels_last, ..read_conv(a, true)? }))
        },
    )
    .domain(DOMAIN),
    // What the passes of this library make: the outputs and the residual are added as QLinearAdd does; tensors may be
    // channel-blocked.
    Declaration::new(
        "QLinearConv",
        &[1],
        "x:T1, x_scale:float, x_zero_point:T1, w:T2, w_scale:float, w_zero_point:T2, y_scale:float, \
         y_zero_point:T3, B?:int32, residual?:T3, residual_scale?:float, residual_zero_point?:T3, sum_scale?:float, \
         sum_zero_point?:T3 -> y:T3",
        &[("T1", BYTES), ("T2", BYTES), ("T3", BYTES)],
        |a| Ok(Arc::new(QuantizedConv { channel_blocked: read_channel_blocked(a)?, ..read_conv(a, true)? })),
    )
    .domain("rukh"),
    Declaration::new(
        "MatMulIntegerToFloat",
        &[1],
        "A:T1, B:T2, a_scale:T3, b_scale:T3, a_zero_point?:T1, b_zero_point?:T2, bias?:T3 -> Y:T3",
        &[("T1", BYTES), ("T2", BYTES), ("T3", Types::of(&[ElementType::F32, ElementType::F16]))],
        |_| Ok(Arc::new(QuantizedMatMul::Float)),
    )
    .domain(DOMAIN),
    Declaration::new(
        "DynamicQuantizeMatMul",
        &[1],
        "A:float, B:T2, b_scale:float, b_zero_point?:T2, bias?:float -> Y:float",
        &[("T2", BYTES)],
        |_| Ok(Arc::new(QuantizedMatMul::Dynamic)),
    )
    .domain(DOMAIN),
    Declaration::new(
        "QGemm",
        &[1],
        "A:TA, a_scale:float, a_zero_point:TA, B:TB, b_scale:float, b_zero_point:TB, C?:int32, \
         y_scale?:float, y_zero_point?:TYZ -> Y:any",
        &[("TA", BYTES), ("TB", BYTES), ("TYZ", BYTES)],
        |a| {
            Ok(Arc::new(QuantizedGemm {
                alpha: a.float("alpha", 1.0)?,
                transpose: [a.flag("transA", false)?, a.flag("transB", false)?],
                requantized: a.inputs() > 7,
            }))
        },
    )
    .domain(DOMAIN),
];
