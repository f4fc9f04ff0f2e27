//! Fourier transforms: DFT, STFT.

use std::sync::Arc;

use crate::graph::Dim;

use super::int_list::IntList;
use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// The discrete Fourier transform along one axis of `[…, 1]` (real) or `[…, 2]` (complex).
#[derive(Clone, Debug, PartialEq)]
pub struct Dft {
    /// One number; input 2 since opset 20.
    pub axis: IntList,
    pub default_axis: i64,
    pub inverse: bool,
    /// Only the frequencies that are not redundant for a real signal; for the inverse, these are what
    /// is given, and the result is real.
    pub one_sided: bool,
}

impl Dft {
    /// The length of the transform of an axis without `dft_length`.
    pub fn default_length(&self, length: usize) -> usize {
        if self.inverse && self.one_sided { (length * 2).saturating_sub(2) } else { length }
    }
}

impl Operator for Dft {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let rank = shape.len();
        let parts = shape.last().and_then(Dim::known);
        if rank < 2 || parts.is_some_and(|p| p != 1 && p != 2) {
            let reason =
                format!("its shape is {shape:?}; it must be at least 2-dimensional and end in 1 or 2");
            return Err(cx.input_error(0, reason));
        }
        let axis = match self.axis.given(cx) {
            false => self.default_axis,
            true => match self.axis.known(cx).as_deref() {
                Some(&[axis]) => axis,
                Some(axes) => return Err(self.axis.error(cx, format!("{axes:?}; one number is needed"))),
                None => {
                    cx.set_rank(0, rank);
                    return Ok(());
                }
            },
        };
        let axis = axis_of(axis, rank)?;
        if axis + 1 == rank {
            return Err(self.axis.error(cx, format!("{axis} is the axis of real and imaginary parts")));
        }
        let two = Dim::Known(2);
        let length = if cx.has(1) {
            match cx.ints(1).as_deref() {
                Some([n]) if n.known().is_none_or(|n| n >= 1) => n.clone(),
                Some(n) => {
                    return Err(cx.input_error(1, format!("it is {n:?}; allowed is one positive number")));
                }
                None => cx.unknown(),
            }
        } else if self.inverse && self.one_sided {
            shape[axis].sub(&Dim::Known(1)).mul(&two)
        } else {
            shape[axis].clone()
        };
        let mut result = shape.to_vec();
        result[axis] = match (self.one_sided, self.inverse) {
            (true, false) => length.floor_div(&two).add(&Dim::Known(1)),
            _ => length,
        };
        result[rank - 1] = if self.one_sided && self.inverse { Dim::Known(1) } else { two };
        cx.set_shape(0, result);
        Ok(())
    }
}

/// Fourier transforms of overlapping frames: `[batch, length, 1 or 2]` to `[batch, frames, bins, 2]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stft {
    pub one_sided: bool,
}

impl Operator for Stft {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let signal = cx.shape_of_rank(0, 3)?;
        let window = cx.shape_of_rank(2, 1)?.map(|s| s[0].clone());
        let one = |v: Option<Vec<Dim>>| v.and_then(|v| v.into_iter().next());
        let step = one(cx.ints(1)).unwrap_or_else(|| cx.unknown());
        if step.known().is_some_and(|s| s < 1) {
            return Err(cx.input_error(1, format!("the step between frames is {step}; it must be positive")));
        }
        let given = if cx.has(3) { Some(one(cx.ints(3)).unwrap_or_else(|| cx.unknown())) } else { None };
        let length = match (given, window, signal) {
            (Some(length), _, _) => length,
            (None, Some(window), _) => window,
            (None, None, Some(signal)) => signal[1].clone(),
            _ => cx.unknown(),
        };
        let one = Dim::Known(1);
        let bins = if self.one_sided { length.floor_div(&Dim::Known(2)).add(&one) } else { length.clone() };
        let (batch, frames) = match signal {
            Some(signal) => {
                let span = signal[1].sub(&length);
                if span.known().is_some_and(|s| s < 0) || length.known().is_some_and(|n| n < 1) {
                    let reason = format!("frames of {length} do not fit a signal of {}", signal[1]);
                    return Err(cx.input_error(0, reason));
                }
                (signal[0].clone(), span.floor_div(&step).add(&one))
            }
            None => (cx.unknown(), cx.unknown()),
        };
        cx.set_shape(0, vec![batch, frames, bins, Dim::Known(2)]);
        Ok(())
    }
}

const TYPES: &[(&str, Types)] = &[("T1", Types::FLOAT), ("T2", Types::INDEX)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("DFT", &[17, 20], "input:T1, dft_length?:T2, axis?:int64 -> output:T1", TYPES, |a| {
        let axis = IntList::Attribute("axis", None);
        let (axis, default_axis) =
            if a.opset() < 20 { (axis, a.int("axis", 1)?) } else { (IntList::Input(2), -2) };
        Ok(Arc::new(Dft {
            axis,
            default_axis,
            inverse: a.flag("inverse", false)?,
            one_sided: a.flag("onesided", false)?,
        }))
    })
    .shape_inputs(&[1, 2]),
    Declaration::new(
        "STFT",
        &[17],
        "signal:T1, frame_step:T2, window?:T1, frame_length?:T2 -> output:T1",
        TYPES,
        |a| Ok(Arc::new(Stft { one_sided: a.flag("onesided", true)? })),
    )
    .shape_inputs(&[1, 3]),
];
