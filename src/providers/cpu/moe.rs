//! Mixtures of experts. Bound: reading the weights of the experts that any row chose.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::moe::{ExpertActivation, Experts, GateLayout};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use super::gemm::{Epilogue, InMemory, Left, Matrix, Offsets, Product, Store, multiply};
use super::number::dispatch;
use super::parallel::{GRAIN, split_mut};
use super::scratch::with_scratch;
use super::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};

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
            multiply(cx.pool, &Product { batch: 1, m, n, k, a, b: b.right() }, &Epilogue::new(out, m, n));
        } else {
            let weights = &weights.slice::<T>()[expert * n * k..][..n * k];
            let b = InMemory { matrix: Matrix::transposed(weights, k), offsets };
            multiply(cx.pool, &Product { batch: 1, m, n, k, a, b: b.right() }, &Epilogue::new(out, m, n));
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
mod tests {
    use super::super::testing::{checksum, elements, run_in, t};
    use crate::graph::Attribute;
    use crate::ops::OpError;
    use crate::tensor::Value;

    fn pattern(k: usize, shape: &[usize], sign: f32) -> Option<Value> {
        let element = |i| ((i * (7 + 2 * k) + k) % 13) as f32 / 8.0 - 0.75;
        let absolute = |x: f32| if sign < 0.0 { x.abs() } else { x };
        t(shape, &(0..shape.iter().product()).map(element).map(absolute).collect::<Vec<_>>())
    }

    fn bytes(k: usize, shape: &[usize]) -> Option<Value> {
        t(
            shape,
            &(0..shape.iter().product()).map(|i| ((i * (37 + 2 * k) + k) % 256) as u8).collect::<Vec<_>>(),
        )
    }

    /// Activation, fusion, experts of a row, whether their weights are normalised, bits (0: floats), block,
    /// whether there are zero points.
    type Case = (&'static str, i64, i64, i64, usize, usize, bool);

    fn run((activation, fusion, k, norm, bits, block, points): Case) -> Result<Vec<Value>, OpError> {
        let (rows, experts, width) = (5, 3, if fusion > 0 { 2 } else { 1 });
        let mut attributes = vec![
            ("activation_type", Attribute::String(activation.into())),
            ("swiglu_fusion", Attribute::Int(fusion)),
            ("k", Attribute::Int(k)),
            ("normalize_routing_weights", Attribute::Int(norm)),
        ];
        if fusion > 0 {
            let floats = [("activation_alpha", 1.5), ("activation_beta", 0.5), ("swiglu_limit", 2.0)];
            attributes.extend(floats.map(|(name, x)| (name, Attribute::Float(x))));
        }
        let shared = |hidden| vec![pattern(0, &[rows, hidden], 1.0), pattern(1, &[rows, experts], 1.0)];
        if bits == 0 {
            let (hidden, inner) = (16, 8);
            let mut inputs = shared(hidden);
            inputs.extend([
                pattern(2, &[experts, width * inner, hidden], 1.0),
                pattern(3, &[experts, width * inner], 1.0),
                pattern(4, &[experts, hidden, inner], 1.0),
                pattern(5, &[experts, hidden], 1.0),
            ]);
            return run_in("com.microsoft", "MoE", 1, &attributes, &inputs, 1);
        }
        attributes.push(("expert_weight_bits", Attribute::Int(bits as i64)));
        attributes.push(("block_size", Attribute::Int(block as i64)));
        let size: usize = 32;
        let blocks = size.checked_div(block).unwrap_or(1);
        let mut inputs = shared(size);
        let points_of = |k, n: usize| match block {
            0 => bytes(k, &[experts, (n * bits).div_ceil(8)]),
            _ => bytes(k, &[experts, n, (blocks * bits).div_ceil(8)]),
        };
        inputs.extend([
            bytes(2, &[experts, width * size, size * bits / 8]),
            pattern(3, &[experts, width * size, blocks], -1.0),
            pattern(4, &[experts, width * size], 1.0),
            bytes(5, &[experts, size, size * bits / 8]),
            pattern(6, &[experts, size, blocks], -1.0),
            pattern(7, &[experts, size], 1.0),
            None,
            None,
            None,
            points_of(11, width * size).filter(|_| points),
            points_of(12, size).filter(|_| points),
        ]);
        run_in("com.microsoft", "QMoE", 1, &attributes, &inputs, 1)
    }

    /// Checksums of ONNX Runtime's outputs.
    #[test]
    fn as_onnx_runtime() {
        let cases: &[(Case, f64)] = &[
            (("relu", 0, 1, 0, 0, 0, false), -5.62993),
            (("gelu", 0, 2, 1, 0, 0, false), -6.61267),
            (("silu", 0, 2, 0, 0, 0, false), -5.38084),
            (("identity", 0, 3, 1, 0, 0, false), -23.26256),
            (("swiglu", 1, 2, 1, 0, 0, false), 2.19577),
            (("relu", 0, 1, 1, 4, 0, false), 264.73242),
            (("silu", 0, 2, 1, 2, 16, true), -75.94069),
            (("swiglu", 1, 2, 1, 4, 16, true), -265.57069),
            (("identity", 0, 2, 1, 8, 0, true), 109_360.702_18),
            (("swiglu", 1, 3, 0, 8, 32, false), 5218.88243),
        ];
        for &(case, want) in cases {
            let got = checksum(&elements::<f32>(&run(case).unwrap()[0]).1);
            assert!((got - want).abs() < 2e-4 + 2e-6 * want.abs(), "{case:?}: {got}, {want}");
        }
    }

    /// A gate's operands may lie apart, interleaved or one after the other.
    #[test]
    fn layouts_of_gates() {
        let (x, router) = (pattern(0, &[2, 4], 1.0), pattern(1, &[2, 2], 1.0));
        let (g, l) = (pattern(2, &[2, 3, 4], 1.0), pattern(6, &[2, 3, 4], 1.0));
        let second = pattern(4, &[2, 4, 3], 1.0);
        let (g_all, l_all) = (elements::<f32>(g.as_ref().unwrap()).1, elements::<f32>(l.as_ref().unwrap()).1);
        let mut joined = [Vec::new(), Vec::new()];
        for expert in 0..2 {
            let part = expert * 12..(expert + 1) * 12;
            for (g, l) in g_all[part.clone()].chunks(4).zip(l_all[part.clone()].chunks(4)) {
                joined[0].extend([g, l].concat());
            }
            joined[1].extend([&g_all[part.clone()], &l_all[part]].concat());
        }
        let run = |fusion: i64, first: Option<Value>, third: Option<Value>| {
            let attributes = [
                ("activation_type", Attribute::String("swiglu".into())),
                ("swiglu_fusion", Attribute::Int(fusion)),
            ];
            let inputs = [x.clone(), router.clone(), first, None, second.clone(), None, third];
            run_in("com.microsoft", "MoE", 1, &attributes, &inputs, 1)
                .map(|out| elements::<f32>(&out[0]).1)
                .map_err(|e| e.to_string())
        };
        let apart = run(0, g.clone(), l.clone()).unwrap();
        assert_eq!(run(1, t(&[2, 6, 4], &joined[0]), None).unwrap(), apart);
        assert_eq!(run(2, t(&[2, 6, 4], &joined[1]), None).unwrap(), apart);
        assert!(run(0, g.clone(), None).unwrap_err().contains("needs the third weights"));
        assert!(run(1, g, l).unwrap_err().contains("no third weights"));
    }

    #[test]
    fn wrong_models_are_refused() {
        for (case, want) in [
            (("relu", 0, 4, 0, 0, 0, false), "it has 3 experts, of which 4 are wanted"),
            (("tanh", 0, 1, 0, 0, 0, false), "\"tanh\" is not known"),
            (("relu", 0, 1, 0, 3, 0, false), "allowed are 2, 4 and 8"),
            (("relu", 0, 1, 0, 4, 24, false), "no whole bytes or blocks of 24"),
        ] {
            let error = run(case).unwrap_err().to_string();
            assert!(error.contains(want), "{error}, not {want}");
        }
    }
}
