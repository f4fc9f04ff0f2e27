//! Encoding categories: CategoryMapper, LabelEncoder, OneHotEncoder, DictVectorizer, ZipMap.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, Tensor, ValueType};

use super::super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};
use super::{DOMAIN, Labels, NUMBERS};

/// Maps each element by a table: `keys[i]` becomes element `i` of `values`, what is not there becomes
/// `default`, a tensor of one element.
#[derive(Clone, Debug)]
pub struct Encode {
    pub keys: Arc<Tensor>,
    pub values: Arc<Tensor>,
    pub default: Arc<Tensor>,
    /// CategoryMapper and the first LabelEncoder map in the direction that the input's type tells:
    /// from values to keys where the input has the type of `values`, with this default.
    pub back: Option<Arc<Tensor>>,
}

impl Operator for Encode {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let given = cx.element_type(0);
        let backwards = self.back.is_some() && given == Some(self.values.ty());
        let (from, to) = if backwards { (&self.values, &self.keys) } else { (&self.keys, &self.values) };
        if let Some(ty) = given.filter(|&ty| ty != from.ty()) {
            return Err(cx.input_error(0, format!("its type is {ty}; the keys are {}", from.ty())));
        }
        cx.set_element_type(0, to.ty());
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        Ok(())
    }
}

/// A new last axis with a one at the element's category.
#[derive(Clone, Debug, PartialEq)]
pub struct OneHotEncoder {
    pub categories: Labels,
    /// Whether an unknown category gives zeros; else it is an error.
    pub zeros: bool,
}

impl Operator for OneHotEncoder {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let text = self.categories.element_type() == ElementType::String;
        if let Some(ty) = cx.element_type(0)
            && (ty == ElementType::String) != text
        {
            let ty = format!("its type is {ty}; the categories are {}", self.categories.element_type());
            return Err(cx.input_error(0, ty));
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, [shape, &[self.categories.len().into()]].concat());
        }
        Ok(())
    }
}

/// The values of a map in the order of a vocabulary, zero for what the map lacks.
#[derive(Clone, Debug, PartialEq)]
pub struct DictVectorizer {
    pub vocabulary: Labels,
}

impl Operator for DictVectorizer {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match cx.fact(0).and_then(|fact| fact.ty.clone()) {
            Some(ValueType::Map(key, value)) => {
                if key != self.vocabulary.element_type() {
                    let want = self.vocabulary.element_type();
                    return Err(cx.input_error(0, format!("its keys are {key}, the vocabulary is {want}")));
                }
                cx.set_type(0, *value);
            }
            Some(other) => return Err(cx.input_error(0, format!("its type is {other}; allowed are maps"))),
            None => {}
        }
        cx.set_shape(0, vec![Dim::Known(1), self.vocabulary.len().into()]);
        Ok(())
    }
}

/// A sequence of maps from class labels to the scores of each row.
#[derive(Clone, Debug, PartialEq)]
pub struct ZipMap {
    pub labels: Labels,
}

impl Operator for ZipMap {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let map = ValueType::Map(self.labels.element_type(), Box::new(ValueType::Tensor(ElementType::F32)));
        cx.set_type(0, ValueType::Sequence(Box::new(map)));
        Ok(())
    }
}

fn strings(values: Vec<&str>) -> Arc<Tensor> {
    Arc::new(Tensor::from_strings(&[values.len()], values.into_iter().map(str::to_owned).collect()))
}

fn string(value: &str) -> Arc<Tensor> {
    Arc::new(Tensor::from_strings(&[1], vec![value.to_owned()]))
}

/// Integers and strings that stand for each other.
fn two_way(a: &AttributeReader<'_>, ints: Vec<i64>, text: Vec<&str>) -> Result<Arc<dyn Operator>, OpError> {
    if ints.len() != text.len() {
        let reason = format!("there are {} strings for {} integers", text.len(), ints.len());
        return Err(OpError::attribute("cats_strings", reason));
    }
    Ok(Arc::new(Encode {
        keys: Arc::new(Tensor::from_slice(&[ints.len()], &ints)?),
        values: strings(text),
        default: string(a.string("default_string", "_Unused")?),
        back: Some(Arc::new(Tensor::from_slice(&[1], &[a.int("default_int64", -1)?])?)),
    }))
}

/// Keys or values of LabelEncoder, from whichever attribute is given.
fn table(a: &AttributeReader<'_>, what: &str) -> Result<Arc<Tensor>, OpError> {
    let mut found = Vec::new();
    if let Some(v) = a.strings(&format!("{what}_strings"))? {
        found.push(strings(v));
    }
    if let Some(v) = a.ints(&format!("{what}_int64s"))? {
        found.push(Arc::new(Tensor::from_slice(&[v.len()], v)?));
    }
    if let Some(v) = a.floats(&format!("{what}_floats"))? {
        found.push(Arc::new(Tensor::from_slice(&[v.len()], v)?));
    }
    if a.opset() >= 4
        && let Some(t) = a.tensor(&format!("{what}_tensor"))?
    {
        found.push(Arc::new(t.aligned()?));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        n => {
            Err(OpError::attribute(&format!("{what}_*"), format!("{n} of them are given; exactly 1 must be")))
        }
    }
}

fn label_encoder(a: &AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError> {
    if a.opset() < 2 {
        let classes = a.strings("classes_strings")?.unwrap_or_default();
        return two_way(a, (0..classes.len() as i64).collect(), classes);
    }
    let (keys, values) = (table(a, "keys")?, table(a, "values")?);
    if keys.len() != values.len() {
        let reason = format!("there are {} values for {} keys", values.len(), keys.len());
        return Err(OpError::attribute("values_*", reason));
    }
    let given = if a.opset() >= 4 { a.tensor("default_tensor")?.cloned() } else { None };
    let (float, int) = (a.float("default_float", -0.0)?, a.int("default_int64", -1)?);
    let text = a.string("default_string", "_Unused")?;
    let default = match (given, values.ty()) {
        (Some(t), ty) if t.ty() == ty && t.len() == 1 => Arc::new(t.aligned()?),
        (Some(t), ty) => {
            let reason = format!("it has {} elements of {}; 1 of {ty} is needed", t.len(), t.ty());
            return Err(OpError::attribute("default_tensor", reason));
        }
        (None, ElementType::String) => string(text),
        (None, ElementType::I64) => Arc::new(Tensor::from_slice(&[1], &[int])?),
        (None, ElementType::I32) => Arc::new(Tensor::from_slice(&[1], &[int as i32])?),
        (None, ElementType::I16) => Arc::new(Tensor::from_slice(&[1], &[int as i16])?),
        (None, ElementType::F64) => Arc::new(Tensor::from_slice(&[1], &[float as f64])?),
        (None, _) => Arc::new(Tensor::from_slice(&[1], &[float])?),
    };
    Ok(Arc::new(Encode { keys, values, default, back: None }))
}

const ENCODED: Types = NUMBERS.and(Types::STRING).and(Types::of(&[ElementType::I16]));

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("CategoryMapper", &[1], "X:T -> Y:any", &[("T", ENCODED)], |a| {
        let ints = a.ints("cats_int64s")?.unwrap_or_default().to_vec();
        let text = a.strings("cats_strings")?.unwrap_or_default();
        two_way(a, ints, text)
    })
    .domain(DOMAIN),
    Declaration::new("LabelEncoder", &[1, 2, 4], "X:T -> Y:any", &[("T", ENCODED)], label_encoder)
        .domain(DOMAIN),
    Declaration::new("OneHotEncoder", &[1], "X:T -> Y:float", &[("T", ENCODED)], |a| {
        let categories = Labels::required(a, "cats_int64s", "cats_strings")?;
        Ok(Arc::new(OneHotEncoder { categories, zeros: a.flag("zeros", true)? }))
    })
    .domain(DOMAIN),
    Declaration::new("DictVectorizer", &[1], "X:any -> Y:any", &[], |a| {
        Ok(Arc::new(DictVectorizer {
            vocabulary: Labels::required(a, "int64_vocabulary", "string_vocabulary")?,
        }))
    })
    .domain(DOMAIN)
    .data_dependent(),
    Declaration::new("ZipMap", &[1], "X:float -> Z:any", &[], |a| {
        Ok(Arc::new(ZipMap { labels: Labels::required(a, "classlabels_int64s", "classlabels_strings")? }))
    })
    .domain(DOMAIN)
    .data_dependent(),
];
