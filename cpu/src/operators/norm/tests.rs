//! Groups of half types beside a plain loop in `f64`.

use super::*;
use crate::tensor::{Element, Tensor};
use crate::testing::noise;
use crate::threads::Pool;

const GROUPS: usize = 2;
const SAMPLES: usize = 2;
const EPSILON: f32 = 1e-5;

/// Channels of a group, elements of a channel: some groups are widened whole, some a run at a time.
const CASES: &[[usize; 2]] =
    &[[1, 64], [4, 16], [64, 1], [128, 512], [64, 1024], [1, 65536], [1, 65537], [65537, 1]];

struct Operands {
    x: Vec<f64>,
    scale: Vec<f64>,
    bias: Vec<f64>,
}

impl Operands {
    fn expected(&self, [channels, inner]: [usize; 2], scale_by_group: bool) -> Vec<f64> {
        let mut out = Vec::new();
        for (i, x) in self.x.chunks(channels * inner).enumerate() {
            let (group, count) = (i % GROUPS, x.len() as f64);
            let mean = x.iter().sum::<f64>() / count;
            let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            for (j, x) in x.iter().enumerate() {
                let at = if scale_by_group { group } else { group * channels + j / inner };
                let normal = (x - mean) / (variance + f64::from(EPSILON)).sqrt();
                out.push(normal * self.scale[at] + self.bias[at]);
            }
        }
        out
    }
}

/// Results are as exact as the type is.
fn check<T: Element + Widen<Wide: Real>>(of: fn(f64) -> T, to: fn(T) -> f64, exact: f64) {
    let kernel = |scale_by_group| GroupNormKernel::<T> {
        op: GroupNorm { groups: Some(GROUPS), epsilon: EPSILON, scale_by_group },
        _type: PhantomData,
    };
    let some = |seed, count| noise(seed, count).into_iter().map(|x| of(x.into())).collect::<Vec<T>>();
    let wide = |list: &[T]| list.iter().map(|&x| to(x)).collect::<Vec<f64>>();
    let pool = Pool::new(2);
    for &[channels, inner] in CASES {
        let shape = [SAMPLES, GROUPS * channels, inner];
        let x = some(1, shape.iter().product());
        for scale_by_group in [false, true] {
            let parameters = if scale_by_group { GROUPS } else { GROUPS * channels };
            let (scale, bias) = (some(2, parameters), some(3, parameters));
            let operands = Operands { x: wide(&x), scale: wide(&scale), bias: wide(&bias) };
            let want = operands.expected([channels, inner], scale_by_group);
            let of_x = Tensor::from_slice(&shape, &x).unwrap();
            let [scale, bias] = [scale, bias].map(|list| Tensor::from_slice(&[parameters], &list).unwrap());
            for in_place in [false, true] {
                let begin = if in_place { x.clone() } else { vec![of(99.0); x.len()] };
                let y = Tensor::from_slice(&shape, &begin).unwrap();
                let inputs = [(!in_place).then(|| of_x.view()), Some(scale.view()), Some(bias.view())];
                // SAFETY: the tensor was just made; nothing else holds it.
                let mut outputs = [Some(unsafe { y.view_mut() })];
                let cx = KernelContext::new(&pool, None);
                kernel(scale_by_group).run(&cx, &inputs, &mut outputs).unwrap();
                for (&got, want) in y.view().slice::<T>().iter().zip(&want) {
                    let (got, case) = (to(got), [channels, inner]);
                    let near = (got - want).abs() <= want.abs() * exact + 1e-5;
                    assert!(near, "{case:?}, in place {in_place}: {got} {want}");
                }
            }
        }
    }
}

#[test]
fn groups_of_float16() {
    check(f16::from_f64, f16::to_f64, 0.6 / 1024.0);
}

#[test]
fn groups_of_bfloat16() {
    check(bf16::from_f64, bf16::to_f64, 0.6 / 128.0);
}
