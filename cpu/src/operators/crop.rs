//! ReverseSequence and CenterCropPad.

use crate::ops::OpError;
use crate::ops::crop::{CenterCropPad, ReverseSequence};

use crate::kernel::{Argument, Entry, KernelContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mapped::{Mapped, NOWHERE};
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::provider::ints::{Ints, shape_input};

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("ReverseSequence", |node| {
        mover::build::<ReverseSequence, _>(node, Reverse(node.op::<ReverseSequence>().clone()))
    }),
    Entry::new("CenterCropPad", |node| {
        mover::build::<CenterCropPad, _>(node, Center(node.op::<CenterCropPad>().clone()))
    }),
];

struct Reverse(ReverseSequence);

/// The two leading axes, and the elements below them.
struct ReversePlan {
    axes: [usize; 2],
    inner: usize,
}

impl Mover for Reverse {
    type Plan = ReversePlan;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<ReversePlan, OpError> {
        match data_shape(inputs)? {
            [a, b, rest @ ..] => Ok(ReversePlan { axes: [*a, *b], inner: rest.iter().product() }),
            shape => Err(OpError::Data(format!("the input has rank {}; at least 2 is needed", shape.len()))),
        }
    }

    fn run<T: Item>(
        &self,
        &ReversePlan { axes, inner }: &ReversePlan,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) else {
            return Ok(());
        };
        let lengths = Ints::required(inputs.view(1), "sequence_lens")?;
        let time_length = axes[self.0.time_axis];
        if let Some(n) = lengths.iter().find(|n| !(0..=time_length as i64).contains(n)) {
            return Err(OpError::Data(format!("a sequence length is {n}; allowed are 0 to {time_length}")));
        }
        let time_first = self.0.time_axis == 0;
        split_mut(cx.pool, output, inner, (GRAIN / inner.max(1)).max(1), |units, output| {
            for (u, y) in units.zip(output.chunks_exact_mut(inner)) {
                let (first, second) = (u / axes[1], u % axes[1]);
                let (time, batch) = if time_first { (first, second) } else { (second, first) };
                let length = lengths.get(batch) as usize;
                let from = if time < length { length - 1 - time } else { time };
                let unit = if time_first { from * axes[1] + batch } else { batch * axes[1] + from };
                y.clone_from_slice(&input[unit * inner..(unit + 1) * inner]);
            }
        });
        Ok(())
    }
}

struct Center(CenterCropPad);

impl Mover for Center {
    type Plan = Mapped;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Mapped, OpError> {
        let shape = data_shape(inputs)?;
        let sizes = shape_input(inputs, 1)?.unwrap_or_default();
        let mut maps: Vec<Vec<isize>> = shape.iter().map(|&n| (0..n as isize).collect()).collect();
        for (axis, size) in self.0.axes(shape.len())?.into_iter().zip(sizes) {
            let (n, size) = (shape[axis] as i64, size);
            // An odd difference leaves (or takes) one more at the end.
            let first = if size < n { (n - size) / 2 } else { -((size - n) / 2) };
            let inside = |i: i64| if (0..n).contains(&i) { i as isize } else { NOWHERE };
            maps[axis] = (0..size).map(|i| inside(i + first)).collect();
        }
        Ok(Mapped::new(shape, &maps))
    }

    fn run<T: Item>(
        &self,
        plan: &Mapped,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        if let (Some(input), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) {
            plan.run(cx.pool, input, &T::default(), output);
        }
        Ok(())
    }
}
