//! Elementwise operators of two inputs, which broadcast.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// What the operator computes of each pair of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    /// The remainder of a division rounded towards zero (`fmod`) or down.
    Mod {
        fmod: bool,
    },
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    And,
    Or,
    Xor,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    BitShift {
        left: bool,
    },
    /// `a < 0 ? a·b : a`
    PRelu,
    /// `a·sigmoid(alpha·a)·b`
    SwiGlu {
        alpha: f32,
    },
}

/// A binary operator and how its inputs' shapes meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elementwise {
    pub op: Binary,
    pub alignment: Alignment,
}

/// How the dimensions of the second input lie beside those of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Alignment {
    /// Numpy's rule: both broadcast, aligned at the last dimension.
    Multidirectional,
    /// The second broadcasts to the first.
    Unidirectional,
    /// Before opset 7: shapes are equal.
    Same,
    /// Before opset 7, with `broadcast = 1`: the second's dimensions are a run of the first's that
    /// starts at this axis (by default the last ones).
    Run(Option<i64>),
}

impl Elementwise {
    fn numpy(op: Binary) -> Result<Arc<dyn Operator>, OpError> {
        Ok(Arc::new(Elementwise { op, alignment: Alignment::Multidirectional }))
    }

    /// Reads the attributes that steered broadcasting before opset 7.
    fn legacy(a: &AttributeReader<'_>, op: Binary) -> Result<Arc<dyn Operator>, OpError> {
        if a.opset() >= 7 {
            return Self::numpy(op);
        }
        let axis = a.optional_int("axis")?;
        let alignment = if a.flag("broadcast", false)? { Alignment::Run(axis) } else { Alignment::Same };
        Ok(Arc::new(Elementwise { op, alignment }))
    }
}

impl Alignment {
    /// How many dimensions of size 1 to put behind the second input's, so that it lies right under
    /// the first by numpy's rule.
    pub fn trailing(self, a: usize, b: usize) -> Result<usize, OpError> {
        let Alignment::Run(Some(axis)) = self else { return Ok(0) };
        let start = super::normalize_axis("axis", axis, a.max(1))?;
        a.checked_sub(start + b).ok_or_else(|| {
            OpError::attribute("axis", format!("{b} dimensions do not fit into {a} from axis {axis}"))
        })
    }
}

impl Operator for Elementwise {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match self.alignment {
            Alignment::Multidirectional => {
                if let Some(shape) = cx.broadcast_inputs(&[0, 1])? {
                    cx.set_shape(0, shape);
                }
            }
            _ => self.infer_from_first(cx)?,
        }
        let elements = combine(&self.op, truths(cx, 0), truths(cx, 1));
        cx.set_elements(0, elements);
        Ok(())
    }
}

impl Elementwise {
    /// The output has the first input's shape; the second must fit into it.
    fn infer_from_first(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let (Some(a), Some(b)) = (cx.shape(0), cx.shape(1)) else {
            if let Some(a) = cx.shape(0) {
                cx.set_shape(0, a.to_vec());
            }
            return Ok(());
        };
        let trailing = self.alignment.trailing(a.len(), b.len())?;
        let offset = a.len().checked_sub(b.len() + trailing);
        let fits = offset.is_some_and(|offset| {
            b.iter().zip(&a[offset..]).all(|(y, x)| match (x.known(), y.known()) {
                (Some(x), Some(y)) => x == y || (y == 1 && self.alignment != Alignment::Same),
                _ => true,
            })
        });
        if !fits || (self.alignment == Alignment::Same && a.len() != b.len()) {
            return Err(cx.input_error(1, format!("its shape {b:?} does not fit that of input 0, {a:?}")));
        }
        cx.set_shape(0, a.to_vec());
        Ok(())
    }
}

/// The elements of a small integer or boolean input; true is 1.
pub(super) fn truths(cx: &Infer<'_>, i: usize) -> Option<Vec<Dim>> {
    match cx.constant(i) {
        Some(tensor) if tensor.ty() == ElementType::Bool => {
            let bytes = tensor.buffer()?.bytes();
            Some(bytes.iter().map(|&b| Dim::Known((b != 0) as i64)).collect())
        }
        _ => cx.ints(i),
    }
}

/// The operator on known and symbolic integers. Only lists of equal length, or one element beside a
/// list, are combined: shape arithmetic has no more dimensions.
fn combine(op: &Binary, a: Option<Vec<Dim>>, b: Option<Vec<Dim>>) -> Option<Vec<Dim>> {
    let (a, b) = (a?, b?);
    zip(&a, &b)?.map(|(x, y)| of_integers(op, x, y)).collect()
}

/// Pairs of elements, a single one repeated.
pub(super) fn zip<'a>(a: &'a [Dim], b: &'a [Dim]) -> Option<impl Iterator<Item = (&'a Dim, &'a Dim)>> {
    let count = match (a.len(), b.len()) {
        (m, n) if m == n => m,
        (1, n) | (n, 1) => n,
        _ => return None,
    };
    let at = |s: &'a [Dim], i: usize| if s.len() == 1 { &s[0] } else { &s[i] };
    Some((0..count).map(move |i| (at(a, i), at(b, i))))
}

fn of_integers(op: &Binary, x: &Dim, y: &Dim) -> Option<Dim> {
    let truth = |b: bool| Some(Dim::Known(b as i64));
    let known = x.known().zip(y.known());
    match op {
        // Data that overflow wrap around, which a dimension does not: the kernel computes them.
        Binary::Add => match known {
            Some((a, b)) => a.checked_add(b).map(Dim::Known),
            None => Some(x.add(y)),
        },
        Binary::Sub => match known {
            Some((a, b)) => a.checked_sub(b).map(Dim::Known),
            None => Some(x.sub(y)),
        },
        Binary::Mul => match known {
            Some((a, b)) => a.checked_mul(b).map(Dim::Known),
            None => Some(x.mul(y)),
        },
        // Known integers divide towards zero. Dimensions are not negative, so for symbols that is
        // the quotient rounded down.
        Binary::Div => match known {
            Some((a, b)) => a.checked_div(b).map(Dim::Known),
            None if y.known() == Some(0) => None,
            None => Some(x.floor_div(y)),
        },
        Binary::Mod { fmod } => match known {
            Some((a, b)) if *fmod => a.checked_rem(b).map(Dim::Known),
            _ if y.known() == Some(0) => None,
            _ => Some(x.sub(&x.floor_div(y).mul(y))),
        },
        Binary::Equal => equal(x, y).and_then(truth),
        Binary::Greater => known.and_then(|(a, b)| truth(a > b)),
        Binary::GreaterOrEqual => known.and_then(|(a, b)| truth(a >= b)),
        Binary::Less => known.and_then(|(a, b)| truth(a < b)),
        Binary::LessOrEqual => known.and_then(|(a, b)| truth(a <= b)),
        Binary::And => known.and_then(|(a, b)| truth(a != 0 && b != 0)),
        Binary::Or => known.and_then(|(a, b)| truth(a != 0 || b != 0)),
        Binary::Xor => known.and_then(|(a, b)| truth((a != 0) != (b != 0))),
        _ => None,
    }
}

/// Whether two integers are equal, where that can be told: the name of a dimension stands for
/// something that is not negative.
fn equal(x: &Dim, y: &Dim) -> Option<bool> {
    let below_zero = |d: &Dim| d.known().is_some_and(|n| n < 0);
    match (x.known(), y.known()) {
        (Some(a), Some(b)) => Some(a == b),
        _ if x == y => Some(true),
        _ if below_zero(x) && y.is_nonnegative() || below_zero(y) && x.is_nonnegative() => Some(false),
        _ => None,
    }
}

const SAME: &str = "A:T, B:T -> C:T";
const TRUTH: &str = "A:T, B:T -> C:bool";
const NUMERIC: &[(&str, Types)] = &[("T", Types::NUMERIC)];
const INTEGER: &[(&str, Types)] = &[("T", Types::INTEGER)];
const BOOL: &[(&str, Types)] = &[("T", Types::BOOL)];

/// The declaration of an operator whose only attributes are those of old broadcasting.
macro_rules! plain {
    ($name:literal, $since:expr, $signature:expr, $types:expr, $op:ident) => {
        Declaration::new($name, &$since, $signature, $types, |a| Elementwise::legacy(a, Binary::$op))
    };
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    plain!("Add", [1, 6, 7, 13, 14], SAME, NUMERIC, Add),
    plain!("Sub", [1, 6, 7, 13, 14], SAME, NUMERIC, Sub),
    plain!("Mul", [1, 6, 7, 13, 14], SAME, NUMERIC, Mul),
    plain!("Div", [1, 6, 7, 13, 14], SAME, NUMERIC, Div),
    plain!(
        "Pow",
        [1, 7, 12, 13, 15],
        "X:T, Y:T1 -> Z:T",
        &[("T", Types::NUMERIC), ("T1", Types::NUMERIC)],
        Pow
    ),
    Declaration::new("Mod", &[10, 13, 28], SAME, NUMERIC, |a| {
        Elementwise::numpy(Binary::Mod { fmod: a.flag("fmod", false)? })
    }),
    plain!(
        "Equal",
        [1, 7, 11, 13, 19],
        TRUTH,
        &[("T", Types::NUMERIC.and(Types::BOOL).and(Types::STRING))],
        Equal
    ),
    plain!("Greater", [1, 7, 9, 13], TRUTH, NUMERIC, Greater),
    plain!("GreaterOrEqual", [12, 16], TRUTH, NUMERIC, GreaterOrEqual),
    plain!("Less", [1, 7, 9, 13], TRUTH, NUMERIC, Less),
    plain!("LessOrEqual", [12, 16], TRUTH, NUMERIC, LessOrEqual),
    plain!("And", [1, 7], SAME, BOOL, And),
    plain!("Or", [1, 7], SAME, BOOL, Or),
    plain!("Xor", [1, 7], SAME, BOOL, Xor),
    plain!("BitwiseAnd", [18], SAME, INTEGER, BitwiseAnd),
    plain!("BitwiseOr", [18], SAME, INTEGER, BitwiseOr),
    plain!("BitwiseXor", [18], SAME, INTEGER, BitwiseXor),
    Declaration::new("BitShift", &[11, 28], SAME, INTEGER, |a| {
        let left = a.optional_string("direction")?.ok_or_else(|| {
            OpError::attribute("direction", "it is required, and missing; allowed are LEFT, RIGHT")
        })?;
        let left = a.choice("direction", left, &[("LEFT", true), ("RIGHT", false)])?;
        Elementwise::numpy(Binary::BitShift { left })
    }),
    Declaration::new("PRelu", &[1, 6, 7, 9, 16], "X:T, slope:T -> Y:T", NUMERIC, |a| {
        // Before opset 7 a slope of more than one element belongs to the channels, axis 1.
        let alignment = if a.opset() < 7 { Alignment::Run(Some(1)) } else { Alignment::Unidirectional };
        Ok(Arc::new(Elementwise { op: Binary::PRelu, alignment }))
    }),
    Declaration::new("SwiGLU", &[28], SAME, &[("T", Types::FLOAT)], |a| {
        let op = Binary::SwiGlu { alpha: a.float("alpha", 1.0)? };
        Ok(Arc::new(Elementwise { op, alignment: Alignment::Same }))
    }),
];
