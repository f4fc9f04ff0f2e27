//! The partial inverse of max pooling.

use std::sync::Arc;

use crate::graph::Dim;

use super::window::{Padding, Window, spatial};
use super::{Declaration, Infer, OpError, Operator, Types};

/// Puts pooled maxima back where they were. Inputs: X, indices, and the output's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct MaxUnpool {
    window: Window,
}

impl MaxUnpool {
    /// The shape that the indices refer to.
    pub fn inferred(&self, x: &[Dim]) -> Result<Vec<Dim>, OpError> {
        let axes = x.len() - 2;
        self.window.check_rank(axes)?;
        if self.window.kernel.len() != axes {
            let reason = format!("it has {} entries; allowed is {axes}", self.window.kernel.len());
            return Err(OpError::attribute("kernel_shape", reason));
        }
        let mut shape = x[..2].to_vec();
        for (i, dim) in x[2..].iter().enumerate() {
            let stride = Dim::Known(self.window.strides.get(i).copied().unwrap_or(1));
            let pads = match &self.window.padding {
                Padding::Explicit(pads) if !pads.is_empty() => pads[i] + pads[axes + i],
                _ => 0,
            };
            let size = dim.sub(&Dim::Known(1)).mul(&stride).add(&Dim::Known(self.window.kernel[i] - pads));
            if size.known().is_some_and(|n| n < 0) {
                return Err(OpError::attribute(
                    "pads",
                    format!("they leave {size} elements of spatial axis {i}"),
                ));
            }
            shape.push(size);
        }
        Ok(shape)
    }
}

impl Operator for MaxUnpool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        if let Some(indices) = cx.shape_of_rank(1, x.len())? {
            cx.equal_shape(1, x, indices)?;
        }
        let inferred = self.inferred(x)?;
        if !cx.has(2) {
            cx.set_shape(0, inferred);
            return Ok(());
        }
        match cx.ints(2) {
            Some(shape) if shape.len() == x.len() => {
                if shape.iter().any(|d| d.known().is_some_and(|n| n < 0)) {
                    return Err(cx.input_error(2, format!("it is {shape:?}; allowed are numbers from 0")));
                }
                cx.set_shape(0, shape);
            }
            Some(shape) => {
                let reason = format!("it has {} entries; allowed is {}", shape.len(), x.len());
                return Err(cx.input_error(2, reason));
            }
            None => cx.set_rank(0, x.len()),
        }
        Ok(())
    }
}

const FLOAT: &[(&str, Types)] = &[("T", Types::FLOAT)];
pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "MaxUnpool",
    &[9, 11, 22],
    "X:T, I:int64, output_shape?:int64 -> output:T",
    FLOAT,
    |a| Ok(Arc::new(MaxUnpool { window: Window::read(a)? })),
)
.shape_inputs(&[2])];
