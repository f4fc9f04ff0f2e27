//! Depthwise convolution of images in `f32`, one channel at a time.

use crate::conv::common::blocks::GRAIN;
use crate::conv::common::epilogue::F32Epilogue;
use crate::isa::Dispatch;
use crate::kernel::KernelContext;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{TensorView, TensorViewMut};

use super::kernel::Depthwise;
use super::plane::{OutputPlanes, PlaneLayout};

impl Depthwise for f32 {
    type Planes = PlaneLayout;

    fn planes(geometry: &Geometry) -> Option<PlaneLayout> {
        PlaneLayout::new(geometry)
    }

    fn scratch_len(_output_channels: usize) -> usize {
        0
    }

    fn convolve(
        cx: &KernelContext<'_>,
        op: &Conv,
        layout: &PlaneLayout,
        _kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let (Some(x), Some(weight), Some(y)) = (inputs[0], inputs[1], &mut outputs[0]) else { return };
        let (count, channels, rows) = (x.shape()[0], x.shape()[1], y.shape()[1]);
        let columns = y.shape()[2..].iter().product();
        let (images, kernels, multiplier) = (x.slice::<f32>(), weight.slice::<f32>(), rows / channels);
        let out = Parts::new(y.slice::<f32>());
        let epilogue = F32Epilogue::new(op.activation, inputs, &out, columns);
        // A multiplication takes about four times as long as one of a product.
        cx.pool.split(count * rows, GRAIN.div_ceil(4 * layout.work()), |outputs| {
            with_scratch([layout.scratch_len()], |[scratch]: [&mut [f32]; 1]| {
                OutputPlanes {
                    layout,
                    images,
                    kernels,
                    channels,
                    multiplier,
                    outputs,
                    scratch,
                    padded: false,
                    epilogue,
                }
                .widest();
            });
        });
    }
}
