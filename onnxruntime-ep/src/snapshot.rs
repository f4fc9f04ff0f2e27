//! A graph of ONNX Runtime's, read once: its nodes as ONNX has them, types of values, and initializers.

use std::collections::HashMap;
use std::marker::PhantomData;

use bytes::Bytes;

use crate::context::is_context;
use crate::elements::{self, onnx_of};
use crate::error::Result;
use crate::onnx::*;
use crate::ort::{Attribute, Dimension, Graph, Node, Tensor, TypeInfo};

/// Valid while the graph is that it was read from: the bytes of initializers are ONNX Runtime's.
pub(crate) struct Snapshot<'a> {
    pub(crate) name: String,
    pub(crate) ir_version: i64,
    pub(crate) opsets: Vec<OperatorSetIdProto>,
    /// Each node comes after those that it needs.
    pub(crate) nodes: Vec<NodeRecord>,
    pub(crate) types: HashMap<String, TypeInfo>,
    /// What is constant in the graph, and in graphs around it.
    pub(crate) constants: HashMap<String, TensorProto>,
    pub(crate) outputs: Vec<String>,
    /// Whether a node of another graph runs it.
    pub(crate) is_body: bool,
    life: PhantomData<&'a ()>,
}

pub(crate) struct NodeRecord {
    /// ONNX's form, with the bodies of control flow.
    pub(crate) proto: NodeProto,
    /// All values that it needs, those of its bodies included, "" for what it leaves out.
    pub(crate) needs: Vec<String>,
    pub(crate) pointer: *const ort_sys::OrtNode,
    /// Why it cannot be written as ONNX, if so.
    pub(crate) unreadable: Option<String>,
    /// Whether a provider before this one has it already.
    pub(crate) taken_by_another: bool,
    /// Whether it stands for a part that was compiled before.
    pub(crate) is_context: bool,
}

impl NodeRecord {
    /// The node for people.
    pub(crate) fn title(&self) -> String {
        let NodeProto { name, op_type, domain, .. } = &self.proto;
        let separator = if domain.is_empty() { "" } else { "." };
        format!("node \"{name}\" ({domain}{separator}{op_type})")
    }
}

impl<'a> Snapshot<'a> {
    pub(crate) fn read(graph: &Graph<'a>) -> Result<Snapshot<'a>> {
        let mut snapshot = Snapshot {
            name: graph.name()?,
            ir_version: graph.ir_version()?,
            opsets: Vec::new(),
            nodes: Vec::new(),
            types: HashMap::new(),
            constants: HashMap::new(),
            outputs: Vec::new(),
            is_body: graph.parent()?.is_some(),
            life: PhantomData,
        };
        for (domain, version) in graph.operator_sets()? {
            snapshot.opsets.push(OperatorSetIdProto { domain, version });
        }
        for value in graph.inputs()?.into_iter().chain(graph.outputs()?) {
            snapshot.types.insert(value.name()?, value.ty()?);
        }
        for value in graph.outputs()? {
            snapshot.outputs.push(value.name()?);
        }
        for value in graph.initializers()? {
            snapshot.add_initializer(&value)?;
        }
        for node in graph.nodes()? {
            snapshot.add_node(&node)?;
        }
        Ok(snapshot)
    }

    /// A graph of one node alone.
    pub(crate) fn of_node(node: &Node<'a>, around: &Graph<'a>) -> Result<Snapshot<'a>> {
        let mut snapshot = Snapshot {
            name: node.operator()?,
            ir_version: around.ir_version()?,
            opsets: Vec::new(),
            nodes: Vec::new(),
            types: HashMap::new(),
            constants: HashMap::new(),
            outputs: Vec::new(),
            is_body: true,
            life: PhantomData,
        };
        for (domain, version) in around.operator_sets()? {
            snapshot.opsets.push(OperatorSetIdProto { domain, version });
        }
        for value in node.outputs()?.into_iter().flatten() {
            snapshot.outputs.push(value.name()?);
        }
        snapshot.add_node(node)?;
        Ok(snapshot)
    }

    fn add_initializer(&mut self, value: &crate::ort::ValueInfo<'_>) -> Result<()> {
        let name = value.name()?;
        self.types.insert(name.clone(), value.ty()?);
        if value.is_constant()?
            && let Some(tensor) = value.initializer()?
            && let Some(proto) = tensor_proto(&name, &tensor)?
        {
            self.constants.insert(name, proto);
        }
        Ok(())
    }

    fn add_node(&mut self, node: &Node<'_>) -> Result<()> {
        let mut needs = Vec::new();
        for value in node.inputs()? {
            let Some(value) = value else {
                needs.push(String::new());
                continue;
            };
            self.add_used(&value)?;
            needs.push(value.name()?);
        }
        for value in node.implicit_inputs()? {
            self.add_used(&value)?;
            needs.push(value.name()?);
        }
        for value in node.outputs()?.into_iter().flatten() {
            self.types.insert(value.name()?, value.ty()?);
        }
        let mut unreadable = None;
        let proto = node_proto(node, &mut unreadable)?;
        let taken_by_another = !node.provider()?.is_empty();
        let is_context = is_context(&proto.op_type, &proto.domain);
        let pointer = node.pointer;
        self.nodes.push(NodeRecord { proto, needs, pointer, unreadable, taken_by_another, is_context });
        Ok(())
    }

    /// A value that a node uses, which may be a constant of a graph around this one.
    fn add_used(&mut self, value: &crate::ort::ValueInfo<'_>) -> Result<()> {
        let name = value.name()?;
        if self.types.contains_key(&name) {
            return Ok(());
        }
        self.add_initializer(value)
    }
}

/// A node as ONNX has it. What it has that cannot be written is told.
fn node_proto(node: &Node<'_>, unreadable: &mut Option<String>) -> Result<NodeProto> {
    let mut proto = NodeProto {
        input: node.input_names()?,
        output: node.output_names()?,
        name: node.name()?,
        op_type: node.operator()?,
        domain: node.domain()?,
        attribute: Vec::new(),
    };
    if is_context(&proto.op_type, &proto.domain) {
        // What it holds may be large.
        *unreadable = Some("it was compiled before, and is no node of a model".to_owned());
        return Ok(proto);
    }
    for (name, attribute) in node.attributes()? {
        if matches!(attribute, Attribute::Graph) {
            continue;
        }
        match attribute_proto(&name, attribute)? {
            Some(attribute) => proto.attribute.push(attribute),
            None => *unreadable = Some(format!("ONNX Runtime does not hand over its attribute \"{name}\"")),
        }
    }
    trim_activations(&mut proto);
    for (name, graph) in node.subgraphs()? {
        let body = body_proto(&graph, unreadable)?;
        proto.attribute.push(AttributeProto {
            name,
            kind: kinds::GRAPH,
            g: Some(body),
            ..Default::default()
        });
    }
    Ok(proto)
}

/// ONNX Runtime writes out the defaults of attributes. Of RNN's activations there are two, also where there is one direction.
fn trim_activations(proto: &mut NodeProto) {
    if proto.op_type != "RNN" || !proto.domain.is_empty() {
        return;
    }
    let both =
        proto.attribute.iter().any(|it| it.s.as_ref().is_some_and(|text| text[..] == *b"bidirectional"));
    if let Some(activations) = proto.attribute.iter_mut().find(|it| it.name == "activations") {
        activations.strings.truncate(if both { 2 } else { 1 });
    }
}

/// The body of a node of control flow.
fn body_proto(graph: &Graph<'_>, unreadable: &mut Option<String>) -> Result<GraphProto> {
    let mut body = GraphProto { name: graph.name()?, ..Default::default() };
    for value in graph.inputs()? {
        body.input.push(value_proto(&value.name()?, &value.ty()?));
    }
    for value in graph.outputs()? {
        body.output.push(value_proto(&value.name()?, &value.ty()?));
    }
    for value in graph.initializers()? {
        let name = value.name()?;
        if let Some(tensor) = value.initializer()?
            && let Some(proto) = tensor_proto(&name, &tensor)?
        {
            body.initializer.push(proto);
        }
    }
    for node in graph.nodes()? {
        body.node.push(node_proto(&node, unreadable)?);
    }
    Ok(body)
}

fn attribute_proto(name: &str, attribute: Attribute) -> Result<Option<AttributeProto>> {
    let mut proto = AttributeProto { name: name.to_owned(), ..Default::default() };
    match attribute {
        Attribute::Int(value) => (proto.kind, proto.i) = (kinds::INT, Some(value)),
        Attribute::Ints(values) => (proto.kind, proto.ints) = (kinds::INTS, values),
        Attribute::Float(value) => (proto.kind, proto.f) = (kinds::FLOAT, Some(value)),
        Attribute::Floats(values) => (proto.kind, proto.floats) = (kinds::FLOATS, values),
        Attribute::String(value) => (proto.kind, proto.s) = (kinds::STRING, Some(value.into())),
        Attribute::Strings(values) => {
            proto.kind = kinds::STRINGS;
            proto.strings = values.into_iter().map(Bytes::from).collect();
        }
        Attribute::Tensor(tensor) => {
            let Some(mut value) = tensor_proto("", &tensor.view())? else {
                return Ok(None);
            };
            value.raw_data = value.raw_data.map(|bytes| Bytes::copy_from_slice(&bytes));
            (proto.kind, proto.t) = (kinds::TENSOR, Some(value));
        }
        Attribute::Graph | Attribute::Other => return Ok(None),
    }
    Ok(Some(proto))
}

/// A tensor as ONNX has it, over ONNX Runtime's bytes; none for a type that is not known, or memory of a device.
fn tensor_proto(name: &str, tensor: &Tensor<'_>) -> Result<Option<TensorProto>> {
    let (element, shape) = tensor.type_and_shape()?;
    let Some(data_type) = onnx_of(element) else {
        return Ok(None);
    };
    if tensor.place() != crate::ort::MemoryPlace::Host {
        return Ok(None);
    }
    let mut proto =
        TensorProto { dims: shape.to_vec(), data_type, name: name.to_owned(), ..Default::default() };
    if element == elements::STRING {
        proto.string_data = tensor.strings()?.into_iter().map(Bytes::from).collect();
    } else {
        proto.raw_data = Some(lent(tensor.host_bytes()?));
    }
    Ok(Some(proto))
}

/// Bytes over memory that is ONNX Runtime's. They are only used while the snapshot is, which its graph outlives.
fn lent(bytes: &[u8]) -> Bytes {
    struct Lent(*const u8, usize);
    // SAFETY: the memory is only read.
    unsafe impl Send for Lent {}
    impl AsRef<[u8]> for Lent {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: made of a slice that lives as long as the graph, which the snapshot does not outlive.
            unsafe { std::slice::from_raw_parts(self.0, self.1) }
        }
    }
    Bytes::from_owner(Lent(bytes.as_ptr(), bytes.len()))
}

pub(crate) fn value_proto(name: &str, ty: &TypeInfo) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), ty: type_proto(ty) }
}

fn type_proto(ty: &TypeInfo) -> Option<TypeProto> {
    let inner = |ty: &TypeInfo| Box::new(InnerTypeProto { elem_type: type_proto(ty).map(Box::new) });
    let value = match ty {
        TypeInfo::Tensor(element, shape) => TypeValue::Tensor(TensorTypeProto {
            elem_type: onnx_of(*element)?,
            shape: shape
                .as_ref()
                .map(|dimensions| TensorShapeProto { dim: dimensions.iter().map(dimension_proto).collect() }),
        }),
        TypeInfo::Sequence(ty) => TypeValue::Sequence(inner(ty)),
        TypeInfo::Optional(ty) => TypeValue::Optional(inner(ty)),
        TypeInfo::Other | TypeInfo::Unknown => return None,
    };
    Some(TypeProto { value: Some(value) })
}

fn dimension_proto(dimension: &Dimension) -> DimensionProto {
    let value = match dimension {
        Dimension::Known(size) => Some(DimensionValue::Value(*size)),
        Dimension::Named(name) => Some(DimensionValue::Param(name.clone())),
        Dimension::Unknown => None,
    };
    DimensionProto { value }
}
