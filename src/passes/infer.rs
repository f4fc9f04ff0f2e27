//! Tells the type and shape of every value, as far as the model determines them, and refuses nodes
//! that break an operator's rules.

use std::collections::HashMap;

use crate::error::{Result, Status};
use crate::graph::{Attribute, Dim, Fact, Graph, Node, ValueId};
use crate::ops::{self, Infer, OpError, Unknowns};
use crate::tensor::{Tensor, ValueType};

/// Infers a main graph.
pub(crate) fn infer(graph: &mut Graph) -> Result<()> {
    infer_graph(graph, &mut Unknowns::default())
}

/// Infers a graph whose inputs and captures have their facts.
fn infer_graph(graph: &mut Graph, unknowns: &mut Unknowns) -> Result<()> {
    // A cycle was refused when the graph was built, and passes make none.
    let order = graph.order().unwrap_or_default();
    for id in order {
        infer_subgraphs(graph, id, unknowns)?;
        let node = graph.node(id);
        let outputs = infer_node(graph, node, unknowns)
            .map_err(|e| e.at(&node.name, &node.op.to_string(), Status::InvalidModel))?;
        let targets = node.outputs.clone();
        for (target, fact) in targets.into_iter().zip(outputs) {
            if let Some(id) = target
                && graph.value(id).constant.is_none()
            {
                graph.value_mut(id).fact = fact;
            }
        }
    }
    Ok(())
}

pub(super) fn infer_node(
    graph: &Graph,
    node: &Node,
    unknowns: &mut Unknowns,
) -> std::result::Result<Vec<Fact>, OpError> {
    let (registered, op) = ops::resolve(node)?;
    let facts: Vec<Option<&Fact>> = node.inputs.iter().map(|i| i.map(|id| &graph.value(id).fact)).collect();
    let constants: Vec<Option<&Tensor>> =
        node.inputs.iter().map(|i| i.and_then(|id| graph.value(id).constant.as_deref())).collect();
    let mut cx = Infer::new(&registered.signature, &facts, &constants, node.outputs.len(), unknowns)?;
    op.infer(&mut cx)?;
    let outputs = cx.into_outputs();
    for (i, fact) in outputs.iter().enumerate() {
        if let Some(negative) = fact.shape.iter().flatten().find(|d| d.known().is_some_and(|n| n < 0)) {
            return Err(OpError::Data(format!(
                "the shape of output {i} comes out as {:?}, with dimension {negative}",
                fact.shape.as_deref().unwrap_or(&[])
            )));
        }
    }
    Ok(outputs)
}

/// Gives the subgraphs of a control-flow node what is known of their inputs and captures, infers
/// them, and leaves the facts of their outputs where `ops::control` finds them.
fn infer_subgraphs(graph: &mut Graph, id: crate::graph::NodeId, unknowns: &mut Unknowns) -> Result<()> {
    if graph.node(id).subgraphs().next().is_none() {
        return Ok(());
    }
    let node = graph.node(id);
    let outer: HashMap<String, Fact> = graph
        .captures_of(node)
        .into_iter()
        .map(|v| (graph.value(v).name.clone(), graph.value(v).fact.clone()))
        .collect();
    let constants: HashMap<String, std::sync::Arc<Tensor>> = graph
        .captures_of(node)
        .into_iter()
        .filter_map(|v| Some((graph.value(v).name.clone(), graph.value(v).constant.clone()?)))
        .collect();
    let inputs = body_inputs(graph, node, unknowns);
    for (name, body) in graph.node_mut(id).subgraphs_mut() {
        for capture in body.captures.clone() {
            let name = body.value(capture).name.clone();
            if let Some(tensor) = constants.get(&name) {
                body.set_constant(capture, tensor.clone());
            } else if let Some(fact) = outer.get(&name) {
                body.value_mut(capture).fact = fact.clone();
            }
        }
        let formal: Vec<ValueId> = body.inputs.clone();
        for (input, fact) in formal.into_iter().zip(inputs.get(name).into_iter().flatten()) {
            let declared = &mut body.value_mut(input).fact;
            if let Some(fact) = fact {
                declared.ty = fact.ty.clone().or(declared.ty.take());
                declared.shape = fact.shape.clone();
            } else {
                declared.shape = None;
            }
        }
        infer_graph(body, unknowns)?;
    }
    Ok(())
}

/// What a body's formal inputs are, by the attribute that holds the body.
fn body_inputs(
    graph: &Graph,
    node: &Node,
    unknowns: &mut Unknowns,
) -> HashMap<&'static str, Vec<Option<Fact>>> {
    let fact = |i: usize| node.inputs.get(i).copied().flatten().map(|id| graph.value(id).fact.clone());
    let type_only = |i: usize| fact(i).map(|f| Fact { ty: f.ty, shape: None, elements: None });
    // The number of the iteration and the condition have rank 0, or 1 in a body that declares them so.
    let formal = |i: usize, ty| {
        let body = node.subgraphs().find(|(name, _)| *name == "body").map(|(_, body)| body);
        let declared = body.and_then(|b| b.value(*b.inputs.get(i)?).fact.shape.as_ref());
        let single = declared.is_some_and(|shape| shape.len() == 1);
        Some(Fact::tensor(ty, if single { vec![Dim::Known(1)] } else { Vec::new() }))
    };
    let inputs = match node.op.name.as_str() {
        "Loop" => {
            use crate::tensor::ElementType::{Bool, I64};
            // A carried value may change its shape from one iteration to the next.
            let carried = (2..node.inputs.len()).map(type_only);
            [formal(0, I64), formal(1, Bool)].into_iter().chain(carried).collect()
        }
        "Scan" => {
            let scanned = match node.attributes.get("num_scan_inputs") {
                Some(Attribute::Int(n)) => usize::try_from(*n).unwrap_or(0),
                _ => 0,
            };
            // Before opset 9 a batch dimension and an optional first input came with it.
            let skip = usize::from(node.op.opset < 9);
            let states = node.inputs.len().saturating_sub(scanned + skip);
            (skip..node.inputs.len())
                .map(|i| {
                    if i - skip < states {
                        type_only(i)
                    } else {
                        scan_slice(fact(i), node, i - skip - states, unknowns)
                    }
                })
                .collect()
        }
        "SequenceMap" => {
            let element = |f: Option<Fact>| match f.and_then(|f| f.ty) {
                Some(ValueType::Sequence(inner)) => {
                    Some(Fact { ty: Some(*inner), shape: None, elements: None })
                }
                ty => ty.map(|ty| Fact { ty: Some(ty), shape: None, elements: None }),
            };
            (0..node.inputs.len()).map(|i| element(fact(i))).collect()
        }
        "FlexAttention" => {
            let resolved = ops::resolve(node).ok();
            let op =
                resolved.as_ref().and_then(|(_, op)| op.downcast::<ops::attention::flex::FlexAttention>());
            let scores = op.and_then(|op| op.scores(&fact(0)?, &fact(1)?));
            return HashMap::from([("score_mod", vec![scores.clone()]), ("prob_mod", vec![scores])]);
        }
        _ => Vec::new(),
    };
    HashMap::from([("body", inputs)])
}

/// One element of a scanned input: its shape without the scan axis.
fn scan_slice(fact: Option<Fact>, node: &Node, index: usize, _: &mut Unknowns) -> Option<Fact> {
    let fact = fact?;
    let axis = match node.attributes.get("scan_input_axes") {
        Some(Attribute::Ints(axes)) => axes.get(index).copied().unwrap_or(0),
        _ => 0,
    };
    let shape: Option<Vec<Dim>> = fact.shape.filter(|_| node.op.opset >= 9).and_then(|mut shape| {
        let axis = ops::normalize_axis("scan_input_axes", axis, shape.len()).ok()?;
        shape.remove(axis);
        Some(shape)
    });
    Some(Fact { ty: fact.ty, shape, elements: None })
}

#[cfg(test)]
mod tests {
    use super::super::testing::GraphBuilder;
    use super::*;
    use crate::graph::Attribute;

    /// Two heads of keys, four of values; how large a head is nobody knows before the queries are there.
    #[test]
    fn linear_attention_with_queries_of_a_size_that_is_not_known() {
        let attributes = [
            ("q_num_heads", Attribute::Int(2)),
            ("kv_num_heads", Attribute::Int(4)),
            ("update_rule", Attribute::String(b"linear".to_vec())),
        ];
        let (inputs, outputs) = (["q", "k", "v"], ["y", "state"]);
        let mut graph = GraphBuilder::new()
            .input("q", &["b", "t", "columns"])
            .input("k", &["b", "t", "6"])
            .input("v", &["b", "t", "12"])
            .node_with("com.microsoft.LinearAttention", &attributes, &inputs, &outputs)
            .output("y")
            .0;
        infer(&mut graph).unwrap();
        assert!(graph.to_string().contains("y: float[b, t, 12]"), "{graph}");
    }
}
