//! Models of one node, drawn from bytes.
//!
//! Most draws are plausible (types that the operator allows, shapes that go together, small numbers), for
//! nonsense is refused before a kernel sees it; now and then something is off.

use std::ffi::CString;

use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::operators::{Attribute, Operator, operators};
use crate::protobuf::Message;
use crate::tensor::{Element, Tensor, WORDS};

/// Where an input comes from, and what the model says of its shape.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Source {
    Constant,
    Shaped,
    Ranked,
    Unranked,
}

#[derive(Debug)]
pub struct Node {
    operator: &'static Operator,
    opset: i64,
    attributes: Vec<(&'static str, Value)>,
    inputs: Vec<Option<(Tensor, Source)>>,
    pub outputs: usize,
}

#[derive(Debug)]
enum Value {
    Int(i64),
    Float(f32),
    String(&'static str),
    Tensor(Tensor),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<&'static str>),
}

const LARGEST_RANK: usize = 5;
const LARGEST_SIZE: i64 = 6;
/// Of one input.
const MOST_ELEMENTS: i64 = 600;

pub fn draw(u: &mut Unstructured<'_>) -> Result<Node> {
    let operator = u.choose(operators())?;
    let opset = u.int_in_range(operator.opsets.0..=operator.opsets.1)?;
    let base = shape(u)?;
    let types: Vec<Element> =
        operator.variables.iter().map(|types| element(u, types)).collect::<Result<_>>()?;
    let mut inputs = Vec::new();
    for parameter in &operator.inputs {
        let times = if parameter.variadic { u.int_in_range(1..=4)? } else { 1 };
        for _ in 0..times {
            if parameter.optional && u.ratio(2, 5)? || u.ratio(1, 100)? {
                inputs.push(None);
                continue;
            }
            let element = types.get(parameter.variable).copied().unwrap_or(Element(1));
            let tensor = tensor(u, element, &base, inputs.is_empty())?;
            let sources = [Source::Constant, Source::Shaped, Source::Ranked, Source::Unranked];
            inputs.push(Some((tensor, *u.choose(&sources)?)));
        }
    }
    let rank = base.len();
    let mut attributes = Vec::new();
    for attribute in &operator.attributes {
        if u.ratio(if attribute.required { 49 } else { 25 }, 50)? {
            attributes.push((attribute.name, value(u, attribute, rank)?));
        }
    }
    let outputs = u.int_in_range(operator.outputs.0..=operator.outputs.1.max(operator.outputs.0))?;
    Ok(Node { operator, opset, attributes, inputs, outputs })
}

/// A type of the list, now and then another.
fn element(u: &mut Unstructured<'_>, types: &[i32]) -> Result<Element> {
    if types.is_empty() || u.ratio(1, 60)? {
        return Ok(Element(u.int_in_range(1..=26)?));
    }
    // float, where it is allowed, in half of the cases.
    if types.contains(&1) && u.arbitrary()? {
        return Ok(Element(1));
    }
    Ok(Element(*u.choose(types)?))
}

fn shape(u: &mut Unstructured<'_>) -> Result<Vec<i64>> {
    let rank = u.int_in_range(0..=LARGEST_RANK)?;
    (0..rank).map(|_| size(u)).collect()
}

fn size(u: &mut Unstructured<'_>) -> Result<i64> {
    if u.ratio(1, 20)? { Ok(0) } else { u.int_in_range(1..=LARGEST_SIZE) }
}

/// A tensor whose shape goes with `base`.
fn tensor(u: &mut Unstructured<'_>, element: Element, base: &[i64], first: bool) -> Result<Tensor> {
    let rank = base.len();
    let mut shape = match u.int_in_range(0..=if first { 1 } else { 9 })? {
        0 | 1 => base.to_vec(),
        // Something that broadcasts to it, or belongs to one of its axes.
        2 => base.iter().map(|&n| if n % 2 == 0 { 1 } else { n }).collect(),
        3 => base[rank / 2..].to_vec(),
        4 => base.get(1).or(base.first()).map(|&n| vec![n]).unwrap_or_default(),
        // A number for each axis, or for both ends of each.
        5 => vec![rank as i64],
        6 => vec![2 * rank as i64],
        7 => vec![],
        8 => vec![u.int_in_range(1..=3)?],
        _ => self::shape(u)?,
    };
    while shape.iter().product::<i64>() > MOST_ELEMENTS {
        shape.pop();
    }
    let count = shape.iter().product::<i64>() as usize;
    let low = if u.arbitrary()? { 0 } else { -3 };
    let values = if u.ratio(1, 12)? {
        (0..count).map(|_| u.arbitrary()).collect::<Result<_>>()?
    } else if u.arbitrary()? {
        // Few bytes make many elements.
        let (start, step): (i8, i8) = (u.int_in_range(low..=5)?, u.int_in_range(-2..=3)?);
        (0..count).map(|i| low + (start + 3 + step * (i % 16) as i8).rem_euclid(7)).collect()
    } else {
        (0..count).map(|_| u.int_in_range(low..=5)).collect::<Result<_>>()?
    };
    Ok(Tensor { element, shape, values })
}

fn value(u: &mut Unstructured<'_>, attribute: &Attribute, rank: usize) -> Result<Value> {
    Ok(match attribute.kind {
        // An element type.
        'i' if matches!(attribute.name, "to" | "dtype" | "output_dtype" | "stash_type") => {
            Value::Int(u.int_in_range(0..=27)?)
        }
        'i' => Value::Int(int(u)?),
        'f' => Value::Float(float(u)?),
        's' => Value::String(u.choose(WORDS)?),
        't' => {
            let element = Element(u.int_in_range(1..=26)?);
            Value::Tensor(tensor(u, element, &[1], false)?)
        }
        'I' => Value::Ints((0..length(u, rank)?).map(|_| int(u)).collect::<Result<_>>()?),
        'F' => Value::Floats((0..length(u, rank)?).map(|_| float(u)).collect::<Result<_>>()?),
        _ => Value::Strings((0..length(u, rank)?).map(|_| u.choose(WORDS).copied()).collect::<Result<_>>()?),
    })
}

/// How long a list is: often it has a number for each spatial axis, or two.
fn length(u: &mut Unstructured<'_>, rank: usize) -> Result<usize> {
    let spatial = rank.saturating_sub(2);
    Ok(*u.choose(&[rank, spatial, 2 * spatial, 2 * spatial, spatial, 1, 2, 3, 0, 2 * rank])?)
}

fn int(u: &mut Unstructured<'_>) -> Result<i64> {
    match u.int_in_range(0..=40)? {
        0 => u.choose(&[i64::MIN, i64::MAX, i32::MAX as i64, -1 << 40, 1 << 62]).copied(),
        1..=24 => u.int_in_range(0..=3),
        _ => u.int_in_range(-3..=7),
    }
}

fn float(u: &mut Unstructured<'_>) -> Result<f32> {
    match u.int_in_range(0..=20)? {
        0 => u.choose(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40]).copied(),
        _ => Ok(u.int_in_range(-8..=16)? as f32 / 4.0),
    }
}

impl Node {
    /// The model's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut node = Message::default();
        let mut graph = Message::default();
        for (i, input) in self.inputs.iter().enumerate() {
            node.bytes(1, if input.is_some() { input_name(i) } else { String::new() }.as_bytes());
        }
        (0..self.outputs).for_each(|i| node.bytes(2, format!("y{i}").as_bytes()));
        node.bytes(3, b"node");
        node.bytes(4, self.operator.name.as_bytes());
        self.attributes.iter().for_each(|(name, value)| node.message(5, attribute(name, value)));
        node.bytes(7, self.operator.domain.as_bytes());
        graph.message(1, node);
        graph.bytes(2, b"graph");
        for (i, input) in self.inputs.iter().enumerate() {
            match input {
                None => {}
                Some((tensor, Source::Constant)) => graph.message(5, tensor.encode(&input_name(i))),
                Some((tensor, source)) => graph.message(11, declaration(&input_name(i), tensor, *source)),
            }
        }
        for i in 0..self.outputs {
            let mut output = Message::default();
            output.bytes(1, format!("y{i}").as_bytes());
            graph.message(12, output);
        }
        let mut opset = Message::default();
        opset.bytes(1, self.operator.domain.as_bytes());
        opset.int(2, self.opset);
        let mut model = Message::default();
        model.int(1, 10);
        model.message(7, graph);
        model.message(8, opset);
        model.0
    }

    /// What a run is given.
    pub fn feed(&self) -> Vec<(CString, &Tensor)> {
        let given = |(i, input): (usize, &'_ Option<(Tensor, Source)>)| match input {
            Some((_, source)) if *source != Source::Constant => Some(i),
            _ => None,
        };
        self.inputs
            .iter()
            .enumerate()
            .filter_map(given)
            .filter_map(|i| Some((CString::new(input_name(i)).ok()?, &self.inputs[i].as_ref()?.0)))
            .collect()
    }
}

fn input_name(i: usize) -> String {
    format!("x{i}")
}

/// A `ValueInfoProto`.
fn declaration(name: &str, tensor: &Tensor, source: Source) -> Message {
    let mut of = Message::default();
    of.int(1, tensor.element.0 as i64);
    if source != Source::Unranked {
        let mut shape = Message::default();
        for (axis, &n) in tensor.shape.iter().enumerate() {
            let mut dimension = Message::default();
            match source {
                Source::Shaped => dimension.int(1, n),
                _ => dimension.bytes(2, format!("{name}_{axis}").as_bytes()),
            }
            shape.message(1, dimension);
        }
        of.message(2, shape);
    }
    let mut ty = Message::default();
    ty.message(1, of);
    let mut info = Message::default();
    info.bytes(1, name.as_bytes());
    info.message(2, ty);
    info
}

/// An `AttributeProto`.
fn attribute(name: &str, value: &Value) -> Message {
    let mut proto = Message::default();
    proto.bytes(1, name.as_bytes());
    let kind = match value {
        Value::Float(x) => {
            proto.float(2, *x);
            1
        }
        Value::Int(n) => {
            proto.int(3, *n);
            2
        }
        Value::String(text) => {
            proto.bytes(4, text.as_bytes());
            3
        }
        Value::Tensor(tensor) => {
            proto.message(5, tensor.encode("value"));
            4
        }
        Value::Floats(list) => {
            list.iter().for_each(|&x| proto.float(7, x));
            6
        }
        Value::Ints(list) => {
            list.iter().for_each(|&n| proto.int(8, n));
            7
        }
        Value::Strings(list) => {
            list.iter().for_each(|text| proto.bytes(9, text.as_bytes()));
            8
        }
    };
    proto.int(20, kind);
    proto
}
