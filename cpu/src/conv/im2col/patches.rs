//! The patches of an image as the right operand of a matrix product (im2col, never whole).
//!
//! Row `(channel, kernel position)`, column `output position`. Each block is copied along the last
//! axis of the image: runs of one output line for one kernel position are contiguous in the image
//! when the stride is 1.

use std::ops::Range;

use crate::gemm::Source;
use crate::ops::window::Geometry;

/// Where the window's positions lie in the image; depends on shapes only.
pub(crate) struct PatchTable {
    /// Elements of one channel of the image.
    plane: usize,
    /// Kernel positions of all axes but the last.
    outer_kernel: usize,
    /// Kernel positions of the last axis.
    inner_kernel: usize,
    /// Output positions of all axes but the last: lines.
    lines: usize,
    /// Output positions of the last axis.
    line: usize,
    stride: usize,
    /// Image positions of the last axis.
    width: usize,
    /// For each kernel position of the outer axes and each line: the start of the image's line, or
    /// `OUTSIDE` where it lies in the padding.
    starts: Vec<usize>,
    /// For each kernel position of the last axis: the output positions inside the image, and the
    /// image's position for output position 0, which may lie before the image.
    spans: Vec<(Range<usize>, isize)>,
}

const OUTSIDE: usize = usize::MAX;

impl PatchTable {
    pub(crate) fn new(g: &Geometry) -> Self {
        let last = g.input.len() - 1;
        let (outer_kernel, lines) = (g.kernel[..last].iter().product(), g.output[..last].iter().product());
        let mut starts = Vec::with_capacity(outer_kernel * lines);
        for k in 0..outer_kernel {
            for line in 0..lines {
                starts.push(line_start(g, k, line));
            }
        }
        let spans = (0..g.kernel[last]).map(|k| span(g, last, k)).collect();
        PatchTable {
            plane: g.input.iter().product(),
            outer_kernel,
            inner_kernel: g.kernel[last],
            lines,
            line: g.output[last],
            stride: g.strides[last],
            width: g.input[last],
            starts,
            spans,
        }
    }

    pub(crate) fn plane(&self) -> usize {
        self.plane
    }

    pub(crate) fn lines(&self) -> usize {
        self.lines
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    /// Calls `f` with each kernel position (in the weight's order), the start of the image's line and
    /// the span of the last axis, for kernel positions whose line lies inside the image.
    #[inline(always)]
    pub(crate) fn taps(&self, line: usize, mut f: impl FnMut(usize, usize, &Range<usize>, isize)) {
        for outer in 0..self.outer_kernel {
            let start = self.starts[outer * self.lines + line];
            if start == OUTSIDE {
                continue;
            }
            for (inner, (range, at)) in self.spans.iter().enumerate() {
                f(outer * self.inner_kernel + inner, start, range, *at);
            }
        }
    }

    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// Elements of a line of the image.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Kernel positions.
    pub(crate) fn kernel(&self) -> usize {
        self.outer_kernel * self.inner_kernel
    }

    /// Kernel positions of all axes but the last.
    pub(crate) fn outer_kernel(&self) -> usize {
        self.outer_kernel
    }

    /// Where the line of the image begins that an output line reads for one of these; `None` outside.
    #[inline(always)]
    pub(crate) fn row(&self, line: usize, outer: usize) -> Option<usize> {
        Some(self.starts[outer * self.lines + line]).filter(|&start| start != OUTSIDE)
    }

    /// Where the lines of the image begin that an output line reads.
    #[inline(always)]
    pub(crate) fn rows(&self, line: usize) -> impl Iterator<Item = usize> {
        let starts = self.starts.iter().skip(line).step_by(self.lines);
        starts.copied().filter(|&start| start != OUTSIDE)
    }

    /// For each kernel position of the last axis: the output positions inside the image, and the image's position
    /// for output position 0.
    pub(crate) fn spans(&self) -> &[(Range<usize>, isize)] {
        &self.spans
    }
}

/// The start of the image's line that kernel position `k` of the outer axes reads for an output line.
fn line_start(g: &Geometry, mut k: usize, mut line: usize) -> usize {
    let last = g.input.len() - 1;
    let (mut start, mut stride) = (0, g.input[last]);
    for axis in (0..last).rev() {
        let (o, p) = (line % g.output[axis], k % g.kernel[axis]);
        (line, k) = (line / g.output[axis], k / g.kernel[axis]);
        let Some(at) = (o * g.strides[axis] + p * g.dilations[axis]).checked_sub(g.pads_begin[axis]) else {
            return OUTSIDE;
        };
        if at >= g.input[axis] {
            return OUTSIDE;
        }
        start += at * stride;
        stride *= g.input[axis];
    }
    start
}

/// The output positions of an axis for which kernel position `k` lies inside the image, and the image
/// position of output position 0.
pub(crate) fn span(g: &Geometry, axis: usize, k: usize) -> (Range<usize>, isize) {
    let (stride, output) = (g.strides[axis], g.output[axis]);
    let (tap, pad) = (k * g.dilations[axis], g.pads_begin[axis]);
    let first = pad.saturating_sub(tap).div_ceil(stride).min(output);
    let end = (g.input[axis] + pad).saturating_sub(tap).div_ceil(stride).clamp(first, output);
    (first..end, tap as isize - pad as isize)
}

/// Patches of a batch of images of `channels` channels each, their elements mapped by `load`.
pub(crate) struct Patches<'a, T, C, F> {
    pub(crate) table: &'a PatchTable,
    pub(crate) images: &'a [T],
    pub(crate) channels: usize,
    /// Where channels come last, the groups of channels of an image: each is an image of its own here.
    pub(crate) interleaved: Option<usize>,
    pub(crate) load: F,
    /// What lies around an image.
    pub(crate) padding: C,
}

impl<T: Copy + Sync, C: Copy + Sync, F: Fn(T) -> C + Sync> Source<C> for Patches<'_, T, C, F> {
    fn fill(&self, batch: usize, rows: Range<usize>, columns: Range<usize>, out: &mut [C]) {
        let t = self.table;
        let volume = t.outer_kernel * t.inner_kernel;
        // Elements between neighbouring channels and neighbouring pixels, and the image's first.
        let (own, pixel, first) = match self.interleaved {
            None => (t.plane, 1, batch * self.channels * t.plane),
            Some(groups) => {
                let all = groups * self.channels;
                (1, all, batch / groups * all * t.plane + batch % groups * self.channels)
            }
        };
        for (row, out) in rows.zip(out.chunks_exact_mut(columns.len())) {
            let (channel, k) = (row / volume, row % volume);
            let (outer, inner) = (k / t.inner_kernel, k % t.inner_kernel);
            let plane = &self.images[first + channel * own..];
            let starts = &t.starts[outer * t.lines..][..t.lines];
            let (span, at) = &t.spans[inner];
            let mut done = 0;
            while done < out.len() {
                let position = columns.start + done;
                let (line, x) = (position / t.line, position % t.line);
                let len = (t.line - x).min(out.len() - done);
                let part = &mut out[done..done + len];
                match starts[line] {
                    OUTSIDE => part.fill(self.padding),
                    start => self.copy(&plane[start * pixel..], pixel, x, span, *at, part),
                }
                done += len;
            }
        }
    }
}

impl<T: Copy, C: Copy, F: Fn(T) -> C> Patches<'_, T, C, F> {
    /// Writes output positions `x..x + out.len()` of a line.
    #[inline]
    fn copy(&self, line: &[T], pixel: usize, x: usize, span: &Range<usize>, at: isize, out: &mut [C]) {
        let end = x + out.len();
        let first = span.start.clamp(x, end);
        let last = span.end.clamp(first, end);
        let (before, rest) = out.split_at_mut(first - x);
        let (inside, after) = rest.split_at_mut(last - first);
        before.fill(self.padding);
        after.fill(self.padding);
        if inside.is_empty() {
            return;
        }
        let stride = self.table.stride;
        // Inside the span, so not negative.
        let from = &line[(first as isize * stride as isize + at) as usize * pixel..];
        let stride = stride * pixel;
        if stride == 1 {
            inside.iter_mut().zip(from).for_each(|(y, &x)| *y = (self.load)(x));
        } else {
            inside.iter_mut().zip(from.iter().step_by(stride)).for_each(|(y, &x)| *y = (self.load)(x));
        }
    }
}
