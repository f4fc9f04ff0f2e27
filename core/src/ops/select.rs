//! Operators that choose elements by value: OneHot, NonZero, Compress.

use std::sync::Arc;

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};
use crate::tensor::{ElementType, Tensor, bf16, f16};

/// A new axis with the "on" value at the index and the "off" value elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct OneHot {
    pub axis: i64,
}

impl Operator for OneHot {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(values) = cx.shape_of_rank(2, 1)?
            && values[0].known().is_some_and(|n| n != 2)
        {
            return Err(
                cx.input_error(2, format!("it has {} elements; allowed are 2: off and on", values[0]))
            );
        }
        let depth = match cx.constant(1) {
            Some(t) => match scalar_to_int(t) {
                Some(n) if n >= 0 => Some(n.into()),
                _ => return Err(cx.input_error(1, "it must be one number, 0 or above")),
            },
            None => cx.ints(1).and_then(|d| d.into_iter().next()),
        };
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axis = axis_of(self.axis, shape.len() + 1)?;
        let depth = depth.unwrap_or_else(|| cx.unknown());
        let mut result = shape.to_vec();
        result.insert(axis, depth);
        cx.set_shape(0, result);
        Ok(())
    }
}

/// The only element of a numeric tensor, rounded towards zero.
fn scalar_to_int(t: &Tensor) -> Option<i64> {
    let t = t.aligned().ok()?;
    if t.len() != 1 || t.ty() == ElementType::String {
        return None;
    }
    let view = t.view();
    use ElementType as E;
    Some(match t.ty() {
        E::F32 => view.slice::<f32>()[0] as i64,
        E::F64 => view.slice::<f64>()[0] as i64,
        E::F16 => view.slice::<f16>()[0].to_f32() as i64,
        E::BF16 => view.slice::<bf16>()[0].to_f32() as i64,
        E::U8 => view.slice::<u8>()[0] as i64,
        E::U16 => view.slice::<u16>()[0] as i64,
        E::U32 => view.slice::<u32>()[0] as i64,
        E::U64 => i64::try_from(view.slice::<u64>()[0]).ok()?,
        E::I8 => view.slice::<i8>()[0] as i64,
        E::I16 => view.slice::<i16>()[0] as i64,
        E::I32 => view.slice::<i32>()[0] as i64,
        E::I64 => view.slice::<i64>()[0],
        _ => return None,
    })
}

/// The coordinates of the elements that are not zero: `[rank, count]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NonZero;

impl Operator for NonZero {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let rank = match cx.shape(0) {
            Some(shape) => shape.len().into(),
            None => cx.unknown(),
        };
        let count = cx.unknown();
        cx.set_shape(0, vec![rank, count]);
        Ok(())
    }
}

/// The slices of an axis (or the elements of the flattened input) where a condition holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Compress {
    pub axis: Option<i64>,
}

impl Operator for Compress {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        cx.shape_of_rank(1, 1)?;
        match (self.axis, cx.shape(0)) {
            (None, _) => cx.set_rank(0, 1),
            (Some(axis), Some(shape)) => {
                let axis = axis_of(axis, shape.len())?;
                let mut result = shape.to_vec();
                result[axis] = cx.unknown();
                cx.set_shape(0, result);
            }
            (Some(_), None) => {}
        }
        Ok(())
    }
}
pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "OneHot",
        &[9, 11, 28],
        "indices:T1, depth:T2, values:T3 -> output:T3",
        &[("T1", Types::NUMERIC), ("T2", Types::NUMERIC), ("T3", Types::TENSOR)],
        |a| Ok(Arc::new(OneHot { axis: a.int("axis", -1)? })),
    )
    .shape_inputs(&[1]),
    Declaration::new("NonZero", &[9, 13], "X:T -> Y:int64", &[("T", Types::TENSOR)], |_| {
        Ok(Arc::new(NonZero))
    })
    .data_dependent(),
    Declaration::new(
        "Compress",
        &[9, 11, 28],
        "input:T, condition:bool -> output:T",
        &[("T", Types::TENSOR)],
        |a| Ok(Arc::new(Compress { axis: a.optional_int("axis")? })),
    )
    .data_dependent(),
];
