//! LinearAttention: the recurrence of its definition, one head on one thread. Bound by reading the
//! state once a step.

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::attention::recurrent::LinearAttention;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::gemm::Store;
use crate::kernel::{CpuKernel, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;

pub(super) fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<LinearAttention>();
    let state = node.input(3).or(node.input(0));
    dispatch!(node.input(0), T in [f32, f16, bf16] => {
        Ok(CpuKernel::Tensor(match state {
            Some(ElementType::F16) => Box::new(Linear::<T, f16>(op, PhantomData)),
            Some(ElementType::BF16) => Box::new(Linear::<T, bf16>(op, PhantomData)),
            _ => Box::new(Linear::<T, f32>(op, PhantomData)),
        }))
    }, else Err(node.no_kernel()))
}

struct Linear<T, S>(LinearAttention, PhantomData<fn(T, S)>);

impl<T: Store<Compute = f32>, S: Store<Compute = f32>> Kernel for Linear<T, S> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let op = &self.0;
        let [Some(q), Some(k), Some(v), ..] = *inputs else { return Ok(()) };
        let (batch, steps) = (q.shape()[0], q.shape()[1]);
        let (heads, kv_heads) = (op.heads, op.kv_heads);
        let (d_k, d_v) = (q.shape()[2] / heads, v.shape()[2] / kv_heads);
        let past = inputs.get(3).copied().flatten().map(|p| p.slice::<S>());
        let gate = |i: usize| inputs.get(i).copied().flatten().map(|g| (g.slice::<T>(), g.shape()[2]));
        let (decay, beta) = (gate(4).filter(|_| op.gated), gate(5).filter(|_| op.delta));
        let key_heads = op
            .key_heads(k.shape()[2], d_k)
            .map_err(|reason| OpError::Data(format!("input 1 (key): {reason}")))?;
        let output_heads = op.output_heads();
        let scale = if op.scale == 0.0 { 1.0 / (d_k as f32).sqrt() } else { op.scale };
        let [q, k, v] = [q, k, v].map(|x| x.slice::<T>());
        let mut slots = outputs.iter_mut().map(Option::as_mut);
        let y = slots.next().flatten().map(|y| Parts::new(y.slice::<T>()));
        let present = slots.next().flatten().map(|s| Parts::new(s.slice::<S>()));
        cx.pool.for_each(batch * kv_heads, &|task| {
            let (b, h) = (task / kv_heads, task % kv_heads);
            let at = task * d_k * d_v;
            with_scratch([d_k * d_v, d_v, d_v], |[state, value, out]: [&mut [f32]; 3]| {
                match past {
                    Some(past) => state.iter_mut().zip(&past[at..]).for_each(|(y, x)| *y = x.load()),
                    None => state.fill(0.0),
                }
                for t in 0..steps {
                    let step = b * steps + t;
                    let key = &k[(step * key_heads + h * key_heads / kv_heads) * d_k..][..d_k];
                    load(&v[(step * kv_heads + h) * d_v..][..d_v], value);
                    if let Some((g, width)) = decay {
                        let own = width != kv_heads;
                        for (i, row) in state.chunks_exact_mut(d_v.max(1)).enumerate() {
                            let g = if own { g[step * width + h * d_k + i] } else { g[step * width + h] };
                            let factor = g.load().exp();
                            row.iter_mut().for_each(|x| *x *= factor);
                        }
                    }
                    if let Some((rate, width)) = beta {
                        read(state, key, 1.0, out);
                        let rate = rate[step * width + if width == 1 { 0 } else { h }].load();
                        value.iter_mut().zip(&*out).for_each(|(v, &held)| *v = rate * (*v - held));
                    }
                    for (row, k) in state.chunks_exact_mut(d_v.max(1)).zip(key) {
                        let k = k.load();
                        row.iter_mut().zip(&*value).for_each(|(s, &v)| *s += k * v);
                    }
                    let Some(y) = &y else { continue };
                    // Several outputs a head of values, or several heads of values a query.
                    for head in h * output_heads / kv_heads..(h + 1) * output_heads / kv_heads {
                        let query = head * heads / output_heads;
                        read(state, &q[(step * heads + query) * d_k..][..d_k], scale, out);
                        let at = (step * output_heads + head) * d_v;
                        // SAFETY: a head of a step belongs to one task.
                        store(out, unsafe { y.get(at..at + d_v) });
                    }
                }
                if let Some(present) = &present {
                    // SAFETY: a state belongs to one task.
                    store(state, unsafe { present.get(at..at + d_k * d_v) });
                }
            });
        });
        Ok(())
    }
}

/// `out = scale · stateᵀ · x`
fn read<T: Store<Compute = f32>>(state: &[f32], x: &[T], scale: f32, out: &mut [f32]) {
    out.fill(0.0);
    for (row, x) in state.chunks_exact(out.len().max(1)).zip(x) {
        let x = x.load() * scale;
        out.iter_mut().zip(row).for_each(|(y, &s)| *y += x * s);
    }
}

fn load<T: Store<Compute = f32>>(from: &[T], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(y, x)| *y = x.load());
}

fn store<T: Store<Compute = f32>>(from: &[f32], to: &mut [T]) {
    to.iter_mut().zip(from).for_each(|(y, &x)| *y = T::store(x));
}
