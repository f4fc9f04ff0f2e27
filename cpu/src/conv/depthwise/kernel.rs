//! Depthwise convolution with constant weights: the kernel of a node, for each type of images.

use std::marker::PhantomData;

use crate::conv::common::weight::{constant_weight, is_depthwise};
use crate::conv::im2col;
use crate::gemm::Store;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::parallel::Parts;
use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

use super::nchw8c::{Nchw8c, Nchw8cOutputs};
use super::nchw16c::{self, Nchw16c, Nchw16cElement, Nchw16cOutputs, nchw16c_kernels};

/// Makes the kernel of a node; `None` for other convolutions than depthwise ones of such images.
pub(crate) fn build<T: Depthwise>(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let weight = constant_weight(node, T::TYPE);
    let Some(weight) = weight.filter(|weight| is_depthwise(op.group, weight)) else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let stored = aligned.view();
    let kernels: Vec<f32> = stored.slice::<T>().iter().map(|x| x.load()).collect();
    let nchw16c = (shape[0] == op.group).then(|| nchw16c_kernels(&kernels, shape[2..].iter().product()));
    let kernels = if T::SAME { Vec::new() } else { kernels };
    let (op, threads) = (op.clone(), node.pool.threads());
    Ok(Some(Box::new(DepthwiseConv::<T> { op, kernels, nchw16c, threads, _element: PhantomData })))
}

/// Elements of images that a depthwise convolution can read, which it computes in `f32`.
pub(crate) trait Depthwise: Store<Compute = f32> + Nchw16cElement {
    /// How single channels are read; depends on shapes only.
    type Planes: Send + Sync + 'static;

    /// `None` where that would waste memory or work.
    fn planes(geometry: &Geometry) -> Option<Self::Planes>;

    /// Floats of scratch that single channels take for this many output channels.
    fn scratch_len(output_channels: usize) -> usize;

    /// Convolves one channel at a time. `kernels`: in floats, where the weight is not of floats itself.
    fn convolve(
        cx: &KernelContext<'_>,
        op: &Conv,
        planes: &Self::Planes,
        kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    );
}

struct DepthwiseConv<T> {
    op: Conv,
    /// A kernel for each output channel; empty where the weight is of floats itself.
    kernels: Vec<f32>,
    /// The same for sixteen channels at a time, where each has one output.
    nchw16c: Option<Vec<f32>>,
    threads: usize,
    _element: PhantomData<fn(T)>,
}

/// What depends on shapes: the first that there is.
enum State<P> {
    /// Eight channels at a time with AVX2's vectors, in `f32`. Not with a residual, which would have to be transposed as well.
    Nchw8c(Nchw8c),
    /// The same with sixteen channels.
    Nchw16c(Nchw16c),
    /// One channel at a time.
    Planes(P),
    General(im2col::State),
}

impl<T: Depthwise> DepthwiseConv<T> {
    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State<T::Planes>, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        if !x.contains(&0) && !w.contains(&0) {
            if self.nchw16c.is_some() && !residual {
                if let Some(way) = self.nchw8c(&geometry, x) {
                    return Ok(State::Nchw8c(way));
                }
                if let Some(way) = Nchw16c::new::<T>(&geometry) {
                    return Ok(State::Nchw16c(way));
                }
            }
            if let Some(planes) = T::planes(&geometry) {
                return Ok(State::Planes(planes));
            }
        }
        Ok(State::General(im2col::State::new(&self.op, x, w)?))
    }

    fn nchw8c(&self, g: &Geometry, x: &[usize]) -> Option<Nchw8c> {
        if T::TYPE != ElementType::F32 {
            return None;
        }
        Nchw8c::new(g, x[1], x[0], self.threads).filter(Nchw8c::fastest)
    }

    fn in_nchw8c(
        &self,
        cx: &KernelContext<'_>,
        way: &Nchw8c,
        kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return };
        let bias = inputs.get(2).copied().flatten().map(|input| input.slice::<f32>());
        let (images, channels, activation) = (x.shape()[0], x.shape()[1], self.op.activation);
        let (x, out) = (x.slice::<f32>(), &Parts::new(y.slice::<f32>()));
        way.convolve_planes(cx.pool, x, &Nchw8cOutputs { images, channels, kernels, bias, activation, out });
    }

    fn nchw16c(
        &self,
        cx: &KernelContext<'_>,
        way: &Nchw16c,
        kernels: &[f32],
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return };
        let bias = inputs.get(2).copied().flatten().map(|input| input.slice::<T>());
        let (images, channels, activation) = (x.shape()[0], x.shape()[1], self.op.activation);
        let (area, width) = (x.shape()[2..].iter().product(), *x.shape().last().unwrap_or(&1));
        let planes = nchw16c::Planes { x: x.slice::<T>(), channels, area, width };
        let out = &Parts::new(y.slice::<T>());
        let blocked = false;
        let outputs = Nchw16cOutputs { images, channels, kernels, bias, activation, blocked, out };
        way.convolve(cx.pool, &planes, 1, &outputs);
    }
}

impl<T: Depthwise> Kernel for DepthwiseConv<T> {
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
        let elements = if matches!(state, State::Planes(_)) { T::scratch_len(w.shape[0]) } else { 0 };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        match (cx.state::<State<T::Planes>>(), &self.nchw16c) {
            (State::Nchw16c(way), Some(kernels)) => self.nchw16c(cx, way, kernels, inputs, outputs),
            (State::Nchw8c(way), Some(kernels)) => self.in_nchw8c(cx, way, kernels, inputs, outputs),
            (State::Planes(planes), _) => T::convolve(cx, &self.op, planes, &self.kernels, inputs, outputs),
            (State::General(state), _) => im2col::convolve::<T>(cx, &self.op, state, None, inputs, outputs),
            (State::Nchw16c(_) | State::Nchw8c(_), None) => {}
        }
        Ok(())
    }
}
