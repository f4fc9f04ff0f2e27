//! Rotary position embedding. Bound by memory.

use std::marker::PhantomData;

use num_traits::{Float, Zero};

use crate::ops::OpError;
use crate::ops::attention::RotaryEmbedding;
use crate::ops::attention::rotary::RotaryHeads;
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{Activate, Store};
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::split_mut;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(Rotary::<T>(*node.op::<RotaryEmbedding>(), PhantomData))))
    }, else Err(node.no_kernel()))
}

pub(super) fn build_heads(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16, f64] => {
        Ok(CpuKernel::Tensor(Box::new(RotaryOfHeads::<T>(*node.op::<RotaryHeads>(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct Rotary<T>(RotaryEmbedding, PhantomData<fn(T)>);

impl<T: Store<Compute: Activate>> Kernel for Rotary<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let op = self.0;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let [cosines, sines, positions] = op.inputs.map(input);
        let (Some(x), Some(cosines), Some(sines), Some(y)) = (input(0), cosines, sines, &mut outputs[0])
        else {
            return Ok(());
        };
        let half = cosines.shape().last().copied().unwrap_or(0);
        let shape = x.shape();
        // Heads are side by side in a row for rank 3, and rows of their own for rank 4.
        let (batch, heads, steps, size) = match *shape {
            [b, h, s, d] => (b, h, s, d),
            [b, s, hidden] => {
                let size = match (op.heads, op.rotated) {
                    (0, 0) => 2 * half,
                    (0, _) => hidden,
                    (heads, _) => hidden / heads,
                };
                (b, hidden / size.max(1), s, size)
            }
            _ => return Ok(()),
        };
        let rotated = if op.rotated == 0 { size } else { op.rotated };
        if rotated > size || rotated != 2 * half || sines.shape() != cosines.shape() || size == 0 {
            return Err(OpError::Data(format!(
                "the caches have shapes {:?} and {:?}; allowed are equal shapes with a last dimension of half the \
                 {rotated} elements of a head of {size} that are rotated",
                cosines.shape(),
                sines.shape()
            )));
        }
        let rows = cosines.len() / half.max(1);
        let positions = Positions::new(positions, batch, steps, rows)?;
        let (x, cosines, sines) = (x.slice::<T>(), cosines.slice::<T>(), sines.slice::<T>());
        let by_step = shape.len() == 3;
        split_mut(cx.pool, y.slice::<T>(), size, 8192 / size + 1, |range, y| {
            for (i, y) in range.zip(y.chunks_exact_mut(size)) {
                let (b, s) = match by_step {
                    true => (i / heads / steps, i / heads % steps),
                    false => (i / steps / heads, i % steps),
                };
                let at = positions.row(b, s) * half;
                let (c, sn) = (&cosines[at..at + half], &sines[at..at + half]);
                y.copy_from_slice(&x[i * size..][..size]);
                rotate(op.interleaved, op.scale, c, sn, y);
            }
        });
        Ok(())
    }
}

/// Heads within the columns of a wider matrix.
struct RotaryOfHeads<T>(RotaryHeads, PhantomData<fn(T)>);

impl<T: Store<Compute: Activate>> Kernel for RotaryOfHeads<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let ([Some(x), Some(cosines), Some(sines)], Some(Some(y))) = (inputs, outputs.first_mut()) else {
            return Ok(());
        };
        let &[batch, rows, columns] = x.shape() else { return Ok(()) };
        let RotaryHeads { heads, size, offset } = self.0;
        let own = self.0.has_own_rows([cosines.shape(), sines.shape()], [batch, rows])?;
        let (x, cosines, sines) = (x.slice::<T>(), cosines.slice::<T>(), sines.slice::<T>());
        split_mut(cx.pool, y.slice::<T>(), size, 8192 / size + 1, |range, y| {
            for (i, y) in range.zip(y.chunks_exact_mut(size)) {
                let (row, head) = (i / heads, i % heads);
                let at = if own { row } else { row % rows } * size;
                let (c, s) = (&cosines[at..at + size / 2], &sines[at..at + size / 2]);
                y.copy_from_slice(&x[row * columns + offset + head * size..][..size]);
                rotate(false, 1.0, c, s, y);
            }
        });
        Ok(())
    }
}

/// The cache's row of each step.
enum Positions<'a> {
    /// The cache has a row for each step of each sample.
    Own {
        steps: usize,
    },
    Each {
        positions: &'a [i64],
        steps: usize,
    },
    /// One position for each sample's first step.
    First {
        positions: &'a [i64],
    },
}

impl<'a> Positions<'a> {
    fn new(view: Option<TensorView<'a>>, batch: usize, steps: usize, rows: usize) -> Result<Self, OpError> {
        let Some(view) = view else {
            return if rows == batch * steps {
                Ok(Positions::Own { steps })
            } else {
                Err(OpError::Data(format!(
                    "the caches have {rows} rows; allowed without positions are {}, one for each step",
                    batch * steps
                )))
            };
        };
        let positions = view.slice::<i64>();
        let (all, last) = match positions.len() {
            n if n == batch * steps => (Positions::Each { positions, steps }, 0),
            1 => (Positions::First { positions }, steps.max(1) - 1),
            n => {
                return Err(OpError::Data(format!(
                    "there are {n} positions; allowed are {} and 1",
                    batch * steps
                )));
            }
        };
        let limit = rows as i64 - last as i64;
        match positions.iter().find(|&&p| p < 0 || p >= limit) {
            Some(p) => Err(OpError::Data(format!("a position is {p}; allowed are 0 to {}", limit - 1))),
            None => Ok(all),
        }
    }

    fn row(&self, batch: usize, step: usize) -> usize {
        match self {
            Positions::Own { steps } => batch * steps + step,
            Positions::Each { positions, steps } => positions[batch * steps + step] as usize,
            Positions::First { positions } => positions[0] as usize + step,
        }
    }
}

/// Divides a row by the root of its mean square plus `epsilon`, and multiplies it with weights.
pub(super) fn normalise<T: Store<Compute: Activate>>(weight: &[T], epsilon: f32, y: &mut [T]) {
    let squares = y.iter().fold(T::Compute::zero(), |sum, x| sum + x.load() * x.load());
    let mean = squares / T::Compute::of(y.len() as f32) + T::Compute::of(epsilon);
    let factor = mean.sqrt().recip();
    y.iter_mut().zip(weight).for_each(|(y, w)| *y = T::store(y.load() * factor * w.load()));
}

/// Rotates the leading `2 · cosines.len()` elements of a head.
pub(super) fn rotate<T: Store<Compute: Activate>>(
    interleaved: bool,
    scale: f32,
    cosines: &[T],
    sines: &[T],
    y: &mut [T],
) {
    let half = cosines.len();
    let scale = T::Compute::of(scale);
    for i in 0..half {
        let (first, second) = if interleaved { (2 * i, 2 * i + 1) } else { (i, half + i) };
        let (a, b, c, s) = (y[first].load(), y[second].load(), cosines[i].load(), sines[i].load());
        y[first] = T::store((c * a - s * b) * scale);
        y[second] = T::store((s * a + c * b) * scale);
    }
}
