//! Matrix products of floats and integers: MatMul, Gemm.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::activation::Activation;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `activation(alpha · A' · B' + bias + residual)` of stacks of matrices: numpy's product with the options
/// of `com.microsoft.FusedMatMul`. Only `rukh.MatMul` has a bias (input 2, along the last dimension), a
/// residual (input 3, of the product's shape) and an activation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatMul {
    pub alpha: f32,
    /// Whether the last two dimensions of an operand are exchanged. Not for operands of rank 1.
    pub transpose: [bool; 2],
    /// Whether an operand `[M, batch…, K]` has its batch moved to the front first.
    pub transpose_batch: [bool; 2],
    pub activation: Activation,
}

impl MatMul {
    pub const PLAIN: MatMul = MatMul {
        alpha: 1.0,
        transpose: [false; 2],
        transpose_batch: [false; 2],
        activation: Activation::Identity,
    };

    /// The batch dimensions, rows and columns of an operand, as the product sees it. A vector is a
    /// row on the left (`operand` 0) and a column on the right.
    pub fn matrix<D: Clone>(&self, operand: usize, shape: &[D], one: D) -> (Vec<D>, D, D) {
        match shape {
            [] => (Vec::new(), one.clone(), one),
            [k] if operand == 0 => (Vec::new(), one, k.clone()),
            [k] => (Vec::new(), k.clone(), one),
            [batch @ .., r, c] => {
                let (mut batch, mut rows, columns) = (batch.to_vec(), r.clone(), c.clone());
                if self.transpose_batch[operand] && !batch.is_empty() {
                    batch.push(rows);
                    rows = batch.remove(0);
                }
                if self.transpose[operand] { (batch, columns, rows) } else { (batch, rows, columns) }
            }
        }
    }
}

impl Operator for MatMul {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(a), Some(b)) = (cx.shape(0), cx.shape(1)) else { return Ok(()) };
        let shape = set_product_shape(self, cx, 0, a, 1, b)?;
        if let (Some(bias), Some(last)) = (cx.shape_of_rank(2, 1)?, shape.last()) {
            cx.equal(2, "its length", last, &bias[0])?;
        }
        if let Some(residual) = cx.shape_of_rank(3, shape.len())? {
            for (want, given) in shape.iter().zip(residual) {
                cx.equal(3, "its dimension", want, given)?;
            }
        }
        Ok(())
    }
}

/// Sets output 0 to the shape of the product of two inputs, and gives it.
pub fn set_product_shape(
    op: &MatMul,
    cx: &mut Infer<'_>,
    a_input: usize,
    a: &[Dim],
    b_input: usize,
    b: &[Dim],
) -> Result<Vec<Dim>, OpError> {
    for (input, shape) in [(a_input, a), (b_input, b)] {
        if shape.is_empty() {
            return Err(cx.input_error(input, "its rank is 0; allowed are ranks from 1"));
        }
    }
    let (a_batch, m, k) = op.matrix(0, a, Dim::Known(1));
    let (b_batch, b_k, n) = op.matrix(1, b, Dim::Known(1));
    cx.equal(b_input, "the dimension to sum over", &k, &b_k)?;
    let mut shape = cx.broadcast(&a_batch, &b_batch).map_err(|reason| cx.input_error(b_input, reason))?;
    if a.len() > 1 {
        shape.push(m);
    }
    if b.len() > 1 {
        shape.push(n);
    }
    cx.set_shape(0, shape.clone());
    Ok(shape)
}

/// `activation(alpha · A' · B' + beta · C)` for matrices A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gemm {
    pub alpha: f32,
    pub beta: f32,
    pub transpose: [bool; 2],
    pub activation: Activation,
}

impl Gemm {
    /// The shape of the product of two inputs.
    pub fn product_shape(&self, cx: &mut Infer<'_>, operands: [usize; 2]) -> Result<Vec<Dim>, OpError> {
        let (a, b) = (cx.shape_of_rank(operands[0], 2)?, cx.shape_of_rank(operands[1], 2)?);
        let pick = |shape: &[Dim], transposed: bool| {
            let (r, c) = (shape[0].clone(), shape[1].clone());
            if transposed { (c, r) } else { (r, c) }
        };
        let a = a.map(|shape| pick(shape, self.transpose[0]));
        let b = b.map(|shape| pick(shape, self.transpose[1]));
        if let (Some((_, k)), Some((b_k, _))) = (&a, &b) {
            cx.equal(operands[1], "the dimension to sum over", k, b_k)?;
        }
        let m = a.map_or_else(|| cx.unknown(), |(m, _)| m);
        let n = b.map_or_else(|| cx.unknown(), |(_, n)| n);
        Ok(vec![m, n])
    }
}

/// Checks that an input broadcasts to the product it is added to.
pub fn check_addend(cx: &Infer<'_>, input: usize, shape: &[Dim]) -> Result<(), OpError> {
    let Some(c) = cx.shape(input) else { return Ok(()) };
    let fits = c.len() <= 2
        && c.iter().rev().zip(shape.iter().rev()).all(|(c, d)| match (c.known(), d.known()) {
            (Some(c), Some(d)) => c == 1 || c == d,
            _ => true,
        });
    if fits {
        return Ok(());
    }
    let reason = format!("its shape {c:?} does not broadcast to that of the product, {shape:?}");
    Err(cx.input_error(input, reason))
}

impl Operator for Gemm {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let shape = self.product_shape(cx, [0, 1])?;
        check_addend(cx, 2, &shape)?;
        cx.set_shape(0, shape);
        Ok(())
    }
}

fn read_fused(a: &AttributeReader<'_>) -> Result<MatMul, OpError> {
    Ok(MatMul {
        alpha: a.float("alpha", 1.0)?,
        transpose: [a.flag("transA", false)?, a.flag("transB", false)?],
        transpose_batch: [a.flag("transBatchA", false)?, a.flag("transBatchB", false)?],
        activation: Activation::Identity,
    })
}

/// The attributes of `rukh.MatMul`.
pub(super) fn read_product(a: &AttributeReader<'_>) -> Result<MatMul, OpError> {
    Ok(MatMul { activation: Activation::read(a)?, ..read_fused(a)? })
}

const NUMBERS: Types =
    Types::FLOAT.and(Types::of(&[ElementType::I32, ElementType::I64, ElementType::U32, ElementType::U64]));

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("MatMul", &[1, 9, 13], "A:T, B:T -> Y:T", &[("T", NUMBERS)], |_| {
        Ok(Arc::new(MatMul::PLAIN))
    }),
    Declaration::new("Gemm", &[1, 6, 7, 9, 11, 13], "A:T, B:T, C?:T -> Y:T", &[("T", NUMBERS)], |a| {
        if a.opset() < 7 {
            // C broadcasts where its shape asks for it, as later versions have it.
            a.ignore("broadcast");
        }
        Ok(Arc::new(Gemm {
            alpha: a.float("alpha", 1.0)?,
            beta: a.float("beta", 1.0)?,
            transpose: [a.flag("transA", false)?, a.flag("transB", false)?],
            activation: Activation::Identity,
        }))
    }),
    Declaration::new("FusedMatMul", &[1], "A:T, B:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(read_fused(a)?))
    })
    .domain("com.microsoft"),
    // Its first input is sparse by type; values of this library are dense.
    Declaration::new("SparseToDenseMatMul", &[1], "A:T, B:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(read_fused(a)?))
    })
    .domain("com.microsoft"),
    // What the fusions of this library make.
    Declaration::new("MatMul", &[1], "A:T, B:T, bias?:T, residual?:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(read_product(a)?))
    })
    .domain("rukh"),
    Declaration::new("FusedGemm", &[1], "A:T, B:T, C?:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        let constants = ["activation_alpha", "activation_beta", "activation_gamma"];
        let mut given = Vec::new();
        for name in constants {
            given.extend(a.optional_float(name)?);
        }
        Ok(Arc::new(Gemm {
            alpha: a.float("alpha", 1.0)?,
            beta: a.float("beta", 1.0)?,
            transpose: [a.flag("transA", false)?, a.flag("transB", false)?],
            activation: Activation::parse(a.string("activation", "")?, &given)?,
        }))
    })
    .domain("com.microsoft"),
];
