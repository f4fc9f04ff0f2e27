//! Products of matrices on sm_90, whose operands come by its engine for copies of tiles (`kernels/hopper_gemm_*.hip`): of
//! half precision on matrix cores, and of f32.

mod few;
mod maps;
mod single;
mod sizes;
#[cfg(test)]
mod tests;

use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::hip::{TENSOR_MAP_BYTES, TensorMap};
use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{COUNTERS, Operand, TENSOR_MAP_ALIGNMENT};
use super::super::unit::Unit;
use super::params::GemmParams;
use super::product::{Matrix, Product};
use super::tiles::TileKernel;
pub(in super::super) use maps::plain_copies;
use maps::row_copies;
use sizes::SIZES;

/// Columns of the tiles whose results can be stored one by one, at most.
const COLUMNS_WITHOUT_MAP: usize = 64;

/// Columns of K of a step.
pub(in super::super) const STEP: usize = 64;

/// Numbers that lie together in every operand, in 16 bytes.
const PACK: usize = 8;

/// What `HopperParams` of `kernels/include/rukh/tile_hopper.h` has around the product's parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(in super::super) struct HopperParams {
    /// Of both operands, the result and the residual.
    maps: [[u64; TENSOR_MAP_BYTES / 8]; 4],
    product: GemmParams,
    steps: u32,
    part_steps: u32,
    next: [u32; 2],
    windows: Windows,
    /// Steps that workgroup memory has room for.
    stages: u32,
    /// Whether the engine brings the residual and takes the results, and whether these are sums within bounds.
    by_rows: u32,
    linear: u32,
    /// How far the residual's map moves from matrix to matrix.
    next_residual: u32,
    /// Whether results, bias and residual can be read in pairs.
    pairs: u32,
    /// Whether A may be read before the kernels before have ended.
    early: u32,
    /// Bytes that the copies of a step bring.
    stage_bytes: u32,
    /// Whether the weight is a constant that one launch reads once.
    once: u32,
}

const _: () = assert!(size_of::<HopperParams>() == 1088);

/// How K runs over the windows of an image; zeros for a plain product.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub(in super::super) struct Windows {
    /// Steps of a tap, taps of a line, and how far taps lie apart to the right and down.
    pub(in super::super) tap_steps: u32,
    pub(in super::super) line_taps: u32,
    pub(in super::super) right: u32,
    pub(in super::super) down: u32,
    /// Positions of an image, and of a line.
    pub(in super::super) positions: u32,
    pub(in super::super) line_positions: u32,
    /// How far windows lie apart (y, then x), and where the first one begins.
    pub(in super::super) stride: [i32; 2],
    pub(in super::super) first: [i32; 2],
}

impl HopperParams {
    /// Of a product whose results its kernel stores by itself, and whose parts of K, if any, are those of its own parameters.
    pub(in super::super) fn of_sums(product: GemmParams, copies: &Copies, stages: usize) -> HopperParams {
        let (steps, stages, stage_bytes) = (copies.steps as u32, stages as u32, copies.stage_bytes as u32);
        HopperParams {
            product,
            steps,
            part_steps: steps,
            next: copies.next,
            stages,
            stage_bytes,
            ..HopperParams::zeroed()
        }
    }

    /// Where the addresses of a product lie.
    fn addresses(product: &Product) -> Vec<(usize, Operand)> {
        let fields = product.addresses().into_iter();
        fields.map(|(field, operand)| (offset_of!(HopperParams, product) + field, operand)).collect()
    }

    /// Where the map of an operand lies.
    pub(in super::super) fn map_at(operand: usize) -> usize {
        offset_of!(HopperParams, maps) + operand * TENSOR_MAP_BYTES
    }
}

/// What the copies of both operands take, and how K runs.
///
/// A copy of a tile has the rows and columns that there are, in eights, no more: lines outside of an operand, which come as zeros,
/// cost the engine more than those inside. A product of 16 rows took 1.3 to 1.6 times as long with tiles of 64 (H200).
pub(in super::super) struct Copies {
    pub(in super::super) maps: [TensorMap; 2],
    /// How far the maps' last dimension moves from matrix to matrix.
    pub(in super::super) next: [u32; 2],
    pub(in super::super) steps: usize,
    /// Bytes of both operands of a step.
    pub(in super::super) stage_bytes: usize,
    pub(in super::super) windows: Windows,
}

/// Rows, or columns, that a copy of a tile brings of a product with so many: whole eights, within which the engine exchanges
/// packs.
pub(in super::super) fn copied(of_tile: usize, of_product: usize) -> usize {
    of_tile.min(of_product.next_multiple_of(8))
}

/// Tiles with the parts of K that are best for each, the fastest first; none where the kernels do not take the product.
pub(super) fn tiles(product: &Product, ty: ElementType, unit: Unit) -> Vec<(TileKernel, usize)> {
    if !(unit.wgmma && unit.tensor_maps) {
        return Vec::new();
    }
    if ty == ElementType::F32 {
        return fastest_first(single::timed(product, unit));
    }
    match takes(product, ty) && plain_copies(product, ty, SIZES[0].sides()).is_some() {
        true => {
            let mut found = timed(product, ty, product.k.div_ceil(STEP), unit);
            found.extend(few::timed(product, ty, unit));
            fastest_first(found)
        }
        false => Vec::new(),
    }
}

fn fastest_first(mut found: Vec<(f64, TileKernel, usize)>) -> Vec<(TileKernel, usize)> {
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().map(|(_, tile, parts)| (tile, parts)).collect()
}

/// All tiles with the parts of so many steps of K that are best for each, the fastest first.
pub(in super::super) fn ranked(
    product: &Product,
    ty: ElementType,
    steps: usize,
    unit: Unit,
) -> Vec<(TileKernel, usize)> {
    fastest_first(timed(product, ty, steps, unit))
}

fn timed(product: &Product, ty: ElementType, steps: usize, unit: Unit) -> Vec<(f64, TileKernel, usize)> {
    let by_rows = row_copies(product, ty).is_some();
    let mut found: Vec<(f64, TileKernel, usize)> = SIZES
        .iter()
        .filter(|size| by_rows || size.columns <= COLUMNS_WITHOUT_MAP)
        .map(|size| {
            let parts = [1, 2, 3, 4, 6, 8, 12, 16]
                .into_iter()
                .filter(|&parts| parts == 1 || parts * 2 <= steps && size.split.is_some());
            let best = parts
                .map(|parts| (size.time(product, steps, parts, unit.compute_units), parts))
                .fold((f64::INFINITY, 1), |best, found| if found.0 < best.0 { found } else { best });
            (best.0, size.tile(ty), best.1)
        })
        .collect();
    // Some have no room at the same time, or nothing to share.
    found.retain(|(time, ..)| time.is_finite());
    found
}

/// Whether the results of a product can be stored by these kernels.
pub(in super::super) fn takes(product: &Product, ty: ElementType) -> bool {
    let packs = |i: usize, matrix: Matrix| {
        let axes = product.batch.iter().map(|axis| axis.strides[i]);
        let along = matrix.strides[1] == 1 && matrix.offset.is_multiple_of(PACK);
        along && axes.chain([matrix.strides[0]]).all(|stride| stride >= 0 && stride % PACK as i64 == 0)
    };
    let bias = product.bias.is_none_or(|bias| bias.strides[0] == 0 && packs(3, bias));
    let residual = product.residual.is_none_or(|residual| packs(4, residual));
    matches!(ty, ElementType::F16 | ElementType::BF16)
        && product.k > 0
        && product.out.strides[1] == 1
        // Rows without whole packs are stored number by number.
        && (packs(2, product.out) || !product.n.is_multiple_of(PACK))
        && bias
        && (residual && product.n.is_multiple_of(PACK) || product.residual.is_none())
        && !product.epilogue.needs_second_launch(ty)
}

/// Appends the launch of a tile of this module for operands that are aligned, and what `otherwise` appends for others.
pub(super) fn plan(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    (tile, parts): (TileKernel, usize),
    otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    if few::is_of_few(tile) {
        return few::plan(product, plan, ty, tile, otherwise);
    }
    if single::is_single(tile) {
        return single::plan(product, plan, (tile, parts), otherwise);
    }
    let size = SIZES.iter().find(|size| (size.rows, size.columns) == (tile.rows, tile.columns));
    match size.and_then(|size| plain_copies(product, ty, size.sides())) {
        Some(copies) => plan_copies(product, plan, ty, (tile, parts), copies, otherwise),
        None => otherwise(plan),
    }
}

/// As `plan`, with operands that are copied in some way.
pub(in super::super) fn plan_copies(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    (tile, parts): (TileKernel, usize),
    copies: Copies,
    otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    let groups = product.tiles(tile.rows, tile.columns);
    let parts = if groups <= COUNTERS && tile.adds_up { parts.clamp(1, copies.steps.max(1)) } else { 1 };
    let part_steps = copies.steps.div_ceil(parts).max(1);
    let parts = copies.steps.div_ceil(part_steps).max(1);
    let rows = row_copies(product, ty);
    let residual_moves =
        rows.as_ref().and_then(|(_, residual)| residual.as_ref()).is_some_and(|map| map.sizes[2] > 1);
    let once = plan.is_constant(product.b.at) && is_read_once(product, tile.rows, copies.next[1]);
    let params = HopperParams {
        once: once.into(),
        part_steps: part_steps as u32,
        windows: copies.windows,
        by_rows: u32::from(rows.is_some()),
        linear: u32::from(rows.is_some() && product.is_linear()),
        next_residual: u32::from(residual_moves),
        pairs: u32::from(product.n.is_multiple_of(PACK)),
        ..HopperParams::of_sums(product.params(ty)?, &copies, tile.stages as usize)
    };
    let mut addresses = HopperParams::addresses(product);
    plan.by_alignment(
        TENSOR_MAP_ALIGNMENT as u32,
        &product.operands(ty),
        |plan| {
            if parts > 1 {
                let sums = plan.scratch(parts * groups * tile.rows * tile.columns * size_of::<f32>());
                let product = offset_of!(HopperParams, product);
                addresses.push((product + offset_of!(GemmParams, partial), sums));
                addresses.push((product + offset_of!(GemmParams, arrived), Operand::Counters));
            }
            // Workgroups that stay are no more than the processors have room for.
            let room = plan.provider.unit().compute_units * tile.resident;
            let workgroups = match tile.at_once {
                Some(sharing) => groups * sharing,
                None => (groups * parts).min(room),
            };
            let grid = [workgroups, 1, 1];
            let [of_a, of_b] = copies.maps;
            let (of_out, of_residual) = rows.map_or((None, None), |(out, residual)| (Some(out), residual));
            let operands = [
                Some((product.a, of_a)),
                Some((product.b, of_b)),
                of_out.map(|map| (product.out, map)),
                product.residual.zip(of_residual),
            ];
            launch(plan, ty, tile, grid, (&params, &addresses), operands)
        },
        otherwise,
    )
}

/// Whether each number of B is read once, with tiles of so many rows, when B moves so far from matrix to matrix.
fn is_read_once(product: &Product, rows: usize, next: u32) -> bool {
    product.m <= rows && (next > 0 || product.batch_count() == 1)
}

/// Appends the launch of a kernel whose parameters have maps of its operands: A, B, the result, the residual.
fn launch<const N: usize>(
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    tile: TileKernel,
    grid: [usize; 3],
    (params, addresses): (&HopperParams, &[(usize, Operand)]),
    operands: [Option<(Matrix, TensorMap)>; N],
) -> Result<(), OpError> {
    plan.launch_with(tile.kernel, grid, tile.items, tile.lds, params, addresses)?;
    plan.maps(operands.into_iter().enumerate().filter_map(|(i, operand)| {
        let (matrix, map) = operand?;
        Some((HopperParams::map_at(i), matrix.at, (matrix.offset * ty.size()) as u64, map))
    }));
    Ok(())
}
