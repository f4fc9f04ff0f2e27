//! Products and convolutions of bytes on matrix cores, of operands that were packed first (`kernels/qlinear_mma.hip`).

use std::mem::{offset_of, size_of};

use bytemuck::{Pod, Zeroable, bytes_of};

use crate::ops::OpError;
use crate::ops::window::Geometry;

use super::super::PlanBuilder;
use super::super::conv::{image_params, nhwc_params};
use super::super::gemm::{Axis, GemmParams, Matrix, Product, pick};
use super::super::launch::{AddressedParams, COUNTERS, GROUP, KernelName, Operand};
use super::super::unit::Unit;
use super::constant::{Constant, Layout};
use super::hopper;
use super::pack::{Packed, Unpacked};
use super::params::{ELEMENT, IMAGE_BYTES, Tail};

/// What lines of products are filled up to, and pixels of images.
const STEP: usize = 64;
const PACK: usize = 16;

/// Channels from which windows are read from packed pixels.
pub(super) const CHANNELS: usize = 8;

/// Pairs of K of a part at least, where K is divided among workgroups.
const LEAST_OF_PART: usize = 256;

/// Products of fewer multiply-adds take less time than packing their operands.
const LEAST: usize = 1 << 21;

/// Bytes of packed operands, and of a line, at most.
const MOST_BYTES: usize = 512 << 20;
const LONGEST: usize = 1 << 21;

/// What `PackedParams` has behind the parameters of other products of bytes.
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

/// Whether there are matrix cores, and multiplications enough for them.
pub(super) fn is_large(product: &Product, unit: Unit) -> bool {
    let Product { m, n, k, .. } = *product;
    unit.matrix && m.saturating_mul(n).saturating_mul(k).saturating_mul(product.batch_count()) >= LEAST
}

/// Whether matrix cores multiply these, windows of an image written as lines.
pub(super) fn takes(product: &Product, unit: Unit) -> bool {
    let Product { m, n, k, .. } = *product;
    let matrices = |operand: usize| -> usize {
        product.batch.iter().filter(|axis| axis.strides[operand] != 0).map(|axis| axis.size).product()
    };
    let bytes = k.next_multiple_of(STEP).saturating_mul(matrices(0) * m + matrices(1) * n);
    is_large(product, unit) && k <= LONGEST && bytes <= MOST_BYTES
}

/// Appends the launches. `image`: of the right operand where it is the windows of an image; `constant`: the right operand
/// where it is one matrix that stays.
pub(super) fn plan(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    image: Option<&AddressedParams>,
    constant: Option<&Constant>,
    tail: &Tail,
) -> Result<(), OpError> {
    let (k, line) = (product.k, product.k.next_multiple_of(STEP));
    let [a, b] = [0, 1].map(|operand| Unpacked {
        lines: if operand == 0 { product.m } else { product.n },
        k,
        matrix: if operand == 0 { product.a.transposed() } else { product.b },
        image: image.filter(|_| operand == 1),
        axes: axes(product, operand),
        weight: None,
        line,
        with_sums: needs_sums(tail, operand),
    });
    let constant = constant.filter(|_| product.batch.iter().all(|axis| axis.strides[1] == 0));
    let as_they_are = [a.as_it_is(&tail.sides[0]), b.as_it_is(&tail.sides[1]).filter(|_| constant.is_none())];
    let given: Vec<_> = as_they_are.iter().flatten().map(|packed| (packed.lines, 0)).collect();
    let go = |plan: &mut PlanBuilder<'_>, as_they_are: [Option<Packed>; 2]| {
        let [left, right] = as_they_are;
        let left = left.map_or_else(|| a.pack(plan, &tail.sides[0]), Ok)?;
        let right = match (right, constant) {
            (Some(right), _) => right,
            (None, None) => b.pack(plan, &tail.sides[1])?,
            (None, Some(constant)) => {
                let strides = [product.b.strides[1] as usize, product.b.strides[0] as usize, 0];
                let is_signed = tail.sides[1].is_signed;
                let layout =
                    Layout { lines: product.n, channels: k, taps: 1, strides, pixel: line, is_signed };
                constant.pack(plan, layout)?
            }
        };
        multiply(plan, product, tail, &[left, right], line, None)
    };
    plan.by_alignment(PACK as u32, &given, |plan| go(plan, as_they_are), |plan| go(plan, [None, None]))
}

/// Whether windows of this convolution can be read from packed pixels: of one group of channels that are not few, beside a
/// weight whose zero points are 0, as nobody knows the sums of windows.
pub(super) fn takes_windows(product: &Product, g: &Geometry, channels: usize, tail: &Tail) -> bool {
    let one_group = product.batch.iter().all(|axis| axis.size == 1 || axis.strides[0] == 0);
    let (pixel, taps) = (channels.next_multiple_of(PACK), g.kernel.iter().product::<usize>());
    let windows = windows(g);
    let pixels = windows.input.iter().product::<usize>().saturating_mul(product.batch_count());
    let bytes = pixel.saturating_mul(pixels.saturating_add(taps.saturating_mul(product.m)));
    one_group
        && channels >= CHANNELS
        && tail.sides[0].is_centered
        && taps.saturating_mul(pixel) <= LONGEST
        && bytes <= MOST_BYTES
        && nhwc_params(&windows, pixel / 2, pixel / 2).is_ok()
}

/// The windows of an image that has what pads it around.
fn windows(g: &Geometry) -> Geometry {
    let pads = g.pads_begin.iter().zip(&g.pads_end).map(|(begin, end)| begin + end);
    let none = vec![0; g.input.len()];
    let input = g.input.iter().zip(pads).map(|(n, pads)| n + pads).collect();
    Geometry { input, pads_begin: none.clone(), pads_end: none, ..g.clone() }
}

/// Appends the launches of a convolution whose windows are read from packed pixels. `constant`: the weight where it stays.
pub(super) fn plan_windows(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    g: &Geometry,
    channels: usize,
    constant: Option<&Constant>,
    tail: &Tail,
) -> Result<(), OpError> {
    let (pixel, taps) = (channels.next_multiple_of(PACK), g.kernel.iter().product::<usize>());
    let line = taps * pixel;
    let weight = Unpacked {
        lines: product.m,
        k: if taps == 1 { channels } else { line },
        matrix: product.a.transposed(),
        image: None,
        axes: axes(product, 0),
        weight: (taps > 1).then_some([taps, channels, pixel]),
        line,
        with_sums: needs_sums(tail, 0),
    };
    // An image with what pads it around, of which each pixel is a window.
    let windows = windows(g);
    let sizes = &windows.input;
    let ones = vec![1; sizes.len()];
    let pixels = Geometry {
        kernel: ones.clone(),
        output: sizes.clone(),
        strides: ones.clone(),
        dilations: ones,
        ..g.clone()
    };
    let params = if *sizes != g.input { Some(image_params(plan, &pixels, channels)?) } else { None };
    let image = Unpacked {
        lines: sizes.iter().product(),
        k: channels,
        matrix: Matrix { strides: [g.input.iter().product::<usize>() as i64, 1], ..product.b },
        image: params.as_ref(),
        axes: axes(product, 1),
        weight: None,
        line: pixel,
        with_sums: false,
    };
    let weight = match constant {
        None => weight.pack(plan, &tail.sides[0])?,
        Some(constant) => {
            let strides = [channels * taps, taps, 1];
            let is_signed = tail.sides[0].is_signed;
            constant.pack(plan, Layout { lines: product.m, channels, taps, strides, pixel, is_signed })?
        }
    };
    let packed = [weight, image.pack(plan, &tail.sides[1])?];
    let (axes, _) = nhwc_params(&windows, pixel / 2, pixel / 2)?;
    let mut lines = GemmParams::zeroed();
    lines.m = product.n as u32;
    let more = [bytes_of(&lines), &axes].concat();
    multiply(plan, product, tail, &packed, line, Some(&more))
}

/// Whether the sums of an operand's lines count: as often as the other's zero point.
fn needs_sums(tail: &Tail, operand: usize) -> bool {
    !tail.sides[1 - operand].is_centered
}

/// The batch, as one operand moves along it.
fn axes(product: &Product, operand: usize) -> Vec<Axis> {
    let moved = |axis: &Axis| Axis { size: axis.size, strides: [0, axis.strides[operand], 0, 0, 0] };
    product.batch.iter().map(moved).collect()
}

/// Appends the launch that multiplies packed operands, with so many bytes in a line of K. `windows`: what follows the other
/// parameters where the right one is an image.
fn multiply(
    plan: &mut PlanBuilder<'_>,
    product: &Product,
    tail: &Tail,
    [a, b]: &[Packed; 2],
    line: usize,
    windows: Option<&[u8]>,
) -> Result<(), OpError> {
    // The tiles count in pairs of bytes.
    let pairs = (line / 2) as i64;
    let batch = product.batch.iter().enumerate().map(|(i, axis)| {
        let [_, _, out, bias, residual] = axis.strides;
        let [a, b] = [a, b].map(|packed| packed.steps.get(i).map_or(0, |step| step / 2) as i64);
        Axis { size: axis.size, strides: [a, b, out, bias, residual] }
    });
    let packed = Product {
        k: line / 2,
        a: Matrix { at: a.lines, offset: 0, strides: [pairs, 1] },
        b: Matrix { at: b.lines, offset: 0, strides: [1, pairs] },
        batch: batch.collect(),
        ..product.clone()
    };
    let own =
        PackedTail { parts: [a, b].map(|x| x.parts as u32), k: product.k as u32, ..PackedTail::zeroed() };
    let sums = [(offset_of!(PackedTail, a_sums), a.sums), (offset_of!(PackedTail, b_sums), b.sums)];
    let unit = plan.provider.unit();
    let tile = if windows.is_none() { hopper::choose(&packed, tail, unit) } else { None };
    let (rows, columns, lds) = pick(unit, true, product.m, product.n, product.batch_count(), [false, true]);
    let groups = packed.tiles(rows, columns);
    // Large tiles fill the device as they are.
    let (k_part, parts) =
        if tile.is_some() || rows == 128 { (packed.k, 1) } else { parts(packed.k, groups, unit) };
    let name = match (rows, parts > 1, windows.is_some()) {
        (128, _, false) => c"bytes_large",
        (128, _, true) => c"bytes_windows_large",
        (_, false, false) => c"bytes_small",
        (_, false, true) => c"bytes_windows_small",
        (_, true, false) => c"bytes_parts",
        (_, true, true) => c"bytes_windows_parts",
    };
    let mut params = packed.params(ELEMENT)?;
    (params.k_part, params.parts) = (k_part as u32, parts as u32);
    let mut addresses = packed.addresses();
    if parts > 1 {
        let partial = plan.scratch(parts * groups * rows * columns * size_of::<i32>());
        addresses.push((offset_of!(GemmParams, partial), partial));
        addresses.push((offset_of!(GemmParams, arrived), Operand::Counters));
    }
    let mut all = bytes_of(&params).to_vec();
    all.resize(all.len() + IMAGE_BYTES, 0);
    let (more, at) = tail.params();
    addresses.extend(at.into_iter().map(|(at, operand)| (all.len() + at, operand)));
    all.extend_from_slice(&more);
    addresses.extend(sums.into_iter().filter_map(|(at, sums)| Some((all.len() + at, sums?))));
    all.extend_from_slice(bytes_of(&own));
    if let Some(tile) = tile {
        return tile.plan(plan, &packed, params, (all, addresses));
    }
    all.extend_from_slice(windows.unwrap_or_default());
    let kernel = KernelName { family: "qlinear_mma", name };
    plan.launch_bytes(kernel, [groups * parts, 1, 1], GROUP, lds, &all, &addresses)
}

/// Pairs of K of a part, and parts: as many as fill the device, of which each is worth its sums' way through memory.
fn parts(k: usize, groups: usize, unit: Unit) -> (usize, usize) {
    let most = if groups <= COUNTERS { k / LEAST_OF_PART } else { 1 };
    let wanted = unit.compute_units.div_ceil(groups).min(most).max(1);
    let part = k.div_ceil(wanted).next_multiple_of(STEP / 2);
    (part, k.div_ceil(part))
}
