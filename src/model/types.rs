//! Types and shapes as the model declares them.

use crate::error::{Result, fail};
use crate::graph::{Dim, Fact};
use crate::tensor::{ElementType, ValueType};

use super::proto::tensor_shape_proto::Dimension;
use super::proto::tensor_shape_proto::dimension::Value as DimValue;
use super::proto::type_proto::Value as TypeValue;
use super::proto::{TensorShapeProto, TypeProto};

/// What a declared type tells of a value. `what` names the value in errors.
pub(super) fn fact(what: &str, proto: Option<&TypeProto>) -> Result<Fact> {
    let Some(value) = proto.and_then(|t| t.value.as_ref()) else {
        return Ok(Fact::default());
    };
    let shape = match value {
        TypeValue::TensorType(t) => t.shape.as_ref().map(|s| shape(what, s)).transpose()?,
        TypeValue::SparseTensorType(t) => t.shape.as_ref().map(|s| shape(what, s)).transpose()?,
        _ => None,
    };
    Ok(Fact { ty: Some(value_type(what, value)?), shape, elements: None })
}

/// The type alone.
pub(super) fn value_type(what: &str, value: &TypeValue) -> Result<ValueType> {
    let inner = |t: &Option<Box<TypeProto>>| match t.as_ref().and_then(|t| t.value.as_ref()) {
        Some(value) => value_type(what, value).map(Box::new),
        None => fail!(InvalidModel, "{what}: its type does not say of what it is made"),
    };
    Ok(match value {
        TypeValue::TensorType(t) => ValueType::Tensor(element_type(what, t.elem_type)?),
        TypeValue::SequenceType(s) => ValueType::Sequence(inner(&s.elem_type)?),
        TypeValue::OptionalType(o) => ValueType::Optional(inner(&o.elem_type)?),
        TypeValue::MapType(m) => ValueType::Map(element_type(what, m.key_type)?, inner(&m.value_type)?),
        // Values are dense: a caller gives and gets the whole tensor.
        TypeValue::SparseTensorType(t) => ValueType::Tensor(element_type(what, t.elem_type)?),
        TypeValue::OpaqueType(_) => fail!(Unsupported, "{what}: opaque types are not supported"),
    })
}

pub(super) fn element_type(what: &str, number: i32) -> Result<ElementType> {
    match ElementType::from_onnx(number) {
        Some(ty) => Ok(ty),
        None => {
            fail!(
                InvalidModel,
                "{what}: {number} is no element type; allowed are 1 (float) to 28 (float6e3m2)"
            )
        }
    }
}

/// Dimensions without a name or a value get a name of their own.
fn shape(what: &str, proto: &TensorShapeProto) -> Result<Vec<Dim>> {
    proto
        .dim
        .iter()
        .enumerate()
        .map(|(i, dim)| match &dim.value {
            Some(DimValue::DimValue(n)) if *n >= 0 => Ok(Dim::from(*n)),
            // Some exporters write -1 for "unknown".
            Some(DimValue::DimValue(-1)) => Ok(unnamed(what, i)),
            Some(DimValue::DimValue(n)) => {
                fail!(InvalidModel, "{what}: dimension {i} is {n}; allowed are numbers from 0 and names")
            }
            Some(DimValue::DimParam(name)) if names_a_size(name, proto) => Ok(Dim::symbol(name)),
            _ => Ok(unnamed(what, i)),
        })
        .collect()
}

/// Whether a dimension's name stands for one size. Exporters write "?" for "unknown", at several dimensions,
/// and some write a word for it.
fn names_a_size(name: &str, shape: &TensorShapeProto) -> bool {
    const WORDS: &[&str] = &["none", "unknown", "dynamic", "undefined", "any", "null", "-1", "*"];
    let same = |dim: &&Dimension| matches!(&dim.value, Some(DimValue::DimParam(other)) if other == name);
    let repeated = || shape.dim.iter().filter(same).count() > 1;
    let says_nothing = || WORDS.iter().any(|word| name.eq_ignore_ascii_case(word)) && repeated();
    !(name.is_empty() || is_unnamed(name) || says_nothing())
}

fn unnamed(what: &str, i: usize) -> Dim {
    Dim::symbol(&format!("?{what}:{i}"))
}

/// Whether a symbol was made by `unnamed` or by inference, and is not the model's.
pub(crate) fn is_unnamed(symbol: &str) -> bool {
    symbol.starts_with('?')
}
