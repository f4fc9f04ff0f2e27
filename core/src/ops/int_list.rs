//! Integers that older opsets give as an attribute and newer ones as an input (`axes`, `pads`, …).

use crate::graph::Dim;
use crate::tensor::{ElementType, TensorView, f16};

use super::{AttributeReader, Infer, OpError, normalize_axis};

/// Where an operator's list of integers comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum IntList {
    /// `None` when the attribute is left out.
    Attribute(&'static str, Option<Vec<i64>>),
    /// The input of this index, which the node may leave out.
    Input(usize),
    /// The input of this index, whose whole numbers are floats (opset 1).
    Floats(usize),
}

/// The elements of a float tensor, when all are whole numbers.
pub fn whole_numbers(view: TensorView<'_>) -> Option<Vec<i64>> {
    let numbers: Vec<f64> = match view.ty() {
        ElementType::F32 => view.slice::<f32>().iter().map(|&x| x as f64).collect(),
        ElementType::F64 => view.slice::<f64>().to_vec(),
        ElementType::F16 => view.slice::<f16>().iter().map(|x| x.to_f64()).collect(),
        ElementType::I64 => return Some(view.slice::<i64>().to_vec()),
        _ => return None,
    };
    // Whole and far from the ends of i64.
    let whole = |x: &f64| x.fract() == 0.0 && x.abs() < 1e15;
    numbers.iter().all(whole).then(|| numbers.iter().map(|&x| x as i64).collect())
}

impl IntList {
    /// The input `input` since opset `since`, the attribute `name` before.
    pub fn read(
        a: &AttributeReader<'_>,
        name: &'static str,
        input: usize,
        since: i64,
    ) -> Result<Self, OpError> {
        if a.opset() >= since {
            return Ok(IntList::Input(input));
        }
        Ok(IntList::Attribute(name, a.ints(name)?.map(<[i64]>::to_vec)))
    }

    /// An attribute that must be there before opset `since`.
    pub fn required(
        a: &AttributeReader<'_>,
        name: &'static str,
        input: usize,
        since: i64,
    ) -> Result<Self, OpError> {
        let list = Self::read(a, name, input, since)?;
        match list {
            IntList::Attribute(name, None) => Err(OpError::attribute(name, "it is required, and missing")),
            _ => Ok(list),
        }
    }

    /// Whether the node gives the list.
    pub fn given(&self, cx: &Infer<'_>) -> bool {
        match self {
            IntList::Attribute(_, values) => values.is_some(),
            IntList::Input(i) | IntList::Floats(i) => cx.has(*i),
        }
    }

    /// The integers, known or symbolic. `None` when they are left out or not known yet.
    pub fn dims(&self, cx: &Infer<'_>) -> Option<Vec<Dim>> {
        match self {
            IntList::Attribute(_, values) => Some(values.as_ref()?.iter().map(|&v| v.into()).collect()),
            IntList::Input(i) => cx.ints(*i),
            IntList::Floats(_) => Some(self.known(cx)?.into_iter().map(Dim::from).collect()),
        }
    }

    /// The integers when all of them are known.
    pub fn known(&self, cx: &Infer<'_>) -> Option<Vec<i64>> {
        match self {
            IntList::Attribute(_, values) => values.clone(),
            IntList::Input(i) => cx.known_ints(*i),
            IntList::Floats(i) => whole_numbers(cx.constant(*i)?.aligned().ok()?.view()),
        }
    }

    /// How many integers there are, when that is known.
    pub fn count(&self, cx: &Infer<'_>) -> Option<usize> {
        if let Some(dims) = self.dims(cx) {
            return Some(dims.len());
        }
        match (self, cx) {
            (IntList::Input(i) | IntList::Floats(i), cx) => match cx.shape(*i)? {
                [] => Some(1),
                [n] => usize::try_from(n.known()?).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The list as axes counted from the front, each at most once.
    pub fn axes(&self, cx: &Infer<'_>, rank: usize) -> Result<Option<Vec<usize>>, OpError> {
        self.known(cx)
            .map(|axes| unique_axes(&axes, rank).map_err(|e| self.error(cx, e.to_string())))
            .transpose()
    }

    /// An error about the list, named as the node gives it.
    pub fn error(&self, cx: &Infer<'_>, reason: impl Into<String>) -> OpError {
        match self {
            IntList::Attribute(name, _) => OpError::attribute(name, reason),
            IntList::Input(i) | IntList::Floats(i) => cx.input_error(*i, reason),
        }
    }
}

/// Axes counted from the front; a repeated one is an error.
pub fn unique_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, OpError> {
    let mut result = Vec::with_capacity(axes.len());
    for &axis in axes {
        let axis = normalize_axis("axes", axis, rank)?;
        if result.contains(&axis) {
            return Err(OpError::attribute("axes", format!("axis {axis} is given twice in {axes:?}")));
        }
        result.push(axis);
    }
    Ok(result)
}
