//! Maxima of bytes over windows whose columns are one or two apart, in vectors of bytes: the rows of a line's windows become
//! one, and of its neighbours an output. Vectors reach beyond the ends of lines.

use crate::ops::OpError;
use crate::ops::pool::Pool;
use crate::ops::window::Geometry;
use crate::tensor::{ElementType, TensorView, TensorViewMut};

use super::fold::Max;
use super::geometry;
use super::windowed::Windowed;
use crate::conv::PatchTable;
use crate::kernel::{Argument, Kernel, KernelContext, Prepared};
use crate::loops::parallel::{Parts, threads_of_image};
use crate::loops::scratch::with_scratch;

/// Bytes of a vector.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
const LEN: usize = 32;

pub(super) struct ByteMax {
    op: Pool,
    signed: bool,
    /// For other strides and processors.
    general: Box<dyn Kernel>,
}

impl ByteMax {
    /// `None` for elements that are no bytes.
    pub(super) fn new(op: &Pool, element: Option<ElementType>) -> Option<Self> {
        let general = match element {
            Some(ElementType::U8) => Windowed::<u8, Max>::boxed(op.clone(), Max),
            Some(ElementType::I8) => Windowed::<i8, Max>::boxed(op.clone(), Max),
            _ => return None,
        };
        Some(ByteMax { op: op.clone(), signed: element == Some(ElementType::I8), general })
    }
}

impl Kernel for ByteMax {
    fn prepare(
        &self,
        inputs: &[Option<Argument<'_>>],
        outputs: &[Option<&[usize]>],
    ) -> Result<Prepared, OpError> {
        let Some(x) = &inputs[0] else { return Ok(Prepared::default()) };
        match Windows::new(&geometry(&self.op.window, x.shape)?, self.signed) {
            Some(windows) => Ok(Prepared { state: Some(Box::new(windows)), scratch: 0 }),
            None => self.general.prepare(inputs, outputs),
        }
    }

    fn run(
        &self,
        cx: &KernelContext<'_>,
        inputs: &[Option<TensorView<'_>>],
        outputs: &mut [Option<TensorViewMut<'_>>],
    ) -> Result<(), OpError> {
        let Some(of) = cx.state.and_then(|state| state.downcast_ref::<Windows>()) else {
            return self.general.run(cx, inputs, outputs);
        };
        let (Some(x), Some(y)) = (inputs[0], &mut outputs[0]) else { return Ok(()) };
        let (images, x, line) = (x.shape()[0], x.bytes(), of.table.line());
        let (lines, plane) = (of.table.lines(), of.table.plane());
        let out = lines * line;
        let planes = y.len() / out.max(1);
        let y = Parts::new(y.bytes());
        // A thread has images, or the same lines of all planes, as of convolutions.
        let bands = threads_of_image(images, cx.pool.threads()).min(lines).max(1);
        cx.pool.split(bands * planes, (1 << 17) / plane.div_ceil(bands).max(1) + 1, |range| {
            with_scratch([of.columns, of.row], |[columns, last]: [&mut [u8]; 2]| {
                columns.fill(of.least);
                for i in range {
                    let (band, plane_at) = (i / planes, i % planes);
                    let lines = lines * band / bands..lines * (band + 1) / bands;
                    let start = plane_at * out;
                    // SAFETY: each line is written by one piece of the split.
                    let y = unsafe { y.get(start + lines.start * line..start + lines.end * line) };
                    let x = &x[plane_at * plane..];
                    Lines { of, first: lines.start, x, columns: &mut *columns, last: &mut *last, y }.pool();
                }
            });
        });
        Ok(())
    }
}

struct Windows {
    table: PatchTable,
    /// Columns of a window, from one to the next, and from a window to the next.
    kernel: usize,
    dilation: usize,
    stride: usize,
    /// Columns before the image.
    before: usize,
    /// Columns that vectors of all windows of a line reach over, and those that vectors of a row of the image do.
    columns: usize,
    row: usize,
    /// The least number.
    least: u8,
}

impl Windows {
    /// `None` for what is not for it.
    fn new(g: &Geometry, signed: bool) -> Option<Self> {
        let last = g.input.len() - 1;
        let (kernel, dilation, stride) = (g.kernel[last], g.dilations[last], g.strides[last]);
        let (before, width, line) = (g.pads_begin[last], g.input[last], g.output[last]);
        let has_elements = !g.output.contains(&0) && !g.input.contains(&0);
        let fits = crate::isa::has_avx2() && (1..=2).contains(&stride) && has_elements;
        let row = width.next_multiple_of(LEN);
        let windows = line.next_multiple_of(LEN) * stride + (kernel - 1) * dilation;
        fits.then(|| Windows {
            table: PatchTable::new(g),
            kernel,
            dilation,
            stride,
            before,
            columns: windows.max(before + row + LEN),
            row,
            least: if signed { 0x80 } else { 0 },
        })
    }
}

/// Some lines of a plane.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "what reads it is of x86-64"))]
struct Lines<'a> {
    of: &'a Windows,
    first: usize,
    /// The plane, and what follows it.
    x: &'a [u8],
    /// The columns of a line's windows; around the image's lies the least number.
    columns: &'a mut [u8],
    /// Room for a row that nothing follows.
    last: &'a mut [u8],
    y: &'a mut [u8],
}

#[cfg(not(target_arch = "x86_64"))]
impl Lines<'_> {
    fn pool(self) {
        unreachable!("there are no windows without AVX2")
    }
}

#[cfg(target_arch = "x86_64")]
impl Lines<'_> {
    fn pool(self) {
        let Windows { columns, row, least, stride, .. } = *self.of;
        assert!(self.columns.len() >= columns && self.last.len() >= row);
        // SAFETY: there are windows only where the processor has AVX2.
        unsafe {
            match (stride, least) {
                (1, 0) => self.vectors::<1, false>(),
                (1, _) => self.vectors::<1, true>(),
                (_, 0) => self.vectors::<2, false>(),
                _ => self.vectors::<2, true>(),
            }
        }
    }

    /// # Safety
    /// The processor has AVX2.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn vectors<const STRIDE: usize, const SIGNED: bool>(self) {
        use std::arch::x86_64::*;
        let Lines { of, first, x, columns, last, y } = self;
        let (line, width) = (of.table.line(), of.table.width());
        let least = _mm256_set1_epi8(of.least as i8);
        for (i, at) in (0..y.len()).step_by(line).enumerate() {
            // SAFETY: vectors of a row are inside the image or `last`, those of columns inside `columns`: `Windows::new` counted
            // them, and `pool` asserts that they are there.
            unsafe {
                let to = columns.as_mut_ptr().add(of.before);
                let mut rows = 0;
                for start in of.table.rows(first + i) {
                    let row = match x.get(start..start + of.row) {
                        Some(row) => row.as_ptr(),
                        None => {
                            last[..width].copy_from_slice(&x[start..start + width]);
                            last.as_ptr()
                        }
                    };
                    for at in (0..width).step_by(LEN) {
                        let mut max = _mm256_loadu_si256(row.add(at).cast());
                        if rows > 0 {
                            max = larger::<SIGNED>(max, _mm256_loadu_si256(to.add(at).cast()));
                        }
                        _mm256_storeu_si256(to.add(at).cast(), max);
                    }
                    rows += 1;
                }
                if rows == 0 {
                    (0..width).step_by(LEN).for_each(|at| _mm256_storeu_si256(to.add(at).cast(), least));
                }
                // Where a vector reached beyond the image.
                _mm256_storeu_si256(to.add(width).cast(), least);
                for start in (0..line).step_by(LEN) {
                    let from = columns.as_ptr().add(start * STRIDE);
                    let mut all = [least; STRIDE];
                    for k in 0..of.kernel {
                        for (v, max) in all.iter_mut().enumerate() {
                            let next = _mm256_loadu_si256(from.add(k * of.dilation + v * LEN).cast());
                            *max = larger::<SIGNED>(*max, next);
                        }
                    }
                    let mut maxima = all[0];
                    if STRIDE == 2 {
                        let low = _mm256_set1_epi16(0xff);
                        let halves = (_mm256_and_si256(all[0], low), _mm256_and_si256(all[STRIDE - 1], low));
                        let even = _mm256_packus_epi16(halves.0, halves.1);
                        maxima = _mm256_permute4x64_epi64::<0b11_01_10_00>(even);
                    }
                    // What is too much is written over by the next line.
                    let y = &mut y[at + start..];
                    if y.len() >= LEN {
                        _mm256_storeu_si256(y.as_mut_ptr().cast(), maxima);
                    } else {
                        let mut bytes = [0; LEN];
                        _mm256_storeu_si256(bytes.as_mut_ptr().cast(), maxima);
                        y.copy_from_slice(&bytes[..y.len()]);
                    }
                }
            }
        }
    }
}

/// # Safety
/// Only inside a function with AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn larger<const SIGNED: bool>(
    a: std::arch::x86_64::__m256i,
    b: std::arch::x86_64::__m256i,
) -> std::arch::x86_64::__m256i {
    // SAFETY: as the caller promises.
    unsafe {
        match SIGNED {
            true => std::arch::x86_64::_mm256_max_epi8(a, b),
            false => std::arch::x86_64::_mm256_max_epu8(a, b),
        }
    }
}
