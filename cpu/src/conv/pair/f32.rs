//! Pairs of convolutions in `f32`.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::product::Product;
use super::weights::{Pack, PairWeights, not_in_pairs};
use crate::conv::common::blocks::GRAIN;
use crate::conv::common::epilogue::F32Epilogue;
use crate::conv::common::lines::Lines;
use crate::conv::common::partition::Part;
#[cfg(target_arch = "x86_64")]
use crate::conv::depthwise::nchw8c::Nchw8cOutputs;
use crate::conv::depthwise::nchw8c::{self, Nchw8c};
#[cfg(target_arch = "x86_64")]
use crate::conv::depthwise::nchw16c::Nchw16cOutputs;
use crate::conv::depthwise::nchw16c::{Nchw16c, Nchw16cElement, nchw16c_kernels};
use crate::conv::depthwise::plane::{OutputPlanes, PlaneLayout};
use crate::conv::direct::panels::{Panels, panel_rows};
use crate::conv::direct::products::Products;
use crate::conv::direct::tile::Block;
use crate::gemm::VECTOR;
use crate::isa::Dispatch;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::{Parts, threads_of_image};
use crate::loops::scratch::with_scratch;
use crate::ops::OpError;
use crate::ops::conv::ConvPair;
use crate::ops::window::Geometry;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

/// Elements between the convolutions that are worked on at a time, as many as fit into a processor's own cache beside
/// what they are made of: of so many positions, unless lines are long, for `VECTOR` channels or more.
const ELEMENTS: usize = 16 * 1024;
const POSITIONS: usize = 4096;

struct PairConv {
    op: ConvPair,
    /// Of constant weights.
    weights: Option<PairWeights<Panels>>,
    threads: usize,
}

/// What depends on shapes.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what uses it is of x86-64"))]
enum State {
    /// With channels in lanes from the product on: nothing is transposed in between.
    Nchw8c(Nchw8c),
    Nchw16c(Nchw16c),
    Planes(PlanesState),
}

struct PlanesState {
    /// Positions of the image, and of the output.
    area: usize,
    columns: usize,
    /// Where the channels of an image begin.
    taps: Vec<usize>,
    bands: Vec<Band>,
    /// Positions of the longest band, and channels at a time.
    longest: usize,
    rows: usize,
}

/// Some lines of the output.
struct Band {
    layout: PlaneLayout,
    /// What they read of the image, and how many outputs of a channel come before them.
    positions: Range<usize>,
    before: usize,
}

impl Pack for Panels {
    /// Where both are computed with channels in lanes, panels have sixteen rows.
    fn pack([w1, w2]: [TensorView<'_>; 2], packing: Packing<'_>) -> PairWeights<Self> {
        let (m, k) = (w1.shape()[0], w1.shape()[1]);
        let taps = w2.shape()[2..].iter().product();
        let in_lanes = nchw8c::available() || <f32 as Nchw16cElement>::available();
        let rows = if in_lanes { VECTOR } else { panel_rows() };
        PairWeights {
            panels: Panels::new(w1.slice::<f32>(), rows, 1, m, k, packing),
            nchw16c: nchw16c_kernels(w2.slice::<f32>(), taps),
        }
    }
}

/// `None` for other types than `f32`.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    if node.input(0) != Some(ElementType::F32) {
        return Ok(None);
    }
    let weights = PairWeights::of_constants(node)?;
    Ok(Some(Box::new(PairConv { op: node.op::<ConvPair>().clone(), weights, threads: node.pool.threads() })))
}

impl PairConv {
    fn state(&self, g: &Geometry, images: usize, channels: usize) -> Option<State> {
        if nchw8c::available() {
            return Nchw8c::new(g, self.op.second.group, images, self.threads).map(State::Nchw8c);
        }
        if <f32 as Nchw16cElement>::available() && !g.output.contains(&0) {
            return Nchw16c::of_costly_lines(g).map(State::Nchw16c);
        }
        self.planes(g, images, channels).map(State::Planes)
    }

    fn planes(&self, g: &Geometry, images: usize, channels: usize) -> Option<PlanesState> {
        let (area, columns) = (g.input.iter().product::<usize>(), g.output.iter().product());
        let taps = (0..channels).map(|c| c * area).collect();
        let bands = self.bands(g, images)?;
        let longest = bands.iter().map(|band| band.positions.len()).max().unwrap_or(0);
        // Several blocks for each thread.
        let most = self.op.second.group.div_ceil(4 * self.threads).div_ceil(VECTOR);
        let most = (ELEMENTS / longest.max(1) / VECTOR).clamp(1, most);
        let rows = even(self.op.second.group.div_ceil(VECTOR), self.threads, most) * VECTOR;
        Some(PlanesState { area, columns, taps, bands, longest, rows })
    }

    /// `None` for windows that `ConvPair` does not allow.
    fn bands(&self, g: &Geometry, images: usize) -> Option<Vec<Band>> {
        let (area, lines) = (g.input.iter().product::<usize>(), g.output[0]);
        if g.output.contains(&0) {
            return Some(Vec::new());
        }
        // Of a small image threads have channels.
        let threads = if area <= POSITIONS / 2 { 1 } else { threads_of_image(images, self.threads) };
        let wanted = area.div_ceil(POSITIONS).next_multiple_of(threads);
        // Lines that two bands read are made twice: one of eight at most.
        let shared = g.kernel[0].saturating_sub(g.strides[0]);
        let count = wanted.min(lines * g.strides[0] / (8 * shared).max(1)).clamp(1, lines);
        let band = |i: usize| {
            let Part { geometry, skipped, before } =
                Part::new(g, lines * i / count..lines * (i + 1) / count)?;
            let positions = skipped..skipped + geometry.input.iter().product::<usize>();
            Some(Band { layout: PlaneLayout::new(&geometry)?, positions, before })
        };
        (0..count).map(band).collect()
    }
}

impl Kernel for PairConv {
    fn algorithm(&self) -> &'static str {
        "pointwise and depthwise in one"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        _outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[3]) else { return Ok(Prepared::default()) };
        let geometry = self.op.second.window.geometry(&x.shape[2..], &w.shape[2..])?;
        let state = self.state(&geometry, x.shape[0], x.shape[1]).filter(|_| x.shape[1] > 0);
        let state = state.ok_or_else(|| not_in_pairs(x.shape))?;
        Ok(Prepared { state: Some(Box::new(state)), scratch: 0 })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let (Some(x), Some(w2), Some(y)) = (inputs[0], inputs[3], &mut outputs[0]) else { return Ok(()) };
        let (mut room, given) = (None, [inputs[1], inputs[3]]);
        let weights = PairWeights::or_packed(self.weights.as_ref(), given, cx.pool, &mut room);
        let Some(weights) = weights else { return Ok(()) };
        let bias = |i: usize| inputs.get(i).copied().flatten().map(|bias| bias.slice::<f32>());
        let (bias, out) = ([bias(2), bias(4)], &Parts::new(y.slice::<f32>()));
        let (shape, op, kernels) = (x.shape(), &self.op, w2.slice::<f32>());
        let x = x.slice::<f32>();
        match cx.state::<State>() {
            State::Planes(state) => Pair { op, weights, kernels, bias, state, x, out }.convolve(cx, shape[0]),
            state => in_lanes(cx, op, weights, state, (x, shape), bias, out),
        }
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1 && self.weights.is_some()
    }
}

/// How many vectors of channels a block has, `most` or fewer: the most for which the thread with the most blocks has least.
fn even(vectors: usize, threads: usize, most: usize) -> usize {
    let longest = |each: &usize| {
        let blocks = vectors.div_ceil(*each);
        let cut = |thread: usize| (blocks * thread / threads * each).min(vectors);
        (0..threads).map(|thread| cut(thread + 1) - cut(thread)).max()
    };
    (1..=most).rev().min_by_key(longest).unwrap_or(1)
}

/// Both with channels in lanes.
#[cfg(target_arch = "x86_64")]
fn in_lanes(
    cx: &KernelContext<'_>,
    op: &ConvPair,
    weights: &PairWeights<Panels>,
    state: &State,
    (x, shape): (&[f32], &[usize]),
    bias: [Option<&[f32]>; 2],
    out: &Parts<'_, f32>,
) {
    let (images, channels, width) = (shape[0], shape[1], shape[3]);
    let PairWeights { panels, nchw16c: kernels } = weights;
    let (area, activation) = (shape[2] * width, op.first);
    debug_assert_eq!(panels.rows(), VECTOR, "panels are those of lanes");
    let (panels, [bias, second]) = (panels.from(0, 0), bias);
    let product = Product { x, channels, area, width, panels, bias, activation };
    let (bias, activation, outputs) = (second, op.second.activation, op.second.group);
    match state {
        State::Nchw8c(way) => {
            let outputs = Nchw8cOutputs { images, channels: outputs, kernels, bias, activation, out };
            way.convolve(cx.pool, &product, channels, &outputs);
        }
        State::Nchw16c(way) => {
            let blocked = false;
            let outputs =
                Nchw16cOutputs { images, channels: outputs, kernels, bias, activation, blocked, out };
            way.convolve(cx.pool, &product, channels, &outputs);
        }
        State::Planes(_) => {}
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn in_lanes(
    _: &KernelContext<'_>,
    _: &ConvPair,
    _: &PairWeights<Panels>,
    _: &State,
    _: (&[f32], &[usize]),
    _: [Option<&[f32]>; 2],
    _: &Parts<'_, f32>,
) {
    unreachable!("there are no such vectors");
}

/// One run.
struct Pair<'a> {
    op: &'a ConvPair,
    weights: &'a PairWeights<Panels>,
    /// The second weight as it is.
    kernels: &'a [f32],
    bias: [Option<&'a [f32]>; 2],
    state: &'a PlanesState,
    x: &'a [f32],
    out: &'a Parts<'a, f32>,
}

impl Pair<'_> {
    fn convolve(&self, cx: &KernelContext<'_>, images: usize) {
        let &PlanesState { ref taps, ref bands, longest, rows, .. } = self.state;
        let blocks = self.op.second.group.div_ceil(rows);
        let zeros = bands.iter().map(|band| band.layout.scratch_len()).max().unwrap_or(0);
        let lengths = [rows * longest, Products::scratch_len(&self.weights.panels), zeros];
        let work = rows * longest * (taps.len() + 4 * self.taps());
        cx.pool.split(images * bands.len() * blocks, GRAIN.div_ceil(work.max(1)), |range| {
            with_scratch(lengths, |[between, column, zeros]: [&mut [f32]; 3]| {
                for i in range.take_while(|_| !cx.cancelled()) {
                    let at = (i / blocks / bands.len(), &bands[i / blocks % bands.len()], i % blocks);
                    self.block(at, between, column, zeros);
                }
            });
        });
    }

    /// Elements of a kernel of the second weight.
    fn taps(&self) -> usize {
        self.kernels.len() / self.op.second.group
    }

    /// Some lines of some channels of an image.
    fn block(
        &self,
        (image, band, block): (usize, &Band, usize),
        between: &mut [f32],
        column: &mut [f32],
        zeros: &mut [f32],
    ) {
        let &PlanesState { area, columns, ref taps, rows, .. } = self.state;
        let (Band { layout, positions, before }, m) = (band, self.op.second.group);
        let (rows, count) = (block * rows..((block + 1) * rows).min(m), positions.len());
        let between = &mut between[..rows.len() * count];
        let bias = self.bias.map(|bias| bias.map(|bias| &bias[rows.clone()]));
        let size = taps.len() * area;
        let first = Block {
            panels: self.weights.panels.from(0, rows.start),
            origin: 0,
            panel: self.weights.panels.size(),
            taps,
            planes: &self.x[image * size..][positions.start..size],
            columns: 0..count,
            lines: Lines::whole(count),
            rows: 0..rows.len(),
            epilogue: F32Epilogue {
                bias: bias[0],
                residual: None,
                activation: self.op.first,
                out: &Parts::new(&mut *between),
                start: 0,
                columns: count,
            },
            scratch: column,
            next: None,
        };
        first.widest();
        let (between, activation) = (&*between, self.op.second.activation);
        let start = (image * m + rows.start) * columns;
        let (out, start) = (self.out, start + before);
        let second = OutputPlanes {
            layout,
            images: between,
            kernels: &self.kernels[rows.start * self.taps()..rows.end * self.taps()],
            channels: rows.len(),
            multiplier: 1,
            outputs: 0..rows.len(),
            scratch: &mut zeros[..layout.scratch_len()],
            padded: false,
            epilogue: F32Epilogue { bias: bias[1], residual: None, activation, out, start, columns },
        };
        second.widest();
    }
}
