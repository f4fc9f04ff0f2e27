//! Parts of an axis around its middle, or up to a length: CenterCropPad, ReverseSequence.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator, Types};

/// Items along the time axis in reverse order, up to each batch's length.
#[derive(Clone, Debug, PartialEq)]
pub struct ReverseSequence {
    pub batch_axis: usize,
    pub time_axis: usize,
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
pub struct CenterCropPad {
    pub axes: Option<Vec<i64>>,
}

impl CenterCropPad {
    pub fn axes(&self, rank: usize) -> Result<Vec<usize>, OpError> {
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
