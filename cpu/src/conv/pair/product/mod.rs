//! The pointwise product with output channels in the lanes of vectors.

mod avx2;
mod avx512;

use std::ops::Range;

use crate::gemm::VECTOR;
use crate::ops::activation::Activation;

/// What images are multiplied with: floats, or dot groups of two bfloat16 numbers of neighbouring channels.
pub(super) struct Product<'a, T, B> {
    pub(super) x: &'a [T],
    /// Channels of an image, or dot groups, of so many elements each, and of a line.
    pub(super) channels: usize,
    pub(super) area: usize,
    pub(super) width: usize,
    /// Panels of sixteen rows: `[rows / 16, channels, 16]`.
    pub(super) panels: &'a [T],
    pub(super) bias: Option<&'a [B]>,
    pub(super) activation: Activation,
}

/// The product of an image with a panel.
pub(in crate::conv::pair) struct Tiles<'a, T> {
    image: &'a [T],
    weights: &'a [T],
    area: usize,
    width: usize,
    bias: [f32; VECTOR],
}

impl<T, B: Copy + Into<f32>> Product<'_, T, B> {
    /// That of an image with the panel of output channels, the first of which is a multiple of sixteen.
    fn tiles(&self, image: usize, outputs: Range<usize>) -> Tiles<'_, T> {
        let size = self.channels * self.area;
        let mut bias = [0.0; VECTOR];
        if let Some(all) = self.bias {
            bias.iter_mut().zip(&all[outputs.clone()]).for_each(|(y, &x)| *y = x.into());
        }
        let weights = &self.panels[outputs.start * self.channels..][..self.channels * VECTOR];
        let (area, width) = (self.area, self.width);
        Tiles { image: &self.x[image * size..][..size], weights, area, width, bias }
    }
}

impl<T> Tiles<'_, T> {
    /// Calls `tile` with the first of each `P` positions of lines of the image and where they go; `single` with those that are
    /// fewer than that. `place` says where a line begins, `VECTOR` floats for each position.
    #[inline(always)]
    fn each<const P: usize>(
        &self,
        lines: Range<usize>,
        place: impl Fn(usize) -> *mut f32,
        mut tile: impl FnMut(usize, &[*mut f32; P]),
        mut single: impl FnMut(usize, *mut f32),
    ) {
        let (width, start, end) = (self.width, lines.start * self.width, lines.end * self.width);
        assert!(end <= self.area, "lines lie in the image");
        let place = |y: usize, x: usize| place(y).wrapping_add(x * VECTOR);
        let (mut at, mut y, mut x) = (start, lines.start, 0);
        while at < end {
            let left = end - at;
            if left < P && end - start < P {
                single(at, place(at / width, at % width));
                at += 1;
                continue;
            }
            if left < P {
                // Together with what is before it, once more.
                at = end - P;
                (y, x) = (at / width, at % width);
            }
            let mut to = place(y, x);
            let mut places = std::array::from_fn(|p| to.wrapping_add(p * VECTOR));
            if x + P <= width {
                (x, y) = if x + P == width { (0, y + 1) } else { (x + P, y) };
            } else {
                for next in &mut places {
                    if x == width {
                        (x, y) = (0, y + 1);
                        to = place(y, 0);
                    }
                    *next = to;
                    (x, to) = (x + 1, to.wrapping_add(VECTOR));
                }
            }
            tile(at, &places);
            at += P;
        }
    }
}
