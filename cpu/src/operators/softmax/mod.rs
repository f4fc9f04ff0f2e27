//! Softmax and its relatives.

mod few_columns;
mod floats;
mod rows;
#[cfg(target_arch = "x86_64")]
mod short;

use std::marker::PhantomData;
use std::ops::Range;

use num_traits::{Float, One, Zero};

use crate::ops::OpError;
use crate::ops::softmax::{Normalizer, Softmax};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::isa::Dispatch;
use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::map::Half;
use crate::loops::number::dispatch;
use crate::loops::parallel::{Parts, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::statistics::{Real, total};
use crate::loops::widen::{RUN, Widen};
use floats::{Columns, Floats};
use rows::Rows;

pub(super) const KERNELS: &[Entry] =
    &[Entry::new("Softmax", build), Entry::new("LogSoftmax", build), Entry::new("Hardmax", build)];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    let op = *node.op::<Softmax>();
    if op.normalizer != Normalizer::Hardmax && node.input(0) == Some(ElementType::F32) {
        return Ok(CpuKernel::Tensor(Box::new(Floats(op))));
    }
    if op.normalizer == Normalizer::Softmax {
        dispatch!(node.input(0), T in [f16, bf16] =>
            return Ok(CpuKernel::Tensor(Box::new(Halves::<T>(op, PhantomData)))), else ());
    }
    dispatch!(node.input(0), T in [f32, f64, f16, bf16] =>
        Ok(CpuKernel::Tensor(Box::new(General::<T> { op, _type: PhantomData }))),
        else Err(node.no_kernel()))
}

/// Elements a piece of work has at least; an exponential takes about a nanosecond.
const GRAIN: usize = 16 * 1024;

/// Softmax of halves as `f32` in vectors, rounded once.
struct Halves<T>(Softmax, PhantomData<fn(T)>);

impl<T: Half + Widen<Wide = f32>> Kernel for Halves<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (outer, along, inner) = self.0.split(output.shape())?;
        let width = COLUMNS.min(inner);
        if inner != 1 && along * width > KEPT {
            return General::<T> { op: self.0, _type: PhantomData }.run(cx, inputs, outputs);
        }
        let x = inputs[0].map(|x| x.slice::<T>());
        if inner != 1 && along > 0 {
            let (y, blocks) = (Parts::new(output.slice::<T>()), inner.div_ceil(COLUMNS));
            cx.pool.split(outer * blocks, (GRAIN / (along * width).max(1)).max(1), |units| {
                with_scratch([along * width], |[block]: [&mut [f32]; 1]| {
                    for unit in units {
                        let (start, first) = (unit / blocks * along * inner, unit % blocks * COLUMNS);
                        let width = width.min(inner - first);
                        let row = |k: usize| {
                            let at = start + k * inner + first;
                            // SAFETY: each unit has columns of its own, and holds one row of them at a time.
                            (at..at + width, unsafe { y.get(at..at + width) })
                        };
                        for (k, wide) in block.chunks_exact_mut(width).enumerate().take(along) {
                            let (range, y) = row(k);
                            T::widen(x.map_or(&*y, |x| &x[range]), wide);
                        }
                        let (columns, y) = (0..width, Parts::new(&mut block[..along * width]));
                        let start = 0;
                        Columns { x: None, y: &y, start, along, inner: width, columns, logarithm: false }
                            .widest();
                        for (k, wide) in block.chunks_exact(width).enumerate().take(along) {
                            T::narrow(wide, row(k).1);
                        }
                    }
                });
            });
            return Ok(());
        }
        split_mut(cx.pool, output.slice::<T>(), along, (GRAIN / along.max(1)).max(1), |range, part| {
            with_scratch([along], |[row]: [&mut [f32]; 1]| {
                for (i, y) in range.zip(part.chunks_mut(along)) {
                    T::widen(x.map_or(&*y, |x| &x[i * along..][..along]), row);
                    Rows { x: None, y: row, along, logarithm: false }.widest();
                    T::narrow(row, y);
                }
            });
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

/// Any normaliser, type and axis. Exponentials are computed twice rather than kept in a half type.
struct General<T> {
    op: Softmax,
    _type: PhantomData<fn(T)>,
}

/// Columns that are normalised at a time.
const COLUMNS: usize = 128;
/// Elements that a thread keeps memory for.
const KEPT: usize = 1 << 18;

impl<T: Widen<Wide: Real>> Kernel for General<T> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let (outer, along, inner) = self.op.split(output.shape())?;
        let y = output.slice::<T>();
        if y.is_empty() {
            return Ok(());
        }
        // In place or not, the kernel works on the output.
        let x = inputs[0].map(|x| x.slice::<T>());
        if inner == 1 {
            split_mut(cx.pool, y, along, (GRAIN / along).max(1), |range, part| {
                for (i, y) in range.zip(part.chunks_mut(along)) {
                    if let Some(x) = x {
                        y.copy_from_slice(&x[i * along..][..along]);
                    }
                    self.row(y);
                }
            });
            return Ok(());
        }
        if let Some(x) = x {
            y.copy_from_slice(x);
        }
        let blocks = inner.div_ceil(COLUMNS);
        let parts = Parts::new(y);
        cx.pool.split(outer * blocks, (GRAIN / (along * COLUMNS)).max(1), |units| {
            for unit in units {
                let (o, block) = (unit / blocks, unit % blocks);
                let columns = block * COLUMNS..((block + 1) * COLUMNS).min(inner);
                self.columns(&parts, o * along * inner, along, inner, columns);
            }
        });
        Ok(())
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

impl<T: Widen<Wide: Real>> General<T> {
    fn row(&self, y: &mut [T]) {
        let mut buffer = [T::Wide::zero(); RUN];
        let max = y.chunks(RUN).fold(T::Wide::neg_infinity(), |max, y| {
            let here = T::Wide::largest(T::load(y, &mut buffer));
            if max > here || max.is_nan() { max } else { here }
        });
        if self.op.normalizer == Normalizer::Hardmax {
            return hard(y.iter_mut(), max);
        }
        let mut shifted = [T::Wide::zero(); RUN];
        let sum = {
            let shifted = std::cell::RefCell::new(&mut shifted);
            total(y, |y| {
                let mut shifted = shifted.borrow_mut();
                let shifted = &mut shifted[..y.len()];
                shifted.iter_mut().zip(y).for_each(|(s, &y)| *s = y - max);
                T::Wide::exp_all(shifted);
                T::Wide::sum(shifted)
            })
        };
        let (log_sum, inverse) = (T::Wide::of(sum.ln()), T::Wide::of(1.0 / sum));
        for y in y.chunks_mut(RUN) {
            T::update(y, &mut buffer, |y| self.write(y, |_| max, |_| log_sum, |_| inverse));
        }
    }

    /// Columns `columns` of the matrix `[along, inner]` that starts at `start`.
    fn columns(&self, parts: &Parts<'_, T>, start: usize, along: usize, inner: usize, columns: Range<usize>) {
        let width = columns.len();
        // SAFETY: each call has columns of its own, and holds one row of them at a time.
        let row = |k: usize| unsafe {
            parts.get(start + k * inner + columns.start..start + k * inner + columns.end)
        };
        let (mut buffer, mut shifted) = ([T::Wide::zero(); RUN], [T::Wide::zero(); COLUMNS]);
        let mut max = [T::Wide::neg_infinity(); COLUMNS];
        for k in 0..along {
            for (max, &x) in max.iter_mut().zip(T::load(row(k), &mut buffer)) {
                *max = if *max > x || max.is_nan() { *max } else { x };
            }
        }
        if self.op.normalizer == Normalizer::Hardmax {
            for (column, &max) in max[..width].iter().enumerate() {
                let mut found = false;
                for k in 0..along {
                    let y = &mut row(k)[column];
                    let first = !found && (y.up() == max || max.is_nan());
                    found |= first;
                    *y = T::down(if first { T::Wide::one() } else { T::Wide::zero() });
                }
            }
            return;
        }
        let mut sums = [0.0f64; COLUMNS];
        for k in 0..along {
            let x = T::load(row(k), &mut buffer);
            for ((s, &x), &max) in shifted.iter_mut().zip(x).zip(&max) {
                *s = x - max;
            }
            T::Wide::exp_all(&mut shifted[..width]);
            sums.iter_mut().zip(&shifted[..width]).for_each(|(sum, s)| *sum += s.wide());
        }
        let log_sums = sums.map(|s| T::Wide::of(s.ln()));
        let inverses = sums.map(|s| T::Wide::of(1.0 / s));
        for k in 0..along {
            T::update(row(k), &mut buffer, |y| self.write(y, |i| max[i], |i| log_sums[i], |i| inverses[i]));
        }
    }

    /// Replaces elements by what they normalise to.
    fn write(
        &self,
        y: &mut [T::Wide],
        max: impl Fn(usize) -> T::Wide,
        log_sum: impl Fn(usize) -> T::Wide,
        inverse: impl Fn(usize) -> T::Wide,
    ) {
        y.iter_mut().enumerate().for_each(|(i, y)| *y = *y - max(i));
        if self.op.normalizer == Normalizer::LogSoftmax {
            y.iter_mut().enumerate().for_each(|(i, y)| *y = *y - log_sum(i));
        } else {
            T::Wide::exp_all(y);
            y.iter_mut().enumerate().for_each(|(i, y)| *y = *y * inverse(i));
        }
    }
}

/// One at the first element that equals the largest, zero elsewhere.
fn hard<'a, T: Widen<Wide: Real>>(y: impl Iterator<Item = &'a mut T>, max: T::Wide) {
    let mut found = false;
    for y in y {
        let first = !found && (y.up() == max || max.is_nan());
        found |= first;
        *y = T::down(if first { T::Wide::one() } else { T::Wide::zero() });
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::Attribute;
    use crate::tensor::{bf16, f16};

    use crate::testing::{elements, run, t};

    #[test]
    fn rows_columns_and_flattened() {
        let x: Vec<f32> = (0..12).map(|i| i as f32 / 4.0).collect();
        // Opset 11 flattens [2, 3, 2] to [2, 6] at axis 1; numbers of another runtime.
        let flat = [0.081_576_91, 0.104_746_83, 0.134_497_58, 0.172_698_32, 0.221_749_02, 0.284_731_4];
        let logs = [-1.680_269_7f32, -1.680_269_7, -1.180_269_7, -1.180_269_7, -0.680_269_66, -0.680_269_66];
        let axis = [("axis", Attribute::Int(1))];
        for (name, opset, want) in [("Softmax", 11, flat), ("LogSoftmax", 13, logs)] {
            let out = run(name, opset, &axis, &[t(&[2, 3, 2], &x)], 1).unwrap();
            for (got, want) in elements::<f32>(&out[0]).1.iter().zip(want.iter().chain(&want)) {
                assert!((got - want).abs() < 1e-6, "{name}: {got} {want}");
            }
            let half: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
            let out = run(name, opset, &axis, &[t(&[2, 3, 2], &half)], 1).unwrap();
            for (got, want) in elements::<f16>(&out[0]).1.iter().zip(want.iter().chain(&want)) {
                assert_eq!(got.to_bits(), f16::from_f32(*want).to_bits(), "{name}: {got} {want}");
            }
        }
        let out = run("Hardmax", 13, &axis, &[t(&[1, 3, 2], &[1.0f32, 5.0, 3.0, 5.0, 3.0, 0.0])], 1).unwrap();
        assert_eq!(elements::<f32>(&out[0]).1, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    }
    /// Several blocks of columns, and a part of one.
    #[test]
    fn columns_of_halves_are_those_of_floats() {
        let axis = [("axis", Attribute::Int(1))];
        for (along, inner) in [(1, 2), (5, 300), (16, 128), (40, 17)] {
            let shape = [2, along, inner];
            let x: Vec<f32> = (0..2 * along * inner).map(|i| (i * 37 % 101) as f32 / 8.0 - 6.0).collect();
            let want = elements::<f32>(&run("Softmax", 13, &axis, &[t(&shape, &x)], 1).unwrap()[0]).1;
            let halves: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
            let got = elements::<bf16>(&run("Softmax", 13, &axis, &[t(&shape, &halves)], 1).unwrap()[0]).1;
            assert!(got.iter().zip(&want).all(|(got, want)| *got == bf16::from_f32(*want)), "{shape:?}");
            let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
            let got = elements::<f16>(&run("Softmax", 13, &axis, &[t(&shape, &halves)], 1).unwrap()[0]).1;
            assert!(got.iter().zip(&want).all(|(got, want)| *got == f16::from_f32(*want)), "{shape:?}");
        }
    }
}
