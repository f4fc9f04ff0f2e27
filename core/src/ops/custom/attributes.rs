//! The attributes of an operator that the caller defined: which there are, and what a node gives them.

use crate::graph::{Attribute, Attributes};

use super::super::OpError;

/// The type of an attribute. The numbers are those of ONNX's `AttributeProto.AttributeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Floats = 6,
    Ints = 7,
    Strings = 8,
}

impl AttributeKind {
    pub const ALL: [AttributeKind; 7] = [
        AttributeKind::Float,
        AttributeKind::Int,
        AttributeKind::String,
        AttributeKind::Tensor,
        AttributeKind::Floats,
        AttributeKind::Ints,
        AttributeKind::Strings,
    ];

    pub fn name(self) -> &'static str {
        match self {
            AttributeKind::Float => "a float",
            AttributeKind::Int => "an integer",
            AttributeKind::String => "a string",
            AttributeKind::Tensor => "a tensor",
            AttributeKind::Floats => "a list of floats",
            AttributeKind::Ints => "a list of integers",
            AttributeKind::Strings => "a list of strings",
        }
    }

    /// The kind of an attribute's value; `None` for kinds that the caller's operators cannot have.
    pub fn of(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Float(_) => Some(AttributeKind::Float),
            Attribute::Int(_) => Some(AttributeKind::Int),
            Attribute::String(_) => Some(AttributeKind::String),
            Attribute::Tensor(_) => Some(AttributeKind::Tensor),
            Attribute::Floats(_) => Some(AttributeKind::Floats),
            Attribute::Ints(_) => Some(AttributeKind::Ints),
            Attribute::Strings(_) => Some(AttributeKind::Strings),
            _ => None,
        }
    }
}

/// One attribute that nodes may have.
#[derive(Clone, Debug)]
pub struct AttributeRule {
    pub name: String,
    pub kind: AttributeKind,
    pub required: bool,
    /// The value where a node leaves it out.
    pub default: Option<Attribute>,
}

/// A node's attributes with defaults, checked.
pub(super) fn read(rules: &[AttributeRule], given: &Attributes) -> Result<Attributes, OpError> {
    for (name, attribute) in &given.0 {
        let is_definition = matches!(attribute, Attribute::Definition(_));
        if !is_definition && !rules.iter().any(|rule| rule.name == *name) {
            let known: Vec<&str> = rules.iter().map(|rule| &*rule.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(OpError::attribute(
                name,
                format!("the operator has no such attribute; it has {known}"),
            ));
        }
    }
    let mut attributes = Attributes::default();
    for rule in rules {
        let value = match given.get(&rule.name) {
            Some(value) => Some(typed(rule, value)?),
            None if rule.required => {
                return Err(OpError::attribute(&rule.name, "it is required, and missing"));
            }
            None => rule.default.clone(),
        };
        attributes.0.extend(value.map(|value| (rule.name.clone(), value)));
    }
    Ok(attributes)
}

fn typed(rule: &AttributeRule, value: &Attribute) -> Result<Attribute, OpError> {
    match (rule.kind, value) {
        (kind, value) if AttributeKind::of(value) == Some(kind) => Ok(value.clone()),
        // An empty list may come without its type.
        (AttributeKind::Floats, Attribute::Ints(list)) if list.is_empty() => {
            Ok(Attribute::Floats(Vec::new()))
        }
        (AttributeKind::Strings, Attribute::Ints(list)) if list.is_empty() => {
            Ok(Attribute::Strings(Vec::new()))
        }
        (AttributeKind::Ints, Attribute::Floats(list)) if list.is_empty() => Ok(Attribute::Ints(Vec::new())),
        (kind, _) => Err(OpError::attribute(&rule.name, format!("it must be {}", kind.name()))),
    }
}
