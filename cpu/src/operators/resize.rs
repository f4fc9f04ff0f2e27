//! Resize and Upsample.
//!
//! Nearest neighbours are a copy through one map for each axis. Interpolation is separable: one pass
//! over the tensor for each axis that changes, those that shrink first.

mod linear;

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::resize::{Mode, Resize};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared, data_shape};
use crate::loops::item::Item;
use crate::loops::mapped::Mapped;
use crate::loops::mover::{self, Inputs, Mover, Outputs};
use crate::loops::number::dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::same_type::{same_type, same_type_mut};
use crate::loops::sample::Sample;
use crate::loops::simd::widest;
use crate::provider::resample::{Taps, geometry, interpolation, is_identity, nearest};
use linear::Linear;

pub(super) const KERNELS: &[Entry] = &[Entry::new("Resize", build), Entry::new("Upsample", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = node.op::<Resize>().clone();
    if op.mode == Mode::Nearest {
        let fill = match (op.extrapolation, node.input(0)) {
            (value, Some(ty)) if value != 0.0 => number_bytes(value, ty),
            _ => None,
        };
        return mover::build::<Resize, _>(node, Nearest { op, fill });
    }
    dispatch!(
        node.input(0),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] =>
            Ok(CpuKernel::Tensor(Box::new(Interpolate::<T> { op, _element: PhantomData }))),
        else Err(node.no_kernel())
    )
}

struct Nearest {
    op: Resize,
    /// The bytes of the extrapolation value, where it is not zero.
    fill: Option<Vec<u8>>,
}

impl Mover for Nearest {
    type Plan = Mapped;

    fn plan(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Mapped, OpError> {
        let maps: Vec<Vec<isize>> = geometry(&self.op, data_shape(inputs)?, inputs)?
            .iter()
            .map(|axis| nearest(&self.op, axis))
            .collect();
        Ok(Mapped::new(data_shape(inputs)?, &maps))
    }

    fn run<T: Item>(
        &self,
        plan: &Mapped,
        cx: &KernelContext<'_>,
        inputs: Inputs<'_>,
        outputs: &mut Outputs<'_, '_>,
    ) -> Result<(), OpError> {
        if let (Some(input), Some(output)) = (inputs.items::<T>(0), outputs.items::<T>(0)) {
            let fill = self.fill.as_deref().and_then(T::of_bytes).unwrap_or_default();
            plan.run(cx.pool, input, &fill, output);
        }
        Ok(())
    }
}

/// A number as the bytes of an element of a numeric type.
fn number_bytes(value: f32, ty: ElementType) -> Option<Vec<u8>> {
    dispatch!(
        Some(ty),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] => {
            let element = T::store(<T as Sample>::Compute::from(value));
            crate::tensor::Tensor::from_slice(&[], &[element]).ok()?.buffer().map(|b| b.bytes().to_vec())
        },
        else None
    )
}

struct Interpolate<T> {
    op: Resize,
    _element: PhantomData<fn(T)>,
}

/// One axis of a tensor `[outer, from, inner]` that becomes `[outer, to, inner]`.
struct Pass<C> {
    outer: usize,
    from: usize,
    to: usize,
    inner: usize,
    taps: Taps,
    weights: Vec<C>,
    /// Whether taps read all elements, one after the other.
    pairs: bool,
}

struct Plan<C> {
    passes: Vec<Pass<C>>,
    /// Elements of each of the two intermediate tensors.
    middle: usize,
}

impl<T: Sample> Kernel for Interpolate<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let plan: &Plan<T::Compute> = cx.state();
        let (Some(input), Some(output)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (input, output) = (input.slice::<T>(), output.slice::<T>());
        let value = <T::Compute as From<f32>>::from(self.op.extrapolation);
        let (first, rest) = match &plan.passes[..] {
            [] => {
                output.copy_from_slice(input);
                return Ok(());
            }
            [only] => {
                only.run(cx, input, output, value);
                return Ok(());
            }
            [first, rest @ ..] => (first, rest),
        };
        // Intermediate tensors are kept in the type computed in, so that only the result is rounded.
        let (mut front, mut back) = cx.scratch::<T::Compute>().split_at_mut(plan.middle);
        first.run(cx, input, &mut front[..first.size()], value);
        let mut size = first.size();
        for (i, pass) in rest.iter().enumerate() {
            if i + 1 == rest.len() {
                pass.run(cx, &front[..size], output, value);
            } else {
                pass.run(cx, &front[..size], &mut back[..pass.size()], value);
                std::mem::swap(&mut front, &mut back);
                size = pass.size();
            }
        }
        Ok(())
    }

    fn prepare(&self, inputs: &[Option<Argument<'_>>], _: &[Option<&[usize]>]) -> Result<Prepared, OpError> {
        let axes = geometry(&self.op, data_shape(inputs)?, inputs)?;
        let mut shape = data_shape(inputs)?.to_vec();
        let mut order: Vec<usize> = (0..axes.len()).filter(|&k| !is_identity(&axes[k])).collect();
        order.sort_by(|&a, &b| axes[a].scale.total_cmp(&axes[b].scale));
        let mut passes: Vec<Pass<T::Compute>> = Vec::with_capacity(order.len());
        for k in order {
            let taps = interpolation(&self.op, &axes[k]);
            let weights = taps.weights.iter().map(|&w| T::weight(w)).collect();
            let pairs = taps.count == 2 && taps.positions.iter().enumerate().all(|(i, &p)| i == p);
            passes.push(Pass {
                outer: shape[..k].iter().product(),
                from: shape[k],
                to: axes[k].output,
                inner: shape[k + 1..].iter().product(),
                taps,
                weights,
                pairs,
            });
            shape[k] = axes[k].output;
        }
        let between = passes.len().saturating_sub(1);
        let middle = passes[..between].iter().map(Pass::size).max().unwrap_or(0);
        let scratch = middle * 2 * size_of::<T::Compute>();
        Ok(Prepared { state: Some(Box::new(Plan { passes, middle })), scratch })
    }
}

impl<C: Sample<Compute = C> + num_traits::Float + num_traits::NumAssign> Pass<C> {
    fn size(&self) -> usize {
        self.outer * self.to * self.inner
    }

    fn run<A, B>(&self, cx: &KernelContext<'_>, input: &[A], output: &mut [B], extrapolation: C)
    where
        A: Sample<Compute = C>,
        B: Sample<Compute = C>,
    {
        let (from, to, inner, count) = (self.from, self.to, self.inner, self.taps.count);
        if self.size() == 0 {
            return;
        }
        // Rows of output for one (outer, position) pair; for inner = 1 whole axes.
        let unit = if inner == 1 { to } else { inner };
        let grain = (GRAIN / (unit * count)).max(1);
        if count == 2
            && (inner > 1 || self.pairs)
            && let (Some(input), Some(weights), Some(&[fill])) =
                (same_type(input), same_type(&self.weights), same_type(&[extrapolation]))
            && let Some(output) = same_type_mut(output)
        {
            let taps = &self.taps;
            split_mut(cx.pool, output, unit, grain, |units, output| {
                widest(Linear { sizes: [from, to, inner], taps, weights, units, fill, input, output });
            });
            return;
        }
        split_mut(cx.pool, output, unit, grain, |units, output| {
            for (u, y) in units.zip(output.chunks_exact_mut(unit)) {
                if inner == 1 {
                    let x = &input[u * from..(u + 1) * from];
                    self.along(x, y, extrapolation);
                } else {
                    let (o, p) = (u / to, u % to);
                    if self.taps.outside[p] {
                        y.fill(B::store(extrapolation));
                        continue;
                    }
                    let taps = p * count..(p + 1) * count;
                    let row = |position: usize| &input[(o * from + position) * inner..][..inner];
                    across(&self.taps.positions[taps.clone()], &self.weights[taps], row, y);
                }
            }
        });
    }

    /// Resamples one contiguous axis.
    fn along<A, B>(&self, x: &[A], y: &mut [B], extrapolation: C)
    where
        A: Sample<Compute = C>,
        B: Sample<Compute = C>,
    {
        match self.taps.count {
            2 => self.along_taps::<A, B, 2>(x, y),
            4 => self.along_taps::<A, B, 4>(x, y),
            _ => self.along_any(x, y),
        }
        for (y, _) in y.iter_mut().zip(&self.taps.outside).filter(|(_, outside)| **outside) {
            *y = B::store(extrapolation);
        }
    }

    /// With a number of taps that the compiler knows: those of linear and cubic interpolation.
    fn along_taps<A, B, const N: usize>(&self, x: &[A], y: &mut [B])
    where
        A: Sample<Compute = C>,
        B: Sample<Compute = C>,
    {
        let (positions, _) = self.taps.positions.as_chunks::<N>();
        let (weights, _) = self.weights.as_chunks::<N>();
        for ((y, positions), weights) in y.iter_mut().zip(positions).zip(weights) {
            let mut sum = weights[0] * x[positions[0]].load();
            for k in 1..N {
                sum += weights[k] * x[positions[k]].load();
            }
            *y = B::store(sum);
        }
    }

    fn along_any<A, B>(&self, x: &[A], y: &mut [B])
    where
        A: Sample<Compute = C>,
        B: Sample<Compute = C>,
    {
        let count = self.taps.count;
        let taps = self.taps.positions.chunks_exact(count).zip(self.weights.chunks_exact(count));
        for (y, (positions, weights)) in y.iter_mut().zip(taps) {
            let mut sum = C::zero();
            for (&p, &w) in positions.iter().zip(weights) {
                sum += w * x[p].load();
            }
            *y = B::store(sum);
        }
    }
}

/// The weighted sum of rows.
fn across<'a, A, B, C>(positions: &[usize], weights: &[C], row: impl Fn(usize) -> &'a [A], y: &mut [B])
where
    A: Sample<Compute = C>,
    B: Sample<Compute = C>,
    C: num_traits::Float + num_traits::NumAssign,
{
    /// Sums are kept on the stack for this many columns at a time.
    const WIDTH: usize = 64;
    for (block, y) in y.chunks_mut(WIDTH).enumerate() {
        let columns = block * WIDTH..block * WIDTH + y.len();
        let mut sums = [C::zero(); WIDTH];
        for (&p, &w) in positions.iter().zip(weights) {
            for (sum, x) in sums.iter_mut().zip(&row(p)[columns.clone()]) {
                *sum += w * x.load();
            }
        }
        for (y, &sum) in y.iter_mut().zip(&sums) {
            *y = B::store(sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::Value;
    use crate::testing::{elements, run, t};

    #[test]
    fn every_version_by_its_own_rules() {
        let x = || t(&[1, 1, 1, 4], &[1.0f32, 2.0, 3.0, 4.0]);
        let linear = || ("mode", Attribute::String("linear".into()));
        let scales = |s: f32| t(&[4], &[1.0f32, 1.0, 1.0, s]);
        let attribute = ("scales", Attribute::Floats(vec![1.0, 1.0, 1.0, 2.0]));
        // Results of ONNX Runtime.
        let asymmetric = vec![1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.0];
        let half_pixel = vec![1.0, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4.0];
        for (op, opset, attributes, inputs, want) in [
            ("Upsample", 7, vec![attribute, linear()], vec![x()], asymmetric.clone()),
            ("Upsample", 9, vec![linear()], vec![x(), scales(2.0)], asymmetric.clone()),
            ("Resize", 10, vec![linear()], vec![x(), scales(2.0)], asymmetric),
            ("Resize", 10, vec![], vec![x(), scales(0.5)], vec![1.0, 3.0]),
            ("Resize", 11, vec![linear()], vec![x(), t::<f32>(&[0], &[]), scales(2.0)], half_pixel),
            ("Resize", 13, vec![], vec![x(), None, None, t(&[4], &[1i64, 1, 1, 2])], vec![1.0, 3.0]),
        ] {
            let out = run(op, opset, &attributes, &inputs, 1).unwrap_or_else(|e| panic!("{op} {opset}: {e}"));
            assert_eq!(elements::<f32>(&out[0]).1, want, "{op} {opset}");
        }
    }

    /// To half the size, where taps read all elements in turn, and to twice the size along
    /// an axis that has others inside, beside the means that they are.
    #[test]
    fn linear_rows_and_columns() {
        let x: Vec<f32> = (0..36).map(|i| (i * i % 23) as f32).collect();
        let halved: Vec<f32> = (0..9)
            .map(|i| {
                let at = i / 3 * 12 + i % 3 * 2;
                (x[at] + x[at + 1] + x[at + 6] + x[at + 7]) / 4.0
            })
            .collect();
        let linear = ("mode", Attribute::String("linear".into()));
        let resized = |x: Value, scales: [f32; 4]| {
            let inputs = [Some(x), None, t(&[4], &scales)];
            elements::<f32>(&run("Resize", 13, std::slice::from_ref(&linear), &inputs, 1).unwrap()[0]).1
        };
        let of = |shape: &[usize]| t(shape, &x).unwrap();
        assert_eq!(resized(of(&[1, 1, 6, 6]), [1.0, 1.0, 0.5, 0.5]), halved);
        assert_eq!(resized(of(&[1, 1, 36, 1]), [1.0, 1.0, 0.5, 1.0]), pairs(&x));
        assert_eq!(resized(of(&[1, 1, 1, 36]), [1.0, 1.0, 1.0, 0.5]), pairs(&x));
        let wide = resized(of(&[1, 1, 2, 18]), [1.0, 1.0, 2.0, 1.0]);
        let between = |part: f32| (0..18).map(move |i| (i, part));
        let want = [0.0, 0.25, 0.75, 1.0].into_iter().flat_map(between);
        let want: Vec<f32> = want.map(|(i, part)| (1.0 - part) * x[i] + part * x[18 + i]).collect();
        assert_eq!(wide, want);
    }

    /// The means of two and two.
    fn pairs(x: &[f32]) -> Vec<f32> {
        x.as_chunks::<2>().0.iter().map(|[a, b]| (a + b) / 2.0).collect()
    }

    /// Coordinates that are whole (0 and 2) where 1/2 of 3 and 1/3 of 6 are not rounded on the way: results
    /// of the formula in rational numbers.
    #[test]
    fn symmetric_places_stay_whole() {
        for (width, sizes, rounding, want) in [
            (3, [1, 2], "ceil", vec![0.0, 2.0]),
            (3, [1, 2], "floor", vec![0.0, 2.0]),
            (6, [1, 2], "floor", vec![1.0, 4.0]),
            (6, [1, 2], "ceil", vec![1.0, 4.0]),
        ] {
            let policy = if width == 3 { "not_larger" } else { "stretch" };
            let text = |name, value: &str| (name, Attribute::String(value.into()));
            let attributes = vec![
                text("coordinate_transformation_mode", "half_pixel_symmetric"),
                text("keep_aspect_ratio_policy", policy),
                text("nearest_mode", rounding),
            ];
            let height = if width == 3 { 2 } else { 1 };
            let x: Vec<f32> = (0..height * width).map(|i| (i % width) as f32).collect();
            let inputs = [t(&[height, width], &x), None, None, t(&[2], &sizes.map(i64::from))];
            let out = run("Resize", 19, &attributes, &inputs, 1).unwrap();
            assert_eq!(elements::<f32>(&out[0]).1, want, "{width} {rounding}");
        }
    }
}
