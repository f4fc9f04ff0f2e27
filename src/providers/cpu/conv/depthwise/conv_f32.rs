//! Depthwise convolution in `f32` with constant weights.

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::providers::cpu::conv::common::blocks::GRAIN;
use crate::providers::cpu::conv::common::epilogue::F32Epilogue;
use crate::providers::cpu::conv::common::weight::{constant_weight, is_depthwise};
use crate::providers::cpu::conv::im2col;
use crate::providers::cpu::isa::Dispatch;
use crate::providers::cpu::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::providers::cpu::loops::parallel::Parts;
use crate::providers::cpu::loops::scratch::with_scratch;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

use super::nchw16c::{Nchw16c, Nchw16cImages, nchw16c_kernels};
use super::plane::{Depthwise, PlaneLayout};

struct DepthwiseConv {
    op: Conv,
    /// The weight for sixteen channels at a time, where each has one output.
    nchw16c: Option<Vec<f32>>,
}

/// What depends on shapes: the first that there is.
enum State {
    /// Sixteen channels at a time. Not with a residual, which would have to be transposed as well.
    Nchw16c(Nchw16c),
    /// One channel at a time.
    Planes(PlaneLayout),
    General(im2col::State),
}

/// `None` for other convolutions.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let weight = constant_weight(node, ElementType::F32);
    let Some(weight) = weight.filter(|weight| is_depthwise(op.group, weight)) else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let kernels = || nchw16c_kernels(aligned.view().slice::<f32>(), shape[2..].iter().product());
    let nchw16c = (shape[0] == op.group).then(kernels);
    Ok(Some(Box::new(DepthwiseConv { op: op.clone(), nchw16c })))
}

impl DepthwiseConv {
    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        if !x.contains(&0) && !w.contains(&0) {
            if let Some(way) = Nchw16c::new::<f32>(&geometry).filter(|_| self.nchw16c.is_some() && !residual)
            {
                return Ok(State::Nchw16c(way));
            }
            if let Some(layout) = PlaneLayout::new(&geometry) {
                return Ok(State::Planes(layout));
            }
        }
        Ok(State::General(im2col::State::new(&self.op, x, w)?))
    }
}

impl Kernel for DepthwiseConv {
    fn algorithm(&self) -> &'static str {
        "depthwise"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape, matches!(inputs.get(3), Some(Some(_))))?;
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let state = cx.state::<State>();
        if let State::General(state) = state {
            im2col::convolve::<f32>(cx, &self.op, state, None, inputs, outputs);
            return Ok(());
        }
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, channels, rows) = (x.shape()[0], x.shape()[1], y.shape()[1]);
        let columns = y.shape()[2..].iter().product();
        let (x, out) = (x.slice::<f32>(), Parts::new(y.slice::<f32>()));
        match (state, &self.nchw16c) {
            (State::Nchw16c(way), Some(kernels)) => {
                let bias = inputs.get(2).copied().flatten().map(|bias| bias.slice::<f32>());
                let activation = self.op.activation;
                let images = Nchw16cImages { x, images, channels, kernels, bias, activation, out: &out };
                way.convolve(cx.pool, &images);
            }
            (State::Planes(layout), _) => {
                let epilogue = F32Epilogue::new(self.op.activation, inputs, &out, columns);
                let kernels = inputs[1].map_or(&[][..], |w| w.slice::<f32>());
                let multiplier = rows / channels;
                // A multiplication takes about four times as long as one of a product.
                cx.pool.split(images * rows, GRAIN.div_ceil(4 * layout.work()), |outputs| {
                    with_scratch([layout.scratch_len()], |[scratch]: [&mut [f32]; 1]| {
                        let images = x;
                        let work = Depthwise {
                            layout,
                            images,
                            kernels,
                            channels,
                            multiplier,
                            outputs,
                            scratch,
                            epilogue,
                        };
                        work.widest();
                    });
                });
            }
            _ => {}
        }
        Ok(())
    }
}
