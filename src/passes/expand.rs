//! Operators that no provider runs are expanded into others that they stand for: the walk over those there are.

use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Attribute, Graph, NodeId};

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
        for (_, attribute) in &mut graph.node_mut(id).attributes.0 {
            if let Attribute::Graph(body) = attribute {
                changed |= expand_each(Arc::make_mut(body), (domain, name), expand_node)?;
            }
        }
    }
    Ok(changed)
}
