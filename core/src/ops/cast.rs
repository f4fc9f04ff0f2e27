//! Conversions between element types.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::ElementType;

use super::{AttributeReader, Declaration, Infer, OpError, Operator, Types};

/// `Cast` and `CastLike`: converts values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cast {
    /// The type to convert to; `None` for `CastLike`: that of input 1.
    pub to: Option<ElementType>,
    /// Whether values beyond an 8-bit float's range become its largest value.
    pub saturate: bool,
    /// How float8e8m0 rounds.
    pub round_mode: RoundMode,
}

/// Rounding to a power of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RoundMode {
    Up,
    Down,
    /// Halfway goes up.
    Nearest,
}

impl Cast {
    fn parse(a: &AttributeReader<'_>, to: Option<ElementType>) -> Result<Arc<dyn Operator>, OpError> {
        let modes = [("up", RoundMode::Up), ("down", RoundMode::Down), ("nearest", RoundMode::Nearest)];
        Ok(Arc::new(Cast {
            to,
            saturate: a.flag("saturate", true)?,
            round_mode: a.choice("round_mode", "up", &modes)?,
        }))
    }
}

impl Operator for Cast {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        let to = self.to.or_else(|| cx.element_type(1));
        if let Some(to) = to {
            cx.set_element_type(0, to);
            let elements = super::binary::truths(cx, 0).and_then(|elements| convert(elements, to));
            cx.set_elements(0, elements);
        }
        Ok(())
    }
}

/// Integers in another integer type; `None` where one may not fit.
pub(super) fn convert(elements: Vec<Dim>, to: ElementType) -> Option<Vec<Dim>> {
    match to {
        ElementType::I64 => Some(elements),
        // No tensor has a dimension that int32 cannot hold in a model that casts it to int32.
        ElementType::I32 => {
            let fits = |d: &Dim| d.known().is_none_or(|n| i32::try_from(n).is_ok());
            elements.iter().all(fits).then_some(elements)
        }
        ElementType::Bool => elements.iter().map(|d| Some(Dim::Known((d.known()? != 0) as i64))).collect(),
        _ => None,
    }
}

/// `BitCast`: the same bits as another type of equal width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitCast {
    pub to: ElementType,
}

impl Operator for BitCast {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        if let Some(from) = cx.element_type(0)
            && from.file_bits() != self.to.file_bits()
        {
            let reason = format!(
                "its type {from} has {} bits, but attribute \"to\" is {} of {} bits; allowed is the same number",
                from.file_bits(),
                self.to,
                self.to.file_bits()
            );
            return Err(cx.input_error(0, reason));
        }
        if let Some(shape) = cx.shape(0) {
            cx.set_shape(0, shape.to_vec());
        }
        cx.set_element_type(0, self.to);
        Ok(())
    }
}

fn target(a: &AttributeReader<'_>) -> Result<ElementType, OpError> {
    // Opset 1 named the type.
    if a.opset() < 6 {
        let name = a.string("to", "")?.to_ascii_lowercase();
        return ElementType::all()
            .find(|ty| ty.name() == name)
            .ok_or_else(|| OpError::attribute("to", format!("\"{name}\" is no element type")));
    }
    a.element_type("to")?.ok_or_else(|| OpError::attribute("to", "it is required, and missing"))
}

pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new(
        "Cast",
        &[1, 6, 9, 13, 19, 21, 23, 24, 25, 28],
        "input:T1 -> output:any",
        &[("T1", Types::TENSOR)],
        |a| Cast::parse(a, Some(target(a)?)),
    ),
    Declaration::new(
        "CastLike",
        &[15, 19, 21, 23, 24, 25],
        "input:T1, target_type:T2 -> output:T2",
        &[("T1", Types::TENSOR), ("T2", Types::TENSOR)],
        |a| Cast::parse(a, None),
    ),
    Declaration::new("BitCast", &[26], "input:T1 -> output:any", &[("T1", Types::TENSOR)], |a| match target(
        a,
    )? {
        ElementType::String => Err(OpError::attribute("to", "string is not allowed: it has no bits")),
        to => Ok(Arc::new(BitCast { to })),
    }),
];
