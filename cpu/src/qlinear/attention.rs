//! QAttention: the exact product of input and weight, then attention in f32, one head at a time.

use super::matmul::{Operand, multiply};
use super::parameter::Linear;
use super::{Bytes, Zeros, scales};
use crate::gemm::{GemmShape, Matrix, Offsets, multiply_block};
use crate::kernel::{Argument, CpuKernel, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::loops::statistics::Real;
use crate::ops::OpError;
use crate::ops::qlinear::transformer::QAttention;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

pub(crate) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    if node.input(2) != Some(ElementType::F32) {
        return Err(node.no_kernel());
    }
    Ok(CpuKernel::Tensor(Box::new(AttentionKernel(*node.op::<QAttention>()))))
}

struct AttentionKernel(QAttention);

#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    steps: usize,
    depth: usize,
    /// Numbers of a head.
    head: usize,
    past: usize,
}

impl Sizes {
    fn keys(&self) -> usize {
        self.past + self.steps
    }
}

impl Kernel for AttentionKernel {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let sizes = Sizes {
            batch: x.shape[0],
            steps: x.shape[1],
            depth: x.shape[2],
            head: w.shape[1] / 3 / self.0.heads,
            past: inputs.get(8).copied().flatten().map_or(0, |past| past.shape[3]),
        };
        let scratch = sizes.batch * sizes.steps * w.shape[1] * size_of::<f64>();
        Ok(Prepared { state: Some(Box::new(sizes)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let sizes = *cx.state::<Sizes>();
        let heads = self.0.heads;
        let projected = project(cx, sizes, 3 * heads * sizes.head, inputs)?;
        let input = |i: usize| inputs.get(i).copied().flatten();
        let mask = input(5).map(|mask| (mask.shape(), mask.slice::<i32>()));
        let past = input(8).map(|past| past.slice::<f32>());
        let mut outputs =
            outputs.iter_mut().map(|output| output.as_mut().map(|y| Parts::new(y.slice::<f32>())));
        let (y, present) = (outputs.next().flatten(), outputs.next().flatten());
        let head = Head { op: self.0, sizes, projected, mask, past };
        cx.pool.for_each(sizes.batch * heads, &|i| head.run(i, y.as_ref(), present.as_ref()));
        Ok(())
    }
}

/// Queries, keys and values of each step side by side.
fn project<'a>(
    cx: &KernelContext<'a>,
    sizes: Sizes,
    columns: usize,
    inputs: &[Option<TensorView<'_>>],
) -> Result<&'a [f64], OpError> {
    let rows = sizes.batch * sizes.steps;
    let sums = &mut cx.scratch::<f64>()[..rows * columns];
    let (Some(x), Some(w), Some(bias), Some(scale)) = (inputs[0], inputs[1], inputs[2], inputs[4]) else {
        return Ok(sums);
    };
    let from = Linear::of(inputs, 3, 6)?;
    let offsets = Offsets::Stride(0);
    let operand = |view, columns, zero: Option<TensorView<'_>>, by_row| Operand {
        data: Bytes::new(view),
        strides: (columns, 1),
        offsets,
        zeros: Zeros { values: None, offsets, stride: zero.map_or(0, |zero| usize::from(zero.len() > 1)) },
        by_row,
    };
    let zero = |i: usize| inputs.get(i).copied().flatten();
    let mut a = operand(x, sizes.depth, None, true);
    a.zeros.values = zero(6).map(Bytes::new);
    let mut b = operand(w, columns, zero(7), false);
    b.zeros.values = zero(7).map(Bytes::new);
    let shape = GemmShape { batch: 1, m: rows, n: columns, k: sizes.depth };
    multiply(cx.pool, shape, &a, &b, sums);
    let (bias, stride) = (bias.slice::<f32>(), usize::from(scale.len() > 1));
    let scale = scales(scale);
    for row in sums.chunks_exact_mut(columns.max(1)) {
        for (j, sum) in row.iter_mut().enumerate() {
            *sum = *sum * from.scale as f64 * scale(j * stride) + bias[j] as f64;
        }
    }
    Ok(sums)
}

/// What each head needs.
struct Head<'a> {
    op: QAttention,
    sizes: Sizes,
    projected: &'a [f64],
    mask: Option<(&'a [usize], &'a [i32])>,
    past: Option<&'a [f32]>,
}

impl Head<'_> {
    /// Computes head `i` of all heads of the batch.
    fn run(&self, i: usize, y: Option<&Parts<'_, f32>>, present: Option<&Parts<'_, f32>>) {
        let Sizes { batch, steps, head, past, .. } = self.sizes;
        let (keys, heads) = (self.sizes.keys(), self.op.heads);
        let (sample, own) = (i / heads, i % heads);
        let lengths = [steps * head, keys * head, keys * head, steps * keys, steps * head];
        with_scratch(lengths, |[q, k, v, scores, out]: [&mut [f32]; 5]| {
            let factor = self.op.scale.unwrap_or(1.0 / (head as f32).sqrt());
            self.load(0, sample, own, q);
            q.iter_mut().for_each(|x| *x *= factor);
            for (which, to) in [&mut *k, &mut *v].into_iter().enumerate() {
                if let Some(values) = self.past {
                    let at = (which * batch * heads + i) * past * head;
                    to[..past * head].copy_from_slice(&values[at..at + past * head]);
                }
                self.load(1 + which, sample, own, &mut to[past * head..]);
                if let Some(present) = present {
                    let at = (which * batch * heads + i) * keys * head;
                    // SAFETY: each head has a part of its own.
                    unsafe { present.get(at..at + keys * head) }.copy_from_slice(to);
                }
            }
            let Some(y) = y.filter(|_| steps * head > 0) else { return };
            multiply_block(
                scores,
                (steps, keys, head),
                Matrix::new(q, head),
                Matrix::transposed(k, head),
                false,
            );
            for (step, scores) in scores.chunks_exact_mut(keys).enumerate() {
                self.mask(sample, step, scores);
                let max = f32::largest(scores);
                scores.iter_mut().for_each(|x| *x -= max);
                f32::exp_all(scores);
                let sum = f32::sum(scores) as f32;
                scores.iter_mut().for_each(|x| *x /= sum);
            }
            multiply_block(out, (steps, head, keys), Matrix::new(scores, keys), Matrix::new(v, head), false);
            for (step, out) in out.chunks_exact(head).enumerate() {
                let at = ((sample * steps + step) * heads + own) * head;
                // SAFETY: as above.
                unsafe { y.get(at..at + head) }.copy_from_slice(out);
            }
        });
    }

    /// Queries (0), keys (1) or values (2) of a head.
    fn load(&self, which: usize, sample: usize, own: usize, to: &mut [f32]) {
        let Sizes { steps, head, .. } = self.sizes;
        let hidden = self.op.heads * head;
        for (step, to) in to.chunks_exact_mut(head.max(1)).enumerate() {
            let from = &self.projected[((sample * steps + step) * 3 + which) * hidden + own * head..];
            to.iter_mut().zip(from).for_each(|(to, &x)| *to = x as f32);
        }
    }

    fn mask(&self, sample: usize, step: usize, scores: &mut [f32]) {
        let Sizes { batch, steps, past, .. } = self.sizes;
        let keys = scores.len();
        let mut mask = |hidden: &dyn Fn(usize) -> bool| {
            let hidden = scores.iter_mut().enumerate().filter(|(j, _)| hidden(*j));
            hidden.for_each(|(_, x)| *x += self.op.masked);
        };
        match self.mask {
            // The keys' end, or their ends and then their begins.
            Some(([n], ends)) if *n == batch => mask(&|j| j as i64 >= ends[sample] as i64),
            Some(([_], ends)) => {
                let (end, begin) = (ends[sample] as i64, ends[batch + sample] as i64);
                mask(&|j| j as i64 >= end || (j as i64) < begin);
            }
            Some(([rows, n], ones)) if *rows == batch && *n == keys => {
                mask(&|j| ones[sample * keys + j] <= 0);
            }
            Some(([_, _, _], ones)) => mask(&|j| ones[(sample * steps + step) * keys + j] <= 0),
            // One column that stands for no mask.
            _ => {}
        }
        if self.op.causal {
            scores[past + step + 1..].fill(f32::NEG_INFINITY);
        }
    }
}
