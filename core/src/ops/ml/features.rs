//! Preparing features: choosing, scaling, filling in.

use std::sync::Arc;

use crate::graph::Dim;

use super::super::{Declaration, Infer, OpError, Operator, Types};
use super::{DOMAIN, NUMBERS, floats, rows};

#[derive(Clone, Debug, PartialEq)]
pub enum Feature {
    /// The columns that input 1 names.
    Extract,
    /// One above the threshold, else zero.
    Binarize { threshold: f32 },
    /// `(x − offset) · scale`, with one number for all columns or one for each.
    Scale { offset: Vec<f32>, scale: Vec<f32> },
    /// Divides each row by its norm.
    Normalize(Norm),
    /// Replaces a value (NaN stands for missing ones) by another, one for all columns or one for each.
    Impute(Impute),
    /// Puts the columns of all inputs side by side, each cut or padded with zeros to its width.
    Join { widths: Vec<usize> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    Max,
    L1,
    L2,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Impute {
    Floats { replaced: f32, by: Vec<f32> },
    Ints { replaced: i64, by: Vec<i64> },
}

impl Operator for Feature {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match self {
            Feature::Extract => {
                if let (Some(x), Some(indices)) = (cx.shape(0), cx.shape(1)) {
                    let count = super::super::shape::product(indices);
                    let mut shape =
                        if x.len() <= 1 { vec![Dim::Known(1)] } else { x[..x.len() - 1].to_vec() };
                    shape.push(count);
                    cx.set_shape(0, shape);
                }
            }
            Feature::Join { widths } => {
                let n = rows(cx)?;
                // A vector is a column here.
                let n = match cx.shape(0) {
                    Some([n]) => n.clone(),
                    _ => n,
                };
                if widths.len() != cx.input_count() {
                    let reason = format!("it has {} numbers for {} inputs", widths.len(), cx.input_count());
                    return Err(OpError::attribute("inputdimensions", reason));
                }
                cx.set_shape(0, vec![n, widths.iter().sum::<usize>().into()]);
            }
            _ => {
                let Some(shape) = cx.shape(0) else { return Ok(()) };
                let columns = shape.last().and_then(Dim::known);
                for (name, n) in self.lists() {
                    if n != 1 && columns.is_some_and(|c| c != n as i64) {
                        let reason = format!("it has {n} numbers; allowed are 1 or one for each column");
                        return Err(OpError::attribute(name, reason));
                    }
                }
                cx.set_shape(0, shape.to_vec());
            }
        }
        Ok(())
    }
}

impl Feature {
    /// The lists that have one number for each column, with their lengths.
    fn lists(&self) -> Vec<(&'static str, usize)> {
        match self {
            Feature::Scale { offset, scale } => vec![("offset", offset.len()), ("scale", scale.len())],
            Feature::Impute(Impute::Floats { by, .. }) => vec![("imputed_value_floats", by.len())],
            Feature::Impute(Impute::Ints { by, .. }) => vec![("imputed_value_int64s", by.len())],
            _ => Vec::new(),
        }
    }
}

const T: &[(&str, Types)] = &[("T", NUMBERS)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "ArrayFeatureExtractor",
        &[1],
        "X:T, Y:int64 -> Z:T",
        &[("T", NUMBERS.and(Types::STRING))],
        |_| Ok(Arc::new(Feature::Extract)),
    )
    .domain(DOMAIN),
    Declaration::new("Binarizer", &[1], "X:T -> Y:T", T, |a| {
        Ok(Arc::new(Feature::Binarize { threshold: a.float("threshold", 0.0)? }))
    })
    .domain(DOMAIN),
    Declaration::new("Scaler", &[1], "X:T -> Y:float", T, |a| {
        let or = |v: Vec<f32>, default: f32| if v.is_empty() { vec![default] } else { v };
        let (offset, scale) = (or(floats(a, "offset")?, 0.0), or(floats(a, "scale")?, 1.0));
        Ok(Arc::new(Feature::Scale { offset, scale }))
    })
    .domain(DOMAIN),
    Declaration::new("Normalizer", &[1], "X:T -> Y:float", T, |a| {
        let norm = a.choice("norm", "MAX", &[("MAX", Norm::Max), ("L1", Norm::L1), ("L2", Norm::L2)])?;
        Ok(Arc::new(Feature::Normalize(norm)))
    })
    .domain(DOMAIN),
    Declaration::new("Imputer", &[1], "X:T -> Y:T", T, |a| {
        let by_floats = floats(a, "imputed_value_floats")?;
        let by_ints = a.ints("imputed_value_int64s")?.unwrap_or_default().to_vec();
        let float = a.float("replaced_value_float", 0.0)?;
        let int = a.int("replaced_value_int64", 0)?;
        Ok(Arc::new(Feature::Impute(match (by_floats.is_empty(), by_ints.is_empty()) {
            (false, true) => Impute::Floats { replaced: float, by: by_floats },
            (true, false) => Impute::Ints { replaced: int, by: by_ints },
            _ => {
                let reason = "either it or imputed_value_int64s must be given";
                return Err(OpError::attribute("imputed_value_floats", reason));
            }
        })))
    })
    .domain(DOMAIN),
    Declaration::new("FeatureVectorizer", &[1], "X+:any -> Y:float", &[], |a| {
        let widths = a.ints("inputdimensions")?.unwrap_or_default();
        let widths = widths
            .iter()
            .map(|&w| {
                let wrong = || OpError::attribute("inputdimensions", format!("{w} is no number of columns"));
                usize::try_from(w).map_err(|_| wrong())
            })
            .collect::<Result<_, _>>()?;
        Ok(Arc::new(Feature::Join { widths }))
    })
    .domain(DOMAIN),
];
