//! Convolution in `f32` with constant weights.

use crate::conv::common::blocks::GRAIN;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::weight::constant_weight;
use crate::conv::im2col;
use crate::gemm::Left;
use crate::isa::Dispatch;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::ops::OpError;
use crate::ops::conv::Conv;
use crate::ops::window::Geometry;
use crate::tensor::{ElementType, Tensor, TensorView, TensorViewMut};

use super::gemv::{self, Vector};
use super::panels::{Panels, panel_rows};
use super::plan::DirectPlan;
use super::volume::{MOST_WEIGHT, VolumePlan};

struct DirectConv {
    op: Conv,
    panels: Panels,
    threads: usize,
}

/// What depends on shapes: the first that there is.
enum State {
    /// The output has one position, and each input channel one element: a matrix times a vector.
    Gemv,
    Tiles(DirectPlan),
    /// Three axes.
    Volume(VolumePlan),
    General(im2col::State),
}

/// `None` for other convolutions than those of constant weights in `f32` over one or two axes, or over three in one group.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    let op = node.op::<Conv>();
    let weight = constant_weight(node, ElementType::F32).or_else(|| constant_volume(node));
    let Some(weight) = weight else { return Ok(None) };
    let (shape, aligned) = (weight.shape(), weight.aligned()?);
    let (m, k) = (shape[0] / op.group, shape[1..].iter().product());
    let weight = aligned.view().slice::<f32>();
    let (rows, threads) = (panel_rows(), node.pool.threads());
    let panels = Panels::new(weight, rows, op.group, m, k, Packing::of(node));
    Ok(Some(Box::new(DirectConv { op: op.clone(), panels, threads })))
}

/// The weight over three axes, if it is constant and convolutions of it are made here: larger strides leave little to share,
/// and large weights are read too often.
fn constant_volume<'a>(node: &NodeContext<'a>) -> Option<&'a Tensor> {
    let op = node.op::<Conv>();
    let weight = node.constant(1).filter(|w| node.input(0) == Some(ElementType::F32) && w.shape().len() == 5);
    let fits = |w: &&Tensor| w.shape().iter().product::<usize>() <= MOST_WEIGHT;
    weight.filter(fits).filter(|_| op.group == 1 && op.window.strides.iter().all(|&stride| stride <= 2))
}

/// The window along one axis, if outputs are positions of the image.
fn flat(g: &Geometry) -> Option<Geometry> {
    let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
    let pointwise = all(&g.kernel, 1) && all(&g.strides, 1) && all(&g.pads_begin, 0) && all(&g.pads_end, 0);
    let (input, output) = (vec![g.input.iter().product()], vec![g.output.iter().product()]);
    let [ones, zeros] = [1, 0].map(|x| vec![x]);
    pointwise.then(|| Geometry {
        input,
        output,
        kernel: ones.clone(),
        strides: ones.clone(),
        dilations: ones,
        pads_begin: zeros.clone(),
        pads_end: zeros,
    })
}

impl DirectConv {
    /// `residual`: whether something is added to the outputs.
    fn state(&self, x: &[usize], w: &[usize], residual: bool) -> Result<State, OpError> {
        let geometry = self.op.window.geometry(&x[2..], &w[2..])?;
        if !x.contains(&0) && !w.contains(&0) {
            let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
            let unpadded = all(&geometry.pads_begin, 0) && all(&geometry.pads_end, 0);
            if self.op.group == 1 && unpadded && all(&geometry.input, 1) && all(&geometry.kernel, 1) {
                return Ok(State::Gemv);
            }
            if x.len() == 5 {
                let flat = flat(&geometry).and_then(|flat| {
                    DirectPlan::new(&flat, &self.panels, x[0], w[1], self.threads, residual)
                });
                if let Some(plan) = flat {
                    return Ok(State::Tiles(plan));
                }
                if let Some(plan) = VolumePlan::new(&geometry, &self.panels, w[1], self.threads, residual) {
                    return Ok(State::Volume(plan));
                }
            }
            let plan = DirectPlan::new(&geometry, &self.panels, x[0], w[1], self.threads, residual);
            if let Some(plan) = plan {
                return Ok(State::Tiles(plan));
            }
        }
        Ok(State::General(im2col::State::new(&self.op, x, w)?))
    }
}

impl Kernel for DirectConv {
    fn algorithm(&self) -> &'static str {
        "direct"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let state = self.state(x.shape, w.shape, matches!(inputs.get(3), Some(Some(_))))?;
        let elements = match &state {
            State::Tiles(plan) => plan.scratch_len(x.shape[1]),
            State::Volume(plan) => plan.scratch_len(),
            State::Gemv => x.shape[1] * panel_rows(),
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
            let packed = Some(Left::Source(&self.panels));
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
        let panels = &self.panels;
        match state {
            State::Gemv => {
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
            State::Tiles(plan) => {
                plan.convolve(cx, panels, (x, x.len() / images), epilogue);
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
            }
            State::Volume(plan) => {
                plan.convolve(cx, panels, (x, x.len() / images), epilogue);
                if cx.cancelled() {
                    return Err(OpError::Cancelled);
                }
            }
            State::General(_) => {}
        }
        Ok(())
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}
