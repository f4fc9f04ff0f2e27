//! Convolution in bfloat16 with constant weights, over one or two axes: as dot groups of two channels where the processor
//! has products of them; depthwise in `f32`, sixteen channels or one at a time.

use super::epilogue::{ChannelBlocked, Place, RoundedToBf16, TileEpilogue};
use super::image::{Image, Pixels, dot_plan_needed};
use super::layout::{ImageLayout, Images};
use super::panels::DotPanels;
use super::plan::DotPlan;
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::{Conv, RESIDUAL};
#[cfg(target_arch = "x86_64")]
use crate::providers::cpu::conv::common::avx512::with_function;
use crate::providers::cpu::conv::depthwise::nchw16c::{Nchw16c, Nchw16cImages, nchw16c_kernels};
use crate::providers::cpu::conv::depthwise::plane::{Channels, DepthwisePlane};
use crate::providers::cpu::conv::im2col;
use crate::providers::cpu::gemm::{Bf16Pair, Left};
use crate::providers::cpu::halves::{narrow_bfloat16, widen_bfloat16};
use crate::providers::cpu::parallel::Parts;
use crate::providers::cpu::{Argument, Kernel, KernelContext, Prepared};
use crate::tensor::{Tensor, TensorView, TensorViewMut, bf16};
use crate::threads::Pool;

pub(crate) struct Bf16Conv {
    op: Conv,
    weight: Weight,
    threads: usize,
}

enum Weight {
    Dot(DotPanels<Bf16Pair>),
    Depthwise(Kernels),
}

/// A kernel for each output channel.
struct Kernels {
    floats: Vec<f32>,
    /// The same for sixteen channels at a time, where each has one output.
    nchw16c: Option<Vec<f32>>,
}

/// What depends on shapes.
enum State {
    Dot(Box<DotPlan>),
    Nchw16c(Nchw16c),
    Depthwise(DepthwisePlane),
    General(im2col::State),
    /// There are no outputs.
    Nothing,
}

impl Bf16Conv {
    /// `None` where it takes products that the processor does not have. The weight has one or two spatial axes.
    pub(crate) fn new(op: &Conv, weight: &Tensor, pool: &Pool) -> Result<Option<Self>, OpError> {
        let shape = weight.shape();
        let aligned = weight.aligned()?;
        let elements = aligned.view().slice::<bf16>();
        let weight = if op.group > 1 && shape[1] == 1 {
            let floats: Vec<f32> = elements.iter().map(|x| x.to_f32()).collect();
            let nchw16c =
                (shape[0] == op.group).then(|| nchw16c_kernels(&floats, shape[2..].iter().product()));
            Weight::Depthwise(Kernels { floats, nchw16c })
        } else {
            let sizes = [op.group, shape[0] / op.group, shape[1], shape[2..].iter().product()];
            match DotPanels::of_halves(elements, sizes, pool) {
                Some(panels) => Weight::Dot(panels),
                None => return Ok(None),
            }
        };
        Ok(Some(Bf16Conv { op: op.clone(), weight, threads: pool.threads() }))
    }

    /// Whether it takes and gives channel-blocked images.
    pub(crate) fn blocks_channels(&self) -> bool {
        matches!(self.weight, Weight::Dot(_))
    }

    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State, OpError> {
        let [input, output] = self.op.channel_blocked;
        let space = if input { &x[2..x.len() - 1] } else { &x[2..] };
        let geometry = self.op.window.geometry(space, &w[2..])?;
        let empty = x.contains(&0) || w.contains(&0);
        let given = if input { ImageLayout::ChannelBlocked } else { ImageLayout::Nchw };
        let images = Images { given, channels: w[1], only_way: input || output };
        let state = match &self.weight {
            _ if empty => None,
            Weight::Dot(panels) => {
                DotPlan::new(panels, &geometry, images, self.threads).map(|plan| State::Dot(Box::new(plan)))
            }
            Weight::Depthwise(kernels) => {
                let nchw16c = kernels.nchw16c.as_ref().filter(|_| !residual);
                let nchw16c = nchw16c.and_then(|_| Nchw16c::new::<bf16>(&geometry)).map(State::Nchw16c);
                nchw16c.or_else(|| DepthwisePlane::new(&geometry).map(State::Depthwise))
            }
        };
        match state {
            Some(state) => Ok(state),
            None if !images.only_way => Ok(State::General(im2col::State::new(&self.op, x, w)?)),
            None if x[0] * w[0] * geometry.output.iter().product::<usize>() == 0 => Ok(State::Nothing),
            None => Err(dot_plan_needed(x, w)),
        }
    }
}

impl Kernel for Bf16Conv {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape, matches!(inputs.get(3), Some(Some(_))))?;
        let elements = match &state {
            State::Dot(plan) => match &self.weight {
                Weight::Dot(panels) => panels.padded_rows() * self.op.group + plan.scratch_len(self.op.group),
                Weight::Depthwise(_) => 0,
            },
            // A bias in floats.
            State::Depthwise(_) => w.shape[0],
            State::Nchw16c(_) | State::General(_) | State::Nothing => 0,
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<u32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        match (cx.state::<State>(), &self.weight) {
            (State::Dot(plan), Weight::Dot(panels)) => self.dot(cx, plan, panels, inputs, outputs),
            (State::Nchw16c(nchw16c), Weight::Depthwise(Kernels { nchw16c: Some(kernels), .. })) => {
                self.nchw16c(cx, nchw16c, kernels, inputs, outputs);
                Ok(())
            }
            (State::Depthwise(plane), Weight::Depthwise(kernels)) => {
                self.depthwise(cx, plane, &kernels.floats, inputs, outputs);
                Ok(())
            }
            (State::General(state), weight) => {
                let packed = match weight {
                    Weight::Dot(panels) => Some(Left::Source(panels)),
                    Weight::Depthwise(_) => None,
                };
                im2col::convolve::<bf16>(cx, &self.op, state, packed, inputs, outputs);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn consumes(&self, input: usize) -> bool {
        // The general way reads a depthwise weight.
        input == 1 && matches!(self.weight, Weight::Dot(_))
    }
}

impl Bf16Conv {
    fn dot(
        &self,
        cx: &KernelContext<'_>,
        plan: &DotPlan,
        panels: &DotPanels<Bf16Pair>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<bf16>());
        let (images, rows, group) = (x.shape()[0], panels.rows(), self.op.group);
        let columns = y.len() / (images * rows);
        let padded = panels.padded_rows();
        let (first, scratch) = cx.scratch::<u32>().split_at_mut(group * padded);
        first.fill(0);
        if let Some(bias) = optional(2) {
            let m = rows / group;
            for (first, bias) in first.chunks_exact_mut(padded).zip(bias.chunks_exact(m)) {
                first.iter_mut().zip(bias).for_each(|(y, x)| *y = u32::from(x.to_bits()) << 16);
            }
        }
        let (x, size) = (x.slice::<bf16>(), x.len() / images);
        let out = Parts::new(y.slice::<bf16>());
        for i in 0..images {
            if cx.cancelled() {
                return Err(OpError::Cancelled);
            }
            let pixels = match self.op.channel_blocked[0] {
                true => Pixels::channel_blocked(&x[i * size..][..size])?,
                false => Pixels::Nchw(&x[i * size..][..size]),
            };
            let image = Image { pixels, flip: 0, border: 0 };
            let place = Place { out: &out, start: i * rows * columns, columns };
            let run = Run { cx, plan, panels, image: &image, first, scratch };
            run.activated(self.op.activation, self.op.channel_blocked[1], place, optional(RESIDUAL));
        }
        Ok(())
    }

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

    /// A channel becomes floats, and its outputs halves again.
    fn depthwise(
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

/// The convolution of one image.
struct Run<'a> {
    cx: &'a KernelContext<'a>,
    plan: &'a DotPlan,
    panels: &'a DotPanels<Bf16Pair>,
    image: &'a Image<'a, bf16>,
    first: &'a [u32],
    scratch: &'a mut [u32],
}

impl Run<'_> {
    /// With an activation, which is compiled into the epilogue.
    #[cfg(target_arch = "x86_64")]
    fn activated(
        self,
        activation: Activation,
        blocked: bool,
        place: Place<'_, bf16>,
        residual: Option<&[bf16]>,
    ) {
        with_function!(activation, function => self.run(blocked, RoundedToBf16 { place, residual, function }));
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn activated(
        self,
        activation: Activation,
        blocked: bool,
        place: Place<'_, bf16>,
        residual: Option<&[bf16]>,
    ) {
        self.run(blocked, RoundedToBf16 { place, residual, function: activation });
    }

    /// `blocked`: outputs and residual are channel-blocked.
    fn run<'e, F>(self, blocked: bool, epilogue: RoundedToBf16<'e, F>)
    where
        RoundedToBf16<'e, F>: TileEpilogue,
        ChannelBlocked<RoundedToBf16<'e, F>>: TileEpilogue,
    {
        let Run { cx, plan, panels, image, first, scratch } = self;
        match blocked {
            true => plan.convolve(cx.pool, panels, image, first, scratch, &ChannelBlocked(epilogue)),
            false => plan.convolve(cx.pool, panels, image, first, scratch, &epilogue),
        }
    }
}
