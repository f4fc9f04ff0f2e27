//! Products of half-precision matrices on sm_90, whose operands come by its engine for copies of tiles
//! (`kernels/hopper_gemm_*.hip`).

use std::ffi::CStr;
use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use crate::hip::{Part, TENSOR_MAP_BYTES, TensorMap};
use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::launch::{COUNTERS, KernelName, Operand, TENSOR_MAP_ALIGNMENT};
use super::super::unit::Unit;
use super::params::GemmParams;
use super::product::{Matrix, Product};
use super::tiles::TileKernel;

/// Columns of K of a step.
pub(in super::super) const STEP: usize = 64;

/// Numbers that lie together in every operand, in 16 bytes.
const PACK: usize = 8;

/// Neighbouring rows of a tile that a wave makes.
const ROWS_OF_WAVE: u32 = 16;

/// A size of tiles. Times were measured on an H100, with all of its processors busy and with one.
struct Size {
    rows: usize,
    columns: usize,
    stages: usize,
    /// Workgroups that a processor has room for.
    resident: usize,
    /// Whether groups of waves take turns with tiles of their own.
    turns: bool,
    names: [&'static CStr; 2],
    /// Microseconds of a step of K where one processor, and where all are busy; then from the last step of a tile to its
    /// end, the same; and what a residual, and a function, add to that where all are busy.
    step: [f64; 2],
    store: [f64; 2],
    residual: f64,
    function: f64,
    /// More microseconds where K is in parts; `None`: K is whole, as groups take turns or steps are few.
    split: Option<f64>,
}

macro_rules! names {
    ($size:literal) => {
        [
            // A literal has no NUL inside.
            match CStr::from_bytes_with_nul(concat!("gemm_f16_hopper_", $size, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            match CStr::from_bytes_with_nul(concat!("gemm_bf16_hopper_", $size, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
        ]
    };
}

#[rustfmt::skip]
const SIZES: [Size; 6] = [
    Size { rows: 128, columns: 256, stages: 3, resident: 1, turns: false, names: names!("128x256"), step: [0.575, 0.74], store: [1.9, 2.0], residual: 3.0, function: 8.7, split: Some(7.7) },
    Size { rows: 128, columns: 192, stages: 4, resident: 1, turns: false, names: names!("128x192"), step: [0.430, 0.57], store: [1.2, 1.0], residual: 2.2, function: 6.1, split: Some(6.5) },
    Size { rows: 128, columns: 128, stages: 5, resident: 1, turns: true, names: names!("128x128"), step: [0.285, 0.38], store: [1.2, 0.9], residual: 0.8, function: 2.4, split: None },
    Size { rows: 64, columns: 128, stages: 3, resident: 2, turns: false, names: names!("64x128"), step: [0.236, 0.55], store: [0.7, 0.6], residual: 0.3, function: 3.7, split: Some(4.0) },
    Size { rows: 64, columns: 64, stages: 5, resident: 2, turns: false, names: names!("64x64"), step: [0.190, 0.34], store: [0.4, 0.7], residual: 0.2, function: 1.9, split: Some(3.0) },
    // For few steps, whose time is that of results and residual on their way.
    Size { rows: 64, columns: 64, stages: 2, resident: 4, turns: false, names: names!("64x64"), step: [0.430, 0.88], store: [0.3, 0.5], residual: 0.3, function: 1.8, split: None },
];

/// Microseconds from a launch to the first step.
const START: f64 = 3.0;

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
    /// Whether the engine brings the residual and takes the results, whose rows then have no function.
    by_rows: u32,
    /// How far the residual's map moves from matrix to matrix.
    next_residual: u32,
    unused: [u32; 5],
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

/// What the copies of both operands take, and how K runs.
pub(in super::super) struct Copies {
    pub(in super::super) maps: [TensorMap; 2],
    /// How far the maps' last dimension moves from matrix to matrix.
    pub(in super::super) next: [u32; 2],
    pub(in super::super) steps: usize,
    pub(in super::super) windows: Windows,
}

/// Tiles with the parts of K that are best for each, the fastest first; none where the kernels do not take the product.
pub(super) fn tiles(product: &Product, ty: ElementType, unit: Unit) -> Vec<(TileKernel, usize)> {
    let known = unit.wgmma && unit.tensor_maps && takes(product, ty);
    match known && plain_copies(product, ty, &SIZES[0]).is_some() {
        true => ranked(product, ty, product.k.div_ceil(STEP), unit),
        false => Vec::new(),
    }
}

/// All tiles with the parts of so many steps of K that are best for each, the fastest first.
pub(in super::super) fn ranked(
    product: &Product,
    ty: ElementType,
    steps: usize,
    unit: Unit,
) -> Vec<(TileKernel, usize)> {
    let mut found: Vec<(f64, TileKernel, usize)> = SIZES
        .iter()
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
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().map(|(_, tile, parts)| (tile, parts)).collect()
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

impl Size {
    fn tile(&self, ty: ElementType) -> TileKernel {
        // A type's kernels are a family of their own, as the driver translates a family at a time.
        let (family, name) = match ty {
            ElementType::BF16 => ("hopper_gemm_bf16", self.names[1]),
            _ => ("hopper_gemm_f16", self.names[0]),
        };
        // The stages with two barriers for each, what aligns them, the results or 4096 bytes of sums of each wave with a
        // barrier, and a word.
        let waves = self.rows / 16;
        let results = self.rows / waves * self.columns * 2 * if self.turns { 2 } else { 1 };
        let stages = self.stages * ((self.rows + self.columns) * STEP * 2 + 16);
        let lds = stages + 1024 + waves * (results.max(4096) + 8) + 16;
        TileKernel {
            kernel: KernelName { family, name },
            rows: self.rows,
            columns: self.columns,
            lds: lds as u32,
            // One wave more brings the operands; where the others fill the registers, a group of them gives up its own.
            items: if self.rows == 128 { 384 } else { 160 },
            adds_up: self.split.is_some(),
            resident: self.resident,
            stages: self.stages as u32,
        }
    }

    /// Microseconds of a product by this model: tiles one after the other on each processor, which slow each other down.
    fn time(&self, product: &Product, steps: usize, parts: usize, units: usize) -> f64 {
        let groups = product.tiles(self.rows, self.columns);
        let (all, room) = (groups * parts, units * self.resident);
        let busy = (all as f64 / room as f64).min(1.0);
        let between = |[one, many]: [f64; 2]| one + (many - one) * busy;
        let split = if parts > 1 { self.split.unwrap_or(f64::INFINITY) } else { 0.0 };
        let residual = if product.residual.is_some() { self.residual * busy } else { 0.0 };
        let function = if product.epilogue.is_linear() { 0.0 } else { self.function };
        let store = between(self.store) + residual + function;
        let tile = steps.div_ceil(parts) as f64 * between(self.step) + store + split;
        START + all.div_ceil(room) as f64 * tile
    }
}

/// How the engine takes the results, and brings the residual; `None` where it cannot, or where results are more than sums
/// with bias and residual within bounds.
fn row_copies(product: &Product, ty: ElementType) -> Option<(TensorMap, Option<TensorMap>)> {
    let Product { m, n, .. } = *product;
    let linear = product.epilogue.is_linear() && (product.bias.is_none() || product.epilogue.beta == 1.0);
    let map = |i: usize, matrix: Matrix| {
        let (matrices, step) = match product.batch[..] {
            [] => (1, 0),
            [axis] if axis.strides[i] == 0 => (1, 0),
            [axis] => (axis.size, axis.strides[i]),
            _ => return None,
        };
        let row = matrix.strides[0];
        // Of one matrix the last stride means nothing; it must be allowed all the same.
        let step = if step == 0 { row * m as i64 } else { step };
        (row > 0).then(|| TensorMap {
            bf16: ty == ElementType::BF16,
            sizes: vec![n as u64, m as u64, matrices as u64],
            strides: vec![row as u64 * 2, step as u64 * 2],
            part: Part::Box(vec![STEP as u32, ROWS_OF_WAVE, 1]),
        })
    };
    if !linear || !n.is_multiple_of(PACK) {
        return None;
    }
    let residual = match product.residual {
        Some(residual) => Some(map(4, residual)?),
        None => None,
    };
    Some((map(2, product.out)?, residual))
}

/// How the operands of a plain product are copied; `None` where a map cannot say it.
fn plain_copies(product: &Product, ty: ElementType, size: &Size) -> Option<Copies> {
    let axis = match product.batch[..] {
        [] => None,
        [axis] => Some(axis),
        _ => return None,
    };
    let count = product.batch_count();
    // Dimensions from the innermost on, how far the second one moves, and what is copied of both.
    let map = |i: usize, inner: usize, outer: usize, stride: i64, offset: usize, part: [usize; 2]| {
        let step = axis.map_or(0, |axis| axis.strides[i]);
        let pack = PACK as i64;
        let packs =
            stride > 0 && stride % pack == 0 && step >= 0 && step % pack == 0 && offset.is_multiple_of(PACK);
        let matrices = if step == 0 { 1 } else { count };
        // Of one matrix the last stride means nothing; it must be allowed all the same.
        let step = if step == 0 { stride * outer as i64 } else { step };
        packs.then(|| TensorMap {
            bf16: ty == ElementType::BF16,
            sizes: vec![inner as u64, outer as u64, matrices as u64],
            strides: vec![stride as u64 * 2, step as u64 * 2],
            part: Part::Box(vec![part[0] as u32, part[1] as u32, 1]),
        })
    };
    let Product { m, n, k, a, b, .. } = *product;
    let of_a = (a.strides[1] == 1).then(|| map(0, k, m, a.strides[0], a.offset, [STEP, size.rows]))??;
    let of_b = match b.strides {
        [1, column] => map(1, k, n, column, b.offset, [STEP, size.columns])?,
        [row, 1] => map(1, n, k, row, b.offset, [STEP, STEP])?,
        _ => return None,
    };
    let next = [0, 1].map(|i| u32::from(axis.is_some_and(|axis| axis.strides[i] != 0)));
    let steps = k.div_ceil(STEP);
    Some(Copies { maps: [of_a, of_b], next, steps, windows: Windows::default() })
}

/// Appends the launch of a tile of this module for operands that are aligned, and what `otherwise` appends for others.
pub(super) fn plan(
    product: &Product,
    plan: &mut PlanBuilder<'_>,
    ty: ElementType,
    (tile, parts): (TileKernel, usize),
    otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
) -> Result<(), OpError> {
    let size = SIZES.iter().find(|size| (size.rows, size.columns) == (tile.rows, tile.columns));
    match size.and_then(|size| plain_copies(product, ty, size)) {
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
    let operands: Vec<(Operand, u64)> = product
        .matrices()
        .into_iter()
        .flatten()
        .map(|matrix| (matrix.at, (matrix.offset * ty.size()) as u64))
        .collect();
    let at = |i: usize| offset_of!(HopperParams, maps) + i * TENSOR_MAP_BYTES;
    let rows = row_copies(product, ty);
    let residual_moves =
        rows.as_ref().and_then(|(_, residual)| residual.as_ref()).is_some_and(|map| map.sizes[2] > 1);
    let params = HopperParams {
        product: product.params(ty)?,
        steps: copies.steps as u32,
        part_steps: part_steps as u32,
        next: copies.next,
        windows: copies.windows,
        stages: tile.stages,
        by_rows: u32::from(rows.is_some()),
        next_residual: u32::from(residual_moves),
        ..HopperParams::zeroed()
    };
    let mut addresses: Vec<(usize, Operand)> = product
        .addresses()
        .into_iter()
        .map(|(field, operand)| (offset_of!(HopperParams, product) + field, operand))
        .collect();
    plan.by_alignment(
        TENSOR_MAP_ALIGNMENT as u32,
        &operands.clone(),
        |plan| {
            if parts > 1 {
                let sums = plan.scratch(parts * groups * tile.rows * tile.columns * size_of::<f32>());
                let product = offset_of!(HopperParams, product);
                addresses.push((product + offset_of!(GemmParams, partial), sums));
                addresses.push((product + offset_of!(GemmParams, arrived), Operand::Counters));
            }
            // Workgroups stay: no more than the processors have room for.
            let room = plan.provider.unit().compute_units * tile.resident;
            let grid = [(groups * parts).min(room), 1, 1];
            plan.launch_with(tile.kernel, grid, tile.items, tile.lds, &params, &addresses)?;
            let [of_a, of_b] = copies.maps;
            let (of_out, of_residual) = rows.map_or((None, None), |(out, residual)| (Some(out), residual));
            let matrices = [Some(product.a), Some(product.b), Some(product.out), product.residual];
            let maps = [Some(of_a), Some(of_b), of_out, of_residual];
            plan.maps(matrices.into_iter().zip(maps).enumerate().filter_map(|(i, (matrix, map))| {
                let matrix = matrix?;
                Some((at(i), matrix.at, (matrix.offset * ty.size()) as u64, map?))
            }));
            Ok(())
        },
        otherwise,
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::launch::Operand;
    use super::super::Epilogue;
    use super::super::product::Axis;
    use super::*;

    const H200: Unit =
        Unit { wave: 32, mma_sync: true, wgmma: true, tensor_maps: true, compute_units: 132, matrix: true };

    fn product(m: usize, n: usize, k: usize) -> Product {
        Product {
            m,
            n,
            k,
            a: Matrix::new(Operand::Input(0), k, 1),
            b: Matrix::new(Operand::Input(1), n, 1),
            out: Matrix::new(Operand::Output(0), n, 1),
            bias: None,
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        }
    }

    /// The best of what was measured on an H200 is the first choice, or is within some percent of it.
    #[test]
    fn the_model_chooses_what_was_measured_to_be_fast() {
        for (m, n, k, best) in [
            (8192, 8192, 8192, &["128x256"][..]),
            (4096, 4096, 4096, &["128x256", "128x128"]),
            (4096, 768, 768, &["128x192"]),
            (4096, 768, 3072, &["128x192"]),
            (4096, 3072, 768, &["128x128"]),
            (6304, 2304, 768, &["128x128"]),
            (1024, 1024, 1024, &["64x64", "64x128"]),
            (128, 768, 768, &["64x64"]),
            (128, 3072, 768, &["64x64"]),
            (128, 768, 3072, &["64x64"]),
            (197, 2304, 768, &["64x64", "64x128"]),
        ] {
            let (tile, parts) = tiles(&product(m, n, k), ElementType::F16, H200)[0];
            let name = format!("{}x{}", tile.rows, tile.columns);
            assert!(best.contains(&name.as_str()), "{m}x{n}x{k}: {name}");
            assert_eq!(parts > 1, (m, n, k) == (128, 768, 3072), "{m}x{n}x{k}: {parts} parts");
        }
    }

    #[test]
    fn what_packs_cannot_hold_is_left_to_others() {
        let ty = ElementType::F16;
        /// A change to a product, and whether it is still taken.
        type Case = (fn(&mut Product), bool);
        let cases: [Case; 11] = [
            (|_| {}, true),
            (|p| (p.n, p.b.strides) = (12, [12, 1]), false),
            (|p| (p.n, p.b.strides, p.out.strides) = (61, [1, 64], [61, 1]), true),
            (|p| p.out.strides = [61, 1], false),
            (|p| p.a.strides = [1, 64], false),
            (|p| p.b.strides = [1, 64], true),
            (|p| p.b.offset = 4, false),
            (|p| p.out.strides = [1, 64], false),
            (|p| p.bias = Some(Matrix::new(Operand::Input(2), 1, 0)), false),
            (|p| p.bias = Some(Matrix::new(Operand::Input(2), 0, 1)), true),
            (|p| p.batch = vec![Axis { size: 2, strides: [4096, 0, 4096, 0, 0] }], true),
        ];
        for (i, (change, taken)) in cases.into_iter().enumerate() {
            let mut product = product(64, 64, 64);
            change(&mut product);
            assert_eq!(!tiles(&product, ty, H200).is_empty(), taken, "case {i}");
        }
        assert!(tiles(&product(64, 64, 64), ElementType::F32, H200).is_empty());
        assert!(tiles(&product(64, 64, 64), ty, Unit { tensor_maps: false, ..H200 }).is_empty());
    }

    #[test]
    fn maps_say_how_operands_lie() {
        let mut product = product(100, 72, 40);
        product.batch = vec![Axis { size: 3, strides: [4000, 0, 7200, 0, 0] }];
        let copies = plain_copies(&product, ElementType::BF16, &SIZES[4]).unwrap();
        let [a, b] = &copies.maps;
        assert_eq!((&a.sizes[..], &a.strides[..]), (&[40, 100, 3][..], &[80, 8000][..]));
        assert_eq!((&b.sizes[..], &b.strides[..]), (&[72, 40, 1][..], &[144, 5760][..]));
        assert_eq!((&a.part, &b.part), (&Part::Box(vec![64, 64, 1]), &Part::Box(vec![64, 64, 1])));
        assert_eq!((copies.next, copies.steps, a.bf16), ([1, 0], 1, true));
    }
}
