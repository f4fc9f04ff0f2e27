//! Random numbers.
//!
//! Numbers come from SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
//! OOPSLA 2014) by counter: number `i` depends on the seed and `i` alone, so threads need no order
//! and a seeded operator gives the same numbers in every run.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::random::{Distribution, Random};
use crate::tensor::{Bool, Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::{Float, dispatch};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::scratch::with_scratch;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("RandomNormal", build),
    Entry::new("RandomUniform", build),
    Entry::new("RandomNormalLike", build),
    Entry::new("RandomUniformLike", build),
    Entry::new("Bernoulli", bernoulli),
    Entry::new("Multinomial", multinomial),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Random>();
    let draw: fn(Distribution, &Numbers, u64) -> f64 = match op.distribution {
        Distribution::Normal { .. } => normal,
        _ => uniform,
    };
    let (distribution, seeds) = (op.distribution, Seeds::new(op.seed));
    dispatch!(
        node.output(0),
        T in [f32, f64, f16, bf16] =>
            Ok(CpuKernel::Tensor(Box::new(Fill::<T> { distribution, draw, seeds, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

/// The numbers of one run.
struct Numbers {
    seed: u64,
}

impl Numbers {
    fn bits(&self, i: u64) -> u64 {
        let mut z = self.seed.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), of 53 bits.
    fn unit(&self, i: u64) -> f64 {
        (self.bits(i) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where the seeds of runs come from.
enum Seeds {
    Fixed(u64),
    /// Random at the start, another one for each run.
    Fresh(u64, AtomicU64),
}

impl Seeds {
    fn new(seed: Option<f32>) -> Self {
        match seed {
            Some(seed) => Seeds::Fixed(seed.to_bits() as u64),
            None => Seeds::Fresh(RandomState::new().build_hasher().finish(), AtomicU64::new(0)),
        }
    }

    fn numbers(&self) -> Numbers {
        match self {
            Seeds::Fixed(seed) => Numbers { seed: *seed },
            Seeds::Fresh(seed, runs) => {
                let run = Numbers { seed: *seed }.bits(runs.fetch_add(1, Ordering::Relaxed));
                Numbers { seed: run }
            }
        }
    }
}

fn uniform(distribution: Distribution, numbers: &Numbers, i: u64) -> f64 {
    let Distribution::Uniform { low, high } = distribution else { return 0.0 };
    low as f64 + (high as f64 - low as f64) * numbers.unit(i)
}

/// Box and Muller's transform; the first number is kept away from zero.
fn normal(distribution: Distribution, numbers: &Numbers, i: u64) -> f64 {
    let Distribution::Normal { mean, scale } = distribution else { return 0.0 };
    let radius = (-2.0 * (1.0 - numbers.unit(2 * i)).ln()).sqrt();
    mean as f64 + scale as f64 * radius * (std::f64::consts::TAU * numbers.unit(2 * i + 1)).cos()
}

struct Fill<T> {
    distribution: Distribution,
    draw: fn(Distribution, &Numbers, u64) -> f64,
    seeds: Seeds,
    _element: PhantomData<fn(T)>,
}

impl<T: Float> Kernel for Fill<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        _: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let numbers = self.seeds.numbers();
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN / 16, |range, part| {
            for (i, y) in range.zip(part) {
                *y = T::down(T::constant((self.draw)(self.distribution, &numbers, i as u64)));
            }
        });
        Ok(())
    }
}

fn bernoulli(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    fn kernel<P: Float, T: Element>(seed: Option<f32>, values: [T; 2]) -> CpuKernel {
        CpuKernel::Tensor(Box::new(Bernoulli::<P, T> {
            seeds: Seeds::new(seed),
            values,
            _input: PhantomData,
        }))
    }
    let seed = node.op::<Random>().seed;
    dispatch!(
        node.input(0),
        P in [f32, f64, f16, bf16] => dispatch!(
            node.output(0),
            T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] =>
                Ok(kernel::<P, T>(seed, [num_traits::zero(), num_traits::one()])),
            else match node.output(0) {
                Some(Bool::TYPE) => Ok(kernel::<P, Bool>(seed, [Bool(0), Bool(1)])),
                _ => Err(node.no_kernel()),
            }
        ),
        else Err(node.no_kernel())
    )
}

struct Bernoulli<P, T> {
    seeds: Seeds,
    /// Zero and one.
    values: [T; 2],
    _input: PhantomData<fn(P)>,
}

impl<P: Float, T: Element> Kernel for Bernoulli<P, T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let input = input.slice::<P>();
        let numbers = self.seeds.numbers();
        split_mut(cx.pool, output.slice::<T>(), 1, GRAIN / 4, |range, part| {
            for (i, y) in range.zip(part) {
                let p: f64 = input[i].up().as_();
                *y = self.values[usize::from(numbers.unit(i as u64) < p)];
            }
        });
        Ok(())
    }
}

fn multinomial(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let seed = node.op::<Random>().seed;
    dispatch!(
        node.input(0),
        P in [f32, f64, f16, bf16] => dispatch!(
            node.output(0),
            T in [i32, i64] => Ok(CpuKernel::Tensor(Box::new(Multinomial::<P, T> {
                seeds: Seeds::new(seed),
                _types: PhantomData,
            }))),
            else Err(node.no_kernel())
        ),
        else Err(node.no_kernel())
    )
}

struct Multinomial<P, T> {
    seeds: Seeds,
    _types: PhantomData<fn(P) -> T>,
}

impl<P: Float, T: Element> Kernel for Multinomial<P, T>
where
    usize: AsPrimitive<T>,
{
    fn run(
        &self,
        _: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (classes, samples) = (input.shape()[1], output.shape()[1]);
        let output = output.slice::<T>();
        if output.is_empty() {
            return Ok(());
        }
        if classes == 0 {
            return Err(OpError::Data("there is no class to draw".to_owned()));
        }
        let numbers = self.seeds.numbers();
        let rows = input.slice::<P>().chunks_exact(classes).zip(output.chunks_exact_mut(samples));
        with_scratch([classes], |[sums]: [&mut [f64]; 1]| {
            for (r, (row, y)) in rows.enumerate() {
                let value = |x: &P| -> f64 { x.up().as_() };
                let top = row.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                let mut total = 0.0;
                for (sum, x) in sums.iter_mut().zip(row) {
                    total += (value(x) - top).exp();
                    *sum = total;
                }
                for (s, y) in y.iter_mut().enumerate() {
                    let place = numbers.unit((r * samples + s) as u64) * total;
                    // Rounding may leave a rest behind the last class.
                    *y = sums.partition_point(|&sum| sum <= place).min(classes - 1).as_();
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    #[test]
    fn moments() {
        let shape = Attribute::Ints(vec![100, 1000]);
        let mean = |v: &[f32]| v.iter().sum::<f32>() / v.len() as f32;
        let attributes =
            [("shape", shape.clone()), ("mean", Attribute::Float(2.0)), ("scale", Attribute::Float(3.0))];
        let (_, v) = elements::<f32>(&run("RandomNormal", 22, &attributes, &[], 1).unwrap()[0]);
        let m = mean(&v);
        let deviation = mean(&v.iter().map(|x| (x - m) * (x - m)).collect::<Vec<_>>()).sqrt();
        // Five standard errors of 100 000 numbers.
        assert!((m - 2.0).abs() < 0.05 && (deviation - 3.0).abs() < 0.035, "{m} {deviation}");

        let attributes = [("shape", shape), ("seed", Attribute::Float(7.0)), ("high", Attribute::Float(4.0))];
        let draw = || elements::<f32>(&run("RandomUniform", 1, &attributes, &[], 1).unwrap()[0]).1;
        let v = draw();
        assert!(v.iter().all(|x| (0.0..=4.0).contains(x)) && (mean(&v) - 2.0).abs() < 0.02);
        assert_eq!(v, draw(), "a seed gives the same numbers");
    }

    #[test]
    fn choices_follow_their_probabilities() {
        let p = vec![0.25f32; 40_000];
        let (_, v) = elements::<f32>(&run("Bernoulli", 22, &[], &[t(&[40_000], &p)], 1).unwrap()[0]);
        let ones = v.iter().sum::<f32>() / 40_000.0;
        assert!((ones - 0.25).abs() < 0.011, "{ones}");

        let logits = t(&[1, 3], &[f32::NEG_INFINITY, 1.0f32.ln(), 3.0f32.ln()]);
        let out = run("Multinomial", 22, &[("sample_size", Attribute::Int(40_000))], &[logits], 1).unwrap();
        let (_, v) = elements::<i32>(&out[0]);
        let last = v.iter().filter(|c| **c == 2).count() as f32 / 40_000.0;
        assert!(v.iter().all(|c| (1..3).contains(c)) && (last - 0.75).abs() < 0.011, "{last}");
    }
}
