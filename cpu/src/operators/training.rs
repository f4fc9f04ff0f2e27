//! Steps of optimisers, each element on its own.

use num_traits::{Float, NumCast};

use crate::ops::OpError;
use crate::ops::training::{Rule, SCALARS, Training};
use crate::tensor::{Element, ElementType, TensorView, TensorViewMut};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::parallel::{GRAIN, split_mut};

const DOMAIN: &str = "ai.onnx.preview.training";

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("Adagrad", build).domain(DOMAIN),
    Entry::new("Adam", build).domain(DOMAIN),
    Entry::new("Momentum", build).domain(DOMAIN),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(TrainingKernel(*node.op::<Training>()))))
}

struct TrainingKernel(Training);

impl Kernel for TrainingKernel {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let [rate, updates, tensors @ ..] = inputs else { return Ok(()) };
        let rate = rate.map_or(0.0, |r| match r.ty() {
            ElementType::F64 => r.slice::<f64>()[0],
            _ => r.slice::<f32>()[0] as f64,
        });
        let updates = updates.map_or(0, |t| t.slice::<i64>()[0]);
        let count = tensors.len() / (SCALARS + self.0.rule.statistics());
        for (i, output) in outputs.iter_mut().enumerate() {
            let Some(output) = output else { continue };
            // Parameters, gradients, statistics; outputs have no gradients.
            let group = |k: usize| tensors.get(k * count + i % count).copied().flatten();
            let own = [group(0), group(1), group(2), group(3)];
            let wanted = i / count;
            match output.ty() {
                ElementType::F64 => update::<f64>(cx, &self.0, rate, updates, own, wanted, output),
                _ => update::<f32>(cx, &self.0, rate, updates, own, wanted, output),
            }
        }
        Ok(())
    }
}

/// Computes one output of one parameter: 0 is its new value, 1 and 2 its new statistics.
fn update<T: Element + Float>(
    cx: &KernelContext<'_>,
    op: &Training,
    rate: f64,
    updates: i64,
    [x, g, v, h]: [Option<TensorView<'_>>; 4],
    wanted: usize,
    output: &mut TensorViewMut<'_>,
) {
    let (Some(x), Some(g), Some(v)) = (x, g, v) else { return };
    let (x, g, v) = (x.slice::<T>(), g.slice::<T>(), v.slice::<T>());
    // A rule with one statistic does not look at the second.
    let h = h.map_or(v, |h| h.slice::<T>());
    let step = Step::new(op, rate, updates);
    split_mut(cx.pool, output.slice::<T>(), 1, GRAIN, |range, part| {
        let own = x[range.clone()].iter().zip(&g[range.clone()]).zip(&v[range.clone()]).zip(&h[range]);
        for (y, (((&x, &g), &v), &h)) in part.iter_mut().zip(own) {
            *y = step.apply(x, g, v, h)[wanted];
        }
    });
}

/// An operator with its coefficients in the type of the tensors.
struct Step<T> {
    rule: Rule,
    norm: T,
    /// The learning rate as the rule and the number of updates adjust it.
    rate: T,
    alpha: T,
    beta: T,
    epsilon: T,
    norm_post: T,
}

impl<T: Float> Step<T> {
    fn new(op: &Training, rate: f64, updates: i64) -> Self {
        let (mut alpha, mut beta, mut epsilon, mut norm_post, mut adjusted) = (0.0, 0.0, 0.0, 0.0, rate);
        match op.rule {
            Rule::Adagrad { decay, epsilon: e } => {
                epsilon = e as f64;
                adjusted = rate / (1.0 + updates as f64 * decay as f64);
            }
            Rule::Adam { alpha: a, beta: b, epsilon: e, norm_post: n } => {
                (alpha, beta, epsilon, norm_post) = (a as f64, b as f64, e as f64, n as f64);
                if updates > 0 {
                    // Statistics that began at zero are biased towards it.
                    let updates = updates as f64;
                    adjusted = rate * (1.0 - beta.powf(updates)).sqrt() / (1.0 - alpha.powf(updates));
                }
            }
            Rule::Momentum { alpha: a, beta: b, .. } => {
                alpha = a as f64;
                // The first gradient counts in full.
                beta = if updates > 0 { b as f64 } else { 1.0 };
            }
        }
        Step {
            rule: op.rule,
            norm: number(op.norm as f64),
            rate: number(adjusted),
            alpha: number(alpha),
            beta: number(beta),
            epsilon: number(epsilon),
            norm_post: number(norm_post),
        }
    }

    /// The new parameter and its new statistics.
    #[inline(always)]
    fn apply(&self, x: T, g: T, v: T, h: T) -> [T; 3] {
        let g = self.norm * x + g;
        match self.rule {
            Rule::Adagrad { .. } => {
                let squares = v + g * g;
                [x - self.rate * g / (squares.sqrt() + self.epsilon), squares, T::zero()]
            }
            Rule::Adam { .. } => {
                let mean = self.alpha * v + (T::one() - self.alpha) * g;
                let squares = self.beta * h + (T::one() - self.beta) * (g * g);
                let new = x - self.rate * (mean / (squares.sqrt() + self.epsilon));
                [(T::one() - self.norm_post) * new, mean, squares]
            }
            Rule::Momentum { nesterov, .. } => {
                let velocity = self.alpha * v + self.beta * g;
                let direction = if nesterov { g + self.alpha * velocity } else { velocity };
                [x - self.rate * direction, velocity, T::zero()]
            }
        }
    }
}

/// A coefficient in the type computed in; floats hold every f64, if rounded.
fn number<T: Float>(x: f64) -> T {
    <T as NumCast>::from(x).unwrap_or_else(T::nan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attribute::{self, Float as F, String as S};
    use crate::testing::{elements, run_in, t};

    /// A parameter, its gradient and two statistics.
    const TENSORS: [[f64; 3]; 4] = [[1.0, -2.0, 0.5], [-1.0, 0.25, 3.0], [2.0, 0.5, 0.125], [0.75, 1.5, 4.0]];

    /// Operator, attributes, number of updates before, outputs.
    type Case<'a> = (&'a str, &'a [(&'a str, Attribute)], i64, &'a [[f64; 3]]);

    #[test]
    fn steps_match_the_reference() {
        let mode = |mode: &str| ("mode", S(mode.into()));
        // From onnx.reference.
        let adagrad = [("norm_coefficient", F(0.001)), ("epsilon", F(1e-5)), ("decay_factor", F(0.1))];
        let first_adam =
            [("alpha", F(0.95)), ("beta", F(0.1)), ("epsilon", F(1e-7)), ("norm_coefficient", F(0.001))];
        let adam = [
            ("alpha", F(0.875)),
            ("beta", F(0.75)),
            ("epsilon", F(1e-3)),
            ("norm_coefficient", F(0.125)),
            ("norm_coefficient_post", F(0.25)),
        ];
        let standard =
            [("alpha", F(0.95)), ("beta", F(0.1)), ("norm_coefficient", F(0.001)), mode("standard")];
        let nesterov =
            [("alpha", F(0.75)), ("beta", F(0.5)), ("norm_coefficient", F(0.25)), mode("nesterov")];
        let cases: &[Case<'_>] = &[
            (
                "Adagrad",
                &adagrad,
                2,
                &[[1.04808021, -2.02757955, 0.417239487], [2.9980011, 0.561504006, 9.12800026]],
            ),
            (
                "Adam",
                &first_adam,
                0,
                &[
                    [0.812465072, -2.10755587, 0.490782559],
                    [1.85004997, 0.487399995, 0.268775046],
                    [0.973200917, 0.205353603, 8.50269985],
                ],
            ),
            (
                "Adam",
                &adam,
                3,
                &[
                    [0.423933519, -1.57119474, 0.338234928],
                    [1.640625, 0.4375, 0.4921875],
                    [0.75390625, 1.125, 5.34472656],
                ],
            ),
            (
                "Momentum",
                &standard,
                0,
                &[[0.90990001, -2.07229996, 0.188074976], [0.900999963, 0.72299999, 3.11925006]],
            ),
            (
                "Momentum",
                &standard,
                1,
                &[[0.819989979, -2.04997993, 0.458119988], [1.80009997, 0.499799997, 0.418799996]],
            ),
            ("Momentum", &nesterov, 1, &[[0.990625, -1.99375, 0.06328125], [1.125, 0.25, 1.65625]]),
        ];
        for (name, attributes, updates, want) in cases {
            // The same tensors twice: each update is on its own.
            let statistics = want.len() - 1;
            let (mut single, mut double) = (vec![t(&[], &[0.1f32])], vec![t(&[], &[0.1f64])]);
            for inputs in [&mut single, &mut double] {
                inputs.push(t(&[], &[*updates]));
            }
            for tensor in TENSORS[..2 + statistics].iter().flat_map(|x| [x, x]) {
                single.push(t(&[3], &tensor.map(|x| x as f32)));
                double.push(t(&[3], tensor));
            }
            let outputs = 2 * want.len();
            let got = run_in(DOMAIN, name, 1, attributes, &single, outputs).unwrap();
            let got_double = run_in(DOMAIN, name, 1, attributes, &double, outputs).unwrap();
            for (i, (got, double)) in got.iter().zip(&got_double).enumerate() {
                let got = elements::<f32>(got).1.into_iter().map(|x| x as f64);
                for ((got, double), want) in got.zip(elements::<f64>(double).1).zip(want[i / 2]) {
                    assert!((got - want).abs() < 1e-5 * want.abs(), "{name}, float: {got}, want {want}");
                    assert!(
                        (double - want).abs() < 1e-6 * want.abs(),
                        "{name}, double: {double}, want {want}"
                    );
                }
            }
        }
    }

    #[test]
    fn wrong_tensors_are_refused() {
        let (rate, updates) = (t(&[], &[0.1f32]), t(&[], &[0i64]));
        let (x, other) = (t(&[2], &[1.0f32, 2.0]), t(&[1], &[1.0f32]));
        for (tensors, want) in [
            (vec![x.clone(), x.clone()], "it has 2 tensors after R and T; allowed are multiples of 3"),
            (
                vec![x.clone(), other, x.clone()],
                "input 3 (inputs): its shape is [1]; allowed is that of its parameter, [2]",
            ),
            (
                vec![x.clone(), t(&[2], &[1i64, 2]), x.clone()],
                "input 3 (inputs): its type is int64; allowed are float, double",
            ),
        ] {
            let inputs = [vec![rate.clone(), updates.clone()], tensors].concat();
            let error = run_in(DOMAIN, "Adagrad", 1, &[], &inputs, 2).unwrap_err();
            assert_eq!(error.to_string(), want);
        }
    }
}
