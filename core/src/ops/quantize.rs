//! Linear quantization.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, Tensor, bf16, f16};

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types, normalize_axis};

/// Which elements share a scale and a zero point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Granularity {
    pub axis: i64,
    /// Elements along the axis that share one; 0 when not blocked.
    pub block: usize,
}

/// A tensor seen as `[outer, axis, inner]`, with one scale for each `[outer, axis / block, inner]`,
/// or for each `[axis]`, or one for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layout {
    PerTensor,
    PerAxis { outer: usize, axis: usize, inner: usize },
    Blocked { outer: usize, axis: usize, inner: usize, block: usize },
}

impl Granularity {
    fn parse(a: &AttributeReader<'_>) -> Result<Self, OpError> {
        let axis = if a.opset() >= 13 || a.opset() < 10 { a.int("axis", 1)? } else { 1 };
        let block = a.int("block_size", 0)?;
        let block = usize::try_from(block).map_err(|_| {
            OpError::attribute("block_size", format!("{block} is not allowed; allowed is 0 or more"))
        })?;
        Ok(Granularity { axis, block })
    }

    /// The layout for the shapes of a tensor and of its scales.
    pub fn layout(self, shape: &[usize], scales: &[usize]) -> Result<Layout, OpError> {
        if self.block == 0 && scales.iter().product::<usize>() == 1 {
            return Ok(Layout::PerTensor);
        }
        let at = normalize_axis("axis", self.axis, shape.len())?;
        let (outer, axis) = (shape[..at].iter().product(), shape[at]);
        let inner = shape[at + 1..].iter().product();
        let mismatch = |want: &[usize]| {
            OpError::Data(format!(
                "the scale's shape is {scales:?}; allowed for a tensor of shape {shape:?} is {want:?}"
            ))
        };
        if self.block == 0 {
            return match scales {
                [n] if *n == axis => Ok(Layout::PerAxis { outer, axis, inner }),
                _ => Err(mismatch(&[axis])),
            };
        }
        let mut want = shape.to_vec();
        want[at] = axis.div_ceil(self.block);
        if scales != want {
            return Err(mismatch(&want));
        }
        Ok(Layout::Blocked { outer, axis, inner, block: self.block })
    }

    /// Checks the shapes of scale and zero point, as far as they are known, and constant scales.
    fn check(self, cx: &Infer<'_>) -> Result<(), OpError> {
        let known = |i: usize| -> Option<Vec<usize>> {
            cx.shape(i)?.iter().map(|d| usize::try_from(d.known()?).ok()).collect()
        };
        if let (Some(shape), Some(scales)) = (known(0), known(1)) {
            self.layout(&shape, &scales).map_err(|e| cx.input_error(1, e.to_string()))?;
        }
        if let (Some(scale), Some(zero)) = (known(1), known(2))
            && scale != zero
            && scale.iter().product::<usize>() * zero.iter().product::<usize>() != 1
        {
            return Err(
                cx.input_error(2, format!("its shape is {zero:?}; allowed is that of the scale, {scale:?}"))
            );
        }
        if let Some(bad) = cx.constant(1).and_then(bad_scale) {
            return Err(cx.input_error(1, bad));
        }
        Ok(())
    }
}

/// Checks a scale or zero point that a whole tensor shares: it has one element, and a constant scale
/// is finite.
pub fn check_parameter(cx: &Infer<'_>, i: usize) -> Result<(), OpError> {
    if let Some(shape) = cx.shape(i)
        && shape.iter().any(|d| d.known().is_some_and(|d| d != 1))
    {
        return Err(cx.input_error(i, format!("its shape is {shape:?}; allowed is one element")));
    }
    match cx.constant(i).and_then(bad_scale) {
        Some(bad) => Err(cx.input_error(i, bad)),
        None => Ok(()),
    }
}

/// What is wrong with a constant scale.
fn bad_scale(scale: &Tensor) -> Option<String> {
    let scale = scale.aligned().ok()?;
    let view = scale.view();
    let values: Vec<f32> = match scale.ty() {
        ElementType::F32 => view.slice::<f32>().to_vec(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f32()).collect(),
        ElementType::BF16 => view.slice::<bf16>().iter().map(|x| x.to_f32()).collect(),
        ElementType::I32 => view.slice::<i32>().iter().map(|&x| x as f32).collect(),
        _ => return None,
    };
    values.into_iter().find_map(|x| check_scale(x).err().map(|e| e.to_string()))
}

/// A scale must be a number. One that is not above 0 makes little sense and has a meaning all the same.
pub fn check_scale(scale: f32) -> Result<(), OpError> {
    if scale.is_finite() {
        return Ok(());
    }
    Err(OpError::Data(format!("a quantization scale is {scale}; allowed are finite numbers")))
}

/// `y = saturate(round(x / scale) + zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantize {
    pub granularity: Granularity,
    /// The type to quantize to, when the zero point does not tell it.
    pub output: Option<ElementType>,
    /// Whether values beyond an 8-bit float's range become its largest value.
    pub saturate: bool,
    /// The type to divide in; `None`: that of the scale.
    pub precision: Option<ElementType>,
}

impl Quantize {
    fn parse(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
        Ok(Arc::new(Quantize {
            granularity: Granularity::parse(a)?,
            output: output_type(a)?,
            saturate: a.flag("saturate", true)?,
            precision: optional_type(a, "precision")?,
        }))
    }
}

fn output_type(a: &AttributeReader<'_>) -> Result<Option<ElementType>, OpError> {
    optional_type(a, "output_dtype")
}

/// A type attribute where 0 means that it is not given.
fn optional_type(a: &AttributeReader<'_>, name: &str) -> Result<Option<ElementType>, OpError> {
    match a.optional_int(name)? {
        None | Some(0) => Ok(None),
        Some(_) => a.element_type(name),
    }
}

impl Operator for Quantize {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        self.granularity.check(cx)?;
        let ty = match (cx.has(2), cx.element_type(2), self.output) {
            (true, Some(zero), Some(output)) if zero != output => {
                let reason = format!("its type is {zero}, but attribute \"output_dtype\" is {output}");
                return Err(cx.input_error(2, reason));
            }
            (true, zero, _) => zero,
            (false, _, output) => Some(output.unwrap_or(ElementType::U8)),
        };
        if let Some(ty) = ty {
            cx.set_element_type(0, ty);
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

/// `y = (x − zero_point)·scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dequantize {
    pub granularity: Granularity,
    /// `None`: the type of the scale.
    pub output: Option<ElementType>,
}

impl Operator for Dequantize {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        self.granularity.check(cx)?;
        if let Some(ty) = self.output.or_else(|| cx.element_type(1)) {
            if !ty.is_float() {
                let reason =
                    format!("the output's type would be {ty}; allowed are floats (attribute output_dtype)");
                return Err(cx.input_error(1, reason));
            }
            cx.set_element_type(0, ty);
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

fn parse_dequantize(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    Ok(Arc::new(Dequantize { granularity: Granularity::parse(a)?, output: output_type(a)? }))
}

/// Quantizes to uint8 with a scale made from the smallest and largest element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DynamicQuantize;

impl Operator for DynamicQuantize {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        cx.set_shape(1, Vec::<Dim>::new());
        cx.set_shape(2, Vec::<Dim>::new());
        Ok(())
    }
}

const F8: Types = Types::of(&[
    ElementType::F8E4M3FN,
    ElementType::F8E4M3FNUZ,
    ElementType::F8E5M2,
    ElementType::F8E5M2FNUZ,
]);
const QUANTIZED: Types = F8.and(Types::FLOAT6).and(Types::NARROW).and(Types::of(&[
    ElementType::I8,
    ElementType::U8,
    ElementType::I16,
    ElementType::U16,
]));
const I32: Types = Types::of(&[ElementType::I32]);
const HALF: Types = Types::of(&[ElementType::F16, ElementType::BF16, ElementType::F32]);
const SCALE: Types = HALF.and(Types::of(&[ElementType::F8E8M0]));

const QUANTIZE: &str = "x:T1, y_scale:T2, y_zero_point?:T3 -> y:any";
const QUANTIZE_TYPES: &[(&str, Types)] = &[("T1", HALF.and(I32)), ("T2", SCALE.and(I32)), ("T3", QUANTIZED)];
const DEQUANTIZE: &str = "x:T1, x_scale:T2, x_zero_point?:T1 -> y:any";
const DEQUANTIZE_TYPES: &[(&str, Types)] = &[("T1", QUANTIZED.and(I32)), ("T2", SCALE)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "QuantizeLinear",
        &[10, 13, 19, 21, 23, 24, 25, 28],
        QUANTIZE,
        QUANTIZE_TYPES,
        Quantize::parse,
    ),
    Declaration::new(
        "DequantizeLinear",
        &[10, 13, 19, 21, 23, 24, 25, 28],
        DEQUANTIZE,
        DEQUANTIZE_TYPES,
        parse_dequantize,
    ),
    Declaration::new(
        "DynamicQuantizeLinear",
        &[11],
        "x:float -> y:uint8, y_scale:float, y_zero_point:uint8",
        &[],
        |_| Ok(Arc::new(DynamicQuantize)),
    ),
    Declaration::new("QuantizeLinear", &[1], QUANTIZE, QUANTIZE_TYPES, Quantize::parse)
        .domain("com.microsoft"),
    Declaration::new("DequantizeLinear", &[1], DEQUANTIZE, DEQUANTIZE_TYPES, parse_dequantize)
        .domain("com.microsoft"),
];
