//! Reading operators.txt, which says at its head what its columns are.

/// A row: one operator on given inputs.
pub struct Row {
    pub family: String,
    /// Empty for the standard's.
    pub domain: String,
    pub operator: String,
    pub opset: i64,
    pub attributes_text: String,
    pub attributes: Vec<(String, Attribute)>,
    /// `None` where one is omitted.
    pub inputs: Vec<Option<Input>>,
    pub work: Work,
}

pub enum Attribute {
    Int(i64),
    Float(f32),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    String(String),
}

/// What an input is made of.
pub struct Input {
    pub kind: Kind,
    pub shape: Vec<i64>,
    pub constant: bool,
    pub values: Values,
}

pub enum Values {
    Given(Vec<f64>),
    /// Whole numbers below this.
    Below(u64),
    /// Above 0.
    Positive,
    /// Between −2 and 2.
    Any,
}

/// An element type: its number in `TensorProto.DataType`, and its bytes.
#[derive(Clone, Copy, PartialEq)]
pub struct Kind {
    pub element: i32,
    pub bytes: usize,
}

pub enum Work {
    /// Of inputs and outputs.
    Bytes,
    Flops(f64),
}

pub fn rows(text: &str) -> Vec<Row> {
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

fn row(line: &str) -> Row {
    let columns: Vec<&str> = line.split('|').collect();
    let &[family, operator, opset, attributes, inputs, work] = columns.as_slice() else {
        panic!("{line:?} has not six columns");
    };
    let (domain, operator) = operator.rsplit_once('.').unwrap_or(("", operator));
    Row {
        family: family.into(),
        domain: domain.into(),
        operator: operator.into(),
        opset: number(opset),
        attributes_text: attributes.into(),
        attributes: attributes.split_whitespace().map(attribute).collect(),
        inputs: inputs.split_whitespace().map(|text| (text != "-").then(|| input(text))).collect(),
        work: if work == "bytes" { Work::Bytes } else { Work::Flops(number(work)) },
    }
}

fn attribute(text: &str) -> (String, Attribute) {
    let (name, value) = text.split_once('=').unwrap_or_else(|| panic!("{text:?} has no ="));
    let value = if let Some(list) = value.strip_prefix('[') {
        let numbers = list.trim_end_matches(']').split(',');
        match list.contains('.') {
            true => Attribute::Floats(numbers.map(number).collect()),
            false => Attribute::Ints(numbers.map(number).collect()),
        }
    } else if value.starts_with('"') {
        Attribute::String(value.trim_matches('"').into())
    } else if value.contains('.') {
        Attribute::Float(number(value))
    } else {
        Attribute::Int(number(value))
    };
    (name.into(), value)
}

fn input(text: &str) -> Input {
    if let Some((kind, values)) = text.split_once('=') {
        let given: Vec<f64> = values.split(',').map(number).collect();
        let scalar = kind.ends_with("()");
        let shape = if scalar { vec![] } else { vec![given.len() as i64] };
        return Input {
            kind: self::kind(kind.trim_end_matches("()")),
            shape,
            constant: true,
            values: Values::Given(given),
        };
    }
    let (constant, text) = text.strip_prefix("w:").map_or((false, text), |rest| (true, rest));
    let (text, below) = text.split_once('<').map_or((text, None), |(text, n)| (text, Some(number(n))));
    let (text, positive) = text.strip_suffix('+').map_or((text, false), |rest| (rest, true));
    let (kind, shape) = text.split_once('[').unwrap_or_else(|| panic!("{text:?} has no shape"));
    Input {
        kind: self::kind(kind),
        shape: shape.trim_end_matches(']').split(',').map(number).collect(),
        constant,
        values: match below {
            Some(below) => Values::Below(below),
            None if positive => Values::Positive,
            None => Values::Any,
        },
    }
}

fn kind(name: &str) -> Kind {
    let (element, bytes) = match name {
        "f16" => (10, 2),
        "f32" => (1, 4),
        "i8" => (3, 1),
        "i32" => (6, 4),
        "i64" => (7, 8),
        "u8" => (2, 1),
        "bool" => (9, 1),
        _ => panic!("{name} is no element type of the table"),
    };
    Kind { element, bytes }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}
