//! The ways to compute a convolution, of which tuning finds the fastest.

use crate::ops::OpError;
use crate::providers::Argument;

use super::super::PlanBuilder;
use super::super::gemm::{Extra, TileKernel, same, splits, stages, tile_name};
use super::super::tuning::{Problem, Span, Trial};
use super::super::unit::Unit;
use super::implicit::{Implicit, Layout};

/// Output channels of a group up to which computing each result by itself may pay.
const MANY_CHANNELS: usize = 16;

/// Appends the launches in the way that tuning chooses.
pub(super) fn plan(
    conv: &Implicit,
    plan: &mut PlanBuilder<'_>,
    inputs: &[Option<Argument<'_>>],
) -> Result<(), OpError> {
    let provider = plan.provider;
    let ways = ways(conv, provider.unit());
    let ty = conv.ty;
    let span = |elements| Span { ty, elements };
    let elements = |argument: &Option<Argument<'_>>| argument.map_or(0, |a| a.shape.iter().product());
    // A convolution's operands are its inputs already, so the trial needs no others.
    let trial =
        Trial { inputs: inputs.iter().map(|a| span(elements(a))).collect(), output: span(conv.results()) };
    let chosen = provider.tuner().choose(
        provider,
        &Problem {
            operator: if conv.layout == Layout::Nchw { "conv" } else { "conv_nhwc" },
            key: key(conv, inputs),
            candidates: &|_| ways.iter().map(|&(tile, wanted)| name(conv, tile, wanted)).collect(),
            trial,
            plan: &|way, plan| conv.launch(plan, ways[way].0, ways[way].1),
        },
    );
    conv.launch(plan, ways[chosen].0, ways[chosen].1)
}

/// Kernels with wanted parts of K, the default first.
fn ways(conv: &Implicit, unit: Unit) -> Vec<(TileKernel, usize)> {
    let (ty, names) = (conv.ty, &conv.names);
    let staged = ty.size() == 2 && unit.mma_sync;
    let tiles = [(names.large, 128), (Some(names.small), 64)].into_iter().filter_map(|(name, side)| {
        let lds = if staged { stages(side, side) } else { 0 };
        Some(TileKernel { lds, ..TileKernel::new(conv.kernel(name?), [side, side]) })
    });
    let (default, wanted) = conv.default_way(unit);
    let mut ways = vec![(default, wanted)];
    ways.extend(conv.staying_ways(unit).into_iter().filter(|way| !same(way, &(default, wanted))));
    let others =
        splits(&conv.product, ty, tiles.collect(), unit, (!conv.direct).then_some((default, wanted)));
    ways.extend(others);
    let few = conv.outputs <= MANY_CHANNELS && conv.results() <= i32::MAX as usize;
    if few && !conv.direct {
        ways.push((conv.direct_kernel(), 1));
    }
    ways
}

fn name(conv: &Implicit, tile: TileKernel, wanted: usize) -> String {
    let direct = tile.kernel.name == conv.names.direct;
    let extra = Extra { params: None, groups: direct.then_some(1) };
    tile_name(&conv.product, conv.ty, tile, wanted, &extra)
}

/// Everything that decides how fast the candidates are, as a word.
fn key(conv: &Implicit, inputs: &[Option<Argument<'_>>]) -> String {
    let by = |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    let shape = |i: usize| inputs.get(i).copied().flatten().map_or_else(String::new, |a| by(a.shape));
    let g = &conv.g;
    let mut key = format!(
        "{}_x{}_w{}_stride{}_dilation{}_pad{}_{}_group{}",
        conv.ty,
        shape(0),
        shape(1),
        by(&g.strides),
        by(&g.dilations),
        by(&g.pads_begin),
        by(&g.pads_end),
        conv.group
    );
    for (i, name) in [(2, "_bias"), (3, "_residual")] {
        if inputs.get(i).is_some_and(Option::is_some) {
            key += name;
        }
    }
    let function = format!("{:?}", conv.product.epilogue.activation);
    format!("{key}_{}", function.split([' ', '{']).next().unwrap_or_default())
}
