//! Convolutions of images in NHWC on sm_90: products whose patches come by its engine for copies of tiles, which knows
//! windows of an image (`kernels/include/rukh/tile_hopper.h`).

use crate::hip::{Numbers, Part, TensorMap};
use crate::ops::window::Geometry;
use crate::tensor::ElementType;

use super::super::gemm::hopper::{self, Copies, STEP, Windows};
use super::super::gemm::{Product, TileKernel};
use super::super::unit::Unit;

/// Channels from which on steps of 64 along K are worth their zeros.
const FEWEST_CHANNELS: usize = 32;

/// A convolution of an image in NHWC as a product.
#[derive(Clone, Copy)]
pub(super) struct Patches<'c> {
    pub(super) ty: ElementType,
    pub(super) product: &'c Product,
    pub(super) g: &'c Geometry,
    pub(super) group: usize,
    /// Of a group's input, and elements between pixels.
    pub(super) channels: usize,
    pub(super) pixel: usize,
}

/// Tiles with the parts of K that are best for each, the fastest first; none where windows cannot be copied so.
pub(super) fn tiles(conv: Patches<'_>, unit: Unit) -> Vec<(TileKernel, usize)> {
    let known = unit.wgmma && unit.tensor_maps && hopper::takes(conv.product, conv.ty);
    match copies(conv, 64, 64).filter(|_| known) {
        Some(copies) => hopper::ranked(conv.product, conv.ty, copies.steps, unit),
        None => Vec::new(),
    }
}

/// How image and weight are copied for tiles of a size; `None` where the format has no room for it.
pub(super) fn copies(conv: Patches<'_>, rows: usize, columns: usize) -> Option<Copies> {
    let Patches { g, product, channels, group, ty, pixel } = conv;
    let (&[height, width], &[kernel_y, kernel_x]) = (&g.input[..], &g.kernel[..]) else { return None };
    let whole = |n: usize| n.is_multiple_of(if group > 1 { STEP } else { 8 });
    if !matches!(ty, ElementType::F16 | ElementType::BF16)
        || channels < FEWEST_CHANNELS
        || !whole(channels)
        || !pixel.is_multiple_of(8)
    {
        return None;
    }
    let (x, y) = (Side::new(g, 1)?, Side::new(g, 0)?);
    let Product { m, n, .. } = *product;
    let (rows, columns) = (hopper::copied(rows, m), hopper::copied(columns, n));
    let positions: usize = g.output.iter().product();
    let (taps, tap_steps) = (kernel_y * kernel_x, channels.div_ceil(STEP));
    let numbers = Numbers::half(ty == ElementType::BF16);
    let bytes = |elements: usize| elements as u64 * 2;
    let image = TensorMap {
        numbers,
        swizzled: true,
        // Taps of a line that were joined reach beyond their pixel.
        sizes: [pixel.max(channels), width, height, m / positions.max(1)].map(|n| n as u64).to_vec(),
        strides: vec![bytes(pixel), bytes(width * pixel), bytes(height * width * pixel)],
        part: Part::Windows {
            begin: [x.begin, y.begin],
            end: [x.end, y.end],
            steps: [x.stride, y.stride],
            channels: STEP as u32,
            count: rows as u32,
        },
    };
    let weight = TensorMap {
        numbers,
        swizzled: true,
        sizes: [channels, taps, n * group].map(|n| n as u64).to_vec(),
        strides: vec![bytes(channels), bytes(taps * channels)],
        part: Part::Box(vec![STEP as u32, 1, columns as u32]),
    };
    let windows = Windows {
        tap_steps: tap_steps as u32,
        line_taps: kernel_x as u32,
        right: x.dilation,
        down: y.dilation,
        positions: positions as u32,
        line_positions: g.output[1] as u32,
        stride: [y.stride as i32, x.stride as i32],
        first: [y.begin, x.begin],
    };
    Some(Copies {
        maps: [image, weight],
        next: [channels as u32, 0],
        steps: taps * tap_steps,
        stage_bytes: (rows + columns) * STEP * ty.size(),
        windows,
    })
}

/// Windows along an axis, as the format says them.
struct Side {
    begin: i32,
    end: i32,
    stride: u32,
    dilation: u32,
}

impl Side {
    fn new(g: &Geometry, axis: usize) -> Option<Self> {
        // What a map of four dimensions has room for: corners in a signed byte, taps in a byte, steps up to 8.
        let far = g.kernel[axis].checked_sub(1)?.checked_mul(g.dilations[axis])?;
        let begin = -i32::try_from(g.pads_begin[axis]).ok()?;
        // Behind the begin of the last window, from the image's end on.
        let last = g.output[axis].checked_sub(1)?.checked_mul(g.strides[axis])?;
        let end = begin + i32::try_from(last + 1).ok()? - i32::try_from(g.input[axis]).ok()?;
        let corners = -128..=127;
        let fits = far <= 255 && corners.contains(&begin) && corners.contains(&end) && g.strides[axis] <= 8;
        let (stride, dilation) = (g.strides[axis] as u32, g.dilations[axis] as u32);
        fits.then_some(Side { begin, end, stride, dilation })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::gemm::{Epilogue, Matrix};
    use super::super::super::launch::Operand;
    use super::*;

    fn geometry(stride: usize, pad: usize, dilation: usize) -> Geometry {
        let size = |n: usize| (n + 2 * pad - 2 * dilation - 1) / stride + 1;
        Geometry {
            input: vec![28, 30],
            kernel: vec![3, 3],
            output: vec![size(28), size(30)],
            strides: vec![stride; 2],
            dilations: vec![dilation; 2],
            pads_begin: vec![pad; 2],
            pads_end: vec![pad; 2],
        }
    }

    /// What is copied of two images with so many channels.
    fn copied(g: &Geometry, channels: usize, group: usize) -> Option<Copies> {
        let product = Product {
            m: 2 * g.output.iter().product::<usize>(),
            n: 40,
            k: 9 * channels,
            a: Matrix::new(Operand::Input(0), channels * group, 1),
            b: Matrix::new(Operand::Input(1), 1, 9 * channels),
            out: Matrix::new(Operand::Output(0), 40 * group, 1),
            bias: None,
            residual: None,
            batch: Vec::new(),
            epilogue: Epilogue::default(),
        };
        let (ty, pixel) = (ElementType::F16, channels * group);
        copies(Patches { ty, product: &product, g, group, channels, pixel }, 128, 64)
    }

    #[test]
    fn windows_and_taps() {
        let copies = copied(&geometry(2, 1, 1), 96, 1).unwrap();
        let [image, weight] = &copies.maps;
        assert_eq!((&image.sizes[..], &image.strides[..]), (&[96, 30, 28, 2][..], &[192, 5760, 161280][..]));
        let part = Part::Windows { begin: [-1; 2], end: [-2; 2], steps: [2; 2], channels: 64, count: 128 };
        assert_eq!(image.part, part);
        assert_eq!((&weight.sizes[..], &weight.strides[..]), (&[96, 9, 40][..], &[192, 1728][..]));
        assert_eq!((copies.steps, copies.next), (18, [96, 0]));
        let Windows { tap_steps, line_taps, positions, line_positions, stride, first, .. } = copies.windows;
        assert_eq!((tap_steps, line_taps, positions, line_positions), (2, 3, 14 * 15, 15));
        assert_eq!((stride, first), ([2, 2], [-1, -1]));
    }

    #[test]
    fn what_the_format_has_no_room_for() {
        for (stride, pad, dilation, channels, group, known) in [
            (1, 1, 1, 64, 1, true),
            (1, 2, 2, 40, 1, true),
            (1, 1, 1, 64, 4, true),
            // Channels of the next group would be read.
            (1, 1, 1, 40, 4, false),
            (1, 1, 1, 36, 1, false),
            (1, 1, 1, 8, 1, false),
            (9, 1, 1, 64, 1, false),
            (1, 129, 1, 64, 1, false),
        ] {
            let found = copied(&geometry(stride, pad, dilation), channels, group);
            assert_eq!(found.is_some(), known, "{stride} {pad} {dilation} {channels} {group}");
        }
    }
}
