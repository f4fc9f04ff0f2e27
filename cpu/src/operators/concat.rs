//! Concat and Split: contiguous runs from and to several tensors.

use crate::ops::OpError;
use crate::ops::concat::{Concat, Split};
use crate::ops::movement::axis_of;

use crate::kernel::{Argument, Entry, KernelContext, data_shape};
use crate::loops::item::Item;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::strided::Strided;
use crate::provider::ints::int_list;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Concat", |node| {
        let inputs = node.input_types.len();
        mover::build::<Concat, _>(node, Join { axis: node.op::<Concat>().axis, inputs })
    }),
    Entry::new("Split", |node| mover::build::<Split, _>(node, Cut(node.op::<Split>().clone()))),
];

/// Bound: one read and one write of the output.
struct Join {
    axis: i64,
    inputs: usize,
}

/// How many elements in a row each input gives at a time.
struct Runs {
    lengths: Vec<usize>,
    total: usize,
}

impl Mover for Join {
    type Plan = Runs;

    fn plan(&self, inputs: &[Option<Argument<'_>>], outputs: &[Option<&[usize]>]) -> Result<Runs, OpError> {
        let rank = outputs.first().copied().flatten().map_or(data_shape(inputs)?.len(), <[usize]>::len);
        let axis = axis_of(self.axis, rank)?;
        // A tensor without elements may have any shape.
        let length = |shape: &[usize]| if shape.contains(&0) { 0 } else { shape[axis..].iter().product() };
        let lengths: Vec<usize> = inputs.iter().map(|i| i.map_or(0, |i| length(i.shape))).collect();
        Ok(Runs { total: lengths.iter().sum(), lengths })
    }

    fn run<T: Item>(
        &self,
        plan: &Runs,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let Some(output) = outputs.items::<T>(0) else { return Ok(()) };
        if plan.total == 0 {
            return Ok(());
        }
        if output.len() == plan.total {
            // One run of each input: large ones are copied by several threads.
            let mut rest = output;
            for i in 0..self.inputs {
                let (part, after) = rest.split_at_mut(plan.lengths[i]);
                rest = after;
                if let Some(input) = inputs.items::<T>(i) {
                    split_mut(cx.pool, part, 1, 4 * GRAIN, |range, part| {
                        part.clone_from_slice(&input[range])
                    });
                }
            }
            return Ok(());
        }
        split_mut(cx.pool, output, plan.total, (GRAIN / plan.total).max(1), |rows, output| {
            let mut start = 0;
            for (i, &length) in plan.lengths.iter().enumerate() {
                if let Some(input) = inputs.items::<T>(i).filter(|_| length > 0) {
                    let input = &input[rows.start * length..rows.end * length];
                    for (row, x) in output.chunks_exact_mut(plan.total).zip(input.chunks_exact(length)) {
                        row[start..start + length].clone_from_slice(x);
                    }
                }
                start += length;
            }
        });
        Ok(())
    }
}

/// Bound: one read and one write of the input.
struct Cut(Split);

impl Mover for Cut {
    /// One copy for each output.
    type Plan = Vec<Strided>;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Vec<Strided>, OpError> {
        let shape = data_shape(inputs)?;
        let axis = axis_of(self.0.axis, shape.len())?;
        let lengths = match int_list(&self.0.lengths, inputs)? {
            Some(lengths) => lengths.into_iter().map(|n| n as usize).collect(),
            None => self.0.equal_lengths(shape[axis]),
        };
        let outer: usize = shape[..axis].iter().product();
        let inner: usize = shape[axis + 1..].iter().product();
        let total = (shape[axis] * inner) as isize;
        let mut start = 0;
        let mut copies = Vec::with_capacity(lengths.len());
        for length in lengths {
            copies.push(Strided::new(&[outer, length * inner], &[total, 1], start));
            start += length * inner;
        }
        Ok(copies)
    }

    fn run<T: Item>(
        &self,
        plan: &Vec<Strided>,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        let Some(input) = inputs.items::<T>(0) else { return Ok(()) };
        for (i, copy) in plan.iter().enumerate() {
            if let Some(output) = outputs.items::<T>(i) {
                copy.run(cx.pool, input, output);
            }
        }
        Ok(())
    }
}
