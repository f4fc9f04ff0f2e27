//! Which program computes which operator.

use crate::ops::OpError;
use crate::ops::binary::{Alignment, Binary, Elementwise};
use crate::ops::cast::BitCast;
use crate::ops::choose::Clip;
use crate::ops::fused::BiasActivation;
use crate::ops::unary::{Predicate, Unary};
use crate::ops::variadic::Variadic;
use crate::providers::NodeContext;
use crate::tensor::ElementType;

use super::super::{Entry, HipKernel, quantize};
use super::{Class, Map, MapOp};

const MICROSOFT: &str = "com.microsoft";

pub(in super::super) const KERNELS: &[Entry] = &[
    Entry::new("Abs", unary),
    Entry::new("Acos", unary),
    Entry::new("Acosh", unary),
    Entry::new("Add", binary),
    Entry::new("And", binary),
    Entry::new("Asin", unary),
    Entry::new("Asinh", unary),
    Entry::new("Atan", unary),
    Entry::new("Atanh", unary),
    Entry::new("BiasAdd", bias).domain(MICROSOFT),
    Entry::new("BiasGelu", bias).domain(MICROSOFT),
    Entry::new("BitCast", bit_cast),
    Entry::new("BitShift", binary),
    Entry::new("BitwiseAnd", binary),
    Entry::new("BitwiseNot", unary),
    Entry::new("BitwiseOr", binary),
    Entry::new("BitwiseXor", binary),
    Entry::new("Ceil", unary),
    Entry::new("Celu", unary),
    Entry::new("Clip", clip),
    Entry::new("Cos", unary),
    Entry::new("Cosh", unary),
    Entry::new("Div", binary),
    Entry::new("Elu", unary),
    Entry::new("Equal", binary),
    Entry::new("Erf", unary),
    Entry::new("Exp", unary),
    Entry::new("FastGelu", bias).domain(MICROSOFT),
    Entry::new("Flatten", reshape),
    Entry::new("Floor", unary),
    Entry::new("Gelu", unary),
    Entry::new("Gelu", unary).domain(MICROSOFT),
    Entry::new("Greater", binary),
    Entry::new("GreaterOrEqual", binary),
    Entry::new("HardSigmoid", unary),
    Entry::new("HardSwish", unary),
    Entry::new("Identity", reshape),
    Entry::new("IsInf", predicate),
    Entry::new("IsNaN", predicate),
    Entry::new("LeakyRelu", unary),
    Entry::new("Less", binary),
    Entry::new("LessOrEqual", binary),
    Entry::new("Log", unary),
    Entry::new("Max", variadic),
    Entry::new("Mean", variadic),
    Entry::new("Min", variadic),
    Entry::new("Mish", unary),
    Entry::new("Mod", binary),
    Entry::new("Mul", binary),
    Entry::new("Neg", unary),
    Entry::new("Not", unary),
    Entry::new("Or", binary),
    Entry::new("PRelu", binary),
    Entry::new("Pow", binary),
    Entry::new("QuickGelu", unary).domain(MICROSOFT),
    Entry::new("Reciprocal", unary),
    Entry::new("Relu", unary),
    Entry::new("Reshape", reshape),
    Entry::new("Round", unary),
    Entry::new("Selu", unary),
    Entry::new("Shrink", unary),
    Entry::new("Sigmoid", unary),
    Entry::new("Sign", unary),
    Entry::new("Sin", unary),
    Entry::new("Sinh", unary),
    Entry::new("Softplus", unary),
    Entry::new("Softsign", unary),
    Entry::new("Sqrt", unary),
    Entry::new("Squeeze", reshape),
    Entry::new("Sub", binary),
    Entry::new("Sum", variadic),
    Entry::new("SwiGLU", binary),
    Entry::new("Swish", unary),
    Entry::new("Tan", unary),
    Entry::new("Tanh", unary),
    Entry::new("ThresholdedRelu", unary),
    Entry::new("Unsqueeze", reshape),
    Entry::new("Where", choose),
    Entry::new("Xor", binary),
];

/// Element type of an input, with the class that computes with it.
fn input(node: &NodeContext<'_>, i: usize) -> Result<(ElementType, Class), OpError> {
    let ty = node.input(i).ok_or_else(|| node.no_kernel())?;
    Class::of(ty).map(|class| (ty, class)).ok_or_else(|| node.no_kernel())
}

fn unary(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, class) = input(node, 0)?;
    let map = Map::new(class, ty).with_input(MapOp::Load, 0, ty);
    let f = |x: f32| x as f64;
    let plain = match *node.op::<Unary>() {
        Unary::Abs => MapOp::Abs,
        Unary::Acos => MapOp::Acos,
        Unary::Acosh => MapOp::Acosh,
        Unary::Asin => MapOp::Asin,
        Unary::Asinh => MapOp::Asinh,
        Unary::Atan => MapOp::Atan,
        Unary::Atanh => MapOp::Atanh,
        Unary::BitwiseNot => MapOp::BitNot,
        Unary::Ceil => MapOp::Ceil,
        // Dividing by 0 is left to the CPU.
        Unary::Celu { alpha: 0.0 } => return Err(node.no_kernel()),
        Unary::Celu { alpha } => return map.with(MapOp::Celu, f(alpha), 0.0).boxed(),
        Unary::Cos => MapOp::Cos,
        Unary::Cosh => MapOp::Cosh,
        Unary::Elu { alpha } => return map.with(MapOp::Elu, f(alpha), 0.0).boxed(),
        Unary::Erf => MapOp::Erf,
        Unary::Exp => MapOp::Exp,
        Unary::Floor => MapOp::Floor,
        Unary::Gelu { tanh: false } => MapOp::GeluErf,
        Unary::Gelu { tanh: true } => MapOp::GeluTanh,
        Unary::HardSigmoid { alpha, beta } => {
            return map.with(MapOp::HardSigmoid, f(alpha), f(beta)).boxed();
        }
        Unary::HardSwish => MapOp::HardSwish,
        Unary::LeakyRelu { alpha } => return map.with(MapOp::LeakyRelu, f(alpha), 0.0).boxed(),
        Unary::Log => MapOp::Log,
        Unary::Mish => MapOp::Mish,
        Unary::Neg => MapOp::Neg,
        Unary::Not => MapOp::Not,
        Unary::Reciprocal => MapOp::Reciprocal,
        Unary::Relu => MapOp::Relu,
        Unary::Round => MapOp::Round,
        Unary::Selu { alpha, gamma } => return map.with(MapOp::Selu, f(alpha), f(gamma)).boxed(),
        // Integers are computed with fractions, then cut.
        Unary::Shrink { bias, lambd } if !ty.is_float() => {
            let map = Map::new(Class::F64, ty).with_input(MapOp::Load, 0, ty);
            return map.with(MapOp::Shrink, f(bias), f(lambd)).boxed();
        }
        Unary::Shrink { bias, lambd } => return map.with(MapOp::Shrink, f(bias), f(lambd)).boxed(),
        Unary::Sigmoid => MapOp::Sigmoid,
        Unary::Sign => MapOp::Sign,
        Unary::Sin => MapOp::Sin,
        Unary::Sinh => MapOp::Sinh,
        Unary::Softplus => MapOp::Softplus,
        Unary::Softsign => MapOp::Softsign,
        Unary::Sqrt => MapOp::Sqrt,
        Unary::Swish { alpha } => return map.with(MapOp::Swish, f(alpha), 0.0).boxed(),
        Unary::Tan => MapOp::Tan,
        Unary::Tanh => MapOp::Tanh,
        Unary::ThresholdedRelu { alpha } => {
            return map.with(MapOp::ThresholdedRelu, f(alpha), 0.0).boxed();
        }
    };
    map.with(plain, 0.0, 0.0).boxed()
}

fn predicate(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    if node.input(0).is_some_and(quantize::converts) {
        return quantize::predicate(node, *node.op::<Predicate>());
    }
    let (ty, class) = input(node, 0)?;
    let map = Map::new(class, ElementType::Bool).with_input(MapOp::Load, 0, ty);
    let map = match *node.op::<Predicate>() {
        Predicate::IsNan => map.with(MapOp::IsNan, 0.0, 0.0),
        Predicate::IsInf { negative, positive } => {
            map.with(MapOp::IsInf, negative as u8 as f64, positive as u8 as f64)
        }
    };
    map.boxed()
}

fn binary(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ((a, class), (b, _)) = (input(node, 0)?, input(node, 1)?);
    let Elementwise { op, alignment } = *node.op::<Elementwise>();
    let out = node.output(0).ok_or_else(|| node.no_kernel())?;
    // A fractional power of an integer is computed with its fraction, then cut.
    let class = if op == Binary::Pow && !a.is_float() && b.is_float() { Class::F64 } else { class };
    let op = match op {
        Binary::Add => MapOp::Add,
        Binary::Sub => MapOp::Sub,
        Binary::Mul => MapOp::Mul,
        Binary::Div => MapOp::Div,
        Binary::Pow => MapOp::Pow,
        Binary::Mod { fmod: true } => MapOp::TruncMod,
        Binary::Mod { fmod: false } => MapOp::FloorMod,
        Binary::Equal => MapOp::Equal,
        Binary::Greater => MapOp::Greater,
        Binary::GreaterOrEqual => MapOp::GreaterOrEqual,
        Binary::Less => MapOp::Less,
        Binary::LessOrEqual => MapOp::LessOrEqual,
        Binary::And => MapOp::And,
        Binary::Or => MapOp::Or,
        Binary::Xor => MapOp::Xor,
        Binary::BitwiseAnd => MapOp::BitAnd,
        Binary::BitwiseOr => MapOp::BitOr,
        Binary::BitwiseXor => MapOp::BitXor,
        Binary::BitShift { left: true } => MapOp::ShiftLeft,
        Binary::BitShift { left: false } => MapOp::ShiftRight,
        Binary::PRelu => MapOp::PRelu,
        Binary::SwiGlu { alpha } => {
            return Map::new(class, out)
                .with_input(MapOp::Load, 0, a)
                .with(MapOp::Swish, alpha as f64, 0.0)
                .with_input(MapOp::Mul, 1, b)
                .boxed();
        }
    };
    let mut map = Map::new(class, out).with_input(MapOp::Load, 0, a).with_input(op, 1, b);
    map.alignment = alignment;
    map.boxed()
}

fn variadic(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, class) = input(node, 0)?;
    let op = *node.op::<Variadic>();
    let step = match op {
        Variadic::Max => MapOp::Max,
        Variadic::Min => MapOp::Min,
        Variadic::Sum | Variadic::Mean => MapOp::Add,
    };
    let count = node.input_types.len();
    let mut map = Map::new(class, ty).with_input(MapOp::Load, 0, ty);
    for i in 1..count {
        map = map.with_input(step, i, ty);
    }
    if op == Variadic::Mean {
        map = map.with(MapOp::Div, count as f64, 0.0);
    }
    map.boxed()
}

fn clip(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, class) = input(node, 0)?;
    let Clip { min, max } = *node.op::<Clip>();
    let mut map = Map::new(class, ty).with_input(MapOp::Load, 0, ty);
    for (op, limit, input) in [(MapOp::Max, min, 1), (MapOp::Min, max, 2)] {
        if node.has_input(input) {
            map = map.with_input(op, input, ty);
        } else if let Some(limit) = limit {
            map = map.with(op, limit as f64, 0.0);
        }
    }
    // A bound may come with a dimension or two of size 1.
    map.alignment = Alignment::Multidirectional;
    map.boxed()
}

fn choose(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = same_size(node.input(1).ok_or_else(|| node.no_kernel())?).ok_or_else(|| node.no_kernel())?;
    Map::new(Class::U64, ty)
        .with_input(MapOp::Load, 1, ty)
        .with(MapOp::Save0, 0.0, 0.0)
        .with_input(MapOp::Load, 0, ElementType::Bool)
        .with_input(MapOp::Select, 2, ty)
        .boxed()
}

/// Between the types that programs compute with, and from a type to itself.
pub(in super::super) fn cast(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let to = node.output(0).ok_or_else(|| node.no_kernel())?;
    if node.input(0) == Some(to) {
        return reshape(node);
    }
    let (from, class) = input(node, 0)?;
    if Class::of(to).is_none() {
        return Err(node.no_kernel());
    }
    Map::new(class, to).with_input(MapOp::Load, 0, from).boxed()
}

fn reshape(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let ty = node.input(0).filter(|ty| *ty != ElementType::String).ok_or_else(|| node.no_kernel())?;
    let (unit, parts) = same_size(ty).map_or((ElementType::U64, 2), |ty| (ty, 1));
    let mut map = Map::new(Class::U64, unit).with_input(MapOp::Load, 0, unit);
    map.reshapes = true;
    map.parts = parts;
    map.boxed()
}

/// The unsigned integer that is as wide as a type; `None` beyond 64 bits.
fn same_size(ty: ElementType) -> Option<ElementType> {
    Some(match ty.size() {
        1 => ElementType::U8,
        2 => ElementType::U16,
        4 => ElementType::U32,
        8 => ElementType::U64,
        _ => return None,
    })
}

/// `activation(x + bias)`, or `x + bias + skip`.
fn bias(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let (ty, class) = input(node, 0)?;
    let mut map = Map::new(class, ty).with_input(MapOp::Load, 0, ty);
    for i in [1, 2] {
        if node.has_input(i) {
            map = map.with_input(MapOp::Add, i, ty);
        }
    }
    match node.op::<BiasActivation>().activation {
        None => map.boxed(),
        Some(Unary::Gelu { tanh: true }) => map.with(MapOp::GeluTanh, 0.0, 0.0).boxed(),
        Some(Unary::Gelu { tanh: false }) => map.with(MapOp::GeluErf, 0.0, 0.0).boxed(),
        Some(_) => Err(node.no_kernel()),
    }
}

/// The same bytes as another type of the same size; narrow types are stored one a byte, and change
/// their extension.
fn bit_cast(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let from = node.input(0).ok_or_else(|| node.no_kernel())?;
    let BitCast { to } = *node.op::<BitCast>();
    if from.file_bits() < 8 || from.size() != to.size() || to == ElementType::Bool {
        return Err(node.no_kernel());
    }
    reshape(node)
}
