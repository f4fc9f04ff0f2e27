//! A graph as `ModelProto`: the way back of `build.rs`, `attribute.rs` and `tensor.rs`.

use bytes::Bytes;

use crate::error::{Result, fail};
use crate::graph::{Attribute, Dim, Fact, Graph, Node, SparseTensor, ValueId};
use crate::tensor::{Tensor, ValueType};

use super::Metadata;
use super::outside::{Role, Weights};
use super::proto::attribute_proto::AttributeType;
use super::proto::tensor_shape_proto::Dimension;
use super::proto::tensor_shape_proto::dimension::Value as DimValue;
use super::proto::type_proto::{self, Value as TypeValue};
use super::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
};
use super::types::is_unnamed;

/// The format's version that has all that may be written: types of 2 bits came last.
const IR_VERSION: i64 = 13;

/// The name of the property of a node that holds the version of its operator set, in artifacts.
pub(super) const OPSET: &str = "opset";

/// The model. Each initializer's elements go where `weights` says.
pub(super) fn model(graph: &Graph, metadata: &Metadata, weights: &mut Weights<'_>) -> Result<ModelProto> {
    written(graph, metadata, Writer { opsets: &mut Vec::new(), weights, declared: None })
}

/// The model as an artifact has it: nodes tell the version of their operator set, as fused ones may be of another than
/// the model's; outputs have the shapes that the model `declared`.
pub(super) fn program(
    graph: &Graph,
    metadata: &Metadata,
    declared: &[Option<Vec<Dim>>],
    weights: &mut Weights<'_>,
) -> Result<ModelProto> {
    written(graph, metadata, Writer { opsets: &mut Vec::new(), weights, declared: Some(declared) })
}

fn written(graph: &Graph, metadata: &Metadata, mut writer: Writer<'_, '_>) -> Result<ModelProto> {
    let ir_version = metadata.ir_version.max(4);
    let graph = writer.graph(graph, true)?;
    let mut opsets = std::mem::take(writer.opsets);
    for (domain, version) in &metadata.opsets {
        if opsets.iter().all(|(known, _)| known != domain) {
            opsets.push((domain.clone(), *version));
        }
    }
    let entry =
        |(key, value): &(String, String)| StringStringEntryProto { key: key.clone(), value: value.clone() };
    Ok(ModelProto {
        ir_version: ir_version.min(IR_VERSION),
        opset_import: opsets
            .into_iter()
            .map(|(domain, version)| OperatorSetIdProto { domain, version })
            .collect(),
        producer_name: "rukh".to_owned(),
        producer_version: env!("CARGO_PKG_VERSION").to_owned(),
        domain: metadata.domain.clone(),
        model_version: metadata.model_version,
        doc_string: metadata.description.clone(),
        graph: Some(GraphProto { name: metadata.graph_name.clone(), ..graph }),
        metadata_props: metadata.properties.iter().map(entry).collect(),
        ..Default::default()
    })
}

struct Writer<'w, 'k> {
    /// The version of each domain's operator set that nodes are of.
    opsets: &'w mut Vec<(String, i64)>,
    weights: &'w mut Weights<'k>,
    /// The shapes of the main graph's outputs, in an artifact.
    declared: Option<&'w [Option<Vec<Dim>>]>,
}

impl Writer<'_, '_> {
    fn graph(&mut self, graph: &Graph, main: bool) -> Result<GraphProto> {
        let order = graph.order().unwrap_or_default();
        let node =
            order.into_iter().map(|id| self.node(graph, graph.node(id))).collect::<Result<Vec<_>>>()?;
        let used = graph.use_counts();
        let ids = (0..graph.value_count() as u32).map(ValueId);
        let constants = ids.filter(|id| used[id.index()] > 0 && graph.value(*id).constant.is_some());
        let role = if main { Role::MainInitializer } else { Role::InnerInitializer };
        let mut initializer = Vec::new();
        for id in constants {
            let value = graph.value(id);
            if let Some(tensor) = &value.constant {
                initializer.push(self.tensor(&value.name, tensor, role)?);
            }
        }
        let defaults = graph.defaults.iter().filter(|(id, _)| used[id.index()] > 0);
        let inputs = graph.inputs.iter().copied().chain(defaults.map(|(id, _)| *id));
        let info = |id: ValueId| {
            let value = graph.value(id);
            ValueInfoProto { name: value.name.clone(), r#type: type_of(&value.fact), ..Default::default() }
        };
        let mut output: Vec<ValueInfoProto> = graph.outputs.iter().copied().map(info).collect();
        if let Some(declared) = self.declared.filter(|_| main) {
            for ((output, shape), id) in output.iter_mut().zip(declared).zip(&graph.outputs) {
                let ty = graph.value(*id).fact.ty.as_ref();
                output.r#type = ty.map(|ty| type_proto_of(ty, shape.as_deref()));
            }
        }
        Ok(GraphProto {
            name: if graph.name.is_empty() { "graph".to_owned() } else { graph.name.clone() },
            node,
            initializer,
            input: inputs.map(info).collect(),
            output,
            ..Default::default()
        })
    }

    fn node(&mut self, graph: &Graph, node: &Node) -> Result<NodeProto> {
        let domain = &node.op.domain;
        match self.opsets.iter().find(|(known, _)| known == domain) {
            Some((_, version)) if *version != node.op.opset && self.declared.is_none() => fail!(
                Unsupported,
                "node \"{}\" ({}): the model has operators of versions {version} and {} of one operator set, as functions of its own import another; a file has one version of each",
                node.name,
                node.op,
                node.op.opset
            ),
            Some(_) => {}
            None => self.opsets.push((domain.clone(), node.op.opset)),
        }
        let names = |values: &[Option<ValueId>]| -> Vec<String> {
            let name =
                |value: &Option<ValueId>| value.map_or_else(String::new, |id| graph.value(id).name.clone());
            values.iter().map(name).collect()
        };
        let attributes = node.attributes.0.iter();
        let opset = StringStringEntryProto { key: OPSET.to_owned(), value: node.op.opset.to_string() };
        Ok(NodeProto {
            name: node.name.clone(),
            op_type: node.op.name.clone(),
            domain: domain.clone(),
            input: names(&node.inputs),
            output: names(&node.outputs),
            metadata_props: self.declared.map(|_| opset).into_iter().collect(),
            attribute: attributes.map(|(name, a)| self.attribute(node, name, a)).collect::<Result<_>>()?,
            ..Default::default()
        })
    }

    fn attribute(&mut self, node: &Node, name: &str, attribute: &Attribute) -> Result<AttributeProto> {
        let mut proto = AttributeProto { name: name.to_owned(), ..Default::default() };
        let kind = match attribute {
            Attribute::Int(i) => {
                proto.i = *i;
                AttributeType::Int
            }
            Attribute::Float(f) => {
                proto.f = *f;
                AttributeType::Float
            }
            Attribute::String(s) => {
                proto.s = Bytes::copy_from_slice(s);
                AttributeType::String
            }
            Attribute::Tensor(tensor) => {
                proto.t = Some(self.tensor("", tensor, Role::Attribute)?);
                AttributeType::Tensor
            }
            Attribute::SparseTensor(sparse) => {
                proto.sparse_tensor = Some(self.sparse(sparse)?);
                AttributeType::SparseTensor
            }
            Attribute::Graph(graph) => {
                proto.g = Some(self.graph(graph, false)?);
                AttributeType::Graph
            }
            Attribute::Type(ty) => {
                proto.tp = Some(type_proto_of(ty, None));
                AttributeType::TypeProto
            }
            Attribute::Ints(ints) => {
                proto.ints = ints.clone();
                AttributeType::Ints
            }
            Attribute::Floats(floats) => {
                proto.floats = floats.clone();
                AttributeType::Floats
            }
            Attribute::Strings(strings) => {
                proto.strings = strings.iter().map(|s| Bytes::copy_from_slice(s)).collect();
                AttributeType::Strings
            }
            Attribute::Tensors(tensors) => {
                proto.tensors =
                    tensors.iter().map(|t| self.tensor("", t, Role::Attribute)).collect::<Result<_>>()?;
                AttributeType::Tensors
            }
            Attribute::Graphs(graphs) => {
                proto.graphs = graphs.iter().map(|g| self.graph(g, false)).collect::<Result<_>>()?;
                AttributeType::Graphs
            }
            Attribute::Reference(_) | Attribute::Definition(_) => fail!(
                Unsupported,
                "node \"{}\" ({}): a model with operators that the program defines cannot be saved",
                node.name,
                node.op
            ),
        };
        proto.r#type = kind as i32;
        Ok(proto)
    }

    fn tensor(&mut self, name: &str, tensor: &Tensor, role: Role) -> Result<TensorProto> {
        let mut proto = TensorProto {
            name: name.to_owned(),
            dims: tensor.shape().iter().map(|&dim| dim as i64).collect(),
            data_type: tensor.ty() as i32,
            ..Default::default()
        };
        match tensor.strings() {
            Some(strings) => {
                proto.string_data = strings.iter().map(|s| Bytes::copy_from_slice(s.as_bytes())).collect();
            }
            None => {
                let bytes = tensor.buffer().map_or(&[][..], |buffer| buffer.bytes());
                let bits = tensor.ty().file_bits();
                match bits < 8 {
                    true => proto.raw_data = Bytes::from(pack(bytes, bits)),
                    false => self.weights.put(&mut proto, tensor, bytes, role)?,
                }
            }
        }
        Ok(proto)
    }

    fn sparse(&mut self, sparse: &SparseTensor) -> Result<SparseTensorProto> {
        Ok(SparseTensorProto {
            values: Some(self.tensor("", &sparse.values, Role::Attribute)?),
            indices: Some(self.tensor("", &sparse.indices, Role::Attribute)?),
            dims: sparse.shape.iter().map(|&dim| dim as i64).collect(),
        })
    }
}

/// Elements of fewer than 8 bits, one a byte here, as a file has them: one after another from the low bits of each byte on.
fn pack(elements: &[u8], bits: usize) -> Vec<u8> {
    let mask = (1u8 << bits) - 1;
    let mut packed = vec![0u8; (elements.len() * bits).div_ceil(8)];
    for (i, element) in elements.iter().enumerate() {
        let (byte, shift) = (i * bits / 8, i * bits % 8);
        let code = u16::from(element & mask) << shift;
        packed[byte] |= code as u8;
        if shift + bits > 8 {
            packed[byte + 1] |= (code >> 8) as u8;
        }
    }
    packed
}

fn type_of(fact: &Fact) -> Option<TypeProto> {
    fact.ty.as_ref().map(|ty| type_proto_of(ty, fact.shape.as_deref()))
}

fn type_proto_of(ty: &ValueType, shape: Option<&[Dim]>) -> TypeProto {
    let inner = |ty: &ValueType| Some(Box::new(type_proto_of(ty, None)));
    let value = match ty {
        ValueType::Tensor(element) => TypeValue::TensorType(type_proto::Tensor {
            elem_type: *element as i32,
            shape: shape.map(|dims| TensorShapeProto { dim: dims.iter().map(dimension).collect() }),
        }),
        ValueType::Sequence(item) => {
            TypeValue::SequenceType(Box::new(type_proto::Sequence { elem_type: inner(item) }))
        }
        ValueType::Map(key, value) => {
            TypeValue::MapType(Box::new(type_proto::Map { key_type: *key as i32, value_type: inner(value) }))
        }
        ValueType::Optional(item) => {
            TypeValue::OptionalType(Box::new(type_proto::Optional { elem_type: inner(item) }))
        }
    };
    TypeProto { value: Some(value), ..Default::default() }
}

/// A size, a name, or nothing for what has neither in the model.
fn dimension(dim: &Dim) -> Dimension {
    let value = match dim.known() {
        Some(size) => Some(DimValue::DimValue(size)),
        None => {
            dim.as_symbol().filter(|name| !is_unnamed(name)).map(|name| DimValue::DimParam(name.to_owned()))
        }
    };
    Dimension { value, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_elements_are_packed_as_the_standard_has_them() {
        assert_eq!(pack(&[1, 2, 15], 4), [0x21, 0x0f]);
        assert_eq!(pack(&[0xff, 0xf8], 4), [0x8f]);
        assert_eq!(pack(&[1, 63, 32, 5, 9], 6), [0xc1, 0x0f, 0x16, 0x09]);
        assert_eq!(pack(&[0, 1, 0xfe, 0xff], 2), [0b11_10_01_00]);
    }
}
