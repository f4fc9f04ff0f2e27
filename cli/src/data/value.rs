//! A value in plain Rust: what files are read into and written from.

use super::ElementType;

/// What a model takes or gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Tensor(Tensor),
    Sequence(Vec<Value>),
    Map {
        keys: Tensor,
        values: Box<Value>,
    },
    /// An optional without a value.
    Nothing,
}

/// Elements in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub element: ElementType,
    pub dims: Vec<usize>,
    pub data: Data,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Little-endian elements; types narrower than a byte take one byte each.
    Bytes(Vec<u8>),
    Strings(Vec<Vec<u8>>),
}

impl Tensor {
    /// A tensor of `bytes`, whose number must be what the type and the dimensions say.
    pub fn from_bytes(element: ElementType, dims: Vec<usize>, bytes: Vec<u8>) -> Result<Self, String> {
        let tensor = Tensor { element, dims, data: Data::Bytes(bytes) };
        let wanted = tensor.count().checked_mul(element.size());
        match &tensor.data {
            Data::Bytes(bytes) if wanted == Some(bytes.len()) && element.size() > 0 => Ok(tensor),
            Data::Bytes(bytes) => Err(format!(
                "{} bytes of data, but {element}{:?} takes {}",
                bytes.len(),
                tensor.dims,
                wanted.map_or("more than there can be".to_owned(), |n| n.to_string())
            )),
            Data::Strings(_) => Err("strings are not bytes".to_owned()),
        }
    }

    pub fn from_strings(dims: Vec<usize>, strings: Vec<Vec<u8>>) -> Result<Self, String> {
        let tensor = Tensor { element: ElementType::STRING, dims, data: Data::Strings(Vec::new()) };
        if tensor.count() != strings.len() {
            return Err(format!("{} strings, but the shape is {:?}", strings.len(), tensor.dims));
        }
        Ok(Tensor { data: Data::Strings(strings), ..tensor })
    }

    /// The number of elements.
    pub fn count(&self) -> usize {
        self.dims.iter().fold(1usize, |n, &d| n.saturating_mul(d))
    }

    /// The elements as numbers; empty for strings.
    pub fn numbers(&self) -> Vec<f64> {
        match &self.data {
            Data::Bytes(bytes) => self.element.numbers(bytes),
            Data::Strings(_) => Vec::new(),
        }
    }

    /// `float[1, 3, 224, 224]`.
    pub fn describe(&self) -> String {
        format!("{}{:?}", self.element, self.dims)
    }
}

impl Value {
    /// The kind of the value, with type and shape where it is a tensor.
    pub fn describe(&self) -> String {
        match self {
            Value::Tensor(tensor) => tensor.describe(),
            Value::Sequence(items) => match items.first() {
                Some(first) => format!("sequence of {}, the first {}", items.len(), first.describe()),
                None => "sequence of 0".to_owned(),
            },
            Value::Map { keys, values } => {
                format!("map from {} to {}", keys.describe(), values.describe())
            }
            Value::Nothing => "nothing".to_owned(),
        }
    }
}
