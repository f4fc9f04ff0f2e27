//! Rotary position embedding, which exporters write out as products and a half turn of each head.

use std::sync::Arc;

use crate::graph::{Attribute, Dim, NodeId, ValueId};
use crate::tensor::Tensor;

use super::heads::Operand;
use super::rewriter::Rewriter;

pub(super) const ROTARY: &str = "rukh.RotaryEmbedding";

/// `x · cos + rotated(x) · sin` of heads `[batch, heads, rows, size]`, where `rotated` puts the second half of a head,
/// negated, before the first one.
pub(super) fn rotation(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Add") {
        return None;
    }
    let output = rw.output(root)?;
    let (x, cosines, sines) = rw.operands(root).into_iter().find_map(|[plain, rotated]| {
        let (plain, rotated) = (rw.private(plain, "Mul")?, rw.private(rotated, "Mul")?);
        rw.operands(rotated).into_iter().find_map(|[half_rotated, sines]| {
            let x = before_rotation(rw, half_rotated)?;
            let mut factors = rw.operands(plain).into_iter();
            let [_, cosines] = factors.find(|[factor, _]| *factor == x)?;
            Some((x, cosines, sines))
        })
    })?;
    let [_, heads, rows, size] = rw.shape(output)? else { return None };
    let (heads, size) = (heads.known()?, size.known()?);
    let fits = |cache: ValueId| match rw.shape(cache) {
        Some([_, one, steps, columns]) => {
            one.known() == Some(1) && steps == rows && columns.known() == Some(size) && repeats(rw, cache)
        }
        _ => false,
    };
    if rw.shape(x)? != rw.shape(output)? || !fits(cosines) || !fits(sines) {
        return None;
    }
    let operand = Operand::of(rw, x, None, &mut None)?;
    if operand.rows_first == Some(true) || operand.head_stride != operand.size {
        return None;
    }
    let int = |n: usize| Attribute::Int(n as i64);
    let attributes = [
        ("num_heads", int(operand.heads)),
        ("head_size", int(operand.size)),
        ("offset", int(operand.offset)),
    ];
    let inputs = [Some(operand.source), Some(cosines), Some(sines)];
    let rotated = rw.insert(root, ROTARY, &attributes, &inputs)?;
    let shape = Tensor::from_slice(&[4], &[0, 0, heads, size]).ok()?;
    let shape = rw.add_constant(&format!("{}/heads", rw.node(root).name), Arc::new(shape));
    let split = rw.insert(root, "Reshape", &[], &[Some(rotated), Some(shape)])?;
    let perm = Attribute::Ints(vec![0, 2, 1, 3]);
    let new = rw.draft(root, "Transpose", &[("perm", perm)], &[Some(split)]);
    rw.replace(root, new).then_some(())
}

/// Two rotations beside each other, of queries and of keys, become one.
pub(super) fn pair(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "rukh.Attention") {
        return None;
    }
    let offsets = match rw.node(root).attributes.get("offsets") {
        Some(Attribute::Ints(offsets)) => offsets.clone(),
        _ => return None,
    };
    let (q, k) = (rw.input(root, 0)?, rw.input(root, 1)?);
    let [first, second] = [rw.private(q, ROTARY)?, rw.private(k, ROTARY)?];
    let int = |id: NodeId, name: &str| match rw.node(id).attributes.get(name) {
        Some(&Attribute::Int(n)) => Some(n),
        _ => None,
    };
    let size = int(first, "head_size")?;
    let (heads, more) = (int(first, "num_heads")?, int(second, "num_heads")?);
    let follows = int(second, "offset")? == int(first, "offset")? + heads * size;
    if first == second
        || rw.node(first).inputs != rw.node(second).inputs
        || int(second, "head_size")? != size
        || !follows
    {
        return None;
    }
    let attributes = [
        ("num_heads", Attribute::Int(heads + more)),
        ("head_size", Attribute::Int(size)),
        ("offset", Attribute::Int(int(first, "offset")?)),
    ];
    let inputs = rw.node(first).inputs.clone();
    let both = rw.insert(first, ROTARY, &attributes, &inputs)?;
    let mut new = rw.node(root).clone();
    (new.inputs[0], new.inputs[1]) = (Some(both), Some(both));
    for (name, value) in &mut new.attributes.0 {
        if name == "offsets" {
            *value = Attribute::Ints(vec![offsets[0], offsets[1] + heads * size, offsets[2]]);
        }
    }
    rw.replace(root, new).then_some(())
}

/// `x` of a value whose rows are those of x with the second half, negated, before the first.
fn before_rotation(rw: &Rewriter<'_>, rotated: ValueId) -> Option<ValueId> {
    let concat = rw.private(rotated, "Concat")?;
    let [Some(negated), Some(first)] = rw.node(concat).inputs[..] else { return None };
    let rank = rw.shape(rotated)?.len() as i64;
    let axis = match rw.node(concat).attributes.get("axis") {
        Some(&Attribute::Int(axis)) => axis,
        _ => return None,
    };
    let second = rw.input(rw.private(negated, "Neg")?, 0)?;
    let ([x, from], [y, start]) = (half(rw, second)?, half(rw, first)?);
    let size = rw.shape(rotated)?.last()?.known()?;
    let halves = from.1 == size / 2 && start.1 == 0 && size % 2 == 0;
    (halves && x.0 == y.0 && (axis == -1 || axis == rank - 1)).then_some(x.0)
}

/// The value of which this is a half of the last dimension, and the half's first element.
fn half(rw: &Rewriter<'_>, part: ValueId) -> Option<[(ValueId, i64); 2]> {
    let id = rw.producer(part)?;
    let x = rw.input(id, 0)?;
    let (whole, columns) = (rw.shape(x)?, rw.shape(part)?);
    let all = whole.last()?.known()?;
    if columns.last()?.known()? * 2 != all || whole[..whole.len() - 1] != columns[..columns.len() - 1] {
        return None;
    }
    let start = if rw.is(id, "Slice") {
        let number = |i: usize| match rw.constant(rw.input(id, i)?)?.to_ints()?[..] {
            [n] => Some(n),
            _ => None,
        };
        let last = [-1, whole.len() as i64 - 1].contains(&number(3)?);
        let step = rw.input(id, 4).is_none() || number(4) == Some(1);
        let start = number(1)?;
        (last && step).then_some(if start < 0 { start + all } else { start })?
    } else if rw.is(id, "Split") {
        // Two equal parts.
        if rw.node(id).outputs.first() == Some(&Some(part)) { 0 } else { all / 2 }
    } else {
        return None;
    };
    Some([(x, start), (x, start)])
}

/// Whether the second half of each row is the first half again: functions of `[f | f]`.
fn repeats(rw: &Rewriter<'_>, cache: ValueId) -> bool {
    let Some(id) = rw.producer(cache) else { return false };
    let Some(x) = rw.input(id, 0) else { return false };
    if rw.is(id, "Concat") {
        let last = rw.shape(cache).map_or(0, |shape| shape.len() as i64 - 1);
        let axis = rw.node(id).attributes.get("axis");
        let along = matches!(axis, Some(Attribute::Int(axis)) if *axis == -1 || *axis == last);
        return along && matches!(rw.node(id).inputs[..], [a, b] if a == b);
    }
    let last = |value: ValueId| rw.shape(value).and_then(<[Dim]>::last);
    if rw.is(id, "Mul") {
        let mut scaled = rw.operands(id).into_iter();
        return scaled.any(|[x, factor]| rw.scalar(factor).is_some() && repeats(rw, x));
    }
    let kept = ["Cos", "Sin", "Cast", "Unsqueeze", "Identity"].iter().any(|op| rw.is(id, op));
    kept && last(x) == last(cache) && repeats(rw, x)
}
