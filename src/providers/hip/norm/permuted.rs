//! Layer normalisation with the rows of its inputs at other places: no copy puts them there first.

use crate::ops::OpError;
use crate::ops::int_list::IntList;
use crate::ops::permuted::PermutedLayerNorm;
use crate::providers::ints::required_ints;
use crate::providers::{Argument, NodeContext};
use crate::tensor::ElementType;

use super::super::elements::shape_of;
use super::super::launch::Operand;
use super::super::{HipKernel, PlanBuilder};
use super::{Lie, Norm, Parameter, float, wanted};

/// Inputs.
const ROWS: usize = 1;
const SCALE: usize = 2;
const SHIFT: usize = 3;
const SKIP: usize = 4;

pub(super) fn build(node: &NodeContext<'_>) -> Result<Box<dyn HipKernel>, OpError> {
    Ok(Box::new(Permuted { op: *node.op::<PermutedLayerNorm>(), ty: float(node, 0)? }))
}

struct Permuted {
    op: PermutedLayerNorm,
    ty: ElementType,
}

impl HipKernel for Permuted {
    fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<(), OpError> {
        let shape = shape_of(inputs, 0)?;
        let along = shape.last().copied().unwrap_or(1);
        let rows = shape.iter().product::<usize>() / along.max(1);
        let places = permutation(&required_ints(&IntList::Input(ROWS), inputs)?)
            .filter(|places| rows == 0 || !places.is_empty() && rows.is_multiple_of(places.len()))
            .ok_or_else(|| OpError::Data(format!("rows is no permutation of parts of {rows} rows")))?;
        let mut norm = Norm::new(rows, along, self.op.epsilon, self.ty, self.ty);
        if wanted(outputs, 0).is_none() {
            norm.y.0 = plan.scratch(rows * along * self.ty.size());
        }
        let given = |i: usize| inputs.get(i).copied().flatten().map(|_| Operand::Input(i));
        let parameter = |i: usize| given(i).map(|at| Parameter::new(at, self.ty, Lie::PerElement));
        (norm.scale, norm.shift) = (parameter(SCALE), parameter(SHIFT));
        norm.skip = given(SKIP).map(|skip| (skip, rows.max(1)));
        norm.places = Some((plan.table(&places), places.len(), !self.op.skip_only));
        norm.sum = wanted(outputs, 1);
        norm.launch(plan)
    }

    fn host_inputs(&self) -> &[usize] {
        &[ROWS]
    }
}

/// The numbers as places in a table, when each from 0 on is there once.
fn permutation(rows: &[i64]) -> Option<Vec<u32>> {
    let mut seen = vec![false; rows.len()];
    let places = rows.iter().map(|&row| {
        let seen = seen.get_mut(usize::try_from(row).ok()?)?;
        (!std::mem::replace(seen, true)).then_some(u32::try_from(row).ok()?)
    });
    places.collect()
}
