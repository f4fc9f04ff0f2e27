//! A function of one byte, as a table.

use std::sync::Arc;

use crate::tensor::ElementType;

use super::{Declaration, Infer, OpError, Operator, Types};

/// `Y = table[X]`: the element for each of the 256 bytes that one of X may be, by the bits of the byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lookup;

/// How many values a byte has.
pub const ENTRIES: usize = 256;

impl Operator for Lookup {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(table) = cx.shape_of_rank(1, 1)?
            && table[0].known().is_some_and(|n| n != ENTRIES as i64)
        {
            return Err(cx.input_error(1, format!("it has {:?} elements; allowed is {ENTRIES}", table[0])));
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

const BYTES: Types = Types::of(&[ElementType::I8, ElementType::U8]);

pub(super) const DECLARATIONS: &[Declaration] = &[
    // What the fusions of this library make.
    Declaration::new("Lookup", &[1], "X:T1, table:T2 -> Y:T2", &[("T1", BYTES), ("T2", BYTES)], |_| {
        Ok(Arc::new(Lookup))
    })
    .domain("rukh"),
];
