//! Sequences of tensors.

use std::sync::Arc;

use crate::tensor::{ElementType, ValueType};

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// Operators on sequences. Positions may count from the back.
#[derive(Clone, Debug, PartialEq)]
pub enum Sequence {
    /// A sequence of the inputs.
    Construct,
    Empty(ElementType),
    /// The item at a position.
    At,
    /// With a tensor put in before a position; at the end without one.
    Insert,
    /// Without the item at a position; without the last one when none is given.
    Erase,
    Length,
    /// The parts of a tensor along an axis.
    Split {
        axis: i64,
        keep_dims: bool,
    },
    /// The items joined along an axis, or along a new one.
    Concat {
        axis: i64,
        new_axis: bool,
    },
}

impl Operator for Sequence {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        match *self {
            Sequence::Empty(ty) => {
                cx.set_type(0, ValueType::Sequence(Box::new(ValueType::Tensor(ty))));
            }
            Sequence::Length => cx.set_shape(0, Vec::new()),
            Sequence::Split { axis, .. } => {
                if let Some(shape) = cx.shape(0) {
                    axis_of(axis, shape.len())?;
                }
            }
            Sequence::Construct
            | Sequence::At
            | Sequence::Insert
            | Sequence::Erase
            | Sequence::Concat { .. } => {}
        }
        Ok(())
    }
}

const SEQUENCE: &[(&str, Types)] = &[("T", Types::TENSOR), ("I", Types::INDEX)];
pub(super) const DECLARATIONS: &[Declaration] = &[
    Declaration::new("SequenceConstruct", &[11], "inputs+:T -> output_sequence:seq(T)", SEQUENCE, |_| {
        Ok(Arc::new(Sequence::Construct))
    })
    .data_dependent(),
    Declaration::new("SequenceEmpty", &[11], "-> output:any", &[], |a| {
        Ok(Arc::new(Sequence::Empty(a.element_type("dtype")?.unwrap_or(ElementType::F32))))
    })
    .data_dependent(),
    Declaration::new("SequenceAt", &[11], "input_sequence:seq(T), position:I -> tensor:T", SEQUENCE, |_| {
        Ok(Arc::new(Sequence::At))
    })
    .data_dependent(),
    Declaration::new(
        "SequenceInsert",
        &[11],
        "input_sequence:seq(T), tensor:T, position?:I -> output_sequence:seq(T)",
        SEQUENCE,
        |_| Ok(Arc::new(Sequence::Insert)),
    )
    .data_dependent(),
    Declaration::new(
        "SequenceErase",
        &[11],
        "input_sequence:seq(T), position?:I -> output_sequence:seq(T)",
        SEQUENCE,
        |_| Ok(Arc::new(Sequence::Erase)),
    )
    .data_dependent(),
    Declaration::new("SequenceLength", &[11], "input_sequence:seq(T) -> length:int64", SEQUENCE, |_| {
        Ok(Arc::new(Sequence::Length))
    })
    .data_dependent(),
    Declaration::new(
        "SplitToSequence",
        &[11, 24],
        "input:T, split?:I -> output_sequence:seq(T)",
        SEQUENCE,
        |a| Ok(Arc::new(Sequence::Split { axis: a.int("axis", 0)?, keep_dims: a.flag("keepdims", true)? })),
    )
    .data_dependent(),
    Declaration::new(
        "ConcatFromSequence",
        &[11],
        "input_sequence:seq(T) -> concat_result:T",
        SEQUENCE,
        |a| {
            Ok(Arc::new(Sequence::Concat {
                axis: a.required_int("axis")?,
                new_axis: a.flag("new_axis", false)?,
            }))
        },
    )
    .data_dependent(),
];
