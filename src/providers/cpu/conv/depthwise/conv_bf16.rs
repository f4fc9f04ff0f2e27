//! Depthwise convolution in bfloat16 with constant weights, computed in `f32`.

use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::providers::cpu::conv::common::weight::{constant_weight, is_depthwise};
use crate::providers::cpu::conv::im2col;
use crate::providers::cpu::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::providers::cpu::loops::half_types::{narrow_bfloat16, widen_bfloat16};
use crate::providers::cpu::loops::parallel::Parts;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16};

use super::nchw16c::{Nchw16c, Nchw16cImages, nchw16c_kernels};
use super::plane::{Channels, DepthwisePlane};

struct DepthwiseConv {
    op: Conv,
    /// A kernel for each output channel.
    kernels: Vec<f32>,
    /// The same for sixteen channels at a time, where each has one output.
    nchw16c: Option<Vec<f32>>,
}

/// What depends on shapes: the first that there is.
enum State {
    /// Sixteen channels at a time. Not with a residual, which would have to be transposed as well.
    Nchw16c(Nchw16c),
    /// One channel at a time.
    Planes(DepthwisePlane),
    General(im2col::State),
}

/// `None` for other convolutions.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let weight = constant_weight(node, ElementType::BF16);
    let Some(weight) = weight.filter(|weight| is_depthwise(op.group, weight)) else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let kernels: Vec<f32> = aligned.view().slice::<bf16>().iter().map(|x| x.to_f32()).collect();
    let nchw16c = (shape[0] == op.group).then(|| nchw16c_kernels(&kernels, shape[2..].iter().product()));
    Ok(Some(Box::new(DepthwiseConv { op: op.clone(), kernels, nchw16c })))
}

impl DepthwiseConv {
    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        if !x.contains(&0) && !w.contains(&0) {
            if let Some(way) = Nchw16c::new::<bf16>(&geometry).filter(|_| self.nchw16c.is_some() && !residual)
            {
                return Ok(State::Nchw16c(way));
            }
            if let Some(plane) = DepthwisePlane::new(&geometry) {
                return Ok(State::Planes(plane));
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
        // A bias in floats.
        let elements = if matches!(state, State::Planes(_)) { w.shape[0] } else { 0 };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        match (cx.state::<State>(), &self.nchw16c) {
            (State::Nchw16c(way), Some(kernels)) => self.nchw16c(cx, way, kernels, inputs, outputs),
            (State::Planes(plane), _) => self.planes(cx, plane, &self.kernels, inputs, outputs),
            (State::General(state), _) => {
                im2col::convolve::<bf16>(cx, &self.op, state, None, inputs, outputs);
            }
            _ => {}
        }
        Ok(())
    }
}

impl DepthwiseConv {
    fn nchw16c(
        &self,
        cx: &KernelContext<'_>,
        nchw16c: &Nchw16c,
        kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return };
        let bias = inputs.get(2).copied().flatten().map(|input| input.slice::<bf16>());
        let (images, channels, activation) = (x.shape()[0], x.shape()[1], self.op.activation);
        let (x, out) = (x.slice::<bf16>(), Parts::new(y.slice::<bf16>()));
        let images = Nchw16cImages { x, images, channels, kernels, bias, activation, out: &out };
        nchw16c.convolve(cx.pool, &images);
    }

    /// A channel becomes floats, and its outputs bfloat16 numbers again.
    fn planes(
        &self,
        cx: &KernelContext<'_>,
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
        let activation = self.op.activation;
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
