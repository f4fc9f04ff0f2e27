//! Products and convolutions of bytes on matrix cores: each operand is first brought into lines along K, as signed bytes,
//! with the sum of each line (`kernels/qlinear_mma.hip`).

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;
use crate::tensor::ElementType;

use super::super::PlanBuilder;
use super::super::gemm::{Axis, Epilogue, GemmParams, Matrix, Product, pick};
use super::super::launch::{AddressedParams, COUNTERS, GROUP, KernelName, Operand};
use super::super::unit::Unit;
use super::params::{IMAGE_BYTES, Side, Tail};

/// Lines that a workgroup packs, and what lines are filled up to, as in the kernels.
const LINES: usize = 64;
const STEP: usize = 64;

/// Bytes of a line that a workgroup packs: with a sum of them, as each result's workgroup adds those up, and without.
const PART: usize = 256;
const PART_WITHOUT_SUM: usize = 64;

/// Pairs of K of a part at least, where K is divided among workgroups.
const LEAST_OF_PART: usize = 256;

/// The element that parameters of a product are written for.
const ELEMENT: ElementType = ElementType::U8;

/// Products of fewer multiply-adds take less time than packing their operands.
const LEAST: usize = 1 << 21;

/// Bytes of packed operands at most.
const MOST_BYTES: usize = 1 << 30;

/// What `PackParams` of the kernels has behind the product and the image.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PackTail {
    to: u64,
    sums: u64,
    zero: u64,
    k_padded: u32,
    part: u32,
    is_signed: u32,
    is_image: u32,
}

const _: () = assert!(size_of::<GemmParams>() + IMAGE_BYTES + size_of::<PackTail>() == 584);

/// What `PackedParams` has behind those of other products of bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct PackedTail {
    a_sums: u64,
    b_sums: u64,
    parts: [u32; 2],
    k: u32,
    unused: u32,
}

const _: () = assert!(size_of::<PackedTail>() == 32);

/// An operand once it is packed: its lines, their sums in so many parts, and bytes between matrices along each axis of the
/// batch.
struct Packed {
    lines: Operand,
    sums: Option<Operand>,
    parts: usize,
    steps: Vec<usize>,
}

/// Whether matrix cores multiply these.
pub(super) fn takes(product: &Product, unit: Unit) -> bool {
    let Product { m, n, k, .. } = *product;
    let bytes = k.next_multiple_of(STEP).saturating_mul(matrices(product, 0) * m + matrices(product, 1) * n);
    let multiplications = m.saturating_mul(n).saturating_mul(k).saturating_mul(product.batch_count());
    unit.matrix && k > 0 && multiplications >= LEAST && bytes <= MOST_BYTES
}

/// Appends the launches. `image`: of the right operand where it is the windows of an image.
pub(super) fn plan(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    image: Option<&AddressedParams>,
    tail: &Tail,
) -> Result<(), OpError> {
    let k = product.k.next_multiple_of(STEP);
    // A line's sum counts as often as the other operand's zero point.
    let sums = [1, 0].map(|other: usize| !tail.sides[other].is_centered);
    let a = pack(plan, product, 0, None, &tail.sides[0], sums[0])?;
    let b = pack(plan, product, 1, image, &tail.sides[1], sums[1])?;
    // The tiles count in pairs of bytes.
    let line = (k / 2) as i64;
    let batch = product.batch.iter().enumerate().map(|(i, axis)| {
        let [_, _, rest @ ..] = axis.strides;
        let [out, bias, residual] = rest;
        let pairs = |packed: &Packed| (packed.steps[i] / 2) as i64;
        Axis { size: axis.size, strides: [pairs(&a), pairs(&b), out, bias, residual] }
    });
    let packed = Product {
        k: k / 2,
        a: Matrix { strides: [line, 1], ..Matrix::new(a.lines, 0, 0) },
        b: Matrix { strides: [1, line], ..Matrix::new(b.lines, 0, 0) },
        batch: batch.collect(),
        ..product.clone()
    };
    let unit = plan.provider.unit();
    let (rows, columns, lds) = pick(unit, true, product.m, product.n, product.batch_count(), [false, true]);
    let mut bytes = vec![0; IMAGE_BYTES];
    let (more, at) = tail.params();
    let mut addresses: Vec<_> = at.into_iter().map(|(at, operand)| (bytes.len() + at, operand)).collect();
    bytes.extend_from_slice(&more);
    let sums = [(offset_of!(PackedTail, a_sums), a.sums), (offset_of!(PackedTail, b_sums), b.sums)];
    addresses.extend(sums.into_iter().filter_map(|(at, operand)| Some((bytes.len() + at, operand?))));
    let parts_of_sums = [&a, &b].map(|packed| packed.parts as u32);
    let own = PackedTail { parts: parts_of_sums, k: product.k as u32, ..PackedTail::zeroed() };
    bytes.extend_from_slice(bytes_of(&own));
    let groups = packed.tiles(rows, columns);
    // Large tiles fill the device as they are.
    let (k_part, parts) = if rows == 128 { (packed.k, 1) } else { parts(packed.k, groups, unit) };
    let name = match rows {
        128 => c"bytes_large",
        _ if parts > 1 => c"bytes_parts",
        _ => c"bytes_small",
    };
    let kernel = KernelName { family: "qlinear_mma", name };
    let mut params = packed.params(ELEMENT)?;
    (params.k_part, params.parts) = (k_part as u32, parts as u32);
    let mut all_addresses = packed.addresses();
    if parts > 1 {
        let partial = plan.scratch(parts * groups * rows * columns * size_of::<i32>());
        all_addresses.push((offset_of!(GemmParams, partial), partial));
        all_addresses.push((offset_of!(GemmParams, arrived), Operand::Counters));
    }
    let mut all = bytes_of(&params).to_vec();
    all_addresses.extend(addresses.into_iter().map(|(at, operand)| (all.len() + at, operand)));
    all.extend_from_slice(&bytes);
    plan.launch_bytes(kernel, [groups * parts, 1, 1], GROUP, lds, &all, &all_addresses)
}

/// Pairs of K of a part, and parts: as many as fill the device, of which each is worth its sums' way through memory.
fn parts(k: usize, groups: usize, unit: Unit) -> (usize, usize) {
    let most = if groups <= COUNTERS { k / LEAST_OF_PART } else { 1 };
    let wanted = unit.compute_units.div_ceil(groups).min(most).max(1);
    let part = k.div_ceil(wanted).next_multiple_of(STEP / 2);
    (part, k.div_ceil(part))
}

/// Different matrices of an operand.
fn matrices(product: &Product, operand: usize) -> usize {
    product.batch.iter().filter(|axis| axis.strides[operand] != 0).map(|axis| axis.size).product()
}

/// Appends the launch that packs an operand: each of its matrices once, with sums where they are needed.
fn pack(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    operand: usize,
    image: Option<&AddressedParams>,
    side: &Side,
    with_sums: bool,
) -> Result<Packed, OpError> {
    let (count, k) = (matrices(product, operand), product.k.next_multiple_of(STEP));
    let (lines, matrix) = match operand {
        0 => (product.m, Matrix { strides: [product.a.strides[1], product.a.strides[0]], ..product.a }),
        _ => (product.n, product.b),
    };
    let moved: Vec<Axis> = product
        .batch
        .iter()
        .filter(|axis| axis.strides[operand] != 0)
        .map(|axis| Axis { size: axis.size, strides: [0, axis.strides[operand], 0, 0, 0] })
        .collect();
    let part = if with_sums { PART } else { PART_WITHOUT_SUM };
    let parts = k.div_ceil(part);
    let to = plan.scratch(count * lines * k);
    let sums = with_sums.then(|| plan.scratch(count * parts * lines * size_of::<i32>()));
    let source = Product {
        m: 1,
        n: lines,
        k: product.k,
        a: matrix,
        b: matrix,
        out: matrix,
        bias: None,
        residual: None,
        batch: moved,
        epilogue: Epilogue::default(),
    };
    let (mut bytes, mut addresses) = image.cloned().unwrap_or_else(|| (vec![0; IMAGE_BYTES], Vec::new()));
    let own = PackTail {
        k_padded: k as u32,
        part: part as u32,
        is_signed: side.is_signed.into(),
        is_image: image.is_some().into(),
        ..PackTail::zeroed()
    };
    let zero = image.and(side.zero).map(|(input, _)| Operand::Input(input));
    let fields = [
        (offset_of!(PackTail, to), Some(to)),
        (offset_of!(PackTail, sums), sums),
        (offset_of!(PackTail, zero), zero),
    ];
    addresses.extend(fields.into_iter().filter_map(|(at, operand)| Some((bytes.len() + at, operand?))));
    bytes.extend_from_slice(bytes_of(&own));
    let mut all = bytes_of(&source.params(ELEMENT)?).to_vec();
    addresses.iter_mut().for_each(|(at, _)| *at += all.len());
    addresses.push((offset_of!(GemmParams, b), matrix.at));
    all.extend_from_slice(&bytes);
    let kernel = KernelName { family: "qlinear_mma", name: c"bytes_pack" };
    plan.launch_bytes(kernel, [lines.div_ceil(LINES) * count, parts, 1], GROUP, 0, &all, &addresses)?;
    // Matrices follow each other in the order of the axes along which the operand moves.
    let mut step = lines * k;
    let mut steps = vec![0; product.batch.len()];
    for (to, axis) in steps.iter_mut().zip(&product.batch).rev() {
        if axis.strides[operand] != 0 {
            *to = step;
            step *= axis.size;
        }
    }
    Ok(Packed { lines: to, sums, parts: if with_sums { parts } else { 0 }, steps })
}
