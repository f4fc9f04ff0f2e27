//! `ArgMax` and `ArgMin`.

use std::marker::PhantomData;

use crate::ops::along::ArgExtreme;
use crate::ops::{OpError, normalize_axis};
use crate::tensor::{Element, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::same_type::same_type;
use crate::loops::simd::{Loop, widest};

use super::along::around;

pub(super) const KERNELS: &[Entry] = &[Entry::new("ArgMax", build), Entry::new("ArgMin", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<ArgExtreme>();
    let kernel: Box<dyn Kernel> = dispatch!(node.input(0), T in [f32, f64, f16, bf16, i8, i16, i32, i64, u8, u16, u32, u64] =>
            Box::new(Arg::<T> { op, _type: PhantomData }), else return Err(node.no_kernel()));
    Ok(CpuKernel::Tensor(kernel))
}

struct Arg<T> {
    op: ArgExtreme,
    _type: PhantomData<fn(T)>,
}

impl<T: Element + PartialOrd> Kernel for Arg<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(output), Some(x)) = (&mut outputs[0], inputs[0]) else { return Ok(()) };
        let axis = normalize_axis("axis", self.op.axis, x.rank())?;
        let (_, along, inner) = around(x.shape(), axis);
        if along == 0 && output.len() > 0 {
            return Err(OpError::Data("the axis has no elements; allowed is one or more".into()));
        }
        let x = x.slice::<T>();
        let singles = same_type::<T, f32>(x).filter(|_| u32::try_from(along).is_ok());
        let grain = (GRAIN / along.max(1)).max(1);
        split_mut(cx.pool, output.slice::<i64>(), 1, grain, |range, part| {
            let mut done = 0;
            while done < part.len() {
                let at = range.start + done;
                let column = at % inner;
                let start = at / inner * along * inner + column;
                let y = &mut part[done..];
                done += match singles.map(|x| &x[start..]) {
                    Some(x) if inner == 1 && along >= LANES => {
                        y[0] = self.of_row(&x[..along]) as i64;
                        1
                    }
                    Some(x) if inner - column >= LANES && y.len() >= LANES => {
                        let (_, places) = self.of_lanes(x, inner, along);
                        y.iter_mut().zip(places).for_each(|(y, place)| *y = i64::from(place));
                        LANES
                    }
                    _ => {
                        y[0] = self.place((0..along).map(|k| x[start + k * inner])) as i64;
                        1
                    }
                };
            }
        });
        Ok(())
    }
}

impl<T> Arg<T> {
    /// The place of the extreme; NaN counts as one, and the first NaN is it.
    #[allow(clippy::eq_op)]
    fn place<X: PartialOrd + Copy>(&self, mut values: impl Iterator<Item = X>) -> usize {
        let Some(mut best) = values.next() else { return 0 };
        let mut place = 0;
        for (i, x) in values.enumerate() {
            let better = match self.op.max {
                true => x > best,
                false => x < best,
            };
            if better || (self.op.last && x == best) || (x != x && best == best) {
                (best, place) = (x, i + 1);
            }
        }
        place
    }

    /// The same for a row of f32, of `LANES` or more: it is taken for lines of so many columns.
    fn of_row(&self, x: &[f32]) -> usize {
        let lines = x.len() / LANES;
        let (best, places) = self.of_lanes(x, LANES, lines);
        let extreme = best[self.place(best.into_iter())];
        let holds = |x: f32| x == extreme || (x.is_nan() && extreme.is_nan());
        let found = (0..LANES).filter(|&i| holds(best[i])).map(|i| places[i] as usize * LANES + i);
        let place = if self.op.last && !extreme.is_nan() { found.max() } else { found.min() };
        // What is left over comes after it.
        let rest = &x[lines * LANES..];
        match self.place(std::iter::once(extreme).chain(rest.iter().copied())) {
            0 => place.unwrap_or(0),
            i => lines * LANES + i - 1,
        }
    }

    /// The extremes of `LANES` columns of f32 and their places.
    fn of_lanes(&self, x: &[f32], stride: usize, along: usize) -> Extremes {
        match (self.op.max, self.op.last) {
            (true, false) => widest(Lanes { x, stride, along, stays: |best, x| best >= x }),
            (true, true) => widest(Lanes { x, stride, along, stays: |best, x| best > x }),
            (false, false) => widest(Lanes { x, stride, along, stays: |best, x| best <= x }),
            (false, true) => widest(Lanes { x, stride, along, stays: |best, x| best < x }),
        }
    }
}

/// Columns at a time. Their extremes and the places of these are eight registers of eight elements.
const LANES: usize = 32;

type Extremes = ([f32; LANES], [u32; LANES]);

/// `LANES` columns of lines that are `stride` apart.
struct Lanes<'a, F> {
    x: &'a [f32],
    stride: usize,
    along: usize,
    /// Whether the best one stays when a number comes; not where either is NaN.
    stays: F,
}

impl<F: Fn(f32, f32) -> bool> Loop for Lanes<'_, F> {
    type Output = Extremes;

    #[inline(always)]
    fn run(self) -> Extremes {
        let mut best = [0.0; LANES];
        best.copy_from_slice(&self.x[..LANES]);
        let mut places = [0u32; LANES];
        for line in 1..self.along {
            let x = &self.x[line * self.stride..][..LANES];
            for i in 0..LANES {
                // The first NaN stays.
                let stays = (self.stays)(best[i], x[i]) | best[i].is_nan();
                best[i] = if stays { best[i] } else { x[i] };
                places[i] = if stays { places[i] } else { line as u32 };
            }
        }
        (best, places)
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::testing::{elements, run, t};

    /// Rows, columns and what is between them, shorter and longer than what is compared at a time; equal numbers, infinite
    /// ones and NaN among them.
    #[test]
    fn places_are_those_of_one_comparison_after_the_other() {
        for (shape, axis) in [
            ([3, 5, 1], 1i64),
            ([3, 32, 1], 1),
            ([2, 33, 1], 1),
            ([4, 1000, 1], 1),
            ([70, 9, 1], 0),
            ([2, 40, 31], 1),
            ([2, 40, 32], 1),
            ([3, 17, 100], 1),
        ] {
            let count: usize = shape.iter().product();
            for wrong in [0, 97, 13] {
                let number = |i: usize| match i * 7919 % 10_007 {
                    n if wrong > 0 && n % wrong == 0 => f32::NAN,
                    n if n % 101 == 0 => f32::INFINITY * if n % 2 == 0 { 1.0 } else { -1.0 },
                    n => (n % 23) as f32 - 11.0,
                };
                let x: Vec<f32> = (0..count).map(number).collect();
                let (along, inner) =
                    (shape[axis as usize], shape[axis as usize + 1..].iter().product::<usize>());
                for (name, last) in [("ArgMax", 0), ("ArgMax", 1), ("ArgMin", 0), ("ArgMin", 1)] {
                    let attributes =
                        [("axis", Attribute::Int(axis)), ("select_last_index", Attribute::Int(last))];
                    let got = elements::<i64>(&run(name, 13, &attributes, &[t(&shape, &x)], 1).unwrap()[0]).1;
                    for (i, &got) in got.iter().enumerate() {
                        let start = i / inner * along * inner + i % inner;
                        let values: Vec<f32> = (0..along).map(|k| x[start + k * inner]).collect();
                        let sign = if name == "ArgMax" { 1.0 } else { -1.0 };
                        let want = values.iter().position(|x| x.is_nan()).unwrap_or_else(|| {
                            let extreme = values.iter().map(|x| x * sign).fold(f32::NEG_INFINITY, f32::max);
                            let mut equal = (0..along).filter(|&k| values[k] * sign == extreme);
                            if last == 1 { equal.next_back() } else { equal.next() }.unwrap()
                        });
                        assert_eq!(
                            got, want as i64,
                            "{name} last {last} {shape:?} axis {axis} of {i}: {values:?}"
                        );
                    }
                }
            }
        }
    }
}
