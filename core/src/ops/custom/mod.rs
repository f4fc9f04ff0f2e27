//! Operators that the caller of the library defines.
//!
//! A [`Definition`] is what an operator of the library has a declaration for. Definitions reach a graph in one pass,
//! which puts a node's definition among its attributes (`Definition::bind`); from then on the node finds it there, in
//! whatever graph the node is moved to, and nobody needs a list of definitions.

mod attributes;
mod call;

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::{Result, fail};
use crate::graph::{Attribute, Attributes, Dim, Fact, Node, OpName};
use crate::tensor::{ElementType, Tensor, ValueType};

use super::registered::Registered;
use super::signature::{Parameter, Signature};
use super::{Arity, Infer, OpError, Operator, Types};

pub use attributes::{AttributeKind, AttributeRule};
pub use call::{Call, DeviceWork, OutputSlot};

/// What the caller's functions do.
pub trait Behaviour: Send + Sync {
    /// Tells types and shapes of the outputs.
    fn infer(&self, node: NodeFacts) -> std::result::Result<NodeFacts, OpError>;

    /// Whether it has a kernel there.
    fn runs_on(&self, side: Side) -> bool;

    /// What a node keeps between runs. Not made for questions: one for each node of a session.
    fn instance(&self, node: NodeFacts, side: Side) -> std::result::Result<Box<dyn Instance>, OpError>;
}

/// The kernel of one node.
pub trait Instance: Send + Sync {
    /// Computes the outputs, and gives back what it was lent.
    fn compute(&self, call: Call) -> std::result::Result<Call, OpError>;

    /// Bytes of temporary memory that the device's kernel needs for these shapes.
    fn prepare(
        &self,
        inputs: &[Option<Fact>],
        outputs: Vec<OutputFact>,
    ) -> std::result::Result<usize, OpError>;
}

/// Where a kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Host,
    Device,
}

/// A node as the caller's functions see it. Everything is shared or small, so that it may outlive the call.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    pub name: String,
    pub opset: i64,
    /// With defaults.
    pub attributes: Arc<Attributes>,
    /// `None` where an input is omitted.
    pub inputs: Vec<Option<Fact>>,
    /// The values of inputs that are known. They may be misaligned.
    pub constants: Vec<Option<Tensor>>,
    pub outputs: Vec<OutputFact>,
}

/// What is told of an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutputFact {
    pub ty: Option<ValueType>,
    /// `None` for a dimension that is not known.
    pub shape: Option<Vec<Option<Dim>>>,
}

/// The parts of an operator, as the caller gives them.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// "" or "ai.onnx" for the standard's.
    pub domain: String,
    pub name: String,
    pub since: i64,
    pub types: Vec<(String, Types)>,
    pub inputs: Vec<Parameter>,
    pub outputs: Vec<Parameter>,
    pub shape_inputs: Vec<usize>,
    pub attributes: Vec<AttributeRule>,
    pub has_shape_function: bool,
    /// Whether the same inputs give the same outputs, and nothing else happens.
    pub pure: bool,
    /// Whether what its kernel gives to a GPU's stream may be recorded, and given again without calling it.
    pub capturable: bool,
}

/// An operator that the caller defined.
pub struct Definition {
    op: OpName,
    pub(super) registered: Arc<Registered>,
    attributes: Vec<AttributeRule>,
    has_shape_function: bool,
    capturable: bool,
    behaviour: Box<dyn Behaviour>,
}

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} since {}", self.op, self.op.opset)
    }
}

impl Definition {
    /// An operator of parts that fit together.
    pub fn new(parts: Parts, behaviour: Box<dyn Behaviour>) -> Result<Self> {
        let domain = if parts.domain == "ai.onnx" { String::new() } else { parts.domain };
        let op = OpName { domain, name: parts.name, opset: parts.since };
        if parts.outputs.is_empty() {
            fail!(InvalidArgument, "operator {op}: it has no outputs; it needs one at least");
        }
        if !behaviour.runs_on(Side::Host) && !behaviour.runs_on(Side::Device) {
            fail!(InvalidArgument, "operator {op}: it has no kernel; set one for the CPU or for GPUs");
        }
        for ports in [&parts.inputs, &parts.outputs] {
            let early = ports.iter().rev().skip(1).find(|p| matches!(p.arity, Arity::Variadic(_)));
            if let Some(port) = early {
                fail!(
                    InvalidArgument,
                    "operator {op}: \"{}\" is variadic and not the last; only the last may be",
                    port.name
                );
            }
        }
        let registered = Registered {
            signature: Signature::of(parts.inputs, parts.outputs, parts.types),
            shape_inputs: Cow::Owned(parts.shape_inputs),
            data_dependent: false,
            repeatable: parts.pure,
        };
        Ok(Definition {
            op,
            registered: Arc::new(registered),
            attributes: parts.attributes,
            has_shape_function: parts.has_shape_function,
            capturable: parts.capturable,
            behaviour,
        })
    }

    /// Domain, name and first version.
    pub fn op(&self) -> &OpName {
        &self.op
    }

    /// Whether both have domain, name and version in common, so that they cannot be told apart.
    pub fn is_same(&self, other: &Definition) -> bool {
        self.op == other.op
    }

    /// The definition that a model's node of this name means: the newest that is not newer than the operator set
    /// that the model imports.
    pub fn find<'d>(definitions: &'d [Arc<Definition>], op: &OpName) -> Option<&'d Arc<Definition>> {
        let fits =
            |d: &&Arc<Definition>| d.op.domain == op.domain && d.op.name == op.name && d.op.opset <= op.opset;
        definitions.iter().filter(fits).max_by_key(|d| d.op.opset)
    }

    /// Notes the definition in a node. The name of its operator then holds the domain, so that nobody who looks for
    /// an operator of the library by its name finds this one.
    pub fn bind(self: &Arc<Self>, node: &mut Node) {
        node.op.name = node.op.to_string();
        node.op.domain = String::new();
        let definition = Attribute::Definition(crate::graph::Definition(self.clone()));
        node.attributes.0.push((String::new(), definition));
    }

    /// Whether a node may be computed ahead.
    pub fn is_repeatable(&self) -> bool {
        self.registered.repeatable
    }

    /// The definition that was noted in a node.
    pub fn of(node: &Node) -> Option<&Definition> {
        node.attributes.0.iter().find_map(|(_, attribute)| match attribute {
            Attribute::Definition(definition) => definition.0.downcast_ref(),
            _ => None,
        })
    }

    /// The typed operator of a node that this definition was noted in.
    pub(super) fn operator(&self, node: &Node) -> std::result::Result<Custom, OpError> {
        let attributes = attributes::read(&self.attributes, &node.attributes)?;
        let definition = node.attributes.0.iter().find_map(|(_, attribute)| match attribute {
            Attribute::Definition(definition) => definition.0.clone().downcast::<Definition>().ok(),
            _ => None,
        });
        let definition = definition.ok_or_else(|| OpError::Unknown(format!("{} is not defined", self.op)))?;
        Ok(Custom {
            definition,
            node: node.name.clone(),
            opset: node.op.opset,
            attributes: Arc::new(attributes),
        })
    }
}

/// An operator that the caller defined, in one node.
#[derive(Debug)]
pub struct Custom {
    definition: Arc<Definition>,
    node: String,
    opset: i64,
    attributes: Arc<Attributes>,
}

impl Custom {
    pub fn runs_on(&self, side: Side) -> bool {
        self.definition.behaviour.runs_on(side)
    }

    /// Whether shapes of outputs may be known before a run.
    pub fn has_shape_function(&self) -> bool {
        self.definition.has_shape_function
    }

    /// Whether the work of its kernel for GPUs may be recorded.
    pub fn capturable(&self) -> bool {
        self.definition.capturable
    }

    /// The inputs whose values decide a shape.
    pub fn shape_inputs(&self) -> &[usize] {
        &self.definition.registered.shape_inputs
    }

    /// The kernel of a node with inputs and outputs of these types.
    pub fn instance(
        &self,
        inputs: &[Option<ValueType>],
        constants: &[Option<&Tensor>],
        outputs: &[Option<ValueType>],
        side: Side,
    ) -> std::result::Result<Box<dyn Instance>, OpError> {
        let fact =
            |ty: &Option<ValueType>| ty.as_ref().map(|ty| Fact { ty: Some(ty.clone()), ..Fact::default() });
        let facts = self.facts(
            inputs.iter().map(fact).collect(),
            constants.iter().map(|tensor| tensor.cloned()).collect(),
            outputs.iter().map(|ty| OutputFact { ty: ty.clone(), shape: None }).collect(),
        );
        self.definition.behaviour.instance(facts, side)
    }

    fn facts(
        &self,
        inputs: Vec<Option<Fact>>,
        constants: Vec<Option<Tensor>>,
        outputs: Vec<OutputFact>,
    ) -> NodeFacts {
        NodeFacts {
            name: self.node.clone(),
            opset: self.opset,
            attributes: self.attributes.clone(),
            inputs,
            constants,
            outputs,
        }
    }

    /// The names of a parameter of the signature, for messages.
    fn output_name(&self, index: usize) -> &str {
        let outputs = &self.definition.registered.signature.outputs;
        Signature::parameter(outputs, index).map_or("-", |p| &p.name)
    }
}

impl Operator for Custom {
    fn infer(&self, cx: &mut Infer<'_>) -> std::result::Result<(), OpError> {
        let inputs: Vec<Option<Fact>> = (0..cx.input_count()).map(|i| cx.fact(i).cloned()).collect();
        let typed = inputs.iter().flatten().all(|fact| fact.ty.is_some());
        let constants = (0..cx.input_count())
            .map(|i| Ok(cx.constant(i).cloned().or(known_elements(cx, i)?)))
            .collect::<std::result::Result<_, OpError>>()?;
        let outputs = (0..cx.output_count())
            .map(|i| OutputFact { ty: cx.output_type(i).cloned(), shape: None })
            .collect();
        let told = if self.definition.has_shape_function {
            self.definition.behaviour.infer(self.facts(inputs, constants, outputs))?.outputs
        } else {
            outputs
        };
        for (i, output) in told.into_iter().enumerate() {
            let wrong = |text: String| OpError::Data(format!("output {i} ({}): {text}", self.output_name(i)));
            match &output.ty {
                Some(ty) => {
                    if let Some(own) = cx.output_type(i).filter(|own| *own != ty) {
                        return Err(wrong(format!("the shape function says {ty}; the signature says {own}")));
                    }
                    self.definition.registered.signature.gives(i, ty).map_err(wrong)?;
                    cx.set_type(i, ty.clone());
                }
                None if typed => {
                    return Err(wrong(
                        "its type is not known; give it the type variable of an input, or set it in the shape function"
                            .to_owned(),
                    ));
                }
                None => {}
            }
            if let Some(shape) = output.shape {
                let shape = shape.into_iter().map(|dim| dim.unwrap_or_else(|| cx.unknown())).collect();
                cx.set_shape(i, shape);
            }
        }
        Ok(())
    }
}

/// The tensor of an input whose elements shape arithmetic knows.
fn known_elements(cx: &Infer<'_>, input: usize) -> std::result::Result<Option<Tensor>, OpError> {
    let (Some(ints), Some(fact)) = (cx.known_ints(input), cx.fact(input)) else { return Ok(None) };
    let known = |dims: &Vec<Dim>| dims.iter().map(|d| usize::try_from(d.known()?).ok()).collect();
    let shape: Option<Vec<usize>> = fact.shape.as_ref().and_then(known);
    let Some(shape) = shape.filter(|shape| shape.iter().product::<usize>() == ints.len()) else {
        return Ok(None);
    };
    Ok(match fact.element_type() {
        Some(ElementType::I64) => Some(Tensor::from_slice(&shape, &ints)?),
        Some(ElementType::I32) => {
            let ints: Option<Vec<i32>> = ints.iter().map(|&n| i32::try_from(n).ok()).collect();
            ints.map(|ints| Tensor::from_slice(&shape, &ints)).transpose()?
        }
        _ => None,
    })
}
