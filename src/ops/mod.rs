//! What each operator means: its schema, its attributes, its type and shape rule. No computation.
//!
//! Each family is one file with a table of [`Declaration`]s. An operator is declared once; the
//! provider that runs it receives the typed operator ([`resolve`]) and never parses an attribute.

pub(crate) mod activation;
mod attributes;
mod infer;
mod registered;
mod registry;
mod signature;

pub(crate) mod along;
pub(crate) mod attention;
pub(crate) mod binary;
pub(crate) mod cast;
pub(crate) mod channel_blocked;
pub(crate) mod channels_last;
pub(crate) mod choose;
pub(crate) mod col2im;
pub(crate) mod concat;
pub(crate) mod control;
pub(crate) mod conv;
pub(crate) mod crop;
pub(crate) mod custom;
pub(crate) mod detection;
pub(crate) mod dropout;
pub(crate) mod einsum;
pub(crate) mod fourier;
pub(crate) mod fused;
pub(crate) mod gated;
pub(crate) mod gather;
pub(crate) mod generate;
pub(crate) mod generation;
pub(crate) mod grid;
pub(crate) mod image_decoder;
pub(crate) mod image_scaler;
pub(crate) mod int_list;
pub(crate) mod inverse;
pub(crate) mod language;
pub(crate) mod layer_norm;
pub(crate) mod lookup;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod ml;
pub(crate) mod moe;
pub(crate) mod movement;
pub(crate) mod ngram;
pub(crate) mod norm;
pub(crate) mod norm_axes;
pub(crate) mod optional;
pub(crate) mod pad;
pub(crate) mod permuted;
pub(crate) mod pool;
pub(crate) mod projection;
pub(crate) mod qlinear;
pub(crate) mod quantize;
pub(crate) mod random;
pub(crate) mod reduce;
pub(crate) mod reshape;
pub(crate) mod resize;
pub(crate) mod rnn;
pub(crate) mod roi;
pub(crate) mod scatter;
pub(crate) mod select;
pub(crate) mod sequence;
pub(crate) mod shape;
pub(crate) mod signal;
pub(crate) mod slice;
pub(crate) mod softmax;
pub(crate) mod text;
pub(crate) mod tokenizer;
pub(crate) mod topk;
pub(crate) mod training;
pub(crate) mod unary;
pub(crate) mod unique;
pub(crate) mod unpool;
pub(crate) mod variadic;
pub(crate) mod weight_only;
pub(crate) mod window;

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Status};

pub(crate) use attributes::AttributeReader;
pub(crate) use infer::{Infer, Unknowns, normalize_axis};
pub(crate) use registered::Registered;
#[cfg(test)]
pub(crate) use registry::declarations;
pub(crate) use registry::{find, is_repeatable, is_standard, resolve};
pub(crate) use signature::{Arity, Parameter, Types};

/// The typed form of a node's operator: its attributes with defaults filled in and checked.
pub(crate) trait Operator: Any + std::fmt::Debug + Send + Sync {
    /// Sets what is known of each output from what is known of the inputs. Types of outputs that
    /// the signature determines are already set. Runs on symbolic shapes when a model is opened and
    /// on known ones when a run is planned, where it must make every output shape known unless the
    /// operator is data-dependent or a shape input's value is missing.
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError>;

    /// An integer input of one element, and the largest number up to which its value decides no shape: as many keys
    /// as a cache has room for. `inputs` are what is known of the node's inputs.
    fn limited_shape_input(&self, _inputs: &[Option<crate::graph::Fact>]) -> Option<(usize, i64)> {
        None
    }
}

impl dyn Operator {
    /// This operator as its own type.
    pub(crate) fn downcast<T: Operator>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// One operator of the standard (or of another domain), for all its versions.
pub(crate) struct Declaration {
    /// `""` stands for ai.onnx.
    pub(crate) domain: &'static str,
    pub(crate) name: &'static str,
    /// The operator-set versions in which its schema appeared or changed, ascending.
    pub(crate) since: &'static [i64],
    /// Inputs and outputs: `"X:T, W:T, B?:T -> Y:T"`. `?` marks an optional one, `*` a variadic
    /// last one (`+`: at least one). A type is a variable of `types`, an element type (`int64`),
    /// `seq(…)` or `opt(…)` of these, or `any`: anything, each on its own.
    pub(crate) signature: &'static str,
    /// What each type variable may be.
    pub(crate) types: &'static [(&'static str, Types)],
    /// Reads the attributes.
    pub(crate) parse: fn(&AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError>,
    /// The inputs whose *values* decide an output's shape (the `shape` of Reshape).
    pub(crate) shape_inputs: &'static [usize],
    /// Whether an output's shape depends on the values of other inputs (NonZero), or an output is no
    /// tensor: such a node allocates what it returns while the model runs.
    pub(crate) data_dependent: bool,
}

impl Declaration {
    /// A declaration without shape inputs, to be refined by struct update.
    pub(crate) const fn new(
        name: &'static str,
        since: &'static [i64],
        signature: &'static str,
        types: &'static [(&'static str, Types)],
        parse: fn(&AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError>,
    ) -> Self {
        Declaration {
            domain: "",
            name,
            since,
            signature,
            types,
            parse,
            shape_inputs: &[],
            data_dependent: false,
        }
    }

    pub(crate) const fn shape_inputs(mut self, inputs: &'static [usize]) -> Self {
        self.shape_inputs = inputs;
        self
    }

    pub(crate) const fn data_dependent(mut self) -> Self {
        self.data_dependent = true;
        self
    }

    pub(crate) const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }
}

/// What is wrong with a node. The caller adds the node's name and operator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OpError {
    /// No such operator, domain or version.
    Unknown(String),
    /// An attribute is missing, unknown, or has a value that is not allowed.
    Attribute { name: String, reason: String },
    /// An input is missing, or has a type, shape or value that is not allowed.
    Input { index: usize, name: String, reason: String },
    /// Valid, but not something this provider can do.
    Unsupported(String),
    /// Found while running: the data are not allowed (an index out of range, a division by zero).
    Data(String),
    /// The host's memory is exhausted.
    OutOfMemory { bytes: usize },
    /// The run was cancelled.
    Cancelled,
    /// The device or its runtime failed.
    Failed(Error),
}

impl OpError {
    pub(crate) fn attribute(name: &str, reason: impl Into<String>) -> Self {
        OpError::Attribute { name: name.to_owned(), reason: reason.into() }
    }

    /// This failure as it leaves the library, with the node it happened at. `input` is the status for
    /// what is wrong with the node's inputs: the model's fault when it is opened, the caller's in a run.
    pub(crate) fn at(self, node: &str, op: &str, input: Status) -> Error {
        let status = match &self {
            OpError::Unknown(_) | OpError::Attribute { .. } => Status::InvalidModel,
            OpError::Input { .. } => input,
            OpError::Unsupported(_) => Status::Unsupported,
            OpError::Data(_) => Status::InvalidData,
            OpError::OutOfMemory { .. } => Status::OutOfMemory,
            OpError::Cancelled => Status::Cancelled,
            OpError::Failed(error) => error.status,
        };
        Error::new(status, format!("node \"{node}\" ({op}): {self}"))
    }
}

impl std::fmt::Display for OpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OpError::Unknown(text) | OpError::Unsupported(text) | OpError::Data(text) => f.write_str(text),
            OpError::Attribute { name, reason } => write!(f, "attribute \"{name}\": {reason}"),
            OpError::Input { index, name, reason } => write!(f, "input {index} ({name}): {reason}"),
            OpError::OutOfMemory { bytes } => write!(f, "out of host memory: {bytes} bytes were asked for"),
            OpError::Cancelled => f.write_str("the run was cancelled"),
            OpError::Failed(error) => error.fmt(f),
        }
    }
}

impl From<Error> for OpError {
    fn from(e: Error) -> Self {
        OpError::Failed(e)
    }
}

impl From<crate::tensor::AllocError> for OpError {
    fn from(e: crate::tensor::AllocError) -> Self {
        OpError::OutOfMemory { bytes: e.bytes }
    }
}
