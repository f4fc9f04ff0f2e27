//! Convolution in bfloat16 with constant weights, over one or two axes, by dot products of pairs.

use super::epilogue::{ChannelBlocked, Place, RoundedToBf16, TileEpilogue};
use super::image::{Image, Pixels, dot_plan_needed};
use super::layout::{ImageLayout, Images};
use super::panels::DotPanels;
use super::plan::DotPlan;
#[cfg(target_arch = "x86_64")]
use crate::conv::common::avx512::with_function;
use crate::conv::common::weight::{constant_weight, is_depthwise};
use crate::conv::im2col;
use crate::gemm::{Bf16Pair, Left};
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::conv::{Conv, RESIDUAL};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16};

pub(crate) struct Bf16Conv {
    op: Conv,
    panels: DotPanels<Bf16Pair>,
    threads: usize,
}

/// What depends on shapes: the first that there is.
enum State {
    Dot(Box<DotPlan>),
    General(im2col::State),
    /// There are no outputs.
    Nothing,
}

/// See `Bf16Conv::new`.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    Ok(Bf16Conv::new(node)?.map(|conv| -> Box<dyn Kernel> { Box::new(conv) }))
}

impl Bf16Conv {
    /// `None` for other convolutions than those of constant weights in bfloat16 over one or two axes, for depthwise ones, and
    /// on a processor without the products.
    pub(crate) fn new(node: &NodeContext<'_>) -> Result<Option<Self>, OpError> {
        let op = node.op::<Conv>();
        let weight = constant_weight(node, ElementType::BF16);
        let Some(weight) = weight.filter(|weight| !is_depthwise(op.group, weight)) else { return Ok(None) };
        let (shape, aligned) = (weight.shape(), weight.aligned()?);
        let sizes = [op.group, shape[0] / op.group, shape[1], shape[2..].iter().product()];
        let panels = DotPanels::of_halves(aligned.view().slice::<bf16>(), sizes, Packing::of(node));
        Ok(panels.map(|panels| Bf16Conv { op: op.clone(), panels, threads: node.pool.threads() }))
    }

    /// The weight of one group, as it was given.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn weight(&self) -> Vec<bf16> {
        self.panels.elements(0)
    }

    fn state(&self, x: &[usize], w: &[usize]) -> Result<State, OpError> {
        let [input, output] = self.op.channel_blocked;
        let space = if input { &x[2..x.len() - 1] } else { &x[2..] };
        let geometry = self.op.window.geometry(space, &w[2..])?;
        let layout = if input { ImageLayout::ChannelBlocked } else { ImageLayout::Nchw };
        let images = Images { layout, channels: w[1], only_way: input || output };
        if !x.contains(&0)
            && !w.contains(&0)
            && let Some(plan) = DotPlan::new(&self.panels, &geometry, images, self.threads)
        {
            return Ok(State::Dot(Box::new(plan)));
        }
        if !images.only_way {
            return Ok(State::General(im2col::State::new(&self.op, x, w)?));
        }
        match x[0] * w[0] * geometry.output.iter().product::<usize>() {
            0 => Ok(State::Nothing),
            _ => Err(dot_plan_needed(x, w)),
        }
    }
}

impl Kernel for Bf16Conv {
    fn algorithm(&self) -> &'static str {
        "dot products of bfloat16 pairs"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape)?;
        let elements = match &state {
            State::Dot(plan) => self.panels.padded_rows() * self.op.group + plan.scratch_len(self.op.group),
            State::General(_) | State::Nothing => 0,
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<u32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        match cx.state::<State>() {
            State::Dot(plan) => self.dot(cx, plan, inputs, outputs),
            State::General(state) => {
                let packed = Some(Left::Source(&self.panels));
                im2col::convolve::<bf16>(cx, &self.op, state, packed, inputs, outputs);
                Ok(())
            }
            State::Nothing => Ok(()),
        }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

impl Bf16Conv {
    fn dot(
        &self,
        cx: &KernelContext<'_>,
        plan: &DotPlan,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let panels = &self.panels;
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
        with_function!(rounded activation, function => self.run(blocked, RoundedToBf16 { place, residual, function }));
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
