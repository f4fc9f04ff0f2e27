//! Values that are others seen in another way: reshaped, transposed, a part of the columns. Whoever reads by strides
//! needs no copy of them.

use crate::graph::{Attribute, Dim, NodeId, ValueId};

use super::rewriter::Rewriter;

/// A value as its source has it in memory.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct View {
    pub(super) source: ValueId,
    /// The element of the source's last axis that comes first.
    pub(super) offset: usize,
    /// What each dimension walks through, the outermost first.
    pub(super) dims: Vec<Vec<Walk>>,
}

/// A walk along an axis of the source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Walk {
    pub(super) steps: Dim,
    pub(super) axis: usize,
    /// Elements of the axis that a step passes.
    pub(super) stride: usize,
}

impl View {
    /// The value through as many nodes as possible. Products with constants of one element are passed too where
    /// `scale` takes their factors.
    pub(super) fn of(rw: &Rewriter<'_>, value: ValueId, scale: &mut Option<f64>) -> Option<View> {
        let through = rw.producer(value).and_then(|id| View::through(rw, id, value, scale));
        through.or_else(|| View::whole(rw, value))
    }

    fn whole(rw: &Rewriter<'_>, source: ValueId) -> Option<View> {
        let walks = |(axis, steps): (usize, &Dim)| match steps.known() {
            Some(1) => vec![],
            _ => vec![Walk { steps: steps.clone(), axis, stride: 1 }],
        };
        Some(View { source, offset: 0, dims: rw.shape(source)?.iter().enumerate().map(walks).collect() })
    }

    fn through(rw: &Rewriter<'_>, id: NodeId, value: ValueId, scale: &mut Option<f64>) -> Option<View> {
        if rw.is(id, "Mul") || rw.is(id, "Div") {
            let before = (*scale)?;
            let (x, factor) = factor(rw, id).filter(|(x, _)| rw.shape(*x) == rw.shape(value))?;
            *scale = Some(before * factor);
            return View::of(rw, x, scale);
        }
        let x = rw.input(id, 0)?;
        let shape = rw.shape(value)?;
        let mut rest = *scale;
        let mut view = View::of(rw, x, &mut rest)?;
        if ["Reshape", "Flatten", "Squeeze", "Unsqueeze"].iter().any(|op| rw.is(id, op)) {
            // Rows of all samples together are no longer known by their samples.
            (rw.shape(view.source)?.len() > 2).then_some(())?;
            view.dims = regrouped(view.dims.concat(), shape)?;
        } else if rw.is(id, "Transpose") {
            let perm = match rw.node(id).attributes.get("perm") {
                Some(Attribute::Ints(perm)) => perm.clone(),
                _ => (0..view.dims.len() as i64).rev().collect(),
            };
            let axis = |&p: &i64| view.dims.get(usize::try_from(p).ok()?).cloned();
            view.dims = perm.iter().map(axis).collect::<Option<_>>()?;
        } else if rw.is(id, "Split") {
            let axis = rw.axis(id, x, 0)?;
            let outputs = rw.node(id).outputs.clone();
            let at = outputs.iter().position(|&output| output == Some(value))?;
            let sizes = outputs.iter().map(|output| rw.shape((*output)?)?.get(axis)?.known());
            let sizes: Vec<i64> = sizes.take(at + 1).collect::<Option<_>>()?;
            view.narrow(rw, axis, sizes[..at].iter().sum(), sizes[at])?;
        } else if rw.is(id, "Slice") {
            let ints = |i: usize| rw.constant(rw.input(id, i)?)?.to_ints();
            let steps = rw.input(id, 4).is_none() || ints(4)?.iter().all(|&step| step == 1);
            let (starts, axes) = (ints(1)?, ints(3)?);
            for (&start, &axis) in starts.iter().zip(&axes).filter(|_| steps) {
                let axis = rank_axis(axis, shape.len())?;
                let all = rw.shape(x)?[axis].known()?;
                let start = if start < 0 { start + all } else { start }.clamp(0, all);
                view.narrow(rw, axis, start, shape[axis].known()?)?;
            }
            steps.then_some(())?;
        } else if rw.is(id, "Gather") {
            let index = rw.input(id, 1).filter(|&index| rw.shape(index).is_some_and(<[Dim]>::is_empty))?;
            let [index] = rw.constant(index)?.to_ints()?[..] else { return None };
            let axis = rw.axis(id, x, 0)?;
            let all = rw.shape(x)?[axis].known()?;
            view.narrow(rw, axis, if index < 0 { index + all } else { index }, 1)?;
            view.dims.remove(axis);
        } else {
            return None;
        }
        *scale = rest;
        Some(view)
    }

    /// Keeps `count` places of a dimension from `start` on.
    fn narrow(&mut self, rw: &Rewriter<'_>, dim: usize, start: i64, count: i64) -> Option<()> {
        let last = rw.shape(self.source)?.len().checked_sub(1)?;
        let (mut start, count) = (usize::try_from(start).ok()?, usize::try_from(count).ok()?);
        let mut kept = Vec::new();
        let mut walks = self.dims.get(dim)?.clone().into_iter().collect::<std::collections::VecDeque<_>>();
        while let Some(walk) = walks.pop_front() {
            let inner: i64 = walks.iter().map(|walk| walk.steps.known()).product::<Option<_>>()?;
            let inner = usize::try_from(inner).ok().filter(|&inner| inner > 0)?;
            if start == 0 && walk.steps.known() == i64::try_from(count / inner).ok() && count % inner == 0 {
                kept.push(walk);
                kept.extend(walks);
                self.dims[dim] = kept;
                return Some(());
            }
            if walk.axis != last {
                return None;
            }
            self.offset += start / inner * walk.stride;
            if start.is_multiple_of(inner) && count.is_multiple_of(inner) {
                if count > inner {
                    kept.push(Walk { steps: Dim::from(count / inner), ..walk });
                }
                kept.extend(walks);
                self.dims[dim] = kept;
                return Some(());
            }
            // Within one place of this walk.
            if start / inner != (start + count - 1) / inner {
                return None;
            }
            start %= inner;
        }
        (count == 1).then(|| self.dims[dim] = kept)
    }
}

/// The walks one after another as those of dimensions.
pub(super) fn regrouped(walks: Vec<Walk>, shape: &[Dim]) -> Option<Vec<Vec<Walk>>> {
    let mut rest: std::collections::VecDeque<Walk> = walks.into();
    let mut dims = Vec::with_capacity(shape.len());
    for dim in shape {
        let (mut walked, mut group) = (Dim::Known(1), Vec::new());
        while walked != *dim {
            let walk = rest.pop_front()?;
            let wanted = dim.exact_div(&walked)?;
            if wanted == walk.steps || wanted.exact_div(&walk.steps).is_some() {
                walked = walked.mul(&walk.steps);
                group.push(walk);
                continue;
            }
            // The outer part of the walk belongs here.
            let (outer, all) = (wanted.known()?, walk.steps.known()?);
            let inner = (outer > 0 && all % outer == 0).then(|| all / outer)?;
            let stride = walk.stride * usize::try_from(inner).ok()?;
            rest.push_front(Walk { steps: Dim::Known(inner), ..walk });
            group.push(Walk { steps: Dim::Known(outer), axis: walk.axis, stride });
            walked = dim.clone();
        }
        dims.push(joined(group));
    }
    rest.is_empty().then_some(dims)
}

/// Neighbours that are one walk become one.
fn joined(walks: Vec<Walk>) -> Vec<Walk> {
    let mut found: Vec<Walk> = Vec::new();
    for walk in walks {
        match (found.last_mut(), walk.steps.known()) {
            (Some(last), Some(steps))
                if last.axis == walk.axis && last.stride == walk.stride * steps as usize =>
            {
                *last = Walk { steps: last.steps.mul(&walk.steps), ..walk };
            }
            _ => found.push(walk),
        }
    }
    found
}

fn factor(rw: &Rewriter<'_>, id: NodeId) -> Option<(ValueId, f64)> {
    let usable = |factor: &f64| factor.is_finite() && *factor != 0.0;
    if rw.is(id, "Div") {
        return Some((rw.input(id, 0)?, 1.0 / rw.scalar(rw.input(id, 1)?).filter(usable)?));
    }
    rw.operands(id).into_iter().find_map(|[x, c]| Some((x, rw.scalar(c).filter(usable)?)))
}

fn rank_axis(axis: i64, rank: usize) -> Option<usize> {
    usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&axis| axis < rank)
}

impl Rewriter<'_> {
    /// The attribute `axis` of a node, for a value of known rank.
    fn axis(&self, id: NodeId, x: ValueId, default: i64) -> Option<usize> {
        let axis = match self.node(id).attributes.get("axis") {
            Some(Attribute::Int(axis)) => *axis,
            _ => default,
        };
        rank_axis(axis, self.shape(x)?.len())
    }
}
