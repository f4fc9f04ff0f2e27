//! `Dropout`: the identity, unless a model asks for training.

mod mersenne;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::ops::OpError;
use crate::ops::dropout::Dropout;
use crate::tensor::{Bool, ElementType, TensorView, TensorViewMut};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::convert::{Rounding, reader, writer};
use crate::ops::cast::RoundMode;
use mersenne::Mersenne;

pub(super) const KERNELS: &[Entry] = &[Entry::new("Dropout", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let ty = node.input(0).ok_or_else(|| node.no_kernel())?;
    let (Some(read), Some(write)) = (reader(ty), writer(ty)) else { return Err(node.no_kernel()) };
    Ok(CpuKernel::Tensor(Box::new(DropoutKernel {
        op: *node.op::<Dropout>(),
        read,
        write,
        runs: AtomicU32::new(0),
    })))
}

struct DropoutKernel {
    op: Dropout,
    read: fn(&TensorView<'_>, &mut [f64]),
    write: fn(&[f64], &mut TensorViewMut<'_>, Rounding),
    /// Counts runs: without a seed each one draws other numbers.
    runs: AtomicU32,
}

impl Kernel for DropoutKernel {
    fn run(
        &self,
        _cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let input = |i: usize| inputs.get(i).copied().flatten();
        let training = input(2).is_some_and(|t| t.slice::<Bool>().first().is_some_and(|t| t.get()));
        let ratio = self.ratio(input(1))?;
        let (output, mask) = match outputs {
            [output, mask, ..] => (output, mask.as_mut()),
            [output] => (output, None),
            [] => return Ok(()),
        };
        if training && ratio != 0.0 {
            return self.train(x, ratio, output.as_mut(), mask);
        }
        if let Some(output) = output {
            output.bytes().copy_from_slice(x.bytes());
        }
        if let Some(mask) = mask {
            self.set_mask(mask, |_| self.op.keeps);
        }
        Ok(())
    }
}

impl DropoutKernel {
    fn ratio(&self, given: Option<TensorView<'_>>) -> Result<f64, OpError> {
        let mut ratio = [self.op.ratio as f64];
        if let Some(given) = given.filter(|g| g.len() == 1)
            && let Some(read) = reader(given.ty())
        {
            read(&given, &mut ratio);
        }
        match ratio[0] {
            r if (0.0..1.0).contains(&r) => Ok(r),
            r => Err(OpError::Data(format!("the ratio is {r}; allowed is 0 up to, but not including, 1"))),
        }
    }

    /// Drops elements and scales the others up. Not a hot path: one element at a time.
    fn train(
        &self,
        x: TensorView<'_>,
        ratio: f64,
        output: Option<&mut TensorViewMut<'_>>,
        mask: Option<&mut TensorViewMut<'_>>,
    ) -> Result<(), OpError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        let seed = self.op.seed.map_or(run, |seed| seed as u32);
        if let Some(output) = output {
            let (ty, size) = (x.ty(), x.ty().size());
            let mut random = Mersenne::new(seed);
            let rounding = Rounding { saturate: true, mode: RoundMode::Up };
            for (x, y) in x.bytes().chunks(size).zip(output.bytes().chunks_mut(size)) {
                let mut value = [0.0];
                (self.read)(&TensorView::new(ty, &[1], x), &mut value);
                value[0] *= if random.uniform() >= ratio { 1.0 / (1.0 - ratio) } else { 0.0 };
                (self.write)(&value, &mut TensorViewMut::new(ty, &[1], y), rounding);
            }
        }
        if let Some(mask) = mask {
            let mut random = Mersenne::new(seed);
            self.set_mask(mask, |_| random.uniform() >= ratio);
        }
        Ok(())
    }

    fn set_mask(&self, mask: &mut TensorViewMut<'_>, mut keep: impl FnMut(usize) -> bool) {
        let (ty, size) = (mask.ty(), mask.ty().size());
        let rounding = Rounding { saturate: true, mode: RoundMode::Up };
        for (i, y) in mask.bytes().chunks_mut(size).enumerate() {
            let keep = keep(i) as u8;
            match ty {
                ElementType::Bool => y[0] = keep,
                ty => (self.write)(&[keep as f64], &mut TensorViewMut::new(ty, &[1], y), rounding),
            }
        }
    }
}
