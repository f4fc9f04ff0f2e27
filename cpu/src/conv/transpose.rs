//! Transposed convolution: the product `weightᵀ · image` gives each input position's contribution to
//! its window, and windows are then added into the output.

use super::im2col::PatchTable;
use crate::gemm::{
    Compute, FusedEpilogue, InMemory, Left, Matrix, Offsets, PackedA, Product, Store, multiply,
};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::packing::Packing;
use crate::loops::parallel::split_mut;
use crate::loops::scratch::with_scratch;
use crate::ops::OpError;
use crate::ops::conv::transpose::ConvTranspose;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    if let Some(kernel) = super::lanes::build_transposed(node)? {
        return Ok(CpuKernel::Tensor(kernel));
    }
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        let op = node.op::<ConvTranspose>().clone();
        let packed = match node.constant(1) {
            Some(w) if T::PACK => {
                let (k, m) = (w.shape()[0] / op.group, w.shape()[1..].iter().product());
                let w = w.aligned()?;
                Some(PackedA::of(w.view().slice::<T>(), true, op.group, m, k, Packing::of(node), true))
            }
            _ => None,
        };
        Ok(CpuKernel::Tensor(Box::new(Transposed::<T> { op, packed })))
    }, else Err(node.no_kernel()))
}

struct Transposed<T: Store> {
    op: ConvTranspose,
    packed: Option<PackedA<T::Compute>>,
}

struct State {
    images: usize,
    /// Input channels of a group.
    channels: usize,
    /// Output channels of a group.
    out_channels: usize,
    /// Kernel positions.
    volume: usize,
    /// Input positions.
    positions: usize,
    /// Of the convolution that takes the output for its image.
    table: PatchTable,
}

impl<T: Store> Kernel for Transposed<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let g = self.op.geometry(&x.shape[2..], &w.shape[2..])?;
        let state = State {
            images: x.shape[0],
            channels: w.shape[0] / self.op.group,
            out_channels: w.shape[1],
            volume: g.kernel.iter().product(),
            positions: g.output.iter().product(),
            table: PatchTable::new(&g),
        };
        let columns = self.op.group * state.out_channels * state.volume * state.positions;
        Ok(Prepared { scratch: columns * size_of::<T::Compute>(), state: Some(Box::new(state)) })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let state = cx.state::<State>();
        let &State { images, channels, out_channels, volume, positions, ref table } = state;
        let group = self.op.group;
        let (m, n, k) = (out_channels * volume, positions, channels);
        let weight = inputs[1].map(|w| InMemory {
            matrix: Matrix::transposed(w.slice::<T>(), m),
            offsets: Offsets::Stride(k * m),
        });
        let a = match (&self.packed, &weight) {
            (Some(packed), _) => Left::Packed(packed, Offsets::Stride(1)),
            (None, Some(weight)) => weight.left(),
            (None, None) => return Ok(()),
        };
        let bias = inputs.get(2).copied().flatten().map(|b| b.slice::<T>());
        let (x, y) = (x.slice::<T>(), y.slice::<T>());
        let columns = &mut cx.scratch::<T::Compute>()[..group * m * n];
        let planes = group * out_channels;
        for image in 0..images {
            if cx.cancelled() {
                return Err(OpError::Cancelled);
            }
            let input = &x[image * group * k * n..][..group * k * n];
            let input = InMemory { matrix: Matrix::new(input, n), offsets: Offsets::Stride(k * n) };
            let epilogue = FusedEpilogue::new(&mut *columns, m, n);
            multiply(cx.pool, &Product { batch: group, m, n, k, a, b: input.right() }, &epilogue);
            let out = &mut y[image * planes * table.plane()..][..planes * table.plane()];
            let (columns, grain) = (&*columns, (1 << 15) / (volume * n).max(1) + 1);
            split_mut(cx.pool, out, table.plane(), grain, |range, out| {
                for (plane, out) in range.zip(out.chunks_exact_mut(table.plane().max(1))) {
                    let columns = &columns[plane * volume * n..][..volume * n];
                    let start = bias.map_or(T::Compute::default(), |b| b[plane].load());
                    add_windows(table, columns, start, out);
                }
            });
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.packed.is_some()
    }
}

/// Adds every window's contributions to one plane of the output that starts from a constant.
fn add_windows<T: Store>(table: &PatchTable, columns: &[T::Compute], start: T::Compute, out: &mut [T]) {
    with_scratch([out.len()], |[sums]: [&mut [T::Compute]; 1]| {
        sums.fill(start);
        let (line, stride) = (table.line(), table.stride());
        let positions = table.lines() * line;
        for i in 0..table.lines() {
            table.taps(i, |k, start, range, at| {
                if range.is_empty() {
                    return;
                }
                let from = &columns[k * positions + i * line..][range.clone()];
                let to = &mut sums[(start as isize + (range.start * stride) as isize + at) as usize..];
                if stride == 1 {
                    to.iter_mut().zip(from).for_each(|(y, &x)| *y = y.sum(x));
                } else {
                    to.iter_mut().step_by(stride).zip(from).for_each(|(y, &x)| *y = y.sum(x));
                }
            });
        }
        out.iter_mut().zip(&*sums).for_each(|(y, &x)| *y = T::store(x));
    });
}
