//! Optional values.

use std::sync::Arc;

use crate::tensor::ValueType;

use super::{Declaration, Infer, OpError, Operator, Types};

#[derive(Clone, Debug, PartialEq)]
pub enum Optional {
    /// An optional that holds the input, or an empty one of the type in the attribute.
    Make { ty: Option<ValueType> },
    /// What an optional holds; anything else is given back as it is.
    Get,
    /// Whether there is a value: an omitted input has none, and what is no optional has one.
    Has,
}

impl Operator for Optional {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let given = cx.fact(0).and_then(|fact| fact.ty.clone());
        match self {
            Optional::Make { ty } => {
                if !cx.has(0) && ty.is_none() {
                    return Err(OpError::attribute("type", "it is required where there is no input"));
                }
                // The attribute may name the optional's type or that of its element.
                let element = given.or_else(|| match ty {
                    Some(ValueType::Optional(inner)) => Some((**inner).clone()),
                    other => other.clone(),
                });
                if let Some(element) = element {
                    cx.set_type(0, ValueType::Optional(Box::new(element)));
                }
            }
            Optional::Get => match given {
                Some(ValueType::Optional(inner)) => cx.set_type(0, *inner),
                Some(_) => cx.copy_fact(0, 0),
                None => {}
            },
            Optional::Has => cx.set_shape(0, Vec::new()),
        }
        Ok(())
    }
}

const VALUE: &[(&str, Types)] = &[("V", Types::VALUE)];

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("Optional", &[15, 28], "input?:V -> output:any", VALUE, |a| {
        Ok(Arc::new(Optional::Make { ty: a.type_proto("type")?.cloned() }))
    })
    .data_dependent(),
    Declaration::new("OptionalGetElement", &[15, 18, 28], "input:V -> output:any", VALUE, |_| {
        Ok(Arc::new(Optional::Get))
    })
    .data_dependent(),
    Declaration::new("OptionalHasElement", &[15, 18, 28], "input?:V -> output:bool", VALUE, |_| {
        Ok(Arc::new(Optional::Has))
    })
    .data_dependent(),
];
