//! Builds small models as bytes, right and wrong ones, for tests.

use prost::Message;

use super::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, attribute_proto::AttributeType,
    tensor_shape_proto::Dimension, tensor_shape_proto::dimension::Value as DimValue, type_proto,
};
use crate::tensor::ElementType;

/// A model that is written down piece by piece; nothing is checked.
#[derive(Clone)]
pub(crate) struct ModelBuilder(pub(crate) ModelProto);

impl ModelBuilder {
    /// An empty graph with opset 21 of ai.onnx.
    pub(crate) fn new() -> Self {
        Self::with_opset(21)
    }

    pub(crate) fn with_opset(version: i64) -> Self {
        ModelBuilder(ModelProto {
            ir_version: 10,
            opset_import: vec![OperatorSetIdProto { domain: String::new(), version }],
            graph: Some(GraphProto { name: "test".into(), ..Default::default() }),
            ..Default::default()
        })
    }

    /// Operators of another domain.
    pub(crate) fn import(mut self, domain: &str, version: i64) -> Self {
        self.0.opset_import.push(OperatorSetIdProto { domain: domain.into(), version });
        self
    }

    fn graph(&mut self) -> &mut GraphProto {
        self.0.graph.get_or_insert_default()
    }

    /// An input; a dimension is a number or a name.
    pub(crate) fn input(mut self, name: &str, ty: ElementType, shape: &[&str]) -> Self {
        let value = value_info(name, ty, shape);
        self.graph().input.push(value);
        self
    }

    pub(crate) fn output(mut self, name: &str) -> Self {
        self.graph().output.push(ValueInfoProto { name: name.into(), ..Default::default() });
        self
    }

    pub(crate) fn node(self, op: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        self.node_with(op, &[], inputs, outputs)
    }

    /// A node named `the_OP`; the operator may have a domain before a dot.
    pub(crate) fn node_with(
        mut self,
        op: &str,
        attributes: &[AttributeProto],
        inputs: &[&str],
        outputs: &[&str],
    ) -> Self {
        self.graph().node.push(node(op, attributes, inputs, outputs));
        self
    }

    pub(crate) fn initializer(mut self, tensor: TensorProto) -> Self {
        self.graph().initializer.push(tensor);
        self
    }

    pub(crate) fn function(mut self, name: &str, nodes: Vec<NodeProto>) -> Self {
        self.0.opset_import.push(OperatorSetIdProto { domain: "my".into(), version: 1 });
        self.0.functions.push(FunctionProto {
            name: name.into(),
            domain: "my".into(),
            input: vec!["v".into()],
            output: vec!["w".into()],
            node: nodes,
            opset_import: self.0.opset_import.clone(),
            ..Default::default()
        });
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.encode_to_vec()
    }
}

pub(crate) fn node(op: &str, attributes: &[AttributeProto], inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let (domain, op) = op.rsplit_once('.').unwrap_or(("", op));
    let names = |names: &[&str]| names.iter().map(|n| n.to_string()).collect();
    NodeProto {
        name: format!("the_{op}"),
        op_type: op.into(),
        domain: domain.into(),
        input: names(inputs),
        output: names(outputs),
        attribute: attributes.to_vec(),
        ..Default::default()
    }
}

pub(crate) fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i, r#type: AttributeType::Int as i32, ..Default::default() }
}

pub(crate) fn int_list(name: &str, list: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        ints: list.to_vec(),
        r#type: AttributeType::Ints as i32,
        ..Default::default()
    }
}

pub(crate) fn graph_attribute(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto {
        name: name.into(),
        g: Some(graph),
        r#type: AttributeType::Graph as i32,
        ..Default::default()
    }
}

/// The graph of another builder, as a body.
pub(crate) fn body(builder: ModelBuilder) -> GraphProto {
    builder.0.graph.unwrap_or_default()
}

/// A tensor with these bytes, whether they fit its shape or not.
pub(crate) fn raw(name: &str, ty: ElementType, dims: &[i64], bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: name.into(),
        data_type: ty as i32,
        dims: dims.to_vec(),
        raw_data: bytes.to_vec().into(),
        ..Default::default()
    }
}

pub(crate) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    raw(name, ElementType::F32, dims, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

pub(crate) fn ints(name: &str, dims: &[i64], values: &[i64]) -> TensorProto {
    raw(name, ElementType::I64, dims, &values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

fn value_info(name: &str, ty: ElementType, shape: &[&str]) -> ValueInfoProto {
    let dim = shape
        .iter()
        .map(|d| Dimension {
            value: Some(d.parse().map_or_else(|_| DimValue::DimParam(d.to_string()), DimValue::DimValue)),
            ..Default::default()
        })
        .collect();
    let tensor = type_proto::Tensor { elem_type: ty as i32, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..Default::default() }),
        ..Default::default()
    }
}

pub(crate) use super::proto::TensorProto as Tensor;

/// A float tensor whose elements lie in a file.
pub(crate) fn external(name: &str, dims: &[i64], location: &str) -> TensorProto {
    let entry = super::proto::StringStringEntryProto { key: "location".into(), value: location.into() };
    let mut tensor = raw(name, ElementType::F32, dims, &[]);
    tensor.data_location = super::proto::tensor_proto::DataLocation::External as i32;
    tensor.external_data.push(entry);
    tensor
}
