//! Sequences of tensors.

use std::sync::Arc;

use crate::graph::Dim;
use crate::tensor::{ElementType, ValueType};

use super::movement::axis_of;
use super::{Declaration, Infer, OpError, Operator, Types};

/// Operators on sequences. Positions may count from the back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sequence {
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

/// Items along the time axis in reverse order, up to each batch's length.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReverseSequence {
    pub(crate) batch_axis: usize,
    pub(crate) time_axis: usize,
}

impl Operator for ReverseSequence {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        if shape.len() < 2 {
            return Err(cx.input_error(0, format!("its rank is {}; allowed is 2 and above", shape.len())));
        }
        if let Some([n]) = cx.shape_of_rank(1, 1)?
            && let (Some(n), Some(batch)) = (n.known(), shape[self.batch_axis].known())
            && n != batch
        {
            return Err(cx.input_error(1, format!("it has {n} lengths for a batch of {batch}")));
        }
        cx.set_shape(0, shape.to_vec());
        Ok(())
    }
}

/// Cut or padded with zeros around the centre to the sizes that input 1 gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CenterCropPad {
    pub(crate) axes: Option<Vec<i64>>,
}

impl CenterCropPad {
    pub(crate) fn axes(&self, rank: usize) -> Result<Vec<usize>, OpError> {
        match &self.axes {
            Some(axes) => super::int_list::unique_axes(axes, rank),
            None => Ok((0..rank).collect()),
        }
    }
}

impl Operator for CenterCropPad {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let axes = self.axes(shape.len())?;
        let sizes: Vec<Dim> = match cx.ints(1) {
            Some(sizes) if sizes.len() == axes.len() => sizes,
            Some(sizes) => {
                let reason = format!("it has {} sizes for {} axes", sizes.len(), axes.len());
                return Err(cx.input_error(1, reason));
            }
            None => axes.iter().map(|_| cx.unknown()).collect(),
        };
        if let Some(d) = sizes.iter().find(|d| d.known().is_some_and(|d| d < 0)) {
            return Err(cx.input_error(1, format!("{d} is no size; allowed are 0 and above")));
        }
        let mut result = shape.to_vec();
        for (&axis, size) in axes.iter().zip(sizes) {
            result[axis] = size;
        }
        cx.set_shape(0, result);
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
    Declaration::new("ReverseSequence", &[10, 28], "input:T, sequence_lens:int64 -> Y:T", SEQUENCE, |a| {
        let (batch, time) = (a.int("batch_axis", 1)?, a.int("time_axis", 0)?);
        match (batch, time) {
            (0, 1) | (1, 0) => {
                Ok(Arc::new(ReverseSequence { batch_axis: batch as usize, time_axis: time as usize }))
            }
            _ => Err(OpError::attribute(
                "batch_axis",
                format!("{batch} with time_axis {time}; one must be 0 and the other 1"),
            )),
        }
    }),
    Declaration::new("CenterCropPad", &[18], "input_data:T, shape:I -> output_data:T", SEQUENCE, |a| {
        Ok(Arc::new(CenterCropPad { axes: a.ints("axes")?.map(<[i64]>::to_vec) }))
    })
    .shape_inputs(&[1]),
];
