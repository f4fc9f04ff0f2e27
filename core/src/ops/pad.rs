//! Pad: more (or fewer) positions at the ends of axes.

use std::sync::Arc;

use super::int_list::{IntList, unique_axes};
use super::{Declaration, Infer, OpError, Operator, Types};

/// Where the elements outside the input come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadMode {
    Constant,
    /// The nearest element of the input.
    Edge,
    /// The input mirrored at its first and last element, which are not repeated.
    Reflect,
    /// The input again and again.
    Wrap,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    pub mode: PadMode,
    /// First what comes before each axis, then what comes after each; negative numbers cut.
    pub pads: IntList,
    /// The constant of opsets before 11; later it is input 2.
    pub value: Option<f32>,
}

/// The input that lists the axes which `pads` speaks of.
pub const AXES_INPUT: usize = 3;

/// What comes before and after each axis.
pub fn amounts(pads: &[i64], axes: Option<&[i64]>, rank: usize) -> Result<Vec<(i64, i64)>, OpError> {
    let axes = match axes {
        Some(axes) => unique_axes(axes, rank)?,
        None => (0..rank).collect(),
    };
    if pads.len() != axes.len() * 2 {
        let (n, want) = (pads.len(), axes.len() * 2);
        return Err(OpError::Data(format!(
            "pads has {n} numbers; {want} are needed for {} axes",
            axes.len()
        )));
    }
    let mut amounts = vec![(0, 0); rank];
    for (i, &axis) in axes.iter().enumerate() {
        amounts[axis] = (pads[i], pads[i + axes.len()]);
    }
    Ok(amounts)
}

impl Operator for Pad {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let rank = shape.len();
        let axes = match (cx.has(AXES_INPUT), cx.known_ints(AXES_INPUT)) {
            (true, None) => {
                cx.set_rank(0, rank);
                return Ok(());
            }
            (_, axes) => axes,
        };
        let Some(pads) = self.pads.dims(cx) else {
            cx.set_rank(0, rank);
            return Ok(());
        };
        let axes = match axes {
            Some(axes) => unique_axes(&axes, rank).map_err(|e| cx.input_error(AXES_INPUT, e.to_string()))?,
            None => (0..rank).collect(),
        };
        if pads.len() != axes.len() * 2 {
            let reason =
                format!("it has {} numbers; {} axes need {}", pads.len(), axes.len(), axes.len() * 2);
            return Err(self.pads.error(cx, reason));
        }
        let mut result = shape.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            let d = shape[axis].add(&pads[i]).add(&pads[i + axes.len()]);
            if d.known().is_some_and(|d| d < 0) {
                let reason = format!("it cuts more than axis {axis} of length {} has", shape[axis]);
                return Err(self.pads.error(cx, reason));
            }
            result[axis] = d;
        }
        cx.set_shape(0, result);
        Ok(())
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "Pad",
    &[1, 2, 11, 13, 18, 19, 21, 23, 24, 25],
    "data:T, pads?:int64, constant_value?:T, axes?:Tind -> output:T",
    &[("T", Types::TENSOR), ("Tind", Types::INDEX)],
    |a| {
        let modes = [
            ("constant", PadMode::Constant),
            ("edge", PadMode::Edge),
            ("reflect", PadMode::Reflect),
            ("wrap", PadMode::Wrap),
        ];
        // The standard has "wrap" from 19 on. ONNX Runtime takes it in every version.
        let mode = a.choice("mode", "constant", &modes)?;
        let name = if a.opset() < 2 { "paddings" } else { "pads" };
        let value = if a.opset() < 11 { Some(a.float("value", 0.0)?) } else { None };
        Ok(Arc::new(Pad { mode, pads: IntList::required(a, name, 1, 11)?, value }))
    },
)
.shape_inputs(&[1, 3])];
