//! The attributes that the nodes of a model have: ONNX Runtime's custom operators do not say which they take, and
//! librukh's must. Reads as much of ONNX's protobuf as that takes, and passes over weights.

use std::collections::{BTreeMap, BTreeSet};

/// Names and types (numbers of `AttributeProto.AttributeType`) by the operator's domain and name.
pub type Attributes = BTreeMap<(String, String), BTreeMap<String, i32>>;

/// The fields of ONNX's messages that lead to nodes.
const MODEL_GRAPH: u64 = 7;
const MODEL_FUNCTIONS: u64 = 25;
const GRAPH_NODE: u64 = 1;
const FUNCTION_NODE: u64 = 7;
const NODE_TYPE: u64 = 4;
const NODE_ATTRIBUTE: u64 = 5;
const NODE_DOMAIN: u64 = 7;
const ATTRIBUTE_NAME: u64 = 1;
const ATTRIBUTE_GRAPH: u64 = 6;
const ATTRIBUTE_GRAPHS: u64 = 11;
const ATTRIBUTE_TYPE: u64 = 20;

/// Subgraphs within subgraphs: librukh refuses deeper ones too.
const DEEPEST: usize = 100;

/// The attributes of nodes whose domain is one of these. What is no model has none: opening it tells.
pub fn of(model: &[u8], domains: &BTreeSet<String>) -> Attributes {
    let mut found = Attributes::new();
    for (field, value) in Fields(model) {
        match (field, value) {
            (MODEL_GRAPH, Field::Bytes(graph)) => nodes(graph, GRAPH_NODE, domains, &mut found, 0),
            (MODEL_FUNCTIONS, Field::Bytes(function)) => {
                nodes(function, FUNCTION_NODE, domains, &mut found, 0)
            }
            _ => {}
        }
    }
    found
}

fn nodes(
    graph: &[u8],
    field_of_nodes: u64,
    domains: &BTreeSet<String>,
    found: &mut Attributes,
    depth: usize,
) {
    if depth > DEEPEST {
        return;
    }
    for (field, value) in Fields(graph) {
        if let (true, Field::Bytes(message)) = (field == field_of_nodes, value) {
            node(message, domains, found, depth);
        }
    }
}

fn node(message: &[u8], domains: &BTreeSet<String>, found: &mut Attributes, depth: usize) {
    let (mut name, mut domain, mut attributes) = (String::new(), String::new(), BTreeMap::new());
    for (field, value) in Fields(message) {
        match (field, value) {
            (NODE_TYPE, Field::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (NODE_DOMAIN, Field::Bytes(text)) => domain = String::from_utf8_lossy(text).into_owned(),
            (NODE_ATTRIBUTE, Field::Bytes(message)) => {
                attributes.extend([attribute(message, domains, found, depth)])
            }
            _ => {}
        }
    }
    if domains.contains(&domain) {
        found.entry((domain, name)).or_default().extend(attributes);
    }
}

/// Name and type of an attribute; nodes of its graphs are found too.
fn attribute(
    message: &[u8],
    domains: &BTreeSet<String>,
    found: &mut Attributes,
    depth: usize,
) -> (String, i32) {
    let (mut name, mut ty) = (String::new(), 0);
    for (field, value) in Fields(message) {
        match (field, value) {
            (ATTRIBUTE_NAME, Field::Bytes(text)) => name = String::from_utf8_lossy(text).into_owned(),
            (ATTRIBUTE_TYPE, Field::Number(number)) => ty = number as i32,
            (ATTRIBUTE_GRAPH | ATTRIBUTE_GRAPHS, Field::Bytes(graph)) => {
                nodes(graph, GRAPH_NODE, domains, found, depth + 1);
            }
            _ => {}
        }
    }
    (name, ty)
}

/// The fields of a message, in their order; it ends early where the bytes are no message.
struct Fields<'a>(&'a [u8]);

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.number()?;
        let value = match key & 7 {
            0 => Field::Number(self.number()?),
            1 => self.skip(8).map(|_| Field::Other)?,
            2 => {
                let length = usize::try_from(self.number()?).ok()?;
                Field::Bytes(self.skip(length)?)
            }
            5 => self.skip(4).map(|_| Field::Other)?,
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn skip(&mut self, length: usize) -> Option<&'a [u8]> {
        let (skipped, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(skipped)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.skip(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_model() {
        // examples/custom-operators has one node of the domain "example".
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/custom-operators/custom.onnx");
        let model = std::fs::read(path).unwrap();
        let every: Vec<String> = all_domains(&model);
        let domains: BTreeSet<String> = every.iter().cloned().collect();
        let found = of(&model, &domains);
        assert!(!found.is_empty(), "{every:?}");
        // Cut anywhere, and with any byte changed, it is read without a panic.
        for end in 0..model.len() {
            of(&model[..end], &domains);
            let mut changed = model.clone();
            changed[end] ^= 0xff;
            of(&changed, &domains);
        }
    }

    /// The domains of the operator sets that a model imports.
    fn all_domains(model: &[u8]) -> Vec<String> {
        let sets = Fields(model).filter_map(|(field, value)| match (field, value) {
            (8, Field::Bytes(set)) => Some(set),
            _ => None,
        });
        let domain = |set| {
            Fields(set).find_map(|(field, value)| match (field, value) {
                (1, Field::Bytes(text)) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => None,
            })
        };
        sets.filter_map(domain).collect()
    }
}
