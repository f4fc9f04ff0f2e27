//! Elementwise operators of any number of inputs, which broadcast.

use std::sync::Arc;

use crate::graph::Dim;

use super::binary::zip;
use super::{Declaration, Infer, OpError, Operator, Types};

/// What the operator makes of the elements at one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Variadic {
    Max,
    Mean,
    Min,
    Sum,
}

impl Operator for Variadic {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let all: Vec<usize> = (0..cx.input_count()).collect();
        if let Some(missing) = all.iter().find(|&&i| !cx.has(i)) {
            return Err(cx.input_error(*missing, "it is required, and the node leaves it out"));
        }
        if let Some(shape) = cx.broadcast_inputs(&all)? {
            cx.set_shape(0, shape);
        }
        let combine: fn(&Dim, &Dim) -> Dim = match self {
            Variadic::Max => Dim::max_of,
            Variadic::Min => Dim::min_of,
            Variadic::Sum => Dim::add,
            Variadic::Mean => return Ok(()),
        };
        let elements = cx.ints(0).and_then(|first| {
            all[1..].iter().try_fold(first, |acc, &i| {
                Some(zip(&acc, &cx.ints(i)?)?.map(|(x, y)| combine(x, y)).collect::<Vec<_>>())
            })
        });
        cx.set_elements(0, elements);
        Ok(())
    }
}

const SIGNATURE: &str = "data_0+:T -> result:T";
const NUMERIC: &[(&str, Types)] = &[("T", Types::NUMERIC)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Max", &[1, 6, 8, 12, 13], SIGNATURE, NUMERIC, |_| Ok(Arc::new(Variadic::Max))),
    Declaration::new("Mean", &[1, 6, 8, 13], SIGNATURE, &[("T", Types::FLOAT)], |_| {
        Ok(Arc::new(Variadic::Mean))
    }),
    Declaration::new("Min", &[1, 6, 8, 12, 13], SIGNATURE, NUMERIC, |_| Ok(Arc::new(Variadic::Min))),
    Declaration::new("Sum", &[1, 6, 8, 13], SIGNATURE, &[("T", Types::FLOAT)], |_| {
        Ok(Arc::new(Variadic::Sum))
    }),
];
