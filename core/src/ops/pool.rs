//! Pooling over windows and over whole planes.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::channel_blocked::infer_global_channel_blocked;
use super::window::{Window, spatial};
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// What a pooling computes of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduction {
    Max,
    /// The mean; whether padding counts as elements.
    Average {
        count_padding: bool,
    },
    /// `(Σ |x|^p)^(1/p)`
    Norm {
        p: f32,
    },
}

/// A pooling over windows.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    pub window: Window,
    pub reduction: Reduction,
    /// Whether indices of maxima count along the first spatial axis first.
    pub column_major: bool,
}

impl Pool {
    /// The output's shape for an input `[batch, channels, spatial…]`.
    pub fn output(&self, x: &[Dim]) -> Result<Vec<Dim>, OpError> {
        let space = &x[2..];
        if self.window.kernel.len() != space.len() {
            let reason = format!(
                "it has {} entries; allowed is {} for {0} spatial axes",
                self.window.kernel.len(),
                space.len()
            );
            return Err(OpError::attribute("kernel_shape", reason));
        }
        let kernel: Vec<Dim> = self.window.kernel.iter().map(|&k| Dim::Known(k)).collect();
        Ok([x[..2].to_vec(), self.window.output(space, &kernel)?].concat())
    }
}

impl Operator for Pool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(_), Some(x)) = (spatial(cx)?, cx.shape(0)) else { return Ok(()) };
        let shape = self.output(x)?;
        for output in 0..cx.output_count() {
            cx.set_shape(output, shape.clone());
        }
        Ok(())
    }
}

/// A pooling over all spatial axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalPool {
    pub reduction: Reduction,
    /// Whether the input is channel-blocked (of rukh).
    pub channel_blocked: bool,
}

impl Operator for GlobalPool {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if self.channel_blocked {
            return infer_global_channel_blocked(cx);
        }
        if let (Some(space), Some(x)) = (spatial(cx)?, cx.shape(0)) {
            cx.set_shape(0, x[..2].iter().cloned().chain(space.iter().map(|_| Dim::Known(1))).collect());
        }
        Ok(())
    }
}

/// Reads the window, whose kernel is required.
pub fn read_window(a: &AttributeReader<'_>) -> Result<Window, OpError> {
    let mut window = Window::read(a)?;
    if window.kernel.is_empty() {
        // LpPool and AveragePool of opset 1 allow for a missing kernel in the text, never in practice.
        return Err(OpError::attribute("kernel_shape", "it is required, and missing"));
    }
    window.ceil = a.flag("ceil_mode", false)?;
    Ok(window)
}

/// The exponent: a float in opset 1, an integer since.
fn read_p(a: &AttributeReader<'_>) -> Result<f32, OpError> {
    let p = if a.opset() == 1 { a.float("p", 2.0)? } else { a.int("p", 2)? as f32 };
    if p > 0.0 {
        Ok(p)
    } else {
        Err(OpError::attribute("p", format!("{p} is not allowed; allowed are numbers above 0")))
    }
}

const MAX_TYPES: Types = Types::FLOAT.and(Types::of(&[ElementType::I8, ElementType::U8]));

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "MaxPool",
        &[1, 8, 10, 11, 12, 22],
        "X:T -> Y:T, Indices?:int64",
        &[("T", MAX_TYPES)],
        |a| {
            let column_major = a.flag("storage_order", false)?;
            Ok(Arc::new(Pool { window: read_window(a)?, reduction: Reduction::Max, column_major }))
        },
    ),
    Declaration::new("AveragePool", &[1, 7, 10, 11, 19, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        let reduction = Reduction::Average { count_padding: a.flag("count_include_pad", false)? };
        Ok(Arc::new(Pool { window: read_window(a)?, reduction, column_major: false }))
    }),
    Declaration::new("LpPool", &[1, 2, 11, 18, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        let reduction = Reduction::Norm { p: read_p(a)? };
        Ok(Arc::new(Pool { window: read_window(a)?, reduction, column_major: false }))
    }),
    Declaration::new("GlobalMaxPool", &[1, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| {
        Ok(Arc::new(GlobalPool { reduction: Reduction::Max, channel_blocked: false }))
    }),
    Declaration::new("GlobalAveragePool", &[1, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |_| {
        Ok(Arc::new(GlobalPool {
            reduction: Reduction::Average { count_padding: false },
            channel_blocked: false,
        }))
    }),
    // What the passes of this library make, of channel-blocked images.
    Declaration::new(
        "GlobalAveragePool",
        &[1],
        "X:T -> Y:T",
        &[("T", Types::of(&[ElementType::BF16]))],
        |_| {
            Ok(Arc::new(GlobalPool {
                reduction: Reduction::Average { count_padding: false },
                channel_blocked: true,
            }))
        },
    )
    .domain("rukh"),
    Declaration::new("GlobalLpPool", &[1, 2, 22], "X:T -> Y:T", &[("T", Types::FLOAT)], |a| {
        Ok(Arc::new(GlobalPool { reduction: Reduction::Norm { p: read_p(a)? }, channel_blocked: false }))
    }),
];
