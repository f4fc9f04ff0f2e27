//! Removes nodes whose outputs nobody uses, and outputs of nodes that nobody uses.

use crate::graph::{Graph, NodeId};

pub(super) fn remove(graph: &mut Graph) {
    let mut order = graph.order().unwrap_or_default();
    let mut uses = graph.use_counts();
    // From the last node to the first, so that one walk is enough.
    while let Some(id) = order.pop() {
        let node = graph.node(id);
        if node.outputs.iter().flatten().all(|v| uses[v.index()] == 0) {
            for value in node.inputs.iter().flatten().copied().chain(graph.captures_of(node)) {
                uses[value.index()] -= 1;
            }
            graph.remove_node(id);
        } else {
            clean_subgraphs(graph, id);
        }
    }
}

fn clean_subgraphs(graph: &mut Graph, id: NodeId) {
    for (_, body) in graph.node_mut(id).subgraphs_mut() {
        remove(body);
        let uses = body.use_counts();
        body.captures.retain(|c| uses[c.index()] > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GraphBuilder, assert_lines};
    use super::*;

    #[test]
    fn what_no_output_needs_goes() {
        let mut graph = GraphBuilder::new()
            .input("x", &["3"])
            .node("Relu", &["x"], &["a"])
            .node("Relu", &["a"], &["b"])
            .node("Relu", &["x"], &["y"])
            .output("y")
            .0;
        remove(&mut graph);
        assert_lines(&graph, &["y = Relu(x)", "return y"]);
    }
}
