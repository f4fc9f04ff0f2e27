//! Elementwise operators between quantized tensors (domain com.microsoft), and their relatives along
//! an axis: each tensor has one scale and one zero point.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use crate::ops::concat::Concat;
use crate::ops::quantize::check_parameter;
use crate::ops::softmax::{Normalizer, Softmax};
use crate::ops::unary::Unary;
use crate::ops::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `C = A ∘ B`; inputs are A and B, each with scale and zero point, then scale and zero point of C.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QLinearBinary {
    Add,
    Mul,
}

impl Operator for QLinearBinary {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        [1, 2, 4, 5, 6, 7].into_iter().try_for_each(|i| check_parameter(cx, i))?;
        if let Some(shape) = cx.broadcast_inputs(&[0, 3])? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

/// `Y = f(X)`; inputs are X, its scale and zero point, scale and zero point of Y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QLinearUnary(pub Unary);

impl Operator for QLinearUnary {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        same_shape(cx)
    }
}

/// Softmax with the inputs of [`QLinearUnary`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QLinearSoftmax(pub Softmax);

impl Operator for QLinearSoftmax {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        self.0.infer(cx)?;
        same_shape(cx)
    }
}

/// The rule of operators with one quantized input, whose shape the output has.
fn same_shape(cx: &mut Infer<'_>) -> Result<(), OpError> {
    (1..5).try_for_each(|i| check_parameter(cx, i))?;
    if let Some(shape) = cx.shape(0) {
        cx.set_shape(0, shape.to_vec());
    }
    Ok(())
}

/// `Z = condition ? X : Y`; X, Y, Z each with scale and zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QLinearWhere;

impl Operator for QLinearWhere {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        [2, 3, 5, 6, 7, 8].into_iter().try_for_each(|i| check_parameter(cx, i))?;
        if let Some(shape) = cx.broadcast_inputs(&[0, 1, 4])? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

/// Joins tensors along an axis; inputs are scale and zero point of the output, then each tensor with
/// scale and zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QLinearConcat {
    pub axis: i64,
}

impl Operator for QLinearConcat {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let count = cx.input_count();
        if count % 3 != 2 {
            let reason = format!("the node has {count} inputs; allowed are 2 and 3 for each tensor to join");
            return Err(cx.input_error(count - 1, reason));
        }
        check_parameter(cx, 0)?;
        check_parameter(cx, 1)?;
        for i in (2..count).step_by(3) {
            self.check_types(cx, i)?;
            check_parameter(cx, i + 1)?;
            check_parameter(cx, i + 2)?;
        }
        let shapes: Vec<Option<&[Dim]>> = (2..count).step_by(3).map(|i| cx.shape(i)).collect();
        if let Some(shape) = (Concat { axis: self.axis }).joined(cx, &shapes, |k| 2 + 3 * k)? {
            cx.set_shape(0, shape);
        }
        Ok(())
    }
}

impl QLinearConcat {
    /// A tensor, its scale and its zero point, from input `i`.
    fn check_types(&self, cx: &Infer<'_>, i: usize) -> Result<(), OpError> {
        let bytes = [ElementType::U8, ElementType::I8];
        for (input, allowed) in [(i, &bytes[..]), (i + 1, &[ElementType::F32]), (i + 2, &bytes)] {
            if let Some(ty) = cx.element_type(input)
                && !allowed.contains(&ty)
            {
                let allowed: Vec<&str> = allowed.iter().map(|ty| ty.name()).collect();
                let reason = format!("its type is {ty}; allowed is {}", allowed.join(" or "));
                return Err(cx.input_error(input, reason));
            }
        }
        match (cx.element_type(i), cx.element_type(i + 2)) {
            (Some(x), Some(zero)) if x != zero => {
                Err(cx.input_error(i + 2, format!("its type is {zero}; allowed is that of its tensor, {x}")))
            }
            _ => Ok(()),
        }
    }
}

fn parse_softmax(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    // The version of Softmax that is meant.
    let flatten = a.required_int("opset")? < 13;
    let axis = a.int("axis", -1)?;
    Ok(Arc::new(QLinearSoftmax(Softmax { normalizer: Normalizer::Softmax, axis, flatten })))
}

const BYTES: Types = Types::of(&[ElementType::I8, ElementType::U8]);
const T: &[(&str, Types)] = &[("T", BYTES)];
const DOMAIN: &str = "com.microsoft";

const BINARY: &str = "A:T, A_scale:float, A_zero_point?:T, B:T, B_scale:float, B_zero_point?:T, \
    C_scale:float, C_zero_point?:T -> C:T";
const UNARY: &str = "X:T, X_scale:float, X_zero_point?:T, Y_scale:float, Y_zero_point?:T -> Y:T";

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("QLinearAdd", &[1], BINARY, T, |_| Ok(Arc::new(QLinearBinary::Add))).domain(DOMAIN),
    Declaration::new("QLinearMul", &[1], BINARY, T, |_| Ok(Arc::new(QLinearBinary::Mul))).domain(DOMAIN),
    Declaration::new("QLinearSigmoid", &[1], UNARY, T, |_| Ok(Arc::new(QLinearUnary(Unary::Sigmoid))))
        .domain(DOMAIN),
    Declaration::new("QLinearLeakyRelu", &[1], UNARY, T, |a| {
        Ok(Arc::new(QLinearUnary(Unary::LeakyRelu { alpha: a.float("alpha", 0.01)? })))
    })
    .domain(DOMAIN),
    Declaration::new(
        "QLinearSoftmax",
        &[1],
        "X:T, X_scale:float, x_zero_point?:T, y_scale:float, y_zero_point:T -> Y:T",
        T,
        parse_softmax,
    )
    .domain(DOMAIN),
    Declaration::new(
        "QLinearWhere",
        &[1],
        "condition:bool, X:T, x_scale:float, x_zero_point:T, Y:T, y_scale:float, y_zero_point:T, \
         z_scale:float, z_zero_point:T -> Z:T",
        T,
        |_| Ok(Arc::new(QLinearWhere)),
    )
    .domain(DOMAIN),
    Declaration::new(
        "QLinearConcat",
        &[1],
        "Y_scale:float, Y_zero_point:T8, inputs+:any -> Y:T8",
        &[("T8", BYTES)],
        |a| Ok(Arc::new(QLinearConcat { axis: a.required_int("axis")? })),
    )
    .domain(DOMAIN),
];
