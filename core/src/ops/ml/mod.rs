//! The operators of ai.onnx.ml: feature preparation, linear models, support vectors, trees.

pub mod encode;
pub mod features;
pub mod linear;
pub mod svm;
pub mod tree;
mod tree_parse;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Types};

/// The name of the operator set.
const DOMAIN: &str = "ai.onnx.ml";

/// What most of these operators take.
const NUMBERS: Types = Types::of(&[ElementType::F32, ElementType::F64, ElementType::I64, ElementType::I32]);

/// Every family's table.
pub(super) const FAMILIES: [&[Declaration]; 5] = [
    encode::DECLARATIONS,
    features::DECLARATIONS,
    linear::DECLARATIONS,
    svm::DECLARATIONS,
    tree_parse::DECLARATIONS,
];

/// Class labels, or other values that may be integers or strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    Ints(Vec<i64>),
    Strings(Vec<String>),
}

impl Labels {
    /// The labels of whichever attribute is given; `None` without either.
    pub(super) fn read(a: &AttributeReader<'_>, ints: &str, strings: &str) -> Result<Option<Self>, OpError> {
        match (a.ints(ints)?.filter(|v| !v.is_empty()), a.strings(strings)?.filter(|v| !v.is_empty())) {
            (Some(_), Some(_)) => Err(OpError::attribute(ints, format!("it excludes \"{strings}\""))),
            (Some(v), None) => Ok(Some(Labels::Ints(v.to_vec()))),
            (None, Some(v)) => Ok(Some(Labels::Strings(v.into_iter().map(str::to_owned).collect()))),
            (None, None) => Ok(None),
        }
    }

    pub(super) fn required(a: &AttributeReader<'_>, ints: &str, strings: &str) -> Result<Self, OpError> {
        Self::read(a, ints, strings)?
            .ok_or_else(|| OpError::attribute(ints, format!("either it or \"{strings}\" must be given")))
    }

    pub fn len(&self) -> usize {
        match self {
            Labels::Ints(v) => v.len(),
            Labels::Strings(v) => v.len(),
        }
    }

    pub fn element_type(&self) -> ElementType {
        match self {
            Labels::Ints(_) => ElementType::I64,
            Labels::Strings(_) => ElementType::String,
        }
    }
}

/// What is done to scores at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostTransform {
    None,
    Softmax,
    Logistic,
    /// Softmax over the scores that are not zero.
    SoftmaxZero,
    Probit,
}

impl PostTransform {
    fn read(a: &AttributeReader<'_>) -> Result<Self, OpError> {
        a.choice(
            "post_transform",
            "NONE",
            &[
                ("NONE", PostTransform::None),
                ("SOFTMAX", PostTransform::Softmax),
                ("LOGISTIC", PostTransform::Logistic),
                ("SOFTMAX_ZERO", PostTransform::SoftmaxZero),
                ("PROBIT", PostTransform::Probit),
            ],
        )
    }
}

/// The number of rows of a matrix input; a vector is one row.
fn rows(cx: &mut Infer<'_>) -> Result<Dim, OpError> {
    match cx.shape(0) {
        Some([_]) => Ok(Dim::Known(1)),
        Some([n, _]) => Ok(n.clone()),
        Some(shape) => Err(cx.input_error(0, format!("its shape is {shape:?}; allowed are [C] and [N, C]"))),
        None => Ok(cx.unknown()),
    }
}

/// Sets labels `[N]` and scores `[N, classes]`.
fn infer_classifier(cx: &mut Infer<'_>, labels: ElementType, classes: usize) -> Result<(), OpError> {
    let n = rows(cx)?;
    cx.set_element_type(0, labels);
    cx.set_shape(0, vec![n.clone()]);
    cx.set_shape(1, vec![n, classes.into()]);
    Ok(())
}

/// A list of floats, empty without the attribute.
fn floats(a: &AttributeReader<'_>, name: &str) -> Result<Vec<f32>, OpError> {
    Ok(a.floats(name)?.unwrap_or_default().to_vec())
}
