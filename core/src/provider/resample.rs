//! The weights of resampling: which input positions make an output position, and how much.
//!
//! The formulas are those of the standard's Resize; antialiasing stretches a filter by the inverse of
//! the scale.

use crate::ops::OpError;
use crate::ops::generate::{Scalar, scalar_of};
use crate::ops::resize::{Axis, Coordinates, Mode, ROI_INPUT, Resize, Rounding, SIZES_INPUT, Scales};

use super::Argument;
use super::ints::shape_input;

/// The input coordinate of an output coordinate that has none: the fill value stands there.
pub const NOWHERE: isize = -1;

/// What becomes of each axis of `shape`, from the inputs' values.
pub fn geometry(op: &Resize, shape: &[usize], inputs: &[Option<Argument<'_>>]) -> Result<Vec<Axis>, OpError> {
    let scales = match &op.scales {
        Scales::Attribute(scales) => Some(scales.clone()),
        Scales::Input(i) => floats(inputs, *i)?.map(|v| v.into_iter().map(|x| x as f32).collect()),
    };
    let (mut roi, mut sizes) = (None, None);
    if op.has_roi {
        roi = floats(inputs, ROI_INPUT)?;
        sizes = shape_input(inputs, SIZES_INPUT)?.filter(|s| !s.is_empty());
    }
    op.geometry(shape, roi.as_deref(), scales.as_deref(), sizes.as_deref())
}

/// The numbers of an input that is not empty.
fn floats(inputs: &[Option<Argument<'_>>], i: usize) -> Result<Option<Vec<f64>>, OpError> {
    let Some(argument) = inputs.get(i).copied().flatten() else { return Ok(None) };
    if argument.shape.contains(&0) {
        return Ok(None);
    }
    let unknown = || OpError::Data(format!("the value of input {i} is needed when a run is planned"));
    let view = argument.value.ok_or_else(unknown)?;
    let float = |bytes| match scalar_of(view.ty(), bytes) {
        Some(Scalar::Float(x)) => Ok(x),
        _ => Err(OpError::Data(format!("input {i} is {}, where floats are needed", view.ty()))),
    };
    view.bytes().chunks(view.ty().size().max(1)).map(float).collect::<Result<_, _>>().map(Some)
}

/// For each output position a run of taps.
#[derive(Debug)]
pub struct Taps {
    /// Taps of each output position.
    pub count: usize,
    /// `[output, count]`: input positions, clamped to the axis.
    pub positions: Vec<usize>,
    /// `[output, count]`.
    pub weights: Vec<f64>,
    /// Output positions whose value is the extrapolation value.
    pub outside: Vec<bool>,
}

/// The input coordinate of each output position, and whether it lies outside the input.
fn coordinates(op: &Resize, axis: &Axis) -> Vec<(f64, bool)> {
    let &Axis { length, output, scale, roi } = axis;
    let last = length as f64 - 1.0;
    // The length that the scale asks for, which the real one rounds down.
    let exact = scale * length as f64;
    (0..output)
        .map(|i| {
            let i = i as f64;
            let x = match op.coordinates {
                Coordinates::HalfPixel => (i + 0.5) / scale - 0.5,
                Coordinates::PytorchHalfPixel if exact == 1.0 => -0.5,
                Coordinates::PytorchHalfPixel => (i + 0.5) / scale - 0.5,
                // From centre to centre: halves are exact, so whole positions stay whole.
                Coordinates::HalfPixelSymmetric => last / 2.0 + (i - (output as f64 - 1.0) / 2.0) / scale,
                Coordinates::AlignCorners if exact == 1.0 => 0.0,
                Coordinates::AlignCorners => i * last / (exact - 1.0),
                Coordinates::Asymmetric => i / scale,
                Coordinates::PixelCentre => (i + 0.5) / scale,
                Coordinates::CropAndResize if exact == 1.0 => (roi.1 + roi.0) * last / 2.0,
                Coordinates::CropAndResize => roi.0 * last + i * (roi.1 - roi.0) * last / (exact - 1.0),
            };
            let outside = op.coordinates == Coordinates::CropAndResize && !(0.0..=last).contains(&x);
            (x, outside)
        })
        .collect()
}

/// Whether the axis stays as it is.
pub fn is_identity(axis: &Axis) -> bool {
    axis.length == axis.output && (axis.scale - 1.0).abs() < 1e-9 && axis.roi == (0.0, 1.0)
}

/// The nearest input position of each output position.
pub fn nearest(op: &Resize, axis: &Axis) -> Vec<isize> {
    if is_identity(axis) {
        return (0..axis.length as isize).collect();
    }
    let round = |x: f64| match op.rounding {
        Rounding::HalfDown => (x - 0.5).ceil(),
        Rounding::HalfUp => (x + 0.5).floor(),
        Rounding::Floor => x.floor(),
        Rounding::Ceil => x.ceil(),
    };
    coordinates(op, axis)
        .into_iter()
        .map(
            |(x, outside)| {
                if outside { NOWHERE } else { (round(x) as isize).clamp(0, axis.length as isize - 1) }
            },
        )
        .collect()
}

/// The taps of linear or cubic interpolation.
pub fn interpolation(op: &Resize, axis: &Axis) -> Taps {
    let filter_scale = if op.antialias { axis.scale.min(1.0) } else { 1.0 };
    let radius = if op.mode == Mode::Cubic { 2.0 } else { 1.0 };
    // The first tap, relative to the position left of the coordinate; there are as many to the right.
    let first = (-radius / filter_scale).floor() as i64 + 1;
    let count = (2 - 2 * first) as usize;
    let mut taps = Taps {
        count,
        positions: Vec::with_capacity(axis.output * count),
        weights: Vec::with_capacity(axis.output * count),
        outside: Vec::with_capacity(axis.output),
    };
    let a = op.cubic_a as f64;
    let weight = |distance: f64| match op.mode {
        Mode::Cubic => cubic(distance.abs(), a),
        _ => (1.0 - distance.abs()).clamp(0.0, 1.0),
    };
    let length = axis.length as i64;
    for (x, outside) in coordinates(op, axis) {
        // A whole coordinate counts as the right end of its interval, so the ratio is in (0, 1].
        let left = x.ceil() - 1.0;
        let ratio = x - left;
        let start = left as i64 + first;
        let mut weights: Vec<f64> =
            (0..count as i64).map(|k| weight(filter_scale * ((first + k) as f64 - ratio))).collect();
        if op.exclude_outside {
            for (k, w) in weights.iter_mut().enumerate() {
                if !(0..length).contains(&(start + k as i64)) {
                    *w = 0.0;
                }
            }
        }
        let sum: f64 = weights.iter().sum();
        if (op.antialias || op.exclude_outside) && sum != 0.0 {
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        taps.weights.extend(weights);
        taps.positions.extend((0..count as i64).map(|k| (start + k).clamp(0, length - 1) as usize));
        taps.outside.push(outside);
    }
    taps
}

/// Keys' cubic convolution kernel (IEEE Trans. ASSP 29, 1981) with parameter `a`, at a distance.
pub fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
