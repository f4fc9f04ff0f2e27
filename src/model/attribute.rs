//! `AttributeProto` as attributes.

use std::sync::Arc;

use crate::error::{Result, fail};
use crate::graph::{Attribute, Attributes};

use super::build::Builder;
use super::proto::AttributeProto;
use super::proto::attribute_proto::AttributeType;
use super::{tensor, types};

/// A node's attributes; graphs among them are built inside the builder's current scope.
pub(super) fn attributes(
    protos: &[AttributeProto],
    node: &str,
    builder: &mut Builder<'_>,
) -> Result<Attributes> {
    let mut attributes = Attributes::default();
    for proto in protos {
        if attributes.get(&proto.name).is_some() {
            fail!(InvalidModel, "node \"{node}\": attribute \"{}\" is given twice", proto.name);
        }
        let value = attribute(proto, node, builder)?;
        attributes.0.push((proto.name.clone(), value));
    }
    Ok(attributes)
}

fn attribute(proto: &AttributeProto, node: &str, builder: &mut Builder<'_>) -> Result<Attribute> {
    if !proto.ref_attr_name.is_empty() {
        return Ok(Attribute::Reference(proto.ref_attr_name.clone()));
    }
    let name = &proto.name;
    let missing = || format!("node \"{node}\": attribute \"{name}\" has no value of the type it declares");
    Ok(match kind(proto) {
        AttributeType::Int => Attribute::Int(proto.i),
        AttributeType::Float => Attribute::Float(proto.f),
        AttributeType::String => Attribute::String(proto.s.to_vec()),
        AttributeType::Ints => Attribute::Ints(proto.ints.clone()),
        AttributeType::Floats => Attribute::Floats(proto.floats.clone()),
        AttributeType::Strings => Attribute::Strings(proto.strings.iter().map(|s| s.to_vec()).collect()),
        AttributeType::Tensor => match &proto.t {
            Some(t) => Attribute::Tensor(Arc::new(tensor::tensor(t, builder.external)?)),
            None => fail!(InvalidModel, "{}", missing()),
        },
        AttributeType::Tensors => Attribute::Tensors(
            proto
                .tensors
                .iter()
                .map(|t| tensor::tensor(t, builder.external).map(Arc::new))
                .collect::<Result<_>>()?,
        ),
        AttributeType::SparseTensor => match &proto.sparse_tensor {
            Some(t) => Attribute::SparseTensor(Arc::new(tensor::sparse(t, builder.external)?)),
            None => fail!(InvalidModel, "{}", missing()),
        },
        AttributeType::Graph => match &proto.g {
            Some(g) => Attribute::Graph(Arc::new(builder.graph(g, false)?)),
            None => fail!(InvalidModel, "{}", missing()),
        },
        AttributeType::Graphs => Attribute::Graphs(
            proto.graphs.iter().map(|g| builder.graph(g, false).map(Arc::new)).collect::<Result<_>>()?,
        ),
        AttributeType::TypeProto => match proto.tp.as_ref().and_then(|t| t.value.as_ref()) {
            Some(t) => {
                Attribute::Type(types::value_type(&format!("node \"{node}\": attribute \"{name}\""), t)?)
            }
            None => fail!(InvalidModel, "{}", missing()),
        },
        AttributeType::SparseTensors | AttributeType::TypeProtos => {
            fail!(
                Unsupported,
                "node \"{node}\": attribute \"{name}\" is a list of sparse tensors or types, which no operator has"
            )
        }
        AttributeType::Undefined => {
            fail!(
                InvalidModel,
                "node \"{node}\": attribute \"{name}\" has type {}, which is not known",
                proto.r#type
            )
        }
    })
}

/// The declared type, or before IR 2, where it was not written, the field that is set.
fn kind(proto: &AttributeProto) -> AttributeType {
    use AttributeType as K;
    match K::try_from(proto.r#type) {
        Ok(K::Undefined) => {
            let set = [
                (!proto.ints.is_empty(), K::Ints),
                (!proto.floats.is_empty(), K::Floats),
                (!proto.strings.is_empty(), K::Strings),
                (proto.t.is_some(), K::Tensor),
                (proto.g.is_some(), K::Graph),
                (!proto.s.is_empty(), K::String),
                (proto.f != 0.0, K::Float),
            ];
            set.iter().find(|(is_set, _)| *is_set).map_or(K::Int, |(_, kind)| *kind)
        }
        Ok(kind) => kind,
        Err(_) => K::Undefined,
    }
}
