//! Reading a node's attributes: typed, with defaults, and nothing left over.

use std::cell::RefCell;
use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Graph, SparseTensor};
use crate::tensor::{ElementType, Tensor};

use super::OpError;

/// The attributes of one node. Each accessor marks its attribute as read; `finish` refuses the rest.
pub struct AttributeReader<'a> {
    attributes: &'a Attributes,
    opset: i64,
    inputs: usize,
    outputs: usize,
    read: RefCell<Vec<String>>,
}

impl<'a> AttributeReader<'a> {
    pub fn new(attributes: &'a Attributes, opset: i64, inputs: usize, outputs: usize) -> Self {
        AttributeReader { attributes, opset, inputs, outputs, read: RefCell::default() }
    }

    /// The version of the operator's domain that the model imports.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The number of inputs of the node, trailing omitted ones not counted.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The number of outputs of the node.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Attribute> {
        self.read.borrow_mut().push(name.to_owned());
        self.attributes.get(name)
    }

    fn wrong(&self, name: &str, want: &str) -> OpError {
        OpError::attribute(name, format!("it must be {want}"))
    }

    pub fn optional_int(&self, name: &str) -> Result<Option<i64>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Int(n)) => Ok(Some(*n)),
            Some(_) => Err(self.wrong(name, "an integer")),
        }
    }

    pub fn int(&self, name: &str, default: i64) -> Result<i64, OpError> {
        Ok(self.optional_int(name)?.unwrap_or(default))
    }

    pub fn required_int(&self, name: &str) -> Result<i64, OpError> {
        self.optional_int(name)?.ok_or_else(|| OpError::attribute(name, "it is required, and missing"))
    }

    /// An integer that stands for yes (non-zero) or no.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, OpError> {
        Ok(self.int(name, default as i64)? != 0)
    }

    pub fn optional_float(&self, name: &str) -> Result<Option<f32>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Float(x)) => Ok(Some(*x)),
            Some(_) => Err(self.wrong(name, "a float")),
        }
    }

    pub fn float(&self, name: &str, default: f32) -> Result<f32, OpError> {
        Ok(self.optional_float(name)?.unwrap_or(default))
    }

    pub fn ints(&self, name: &str) -> Result<Option<&'a [i64]>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Ints(v)) => Ok(Some(v)),
            // An empty list may come without its type.
            Some(Attribute::Floats(v)) if v.is_empty() => Ok(Some(&[])),
            Some(_) => Err(self.wrong(name, "a list of integers")),
        }
    }

    pub fn floats(&self, name: &str) -> Result<Option<&'a [f32]>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Floats(v)) => Ok(Some(v)),
            Some(Attribute::Ints(v)) if v.is_empty() => Ok(Some(&[])),
            Some(_) => Err(self.wrong(name, "a list of floats")),
        }
    }

    pub fn optional_string(&self, name: &str) -> Result<Option<&'a str>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::String(s)) => {
                std::str::from_utf8(s).map(Some).map_err(|_| self.wrong(name, "a string in UTF-8"))
            }
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    pub fn string(&self, name: &str, default: &'a str) -> Result<&'a str, OpError> {
        Ok(self.optional_string(name)?.unwrap_or(default))
    }

    /// The value of a string attribute among `choices`, each with its meaning.
    pub fn choice<T: Copy>(&self, name: &str, default: &'a str, choices: &[(&str, T)]) -> Result<T, OpError> {
        let given = self.string(name, default)?;
        choices.iter().find(|(text, _)| *text == given).map(|(_, value)| *value).ok_or_else(|| {
            let allowed: Vec<&str> = choices.iter().map(|(text, _)| *text).collect();
            OpError::attribute(name, format!("\"{given}\" is not known; allowed are {}", allowed.join(", ")))
        })
    }

    pub fn strings(&self, name: &str) -> Result<Option<Vec<&'a str>>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Strings(v)) => v
                .iter()
                .map(|s| std::str::from_utf8(s).map_err(|_| self.wrong(name, "strings in UTF-8")))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(Attribute::Ints(v)) if v.is_empty() => Ok(Some(Vec::new())),
            Some(_) => Err(self.wrong(name, "a list of strings")),
        }
    }

    pub fn tensor(&self, name: &str) -> Result<Option<&'a Arc<Tensor>>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Tensor(t)) => Ok(Some(t)),
            Some(_) => Err(self.wrong(name, "a tensor")),
        }
    }

    pub fn sparse_tensor(&self, name: &str) -> Result<Option<&'a Arc<SparseTensor>>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::SparseTensor(t)) => Ok(Some(t)),
            Some(_) => Err(self.wrong(name, "a sparse tensor")),
        }
    }

    pub fn optional_graph(&self, name: &str) -> Result<Option<&'a Arc<Graph>>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Graph(g)) => Ok(Some(g)),
            Some(_) => Err(self.wrong(name, "a graph")),
        }
    }

    pub fn graph(&self, name: &str) -> Result<&'a Arc<Graph>, OpError> {
        self.optional_graph(name)?.ok_or_else(|| OpError::attribute(name, "it is required, and missing"))
    }

    pub fn type_proto(&self, name: &str) -> Result<Option<&'a crate::tensor::ValueType>, OpError> {
        match self.get(name) {
            None => Ok(None),
            Some(Attribute::Type(t)) => Ok(Some(t)),
            Some(_) => Err(self.wrong(name, "a type")),
        }
    }

    /// An integer attribute that names an element type.
    pub fn element_type(&self, name: &str) -> Result<Option<ElementType>, OpError> {
        self.optional_int(name)?
            .map(|n| {
                i32::try_from(n).ok().and_then(ElementType::from_onnx).ok_or_else(|| {
                    OpError::attribute(
                        name,
                        format!("{n} is no element type; allowed are 1 (float) to 28 (float6e3m2)"),
                    )
                })
            })
            .transpose()
    }

    /// Marks an attribute as read that has no meaning for inference.
    pub fn ignore(&self, name: &str) {
        self.read.borrow_mut().push(name.to_owned());
    }

    /// Marks all attributes as read, for an operator that never checked their names.
    pub fn ignore_others(&self) {
        self.read.borrow_mut().extend(self.attributes.0.iter().map(|(name, _)| name.clone()));
    }

    /// Refuses attributes that the operator does not have.
    pub fn finish(self) -> Result<(), OpError> {
        let read = self.read.borrow();
        for (name, _) in &self.attributes.0 {
            // `consumed_inputs` is a memory hint of opset 1 without meaning.
            if !read.contains(name) && name != "consumed_inputs" {
                let mut known: Vec<&str> = read.iter().map(String::as_str).collect();
                known.sort();
                known.dedup();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(OpError::attribute(
                    name,
                    format!("the operator has no such attribute; it has {known}"),
                ));
            }
        }
        Ok(())
    }
}
