//! Values whose elements are those of another value in another order, taken as units of neighbours that stay
//! together: where each unit comes from, through slices, joins and transpositions.

use std::collections::HashMap;

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::tensor::{Tensor, Value};

use super::rewriter::Rewriter;

/// Nodes that one order may lead through, and units that are followed.
const MOST_NODES: usize = 32;
const MOST_UNITS: usize = 1 << 18;
/// Elements of a unit at least: fewer are no neighbours worth to speak of.
const LEAST: i64 = 8;

/// Operators that change a shape alone.
const SHAPES: [&str; 5] = ["Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"];
/// Operators that put elements to other places.
const MOVES: [&str; 5] = ["Transpose", "Slice", "Concat", "Split", "Gather"];

/// A value as units of `source`.
pub(super) struct Units {
    pub(super) source: ValueId,
    /// The unit of the source that each unit is. They count within a sample where the size of the batch is not
    /// known.
    pub(super) places: Vec<i32>,
    /// Units of the source.
    pub(super) count: usize,
    /// Elements of a unit.
    pub(super) elements: usize,
    /// Whether the first axis of the source is a batch of unknown size.
    pub(super) batched: bool,
    /// What leads to the value, from the source on.
    nodes: Vec<NodeId>,
}

impl Units {
    /// The value in units of the furthest value above it that it is made of.
    pub(super) fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Units> {
        let mut above = Vec::new();
        let mut at = value;
        while let Some(id) = rw.producer(at).filter(|&id| above.len() < MOST_NODES && is_move(rw, id)) {
            at = rw.input(id, 0)?;
            above.push(at);
        }
        above.into_iter().rev().find_map(|source| Self::from(rw, value, source))
    }

    fn from(rw: &Rewriter<'_>, value: ValueId, source: ValueId) -> Option<Units> {
        let last = |value: ValueId| rw.shape(value)?.last()?.known().filter(|&n| n > 0);
        let elements = common_divisor(last(source)?, last(value)?);
        let shape = rw.shape(source)?;
        let batched = shape.iter().any(|d| d.known().is_none());
        let batch = if batched { shape.first()?.clone() } else { Dim::Known(1) };
        let elements = usize::try_from(elements).ok().filter(|_| elements >= LEAST)?;
        let mut walk = Walk { rw, elements, batch, known: HashMap::new(), nodes: Vec::new() };
        let dims = walk.dims(source)?;
        let count = dims.iter().product::<usize>();
        if count > MOST_UNITS {
            return None;
        }
        let numbers: Vec<i32> = (0..count as i32).collect();
        walk.known.insert(source, Tensor::from_slice(&dims, &numbers).ok()?);
        let places = walk.places(value)?.view().slice::<i32>().to_vec();
        Some(Units { source, places, count, elements, batched, nodes: walk.nodes })
    }

    /// Whether every unit is where it was.
    pub(super) fn is_same(&self) -> bool {
        self.places.len() == self.count && self.places.iter().enumerate().all(|(i, &p)| p == i as i32)
    }

    /// Whether each unit is there once.
    pub(super) fn is_permutation(&self) -> bool {
        let mut seen = vec![false; self.count];
        self.places.iter().for_each(|&p| seen[p as usize] = true);
        self.places.len() == self.count && seen.iter().all(|&seen| seen)
    }

    /// The nodes that move elements and that nobody needs once the value, the last of their outputs, has lost
    /// `uses` of its uses.
    pub(super) fn spared(&self, rw: &Rewriter<'_>, value: ValueId, uses: usize) -> usize {
        let mut uses = HashMap::from([(value, uses)]);
        let mut spared = 0;
        for &id in self.nodes.iter().rev() {
            let unused = |value: &ValueId| uses.get(value).copied().unwrap_or(0) == rw.uses(*value);
            if !rw.node(id).outputs.iter().flatten().all(unused) {
                continue;
            }
            spared += usize::from(MOVES.iter().any(|op| rw.is(id, op)));
            for &input in rw.node(id).inputs.iter().flatten() {
                *uses.entry(input).or_default() += 1;
            }
        }
        spared
    }

    /// The order as axes, outermost first, each with its units and the units of the source that a step passes.
    pub(super) fn axes(&self) -> Option<Vec<(usize, usize)>> {
        let mut axes: Vec<(usize, usize)> = Vec::new();
        let mut inner = 1;
        while inner < self.places.len() {
            let place = |i: usize| self.places.get(i * inner).map(|&p| i64::from(p));
            let (first, step) = (place(0)?, place(1)? - place(0)?);
            let along = |&i: &usize| place(i) == Some(first + step * i as i64);
            let length = (1..).take_while(along).count() + 1;
            axes.push((length, usize::try_from(step).ok().filter(|&step| step > 0)?));
            inner *= length;
        }
        axes.reverse();
        let right = self.places.iter().enumerate().all(|(i, &place)| {
            let mut rest = i;
            let back = axes.iter().rev().map(|&(length, step)| {
                let at = rest % length * step;
                rest /= length;
                at
            });
            back.sum::<usize>() == place as usize
        });
        (inner == self.places.len() && right).then_some(axes)
    }
}

fn is_move(rw: &Rewriter<'_>, id: NodeId) -> bool {
    SHAPES.iter().chain(&MOVES).any(|op| rw.is(id, op))
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

struct Walk<'a> {
    rw: &'a Rewriter<'a>,
    elements: usize,
    batch: Dim,
    /// The places of the units of values.
    known: HashMap<ValueId, Tensor>,
    nodes: Vec<NodeId>,
}

impl Walk<'_> {
    /// A value's dimensions in units, of one sample: the innermost ones are divided until they make a unit.
    fn dims(&self, value: ValueId) -> Option<Vec<usize>> {
        let mut shape = self.rw.shape(value)?.to_vec();
        let first = shape.first_mut()?;
        *first = first.exact_div(&self.batch)?;
        let dims = shape.iter().map(|d| usize::try_from(d.known()?).ok().filter(|&d| d > 0));
        let mut dims: Vec<usize> = dims.collect::<Option<_>>()?;
        let mut rest = self.elements;
        for dim in dims.iter_mut().rev() {
            let part = common_divisor(*dim as i64, rest as i64) as usize;
            if part != rest && part != *dim {
                return None;
            }
            *dim /= part;
            rest /= part;
        }
        (rest == 1).then_some(dims)
    }

    fn places(&mut self, value: ValueId) -> Option<Tensor> {
        if let Some(known) = self.known.get(&value) {
            return Some(known.clone());
        }
        let rw = self.rw;
        let id = rw.producer(value).filter(|&id| self.nodes.len() < MOST_NODES && is_move(rw, id))?;
        let dims = self.dims(value)?;
        let x = rw.input(id, 0)?;
        let found = if SHAPES.iter().any(|op| rw.is(id, op)) {
            self.places(x)?.reshaped(&dims)?
        } else {
            self.moved(id, x, value)?
        };
        if found.shape() != dims {
            return None;
        }
        if !self.nodes.contains(&id) {
            self.nodes.push(id);
        }
        self.known.insert(value, found.clone());
        Some(found)
    }

    /// What a node that moves elements makes of the places.
    fn moved(&mut self, id: NodeId, x: ValueId, value: ValueId) -> Option<Tensor> {
        let rw = self.rw;
        let node = rw.node(id);
        self.keeps_units(id, x, value)?;
        let data = if rw.is(id, "Concat") { node.inputs.len() } else { 1 };
        let mut inputs = Vec::new();
        for (i, &input) in node.inputs.iter().enumerate() {
            inputs.push(match input {
                Some(input) if i < data => Some(Value::Tensor(self.places(input)?)),
                Some(input) => Some(Value::Tensor(rw.constant(input)?.as_ref().clone())),
                None => None,
            });
        }
        let inputs: Vec<Option<&Value>> = inputs.iter().map(Option::as_ref).collect();
        let at = node.outputs.iter().position(|&output| output == Some(value))?;
        match rw.evaluate(node, &inputs)?.into_iter().nth(at)? {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether the node moves units as wholes, and nothing between samples.
    fn keeps_units(&self, id: NodeId, x: ValueId, value: ValueId) -> Option<()> {
        let rw = self.rw;
        let (before, shape) = (self.dims(x)?, rw.shape(x)?);
        // Axes that are units or parts of them, and samples.
        let fixed = |axis: usize| {
            let samples = axis == 0 && self.batch != Dim::Known(1);
            samples || shape.get(axis).and_then(Dim::known) != before.get(axis).map(|&d| d as i64)
        };
        let axis = |default: i64| {
            let axis = match rw.node(id).attributes.get("axis") {
                Some(Attribute::Int(axis)) => *axis,
                _ => default,
            };
            usize::try_from(if axis < 0 { axis + shape.len() as i64 } else { axis }).ok()
        };
        let kept = if rw.is(id, "Transpose") {
            let perm = match rw.node(id).attributes.get("perm") {
                Some(Attribute::Ints(perm)) => perm.clone(),
                _ => (0..shape.len() as i64).rev().collect(),
            };
            perm.iter().enumerate().all(|(to, &from)| !fixed(to) || from == to as i64)
        } else if rw.is(id, "Slice") {
            // A step back would turn an axis that keeps its length.
            let steps = rw.input(id, 4).map(|steps| rw.constant(steps)?.to_ints());
            let forward = steps.is_none_or(|s| s.is_some_and(|s| s.iter().all(|&step| step > 0)));
            let after = rw.shape(value)?;
            forward && (0..shape.len()).all(|axis| !fixed(axis) || after.get(axis) == shape.get(axis))
        } else if rw.is(id, "Concat") {
            // Parts of whole units may be put together.
            let axis = axis(0)?;
            axis != 0 || self.batch == Dim::Known(1)
        } else {
            !fixed(axis(0)?)
        };
        kept.then_some(())
    }
}
