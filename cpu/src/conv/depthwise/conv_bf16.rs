//! Depthwise convolution of images in bfloat16, one channel at a time: it becomes floats, and its outputs bfloat16 numbers
//! again.

use crate::kernel::KernelContext;
use crate::loops::half_types::{narrow_bfloat16, widen_bfloat16};
use crate::loops::parallel::Parts;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{TensorView, TensorViewMut, bf16};

use super::kernel::Depthwise;
use super::plane::{Channels, DepthwisePlane};

impl Depthwise for bf16 {
    type Planes = DepthwisePlane;

    fn planes(geometry: &Geometry) -> Option<DepthwisePlane> {
        DepthwisePlane::new(geometry)
    }

    /// A bias in floats.
    fn scratch_len(output_channels: usize) -> usize {
        output_channels
    }

    fn convolve(
        cx: &KernelContext<'_>,
        op: &Conv,
        plane: &DepthwisePlane,
        kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<bf16>());
        let (images, channels, rows) = (x.shape()[0], x.shape()[1], y.shape()[1]);
        let outputs = y.len() / (images * channels);
        let bias = optional(2).map(|bias| {
            let floats = &mut cx.scratch::<f32>()[..rows];
            widen_bfloat16(bias, floats);
            &*floats
        });
        let part = |of: Option<&[bf16]>, i: usize, out: &mut [f32]| {
            if let Some(of) = of {
                widen_bfloat16(&of[i * out.len()..][..out.len()], out);
            }
        };
        let residual = |i: usize, out: &mut [f32]| part(optional(3), i, out);
        let activation = op.activation;
        let residual = optional(3).map(|_| &residual as &(dyn Fn(usize, &mut [f32]) + Sync));
        let x = x.slice::<bf16>();
        let out = Parts::new(y.slice::<bf16>());
        let channels = Channels { images, channels, kernels, bias, residual, activation };
        plane.convolve(
            cx.pool,
            &channels,
            |i, image| part(Some(x), i, image),
            // SAFETY: the outputs of a channel are written once.
            |i, sums| narrow_bfloat16(sums, unsafe { out.get(i * outputs..(i + 1) * outputs) }),
        );
    }
}
