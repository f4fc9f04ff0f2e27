//! Removes nodes that give back what they got: Identity, casts to the same type, reshapes and
//! expansions to the same shape, transposes that keep the order, Dropout without its mask.

use crate::graph::{Attribute, Graph, Node, NodeId, ValueId};

/// Removes identities, in subgraphs as well; tells whether something changed.
pub(super) fn remove(graph: &mut Graph) -> bool {
    let mut changed = false;
    let ids: Vec<NodeId> = graph.node_ids().collect();
    for id in ids {
        for (_, body) in graph.node_mut(id).subgraphs_mut() {
            changed |= remove(body);
        }
        let Some((input, output)) = identity(graph, graph.node(id)) else { continue };
        if !graph.outputs.contains(&output) {
            graph.remove_node(id);
            graph.replace_uses(output, input);
            changed = true;
        } else if !graph.outputs.contains(&input) {
            // The graph's output keeps its name: the node before makes it, when there is one.
            changed |= graph.make_instead(input, output) && graph.remove_node(id).is_some();
        }
    }
    changed
}

/// Input and output of a node that changes nothing.
fn identity(graph: &Graph, node: &Node) -> Option<(ValueId, ValueId)> {
    if !node.op.domain.is_empty() || node.outputs.iter().flatten().count() != 1 {
        return None;
    }
    let (input, output) = ((*node.inputs.first()?)?, (*node.outputs.first()?)?);
    let (from, to) = (&graph.value(input).fact, &graph.value(output).fact);
    let same_type = from.ty.is_some() && from.ty == to.ty;
    let same_shape = from.shape.is_some() && from.shape == to.shape;
    let nothing = match node.op.name.as_str() {
        "Identity" => true,
        "Cast" | "CastLike" => same_type,
        "Reshape" | "Expand" | "Flatten" | "Squeeze" | "Unsqueeze" => same_shape,
        "Concat" => node.inputs.len() == 1,
        "Pad" => same_shape && pads_nothing(graph, node),
        "Transpose" => match node.attributes.get("perm") {
            Some(Attribute::Ints(perm)) => perm.iter().enumerate().all(|(i, &p)| p == i as i64),
            _ => from.shape.as_ref().is_some_and(|s| s.len() <= 1),
        },
        "Dropout" => node.op.opset < 12 || node.inputs.get(2).is_none_or(|training| training.is_none()),
        _ => false,
    };
    nothing.then_some((input, output))
}

/// Whether the constant pads of a node are zeros. With others, one side may lose what the other one gets.
fn pads_nothing(graph: &Graph, node: &Node) -> bool {
    let pads = || graph.value((*node.inputs.get(1)?)?).constant.as_ref()?.to_ints();
    pads().is_some_and(|pads| pads.iter().all(|&pad| pad == 0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GraphBuilder, assert_lines};
    use super::super::{dead, infer};
    use super::*;

    #[test]
    fn identities_go_and_outputs_keep_their_names() {
        let perm = Attribute::Ints(vec![0, 1]);
        let mut graph = GraphBuilder::new()
            .input("x", &["n", "3"])
            .node("Identity", &["x"], &["a"])
            .node_with("Transpose", &[("perm", perm)], &["a"], &["b"])
            .node_with("Cast", &[("to", Attribute::Int(1))], &["b"], &["c"])
            .node("Relu", &["c"], &["d"])
            .ints("none", &[4], &[0; 4])
            .node("Pad", &["d", "none"], &["p"])
            .node("Identity", &["p"], &["y"])
            .node("Sigmoid", &["d"], &["e"])
            .node("Identity", &["x"], &["z"])
            .node("Identity", &["y"], &["w"])
            .output("y")
            .output("z")
            .output("w")
            .output("e")
            .0;
        infer::infer(&mut graph).unwrap();
        assert!(remove(&mut graph));
        dead::remove(&mut graph);
        let lines = [
            "y: float[n, 3] = Relu(x)",
            "e: float[n, 3] = Sigmoid(y)",
            "z: float[n, 3] = Identity(x)",
            "w: float[n, 3] = Identity(y)",
            "return y, z, w, e",
        ];
        assert_lines(&graph, &lines);
    }
}
