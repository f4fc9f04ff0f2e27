//! How a tensor is read to reduce some of its axes.

use std::ops::Range;

use smallvec::SmallVec;

/// How a tensor is read to reduce it: neighbouring axes of one kind are merged.
#[derive(Debug, Default)]
pub(in super::super) struct Layout {
    /// Kept axes, outermost first, without the innermost when that lies innermost of all: (size, stride).
    kept: Loops,
    /// Reduced axes, without the innermost one when it lies innermost of all.
    reduced: Loops,
    /// Elements that lie side by side: one group of axes.
    pub(super) row: usize,
    /// Whether the row is reduced to one element, or kept.
    pub(super) row_reduced: bool,
    /// Elements that become one.
    pub(super) count: usize,
}

type Loops = SmallVec<[(usize, usize); 4]>;

impl Layout {
    pub(in super::super) fn new(shape: &[usize], reduced: &[bool]) -> Self {
        // Innermost first: (size, stride, reduced).
        let mut groups: SmallVec<[(usize, usize, bool); 6]> = SmallVec::new();
        let mut stride = 1;
        for (&size, &r) in shape.iter().zip(reduced).rev() {
            if size == 1 {
                continue;
            }
            match groups.last_mut() {
                Some(group) if group.2 == r => group.0 *= size,
                _ => groups.push((size, stride, r)),
            }
            stride *= size;
        }
        let count = shape.iter().zip(reduced).filter(|(_, r)| **r).map(|(d, _)| d).product();
        let (row, row_reduced) = match groups.first() {
            Some(&(size, _, r)) => (size, r),
            None => (1, true),
        };
        let of =
            |kind: bool| groups.iter().skip(1).rev().filter(|g| g.2 == kind).map(|g| (g.0, g.1)).collect();
        Layout { kept: of(false), reduced: of(true), row, row_reduced, count }
    }

    /// Elements that become one.
    pub(in super::super) fn count(&self) -> usize {
        self.count
    }

    /// The number of elements that stay.
    pub(in super::super) fn groups(&self) -> usize {
        self.rows() * if self.row_reduced { 1 } else { self.row }
    }

    /// Calls `body` with the runs of elements that become element `group`.
    pub(in super::super) fn each_run(&self, group: usize, mut body: impl FnMut(Range<usize>)) {
        match self.row_reduced {
            true => self.each_row(group, |start| body(start..start + self.row)),
            false => {
                let (row, column) = (group / self.row, group % self.row);
                self.each_row(row, |start| body(start + column..start + column + 1));
            }
        }
    }

    /// The number of rows that stay, each of one element or of `row`.
    pub(super) fn rows(&self) -> usize {
        self.kept.iter().map(|l| l.0).product()
    }

    /// Calls `body` with where each row to be put into output row `i` starts.
    pub(super) fn each_row(&self, i: usize, body: impl FnMut(usize)) {
        visit(&self.reduced, self.first_row(i), body);
    }

    /// Whether each row lies behind the one before and becomes one element.
    pub(super) fn is_rows(&self) -> bool {
        self.row_reduced && self.reduced.is_empty()
    }

    /// Where the first of these rows starts, how many there are and how far each is from the next, if that is the same for
    /// all.
    pub(super) fn even_rows(&self, i: usize) -> Option<(usize, usize, usize)> {
        match self.reduced[..] {
            [(count, stride)] => Some((self.first_row(i), count, stride)),
            _ => None,
        }
    }

    fn first_row(&self, i: usize) -> usize {
        let (mut rest, mut start) = (i, 0);
        for (size, stride) in self.kept.iter().rev() {
            start += rest % size * stride;
            rest /= size;
        }
        start
    }
}

/// All positions that nested loops reach.
fn visit(loops: &[(usize, usize)], start: usize, mut body: impl FnMut(usize)) {
    let count: usize = loops.iter().map(|l| l.0).product();
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, loops.len());
    let mut at = start;
    for _ in 0..count {
        body(at);
        for (k, (size, stride)) in loops.iter().enumerate().rev() {
            index[k] += 1;
            at += stride;
            if index[k] < *size {
                break;
            }
            index[k] = 0;
            at -= stride * size;
        }
    }
}
