//! MatMulNBits of few rows of f16 on Hopper: `kernels/include/rukh/weight_rows_hopper.h`.

use std::ffi::CStr;
use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable};

use crate::hip::{Numbers, Part, TENSOR_MAP_BYTES, TensorMap};
use crate::ops::OpError;
use crate::ops::activation::Activation;
use crate::ops::weight_only::MatMulNBits;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::{Fused, Product};
use super::super::launch::{KernelName, Operand};
use super::super::unit::Unit;
use super::{BIAS, ORDER, SCALES, WEIGHT, X, ZEROS};

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct WeightRowsParams {
    maps: [[u8; TENSOR_MAP_BYTES]; 2],
    a: u64,
    skip: u64,
    sum: u64,
    scale: u64,
    out: u64,
    count: u32,
    n: u32,
    k: u32,
    tiles: u32,
    origin: u32,
    second: u32,
    step: u32,
    gated: u32,
    part: u32,
    padded: u32,
    slots: u32,
    epsilon: f32,
    waits_first: u32,
    unused: [u32; 9],
}

const _: () = assert!(size_of::<WeightRowsParams>() == 384);

/// Rows that the kernels take; fewer ones go faster by others.
const LEAST_ROWS: usize = 3;
const MOST_ROWS: usize = 16;
/// Lines of a tile; numbers of a block, of a box's lines and of a slot's.
const TILE: usize = 32;
const BLOCK: usize = 32;
const BOX: usize = 512;
const SLOT_NUMBERS: usize = 1024;
/// Bytes of a slot: lines and their scales.
const SLOT: usize = TILE * (SLOT_NUMBERS / 2 + SLOT_NUMBERS / BLOCK * 2);
/// More slots only delay the rows, which come after what they bring.
const MOST_SLOTS: usize = 4;
const LEAST_SLOTS: usize = 3;
const _: () = assert!(MOST_SLOTS <= 8);
const WORKGROUP_MEMORY: usize = 227 << 10;
/// Bytes of barriers and of units of rows.
const SMALL: usize = 256;
/// Bytes of the barrier of a tile's sums that come from the cluster.
const BARRIER: usize = 16;
/// Waves that multiply.
const WAVES: usize = 8;
/// Workgroups of a cluster; the kernels of 8 and of 16 rows.
const CLUSTERS: [(usize, [&CStr; 2]); 3] = [
    (1, [c"weight_rows_8_cluster1", c"weight_rows_16_cluster1"]),
    (2, [c"weight_rows_8_cluster2", c"weight_rows_16_cluster2"]),
    (4, [c"weight_rows_8_cluster4", c"weight_rows_16_cluster4"]),
];

/// How a product's work is shared among workgroups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sharing {
    /// The place in `CLUSTERS`, how many of them there are, and slots of a ring.
    cluster: usize,
    clusters: usize,
    slots: usize,
    /// Groups of eight rows.
    groups: usize,
    /// Numbers of a line that a workgroup has.
    part: usize,
}

/// `None` for what the kernels do not take, or others take as fast.
pub(super) fn sharing(
    op: &MatMulNBits,
    ty: ElementType,
    m: usize,
    given: impl Fn(usize) -> bool,
    unit: Unit,
) -> Option<Sharing> {
    let MatMulNBits { n, k, bits, block, .. } = *op;
    let fits = unit.wgmma
        && unit.tensor_maps
        && (ty, bits, block) == (ElementType::F16, 4, BLOCK)
        && (LEAST_ROWS..=MOST_ROWS).contains(&m)
        && ![ZEROS, ORDER, BIAS].into_iter().any(given)
        && n > 0
        && k > 0
        && n.is_multiple_of(TILE)
        && u32::try_from(n.max(k)).is_ok();
    if !fits {
        return None;
    }
    let groups = m.div_ceil(8);
    let by = |cluster: usize| {
        let (parts, _) = CLUSTERS[cluster];
        let part = k / parts;
        let clusters = unit.clusters(parts).min(n / TILE);
        if !k.is_multiple_of(parts * BOX) || clusters == 0 {
            return None;
        }
        let own = Sharing { cluster, clusters, slots: 0, groups, part };
        let slots = (WORKGROUP_MEMORY.saturating_sub(own.memory(n)) / SLOT).min(MOST_SLOTS);
        (slots >= LEAST_SLOTS).then_some(Sharing { slots, ..own })
    };
    (0..CLUSTERS.len()).filter_map(by).min_by_key(|own| own.time(n))
}

impl Sharing {
    /// Tiles of a cluster at most.
    fn rounds(&self, n: usize) -> usize {
        (n / TILE).div_ceil(self.clusters)
    }

    /// Nanoseconds, by a model fitted to what an H200 took: those for each slot, each tile, and for 1024 numbers of the rows.
    fn time(&self, n: usize) -> usize {
        self.rounds(n) * (self.part.div_ceil(SLOT_NUMBERS) * 750 + 100) + self.part * 1200 / 1024
    }

    /// Bytes of workgroup memory: up to 1024 to align the ring, barriers, squares of elements, the sums of waves, rows with the means
    /// of their blocks, and the parts of sums that the cluster gives to this workgroup.
    fn memory(&self, n: usize) -> usize {
        let Sharing { slots, groups, part, .. } = *self;
        let (parts, _) = CLUSTERS[self.cluster];
        let own = if parts > 1 { self.rounds(n).div_ceil(parts) } else { 0 };
        let small = 1024 + SMALL + (WAVES + parts) * groups * 32;
        let sums = (WAVES + own * parts) * 2 * groups * 512 + own * BARRIER;
        small + slots * SLOT + sums + groups * (part * 16 + part.next_multiple_of(SLOT_NUMBERS))
    }

    /// Appends the launch, where all operands lie at multiples of 16 bytes, and what `otherwise` appends elsewhere.
    pub(super) fn plan(
        &self,
        plan: &mut PlanBuilder<'_>,
        product: &Product,
        fused: &Fused,
        otherwise: impl FnOnce(&mut PlanBuilder<'_>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let operands = [Operand::Input(X), Operand::Input(WEIGHT), Operand::Input(SCALES), product.out.at];
        let norm = fused.norm.as_ref();
        let of_norm = norm.map_or([None; 3], |norm| [norm.skip, norm.sum, Some(norm.scale)]);
        let aligned: Vec<(Operand, u64)> =
            operands.into_iter().chain(of_norm.into_iter().flatten()).map(|operand| (operand, 0)).collect();
        plan.by_alignment(16, &aligned, |plan| self.launch(plan, product, fused), otherwise)
    }

    fn launch(&self, plan: &mut PlanBuilder<'_>, product: &Product, fused: &Fused) -> Result<(), OpError> {
        let Product { m, n, k, .. } = *product;
        let (parts, names) = CLUSTERS[self.cluster];
        let gated = fused.gate.is_some();
        let [origin, second] = fused.gate.unwrap_or([0, TILE / 2]);
        let step = if gated { TILE / 2 } else { TILE };
        let constant = [WEIGHT, SCALES].into_iter().all(|i| plan.is_constant(Operand::Input(i)));
        let padded = self.part.next_multiple_of(SLOT_NUMBERS);
        let [count, tiles, origin, second, step, part, padded] =
            [m, n / TILE, origin, second, step, self.part, padded].map(|number| number as u32);
        let params = WeightRowsParams {
            count,
            n: n as u32,
            k: k as u32,
            tiles,
            origin,
            second,
            step,
            gated: gated.into(),
            part,
            padded,
            slots: self.slots as u32,
            waits_first: (!constant).into(),
            epsilon: fused.norm.as_ref().map_or(0.0, |norm| norm.epsilon),
            ..WeightRowsParams::zeroed()
        };
        let mut addresses = vec![
            (offset_of!(WeightRowsParams, a), Operand::Input(X)),
            (offset_of!(WeightRowsParams, out), product.out.at),
        ];
        if let Some(norm) = &fused.norm {
            let of_norm = [
                (offset_of!(WeightRowsParams, skip), norm.skip),
                (offset_of!(WeightRowsParams, sum), norm.sum),
                (offset_of!(WeightRowsParams, scale), Some(norm.scale)),
            ];
            addresses.extend(of_norm.into_iter().filter_map(|(at, operand)| Some((at, operand?))));
        }
        let kernel = KernelName { family: "hopper_weight_rows", name: names[self.groups - 1] };
        let items = (WAVES + 1 + self.groups) * 32;
        let memory = self.memory(n) as u32;
        plan.launch_with(kernel, [self.clusters * parts, 1, 1], items as u32, memory, &params, &addresses)?;
        let maps = [WEIGHT, SCALES].into_iter().zip(maps_of(n, k)).enumerate();
        plan.maps(maps.map(|(i, (of, map))| (i * TENSOR_MAP_BYTES, Operand::Input(of), 0, map)));
        Ok(())
    }
}

/// Whether the kernels know the function between a product and what it multiplies, or there is none.
pub(super) fn takes(fused: &Fused, activation: Activation) -> bool {
    matches!((fused.gate, activation), (None, Activation::Identity) | (Some(_), Activation::Silu))
}

/// How the engine copies half of a tile's lines, and their scales. Four numbers lie in one of half precision.
fn maps_of(n: usize, k: usize) -> [TensorMap; 2] {
    let lines = (TILE / 2) as u32;
    let scales = (k / BLOCK) as u64;
    let [n, k] = [n, k].map(|size| size as u64);
    let map = |swizzled: bool, sizes: [u64; 3], strides: [u64; 2], part: [u32; 3]| TensorMap {
        numbers: Numbers::F16,
        swizzled,
        sizes: sizes.to_vec(),
        strides: strides.to_vec(),
        part: Part::Box(part.to_vec()),
    };
    [
        map(true, [64, n, k / 256], [k / 2, 128], [64, lines, (BOX / 256) as u32]),
        map(false, [scales, n, 1], [2 * scales, 2 * scales * n], [(SLOT_NUMBERS / BLOCK) as u32, lines, 1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shared_where_that_is_faster() {
        for (m, n, k, expected) in [
            (16, 6144, 4096, Some((4, 30, 4))),
            (16, 4096, 4096, Some((4, 30, 4))),
            (16, 28672, 4096, Some((2, 66, 4))),
            (5, 4096, 14336, Some((2, 66, 4))),
            (16, 4096, 14336, Some((4, 30, 4))),
            (16, 128256, 4096, Some((1, 132, 4))),
            (3, 128256, 2048, Some((1, 132, 4))),
            (2, 4096, 4096, None),
            (17, 4096, 4096, None),
            (16, 4112, 4096, None),
            (16, 16, 512, None),
            (16, 64, 512, Some((1, 2, 4))),
            // No workgroup has room for its part of the rows.
            (16, 4096, 32768, None),
        ] {
            let op = MatMulNBits { n, k, block: 32, bits: 4, left_bits: 16 };
            let own = sharing(&op, ElementType::F16, m, |_| false, Unit::HOPPER);
            let found = own.map(|own| (CLUSTERS[own.cluster].0, own.clusters, own.slots));
            assert_eq!(found, expected, "{m} rows, {n} lines of {k}");
            assert!(own.is_none_or(|own| own.memory(n) <= WORKGROUP_MEMORY));
        }
    }

    #[test]
    fn other_weights_and_devices_have_other_kernels() {
        let op = MatMulNBits { n: 4096, k: 4096, block: 32, bits: 4, left_bits: 16 };
        let has = |op: &MatMulNBits, ty, given: Option<usize>, unit| {
            sharing(op, ty, 8, |i| Some(i) == given, unit).is_some()
        };
        assert!(has(&op, ElementType::F16, None, Unit::HOPPER));
        assert!(!has(&op, ElementType::F16, None, Unit::AMPERE));
        assert!(!has(&op, ElementType::BF16, None, Unit::HOPPER));
        for optional in [ZEROS, ORDER, BIAS] {
            assert!(!has(&op, ElementType::F16, Some(optional), Unit::HOPPER));
        }
        for other in [MatMulNBits { block: 64, ..op }, MatMulNBits { bits: 8, ..op }] {
            assert!(!has(&other, ElementType::F16, None, Unit::HOPPER));
        }
    }
}
