//! The order in which a graph's nodes run.

use std::collections::{BTreeSet, HashMap};

use super::{Graph, Node};
use crate::runtime::call::Handle;

/// Nodes with an order that their edges allow.
#[derive(Clone)]
pub struct Program {
    pub nodes: Vec<Node>,
    /// Indices into `nodes`.
    pub order: Vec<usize>,
}

impl Program {
    /// `None` if the edges form a cycle. Of nodes that could run, the oldest comes first, or the newest: then a missing
    /// edge shows.
    pub fn new(graph: &Graph, newest_first: bool) -> Option<Program> {
        let index_of: HashMap<Handle, usize> =
            graph.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        let mut missing = vec![0; graph.nodes.len()];
        let mut followers = vec![Vec::new(); graph.nodes.len()];
        for (index, node) in graph.nodes.iter().enumerate() {
            for before in node.dependencies.iter().filter_map(|it| index_of.get(it)) {
                missing[index] += 1;
                followers[*before].push(index);
            }
        }
        let mut ready: BTreeSet<usize> = (0..missing.len()).filter(|index| missing[*index] == 0).collect();
        let mut order = Vec::new();
        while let Some(index) = if newest_first { ready.pop_last() } else { ready.pop_first() } {
            order.push(index);
            for follower in &followers[index] {
                missing[*follower] -= 1;
                if missing[*follower] == 0 {
                    ready.insert(*follower);
                }
            }
        }
        (order.len() == graph.nodes.len()).then(|| Program { nodes: graph.nodes.clone(), order })
    }

    pub fn in_order(&self) -> impl Iterator<Item = &Node> {
        self.order.iter().map(|index| &self.nodes[*index])
    }

    /// What a node comes after, as positions in the list of nodes.
    pub fn dependencies(nodes: &[Node], index: usize) -> BTreeSet<usize> {
        let before = &nodes[index].dependencies;
        (0..nodes.len()).filter(|other| before.contains(&nodes[*other].id)).collect()
    }
}
