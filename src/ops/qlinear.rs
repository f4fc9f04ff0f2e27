//! Products of 8-bit numbers: MatMulInteger, QLinearMatMul, ConvInteger, QLinearConv.

use std::sync::Arc;

use crate::tensor::ElementType;

use super::conv::{infer_conv, read_group};
use super::matmul::{MatMul, set_product_shape};
use super::window::Window;
use super::{Declaration, Infer, OpError, Operator, Types};

/// The product of stacks of matrices of 8-bit numbers. MatMulInteger has inputs A, B and their zero
/// points and gives sums; QLinearMatMul has each operand, its scale and its zero point, then scale
/// and zero point of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum QuantizedMatMul {
    Sums,
    Requantized,
}

impl QuantizedMatMul {
    /// The input that is the right operand.
    pub(crate) fn right(self) -> usize {
        match self {
            QuantizedMatMul::Sums => 1,
            QuantizedMatMul::Requantized => 3,
        }
    }
}

impl Operator for QuantizedMatMul {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(a), Some(b)) = (cx.shape(0), cx.shape(self.right())) else { return Ok(()) };
        set_product_shape(&MatMul::PLAIN, cx, 0, a, self.right(), b)
    }
}

/// A convolution of 8-bit numbers. ConvInteger has inputs x, w and their zero points and gives sums;
/// QLinearConv has x and w each with scale and zero point, scale and zero point of the output, and a
/// bias.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuantizedConv {
    pub(crate) window: Window,
    pub(crate) group: usize,
    pub(crate) requantized: bool,
}

impl QuantizedConv {
    /// The input that is the weight.
    pub(crate) fn weight(&self) -> usize {
        if self.requantized { 3 } else { 1 }
    }
}

impl Operator for QuantizedConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        infer_conv(&self.window, self.group, cx, self.weight())?;
        if self.requantized
            && let (Some(bias), Some(w)) = (cx.shape_of_rank(8, 1)?, cx.shape(3))
        {
            cx.equal(8, "its length", &w[0], &bias[0])?;
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

fn parse_conv(a: &super::AttributeReader<'_>, requantized: bool) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(QuantizedConv { window: Window::read(a)?, group: read_group(a)?, requantized }))
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
        |a| parse_conv(a, false),
    ),
    Declaration::new(
        "QLinearConv",
        &[10],
        "x:T1, x_scale:float, x_zero_point:T1, w:T2, w_scale:float, w_zero_point:T2, y_scale:float, \
         y_zero_point:T3, B?:int32 -> y:T3",
        &[("T1", BYTES), ("T2", BYTES), ("T3", BYTES)],
        |a| parse_conv(a, true),
    ),
];
