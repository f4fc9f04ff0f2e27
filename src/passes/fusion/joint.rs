//! Products of one matrix with several constant ones become one product, where whoever uses them reads parts of its
//! columns as they lie.

use std::sync::Arc;

use crate::graph::{Attribute, Attributes, Node, NodeId, OpName, ValueId};
use crate::tensor::{Tensor, Value};

use super::rewriter::Rewriter;
use super::rotary::ROTARY;

const PRODUCT: &str = "rukh.MatMul";

/// Queries, keys and values of one product, or keys and values where the queries are of another matrix.
pub(super) fn attention(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "Attention") && !rw.is(root, "rukh.Attention") {
        return None;
    }
    let node = rw.node(root);
    let (inputs, attributes) = (node.inputs.clone(), node.attributes.clone());
    let int = |name: &str| match attributes.get(name) {
        Some(&Attribute::Int(n)) => Some(n),
        _ => None,
    };
    let ints = |name: &str| match attributes.get(name) {
        Some(Attribute::Ints(list)) => Some(list.clone()),
        _ => None,
    };
    let (q_heads, kv_heads) = (int("q_num_heads")?, int("kv_num_heads")?);
    if inputs.len() > 4 || ["left_window_size", "right_window_size"].iter().any(|name| int(name).is_some()) {
        return None;
    }
    rw.output(root)?;
    let columns = |i: usize| rw.shape((*inputs.get(i)?)?)?.get(2)?.known();
    let sizes = match ints("head_sizes") {
        Some(sizes) => sizes,
        None => vec![columns(0)? / q_heads, columns(2)? / kv_heads],
    };
    let mut offsets = ints("offsets").unwrap_or_else(|| vec![0; 3]);
    let head_strides = ints("head_strides").unwrap_or_else(|| vec![sizes[0], sizes[0], sizes[1]]);
    // Queries and keys may be rotated on their way.
    let rotaries = [0, 1, 2].map(|i| rw.private((*inputs.get(i)?)?, ROTARY));
    let factor = |&i: &usize| match rotaries[i] {
        Some(rotary) => Factor::of(rw, rw.input(rotary, 0)?),
        None => Factor::of(rw, inputs[i]?),
    };
    let (members, factors) = [&[0, 1, 2][..], &[1, 2]].into_iter().find_map(|members| {
        let found: Vec<Factor> = members.iter().map(factor).collect::<Option<_>>()?;
        let fit = found.iter().all(|factor| factor.fits(&found[0])) && are_distinct(&found);
        fit.then_some((members, found))
    })?;
    let name = rw.node(root).name.clone();
    let joint = product(rw, &name, &factors)?;
    let mut before = 0;
    let mut new_inputs = inputs.clone();
    for (&i, factor) in members.iter().zip(&factors) {
        match rotaries[i] {
            Some(rotary) => new_inputs[i] = Some(moved(rw, rotary, joint, before)?),
            None => {
                new_inputs[i] = Some(joint);
                offsets[i] += before;
            }
        }
        before += factor.columns;
    }
    let mut new = rw.draft(root, "rukh.Attention", &[], &new_inputs);
    new.attributes = attributes;
    new.attributes.0.retain(|(name, _)| !["head_sizes", "offsets", "head_strides"].contains(&&name[..]));
    for (name, list) in [("head_sizes", sizes), ("offsets", offsets), ("head_strides", head_strides)] {
        new.attributes.0.push((name.to_owned(), Attribute::Ints(list)));
    }
    rw.replace(root, new).then(|| forget(rw, &factors))
}

/// The rotation of heads so many columns further on in another matrix.
fn moved(rw: &mut Rewriter<'_>, rotary: NodeId, matrix: ValueId, columns: i64) -> Option<ValueId> {
    let mut new = rw.node(rotary).clone();
    new.inputs[0] = Some(matrix);
    for (name, value) in &mut new.attributes.0 {
        if let (Attribute::Int(offset), "offset") = (value, &name[..]) {
            *offset += columns;
        }
    }
    rw.insert_node(new)
}

/// One product in place of several, whose weights nobody else uses.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    node: NodeId,
    x: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    attributes: Attributes,
    pub(super) columns: i64,
}

impl Factor {
    /// The product with a constant matrix that makes a value for one user.
    pub(super) fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Factor> {
        let node = ["MatMul", PRODUCT].iter().find_map(|op| rw.private(value, op))?;
        let (x, weight, bias) = (rw.input(node, 0)?, rw.input(node, 1)?, rw.input(node, 2));
        let [_, _] = rw.shape(weight)? else { return None };
        let constant = |value: ValueId| rw.constant(value).is_some() && rw.uses(value) == 1;
        // A bias is small: it may stay for others as well.
        let known = bias.is_none_or(|bias| rw.constant(bias).is_some());
        if rw.input(node, 3).is_some() || !constant(weight) || !known {
            return None;
        }
        let attributes = rw.node(node).attributes.clone();
        let plain =
            |(name, value): &(String, Attribute)| name == "transB" && matches!(value, Attribute::Int(_));
        let columns = rw.shape(value)?.last()?.known()?;
        let known = rw.shape(x)?.len() > 1 && attributes.0.iter().all(plain);
        known.then_some(Factor { node, x, weight, bias, attributes, columns })
    }

    /// Whether both can be one product.
    pub(super) fn fits(&self, other: &Factor) -> bool {
        self.x == other.x && self.is_transposed() == other.is_transposed()
    }

    fn is_transposed(&self) -> bool {
        matches!(self.attributes.get("transB"), Some(Attribute::Int(1)))
    }
}

/// Whether no two are the same product.
pub(super) fn are_distinct(factors: &[Factor]) -> bool {
    factors.iter().enumerate().all(|(i, factor)| factors[..i].iter().all(|other| other.node != factor.node))
}

/// The product with all their weights side by side.
pub(super) fn product(rw: &mut Rewriter<'_>, name: &str, factors: &[Factor]) -> Option<ValueId> {
    let first = factors.first()?;
    let tensors = |values: &[ValueId], rw: &Rewriter<'_>| -> Option<Vec<Value>> {
        values.iter().map(|&value| Some(Value::Tensor((**rw.constant(value)?).clone()))).collect()
    };
    let weights = tensors(&factors.iter().map(|factor| factor.weight).collect::<Vec<_>>(), rw)?;
    let weight = concatenated(rw, &weights, i64::from(!first.is_transposed()))?;
    let mut bias = None;
    if factors.iter().any(|factor| factor.bias.is_some()) {
        let ty = rw.element_type(first.weight)?;
        let parts = factors.iter().map(|factor| match factor.bias {
            Some(bias) => Some(Value::Tensor((**rw.constant(bias)?).clone())),
            None => Some(Value::Tensor(Tensor::zeros(ty, &[usize::try_from(factor.columns).ok()?]).ok()?)),
        });
        bias = Some(concatenated(rw, &parts.collect::<Option<Vec<_>>>()?, 0)?);
    }
    let weight = rw.add_constant(&format!("{name}/weight"), Arc::new(weight));
    let mut inputs = vec![Some(first.x), Some(weight)];
    if let Some(bias) = bias {
        inputs.push(Some(rw.add_constant(&format!("{name}/bias"), Arc::new(bias))));
    }
    let mut node = rw.draft(first.node, PRODUCT, &[], &inputs);
    node.attributes = first.attributes.clone();
    rw.insert_node(node)
}

/// Gives the memory of weights back that nobody uses any more.
pub(super) fn forget(rw: &mut Rewriter<'_>, factors: &[Factor]) {
    for value in factors.iter().flat_map(|factor| [Some(factor.weight), factor.bias]).flatten() {
        if rw.uses(value) == 0 {
            rw.graph.value_mut(value).constant = None;
        }
    }
}

fn concatenated(rw: &Rewriter<'_>, parts: &[Value], axis: i64) -> Option<Tensor> {
    let node = Node {
        name: String::new(),
        op: OpName { domain: String::new(), name: "Concat".into(), opset: crate::graph::NEWEST_OPSET },
        attributes: Attributes(vec![("axis".to_owned(), Attribute::Int(axis))]),
        inputs: (0..parts.len()).map(|i| Some(ValueId(i as u32))).collect(),
        outputs: vec![Some(ValueId(parts.len() as u32))],
    };
    let inputs: Vec<Option<&Value>> = parts.iter().map(Some).collect();
    match rw.evaluate(&node, &inputs)?.pop()? {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}
