//! Sums, moments and exponentials of runs of floats: what softmax and normalisations are made of.

use rten_vecmath::{MaxNum, Sum, SumSquare, SumSquareSub};

use super::exponential::Exp;
use super::map::apply;
use super::scratch::with_scratch;
use super::simd::{Loop, widest};
use super::widen::{RUN, Widen};
use crate::isa::Dispatch;

/// A float that statistics are computed in. Runs are summed in the type, runs together in f64.
pub(crate) trait Real: num_traits::Float + Widen<Wide = Self> {
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn sum(x: &[Self]) -> f64;
    fn sum_squares(x: &[Self]) -> f64;
    /// The sum of (x − mean)².
    fn sum_squares_from(x: &[Self], mean: Self) -> f64;
    /// The largest element; NaN wins, −∞ of none.
    fn largest(x: &[Self]) -> Self;
    fn exp_all(x: &mut [Self]);
}

impl Real for f32 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x as f32
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self as f64
    }
    fn sum(x: &[Self]) -> f64 {
        Sum::new(x).widest() as f64
    }
    fn sum_squares(x: &[Self]) -> f64 {
        SumSquare::new(x).widest() as f64
    }
    fn sum_squares_from(x: &[Self], mean: Self) -> f64 {
        SumSquareSub::new(x, mean).widest() as f64
    }
    fn largest(x: &[Self]) -> Self {
        MaxNum::new(x).widest()
    }
    fn exp_all(x: &mut [Self]) {
        apply(&Exp, x);
    }
}

impl Real for f64 {
    #[inline(always)]
    fn of(x: f64) -> Self {
        x
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }
    fn sum(x: &[Self]) -> f64 {
        x.iter().sum()
    }
    fn sum_squares(x: &[Self]) -> f64 {
        x.iter().map(|x| x * x).sum()
    }
    fn sum_squares_from(x: &[Self], mean: Self) -> f64 {
        x.iter().map(|x| (x - mean) * (x - mean)).sum()
    }
    fn largest(x: &[Self]) -> Self {
        x.iter().fold(f64::NEG_INFINITY, |a, &b| if a > b || a.is_nan() { a } else { b })
    }
    fn exp_all(x: &mut [Self]) {
        x.iter_mut().for_each(|x| *x = x.exp());
    }
}

/// Sums what `term` gives of each run of a row.
pub(crate) fn total<T: Widen<Wide: Real>>(x: &[T], term: impl Fn(&[T::Wide]) -> f64) -> f64 {
    with_scratch([room::<T>(x.len())], |[buffer]: [&mut [T::Wide]; 1]| {
        x.chunks(RUN).map(|x| term(T::load(x, buffer))).sum()
    })
}

/// Elements that a run of so many needs room for in the wide type; none where that is the type itself. Scratch has no zeros to
/// be written first, which took most of the time of short rows.
fn room<T: Widen>(len: usize) -> usize {
    if size_of::<T>() == size_of::<T::Wide>() { 0 } else { len.min(RUN) }
}

/// The mean of a row and its mean squared deviation.
pub(crate) fn moments<T: Widen<Wide: Real>>(x: &[T]) -> (f64, f64) {
    let count = x.len() as f64;
    let mean = total(x, T::Wide::sum) / count;
    let center = T::Wide::of(mean);
    (mean, total(x, |x| T::Wide::sum_squares_from(x, center)) / count)
}

/// `y[i] = (x[i] − center)·factor·scale[i] + bias[i]`; a scale or bias of one element serves all.
/// If `x` is `None`, `y` holds its elements.
pub(crate) fn affine<T: Widen<Wide: Real>, S: Widen<Wide = T::Wide>>(
    x: Option<&[T]>,
    y: &mut [T],
    center: T::Wide,
    factor: T::Wide,
    scale: &[S],
    bias: &[S],
) {
    let (of_elements, of_scale, of_bias) =
        (room::<T>(y.len()), room::<S>(scale.len()), room::<S>(bias.len()));
    let lengths = [of_elements, of_elements, of_scale, of_bias];
    with_scratch(lengths, |[read, own, scales, biases]: [&mut [T::Wide]; 4]| {
        for (i, y) in y.chunks_mut(RUN).enumerate() {
            let x = x.map(|x| &x[i * RUN..][..y.len()]);
            let piece = |all: &[S], count: usize| match all.len() {
                1 => 0..1,
                _ => i * RUN..i * RUN + count,
            };
            let scale = S::load(&scale[piece(scale, y.len())], scales);
            let bias = S::load(&bias[piece(bias, y.len())], biases);
            let change = |x: Option<&[T::Wide]>, y: &mut [T::Wide]| match (scale, bias) {
                (&[scale], &[bias]) => widest(One { x, y, center, factor: factor * scale, bias }),
                (scale, bias) => {
                    if let Some(x) = x {
                        y.copy_from_slice(x);
                    }
                    widest(Each { y, center, factor, scale, bias });
                }
            };
            match x {
                Some(x) => T::store(y, own, |y| change(Some(T::load(x, read)), y)),
                None => T::update(y, own, |y| change(None, y)),
            }
        }
    });
}

struct One<'a, W> {
    /// If `None`, `y` holds the elements.
    x: Option<&'a [W]>,
    y: &'a mut [W],
    center: W,
    factor: W,
    bias: W,
}

impl<W: Real> Loop for One<'_, W> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let One { x, y, center, factor, bias } = self;
        match x {
            Some(x) => y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - center) * factor + bias),
            None => y.iter_mut().for_each(|y| *y = (*y - center) * factor + bias),
        }
    }
}

struct Each<'a, W> {
    y: &'a mut [W],
    center: W,
    factor: W,
    scale: &'a [W],
    bias: &'a [W],
}

impl<W: Real> Loop for Each<'_, W> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (center, factor) = (self.center, self.factor);
        match (self.scale, self.bias) {
            (scale, &[bias]) => {
                for (y, &s) in self.y.iter_mut().zip(scale) {
                    *y = (*y - center) * factor * s + bias;
                }
            }
            (&[scale], bias) => {
                for (y, &b) in self.y.iter_mut().zip(bias) {
                    *y = (*y - center) * factor * scale + b;
                }
            }
            (scale, bias) => {
                for ((y, &s), &b) in self.y.iter_mut().zip(scale).zip(bias) {
                    *y = (*y - center) * factor * s + b;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{bf16, f16};
    use crate::testing::ramp;

    /// Elements of their own and those that lie in the output; lengths around a run's.
    fn check<T: Widen<Wide: Real> + num_traits::FromPrimitive>() {
        let (two, half) = (T::Wide::of(2.0), T::Wide::of(0.5));
        for count in [1, 1023, 1024, 1025, 2500] {
            let x = ramp::<T>(count);
            let parameters: Vec<T::Wide> = ramp::<T>(count).into_iter().map(T::up).collect();
            for (scales, biases) in [(1, 1), (count, 1), (1, count), (count, count)] {
                let (scale, bias) = (&parameters[..scales], &parameters[..biases]);
                let at = |all: &[T::Wide], i: usize| if all.len() == 1 { all[0] } else { all[i] };
                let want: Vec<T> = (x.iter().enumerate())
                    .map(|(i, &x)| T::down((x.up() - two) * half * at(scale, i) + at(bias, i)))
                    .collect();
                let (mut apart, mut in_place) = (vec![T::down(half); count], x.clone());
                affine(Some(&x), &mut apart, two, half, scale, bias);
                affine(None, &mut in_place, two, half, scale, bias);
                assert!(apart == want && in_place == want, "{count} {scales} {biases}");
            }
        }
    }

    #[test]
    fn affine_functions_of_elements() {
        check::<f32>();
        check::<f64>();
        check::<f16>();
        check::<bf16>();
    }
}
