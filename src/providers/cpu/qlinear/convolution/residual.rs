//! What `rukh.QLinearConv` adds to its outputs.

use crate::ops::OpError;
use crate::ops::qlinear::RESIDUAL;
use crate::providers::cpu::qlinear::elementwise::{add_to, sum_factors};
use crate::providers::cpu::qlinear::parameter::Linear;
use crate::tensor::{ElementType, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) struct Residual<'a> {
    pub(crate) view: TensorView<'a>,
    /// Of the convolution, and of the residual.
    from: [Linear; 2],
    to: Linear,
}

impl<'a> Residual<'a> {
    /// From inputs: the residual's scale and zero point follow it, then those of the sum.
    pub(crate) fn read(inputs: &[Option<TensorView<'a>>]) -> Result<Option<Self>, OpError> {
        let Some(view) = inputs.get(RESIDUAL).copied().flatten() else { return Ok(None) };
        let from = [Linear::read(inputs, 6)?, Linear::read(inputs, RESIDUAL + 1)?];
        Ok(Some(Residual { view, from, to: Linear::read(inputs, RESIDUAL + 3)? }))
    }

    /// The zero points of the residual and of the sum.
    pub(crate) fn zeros(&self) -> [f32; 2] {
        [self.from[1].zero, self.to.zero]
    }

    /// See `sum_factors`.
    pub(crate) fn factors(&self) -> [f32; 2] {
        sum_factors(self.from, self.to)
    }

    /// Adds it to the outputs.
    pub(crate) fn add(&self, pool: &Pool, y: &mut TensorViewMut<'_>) {
        match y.ty() {
            ElementType::I8 => add_to(pool, y.slice::<i8>(), self.view.slice(), self.from, self.to),
            _ => add_to(pool, y.slice::<u8>(), self.view.slice(), self.from, self.to),
        }
    }
}
