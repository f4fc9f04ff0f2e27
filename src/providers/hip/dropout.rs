//! Dropout outside of training: a copy, and a mask that is the same everywhere.

use crate::ops::{self, OpError};
use crate::providers::{Argument, NodeContext};
use crate::tensor::{Bool, ElementType};

use super::copy::{Axis, StridedCopy};
use super::elements::{element_size, shape_of};
use super::fill::{Fill, plan_fill};
use super::launch::Operand;
use super::{Entry, HipKernel, PlanBuilder};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Dropout", build)];

/// The input that says whether the node trains.
const TRAINING: usize = 2;

fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    let trains = match node.constant(TRAINING) {
        Some(training) => training.aligned()?.view().slice::<Bool>().iter().any(|t| t.get()),
        None => node.has_input(TRAINING),
    };
    if trains {
        return Err(node.no_kernel());
    }
    let kept = node.op::<ops::dropout::Dropout>().keeps;
    let mask = match node.output(1) {
        Some(ElementType::Bool) => Some((Fill::of(&[u8::from(kept)]), 1)),
        Some(ty) => {
            Some((Fill::of_number(f32::from(u8::from(kept)), ty).ok_or_else(|| node.no_kernel())?, ty.size()))
        }
        None => None,
    };
    Ok(Box::new(Dropout { mask, size: element_size(node, 0)? }))
}

struct Dropout {
    /// An element of the mask that is wanted, and its bytes.
    mask: Option<(Fill, usize)>,
    /// Bytes of an element.
    size: usize,
}

impl HipKernel for Dropout {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let count = shape_of(inputs, 0)?.iter().product();
        if outputs.first().is_some_and(Option::is_some) {
            let axes = [Axis { length: count, to: 1, from: 1 }];
            StridedCopy::new(&axes, 0, 0, self.size).plan(plan, Operand::Output(0), Operand::Input(0))?;
        }
        match self.mask {
            Some((one, size)) => plan_fill(plan, Operand::Output(1), count, one, size),
            None => Ok(()),
        }
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }

    fn reshapes(&self) -> bool {
        self.mask.is_none()
    }
}
