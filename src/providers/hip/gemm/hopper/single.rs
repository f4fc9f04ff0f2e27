//! Products of f32 (`kernels/include/rukh/tile_fma_hopper.h`), by plain multiply-adds.

use std::ffi::CStr;
use std::mem::offset_of;

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::super::PlanBuilder;
use super::super::super::launch::{COUNTERS, KernelName, TENSOR_MAP_ALIGNMENT};
use super::super::super::unit::Unit;
use super::super::params::GemmParams;
use super::super::product::{Matrix, Product};
use super::super::tiles::TileKernel;
use super::{Copies, HopperParams, Windows, copied, launch, maps};

const TYPE: ElementType = ElementType::F32;

/// Columns of K of a step, and those that parts of K are multiples of.
const STEP: usize = 32;
const PART_STEP: usize = 64;

/// A size of tiles, with times that were measured on an H100.
struct Form {
    rows: usize,
    columns: usize,
    /// Steps that workgroup memory has room for.
    stages: usize,
    items: u32,
    /// Workgroups that a processor has room for.
    resident: usize,
    /// Microseconds of a step of K for a workgroup alone on its processor, and for each of several.
    step: [f64; 2],
    /// Where rows of B are contiguous, and where its columns are.
    names: [&'static CStr; 2],
}

#[rustfmt::skip]
const FORMS: [Form; 2] = [
    Form { rows: 128, columns: 256, stages: 3, items: 384, resident: 1, step: [5.6, 5.6],
        names: [c"gemm_f32_hopper_128x256", c"gemm_f32_hopper_128x256_by_k"] },
    Form { rows: 64, columns: 64, stages: 4, items: 160, resident: 3, step: [0.84, 0.78],
        names: [c"gemm_f32_hopper_64x64", c"gemm_f32_hopper_64x64_by_k"] },
];

/// Both sizes with the parts of K that are best for each, and the microseconds that each takes; none where the kernels do not
/// take the product.
pub(super) fn timed(product: &Product, unit: Unit) -> Vec<(f64, TileKernel, usize)> {
    if product.k == 0 || product.epilogue.needs_second_launch(TYPE) {
        return Vec::new();
    }
    let takes = |form: &&Form| copies(product, form).is_some();
    let best = |form: &Form| {
        let parts = [1, 2, 3, 4, 6, 8, 12, 16].into_iter();
        let parts = parts.filter(|&parts| parts == 1 || form.resident > 1 && parts * PART_STEP <= product.k);
        let times = parts.map(|parts| (time(product, form, parts, unit.compute_units), parts));
        let (time, parts) = times.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((time, tile(form, product), parts))
    };
    FORMS.iter().filter(takes).filter_map(best).collect()
}

/// Microseconds: tiles one after the other on each processor, and sums of parts on their way through memory.
fn time(product: &Product, form: &Form, parts: usize, units: usize) -> f64 {
    const START: f64 = 3.5;
    let each = (product.tiles(form.rows, form.columns) * parts).div_ceil(units);
    let steps = part_of(product, parts).div_ceil(STEP) * each;
    let joining = if parts > 1 { 3.5 + 0.25 * parts as f64 } else { 0.0 };
    START + steps as f64 * form.step[usize::from(each > 1)] + joining
}

/// Columns of K of each of so many parts.
fn part_of(product: &Product, parts: usize) -> usize {
    if parts > 1 { product.k.div_ceil(parts).next_multiple_of(PART_STEP) } else { product.k }
}

fn tile(form: &Form, product: &Product) -> TileKernel {
    let name = form.names[usize::from(by_k(product.b))];
    // The stages with two barriers for each, what aligns them, and a word.
    let lds = form.stages * ((form.rows + form.columns) * STEP * TYPE.size() + 16) + 1024 + 16;
    TileKernel {
        lds: lds as u32,
        items: form.items,
        resident: form.resident,
        stages: form.stages as u32,
        ..TileKernel::new(KernelName { family: "hopper_gemm_f32", name }, [form.rows, form.columns])
    }
}

fn by_k(b: Matrix) -> bool {
    b.strides[1] != 1
}

/// How both operands are copied for tiles of such a size; `None` where maps cannot say it.
fn copies(product: &Product, form: &Form) -> Option<Copies> {
    let Product { n, k, b, .. } = *product;
    let of_b = match b.strides {
        [row, 1] => maps::operand(product, TYPE, 1, &[n, k], &[row], &[form.columns, STEP])?,
        // Every fourth column, and then the next four times.
        [1, column] if n.is_multiple_of(4) => {
            let part = [STEP, form.columns / 4, 4];
            maps::operand(product, TYPE, 1, &[k, n / 4, 4], &[column * 4, column], &part)?
        }
        _ => return None,
    };
    let rows = copied(form.rows, product.m);
    let of_a = maps::of_a(product, TYPE, [STEP, rows])?;
    let (next, steps) = (maps::next(product), k.div_ceil(STEP));
    let stage_bytes = (rows + form.columns) * STEP * TYPE.size();
    Some(Copies { maps: [of_a, of_b], next, steps, stage_bytes, windows: Windows::default() })
}

pub(super) fn is_single(tile: TileKernel) -> bool {
    tile.kernel.family == "hopper_gemm_f32"
}

/// Appends the launch of such a tile for operands that are aligned, and what `otherwise` appends for others.
pub(super) fn plan(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    (tile, parts): (TileKernel, usize),
    otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    let form = FORMS.iter().find(|form| (form.rows, form.columns) == (tile.rows, tile.columns));
    let Some(copies) = form.and_then(|form| copies(product, form)) else { return otherwise(plan) };
    let groups = product.tiles(tile.rows, tile.columns);
    let k_part = part_of(product, if groups <= COUNTERS { parts } else { 1 });
    let parts = product.k.div_ceil(k_part);
    let mut of_product = product.params(TYPE)?;
    (of_product.k_part, of_product.parts) = (k_part as u32, parts as u32);
    let params = HopperParams::of_sums(of_product, &copies, tile.stages as usize);
    let mut addresses = HopperParams::addresses(product);
    plan.by_alignment(
        TENSOR_MAP_ALIGNMENT as u32,
        &product.operands(TYPE),
        |plan| {
            if parts > 1 {
                let sums = plan.scratch(parts * groups * tile.rows * tile.columns * TYPE.size());
                let at = offset_of!(HopperParams, product);
                addresses.push((at + offset_of!(GemmParams, partial), sums));
                addresses.push((at + offset_of!(GemmParams, arrived), super::Operand::Counters));
            }
            let [of_a, of_b] = copies.maps;
            let operands = [(product.a, of_a), (product.b, of_b)].map(Some);
            launch(plan, TYPE, tile, [groups * parts, 1, 1], (&params, &addresses), operands)
        },
        otherwise,
    )
}
