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

/// Queries, keys and values of one product, for attention with a cache that takes them side by side.
pub(super) fn group_query(rw: &mut Rewriter<'_>, root: NodeId) -> Option<()> {
    if !rw.is(root, "com.microsoft.GroupQueryAttention") {
        return None;
    }
    let factors = [0, 1, 2].map(|i| Factor::of(rw, rw.input(root, i)?));
    let [Some(q), Some(k), Some(v)] = factors else { return None };
    let factors = [q, k, v];
    if !factors.iter().all(|factor| factor.fits(&factors[0])) || !are_distinct(&factors) {
        return None;
    }
    let name = rw.node(root).name.clone();
    let joint = product(rw, &name, &factors)?;
    let mut new = rw.node(root).clone();
    new.inputs[..3].copy_from_slice(&[Some(joint), None, None]);
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
    /// What else of a packed weight goes with its columns: scales and zero points.
    scales: Vec<ValueId>,
    bias: Option<ValueId>,
    attributes: Attributes,
    pub(super) columns: i64,
}

/// The inputs of a packed product.
const PACKED: &str = "com.microsoft.MatMulNBits";
const ZERO_POINTS: usize = 3;
const ORDER: usize = 4;
const PACKED_BIAS: usize = 5;

impl Factor {
    /// The product with a constant matrix that makes a value for one user.
    pub(super) fn of(rw: &Rewriter<'_>, value: ValueId) -> Option<Factor> {
        if let Some(node) = rw.private(value, PACKED) {
            return Factor::packed(rw, node);
        }
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
        known.then_some(Factor { node, x, weight, scales: Vec::new(), bias, attributes, columns })
    }

    fn packed(rw: &Rewriter<'_>, node: NodeId) -> Option<Factor> {
        let (x, weight, scales) = (rw.input(node, 0)?, rw.input(node, 1)?, rw.input(node, 2)?);
        let (zeros, bias) = (rw.input(node, ZERO_POINTS), rw.input(node, PACKED_BIAS));
        let scales: Vec<ValueId> = [Some(scales), zeros].into_iter().flatten().collect();
        let own = |value: &ValueId| rw.constant(*value).is_some() && rw.uses(*value) == 1;
        let attributes = rw.node(node).attributes.clone();
        let &Attribute::Int(columns) = attributes.get("N")? else { return None };
        let known =
            own(&weight) && scales.iter().all(own) && bias.is_none_or(|bias| rw.constant(bias).is_some());
        let known = known && rw.input(node, ORDER).is_none();
        known.then_some(Factor { node, x, weight, scales, bias, attributes, columns })
    }

    /// Whether both can be one product.
    pub(super) fn fits(&self, other: &Factor) -> bool {
        let int = |factor: &Factor, name: &str| match factor.attributes.get(name) {
            Some(&Attribute::Int(n)) => Some(n),
            _ => None,
        };
        let alike = ["K", "bits", "block_size", "accuracy_level", "weight_prepacked"];
        self.x == other.x
            && self.is_transposed() == other.is_transposed()
            && self.scales.len() == other.scales.len()
            && alike.iter().all(|name| int(self, name) == int(other, name))
    }

    fn is_packed(&self) -> bool {
        !self.scales.is_empty()
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
    let columns_first = first.is_transposed() || first.is_packed();
    let weight = concatenated(rw, &weights, i64::from(!columns_first))?;
    let mut scales = Vec::new();
    for i in 0..first.scales.len() {
        let parts = tensors(&factors.iter().map(|factor| factor.scales[i]).collect::<Vec<_>>(), rw)?;
        scales.push(concatenated(rw, &parts, 0)?);
    }
    let mut bias = None;
    if factors.iter().any(|factor| factor.bias.is_some()) {
        let ty = rw.element_type(*first.scales.first().unwrap_or(&first.weight))?;
        let parts = factors.iter().map(|factor| match factor.bias {
            Some(bias) => Some(Value::Tensor((**rw.constant(bias)?).clone())),
            None => Some(Value::Tensor(Tensor::zeros(ty, &[usize::try_from(factor.columns).ok()?]).ok()?)),
        });
        bias = Some(concatenated(rw, &parts.collect::<Option<Vec<_>>>()?, 0)?);
    }
    let weight = rw.add_constant(&format!("{name}/weight"), Arc::new(weight));
    let mut inputs = vec![Some(first.x), Some(weight)];
    for (scales, kind) in scales.into_iter().zip(["scales", "zeros"]) {
        inputs.push(Some(rw.add_constant(&format!("{name}/{kind}"), Arc::new(scales))));
    }
    if let Some(bias) = bias {
        inputs.resize(if first.is_packed() { PACKED_BIAS } else { inputs.len() }, None);
        inputs.push(Some(rw.add_constant(&format!("{name}/bias"), Arc::new(bias))));
    }
    let op = if first.is_packed() { PACKED } else { PRODUCT };
    let mut node = rw.draft(first.node, op, &[], &inputs);
    node.attributes = first.attributes.clone();
    let all = factors.iter().map(|factor| factor.columns).sum();
    if let Some((_, columns)) = node.attributes.0.iter_mut().find(|(name, _)| name == "N") {
        *columns = Attribute::Int(all);
    }
    rw.insert_node(node)
}

/// Gives the memory of weights back that nobody uses any more.
pub(super) fn forget(rw: &mut Rewriter<'_>, factors: &[Factor]) {
    let all = |factor: &Factor| {
        [Some(factor.weight), factor.bias].into_iter().flatten().chain(factor.scales.clone())
    };
    for value in factors.iter().flat_map(all) {
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

#[cfg(test)]
mod tests {
    use super::super::super::testing::GraphBuilder;
    use super::super::testing::{assert_fused, fused};
    use super::*;

    fn some(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i * 37 % 64) as f32 / 64.0 - 0.5).collect()
    }

    /// Two query heads and one key head of 4 columns.
    fn with_cache(v_input: &str) -> GraphBuilder {
        let heads = [("num_heads", Attribute::Int(2)), ("kv_num_heads", Attribute::Int(1))];
        GraphBuilder::new()
            .input("x", &["1", "3", "8"])
            .input("z", &["1", "3", "8"])
            .floats("wq", &[8, 8], &some(64))
            .floats("wk", &[8, 4], &some(32))
            .floats("wv", &[8, 4], &some(40)[8..])
            .floats("bias", &[4], &some(4))
            .constant("last", &[1], &[2i32])
            .constant("total", &[], &[3i32])
            .node("MatMul", &["x", "wq"], &["q"])
            .node("MatMul", &["x", "wk"], &["k"])
            .node("MatMul", &[v_input, "wv"], &["v0"])
            .node("Add", &["v0", "bias"], &["v"])
            .node_with(
                "com.microsoft.GroupQueryAttention",
                &heads,
                &["q", "k", "v", "", "", "last", "total"],
                &["y"],
            )
            .output("y")
    }

    /// The caches' length is known only when the model runs; each inference names it anew.
    #[test]
    fn attention_with_a_cache_of_unknown_length() {
        let heads = [("num_heads", Attribute::Int(2)), ("kv_num_heads", Attribute::Int(1))];
        let inputs = ["q", "k", "v", "", "", "last", "total"];
        let builder = GraphBuilder::new()
            .input("x", &["1", "3", "8"])
            .floats("wq", &[8, 8], &some(64))
            .floats("wk", &[8, 4], &some(32))
            .floats("wv", &[8, 4], &some(40)[8..])
            .input("length", &["1"])
            .constant("last", &[1], &[2i32])
            .node_with("Cast", &[("to", Attribute::Int(6))], &["length"], &["total"])
            .node("MatMul", &["x", "wq"], &["q"])
            .node("MatMul", &["x", "wk"], &["k"])
            .node("MatMul", &["x", "wv"], &["v"])
            .node_with("com.microsoft.GroupQueryAttention", &heads, &inputs, &["y", "keys", "values"])
            .output("y")
            .output("keys");
        let text = fused(builder).to_string();
        assert!(text.contains("GroupQueryAttention_node/weight"), "{text}");
    }

    #[test]
    fn attention_with_a_cache() {
        let heads = "num_heads=2, kv_num_heads=1";
        assert_fused(
            with_cache("x"),
            &[
                "MatMul_node/MatMul: float[1, 3, 16] = rukh.MatMul(x, GroupQueryAttention_node/weight, \
                 GroupQueryAttention_node/bias)",
                &format!(
                    "y: float[1, 3, 8] = com.microsoft.GroupQueryAttention<{heads}>(MatMul_node/MatMul, _, _, _, _, \
                     last, total)"
                ),
                "return y",
            ],
        );
        assert_fused(
            with_cache("z"),
            &[
                "q: float[1, 3, 8] = MatMul(x, wq)",
                "k: float[1, 3, 4] = MatMul(x, wk)",
                "v: float[1, 3, 4] = rukh.MatMul(z, wv, bias)",
                &format!(
                    "y: float[1, 3, 8] = com.microsoft.GroupQueryAttention<{heads}>(q, k, v, _, _, last, total)"
                ),
                "return y",
            ],
        );
    }
}
