//! Mixtures of experts. Bound: reading the weights of the experts that any row chose.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::moe::{ExpertActivation, Experts, GateLayout};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::gemm::{FusedEpilogue, InMemory, Left, Matrix, Offsets, Product, Store, multiply};
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::scratch::with_scratch;

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("MoE", build).domain("com.microsoft"), Entry::new("QMoE", build).domain("com.microsoft")];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(Box::new(ExpertKernel::<T>(*node.op(), PhantomData))))
    }, else Err(node.no_kernel()))
}

struct ExpertKernel<T>(Experts, PhantomData<fn(T)>);

#[derive(Clone, Copy)]
struct Sizes {
    tokens: usize,
    experts: usize,
    hidden: usize,
    /// Columns of the first product, and what the activation leaves of them.
    wide: usize,
    inner: usize,
    /// Elements of temporary memory: rows of an expert, first product, third product, activations,
    /// second product, sums, weights.
    scratch: [usize; 7],
}

impl<T: Store<Compute = f32>> Kernel for ExpertKernel<T> {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let at = self.0.inputs;
        let shape = |i: usize| inputs.get(i).copied().flatten().map_or(&[][..], |a| a.shape);
        let (&[.., hidden], &[tokens, experts], &[_, wide, _]) = (shape(0), shape(1), shape(at.weights[0]))
        else {
            return Ok(Prepared::default());
        };
        let inner = wide / self.0.fusion();
        let third = if shape(at.weights[2]).is_empty() { 0 } else { tokens * inner };
        let weights = if self.0.quantized.is_some() { wide.max(inner) * hidden } else { 0 };
        let rows = tokens * hidden;
        let scratch = [rows, tokens * wide, third, tokens * inner, rows, rows, weights];
        let sizes = Sizes { tokens, experts, hidden, wide, inner, scratch };
        let bytes = scratch.iter().sum::<usize>() * size_of::<f32>();
        Ok(Prepared { state: Some(Box::new(sizes)), scratch: bytes })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let sizes = *cx.state::<Sizes>();
        let input = |i: usize| inputs.get(i).copied().flatten();
        let (Some(x), Some(router), Some(y)) = (input(0), input(1), &mut outputs[0]) else { return Ok(()) };
        let (x, router) = (x.slice::<T>(), router.slice::<T>());
        let mixing = input(self.0.inputs.router_weights).map(|view| view.slice::<T>());
        let mut rest = cx.scratch::<f32>();
        let [rows, first, third, inner, second, sums, weights] = sizes.scratch.map(|len| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(len);
            rest = after;
            part
        });
        let chosen = sizes.tokens * self.0.k;
        with_scratch([chosen], |[experts]: [&mut [u32]; 1]| {
            with_scratch([chosen], |[shares]: [&mut [f32]; 1]| {
                self.route(router, mixing, sizes.experts, experts, shares);
                sums.fill(0.0);
                for expert in 0..sizes.experts {
                    if cx.cancelled() {
                        return Err(OpError::Cancelled);
                    }
                    let hidden = sizes.hidden;
                    let places = || (0..chosen).filter(|&i| experts[i] == expert as u32);
                    let count = places().count();
                    if count == 0 {
                        continue;
                    }
                    for (row, i) in rows.chunks_exact_mut(hidden.max(1)).zip(places()) {
                        let token = &x[i / self.0.k * hidden..][..hidden];
                        row.iter_mut().zip(token).for_each(|(y, x)| *y = x.load());
                    }
                    let Sizes { wide, inner: width, .. } = sizes;
                    let product =
                        |i: usize, a: &[f32], n: usize, k: usize, weights: &mut [f32], out: &mut [f32]| {
                            self.multiply(cx, &input, (i, expert), a, (count, n, k), weights, out)
                        };
                    product(0, rows, wide, hidden, weights, first);
                    if !third.is_empty() {
                        product(2, rows, width, hidden, weights, third);
                    }
                    let third = (!third.is_empty()).then_some(&third[..]);
                    activate(cx, self.0.activation, first, third, &mut inner[..count * width], wide, width);
                    product(1, inner, hidden, width, weights, second);
                    for (row, i) in second.chunks_exact(hidden.max(1)).zip(places()) {
                        let sum = &mut sums[i / self.0.k * hidden..][..hidden];
                        sum.iter_mut().zip(row).for_each(|(y, x)| *y += shares[i] * x);
                    }
                }
                Ok(())
            })
        })?;
        y.slice::<T>().iter_mut().zip(&*sums).for_each(|(y, &x)| *y = T::store(x));
        Ok(())
    }
}

impl<T: Store<Compute = f32>> ExpertKernel<T> {
    /// The experts of each row and their shares: the softmax of all scores, of which the largest count.
    fn route(
        &self,
        router: &[T],
        mixing: Option<&[T]>,
        count: usize,
        experts: &mut [u32],
        shares: &mut [f32],
    ) {
        let k = self.0.k;
        for (row, (experts, shares)) in
            experts.chunks_exact_mut(k).zip(shares.chunks_exact_mut(k)).enumerate()
        {
            let scores = &router[row * count..][..count];
            for j in 0..k {
                let free = |i: &usize| !experts[..j].contains(&(*i as u32));
                let larger =
                    |best: usize, i: usize| if scores[i].load() > scores[best].load() { i } else { best };
                experts[j] = (0..count).filter(free).reduce(larger).unwrap_or(0) as u32;
            }
            let largest = scores[experts[0] as usize].load();
            let total: f32 = scores.iter().map(|x| (x.load() - largest).exp()).sum();
            for (share, &expert) in shares.iter_mut().zip(&*experts) {
                *share = match mixing {
                    Some(mixing) => mixing[row * count + expert as usize].load(),
                    None => (scores[expert as usize].load() - largest).exp() / total,
                };
            }
            if self.0.normalize {
                let sum: f32 = shares.iter().sum();
                shares.iter_mut().filter(|_| sum != 0.0).for_each(|share| *share /= sum);
            }
        }
    }

    /// `a · Wᵀ + b` with the weights of one product of one expert.
    fn multiply<'a>(
        &self,
        cx: &KernelContext<'_>,
        input: &dyn Fn(usize) -> Option<TensorView<'a>>,
        (i, expert): (usize, usize),
        a: &[f32],
        (m, n, k): (usize, usize, usize),
        unpacked: &mut [f32],
        out: &mut [f32],
    ) {
        let at = self.0.inputs;
        let Some(weights) = input(at.weights[i]) else { return };
        let a = Left::Plain(Matrix::new(a, k), Offsets::Stride(0));
        let offsets = Offsets::Stride(0);
        if self.0.quantized.is_some() {
            self.unpack(cx, input, (i, expert), (n, k), &mut unpacked[..n * k]);
            let b = InMemory { matrix: Matrix::transposed(&*unpacked, k), offsets };
            multiply(
                cx.pool,
                &Product { batch: 1, m, n, k, a, b: b.right() },
                &FusedEpilogue::new(out, m, n),
            );
        } else {
            let weights = &weights.slice::<T>()[expert * n * k..][..n * k];
            let b = InMemory { matrix: Matrix::transposed(weights, k), offsets };
            multiply(
                cx.pool,
                &Product { batch: 1, m, n, k, a, b: b.right() },
                &FusedEpilogue::new(out, m, n),
            );
        }
        if let Some(bias) = input(at.biases[i]) {
            let bias = &bias.slice::<T>()[expert * n..][..n];
            for row in out.chunks_exact_mut(n.max(1)).take(m) {
                row.iter_mut().zip(bias).for_each(|(y, b)| *y += b.load());
            }
        }
    }

    /// The weights `[n, k]` of one expert in float: `(element − zero point) · scale`.
    fn unpack<'a>(
        &self,
        cx: &KernelContext<'_>,
        input: &dyn Fn(usize) -> Option<TensorView<'a>>,
        (i, expert): (usize, usize),
        (n, k): (usize, usize),
        out: &mut [f32],
    ) {
        let (at, Some(quantized)) = (self.0.inputs, self.0.quantized) else { return };
        let (Some(weights), Some(scales)) = (input(at.weights[i]), input(at.scales[i])) else { return };
        let bits = quantized.bits[i];
        let block = quantized.block.unwrap_or(k).max(1);
        let (blocks, row_bytes) = (k / block, k * bits / 8);
        let element = |bytes: &[u8], i: usize| {
            let place = i * bits;
            bytes[place / 8] >> (place % 8) & (0xff >> (8 - bits))
        };
        let scale = |i: usize| match scales.ty() {
            ElementType::F16 => scales.slice::<f16>()[i].to_f32(),
            ElementType::BF16 => scales.slice::<bf16>()[i].to_f32(),
            _ => scales.slice::<f32>()[i],
        };
        let points = input(at.zero_points[i]).map(|view| view.slice::<u8>());
        let point = |row: usize, b: usize| match (points, quantized.block) {
            (None, _) => 1 << (bits - 1),
            (Some(points), None) => element(&points[expert * (n * bits).div_ceil(8)..], row),
            (Some(points), Some(_)) => {
                element(&points[(expert * n + row) * (blocks * bits).div_ceil(8)..], b)
            }
        };
        let weights = &weights.slice::<u8>()[expert * n * row_bytes..][..n * row_bytes];
        split_mut(cx.pool, out, k, GRAIN / k.max(1) + 1, |range, out| {
            for (row, out) in range.zip(out.chunks_exact_mut(k)) {
                let bytes = &weights[row * row_bytes..][..row_bytes];
                for (b, out) in out.chunks_exact_mut(block).enumerate() {
                    let scale = scale((expert * n + row) * blocks + b);
                    let point = point(row, b) as i32;
                    for (j, y) in out.iter_mut().enumerate() {
                        *y = (element(bytes, b * block + j) as i32 - point) as f32 * scale;
                    }
                }
            }
        });
    }
}

/// What the second product takes: rows of `width` from rows of `wide`; a third product gates them.
fn activate(
    cx: &KernelContext<'_>,
    activation: ExpertActivation,
    first: &[f32],
    third: Option<&[f32]>,
    out: &mut [f32],
    wide: usize,
    width: usize,
) {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    split_mut(cx.pool, out, width, 4096 / width.max(1) + 1, |range, out| {
        for (row, out) in range.zip(out.chunks_exact_mut(width)) {
            let first = &first[row * wide..][..wide];
            let third = third.map(|third| &third[row * width..][..width]);
            for (i, y) in out.iter_mut().enumerate() {
                let gate = third.map_or(1.0, |third| third[i]);
                let x = first[i];
                *y = match activation {
                    ExpertActivation::Relu => x.max(0.0) * gate,
                    ExpertActivation::Gelu => {
                        let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
                        0.5 * x * (1.0 + inner.tanh()) * gate
                    }
                    ExpertActivation::Silu => x * sigmoid(x) * gate,
                    ExpertActivation::Identity => x * gate,
                    ExpertActivation::SwiGlu { alpha, beta, limit, layout } => {
                        let (g, l) = match layout {
                            GateLayout::Apart => (x, gate),
                            GateLayout::Interleaved => (first[2 * i], first[2 * i + 1]),
                            GateLayout::Halves => (x, first[width + i]),
                        };
                        let limit = limit.unwrap_or(f32::INFINITY);
                        let (g, l) = (g.min(limit), l.max(-limit).min(limit));
                        g * sigmoid(alpha * g) * (l + beta)
                    }
                };
            }
        }
    });
}

#[cfg(test)]
mod tests;
