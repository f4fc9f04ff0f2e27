//! Convolution in `f32` with constant weights, over one or two axes, without packing the image: see
//! `planes` for how it is laid out and `tile` for the product.

use super::gemv::{self, Vector};
use super::panels::{Panels, panel_rows};
use super::plan::DirectPlan;
use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::providers::cpu::conv::common::blocks::GRAIN;
use crate::providers::cpu::conv::common::epilogue::F32Epilogue;
use crate::providers::cpu::conv::depthwise::nchw16c::{Nchw16c, Nchw16cImages, nchw16c_kernels};
use crate::providers::cpu::conv::depthwise::plane::{Depthwise, PlaneLayout};
use crate::providers::cpu::conv::im2col;
use crate::providers::cpu::gemm::Left;
use crate::providers::cpu::isa::Dispatch;
use crate::providers::cpu::parallel::Parts;
use crate::providers::cpu::scratch::with_scratch;
use crate::providers::cpu::{Argument, Kernel, KernelContext, Prepared};
use crate::tensor::{Tensor, TensorView, TensorViewMut};
use crate::threads::Pool;

pub(crate) struct DirectConv {
    op: Conv,
    /// The weight; a depthwise one is used as it is.
    panels: Option<Panels>,
    /// A depthwise one for sixteen channels at a time, where each has one output.
    nchw16c: Option<Vec<f32>>,
    threads: usize,
}

/// What depends on shapes.
enum State {
    DirectPlan(DirectPlan),
    Depthwise(PlaneLayout),
    Nchw16c(Nchw16c),
    /// The output has one position, and each input channel one element.
    Vector,
    General(im2col::State),
}

impl DirectConv {
    /// The weight has one or two spatial axes.
    pub(crate) fn new(op: Conv, weight: &Tensor, pool: &Pool) -> Result<Self, OpError> {
        let (shape, aligned) = (weight.shape(), weight.aligned()?);
        let elements = aligned.view().slice::<f32>();
        let (mut panels, mut nchw16c) = (None, None);
        if op.group == 1 || shape[1] > 1 {
            let (m, k) = (shape[0] / op.group, shape[1..].iter().product());
            panels = Some(Panels::new(elements, panel_rows(), op.group, m, k, pool));
        } else if shape[0] == op.group {
            nchw16c = Some(nchw16c_kernels(elements, shape[2..].iter().product()));
        }
        Ok(DirectConv { op, panels, nchw16c, threads: pool.threads() })
    }

    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        let empty = x.contains(&0) || w.contains(&0);
        let general = || Ok(State::General(im2col::State::new(&self.op, x, w)?));
        let Some(panels) = self.panels.as_ref().filter(|_| !empty) else {
            let nchw16c = self.nchw16c.as_ref().filter(|_| !empty && !residual);
            if let Some(nchw16c) = nchw16c.and_then(|_| Nchw16c::new::<f32>(&geometry)) {
                return Ok(State::Nchw16c(nchw16c));
            }
            let layout = PlaneLayout::new(&geometry).filter(|_| !empty);
            return layout.map_or_else(general, |layout| Ok(State::Depthwise(layout)));
        };
        let ones = |list: &[usize]| list.iter().all(|&x| x == 1);
        let pads = [&geometry.pads_begin, &geometry.pads_end];
        let unpadded = pads.iter().all(|pads| pads.iter().all(|&x| x == 0));
        if self.op.group == 1 && unpadded && ones(&geometry.input) && ones(&geometry.kernel) {
            return Ok(State::Vector);
        }
        DirectPlan::new(&geometry, panels, x[0], w[1], self.threads, residual)
            .map_or_else(general, |tiles| Ok(State::DirectPlan(tiles)))
    }
}

impl Kernel for DirectConv {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape, matches!(inputs.get(3), Some(Some(_))))?;
        let elements = match &state {
            State::DirectPlan(tiles) => tiles.scratch_len(x.shape[1]),
            State::Vector => x.shape[1] * panel_rows(),
            _ => 0,
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<f32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let state = cx.state::<State>();
        if let State::General(state) = state {
            let packed = self.panels.as_ref().map(|panels| Left::Source(panels));
            im2col::convolve::<f32>(cx, &self.op, state, packed, inputs, outputs);
            return Ok(());
        }
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, channels) = (x.shape()[0], x.shape()[1]);
        let rows = y.shape()[1];
        let columns = y.shape()[2..].iter().product();
        let out = Parts::new(y.slice::<f32>());
        let epilogue = F32Epilogue::new(self.op.activation, inputs, &out, columns);
        let x = x.slice::<f32>();
        match (state, &self.panels) {
            (State::Nchw16c(nchw16c), None) => {
                let (Some(kernels), activation) = (&self.nchw16c, self.op.activation) else { return Ok(()) };
                let bias = inputs.get(2).copied().flatten().map(|bias| bias.slice::<f32>());
                let all = Nchw16cImages { x, images, channels, kernels, bias, activation, out: &out };
                nchw16c.convolve(cx.pool, &all);
            }
            (State::Depthwise(layout), None) => {
                let kernels = inputs[1].map_or(&[][..], |w| w.slice::<f32>());
                // A multiplication takes about four times as long as one of a product.
                cx.pool.split(images * rows, GRAIN.div_ceil(4 * layout.work()), |outputs| {
                    with_scratch([layout.scratch_len()], |[scratch]: [&mut [f32]; 1]| {
                        let multiplier = rows / channels;
                        let work = Depthwise {
                            layout,
                            images: x,
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
            (State::Vector, Some(panels)) => {
                let scratch = cx.scratch::<f32>();
                for image in 0..images {
                    let x = &x[image * channels..][..channels];
                    gemv::repeat(x, panels.rows(), scratch);
                    let epilogue = F32Epilogue { start: image * rows, ..epilogue };
                    // A multiplication waits for its weight: about four times as long as one of a product.
                    let grain = GRAIN.div_ceil(4 * channels.max(1) * panels.rows());
                    cx.pool.split(rows.div_ceil(panels.rows()), grain, |part| {
                        let rows = part.start * panels.rows()..(part.end * panels.rows()).min(rows);
                        Vector { panels: panels.from(0, rows.start), x: scratch, rows, epilogue }.widest();
                    });
                }
            }
            (State::DirectPlan(tiles), Some(panels)) => {
                tiles.convolve(cx, panels, (x, x.len() / images), epilogue);
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.panels.is_some()
    }
}
