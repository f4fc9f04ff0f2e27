//! Integers that follow from where they stand: positions, and what exporters compute of them for masks.

use crate::graph::{Attribute, Dim, NodeId, ValueId};

use super::rewriter::Rewriter;

/// Nodes to look through.
const DEPTH: usize = 24;

/// An integer tensor whose elements are `start + Σ step · index`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Affine {
    pub(super) start: Dim,
    /// One for each axis; 0 where the axis has one place.
    pub(super) steps: Vec<Dim>,
}

impl Affine {
    pub(super) fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Affine> {
        Affine::within(rw, value, DEPTH)
    }

    fn within(rw: &Rewriter<'_>, value: ValueId, depth: usize) -> Option<Affine> {
        let shape = rw.shape(value)?;
        let found = match rw.constant(value) {
            Some(_) => Affine::of_constant(rw, value),
            None => match &rw.fact(value).elements {
                Some(elements) if elements.len() == 1 => Some(Affine::same(elements[0].clone(), shape.len())),
                _ => Affine::computed(rw, value, depth.checked_sub(1)?),
            },
        }?;
        let alone = |(step, dim): (Dim, &Dim)| if dim.known() == Some(1) { Dim::Known(0) } else { step };
        let steps = found.steps.into_iter().zip(shape).map(alone).collect::<Vec<_>>();
        (steps.len() == shape.len()).then_some(Affine { steps, ..found })
    }

    /// One number everywhere.
    fn same(start: Dim, rank: usize) -> Affine {
        Affine { start, steps: vec![Dim::Known(0); rank] }
    }

    /// The number that all elements are.
    fn everywhere(&self) -> Option<&Dim> {
        self.steps.iter().all(|step| *step == Dim::Known(0)).then_some(&self.start)
    }

    fn of_constant(rw: &Rewriter<'_>, value: ValueId) -> Option<Affine> {
        let tensor = rw.constant(value)?;
        let (elements, shape) = (tensor.to_ints()?, tensor.shape());
        let start = *elements.first()?;
        let mut steps = vec![0; shape.len()];
        let mut stride = 1;
        for (axis, &size) in shape.iter().enumerate().rev() {
            steps[axis] = if size > 1 { elements[stride].checked_sub(start)? } else { 0 };
            stride *= size;
        }
        let expected = |mut at: usize| {
            let mut x = start;
            for (&size, &step) in shape.iter().zip(&steps).rev() {
                x = x.wrapping_add(step.wrapping_mul((at % size) as i64));
                at /= size;
            }
            x
        };
        let follows = elements.iter().enumerate().all(|(at, &x)| expected(at) == x);
        let steps = steps.into_iter().map(Dim::Known).collect();
        follows.then_some(Affine { start: Dim::Known(start), steps })
    }

    fn computed(rw: &Rewriter<'_>, value: ValueId, depth: usize) -> Option<Affine> {
        let id = rw.producer(value)?;
        let shape = rw.shape(value)?;
        let input = |i: usize| Affine::within(rw, rw.input(id, i)?, depth);
        let is = |ops: &[&str]| ops.iter().any(|op| rw.is(id, op));
        if is(&["Range"]) {
            let (start, delta) = (input(0)?, input(2)?);
            return Some(Affine { start: start.start, steps: vec![delta.start] });
        }
        if is(&["Cast"]) {
            if let Some(truth) = truth_within(rw, rw.input(id, 0)?, depth) {
                return Some(Affine::same(Dim::from(i64::from(truth)), shape.len()));
            }
            let integer = |value| rw.element_type(value).is_some_and(|ty| ty.is_signed_integer());
            return (integer(rw.input(id, 0)?) && integer(value)).then(|| input(0))?;
        }
        if is(&["Unsqueeze", "Squeeze", "Reshape"]) {
            let x = input(0)?;
            let from = rw.shape(rw.input(id, 0)?)?;
            if let Some(all) = x.everywhere() {
                return Some(Affine::same(all.clone(), shape.len()));
            }
            let not_one = |dim: &&Dim| dim.known() != Some(1);
            if !from.iter().filter(not_one).eq(shape.iter().filter(not_one)) {
                return None;
            }
            let mut steps = from.iter().zip(x.steps).filter(|(dim, _)| not_one(dim)).map(|(_, step)| step);
            let mut next = |dim: &Dim| if not_one(&dim) { steps.next() } else { Some(Dim::Known(0)) };
            return Some(Affine {
                start: x.start,
                steps: shape.iter().map(&mut next).collect::<Option<_>>()?,
            });
        }
        if is(&["Expand"]) {
            return input(0)?.broadcast(shape.len());
        }
        if is(&["Slice"]) {
            let (mut x, ints) = (input(0)?, |i: usize| rw.constant(rw.input(id, i)?)?.to_ints());
            let steps = rw.input(id, 4).is_none() || ints(4)?.iter().all(|&step| step == 1);
            for (start, axis) in ints(1)?.into_iter().zip(ints(3)?) {
                let axis = if axis < 0 { axis + shape.len() as i64 } else { axis };
                let step = x.steps.get(usize::try_from(axis).ok()?)?;
                x.start = x.start.add(&step.mul(&Dim::Known(start)));
                // Counted from the end is another matter.
                (start >= 0).then_some(())?;
            }
            return steps.then_some(x);
        }
        if is(&["Concat"]) {
            return Affine::concatenated(rw, id, depth);
        }
        if is(&["CumSum"]) {
            let zero = input(0)?;
            return (zero.everywhere()? == &Dim::Known(0)).then_some(zero);
        }
        if is(&["Gather"]) {
            let all = input(0)?.everywhere()?.clone();
            return Some(Affine::same(all, shape.len()));
        }
        if is(&["GatherND"]) {
            let data = input(0)?;
            if let Some(all) = data.everywhere() {
                return Some(Affine::same(all.clone(), shape.len()));
            }
            let components = components_within(rw, id, depth)?;
            (components.len() == data.steps.len()).then_some(())?;
            let mut all = Affine::same(data.start.clone(), shape.len());
            for (component, step) in components.iter().zip(&data.steps) {
                all = all.plus(&component.times(step), 1)?;
            }
            return Some(all);
        }
        let (a, b) = (input(0)?.broadcast(shape.len())?, input(1)?.broadcast(shape.len())?);
        if is(&["Add"]) {
            return a.plus(&b, 1);
        }
        if is(&["Sub"]) {
            return a.plus(&b, -1);
        }
        if !is(&["Mul"]) {
            return None;
        }
        match (a.everywhere(), b.everywhere()) {
            (Some(factor), _) => Some(b.times(factor)),
            (_, Some(factor)) => Some(a.times(factor)),
            _ => None,
        }
    }

    /// Parts along an axis of which each goes on where the one before ends; the first has one place.
    fn concatenated(rw: &Rewriter<'_>, id: NodeId, depth: usize) -> Option<Affine> {
        let [Some(first), Some(second)] = rw.node(id).inputs[..] else { return None };
        let (a, b) = (Affine::within(rw, first, depth)?, Affine::within(rw, second, depth)?);
        let axis = match rw.node(id).attributes.get("axis") {
            Some(&Attribute::Int(axis)) if axis < 0 => axis + b.steps.len() as i64,
            Some(&Attribute::Int(axis)) => axis,
            _ => return None,
        };
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < b.steps.len())?;
        let (length, rest) = (&rw.shape(first)?[axis], &rw.shape(second)?[axis]);
        let one = Dim::Known(1);
        // Of `min(1, n)` places before n, there is one or there are none at all.
        let single = *length == one || *length == one.min_of(rest) || *length == rest.min_of(&one);
        let step = &b.steps[axis];
        let alike = a.steps.iter().zip(&b.steps).enumerate().all(|(i, (a, b))| i == axis || a == b);
        let goes_on = a.start.add(step) == b.start;
        (single && alike && goes_on).then(|| Affine { start: a.start, ..b.clone() })
    }

    fn broadcast(mut self, rank: usize) -> Option<Affine> {
        let more = rank.checked_sub(self.steps.len())?;
        self.steps.splice(0..0, std::iter::repeat_n(Dim::Known(0), more));
        Some(self)
    }

    fn plus(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let other = other.times(&Dim::Known(factor));
        let steps = self.steps.iter().zip(&other.steps).map(|(a, b)| a.add(b)).collect();
        let same = self.steps.len() == other.steps.len();
        same.then(|| Affine { start: self.start.add(&other.start), steps })
    }

    fn times(&self, factor: &Dim) -> Affine {
        Affine {
            start: self.start.mul(factor),
            steps: self.steps.iter().map(|step| step.mul(factor)).collect(),
        }
    }
}

/// The last axis of GatherND's indices, an element each, without that axis.
pub(super) fn components(rw: &Rewriter<'_>, id: NodeId) -> Option<Vec<Affine>> {
    components_within(rw, id, DEPTH)
}

fn components_within(rw: &Rewriter<'_>, id: NodeId, depth: usize) -> Option<Vec<Affine>> {
    if !matches!(rw.node(id).attributes.get("batch_dims"), None | Some(Attribute::Int(0))) {
        return None;
    }
    let indices = rw.input(id, 1)?;
    let concat = rw.maker(indices, "Concat")?;
    let rank = rw.shape(indices)?.len();
    let last = rank as i64 - 1;
    match rw.node(concat).attributes.get("axis") {
        Some(Attribute::Int(axis)) if *axis == -1 || *axis == last => {}
        _ => return None,
    }
    let component = |&part: &Option<ValueId>| {
        let part = part.filter(|&part| rw.shape(part).and_then(<[Dim]>::last) == Some(&Dim::Known(1)))?;
        let mut found = Affine::within(rw, part, depth)?;
        found.steps.pop();
        Some(found)
    };
    rw.node(concat).inputs.iter().map(component).collect()
}

/// What all elements of a condition are, where that follows from positions alone.
pub(super) fn truth(rw: &Rewriter<'_>, value: ValueId) -> Option<bool> {
    truth_within(rw, value, DEPTH)
}

fn truth_within(rw: &Rewriter<'_>, value: ValueId, depth: usize) -> Option<bool> {
    if let Some(tensor) = rw.constant(value) {
        let bytes = tensor.buffer()?.bytes();
        let is_bool = tensor.ty() == crate::tensor::ElementType::Bool;
        let first = *bytes.first().filter(|_| is_bool)? != 0;
        return bytes.iter().all(|&x| (x != 0) == first).then_some(first);
    }
    let depth = depth.checked_sub(1)?;
    let id = rw.producer(value)?;
    let input = |i: usize| truth_within(rw, rw.input(id, i)?, depth);
    if ["Expand", "Unsqueeze", "Squeeze", "Reshape", "Gather", "GatherND"].iter().any(|op| rw.is(id, op)) {
        return input(0);
    }
    if rw.is(id, "Not") {
        return input(0).map(|truth| !truth);
    }
    if rw.is(id, "And") {
        return match (input(0), input(1)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
    }
    let difference = difference_within(rw, id, depth)?;
    let least = |from: i64| {
        let steps = difference.steps.iter().all(Dim::is_nonnegative);
        (steps && difference.start.sub(&Dim::Known(from)).is_nonnegative()).then_some(true)
    };
    if rw.is(id, "Equal") {
        return difference.everywhere()?.known().map(|difference| difference == 0);
    }
    // The difference is that of the larger and the smaller one.
    if rw.is(id, "GreaterOrEqual") || rw.is(id, "LessOrEqual") { least(0) } else { least(1) }
}

/// Of a comparison, what is to be larger less what is to be smaller.
pub(super) fn difference(rw: &Rewriter<'_>, id: NodeId) -> Option<Affine> {
    difference_within(rw, id, DEPTH)
}

fn difference_within(rw: &Rewriter<'_>, id: NodeId, depth: usize) -> Option<Affine> {
    let is = |ops: &[&str]| ops.iter().any(|op| rw.is(id, op));
    if !is(&["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]) {
        return None;
    }
    let (a, b) = (rw.input(id, 0)?, rw.input(id, 1)?);
    let rank = rw.shape(a)?.len().max(rw.shape(b)?.len());
    let affine = |value| Affine::within(rw, value, depth)?.broadcast(rank);
    let (a, b) = (affine(a)?, affine(b)?);
    if is(&["Less", "LessOrEqual"]) { b.plus(&a, -1) } else { a.plus(&b, -1) }
}
