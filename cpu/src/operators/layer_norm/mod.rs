//! Layer and RMS normalisation: all axes from one on.

mod mixed_rms;
mod rows;

use std::marker::PhantomData;

use crate::ops::OpError;
use crate::ops::layer_norm::LayerNorm;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16, f16};

use crate::isa::Dispatch;
use crate::kernel::{Argument, CpuKernel, Entry, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::broadcast::Broadcast;
use crate::loops::parallel::{GRAIN, Parts};
use crate::loops::same_type::{same_type, same_type_mut};
use crate::loops::statistics::{Real, affine, moments, total};
use crate::loops::widen::Widen;
use rows::Rows;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("LayerNormalization", build),
    Entry::new("RMSNormalization", build),
    Entry::new("SimplifiedLayerNormalization", build),
];

fn build(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    use ElementType::{BF16, F16, F32, F64};
    let op = *node.op::<LayerNorm>();
    fn kernel<T, S>(op: LayerNorm) -> Box<dyn Kernel>
    where
        T: Widen<Wide: Real>,
        S: Widen<Wide = T::Wide>,
    {
        Box::new(LayerNormKernel::<T, S> { op, _types: PhantomData })
    }
    // Exporters keep the parameters of half-precision models in f32 now and then.
    // The output of RMSNormalization has the scale's type.
    if op.rms && node.output(0) != node.input(0) {
        return mixed_rms::build(node);
    }
    let kernel = match (node.input(0), node.input(1)) {
        _ if node.output(0) != node.input(0) || (node.has_input(2) && node.input(2) != node.input(1)) => {
            return Err(node.no_kernel());
        }
        (Some(F32), Some(F32)) => kernel::<f32, f32>(op),
        (Some(F64), Some(F64)) => kernel::<f64, f64>(op),
        (Some(F16), Some(F16)) => kernel::<f16, f16>(op),
        (Some(BF16), Some(BF16)) => kernel::<bf16, bf16>(op),
        (Some(F16), Some(F32)) => kernel::<f16, f32>(op),
        (Some(BF16), Some(F32)) => kernel::<bf16, f32>(op),
        _ => return Err(node.no_kernel()),
    };
    Ok(CpuKernel::Tensor(kernel))
}

struct LayerNormKernel<T, S> {
    op: LayerNorm,
    _types: PhantomData<fn(T, S)>,
}

/// How the parameters lie beside the rows that are normalised.
struct Layout {
    /// Elements of a row.
    row: usize,
    /// For scale and bias: how they broadcast to the whole input, when they are not one row.
    spread: [Option<Broadcast<1>>; 2],
    elements: usize,
}

impl<T: Widen<Wide: Real>, S: Widen<Wide = T::Wide>> Kernel for LayerNormKernel<T, S> {
    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let layout: &Layout = cx.state();
        let row = layout.row;
        if row == 0 || layout.elements == 0 {
            return Ok(());
        }
        let x = inputs[0].map(|x| x.slice::<T>());
        let given = |i: usize| inputs.get(i).copied().flatten().map(|p| p.slice::<S>());
        let spread = cx.scratch::<S>();
        let (first, second) =
            spread.split_at_mut(if layout.spread[0].is_some() { layout.elements } else { 0 });
        let one = [S::down(T::Wide::of(1.0))];
        let zero = [S::down(T::Wide::of(0.0))];
        let scale = Parameter::new(given(1).unwrap_or(&one), &layout.spread[0], first);
        let bias = Parameter::new(given(2).unwrap_or(&zero), &layout.spread[1], second);
        let [Some(y), statistics @ ..] = outputs else { return Ok(()) };
        let y = Parts::new(y.slice::<T>());
        // RMS normalisation has no output for the mean.
        let (mean_out, deviation_out) = match statistics {
            [] => (None, None),
            [deviation] if self.op.rms => (None, deviation.as_mut()),
            [mean] => (mean.as_mut(), None),
            [mean, deviation, ..] => (mean.as_mut(), deviation.as_mut()),
        };
        let (mean_out, deviation_out) = (Statistic::new(mean_out), Statistic::new(deviation_out));
        let singles = scale.singles(row).zip(bias.singles(row)).filter(|(scale, _)| scale.len() == row);
        cx.pool.split(layout.elements / row, (GRAIN / row).max(1), |rows| {
            let part = rows.start * row..rows.end * row;
            // SAFETY: each row belongs to one thread.
            let of_singles = same_type_mut(unsafe { y.get(part.clone()) });
            if let Some(((scale, bias), y)) = singles.zip(of_singles) {
                let x = x.and_then(|x| same_type(&x[part]));
                let LayerNorm { rms, epsilon, .. } = self.op;
                // SAFETY: as above, one element for each row.
                let statistics = |i: usize, mean, factor| unsafe {
                    mean_out.set(rows.start + i, mean);
                    deviation_out.set(rows.start + i, factor);
                };
                Rows { x, y, row, rms, epsilon: f64::from(epsilon), scale, bias, statistics }.widest();
                return;
            }
            for i in rows {
                // SAFETY: each row belongs to one thread.
                let y = unsafe { y.get(i * row..(i + 1) * row) };
                let x = x.map(|x| &x[i * row..(i + 1) * row]);
                let (mean, spread) = self.moments(x.unwrap_or(y));
                let factor = 1.0 / (spread + self.op.epsilon as f64).sqrt();
                // SAFETY: as above, one element for each row.
                unsafe {
                    mean_out.set(i, mean);
                    deviation_out.set(i, factor);
                }
                let (mean, factor) = (T::Wide::of(mean), T::Wide::of(factor));
                affine(x, y, mean, factor, scale.row(i, row), bias.row(i, row));
            }
        });
        Ok(())
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = inputs[0] else { return Ok(Prepared::default()) };
        let axis = crate::ops::normalize_axis("axis", self.op.axis, x.shape.len())?;
        let row: usize = x.shape[axis..].iter().product();
        let elements = x.shape.iter().product();
        let spread = |i: usize| {
            let parameter = inputs.get(i).copied().flatten()?;
            let count: usize = parameter.shape.iter().product();
            // One row, whatever ones stand before its shape, or a single element.
            let is_row = count == row && parameter.shape.ends_with(&x.shape[axis..]);
            (!is_row && count != 1).then(|| Broadcast::new(x.shape, [parameter.shape]))
        };
        let spread = [spread(1), spread(2)];
        let copies = spread.iter().flatten().count();
        let layout = Layout { row, spread, elements };
        Ok(Prepared { state: Some(Box::new(layout)), scratch: copies * elements * size_of::<S>() })
    }

    fn in_place(&self) -> &[usize] {
        &[0]
    }
}

impl<T: Widen<Wide: Real>, S> LayerNormKernel<T, S> {
    /// What is subtracted, and the mean square of the rest.
    fn moments(&self, x: &[T]) -> (f64, f64) {
        match self.op.rms {
            true => (0.0, total(x, T::Wide::sum_squares) / x.len() as f64),
            false => moments(x),
        }
    }
}

/// A scale or bias: one row (or element) for all rows, or as many elements as the input.
struct Parameter<'a, S> {
    elements: &'a [S],
    every_row: bool,
}

impl<'a, S: Copy + 'static> Parameter<'a, S> {
    fn new(given: &'a [S], spread: &Option<Broadcast<1>>, copy: &'a mut [S]) -> Self {
        let Some(walk) = spread else { return Parameter { elements: given, every_row: true } };
        walk.each(0..copy.len(), |out, [read]| match &given[read] {
            &[one] => copy[out].fill(one),
            many => copy[out].copy_from_slice(many),
        });
        Parameter { elements: copy, every_row: false }
    }

    /// The elements where they are `f32` and serve every row, each of `row`.
    fn singles(&self, row: usize) -> Option<&[f32]> {
        let fits = self.every_row && [1, row].contains(&self.elements.len());
        same_type(self.elements).filter(|_| fits)
    }

    fn row(&self, i: usize, row: usize) -> &[S] {
        if self.every_row { self.elements } else { &self.elements[i * row..(i + 1) * row] }
    }
}

/// An output for one number a row, in any float type.
pub(super) enum Statistic<'a> {
    None,
    F32(Parts<'a, f32>),
    F64(Parts<'a, f64>),
    F16(Parts<'a, f16>),
    BF16(Parts<'a, bf16>),
}

impl<'a> Statistic<'a> {
    pub(super) fn new(view: Option<&'a mut TensorViewMut<'_>>) -> Self {
        let Some(view) = view else { return Statistic::None };
        match view.ty() {
            ElementType::F32 => Statistic::F32(Parts::new(view.slice())),
            ElementType::F64 => Statistic::F64(Parts::new(view.slice())),
            ElementType::F16 => Statistic::F16(Parts::new(view.slice())),
            _ => Statistic::BF16(Parts::new(view.slice())),
        }
    }

    /// # Safety
    /// No two threads set the same element.
    pub(super) unsafe fn set(&self, i: usize, x: f64) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Statistic::None => {}
                Statistic::F32(parts) => parts.get(i..i + 1)[0] = x as f32,
                Statistic::F64(parts) => parts.get(i..i + 1)[0] = x,
                Statistic::F16(parts) => parts.get(i..i + 1)[0] = f16::from_f64(x),
                Statistic::BF16(parts) => parts.get(i..i + 1)[0] = bf16::from_f64(x),
            }
        }
    }
}
