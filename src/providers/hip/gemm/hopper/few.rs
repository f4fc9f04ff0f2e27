//! Products of few rows (`kernels/include/rukh/few_rows_hopper.h`): tiles of 64 columns and 16 to 64 rows, as many of them
//! as the device has processors for, or clusters that share them.

use std::ffi::CStr;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::super::PlanBuilder;
use super::super::super::launch::{KernelName, TENSOR_MAP_ALIGNMENT};
use super::super::super::unit::Unit;
use super::super::product::Product;
use super::super::tiles::TileKernel;
use super::{HopperParams, PACK, STEP, is_read_once, launch, plain_copies};

/// Columns of a tile.
const COLUMNS: usize = 64;

/// More rows have other kernels.
const MOST_ROWS: usize = 256;

/// Workgroups that a processor has room for.
const RESIDENT: usize = 2;

/// Rows of a tile, steps that workgroup memory has room for, workgroups that share it, and the kernels of f16 and bf16.
type Form = (usize, usize, usize, [&'static CStr; 2]);

#[rustfmt::skip]
const FORMS: [Form; 9] = [
    (16, 10, 1, [c"gemm_f16_hopper_few16_cluster1", c"gemm_bf16_hopper_few16_cluster1"]),
    (16, 10, 2, [c"gemm_f16_hopper_few16_cluster2", c"gemm_bf16_hopper_few16_cluster2"]),
    (16, 10, 4, [c"gemm_f16_hopper_few16_cluster4", c"gemm_bf16_hopper_few16_cluster4"]),
    (32, 8, 1, [c"gemm_f16_hopper_few32_cluster1", c"gemm_bf16_hopper_few32_cluster1"]),
    (32, 8, 2, [c"gemm_f16_hopper_few32_cluster2", c"gemm_bf16_hopper_few32_cluster2"]),
    (32, 8, 4, [c"gemm_f16_hopper_few32_cluster4", c"gemm_bf16_hopper_few32_cluster4"]),
    (64, 6, 1, [c"gemm_f16_hopper_few64_cluster1", c"gemm_bf16_hopper_few64_cluster1"]),
    (64, 6, 2, [c"gemm_f16_hopper_few64_cluster2", c"gemm_bf16_hopper_few64_cluster2"]),
    (64, 6, 4, [c"gemm_f16_hopper_few64_cluster4", c"gemm_bf16_hopper_few64_cluster4"]),
];

/// The tiles that have room on the device at the same time, with the microseconds that each takes.
pub(super) fn timed(product: &Product, ty: ElementType, unit: Unit) -> Vec<(f64, TileKernel, usize)> {
    let steps = product.k.div_ceil(STEP);
    if product.m > MOST_ROWS || !product.n.is_multiple_of(PACK) {
        return Vec::new();
    }
    let fits = |&(rows, _, parts, _): &Form| {
        let workgroups = product.tiles(rows, COLUMNS) * parts;
        // Clusters of four do not fill the groups of processors that they have to stay within. Of more workgroups than have
        // room some would wait for others; two share a processor where memory is what they wait for. A tile is not half empty
        // where a smaller one is there.
        let room = match parts {
            4 => unit.compute_units * 3 / 4,
            1 if product.m <= rows => unit.compute_units * RESIDENT,
            _ => unit.compute_units,
        };
        workgroups <= room && (parts == 1 || steps >= 2 * parts) && (rows == 16 || product.m * 2 > rows)
    };
    let timed = |form| (time(product, form, unit), tile(form, ty), 1);
    FORMS.iter().filter(|form| fits(form)).map(timed).collect()
}

/// Microseconds, by a model that was fitted to what an H100 took: from the launch to the first step and behind the last one,
/// bytes of the operands on their way to a processor, and the barriers of clusters.
fn time(product: &Product, &(rows, _, parts, _): &Form, unit: Unit) -> f64 {
    const START: f64 = 2.7;
    const BYTES_A_MICROSECOND: f64 = 95e3;
    let steps = product.k.div_ceil(STEP).div_ceil(parts);
    let sharing = (product.tiles(rows, COLUMNS) * parts).div_ceil(unit.compute_units);
    let bytes = sharing * steps * (COLUMNS + rows) * STEP * 2;
    let clusters = [0.0, 0.6, 1.2][parts / 2];
    START + bytes as f64 / BYTES_A_MICROSECOND + clusters
}

fn tile(&(rows, stages, parts, names): &Form, ty: ElementType) -> TileKernel {
    let (family, name) = match ty {
        ElementType::BF16 => ("hopper_few_bf16", names[1]),
        _ => ("hopper_few_f16", names[0]),
    };
    // The stages with two barriers for each, what aligns them, a barrier for each wave and a word; for clusters the sums of
    // those that make results.
    let making = parts.min(rows / 16);
    let room = if parts > 1 { parts * (rows / 2 / making) * 128 * size_of::<f32>() } else { 0 };
    let lds = stages * ((COLUMNS + rows) * STEP * 2 + 16) + 1024 + 4 * 8 + 16 + room;
    TileKernel {
        rows,
        columns: COLUMNS,
        lds: lds as u32,
        items: 192,
        adds_up: false,
        resident: RESIDENT,
        at_once: Some(parts),
        stages: stages as u32,
        ..TileKernel::new(KernelName { family, name }, [rows, COLUMNS])
    }
}

pub(super) fn is_of_few(tile: TileKernel) -> bool {
    tile.kernel.family.starts_with("hopper_few")
}

/// Appends the launch of such a tile for operands that are aligned, and what `otherwise` appends for others.
pub(super) fn plan(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    tile: TileKernel,
    otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    let Some(mut copies) = plain_copies(product, ty, [tile.rows, tile.columns]) else {
        return otherwise(plan);
    };
    // The weight takes the place of A.
    let mut across = product.clone();
    across.transpose();
    copies.maps.reverse();
    copies.next.reverse();
    let early = plan.is_constant(product.b.at);
    let once = early && is_read_once(product, tile.rows, copies.next[0]);
    let params = HopperParams {
        early: early.into(),
        once: once.into(),
        ..HopperParams::of_sums(across.params(ty)?, &copies, tile.stages as usize)
    };
    let addresses = HopperParams::addresses(&across);
    let columns = product.n.div_ceil(tile.columns) * tile.at_once.unwrap_or(1);
    let grid = [columns, product.m.div_ceil(tile.rows), product.batch_count()];
    plan.by_alignment(
        TENSOR_MAP_ALIGNMENT as u32,
        &product.operands(ty),
        |plan| {
            let [of_a, of_b] = copies.maps;
            let operands = [(across.a, of_a), (across.b, of_b)].map(Some);
            launch(plan, ty, tile, grid, (&params, &addresses), operands)
        },
        otherwise,
    )
}
