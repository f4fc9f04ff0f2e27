//! How a tensor is read to reduce it.

/// Kept and reduced axes; neighbouring axes of one kind are merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Layout {
    /// Kept axes as (size, stride), outermost first, without the innermost of all when it is kept.
    pub(super) kept: Vec<(usize, usize)>,
    pub(super) reduced: Vec<(usize, usize)>,
    /// The size of the innermost axis when that is kept.
    pub(super) row: Option<usize>,
    /// Elements that become one.
    pub(in super::super) count: usize,
    /// Elements that stay.
    pub(in super::super) outputs: usize,
}

impl Layout {
    pub(in super::super) fn new(shape: &[usize], reduced: &[bool]) -> Self {
        // Innermost first: (size, stride, reduced).
        let mut groups: Vec<(usize, usize, bool)> = Vec::new();
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
        let of = |kind: bool| -> usize {
            shape.iter().zip(reduced).filter(|(_, r)| **r == kind).map(|(d, _)| d).product()
        };
        let (count, outputs) = (of(true), of(false));
        let row = groups.first().filter(|g| !g.2).map(|g| g.0);
        let behind = usize::from(row.is_some());
        let loops = |kind: bool, skip: usize| {
            groups.iter().skip(skip).rev().filter(|g| g.2 == kind).map(|g| (g.0, g.1)).collect()
        };
        Layout { kept: loops(false, behind), reduced: loops(true, 0), row, count, outputs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_merged() {
        for (shape, reduced, want) in [
            (vec![2, 3, 4], [false, true, true], (vec![(2, 12)], vec![(12, 1)], None)),
            (vec![2, 3, 4], [true, true, false], (vec![], vec![(6, 4)], Some(4))),
            (vec![2, 3, 4], [true, false, true], (vec![(3, 4)], vec![(2, 12), (4, 1)], None)),
            (vec![2, 3, 4], [false, true, false], (vec![(2, 12)], vec![(3, 4)], Some(4))),
            (vec![2, 1, 4], [false, true, false], (vec![], vec![], Some(8))),
            (vec![1, 1, 1], [true, true, true], (vec![], vec![], None)),
        ] {
            let got = Layout::new(&shape, &reduced);
            assert_eq!((got.kept, got.reduced, got.row), want, "{shape:?} {reduced:?}");
        }
    }
}
