//! Winograd's algorithm for images and weights in bfloat16, computed in `f32`: a tile of 4 × 4 outputs takes a quarter of the
//! multiplications, of which the processor makes half as many as with pairs of bfloat16 numbers. Products in bfloat16 would round
//! transformed tiles and weights, which loses more than twice what rounding the outputs does.
//!
//! Channels are in the lanes of vectors, which any number of tiles fills. A thread has some tiles, of one or several images, for
//! all steps; it goes through the weight once for them.

use std::sync::OnceLock;

use crate::conv::common::avx512::with_function;
use crate::conv::common::weight::constant_weight;
use crate::conv::dot::{Bf16Conv, ChannelBlocked, Pixels, Place, RoundedToBf16};
use crate::gemm::{Bf16Pair, DotGroup, VECTOR};
use crate::isa::has_tiles;
use crate::kernel::{Argument, Kernel, KernelContext, NodeContext, Prepared};
use crate::loops::packing::Packing;
use crate::loops::parallel::Parts;
use crate::loops::scratch::with_scratch;
use crate::ops::OpError;
use crate::ops::conv::{Conv, RESIDUAL};
use crate::tensor::{ElementType, TensorView, TensorViewMut, bf16};
use crate::threads::Pool;

use self::input::Input;
use self::output::Output;
use self::plan::{Plan, Segment};
use self::product::Product;
use self::weight::{Kernels, TOGETHER};

mod input;
mod output;
mod plan;
mod product;
#[cfg(test)]
mod tests;
mod weight;

/// Outputs of a tile along each axis, what it reads along each, and its transformed elements.
const SIDE: usize = 4;
const EDGE: usize = SIDE + 2;
const ELEMENTS: usize = EDGE * EDGE;
/// Channels of a dot group.
const PAIR: usize = 2;
/// Elements of a weight, of 9 each, up to which it is transformed. It is kept nine times in all: transformed, in `f32`, in eight
/// times its memory, and in the panels of dot products.
const LARGEST_WEIGHT: usize = 1 << 16;
/// Those up to which that is done before the first run. Larger weights are mostly those of small images, which are transformed
/// only where a thread has tiles of several of them.
const SMALL_WEIGHT: usize = 1 << 15;
/// Channels, in and out, from which on products win back what transforms take.
const FEWEST_CHANNELS: usize = 32;
/// Tiles of a thread from which on reading the weight takes less than what multiplications are spared.
const FEWEST_TILES: usize = 12;

struct Bf16Winograd {
    op: Conv,
    /// Output channels and channels.
    shape: [usize; 2],
    /// Of a large weight made by the first run that needs them.
    kernels: OnceLock<Kernels>,
    threads: usize,
    /// For images that this gains nothing for.
    dot: Bf16Conv,
}

/// What depends on shapes.
enum State {
    Tiles(Plan),
    Dot(Prepared),
}

/// Whether this machine's fastest products of bfloat16 are those of vectors. Tiles of AMX multiply many more pairs of bfloat16
/// numbers at a time; for `f32` there are none.
pub(crate) fn available() -> bool {
    Bf16Pair::available() && !has_tiles()
}

/// `None` for other convolutions than those of constant weights of 3 × 3 in bfloat16 without strides, dilations and groups, and of
/// channels that make it faster than dot products.
pub(crate) fn build(node: &NodeContext<'_>) -> Result<Option<Box<dyn Kernel>>, OpError> {
    Ok(Bf16Winograd::new(node)?.map(|kernel| Box::new(kernel) as Box<dyn Kernel>))
}

impl Bf16Winograd {
    /// As `build`. Images are not known here, so the weight is kept for dot products, too, and a large one is not transformed yet.
    fn new(node: &NodeContext<'_>) -> Result<Option<Self>, OpError> {
        let Some(weight) = constant_weight(node, ElementType::BF16) else { return Ok(None) };
        let &[outputs, channels, 3, 3] = weight.shape() else { return Ok(None) };
        let pairs = channels.is_multiple_of(PAIR) && outputs.is_multiple_of(PAIR);
        let few = channels.min(outputs) < FEWEST_CHANNELS;
        if !pairs || few || !available() || outputs * channels > LARGEST_WEIGHT {
            return Ok(None);
        }
        let op = node.op::<Conv>();
        let ones = |list: &[i64]| list.iter().all(|&x| x == 1);
        if op.group != 1 || !ones(&op.window.strides) || !ones(&op.window.dilations) {
            return Ok(None);
        }
        let shape = [outputs, channels];
        let kernels = match outputs * channels <= SMALL_WEIGHT {
            true => Kernels::new(weight.aligned()?.view().slice::<bf16>(), shape, Packing::of(node)).into(),
            false => OnceLock::new(),
        };
        let Some(dot) = Bf16Conv::new(node)? else { return Ok(None) };
        Ok(Some(Bf16Winograd { op: op.clone(), shape, kernels, threads: node.pool.threads(), dot }))
    }

    /// The transformed weight, made here where it is large. A pool of the host's may run another run of the session on this thread
    /// while it waits for its threads, so the transform is outside of the lock; of two at the same time one result is kept.
    fn kernels(&self, pool: &Pool) -> &Kernels {
        if let Some(kernels) = self.kernels.get() {
            return kernels;
        }
        let made = Kernels::new(&self.dot.weight(), self.shape, pool.into());
        self.kernels.get_or_init(|| made)
    }

    /// `None` for images that dot products are faster for, and for more tiles than can be counted.
    fn plan(&self, x: &[usize], w: &[usize]) -> Result<Option<Plan>, OpError> {
        let space = if self.op.channel_blocked[0] { &x[2..x.len() - 1] } else { &x[2..] };
        let geometry = self.op.window.geometry(space, &w[2..])?;
        let mut counts = geometry.output.iter().map(|n| n.div_ceil(SIDE));
        let tiles = counts.try_fold(x[0], usize::checked_mul);
        // Parts are numbered by products of two such numbers.
        let Some(tiles) = tiles.filter(|all| all.checked_mul(*all).is_some()) else { return Ok(None) };
        if geometry.input.contains(&0) || tiles < FEWEST_TILES * self.threads {
            return Ok(None);
        }
        Ok(Some(Plan::new(&geometry, x[0], self.shape[1], self.threads)))
    }
}

impl Kernel for Bf16Winograd {
    fn algorithm(&self) -> &'static str {
        "Winograd 3×3 of bfloat16 in f32"
    }

    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let (Some(x), Some(w)) = (&inputs[0], &inputs[1]) else { return Ok(Prepared::default()) };
        let (state, scratch) = match self.plan(x.shape, w.shape)? {
            Some(plan) => (State::Tiles(plan), 0),
            None => {
                let prepared = self.dot.prepare(inputs, outputs)?;
                let scratch = prepared.scratch;
                (State::Dot(prepared), scratch)
            }
        };
        Ok(Prepared { state: Some(Box::new(state)), scratch })
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let plan = match cx.state::<State>() {
            State::Tiles(plan) => plan,
            State::Dot(prepared) => {
                let scratch = cx.scratch::<u8>().as_mut_ptr();
                // SAFETY: the scratch is what the kernel asked for, aligned as all of it is, and nobody else's.
                let inner = unsafe { cx.prepared(prepared.state.as_deref(), scratch, prepared.scratch) };
                return self.dot.run(&inner, inputs, outputs);
            }
        };
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let optional = |i: usize| inputs.get(i).copied().flatten().map(|input| input.slice::<bf16>());
        let x = x.slice::<bf16>();
        let pixels = match self.op.channel_blocked[0] {
            true => Pixels::channel_blocked(x)?,
            false => Pixels::Nchw(x),
        };
        let out = Parts::new(y.slice::<bf16>());
        let (bias, residual) = (optional(2), optional(RESIDUAL));
        let kernels = self.kernels(cx.pool);
        let run = Run { op: &self.op, kernels, plan, pixels, bias, residual, out: &out };
        cx.pool.split(plan.parts.len(), 1, |range| {
            for part in plan.parts[range].iter().take_while(|_| !cx.cancelled()) {
                run.part(part.clone());
            }
        });
        if cx.cancelled() { Err(OpError::Cancelled) } else { Ok(()) }
    }

    fn consumes(&self, input: usize) -> bool {
        input == 1
    }
}

/// For each element of transformed tiles a matrix of vectors of channels: transformed tiles have all tiles of a vector one after
/// the other, sums all vectors of a tile.
#[derive(Clone, Copy)]
struct Matrices {
    tiles: usize,
    vectors: usize,
}

impl Matrices {
    /// Floats from one element's matrix to the next: all of them at once are in different sets of a cache, which an address's
    /// last twelve bits tell.
    fn step(&self) -> usize {
        (self.tiles * self.vectors * VECTOR).next_multiple_of(1024) + 2 * VECTOR
    }

    fn len(&self) -> usize {
        ELEMENTS * self.step()
    }
}

/// A convolution with its operands.
struct Run<'a> {
    op: &'a Conv,
    kernels: &'a Kernels,
    plan: &'a Plan,
    /// Of all images.
    pixels: Pixels<'a, bf16>,
    bias: Option<&'a [bf16]>,
    residual: Option<&'a [bf16]>,
    out: &'a Parts<'a, bf16>,
}

impl Run<'_> {
    /// Computes some tiles on this thread.
    fn part(&self, tiles: std::ops::Range<usize>) {
        let (plan, [outputs, channels]) = (self.plan, self.kernels.shape());
        let (count, vectors) = (tiles.len(), channels.div_ceil(VECTOR));
        let from = Matrices { tiles: count, vectors };
        let room = Matrices { tiles: count, vectors: TOGETHER };
        let lengths = [from.len(), room.len(), input::scratch_len(plan).max(output::scratch_len(plan))];
        with_scratch(lengths, |[transformed, sums, scratch]: [&mut [f32]; 3]| {
            for segment in plan.segments(tiles.clone()) {
                for vector in 0..vectors {
                    Input {
                        plan,
                        segment: &segment,
                        pixels: self.pixels,
                        channels,
                        vector,
                        to: from,
                        out: transformed,
                        scratch,
                    }
                    .compute();
                }
            }
            for first in (0..outputs.div_ceil(VECTOR)).step_by(TOGETHER) {
                let (vectors, weights) = self.kernels.from(first);
                let to = Matrices { tiles: count, vectors };
                Product { channels, from, transformed, weights, to, sums }.compute();
                for segment in plan.segments(tiles.clone()) {
                    for vector in 0..vectors {
                        self.give(&segment, (to, sums, vector), first + vector, scratch);
                    }
                }
            }
        });
    }

    /// Transforms sums and gives them to the epilogue.
    fn give(
        &self,
        segment: &Segment,
        (from, sums, vector): (Matrices, &[f32], usize),
        outputs: usize,
        scratch: &mut [f32],
    ) {
        let (plan, [all, _]) = (self.plan, self.kernels.shape());
        let columns = plan.output[0] * plan.output[1];
        let rows = outputs * VECTOR..(outputs * VECTOR + VECTOR).min(all);
        let mut bias = [0.0; VECTOR];
        if let Some(given) = self.bias {
            bias.iter_mut().zip(&given[rows.clone()]).for_each(|(y, x)| *y = x.to_f32());
        }
        let place = Place { out: self.out, start: segment.image * all * columns, columns };
        with_function!(rounded self.op.activation, function => {
            let epilogue = RoundedToBf16 { place, residual: self.residual, function };
            macro_rules! output {
                ($epilogue:expr) => {
                    Output { plan, segment, from, sums, vector, rows, bias, scratch, epilogue: $epilogue }.compute()
                };
            }
            match self.op.channel_blocked[1] {
                true => output!(ChannelBlocked(epilogue)),
                false => output!(epilogue),
            }
        });
    }
}
