//! Slice: a part of each axis, in steps.

use std::sync::Arc;

use crate::graph::Dim;

use super::int_list::IntList;
use super::{Declaration, Infer, OpError, Operator, Types};

/// `starts`, `ends`, `axes` and `steps` have one number for each axis that is cut. Negative positions
/// count from the back; positions outside are clamped.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    pub starts: IntList,
    pub ends: IntList,
    pub axes: IntList,
    pub steps: IntList,
}

/// The part of one axis: `count` positions from `start`, `step` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub start: usize,
    pub step: i64,
    pub count: usize,
}

impl Cut {
    /// What `start:end:step` selects of an axis of this length (`step` is not zero).
    pub fn new(start: i64, end: i64, step: i64, length: usize) -> Self {
        let n = length as i64;
        // With a negative step the last position is n - 1 and "before the first" is -1.
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let bound = |x: i64| (if x < 0 { x.saturating_add(n) } else { x }).clamp(low, high);
        let (start, end) = (bound(start), bound(end));
        let span = if step > 0 { end - start } else { start - end };
        let count = if span <= 0 { 0 } else { (span as u64 - 1) / step.unsigned_abs() + 1 };
        Cut { start: start.max(0) as usize, step, count: count as usize }
    }

    /// The whole axis.
    pub fn whole(length: usize) -> Self {
        Cut { start: 0, step: 1, count: length }
    }
}

/// The cut of every axis of `shape`.
pub fn cuts(
    shape: &[usize],
    starts: &[i64],
    ends: &[i64],
    axes: Option<&[i64]>,
    steps: Option<&[i64]>,
) -> Result<Vec<Cut>, OpError> {
    let mut cuts: Vec<Cut> = shape.iter().map(|&d| Cut::whole(d)).collect();
    let all: Vec<i64>;
    let axes = match axes {
        Some(axes) => axes,
        None => {
            all = (0..starts.len() as i64).collect();
            &all
        }
    };
    let same = starts.len() == ends.len()
        && starts.len() == axes.len()
        && steps.is_none_or(|steps| steps.len() == starts.len());
    if !same {
        return Err(OpError::Data(format!(
            "starts, ends, axes and steps have different lengths: {}, {}, {}, {}",
            starts.len(),
            ends.len(),
            axes.len(),
            steps.map_or(starts.len(), <[i64]>::len)
        )));
    }
    for (i, axis) in super::int_list::unique_axes(axes, shape.len())?.into_iter().enumerate() {
        let step = steps.map_or(1, |steps| steps[i]);
        if step == 0 {
            return Err(OpError::Data(format!("the step of axis {axis} is 0; it must not be")));
        }
        cuts[axis] = Cut::new(starts[i], ends[i], step, shape[axis]);
    }
    Ok(cuts)
}

impl Operator for Slice {
    fn infer(&self, cx: &mut Infer<'_>) -> Result<(), OpError> {
        let Some(shape) = cx.shape(0) else { return Ok(()) };
        let (Some(starts), Some(ends)) = (self.starts.dims(cx), self.ends.dims(cx)) else {
            return self.unknown_bounds(cx, shape);
        };
        let axes = if self.axes.given(cx) {
            match self.axes.axes(cx, shape.len())? {
                Some(axes) => axes,
                None => return self.unknown_bounds(cx, shape),
            }
        } else {
            (0..starts.len()).collect()
        };
        let steps = if self.steps.given(cx) {
            match self.steps.known(cx) {
                Some(steps) => steps,
                None => return self.unknown_bounds(cx, shape),
            }
        } else {
            vec![1; starts.len()]
        };
        for (list, count) in [(&self.ends, ends.len()), (&self.axes, axes.len()), (&self.steps, steps.len())]
        {
            if count != starts.len() {
                return Err(list.error(cx, format!("it has {count} numbers, starts has {}", starts.len())));
            }
        }
        let mut result = shape.to_vec();
        for (i, &axis) in axes.iter().enumerate() {
            if axis >= shape.len() {
                let reason = format!("it has {} numbers for an input of rank {}", axes.len(), shape.len());
                return Err(self.starts.error(cx, reason));
            }
            if steps[i] == 0 {
                return Err(self.steps.error(cx, "a step is 0; it must not be"));
            }
            result[axis] =
                cut_length(&starts[i], &ends[i], steps[i], &shape[axis]).unwrap_or_else(|| cx.unknown());
        }
        if let (1, Some(elements)) = (shape.len(), cx.ints(0)) {
            let bound = |d: &[Dim]| d.iter().map(Dim::known).collect::<Option<Vec<i64>>>();
            if let (Some(starts), Some(ends), [axis]) = (bound(&starts), bound(&ends), &axes[..]) {
                let cut = Cut::new(starts[0], ends[0], steps[0], elements.len());
                debug_assert_eq!(*axis, 0);
                let at = |k: usize| (cut.start as i64 + k as i64 * cut.step) as usize;
                cx.set_elements(0, (0..cut.count).map(|k| elements.get(at(k)).cloned()).collect());
            }
        }
        cx.set_shape(0, result);
        Ok(())
    }
}

impl Slice {
    /// The rank is known, and the axes that are not cut where the axes are known.
    fn unknown_bounds(&self, cx: &mut Infer<'_>, shape: &[Dim]) -> Result<(), OpError> {
        let axes = self.axes.axes(cx, shape.len())?;
        let result = (0..shape.len())
            .map(|i| match &axes {
                Some(axes) if !axes.contains(&i) => shape[i].clone(),
                _ => cx.unknown(),
            })
            .collect();
        cx.set_shape(0, result);
        Ok(())
    }
}

/// The length of `start:end:step` of a symbolic axis; dimensions are taken as non-negative.
fn cut_length(start: &Dim, end: &Dim, step: i64, length: &Dim) -> Option<Dim> {
    if let (Some(start), Some(end), Some(n)) = (start.known(), end.known(), length.known()) {
        return Some(Cut::new(start, end, step, usize::try_from(n).ok()?).count.into());
    }
    if step < 0 {
        // The whole axis reversed is the case that occurs.
        let from_last = start.known().is_some_and(|s| s == -1 || s >= i32::MAX as i64);
        let to_first = end.known().is_some_and(|e| e <= -(i32::MAX as i64));
        return (step == -1 && from_last && to_first).then(|| length.clone());
    }
    let start = clamp(start, length)?;
    let end = clamp(end, length)?;
    let span = end.sub(&start);
    let count = span.ceil_div(&Dim::Known(step));
    let never_negative = start == Dim::Known(0) || span.known().is_some_and(|s| s >= 0);
    Some(if never_negative { count } else { count.max_of(&Dim::Known(0)) })
}

/// A position clamped into `0..=length`, where at least one of the two is symbolic. `None` when it is
/// not known whether the position counts from the front or from the back.
fn clamp(position: &Dim, length: &Dim) -> Option<Dim> {
    let zero = Dim::Known(0);
    match position.known() {
        // "To the end" and "from the start", as exporters write them.
        Some(p) if p >= i32::MAX as i64 => Some(length.clone()),
        Some(p) if p <= -(i32::MAX as i64) => Some(zero),
        _ if length.sub(position).is_nonnegative() && position.is_nonnegative() => Some(position.clone()),
        _ if position.is_nonnegative() => Some(position.min_of(length)),
        _ if position.neg().is_nonnegative() => Some(length.add(position).max_of(&zero)),
        _ => None,
    }
}

pub(super) const DECLARATIONS: &[Declaration] = &[Declaration::new(
    "Slice",
    &[1, 10, 11, 13],
    "data:T, starts?:Tind, ends?:Tind, axes?:Tind, steps?:Tind -> output:T",
    &[("T", Types::TENSOR), ("Tind", Types::INDEX)],
    |a| {
        let steps = if a.opset() < 10 { IntList::Attribute("steps", None) } else { IntList::Input(4) };
        Ok(Arc::new(Slice {
            starts: IntList::required(a, "starts", 1, 10)?,
            ends: IntList::required(a, "ends", 2, 10)?,
            axes: IntList::read(a, "axes", 3, 10)?,
            steps,
        }))
    },
)
.shape_inputs(&[1, 2, 3, 4])];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_as_python_slices() {
        // len(range(n)[start:end:step]) and its first element, from Python.
        for (start, end, step, n, want) in [
            (0, 10, 1, 5, (0, 5)),
            (-3, -1, 1, 5, (2, 2)),
            (1, 5, 2, 5, (1, 2)),
            (-1, i64::MIN, -1, 5, (4, 5)),
            (i64::MAX, 0, -2, 5, (4, 2)),
            (3, 1, 1, 5, (3, 0)),
            (0, i64::MAX, 3, 0, (0, 0)),
        ] {
            let cut = Cut::new(start, end, step, n);
            assert_eq!((cut.start, cut.count), want, "{start}:{end}:{step} of {n}");
        }
    }

    #[test]
    fn symbolic_lengths() {
        let n = Dim::symbol("n");
        let k = Dim::Known;
        assert_eq!(cut_length(&k(0), &k(i64::MAX), 1, &n), Some(n.clone()));
        assert_eq!(cut_length(&k(-1), &k(i64::MIN), -1, &n), Some(n.clone()));
        let without_first = cut_length(&k(1), &k(i64::MAX), 1, &n).unwrap();
        assert_eq!(without_first.substitute(&|_| Some(7)), k(6));
        assert_eq!(without_first.substitute(&|_| Some(0)), k(0));
        let last = cut_length(&k(-1), &k(i64::MAX), 1, &n).unwrap();
        assert_eq!(last.substitute(&|_| Some(7)), k(1));
    }
}
