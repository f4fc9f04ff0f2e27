//! Depthwise convolutions with a constant weight, in `f32`: sums of fewer than 256 products of differences of bytes
//! are exact there.

use super::known_zeros;
use super::requantize::{Factors, ToBytes};
use crate::conv::{Channels, DepthwisePlane};
use crate::kernel::{KernelContext, NodeContext};
use crate::loops::parallel::Parts;
use crate::loops::simd::{Loop, widest};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::qlinear::QuantizedConv;
use crate::qlinear::{Bytes, scales};
use crate::tensor::{ElementType, TensorView, TensorViewMut};

/// The kernels less their zero points.
pub(crate) struct Kernels(Vec<f32>);

/// Elements of a kernel up to which sums are exact.
const LARGEST: usize = 256;

impl Kernels {
    /// `None` for other convolutions, and where the weight or its zero points are not known.
    pub(crate) fn new(node: &NodeContext<'_>, op: &QuantizedConv) -> Result<Option<Self>, OpError> {
        let Some(w) = node.constant(op.weight()).filter(|w| (3..=4).contains(&w.shape().len())) else {
            return Ok(None);
        };
        let volume: usize = w.shape()[2..].iter().product();
        if op.group == 1 || w.shape()[1] != 1 || op.channels_last || volume > LARGEST {
            return Ok(None);
        }
        let Some(zeros) = known_zeros(node, op, w.shape()[0])? else { return Ok(None) };
        let w = w.aligned()?;
        let weights = Bytes::new(w.view());
        let zero = |row: usize| match (zeros[if zeros.len() == 1 { 0 } else { row }], w.ty()) {
            (zero, ElementType::I8) => f32::from(zero as i8),
            (zero, _) => f32::from(zero),
        };
        let kernels = (0..w.len()).map(|i| weights.at(i) - zero(i / volume.max(1)));
        Ok(Some(Kernels(kernels.collect())))
    }

    /// Floats of scratch: a bias and a factor for each row.
    pub(crate) fn scratch_len(rows: usize) -> usize {
        2 * rows
    }

    pub(crate) fn run(
        &self,
        cx: &KernelContext<'_>,
        op: &QuantizedConv,
        plane: &DepthwisePlane,
        stride: usize,
        inputs: &[Option<TensorView<'_>>],
        y: &mut TensorViewMut<'_>,
    ) {
        let input = |i: usize| inputs.get(i).copied().flatten();
        let Some(x) = input(0) else { return };
        let (images, channels, rows) = (x.shape()[0], x.shape()[1], y.shape()[1]);
        let (bias, factors) = cx.scratch::<f32>()[..2 * rows].split_at_mut(rows);
        let given = if op.requantized { input(8) } else { None };
        if let Some(given) = given {
            bias.iter_mut().zip(given.slice::<i32>()).for_each(|(y, &x)| *y = x as f32);
        }
        let zero = input(2).map_or(0.0, |zero| Bytes::new(zero).at(0));
        let (outputs, size) = (y.len() / (images * channels), x.len() / (images * channels));
        let (multiplier, x) = (rows / channels, Bytes::new(x));
        let load = |i: usize, image: &mut [f32]| match x {
            Bytes::I8(x) => widest(Widen { x: &x[i * size..][..size], zero, y: image }),
            Bytes::U8(x) => widest(Widen { x: &x[i * size..][..size], zero, y: image }),
            _ => {}
        };
        let channels = Channels {
            images,
            channels,
            kernels: &self.0,
            bias: given.map(|_| &*bias),
            residual: None,
            activation: Activation::Identity,
        };
        if !op.requantized {
            let out = Parts::new(y.slice::<i32>());
            return plane.convolve(cx.pool, &channels, load, |i, sums| {
                // SAFETY: the outputs of a channel are written once.
                let out = unsafe { out.get(i * outputs..(i + 1) * outputs) };
                widest(Integers { sums, y: out });
            });
        }
        let (Some(x_scale), Some(w_scale), Some(y_scale)) = (input(1), input(4), input(6)) else { return };
        let (w_scale, factor) = (scales(w_scale), scales(x_scale)(0) / scales(y_scale)(0));
        factors.iter_mut().enumerate().for_each(|(i, y)| *y = (w_scale(i * stride) * factor) as f32);
        let zero = input(7).map_or(0.0, |z| Bytes::new(z).at(0)) as i32;
        let signed = y.ty() == ElementType::I8;
        let out = Parts::new(y.bytes());
        plane.convolve(cx.pool, &channels, load, |i, sums| {
            for (k, sums) in sums.chunks_exact(outputs / multiplier).enumerate() {
                let at = i * outputs + k * sums.len();
                // SAFETY: the outputs of a channel are written once.
                let y = unsafe { out.get(at..at + sums.len()) };
                let factors = Factors::One(factors[i * multiplier % rows + k]);
                ToBytes { first: 0, factors, zero, signed, residual: None }.store(sums, y);
            }
        });
    }
}

/// Differences from a zero point.
struct Widen<'a, T> {
    x: &'a [T],
    zero: f32,
    y: &'a mut [f32],
}

impl<T: Copy + Into<f32>> Loop for Widen<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.y.iter_mut().zip(self.x).for_each(|(y, &x)| *y = x.into() - self.zero);
    }
}

/// Sums as integers, which they are.
struct Integers<'a> {
    sums: &'a [f32],
    y: &'a mut [i32],
}

impl Loop for Integers<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.y.iter_mut().zip(self.sums).for_each(|(y, &sum)| *y = sum as i32);
    }
}
