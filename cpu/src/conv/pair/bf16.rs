//! Pairs of convolutions in bfloat16: the product by dot products of neighbouring channels, what lies between in floats.

use crate::conv::depthwise::nchw16c::{Nchw16c, Nchw16cElement, Nchw16cOutputs, nchw16c_kernels};
use crate::gemm::{Bf16Pair, DotGroup, VECTOR};
use crate::isa::has_tiles;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::half_types::widen_bfloat16;
use crate::loops::packed_weights::Weights;
use crate::loops::packing::Packing;
use crate::loops::parallel::{GRAIN, Parts, split_mut};
use crate::ops::OpError;
use crate::ops::conv::ConvPair;
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16};

#[cfg(target_arch = "x86_64")]
use super::product::Product;
use super::weights::{Pack, PairWeights, not_in_pairs};
use crate::conv::dot::channel_blocked;

/// The first weight as dot groups, `[outputs / 16, channels / 2, 16]`.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
struct Panels(Weights<u32>);

struct PairConv {
    op: ConvPair,
    /// Of constant weights.
    weights: Option<PairWeights<Panels>>,
}

/// Whether two convolutions in bfloat16 are faster as one: where vectors multiply, not AMX's tiles.
pub(crate) fn pairs_bf16() -> bool {
    bf16::available() && Bf16Pair::available() && !has_tiles()
}

/// `None` for other types than bfloat16, and on a processor without the products.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    if node.input(0) != Some(ElementType::BF16) || !(bf16::available() && Bf16Pair::available()) {
        return Ok(None);
    }
    let weights = PairWeights::of_constants(node)?;
    Ok(Some(Box::new(PairConv { op: node.op::<ConvPair>().clone(), weights })))
}

impl Pack for Panels {
    fn pack([w1, w2]: [TensorView<'_>; 2], packing: Packing<'_>) -> PairWeights<Self> {
        let (m, channels) = (w1.shape()[0], w1.shape()[1]);
        let (groups, weight) = (channels.div_ceil(2), w1.slice::<bf16>());
        let panels = packing.filled(m.next_multiple_of(VECTOR) * groups, |panels| {
            for (row, weight) in weight.chunks_exact(channels.max(1)).enumerate() {
                let panel = &mut panels[row / VECTOR * VECTOR * groups + row % VECTOR..];
                for (to, pair) in panel.iter_mut().step_by(VECTOR).zip(weight.chunks(2)) {
                    *to = dot_group(pair[0], pair.get(1).copied().unwrap_or_default());
                }
            }
        });
        let mut kernels = vec![0.0; w2.len()];
        widen_bfloat16(w2.slice::<bf16>(), &mut kernels);
        let taps = w2.shape()[2..].iter().product();
        PairWeights { panels: Panels(panels), nchw16c: nchw16c_kernels(&kernels, taps) }
    }
}

fn dot_group(low: bf16, high: bf16) -> u32 {
    u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
}

impl PairConv {
    /// Whether the image is channel-blocked; how many dot groups of channels it has, and its height and width.
    fn image(&self, x: &[usize]) -> (bool, usize, [usize; 2]) {
        let blocked = self.op.second.channel_blocked[0];
        (blocked, if blocked { x[1] } else { x[1].div_ceil(2) }, [x[2], x[3]])
    }
}

impl Kernel for PairConv {
    fn algorithm(&self) -> &'static str {
        "pointwise and depthwise in one, of bfloat16 pairs"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[3]) else { return Ok(Prepared::default()) };
        let (blocked, groups, image) = self.image(x.shape);
        let geometry = self.op.second.window.geometry(&image, &w.shape[2..])?;
        let state = if x.shape[1] > 0 { Nchw16c::of_costly_lines(&geometry) } else { None };
        let outputs = x.shape[0] * self.op.second.group * geometry.output.iter().product::<usize>();
        if state.is_none() && outputs > 0 {
            return Err(not_in_pairs(x.shape));
        }
        let elements = if blocked { 0 } else { x.shape[0] * groups * image[0] * image[1] };
        Ok(Prepared { state: Some(Box::new(state)), scratch: elements * size_of::<u32>() })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let Some(way) = cx.state::<Option<Nchw16c>>() else { return Ok(()) };
        let (mut room, given) = (None, [inputs[1], inputs[3]]);
        let weights = PairWeights::or_packed(self.weights.as_ref(), given, cx.pool, &mut room);
        let Some(weights) = weights else { return Ok(()) };
        let (blocked, channels, [height, width]) = self.image(x.shape());
        let area = height * width;
        let pixels = match blocked {
            true => channel_blocked(x.slice::<bf16>())?,
            false => {
                let scratch = &mut cx.scratch::<u32>()[..x.shape()[0] * channels * area];
                let (x, all) = (x.slice::<bf16>(), x.shape()[1]);
                split_mut(cx.pool, scratch, area, GRAIN.div_ceil(area.max(1)), |range, part| {
                    for (i, to) in range.zip(part.chunks_exact_mut(area)).take_while(|_| !cx.cancelled()) {
                        let (image, first) = (i / channels, i % channels * 2);
                        let plane = |channel: usize| &x[(image * all + channel) * area..][..area];
                        let low = to.iter_mut().zip(plane(first));
                        match first + 1 < all {
                            true => low.zip(plane(first + 1)).for_each(|((y, &a), &b)| *y = dot_group(a, b)),
                            false => low.for_each(|(y, &a)| *y = dot_group(a, bf16::ZERO)),
                        }
                    }
                });
                scratch
            }
        };
        let bias = |i: usize| inputs.get(i).copied().flatten().map(|bias| bias.slice::<bf16>());
        let out = &Parts::new(y.slice::<bf16>());
        let second = &self.op.second;
        let outputs = Nchw16cOutputs {
            images: x.shape()[0],
            channels: second.group,
            kernels: &weights.nchw16c,
            bias: bias(4),
            activation: second.activation,
            blocked: second.channel_blocked[1],
            out,
        };
        #[cfg(target_arch = "x86_64")]
        {
            let (panels, activation) = (&*weights.panels.0, self.op.first);
            let product = Product { x: pixels, channels, area, width, panels, bias: bias(2), activation };
            way.convolve(cx.pool, &product, channels, &outputs);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (way, pixels, width, &outputs);
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.weights.is_some()
    }
}
