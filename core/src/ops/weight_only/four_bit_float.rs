//! Products with a weight of 4-bit floats (domain com.microsoft): MatMulBlockQuantizedFp4Weight.

use std::sync::Arc;

use crate::graph::Dim;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::tensor::ElementType;

use super::check_count;

/// `A · W' + bias`. W has rows of float4e2m1 numbers, two a byte, the first in the lower bits. `block` of them share a
/// float8e4m3fn, given as a byte, and all share a float; the products of the three are the weight. Inputs: A, W, scales,
/// the scale of all, a scale of A that is for products of 4-bit floats alone, bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FourBitFloatProduct {
    pub block: usize,
}

impl Operator for FourBitFloatProduct {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        check_count(cx, 3, 1)?;
        check_count(cx, 4, 1)?;
        let Some([n, bytes]) = cx.shape_of_rank(1, 2)? else { return Ok(()) };
        let k = bytes.mul(&Dim::Known(2));
        if let Some(scales) = cx.shape_of_rank(2, 2)? {
            cx.equal(2, "its dimension 0", n, &scales[0])?;
            cx.equal(2, "its dimension 1", &k.ceil_div(&Dim::from(self.block)), &scales[1])?;
        }
        if let Some(bias) = cx.shape_of_rank(5, 1)? {
            cx.equal(5, "its length", n, &bias[0])?;
        }
        let Some(a) = cx.shape(0) else { return Ok(()) };
        let Some((last, rows)) = a.split_last() else {
            return Err(cx.input_error(0, "its rank is 0; allowed are ranks from 1"));
        };
        cx.equal(0, "its last dimension", &k, last)?;
        cx.set_shape(0, [rows, std::slice::from_ref(n)].concat());
        Ok(())
    }
}

fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    match a.int("block_size", 16)? {
        block if (1..=i32::MAX as i64).contains(&block) => {
            Ok(Arc::new(FourBitFloatProduct { block: block as usize }))
        }
        block => {
            let reason = format!("{block} is not allowed; allowed is 1 to 2147483647");
            Err(OpError::attribute("block_size", reason))
        }
    }
}

const FLOATS: Types = Types::of(&[ElementType::F32, ElementType::F16, ElementType::BF16]);

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "MatMulBlockQuantizedFp4Weight",
    &[1],
    "A:T, B:uint8, weight_scale:uint8, weight_scale_2:float, input_scale?:float, bias?:T -> Y:T",
    &[("T", FLOATS)],
    parse,
)
.domain("com.microsoft")];
