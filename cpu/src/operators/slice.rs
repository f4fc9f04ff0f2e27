//! Slice.

use crate::ops::OpError;
use crate::ops::slice::{Cut, Slice, cuts};

use super::movement::run_strided;
use crate::kernel::{Argument, Entry, KernelContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::strided::{Strided, strides_of};
use crate::provider::ints::{int_list, required_ints};

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Slice", |node| mover::build::<Slice, _>(node, SliceMover(node.op::<Slice>().clone())))];

struct SliceMover(Slice);

impl Mover for SliceMover {
    type Plan = Strided;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Strided, OpError> {
        let shape = data_shape(inputs)?;
        let starts = required_ints(&self.0.starts, inputs)?;
        let ends = required_ints(&self.0.ends, inputs)?;
        let axes = int_list(&self.0.axes, inputs)?;
        let steps = int_list(&self.0.steps, inputs)?;
        let cuts = cuts(shape, &starts, &ends, axes.as_deref(), steps.as_deref())?;
        let strides = strides_of(shape);
        let dims: Vec<usize> = cuts.iter().map(|c| c.count).collect();
        // A cut of one position may come with a step that no stride can hold.
        let step = |c: &Cut| if c.count > 1 { c.step as isize } else { 1 };
        let steps: Vec<isize> = cuts.iter().zip(&strides).map(|(c, s)| step(c) * s).collect();
        let offset = cuts.iter().zip(&strides).map(|(c, s)| c.start * *s as usize).sum();
        Ok(Strided::new(&dims, &steps, offset))
    }

    fn run<T: Item>(
        &self,
        plan: &Strided,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        run_strided::<T>(plan, cx, inputs, outputs);
        Ok(())
    }
}
