//! Projections of language models: a product with a matrix, of floats or packed, the normalisation before it, and the
//! gated unit behind.

use std::sync::Arc;

use super::gated::{GatedUnit, function};
use super::matmul::{MatMul, read_product, set_product_shape};
use super::weight_only::{self, MatMulNBits};
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use crate::graph::Dim;

/// `gate(norm(x + skip) · W + bias + residual)`; output 1 is `x + skip`. Without a scale nothing is normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projection {
    pub product: MatMul,
    /// Of the RMS normalisation.
    pub epsilon: f32,
    pub gate: Option<GatedUnit>,
}

impl Operator for Projection {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(ty) = cx.element_type(0) {
            cx.set_element_type(1, ty);
        }
        let (Some(x), Some(weight)) = (cx.shape(0), cx.shape_of_rank(1, 2)?) else { return Ok(()) };
        let shape = set_product_shape(&self.product, cx, 0, x, 1, weight)?;
        if let (Some(bias), Some(columns)) = (cx.shape_of_rank(2, 1)?, shape.last()) {
            cx.equal(2, "its length", columns, &bias[0])?;
        }
        check_before(cx, x, [4, 5])?;
        let shape = behind(cx, self.gate, shape)?;
        if let Some(residual) = cx.shape_of_rank(3, shape.len())? {
            for (want, given) in shape.iter().zip(residual) {
                cx.equal(3, "its dimension", want, given)?;
            }
        }
        cx.set_shape(0, shape);
        cx.set_shape(1, x.to_vec());
        Ok(())
    }
}

/// The same of a packed weight: `gate(norm(x + skip) · W' + bias)`. Its inputs begin with those of MatMulNBits, without an
/// order of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackedProjection {
    pub product: MatMulNBits,
    /// Of the RMS normalisation.
    pub epsilon: f32,
    pub gate: Option<GatedUnit>,
}

impl Operator for PackedProjection {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(ty) = cx.element_type(0) {
            cx.set_element_type(1, ty);
        }
        let Some(shape) = self.product.shape(cx)? else { return Ok(()) };
        let x = cx.shape(0).unwrap_or_default();
        check_before(cx, x, [6, 7])?;
        let shape = behind(cx, self.gate, shape)?;
        cx.set_shape(0, shape);
        cx.set_shape(1, x.to_vec());
        Ok(())
    }
}

/// Checks the inputs of the normalisation of rows of this shape: what is added to them, and the scale.
fn check_before(cx: &Infer<'_>, x: &[Dim], [skip, scale]: [usize; 2]) -> Result<(), OpError> {
    if let (Some(given), Some(along)) = (cx.shape_of_rank(scale, 1)?, x.last()) {
        cx.equal(scale, "its length", along, &given[0])?;
    }
    if let Some(given) = cx.shape_of_rank(skip, x.len())? {
        for (want, given) in x.iter().zip(given) {
            cx.equal(skip, "its dimension", want, given)?;
        }
    }
    Ok(())
}

/// The shape that a gated unit makes of a product's.
fn behind(cx: &Infer<'_>, gate: Option<GatedUnit>, mut shape: Vec<Dim>) -> Result<Vec<Dim>, OpError> {
    if let (Some(_), Some(columns)) = (gate, shape.last_mut()) {
        if columns.known().is_some_and(|n| n % 2 != 0) {
            return Err(cx.input_error(1, format!("{columns} columns have no halves")));
        }
        *columns = columns.floor_div(&Dim::Known(2));
    }
    Ok(shape)
}

/// The attributes of the normalisation and of the gated unit.
fn read_around(a: &AttributeReader<'_>) -> Result<(f32, Option<GatedUnit>), OpError> {
    let gate_last = a.flag("gate_last", false)?;
    let gate = match a.string("gate", "")? {
        "" => None,
        name => Some(GatedUnit { activation: function("gate", name)?, gate_last }),
    };
    Ok((a.float("epsilon", 1e-5)?, gate))
}

/// What the fusions of this library make.
pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "PackedProjection",
        &[1],
        "A:T1, B:uint8, scales:T1, zero_points?:T3, g_idx?:int32, bias?:T1, skip?:T1, norm_scale?:T1 -> Y:T1, sum?:T1",
        &[("T1", weight_only::HALF_OR_FLOAT), ("T3", weight_only::ZERO_POINTS)],
        |a| {
            let (epsilon, gate) = read_around(a)?;
            Ok(Arc::new(PackedProjection { product: MatMulNBits::read(a)?, epsilon, gate }))
        },
    )
    .domain("rukh"),
    Declaration::new(
        "Projection",
        &[1],
        "X:T, W:T, bias?:T, residual?:T, skip?:T, scale?:T -> Y:T, sum?:T",
        &[("T", Types::FLOAT)],
        |a| {
            let (epsilon, gate) = read_around(a)?;
            Ok(Arc::new(Projection { product: read_product(a)?, epsilon, gate }))
        },
    )
    .domain("rukh"),
];
