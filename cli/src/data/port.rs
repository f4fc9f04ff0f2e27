//! What a model says about one of its inputs or outputs.

use std::collections::BTreeMap;

use super::{ElementType, Kind};

#[derive(Clone, Debug)]
pub struct Port {
    pub name: String,
    pub kind: Kind,
    /// The element type of a tensor, or of the tensors in another kind of value.
    pub element: Option<ElementType>,
    /// The dimensions of a tensor; `None` when not even the rank is known.
    pub shape: Option<Vec<Dim>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Dim {
    Fixed(usize),
    /// The name of a dimension that each run may choose, or an expression of such names.
    Symbol(String),
    Unknown,
}

impl Port {
    /// The shape with `chosen` in place of symbols; `otherwise` stands for every other dimension.
    pub fn concrete(
        &self,
        chosen: &BTreeMap<String, usize>,
        otherwise: Option<usize>,
    ) -> Result<Vec<usize>, String> {
        let Some(shape) = &self.shape else {
            return Err(format!("\"{}\": the model does not say how many dimensions it has", self.name));
        };
        let size = |dim: &Dim| match dim {
            Dim::Fixed(n) => Ok(*n),
            Dim::Symbol(symbol) => chosen.get(symbol).copied().or(otherwise).ok_or_else(|| {
                format!("\"{}\": dimension \"{symbol}\" is open; choose it with --dim {symbol}=N", self.name)
            }),
            Dim::Unknown => {
                otherwise.ok_or_else(|| format!("\"{}\": a dimension is open and has no name", self.name))
            }
        };
        shape.iter().map(size).collect()
    }

    /// `float[batch, 3, 224, 224]`.
    pub fn describe(&self) -> String {
        let element = self.element.map_or_else(|| "tensor".to_owned(), |e| e.to_string());
        let shape = match &self.shape {
            Some(shape) => shape.iter().map(Dim::to_string).collect::<Vec<_>>().join(", "),
            None => "…".to_owned(),
        };
        match self.kind {
            Kind::Tensor => format!("{element}[{shape}]"),
            Kind::Sequence => format!("sequence of {element}"),
            Kind::Map => format!("map to {element}"),
            Kind::Optional => format!("optional {element}"),
        }
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Fixed(n) => write!(f, "{n}"),
            Dim::Symbol(name) => f.write_str(name),
            Dim::Unknown => f.write_str("?"),
        }
    }
}
