//! Choosing boxes: NonMaxSuppression.

use std::sync::Arc;

use crate::graph::Dim;

use super::{Declaration, Infer, OpError, Operator};

/// The boxes `[batch, boxes, 4]` that no better box of the same class overlaps too much.
#[derive(Clone, Debug, PartialEq)]
pub struct NonMaxSuppression {
    /// Whether a box is given as centre, width and height, and not as two corners (y before x).
    pub center_point: bool,
}

impl Operator for NonMaxSuppression {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let boxes = cx.shape_of_rank(0, 3)?;
        let scores = cx.shape_of_rank(1, 3)?;
        if boxes.is_some_and(|b| b[2].known().is_some_and(|n| n != 4)) {
            return Err(cx.input_error(0, "its last axis must be 4"));
        }
        if let (Some(b), Some(s)) = (boxes, scores)
            && [(0, 0), (1, 2)]
                .iter()
                .any(|&(i, j)| b[i].known().is_some() && s[j].known().is_some() && b[i] != s[j])
        {
            return Err(cx.input_error(1, format!("its shape {s:?} does not fit boxes of shape {b:?}")));
        }
        let count = cx.unknown();
        cx.set_shape(0, vec![count, Dim::Known(3)]);
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "NonMaxSuppression",
    &[10, 11],
    "boxes:float, scores:float, max_output_boxes_per_class?:int64, iou_threshold?:float, \
         score_threshold?:float -> selected_indices:int64",
    &[],
    |a| Ok(Arc::new(NonMaxSuppression { center_point: a.flag("center_point_box", false)? })),
)
.data_dependent()];
