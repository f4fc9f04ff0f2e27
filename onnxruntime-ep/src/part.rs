//! A part of a graph as a model of its own.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use prost::Message;

use crate::elements;
use crate::error::{Result, fail};
use crate::onnx::{EXTERNAL, GraphProto, ModelProto, StringStringEntryProto, TensorProto};
use crate::ort::TypeInfo;
use crate::snapshot::{Snapshot, value_proto};

/// Constants of so many bytes are weights.
const WEIGHT: usize = 4096;

/// The nodes of a part, and what crosses its border.
pub(crate) struct Part {
    /// Positions in the snapshot, in its order.
    pub(crate) nodes: Vec<usize>,
    /// Values from outside that are no constants.
    pub(crate) inputs: Vec<String>,
    /// Values that are used outside.
    pub(crate) outputs: Vec<String>,
    /// Constants of graphs that the nodes use.
    constants: Vec<String>,
}

impl Part {
    pub(crate) fn of(snapshot: &Snapshot<'_>, nodes: &[usize]) -> Part {
        let inside: HashSet<usize> = nodes.iter().copied().collect();
        let mut made = HashSet::new();
        let (mut inputs, mut constants, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for &index in nodes {
            let node = &snapshot.nodes[index];
            for name in node.needs.iter().filter(|name| !name.is_empty()) {
                if made.contains(name.as_str()) || !seen.insert(name.as_str()) {
                    continue;
                }
                let list = if snapshot.constants.contains_key(name) { &mut constants } else { &mut inputs };
                list.push(name.clone());
            }
            made.extend(node.proto.output.iter().map(String::as_str).filter(|name| !name.is_empty()));
        }
        let mut wanted: HashSet<&str> = snapshot.outputs.iter().map(String::as_str).collect();
        for (index, node) in snapshot.nodes.iter().enumerate() {
            if !inside.contains(&index) {
                wanted.extend(node.needs.iter().map(String::as_str));
            }
        }
        let outputs = nodes.iter().flat_map(|index| &snapshot.nodes[*index].proto.output);
        let outputs = outputs.filter(|name| wanted.contains(name.as_str())).cloned().collect();
        Part { nodes: nodes.to_vec(), inputs, outputs, constants }
    }

    /// A word that no other part of the model has, and that the same part has again; none for a whole model.
    pub(crate) fn word(&self, snapshot: &Snapshot<'_>) -> Option<String> {
        if self.nodes.len() == snapshot.nodes.len() && !snapshot.is_body {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (&snapshot.name, &self.outputs).hash(&mut hasher);
        Some(format!("{:016x}", hasher.finish()))
    }

    /// The part with these inputs and outputs, in this order. An input may be one that the part does not need, or one of its
    /// constants.
    pub(crate) fn between(mut self, inputs: &[String], outputs: &[String]) -> Result<Part> {
        let missing =
            |has: &[String], wanted: &[String]| wanted.iter().find(|name| !has.contains(name)).cloned();
        let made = self.outputs.clone();
        if let Some(name) = missing(inputs, &self.inputs).or_else(|| missing(&made, outputs)) {
            fail!(Fail, "the value \"{name}\" of a part is none of its fused node");
        }
        self.constants.retain(|name| !inputs.contains(name));
        (self.inputs, self.outputs) = (inputs.to_vec(), outputs.to_vec());
        Ok(self)
    }

    /// The part as a model. Constants of more than `most` bytes become inputs, to find out cheaply whether the part can be
    /// run.
    pub(crate) fn encode<'s>(&self, snapshot: &'s Snapshot<'_>, most: usize) -> Result<Encoded<'s>> {
        let bytes = |tensor: &TensorProto| tensor.raw_data.as_ref().map_or(0, |data| data.len());
        let constants = self.constants.iter().filter_map(|name| snapshot.constants.get(name));
        let (large, small): (Vec<_>, Vec<_>) = constants.partition(|tensor| bytes(tensor) > most);
        let value = |name: &String| value_proto(name, snapshot.types.get(name).unwrap_or(&TypeInfo::Unknown));
        let (beside, within): (Vec<_>, Vec<_>) = small.into_iter().partition(|tensor| is_weight(tensor));
        let initializers =
            within.into_iter().cloned().chain(beside.iter().map(|tensor| without_elements(tensor)));
        let mut graph = GraphProto {
            name: snapshot.name.clone(),
            node: self.nodes.iter().map(|index| snapshot.nodes[*index].proto.clone()).collect(),
            initializer: initializers.collect(),
            input: self.inputs.iter().map(value).collect(),
            output: self.outputs.iter().map(value).collect(),
            value_info: Vec::new(),
        };
        graph.input.extend(large.iter().map(|tensor| value(&tensor.name)));
        let named: HashSet<&str> =
            graph.input.iter().chain(&graph.output).map(|value| value.name.as_str()).collect();
        let made = graph.node.iter().flat_map(|node| &node.output);
        let inner = made.filter(|name| !name.is_empty() && !named.contains(name.as_str()));
        let inner = inner.map(value).filter(|value| value.ty.is_some()).collect();
        graph.value_info = inner;
        let model = ModelProto {
            ir_version: snapshot.ir_version,
            producer_name: "onnxruntime".to_owned(),
            graph: Some(graph),
            opset_import: snapshot.opsets.clone(),
        };
        Ok(Encoded { model: model.encode_to_vec(), weights: beside })
    }
}

/// A part in ONNX's protobuf.
pub(crate) struct Encoded<'s> {
    pub(crate) model: Vec<u8>,
    /// Initializers whose elements are not in it: librukh gets them by themselves, so that they are copied once, out of
    /// ONNX Runtime's memory, which it frees when the session is made.
    pub(crate) weights: Vec<&'s TensorProto>,
}

/// Whether a constant is so large that its elements stay outside of the protobuf, and whether they have the same form there
/// as in librukh's tensors.
fn is_weight(tensor: &TensorProto) -> bool {
    tensor.raw_data.as_ref().is_some_and(|bytes| bytes.len() >= WEIGHT)
        && !elements::is_packed_in_onnx(tensor.data_type)
}

/// The tensor as one whose elements are elsewhere.
fn without_elements(tensor: &TensorProto) -> TensorProto {
    let location = StringStringEntryProto { key: "location".to_owned(), value: "given".to_owned() };
    TensorProto {
        dims: tensor.dims.clone(),
        data_type: tensor.data_type,
        name: tensor.name.clone(),
        external_data: vec![location],
        data_location: Some(EXTERNAL),
        ..Default::default()
    }
}
