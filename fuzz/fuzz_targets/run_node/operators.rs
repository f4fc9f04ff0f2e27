//! The operators of the standard, from fuzz/operators.txt, which scripts/fuzz_operators.py writes and
//! describes.

use std::sync::OnceLock;

/// One version of an operator.
#[derive(Debug)]
pub struct Operator {
    pub domain: &'static str,
    pub name: &'static str,
    /// The operator sets with this version.
    pub opsets: (i64, i64),
    /// The element types of each type variable.
    pub variables: Vec<Vec<i32>>,
    pub inputs: Vec<Parameter>,
    pub outputs: (usize, usize),
    pub attributes: Vec<Attribute>,
}

#[derive(Debug)]
pub struct Parameter {
    pub variable: usize,
    pub optional: bool,
    pub variadic: bool,
}

#[derive(Debug)]
pub struct Attribute {
    pub name: &'static str,
    pub kind: char,
    pub required: bool,
}

pub fn operators() -> &'static [Operator] {
    static OPERATORS: OnceLock<Vec<Operator>> = OnceLock::new();
    OPERATORS.get_or_init(|| include_str!("../../operators.txt").lines().map(parse).collect())
}

fn parse(line: &'static str) -> Operator {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[domain, name, first, last, variables, inputs, outputs, attributes] = columns.as_slice() else {
        panic!("{line} has not eight columns");
    };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{text} in {line} is no number"));
    let list = |text: &str| text.split(',').filter(|t| !t.is_empty()).map(|t| number(t) as i32).collect();
    let mut counts = outputs.split(' ').map(|text| number(text) as usize);
    Operator {
        domain: if domain == "." { "" } else { domain },
        name,
        opsets: (number(first), number(last)),
        variables: variables.split('|').map(list).collect(),
        inputs: inputs
            .split_whitespace()
            .map(|text| Parameter {
                variable: number(text.trim_end_matches(['?', '*'])) as usize,
                optional: text.ends_with('?'),
                variadic: text.ends_with('*'),
            })
            .collect(),
        outputs: (counts.next().unwrap_or(1), counts.next().unwrap_or(1)),
        attributes: attributes
            .split_whitespace()
            .filter_map(|text| {
                let (name, kind) = text.split_once(':')?;
                Some(Attribute { name, kind: kind.chars().next()?, required: kind.ends_with('!') })
            })
            .collect(),
    }
}
