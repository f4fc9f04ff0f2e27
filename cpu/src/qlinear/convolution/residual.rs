//! What `rukh.QLinearConv` adds to its outputs.

use crate::conv::Residual;
use crate::ops::OpError;
use crate::ops::qlinear::RESIDUAL;
use crate::qlinear::elementwise::{add_to, sum_factors};
use crate::qlinear::parameter::Linear;
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) struct ResidualInput<'a> {
    view: TensorView<'a>,
    /// Of the convolution, and of the residual.
    from: [Linear; 2],
    to: Linear,
}

impl<'a> ResidualInput<'a> {
    /// From inputs: the residual's scale and zero point follow it, then those of the sum.
    pub(crate) fn read(inputs: &[Option<TensorView<'a>>]) -> Result<Option<Self>, OpError> {
        let Some(view) = inputs.get(RESIDUAL).copied().flatten() else { return Ok(None) };
        let from = [Linear::read(inputs, 6)?, Linear::read(inputs, RESIDUAL + 1)?];
        Ok(Some(ResidualInput { view, from, to: Linear::read(inputs, RESIDUAL + 3)? }))
    }

    /// What the epilogue of a tile adds.
    pub(crate) fn of_tiles(&self) -> Residual<'a> {
        Residual {
            data: self.view.bytes(),
            zero: self.from[1].zero,
            factors: sum_factors(self.from, self.to),
            result_zero: self.to.zero as i32,
        }
    }

    /// Adds it to the outputs.
    pub(crate) fn add(&self, pool: &Pool, y: &mut TensorViewMut<'_>) {
        match y.ty() {
            ElementType::I8 => add_to(pool, y.slice::<i8>(), self.view.slice(), self.from, self.to),
            _ => add_to(pool, y.slice::<u8>(), self.view.slice(), self.from, self.to),
        }
    }
}
