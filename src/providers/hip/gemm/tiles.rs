//! Which kernel multiplies: by type, shape and device.

use std::ffi::CStr;

use crate::tensor::ElementType;

use super::super::launch::{GROUP, KernelName};
use super::super::unit::Unit;

/// A kernel with the part of the result that one workgroup computes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct TileKernel {
    pub(in super::super) kernel: KernelName,
    pub(in super::super) rows: usize,
    pub(in super::super) columns: usize,
    /// Bytes of dynamic workgroup memory.
    pub(in super::super) lds: u32,
    /// Work items of a workgroup.
    pub(in super::super) items: u32,
    /// Whether the kernel itself adds the parts of a split K.
    pub(in super::super) adds_up: bool,
    /// Workgroups that a processor has room for, of a kernel of `hopper`; else 0.
    pub(in super::super) resident: usize,
    /// Workgroups that share a tile, where all of them run at the same time (of a kernel of `hopper`).
    pub(in super::super) at_once: Option<usize>,
    /// Steps of K in workgroup memory, where the launch says them.
    pub(in super::super) stages: u32,
}

impl TileKernel {
    /// A kernel that adds the parts of a split K, with the usual work items and no dynamic memory.
    pub(in super::super) fn new(kernel: KernelName, [rows, columns]: [usize; 2]) -> TileKernel {
        TileKernel {
            kernel,
            rows,
            columns,
            lds: 0,
            items: GROUP,
            adds_up: true,
            resident: 0,
            at_once: None,
            stages: 0,
        }
    }
}

/// What a choice depends on.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Shape {
    pub(in super::super) m: usize,
    pub(in super::super) n: usize,
    pub(in super::super) batch: usize,
    /// Whether B's rows, and B's columns, are contiguous.
    pub(in super::super) b_rows: bool,
    pub(in super::super) b_columns: bool,
}

/// Rows that the kernels for few rows take.
pub(super) const FEW: usize = 4;

/// Bytes of four stages of 32 half-precision columns of both operands.
pub(in super::super) fn stages(rows: usize, columns: usize) -> u32 {
    ((rows + columns) * 32 * 2 * 4) as u32
}

/// The kernels of a type: large, small, few rows with contiguous rows of B, with contiguous columns, and
/// the one that adds the parts of a split K.
struct Names {
    family: &'static str,
    wide: Option<&'static CStr>,
    large: Option<&'static CStr>,
    small: &'static CStr,
    few: Option<[&'static CStr; 2]>,
    parts: Option<&'static CStr>,
}

fn names(ty: ElementType) -> Option<Names> {
    let names = |family, small| Names { family, wide: None, large: None, small, few: None, parts: None };
    Some(match ty {
        ElementType::F32 => Names {
            large: Some(c"gemm_f32_large"),
            few: Some([c"gemm_f32_few", c"gemm_f32_few_by_k"]),
            parts: Some(c"gemm_f32_parts"),
            ..names("gemm", c"gemm_f32_small")
        },
        ElementType::F16 => Names {
            wide: Some(c"gemm_f16_wide"),
            large: Some(c"gemm_f16_large"),
            few: Some([c"gemm_f16_few", c"gemm_f16_few_by_k"]),
            parts: Some(c"gemm_f16_parts"),
            ..names("gemm_half", c"gemm_f16_small")
        },
        ElementType::BF16 => Names {
            wide: Some(c"gemm_bf16_wide"),
            large: Some(c"gemm_bf16_large"),
            few: Some([c"gemm_bf16_few", c"gemm_bf16_few_by_k"]),
            parts: Some(c"gemm_bf16_parts"),
            ..names("gemm_half", c"gemm_bf16_small")
        },
        ElementType::F64 => Names { parts: Some(c"gemm_f64_parts"), ..names("gemm", c"gemm_f64_small") },
        ElementType::I32 | ElementType::U32 => names("gemm", c"gemm_i32_small"),
        ElementType::I64 | ElementType::U64 => names("gemm", c"gemm_i64_small"),
        _ => return None,
    })
}

/// Whether products of this type have kernels.
pub(in super::super) fn supports(ty: ElementType) -> bool {
    names(ty).is_some()
}

/// The kernel that adds the parts of a split K and finishes.
pub(super) fn parts_kernel(ty: ElementType) -> Option<KernelName> {
    let names = names(ty)?;
    Some(KernelName { family: names.family, name: names.parts? })
}

/// Tiles by decreasing size, of which the first that keeps the device busy is taken.
pub(in super::super) fn pick(
    unit: Unit,
    half: bool,
    m: usize,
    n: usize,
    batch: usize,
    have: [bool; 2],
) -> (usize, usize, u32) {
    let groups = |rows: usize, columns: usize| m.div_ceil(rows) * n.div_ceil(columns) * batch;
    let lds = |rows, columns| if half && unit.mma_sync { stages(rows, columns) } else { 0 };
    // A workgroup of the widest form fills a processor by itself.
    if have[0] && half && unit.mma_sync && groups(128, 256) >= unit.compute_units {
        return (128, 256, lds(128, 256));
    }
    // Tiles that would be mostly empty cost more than small ones that read their operands twice.
    let fits = m > 64 && n > 64;
    if have[1] && fits && groups(128, 128) >= unit.compute_units {
        return (128, 128, lds(128, 128));
    }
    (64, 64, lds(64, 64))
}

/// The kernel for a product of this type.
pub(super) fn choose(ty: ElementType, shape: Shape, unit: Unit) -> Option<TileKernel> {
    let names = names(ty)?;
    if let Some(few) = few(&names, ty, shape, unit) {
        return Some(few);
    }
    let have = [names.wide.is_some(), names.large.is_some()];
    let (rows, columns, lds) = pick(unit, ty.size() == 2, shape.m, shape.n, shape.batch, have);
    let name = match (rows, columns) {
        (128, 256) => names.wide,
        (128, 128) => names.large,
        _ => Some(names.small),
    };
    let kernel = KernelName { family: names.family, name: name? };
    Some(TileKernel { lds, ..TileKernel::new(kernel, [rows, columns]) })
}

/// Every kernel that can compute a product of this type, whatever its speed.
pub(super) fn all(ty: ElementType, shape: Shape, unit: Unit) -> Vec<TileKernel> {
    let Some(names) = names(ty) else { return Vec::new() };
    let staged = ty.size() == 2 && unit.mma_sync;
    let sizes =
        [(names.wide.filter(|_| staged), 128, 256), (names.large, 128, 128), (Some(names.small), 64, 64)];
    let tiles = sizes.into_iter().filter_map(|(name, rows, columns)| {
        let lds = if staged { stages(rows, columns) } else { 0 };
        let kernel = KernelName { family: names.family, name: name? };
        Some(TileKernel { lds, ..TileKernel::new(kernel, [rows, columns]) })
    });
    few(&names, ty, shape, unit).into_iter().chain(tiles).collect()
}

/// The kernel for few rows, where it takes the shape.
fn few(names: &Names, ty: ElementType, shape: Shape, unit: Unit) -> Option<TileKernel> {
    let [by_rows, by_columns] = names.few.filter(|_| shape.m <= FEW)?;
    let tile = |name, columns| {
        let kernel = KernelName { family: names.family, name };
        TileKernel { adds_up: false, ..TileKernel::new(kernel, [FEW, columns]) }
    };
    if shape.b_rows {
        return Some(tile(by_rows, unit.wave * (16 / ty.size())));
    }
    shape.b_columns.then(|| tile(by_columns, 256 / unit.wave))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_choose_tiles() {
        let h200 = Unit::HOPPER;
        let later = Unit { wgmma: false, ..h200 };
        let rdna = Unit {
            wave: 32,
            mma_sync: false,
            wgmma: false,
            wide_rows: false,
            tensor_maps: false,
            compute_units: 96,
            matrix: true,
        };
        let shape = |m, n| Shape { m, n, batch: 1, b_rows: true, b_columns: false };
        for (unit, ty, m, n, name, lds) in [
            (later, ElementType::F16, 4096, 4096, c"gemm_f16_wide", 98304),
            (h200, ElementType::F16, 1024, 2048, c"gemm_f16_small", 32768),
            (later, ElementType::BF16, 2048, 2048, c"gemm_bf16_large", 65536),
            (h200, ElementType::F16, 1, 4096, c"gemm_f16_few", 0),
            (rdna, ElementType::F16, 4096, 4096, c"gemm_f16_large", 0),
            (rdna, ElementType::F32, 4096, 4096, c"gemm_f32_large", 0),
            (rdna, ElementType::F32, 100, 100, c"gemm_f32_small", 0),
            (rdna, ElementType::F64, 4096, 4096, c"gemm_f64_small", 0),
        ] {
            let tile = choose(ty, shape(m, n), unit).unwrap();
            assert_eq!((tile.kernel.name, tile.lds), (name, lds), "{ty:?} {m}x{n}");
        }
    }
}
