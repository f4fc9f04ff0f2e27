//! The graphs inside nodes: bodies of control flow, in attributes.

use std::sync::Arc;

use super::{Attribute, Graph, Node};

impl Node {
    /// The subgraphs in its attributes, with the attribute's name.
    pub fn subgraphs(&self) -> impl Iterator<Item = (&str, &Arc<Graph>)> {
        self.attributes.0.iter().flat_map(|(name, attribute)| {
            let graphs: &[Arc<Graph>] = match attribute {
                Attribute::Graph(g) => std::slice::from_ref(g),
                Attribute::Graphs(gs) => gs,
                _ => &[],
            };
            graphs.iter().map(move |g| (name.as_str(), g))
        })
    }

    /// The same to change. A graph that others share is copied before.
    pub fn subgraphs_mut(&mut self) -> impl Iterator<Item = (&str, &mut Graph)> {
        self.attributes.0.iter_mut().flat_map(|(name, attribute)| {
            let name = name.as_str();
            attribute.graphs_mut().map(move |g| (name, g))
        })
    }
}

impl Attribute {
    /// The graphs that it is, to change.
    pub fn graphs_mut(&mut self) -> impl Iterator<Item = &mut Graph> {
        let graphs: &mut [Arc<Graph>] = match self {
            Attribute::Graph(g) => std::slice::from_mut(g),
            Attribute::Graphs(gs) => gs,
            _ => &mut [],
        };
        graphs.iter_mut().map(Arc::make_mut)
    }
}
