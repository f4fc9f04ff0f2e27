//! Walking over several tensors that broadcast to one shape.

use std::ops::Range;

use smallvec::SmallVec;

use crate::ops::OpError;

/// How `N` row-major tensors are read while their broadcast shape is written front to back.
///
/// Dimensions that all tensors treat alike are merged, so that what is left is a few outer loops
/// around long runs in which each tensor either advances or stands still.
#[derive(Debug)]
pub(crate) struct Broadcast<const N: usize> {
    /// Sizes of the loops, outermost first, with the step of each tensor in elements.
    outer: SmallVec<[(usize, [usize; N]); 6]>,
    /// The length of a run.
    run: usize,
    /// Whether a tensor advances inside a run.
    advances: [bool; N],
}

impl<const N: usize> Broadcast<N> {
    /// `shapes` must broadcast to `output`; inference checked that.
    pub(crate) fn new(output: &[usize], shapes: [&[usize]; N]) -> Self {
        // Innermost first, as (size, steps).
        let mut loops: SmallVec<[(usize, [usize; N]); 6]> = SmallVec::new();
        let mut strides = [1usize; N];
        for (back, &size) in output.iter().rev().enumerate() {
            let mut steps = [0usize; N];
            for (t, shape) in shapes.iter().enumerate() {
                let own = shape.len().checked_sub(back + 1).map_or(1, |k| shape[k]);
                if own != 1 {
                    steps[t] = strides[t];
                    strides[t] *= own;
                }
            }
            if size == 1 {
                continue;
            }
            match loops.last_mut() {
                Some((inner, inner_steps)) if (0..N).all(|t| steps[t] == inner_steps[t] * *inner) => {
                    *inner *= size;
                }
                _ => loops.push((size, steps)),
            }
        }
        if loops.is_empty() {
            loops.push((1, [0; N]));
        }
        let (run, steps) = loops.remove(0);
        loops.reverse();
        Broadcast { outer: loops, run, advances: steps.map(|s| s != 0) }
    }

    /// Calls `body` with the pieces of runs that make up the output elements `range`, in order: the
    /// output elements, and for each tensor the elements it reads (a single one where it does not
    /// advance).
    #[inline(always)]
    pub(crate) fn each(&self, range: Range<usize>, mut body: impl FnMut(Range<usize>, [Range<usize>; N])) {
        if range.is_empty() {
            return;
        }
        // The run is not empty either: the range lies inside the output.
        let mut at = range.start;
        let mut row = at / self.run;
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer.len());
        let mut offsets = [0usize; N];
        for (k, (size, steps)) in self.outer.iter().enumerate().rev() {
            index[k] = row % size;
            row /= size;
            (0..N).for_each(|t| offsets[t] += index[k] * steps[t]);
        }
        let mut inside = at % self.run;
        while at < range.end {
            let count = (self.run - inside).min(range.end - at);
            let reads = std::array::from_fn(|t| match self.advances[t] {
                true => offsets[t] + inside..offsets[t] + inside + count,
                false => offsets[t]..offsets[t] + 1,
            });
            body(at..at + count, reads);
            at += count;
            inside = 0;
            self.next_row(&mut index, &mut offsets);
        }
    }

    #[inline(always)]
    fn next_row(&self, index: &mut [usize], offsets: &mut [usize; N]) {
        for (k, (size, steps)) in self.outer.iter().enumerate().rev() {
            index[k] += 1;
            if index[k] < *size {
                (0..N).for_each(|t| offsets[t] += steps[t]);
                return;
            }
            index[k] = 0;
            (0..N).for_each(|t| offsets[t] -= steps[t] * (size - 1));
        }
    }
}

/// The shape that shapes broadcast to, for kernels whose inputs no inference saw.
pub(crate) fn shape_of(shapes: &[&[usize]]) -> Result<Vec<usize>, OpError> {
    let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (r, &d) in result.iter_mut().rev().zip(shape.iter().rev()) {
            match (*r, d) {
                (_, 1) => {}
                (1, d) => *r = d,
                (r, d) if r == d => {}
                (r, d) => {
                    return Err(OpError::Data(format!(
                        "shapes {shapes:?} do not broadcast: {r} and {d} differ"
                    )));
                }
            }
        }
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The flat index that each output element reads of a tensor, by the definition.
    fn reads(output: &[usize], shape: &[usize]) -> Vec<usize> {
        let count: usize = output.iter().product();
        (0..count)
            .map(|mut i| {
                let (mut at, mut stride) = (0, 1);
                for (back, &size) in output.iter().rev().enumerate() {
                    let own = shape.len().checked_sub(back + 1).map_or(1, |k| shape[k]);
                    if own != 1 {
                        at += i % size * stride;
                        stride *= own;
                    }
                    i /= size;
                }
                at
            })
            .collect()
    }

    #[test]
    fn walks_like_the_definition() {
        let cases: &[(&[usize], &[usize], &[usize])] = &[
            (&[], &[], &[]),
            (&[6], &[6], &[1]),
            (&[2, 3, 4], &[2, 3, 4], &[2, 3, 4]),
            (&[2, 3, 4], &[3, 1], &[2, 1, 4]),
            (&[2, 3, 4], &[4], &[2, 3, 4]),
            (&[2, 1, 4, 5], &[1, 1, 4, 5], &[2, 1, 1, 1]),
            (&[3, 2, 5, 2], &[2, 1, 2], &[3, 1, 5, 1]),
            (&[2, 0, 4], &[4], &[2, 0, 1]),
        ];
        for (output, a, b) in cases {
            let walk = Broadcast::<2>::new(output, [a, b]);
            let (want_a, want_b) = (reads(output, a), reads(output, b));
            let count = want_a.len();
            for (start, end) in [(0, count), (count / 3, count / 2), (count.min(1), count)] {
                let mut next = start;
                walk.each(start..end, |out, [ra, rb]| {
                    assert_eq!(out.start, next);
                    next = out.end;
                    for (i, o) in out.enumerate() {
                        assert_eq!(
                            ra.start + if ra.len() > 1 { i } else { 0 },
                            want_a[o],
                            "{output:?} {a:?}"
                        );
                        assert_eq!(
                            rb.start + if rb.len() > 1 { i } else { 0 },
                            want_b[o],
                            "{output:?} {b:?}"
                        );
                    }
                });
                assert_eq!(next, end.max(start));
            }
        }
        assert!(Broadcast::<2>::new(&[4, 5], [&[4, 5], &[4, 5]]).outer.is_empty());
    }
}
