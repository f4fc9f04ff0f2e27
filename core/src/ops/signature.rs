//! Signatures of operators: which inputs and outputs there are, and of which types.

use crate::graph::Fact;
use crate::tensor::{ElementType, ValueType};

use super::OpError;

/// A set of element types, and whether sequences, maps and optionals may stand there too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u32);

impl Types {
    const COMPOSITE: u32 = 1;

    pub const fn of(types: &[ElementType]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < types.len() {
            bits |= 1 << types[i] as u32;
            i += 1;
        }
        Types(bits)
    }

    pub const fn and(self, other: Types) -> Self {
        Types(self.0 | other.0)
    }

    /// float16, bfloat16, float, double.
    pub const FLOAT: Types =
        Types::of(&[ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64]);
    pub const SIGNED: Types =
        Types::of(&[ElementType::I8, ElementType::I16, ElementType::I32, ElementType::I64]);
    pub const UNSIGNED: Types =
        Types::of(&[ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64]);
    /// Integers of 8 bits and more.
    pub const INTEGER: Types = Types::SIGNED.and(Types::UNSIGNED);
    /// Floats and integers of 8 bits and more.
    pub const NUMERIC: Types = Types::FLOAT.and(Types::INTEGER);
    pub const BOOL: Types = Types::of(&[ElementType::Bool]);
    pub const STRING: Types = Types::of(&[ElementType::String]);
    pub const COMPLEX: Types = Types::of(&[ElementType::C64, ElementType::C128]);
    pub const FLOAT8: Types = Types::of(&[
        ElementType::F8E4M3FN,
        ElementType::F8E4M3FNUZ,
        ElementType::F8E5M2,
        ElementType::F8E5M2FNUZ,
        ElementType::F8E8M0,
    ]);
    /// Floats of six bits.
    pub const FLOAT6: Types = Types::of(&[ElementType::F6E2M3, ElementType::F6E3M2]);
    /// Types of two and four bits.
    pub const NARROW: Types =
        Types::of(&[ElementType::U4, ElementType::I4, ElementType::F4E2M1, ElementType::U2, ElementType::I2]);
    /// int32 and int64: indices.
    pub const INDEX: Types = Types::of(&[ElementType::I32, ElementType::I64]);
    /// Every tensor.
    pub const TENSOR: Types = Types::NUMERIC
        .and(Types::BOOL)
        .and(Types::STRING)
        .and(Types::COMPLEX)
        .and(Types::FLOAT8)
        .and(Types::FLOAT6)
        .and(Types::NARROW);
    /// Every value: tensors, sequences, maps, optionals.
    pub const VALUE: Types = Types(Types::TENSOR.0 | Types::COMPOSITE);

    pub fn contains(self, ty: &ValueType) -> bool {
        match ty {
            ValueType::Tensor(element) => self.0 & (1 << *element as u32) != 0,
            _ => self.0 & Types::COMPOSITE != 0,
        }
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut first = true;
        for ty in ElementType::all().filter(|&ty| self.contains(&ValueType::Tensor(ty))) {
            write!(f, "{}{ty}", if first { "" } else { ", " })?;
            first = false;
        }
        if self.0 & Types::COMPOSITE != 0 {
            f.write_str(if first { "any value" } else { ", or any other value" })?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    Required,
    Optional,
    /// Any number, with at least this many.
    Variadic(usize),
}

#[derive(Clone, Debug, PartialEq)]
enum Pattern {
    Variable(String),
    Element(ElementType),
    Sequence(Box<Pattern>),
    Optional(Box<Pattern>),
    Any,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: String,
    pub arity: Arity,
    pattern: Pattern,
}

impl Parameter {
    /// A parameter whose type is written as in a declaration.
    pub fn new(name: &str, ty: &str, arity: Arity, variables: &[(String, Types)]) -> Result<Self, String> {
        Ok(Parameter { name: name.to_owned(), arity, pattern: parse_pattern(ty.trim(), variables)? })
    }
}

/// A parsed signature.
#[derive(Clone, Debug)]
pub struct Signature {
    pub inputs: Vec<Parameter>,
    pub outputs: Vec<Parameter>,
    types: Vec<(String, Types)>,
}

impl Signature {
    /// Parses a declaration's text. A text that does not parse is a defect of the library, which a
    /// test over all declarations finds.
    pub fn parse(text: &str, types: &[(&str, Types)]) -> Result<Self, String> {
        let (inputs, outputs) = text.split_once("->").ok_or("no \"->\"")?;
        let types: Vec<(String, Types)> = types.iter().map(|&(name, set)| (name.to_owned(), set)).collect();
        Ok(Signature { inputs: parameters(inputs, &types)?, outputs: parameters(outputs, &types)?, types })
    }

    /// A signature of parts; parameters were made with the same type variables.
    pub fn of(inputs: Vec<Parameter>, outputs: Vec<Parameter>, types: Vec<(String, Types)>) -> Self {
        Signature { inputs, outputs, types }
    }

    /// Whether an output may be of this type, as far as the signature says.
    pub fn gives(&self, output: usize, ty: &ValueType) -> Result<(), String> {
        match Self::parameter(&self.outputs, output) {
            Some(parameter) => self.bind(&parameter.pattern, ty, &mut Vec::new()),
            None => Ok(()),
        }
    }

    /// The parameter an argument belongs to.
    pub fn parameter(parameters: &[Parameter], index: usize) -> Option<&Parameter> {
        parameters.get(index).or_else(|| parameters.last().filter(|p| matches!(p.arity, Arity::Variadic(_))))
    }

    /// Whether an input may be of this type as well as of others.
    pub fn takes(&self, input: usize, ty: ElementType) -> bool {
        let Some(Pattern::Variable(name)) = Self::parameter(&self.inputs, input).map(|p| &p.pattern) else {
            return false;
        };
        self.types.iter().any(|(n, types)| n == name && types.contains(&ValueType::Tensor(ty)))
    }

    /// Checks number and types of a node's inputs and gives the types of its outputs, as far as the
    /// inputs' types are known and the signature determines them.
    pub fn check(&self, inputs: &[Option<&Fact>], outputs: usize) -> Result<Vec<Option<ValueType>>, OpError> {
        self.check_count(inputs)?;
        if outputs > self.outputs.len() && Self::parameter(&self.outputs, outputs - 1).is_none() {
            return Err(OpError::Unknown(format!(
                "it has {outputs} outputs, where the operator gives at most {}",
                self.outputs.len()
            )));
        }
        let mut bound: Vec<(&str, ValueType)> = Vec::new();
        for (index, fact) in inputs.iter().enumerate() {
            let Some(parameter) = Self::parameter(&self.inputs, index) else { continue };
            let Some(ty) = fact.and_then(|fact| fact.ty.as_ref()) else { continue };
            self.bind(&parameter.pattern, ty, &mut bound).map_err(|reason| OpError::Input {
                index,
                name: parameter.name.clone(),
                reason,
            })?;
        }
        Ok((0..outputs)
            .map(|i| self.output_type(&Self::parameter(&self.outputs, i)?.pattern, &bound))
            .collect())
    }

    fn check_count(&self, inputs: &[Option<&Fact>]) -> Result<(), OpError> {
        for (index, parameter) in self.inputs.iter().enumerate() {
            let given = inputs.get(index).is_some_and(Option::is_some);
            let missing = match parameter.arity {
                Arity::Required => !given,
                Arity::Optional => false,
                Arity::Variadic(least) => inputs.len() < index + least,
            };
            if missing {
                let reason = "it is required, and the node leaves it out".to_owned();
                return Err(OpError::Input { index, name: parameter.name.clone(), reason });
            }
        }
        if let Some(index) = (self.inputs.len()..inputs.len()).next()
            && Self::parameter(&self.inputs, index).is_none()
        {
            let reason =
                format!("the operator takes at most {} inputs, the node has {}", index, inputs.len());
            return Err(OpError::Input { index, name: "-".to_owned(), reason });
        }
        Ok(())
    }

    fn bind<'s>(
        &'s self,
        pattern: &'s Pattern,
        ty: &ValueType,
        bound: &mut Vec<(&'s str, ValueType)>,
    ) -> Result<(), String> {
        match (pattern, ty) {
            (Pattern::Any, _) => Ok(()),
            (Pattern::Element(want), ValueType::Tensor(given)) if want == given => Ok(()),
            (Pattern::Sequence(inner), ValueType::Sequence(given))
            | (Pattern::Optional(inner), ValueType::Optional(given)) => self.bind(inner, given, bound),
            (Pattern::Variable(name), _) => {
                let allowed =
                    self.types.iter().find(|(n, _)| n == name).map(|(_, t)| *t).unwrap_or(Types::VALUE);
                if !allowed.contains(ty) {
                    return Err(format!("its type is {ty}; allowed are {allowed}"));
                }
                match bound.iter().find(|(n, _)| n == name) {
                    Some((_, first)) if first != ty => {
                        Err(format!("its type is {ty}, but another input of the same type {name} is {first}"))
                    }
                    Some(_) => Ok(()),
                    None => {
                        bound.push((name, ty.clone()));
                        Ok(())
                    }
                }
            }
            (want, _) => Err(format!("its type is {ty}; allowed is {want}")),
        }
    }

    fn output_type(&self, pattern: &Pattern, bound: &[(&str, ValueType)]) -> Option<ValueType> {
        match pattern {
            Pattern::Any => None,
            Pattern::Element(ty) => Some(ValueType::Tensor(*ty)),
            Pattern::Variable(name) => bound.iter().find(|(n, _)| n == name).map(|(_, t)| t.clone()),
            Pattern::Sequence(inner) => Some(ValueType::Sequence(Box::new(self.output_type(inner, bound)?))),
            Pattern::Optional(inner) => Some(ValueType::Optional(Box::new(self.output_type(inner, bound)?))),
        }
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Pattern::Variable(name) => f.write_str(name),
            Pattern::Element(ty) => write!(f, "tensor({ty})"),
            Pattern::Sequence(inner) => write!(f, "seq({inner})"),
            Pattern::Optional(inner) => write!(f, "optional({inner})"),
            Pattern::Any => f.write_str("any"),
        }
    }
}

fn parameters(text: &str, types: &[(String, Types)]) -> Result<Vec<Parameter>, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|parameter| {
            let (name, pattern) =
                parameter.split_once(':').ok_or_else(|| format!("no type in {parameter:?}"))?;
            let name = name.trim();
            let (name, arity) = match name.as_bytes().last() {
                Some(b'?') => (&name[..name.len() - 1], Arity::Optional),
                Some(b'*') => (&name[..name.len() - 1], Arity::Variadic(0)),
                Some(b'+') => (&name[..name.len() - 1], Arity::Variadic(1)),
                _ => (name, Arity::Required),
            };
            Ok(Parameter { name: name.to_owned(), arity, pattern: parse_pattern(pattern.trim(), types)? })
        })
        .collect()
}

fn parse_pattern(text: &str, types: &[(String, Types)]) -> Result<Pattern, String> {
    let inside = |prefix: &str| text.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(')'));
    if let Some(inner) = inside("seq(") {
        return Ok(Pattern::Sequence(Box::new(parse_pattern(inner, types)?)));
    }
    if let Some(inner) = inside("opt(") {
        return Ok(Pattern::Optional(Box::new(parse_pattern(inner, types)?)));
    }
    if text == "any" {
        return Ok(Pattern::Any);
    }
    if types.iter().any(|(name, _)| name == text) {
        return Ok(Pattern::Variable(text.to_owned()));
    }
    ElementType::all()
        .find(|ty| ty.name() == text)
        .map(Pattern::Element)
        .ok_or_else(|| format!("{text:?} is neither a type variable nor an element type"))
}
