//! Operators that no provider runs are expanded into others that they stand for: the walk over those there are.

use crate::error::Result;
use crate::graph::{Graph, NodeId};

/// Calls `expand_node`, which replaces the node, for each node of an operator, in subgraphs as well; tells whether
/// there were any.
pub(super) fn expand_each(
    graph: &mut Graph,
    (domain, name): (&str, &str),
    expand_node: fn(&mut Graph, NodeId) -> Result<()>,
) -> Result<bool> {
    let mut changed = false;
    for id in graph.node_ids().collect::<Vec<_>>() {
        let op = &graph.node(id).op;
        if op.domain == domain && op.name == name {
            expand_node(graph, id)?;
            changed = true;
            continue;
        }
        for (_, body) in graph.node_mut(id).subgraphs_mut() {
            changed |= expand_each(body, (domain, name), expand_node)?;
        }
    }
    Ok(changed)
}
