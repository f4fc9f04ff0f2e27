//! Deformable convolution: each sampling position is moved by an offset that the data give.

use std::sync::Arc;

use crate::graph::Dim;

use super::read_group;
use super::shape::infer_conv;
use crate::ops::window::Window;
use crate::ops::{Declaration, Infer, OpError, Operator, Types};

/// Inputs: X, W, offset, B, mask.
#[derive(Clone, Debug, PartialEq)]
pub struct DeformConv {
    pub window: Window,
    pub group: usize,
    /// Groups of channels that share offsets.
    pub offset_group: usize,
}

impl Operator for DeformConv {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        infer_conv(&self.window, self.group, cx, 1)?;
        let (Some(x), Some(w)) = (cx.shape(0), cx.shape(1)) else { return Ok(()) };
        if x[1].known().is_some_and(|c| c % self.offset_group as i64 != 0) {
            let reason =
                format!("{} channels cannot be split into {} groups of offsets", x[1], self.offset_group);
            return Err(cx.input_error(0, reason));
        }
        let space = self.window.output(&x[2..], &w[2..])?;
        let positions = w[2..].iter().fold(Dim::from(self.offset_group), |n, k| n.mul(k));
        let axes = Dim::from(space.len());
        for (input, channels) in [(2, positions.mul(&axes)), (4, positions)] {
            let Some(given) = cx.shape_of_rank(input, x.len())? else { continue };
            let want = [&[x[0].clone(), channels], &space[..]].concat();
            cx.equal_shape(input, &want, given)?;
        }
        if let Some(bias) = cx.shape_of_rank(3, 1)? {
            cx.equal(3, "its length", &w[0], &bias[0])?;
        }
        Ok(())
    }
}

pub(in crate::ops) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "DeformConv",
    &[19, 22],
    "X:T, W:T, offset:T, B?:T, mask?:T -> Y:T",
    &[("T", Types::FLOAT)],
    |a| {
        let offset_group = a.int("offset_group", 1)?;
        let offset_group = usize::try_from(offset_group).ok().filter(|&g| g > 0).ok_or_else(|| {
            let reason = format!("{offset_group} is not allowed; allowed are numbers above 0");
            OpError::attribute("offset_group", reason)
        })?;
        Ok(Arc::new(DeformConv { window: Window::read(a)?, group: read_group(a)?, offset_group }))
    },
)];
