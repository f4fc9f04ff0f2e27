//! What each operator means: its schema, its attributes, its type and shape rule. No computation.
//!
//! Each family is one file with a table of [`Declaration`]s. An operator is declared once; the
//! provider that runs it receives the typed operator ([`resolve`]) and never parses an attribute.

pub mod activation;
mod attributes;
mod infer;
mod registered;
mod registry;
mod signature;

pub mod along;
pub mod attention;
pub mod binary;
pub mod cast;
pub mod channel_blocked;
pub mod channels_last;
pub mod choose;
pub mod col2im;
pub mod concat;
pub mod control;
pub mod conv;
pub mod crop;
pub mod custom;
pub mod detection;
pub mod dropout;
pub mod einsum;
pub mod fourier;
pub mod fused;
pub mod gated;
pub mod gather;
pub mod generate;
pub mod generation;
pub mod grid;
pub mod image_decoder;
pub mod image_scaler;
pub mod int_list;
pub mod inverse;
pub mod language;
pub mod layer_norm;
pub mod lookup;
pub mod loss;
pub mod matmul;
pub mod ml;
pub mod moe;
pub mod movement;
pub mod ngram;
pub mod norm;
pub mod norm_axes;
pub mod optional;
pub mod pad;
pub mod permuted;
pub mod pool;
pub mod projection;
pub mod qlinear;
pub mod quantize;
pub mod random;
pub mod reduce;
pub mod reshape;
pub mod resize;
pub mod rnn;
pub mod roi;
pub mod scatter;
pub mod select;
pub mod sequence;
pub mod shape;
pub mod signal;
pub mod slice;
pub mod softmax;
pub mod text;
pub mod tokenizer;
pub mod topk;
pub mod training;
pub mod unary;
pub mod unique;
pub mod unpool;
pub mod variadic;
pub mod weight_only;
pub mod window;

use std::any::Any;
use std::sync::Arc;

use crate::error::{Error, Status};

pub use attributes::AttributeReader;
pub use infer::{Infer, Unknowns, normalize_axis};
pub use registered::Registered;
pub use registry::declarations;
pub use registry::{find, is_repeatable, is_standard, resolve, settle};
pub use signature::{Arity, Parameter, Types};

/// The typed form of a node's operator: its attributes with defaults filled in and checked.
pub trait Operator: Any + std::fmt::Debug + Send + Sync {
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
    pub fn downcast<T: Operator>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// One operator of the standard (or of another domain), for all its versions.
pub struct Declaration {
    /// `""` stands for ai.onnx.
    pub domain: &'static str,
    pub name: &'static str,
    /// The operator-set versions in which its schema appeared or changed, ascending.
    pub since: &'static [i64],
    /// Inputs and outputs: `"X:T, W:T, B?:T -> Y:T"`. `?` marks an optional one, `*` a variadic
    /// last one (`+`: at least one). A type is a variable of `types`, an element type (`int64`),
    /// `seq(…)` or `opt(…)` of these, or `any`: anything, each on its own.
    pub signature: &'static str,
    /// What each type variable may be.
    pub types: &'static [(&'static str, Types)],
    /// Reads the attributes.
    pub parse: fn(&AttributeReader<'_>) -> Result<Arc<dyn Operator>, OpError>,
    /// The inputs whose *values* decide an output's shape (the `shape` of Reshape).
    pub shape_inputs: &'static [usize],
    /// Whether an output's shape depends on the values of other inputs (NonZero), or an output is no
    /// tensor: such a node allocates what it returns while the model runs.
    pub data_dependent: bool,
}

impl Declaration {
    /// A declaration without shape inputs, to be refined by struct update.
    pub const fn new(
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

    pub const fn shape_inputs(mut self, inputs: &'static [usize]) -> Self {
        self.shape_inputs = inputs;
        self
    }

    pub const fn data_dependent(mut self) -> Self {
        self.data_dependent = true;
        self
    }

    pub const fn domain(mut self, domain: &'static str) -> Self {
        self.domain = domain;
        self
    }
}

/// What is wrong with a node. The caller adds the node's name and operator.
#[derive(Clone, Debug, PartialEq)]
pub enum OpError {
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
    pub fn attribute(name: &str, reason: impl Into<String>) -> Self {
        OpError::Attribute { name: name.to_owned(), reason: reason.into() }
    }

    /// This failure as it leaves the library, with the node it happened at. `input` is the status for
    /// what is wrong with the node's inputs: the model's fault when it is opened, the caller's in a run.
    pub fn at(self, node: &str, op: &str, input: Status) -> Error {
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
