//! Depthwise convolution: each output channel reads one input channel. Bound by memory, so the
//! window is applied directly, one output line at a time.

use super::patches::PatchTable;
use crate::gemm::{Compute, Epilogue, FusedEpilogue, Store};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::{Loop, widest};
use crate::threads::Pool;

/// Multiplications worth handing to another thread.
const GRAIN: usize = 1 << 16;

/// Convolves each of `images · group` planes with its `multiplier` kernels of `volume` elements.
pub(crate) fn depthwise<T: Store>(
    pool: &Pool,
    table: &PatchTable,
    planes: &[T],
    weight: &[T],
    (images, group, multiplier, volume): (usize, usize, usize, usize),
    epilogue: &FusedEpilogue<'_, T>,
) {
    let (lines, line) = (table.lines(), table.line());
    let work = lines * line * volume;
    pool.split(images * group * multiplier, GRAIN.div_ceil(work.max(1)), |range| {
        with_scratch([line], |[sums]: [&mut [T::Compute]; 1]| {
            for plane in range {
                let (batch, row) = (plane / multiplier, plane % multiplier);
                let image = &planes[batch * table.plane()..][..table.plane()];
                let kernel = &weight[(batch % group * multiplier + row) * volume..][..volume];
                for y in 0..lines {
                    sums.fill(T::Compute::default());
                    widest(Line { table, y, image, kernel, sums: &mut *sums });
                    epilogue.write(batch, row, y * line, sums);
                }
            }
        });
    });
}

/// Adds the products of one output line.
struct Line<'a, T: Store> {
    table: &'a PatchTable,
    y: usize,
    image: &'a [T],
    kernel: &'a [T],
    sums: &'a mut [T::Compute],
}

impl<T: Store> Loop for Line<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Line { table, y, image, kernel, sums } = self;
        let stride = table.stride();
        table.taps(
            y,
            #[inline(always)]
            |k, start, range, at| {
                if range.is_empty() {
                    return;
                }
                let w = kernel[k].load();
                let from = &image[(start as isize + (range.start * stride) as isize + at) as usize..];
                let sums = &mut sums[range.clone()];
                if stride == 1 {
                    sums.iter_mut().zip(from).for_each(|(s, &x)| *s = s.multiply_add(w, x.load()));
                } else {
                    let from = from.iter().step_by(stride);
                    sums.iter_mut().zip(from).for_each(|(s, &x)| *s = s.multiply_add(w, x.load()));
                }
            },
        );
    }
}
