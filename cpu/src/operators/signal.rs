//! Window functions and the mel weight matrix. They are small and computed in f64.

use std::f64::consts::TAU;

use num_traits::AsPrimitive;

use crate::ops::OpError;
use crate::ops::signal::{MelWeightMatrix, Window, WindowShape};
use crate::tensor::{TensorView, TensorViewMut, bf16, f16};

use crate::kernel::{CpuKernel, Entry, Kernel, KernelContext, NodeContext};
use crate::loops::number::{Float, dispatch};
use crate::provider::ints::Ints;

pub(super) const KERNELS: &[Entry] = &[
    Entry::new("HannWindow", window),
    Entry::new("HammingWindow", window),
    Entry::new("BlackmanWindow", window),
    Entry::new("MelWeightMatrix", |node| {
        let _ = node.op::<MelWeightMatrix>();
        Ok(CpuKernel::Tensor(Box::new(Mel)))
    }),
];

fn window(node: &NodeContext<'_>) -> Result<CpuKernel, OpError> {
    Ok(CpuKernel::Tensor(Box::new(Points(node.op::<Window>().clone()))))
}

/// Writes `f(i)` to element `i`; integers are rounded towards zero.
fn write(output: &mut TensorViewMut<'_>, f: impl Fn(usize) -> f64) -> Result<(), OpError> {
    dispatch!(
        Some(output.ty()),
        T in [f32, f64, f16, bf16, u8, u16, u32, u64, i8, i16, i32, i64] => {
            output.slice::<T>().iter_mut().enumerate().for_each(|(i, y)| *y = f(i).as_());
            Ok(())
        },
        else Err(OpError::Unsupported(format!("an output of type {}", output.ty())))
    )
}

struct Points(Window);

impl Kernel for Points {
    fn run(
        &self,
        _: &KernelContext<'_>,
        _: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        // A periodic window is the beginning of a symmetric one that is a point longer.
        let span = if self.0.periodic { output.len() } else { output.len().saturating_sub(1) }.max(1);
        let shape = self.0.shape;
        write(output, |i| {
            let x = TAU * i as f64 / span as f64;
            match shape {
                WindowShape::Hann => 0.5 - 0.5 * x.cos(),
                WindowShape::Hamming => 25.0 / 46.0 - 21.0 / 46.0 * x.cos(),
                WindowShape::Blackman => 0.42 - 0.5 * x.cos() + 0.08 * (2.0 * x).cos(),
            }
        })
    }
}

struct Mel;

impl Kernel for Mel {
    fn run(
        &self,
        _: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(output) = &mut outputs[0] else { return Ok(()) };
        let int = |i: usize, name: &str| {
            let value = Ints::required(inputs[i], name)?.iter().next();
            value.ok_or_else(|| OpError::Data(format!("{name} is empty; one number is needed")))
        };
        let (length, rate) = (int(1, "dft_length")?, int(2, "sample_rate")?);
        if rate <= 0 {
            return Err(OpError::Data(format!("sample_rate is {rate}; it must be positive")));
        }
        let (low, high) = (float(inputs[3], "lower_edge_hertz")?, float(inputs[4], "upper_edge_hertz")?);
        let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
        let bins = output.shape()[1];
        let step = (mel(high) - mel(low)) / (bins + 2) as f64;
        // The spectrogram bin that lies at the edge of a triangle.
        let edge = |i: usize| {
            let hertz = 700.0 * (10f64.powf((i as f64 * step + mel(low)) / 2595.0) - 1.0);
            ((length + 1) as f64 * hertz / rate as f64).floor()
        };
        write(output, |at| {
            let (j, i) = ((at / bins) as f64, at % bins);
            let (left, centre, right) = (edge(i), edge(i + 1), edge(i + 2));
            if j >= centre && j < right {
                (right - j) / (right - centre)
            } else if j >= left && j <= centre && left < centre {
                (j - left) / (centre - left)
            } else {
                f64::from(u8::from(j == centre && left == centre))
            }
        })
    }
}

fn float(view: Option<TensorView<'_>>, name: &str) -> Result<f64, OpError> {
    let value = view.and_then(|view| {
        dispatch!(Some(view.ty()), T in [f32, f64, f16, bf16] => view.slice::<T>().first().map(|x| x.up().as_()), else None)
    });
    value.ok_or_else(|| OpError::Data(format!("{name} must be one float")))
}
