//! Resize and its predecessor Upsample.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, Tensor, f16};

use super::int_list::unique_axes;
use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Nearest,
    Linear,
    Cubic,
}

/// How a position in the output becomes one in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    CropAndResize,
    /// `tf_half_pixel_for_nn`, which only opset 11 has.
    PixelCentre,
}

/// Which neighbour is the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfDown,
    HalfUp,
    Floor,
    Ceil,
}

/// Whether `sizes` are bounds within which the aspect ratio is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// Where the inputs lie, which differs between versions.
#[derive(Clone, Debug, PartialEq)]
pub enum Scales {
    Attribute(Vec<f32>),
    Input(usize),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Resize {
    pub mode: Mode,
    pub coordinates: Coordinates,
    pub rounding: Rounding,
    pub cubic_a: f32,
    pub exclude_outside: bool,
    pub extrapolation: f32,
    pub antialias: bool,
    pub axes: Option<Vec<i64>>,
    pub aspect: Aspect,
    pub scales: Scales,
    /// Whether inputs 1 and 3 are `roi` and `sizes` (since opset 11).
    pub has_roi: bool,
}

pub const ROI_INPUT: usize = 1;
pub const SIZES_INPUT: usize = 3;

/// How one axis is resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub length: usize,
    pub output: usize,
    pub scale: f64,
    /// The part of the axis that is read, 0 to 1 for the whole; only for `CropAndResize`.
    pub roi: (f64, f64),
}

impl Resize {
    /// What becomes of each axis. Exactly one of `scales` and `sizes` must be given.
    pub fn geometry(
        &self,
        shape: &[usize],
        roi: Option<&[f64]>,
        scales: Option<&[f32]>,
        sizes: Option<&[i64]>,
    ) -> Result<Vec<Axis>, OpError> {
        let axes = match &self.axes {
            Some(axes) => unique_axes(axes, shape.len())?,
            None => (0..shape.len()).collect(),
        };
        let wrong = |what: &str, n: usize, want: usize| {
            Err(OpError::Data(format!("{what} has {n} numbers; {want} are needed for {} axes", axes.len())))
        };
        let mut result: Vec<Axis> =
            shape.iter().map(|&n| Axis { length: n, output: n, scale: 1.0, roi: (0.0, 1.0) }).collect();
        if self.coordinates == Coordinates::CropAndResize {
            let roi = roi.unwrap_or_default();
            if roi.len() != axes.len() * 2 {
                return wrong("roi", roi.len(), axes.len() * 2);
            }
            for (i, &axis) in axes.iter().enumerate() {
                result[axis].roi = (roi[i], roi[i + axes.len()]);
            }
        }
        match (scales, sizes) {
            (Some(scales), None) => {
                if scales.len() != axes.len() {
                    return wrong("scales", scales.len(), axes.len());
                }
                for (&axis, &scale) in axes.iter().zip(scales) {
                    let a = &mut result[axis];
                    let part = (a.roi.1 - a.roi.0) as f32;
                    let output = (a.length as f32 * part * scale).floor();
                    if scale <= 0.0 || !scale.is_finite() || !(0.0..1e15).contains(&output) {
                        return Err(OpError::Data(format!(
                            "the scale of axis {axis} is {scale}; it must be positive"
                        )));
                    }
                    a.scale = scale as f64;
                    a.output = output as usize;
                }
            }
            (None, Some(sizes)) => {
                if sizes.len() != axes.len() {
                    return wrong("sizes", sizes.len(), axes.len());
                }
                for (&axis, &size) in axes.iter().zip(sizes) {
                    let a = &mut result[axis];
                    a.output = usize::try_from(size)
                        .ok()
                        .filter(|&size| a.length > 0 || size == 0)
                        .ok_or_else(|| {
                            OpError::Data(format!(
                                "axis {axis} of length {} cannot become {size} long",
                                a.length
                            ))
                        })?;
                    a.scale = if a.length == 0 { 1.0 } else { size as f64 / a.length as f64 };
                }
                self.keep_aspect(&axes, &mut result);
            }
            (given, _) => {
                let n = if given.is_some() { "both" } else { "neither" };
                return Err(OpError::Data(format!("one of scales and sizes must be given; {n} is")));
            }
        }
        Ok(result)
    }

    fn keep_aspect(&self, axes: &[usize], result: &mut [Axis]) {
        let scales = axes.iter().map(|&a| result[a].scale);
        let scale = match self.aspect {
            Aspect::Stretch => return,
            Aspect::NotLarger => scales.fold(f64::INFINITY, f64::min),
            Aspect::NotSmaller => scales.fold(0.0, f64::max),
        };
        for &axis in axes {
            let a = &mut result[axis];
            a.scale = scale;
            a.output = (scale * a.length as f64 + 0.5).floor() as usize;
        }
    }

    fn scales_of(&self, cx: &Infer<'_>) -> Option<Vec<f32>> {
        match &self.scales {
            Scales::Attribute(scales) => Some(scales.clone()),
            Scales::Input(i) => Some(to_floats(cx.constant(*i)?)?.into_iter().map(|x| x as f32).collect()),
        }
    }
}

impl Operator for Resize {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let known: Option<Vec<usize>> =
            shape.iter().map(|d| d.known().and_then(|d| usize::try_from(d).ok())).collect();
        // An empty tensor stands for one that is left out.
        let sizes = if self.has_roi { cx.ints(SIZES_INPUT).filter(|s| !s.is_empty()) } else { None };
        let scales = self.scales_of(cx).filter(|s| !s.is_empty());
        let roi = if self.has_roi { cx.constant(ROI_INPUT).and_then(to_floats) } else { None };
        let needs_roi = self.coordinates == Coordinates::CropAndResize && roi.is_none();
        let known_sizes: Option<Vec<i64>> = sizes.as_ref().and_then(|s| s.iter().map(Dim::known).collect());
        if let Some(known) = known
            && !needs_roi
            && (scales.is_some() || known_sizes.is_some())
        {
            let axes = self.geometry(&known, roi.as_deref(), scales.as_deref(), known_sizes.as_deref())?;
            cx.set_shape(0, axes.iter().map(|a| a.output.into()).collect());
            return Ok(());
        }
        let axes = match &self.axes {
            Some(axes) => unique_axes(axes, shape.len())?,
            None => (0..shape.len()).collect(),
        };
        let mut result = shape.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            let by_size =
                sizes.as_ref().filter(|_| self.aspect == Aspect::Stretch).and_then(|s| s.get(i)).cloned();
            let by_scale =
                scales.as_ref().filter(|_| !needs_roi).and_then(|s| scaled(&shape[axis], *s.get(i)?));
            result[axis] = by_size.or(by_scale).unwrap_or_else(|| cx.unknown());
        }
        cx.set_shape(0, result);
        Ok(())
    }
}

/// A symbolic dimension times a scale that is an integer or one over an integer.
fn scaled(d: &Dim, scale: f32) -> Option<Dim> {
    if scale >= 1.0 && scale.fract() == 0.0 {
        return Some(d.mul(&Dim::Known(scale as i64)));
    }
    let inverse = 1.0 / scale;
    (scale > 0.0 && inverse.fract() == 0.0).then(|| d.floor_div(&Dim::Known(inverse as i64)))
}

/// The elements of a float tensor.
fn to_floats(t: &Tensor) -> Option<Vec<f64>> {
    let t = t.aligned().ok()?;
    let view = t.buffer().map(|_| t.view())?;
    Some(match t.ty() {
        ElementType::F32 => view.slice::<f32>().iter().map(|&x| x as f64).collect(),
        ElementType::F64 => view.slice::<f64>().to_vec(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f64()).collect(),
        _ => return None,
    })
}

fn mode(a: &AttributeReader<'_>) -> Result<Mode, OpError> {
    // Before opset 11 two-dimensional linear interpolation was also called bilinear.
    let all = [
        ("nearest", Mode::Nearest),
        ("linear", Mode::Linear),
        ("cubic", Mode::Cubic),
        ("bilinear", Mode::Linear),
    ];
    let allowed = if a.opset() >= 11 { &all[..3] } else { &all[..] };
    a.choice("mode", "nearest", allowed)
}

/// What Upsample and the first Resize do.
fn early(a: &AttributeReader<'_>, scales: Scales) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Resize {
        mode: mode(a)?,
        coordinates: Coordinates::Asymmetric,
        rounding: Rounding::Floor,
        cubic_a: -0.75,
        exclude_outside: false,
        extrapolation: 0.0,
        antialias: false,
        axes: None,
        aspect: Aspect::Stretch,
        scales,
        has_roi: false,
    }))
}

fn resize(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    if a.opset() < 11 {
        return early(a, Scales::Input(1));
    }
    let coordinates = [
        ("half_pixel", Coordinates::HalfPixel),
        ("pytorch_half_pixel", Coordinates::PytorchHalfPixel),
        ("align_corners", Coordinates::AlignCorners),
        ("asymmetric", Coordinates::Asymmetric),
        ("tf_crop_and_resize", Coordinates::CropAndResize),
        ("half_pixel_symmetric", Coordinates::HalfPixelSymmetric),
        ("tf_half_pixel_for_nn", Coordinates::PixelCentre),
    ];
    let rounding = [
        ("round_prefer_floor", Rounding::HalfDown),
        ("round_prefer_ceil", Rounding::HalfUp),
        ("floor", Rounding::Floor),
        ("ceil", Rounding::Ceil),
    ];
    let aspects = [
        ("stretch", Aspect::Stretch),
        ("not_larger", Aspect::NotLarger),
        ("not_smaller", Aspect::NotSmaller),
    ];
    let later = a.opset() >= 18;
    Ok(Arc::new(Resize {
        mode: mode(a)?,
        coordinates: a.choice("coordinate_transformation_mode", "half_pixel", &coordinates)?,
        rounding: a.choice("nearest_mode", "round_prefer_floor", &rounding)?,
        cubic_a: a.float("cubic_coeff_a", -0.75)?,
        exclude_outside: a.flag("exclude_outside", false)?,
        extrapolation: a.float("extrapolation_value", 0.0)?,
        antialias: later && a.flag("antialias", false)?,
        axes: if later { a.ints("axes")?.map(<[i64]>::to_vec) } else { None },
        aspect: if later {
            a.choice("keep_aspect_ratio_policy", "stretch", &aspects)?
        } else {
            Aspect::Stretch
        },
        scales: Scales::Input(2),
        has_roi: true,
    }))
}

fn upsample(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    let required = |name: &str| OpError::attribute(name, "it is required, and missing");
    match a.opset() {
        ..7 => {
            let (h, w) = (a.optional_float("height_scale")?, a.optional_float("width_scale")?);
            let (h, w) =
                (h.ok_or_else(|| required("height_scale"))?, w.ok_or_else(|| required("width_scale"))?);
            early(a, Scales::Attribute(vec![1.0, 1.0, h, w]))
        }
        7..9 => {
            let scales = a.floats("scales")?.ok_or_else(|| required("scales"))?;
            early(a, Scales::Attribute(scales.to_vec()))
        }
        _ => early(a, Scales::Input(1)),
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Resize",
        &[10, 11, 13, 18, 19],
        "X:T1, roi?:T2, scales?:float, sizes?:int64 -> Y:T1",
        &[("T1", Types::TENSOR), ("T2", Types::FLOAT)],
        resize,
    )
    .shape_inputs(&[1, 2, 3]),
    Declaration::new(
        "Upsample",
        &[1, 7, 9, 10],
        "X:T, scales?:float -> Y:T",
        &[("T", Types::TENSOR)],
        upsample,
    )
    .shape_inputs(&[1]),
];
