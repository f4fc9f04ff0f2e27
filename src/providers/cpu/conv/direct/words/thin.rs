//! Windows of one position that step over elements: the elements that they read, as an image of its own.

use crate::ops::window::Geometry;
use crate::providers::cpu::parallel::{GRAIN, split_mut};
use crate::providers::cpu::simd::{Loop, widest};
use crate::tensor::Element;
use crate::threads::Pool;

pub(super) struct Thin {
    /// That of windows that step over nothing.
    geometry: Geometry,
    /// Rows and columns of the whole image, and from one to the next that is read.
    image: [usize; 2],
    strides: [usize; 2],
}

impl Thin {
    /// `None` for other windows, and for other than two axes.
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        let all = |list: &[usize], x: usize| list.iter().all(|&y| y == x);
        let pair = |list: &[usize]| <[usize; 2]>::try_from(list).ok();
        if !all(&g.kernel, 1) || !all(&g.pads_begin, 0) || !all(&g.pads_end, 0) || all(&g.strides, 1) {
            return None;
        }
        let geometry = Geometry { input: g.output.clone(), strides: vec![1; 2], ..g.clone() };
        Some(Thin { geometry, image: pair(&g.input)?, strides: pair(&g.strides)? })
    }

    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Copies what is read of each channel, on all threads of the pool.
    pub(super) fn copy<T: Element>(&self, pool: &Pool, image: &[T], out: &mut [T]) {
        let plane: usize = self.geometry.output.iter().product();
        let ([height, width], line) = (self.image, self.geometry.output[1]);
        split_mut(pool, out, plane, GRAIN.div_ceil(plane), |channels, out| {
            for (channel, out) in channels.zip(out.chunks_exact_mut(plane)) {
                let image = &image[channel * height * width..][..height * width];
                let rows = image.chunks_exact(width).step_by(self.strides[0]);
                for (row, out) in rows.zip(out.chunks_exact_mut(line)) {
                    widest(Every { stride: self.strides[1], row, out });
                }
            }
        });
    }
}

/// Copies every element at a stride.
struct Every<'a, T> {
    stride: usize,
    row: &'a [T],
    out: &'a mut [T],
}

impl<T: Element> Loop for Every<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Every { stride, row, out } = self;
        if stride == 2 {
            // Pairs are loaded as vectors, single elements at a stride are not.
            let (pairs, rest) = row.as_chunks::<2>();
            let (whole, last) = out.split_at_mut(pairs.len().min(out.len()));
            whole.iter_mut().zip(pairs).for_each(|(y, pair)| *y = pair[0]);
            last.iter_mut().zip(rest).for_each(|(y, &x)| *y = x);
        } else {
            out.iter_mut().zip(row.iter().step_by(stride)).for_each(|(y, &x)| *y = x);
        }
    }
}
