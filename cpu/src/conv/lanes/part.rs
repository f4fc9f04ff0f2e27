//! Outputs that read the same part of the kernel.

use std::ops::Range;

/// Outputs, equally far apart, that read the same part of the kernel: all of it that is not in the padding.
pub(crate) struct Part {
    /// The first of them, how far apart they are, and how many: down and across.
    pub(super) first: [usize; 2],
    pub(super) step: [usize; 2],
    pub(super) count: [usize; 2],
    pub(super) taps: Vec<Tap>,
}

/// A position of the kernel.
pub(crate) struct Tap {
    /// The element of the image that it reads for the first output.
    pub(super) from: usize,
    /// Which one it is.
    pub(super) index: usize,
}

/// Outputs along an axis, so far apart, that read the same elements of the kernel.
pub(super) struct Span {
    first: usize,
    step: usize,
    count: usize,
    /// These elements, and what the first output reads for each.
    taps: Vec<(usize, usize)>,
}

impl Span {
    /// Those in a range; what they read is so far apart.
    pub(super) fn within(&self, range: &Range<usize>, step: usize) -> Option<Span> {
        let before = |end: usize| end.saturating_sub(self.first).div_ceil(self.step).min(self.count);
        let (start, end) = (before(range.start), before(range.end));
        let taps = self.taps.iter().map(|&(k, from)| (k, from + start * step)).collect();
        let first = self.first + start * self.step;
        (start < end).then_some(Span { first, count: end - start, taps, ..*self })
    }

    /// Of lines of the image and of the kernel of so many elements.
    pub(super) fn part(&self, across: &Span, width: usize, kernel: usize) -> Part {
        let line = |&(ky, y): &(usize, usize)| {
            across.taps.iter().map(move |&(kx, x)| Tap { from: y * width + x, index: ky * kernel + kx })
        };
        Part {
            first: [self.first, across.first],
            step: [self.step, across.step],
            count: [self.count, across.count],
            taps: self.taps.iter().flat_map(line).collect(),
        }
    }
}

/// All outputs of an axis.
pub(super) fn spans(
    outputs: usize,
    step: usize,
    kernel: usize,
    place: impl Fn(usize, usize) -> Option<usize>,
) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for start in 0..step.min(outputs) {
        let begin = spans.len();
        for first in (start..outputs).step_by(step) {
            let taps = || (0..kernel).filter_map(|k| Some((k, place(first, k)?)));
            let same = |span: &Span| span.taps.iter().map(|tap| tap.0).eq(taps().map(|tap| tap.0));
            match spans[begin..].last_mut() {
                Some(span) if same(span) => span.count += 1,
                _ => spans.push(Span { first, step, count: 1, taps: taps().collect() }),
            }
        }
    }
    spans
}
