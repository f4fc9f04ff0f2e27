//! Graphs: work with an order that is not a line.

mod build;
mod dot;
mod edges;
mod execute;
mod nodes;
mod parameters;
mod program;
mod update;

use super::Runtime;
use super::call::{Failure, Handle, null};
use super::errors::HipError;
use super::state::State;
use super::work::Work;

pub use execute::{Executable, run};
pub use program::Program;

/// A node. Its handle is unique; the copy in an executable graph has the same one.
#[derive(Clone)]
pub struct Node {
    pub id: Handle,
    /// Nodes that come before it.
    pub dependencies: Vec<Handle>,
    pub work: Work,
    /// For messages: the kernel or the function that made it.
    pub label: String,
}

/// A graph that can be changed. Nodes are in the order in which they were added.
#[derive(Clone, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// A graph with memory nodes can be made executable only once.
    pub instantiated: bool,
}

impl Graph {
    pub fn has_memory_nodes(&self) -> bool {
        self.nodes.iter().any(|it| matches!(it.work, Work::Allocate { .. } | Work::Free { .. }))
    }
}

impl State {
    pub fn add_node(
        &mut self,
        graph: Handle,
        work: Work,
        dependencies: Vec<Handle>,
        label: &str,
    ) -> Result<Handle, Failure> {
        let id = self.new_handle();
        let node = Node { id, dependencies, work, label: label.to_owned() };
        self.graph_mut(graph)?.nodes.push(node);
        self.graph_of_node.insert(id, graph);
        Ok(id)
    }

    pub fn node_mut(&mut self, node: Handle) -> Result<&mut Node, Failure> {
        let text = || Failure::invalid(format!("{node:#x} is no node, or one that was destroyed"));
        let graph = *self.graph_of_node.get(&node).ok_or_else(text)?;
        self.graph_mut(graph)?.nodes.iter_mut().find(|it| it.id == node).ok_or_else(text)
    }

    /// Nodes by their handles, which must be of that graph.
    ///
    /// # Safety
    ///
    /// `nodes` is null or has `count` handles.
    pub unsafe fn nodes_of(
        &self,
        graph: Handle,
        nodes: *const Handle,
        count: usize,
    ) -> Result<Vec<Handle>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if nodes.is_null() {
            return Err(null("the list of nodes"));
        }
        // SAFETY: by this function's contract.
        let list = unsafe { std::slice::from_raw_parts(nodes, count) };
        match list.iter().find(|node| self.graph_of_node.get(node) != Some(&graph)) {
            None => Ok(list.to_vec()),
            Some(node) => Err(Failure::invalid(format!("{node:#x} is no node of the graph {graph:#x}"))),
        }
    }

    pub fn remove_graph(&mut self, graph: Handle) -> Option<Graph> {
        let removed = self.graphs.remove(&graph)?;
        for node in &removed.nodes {
            self.graph_of_node.remove(&node.id);
        }
        Some(removed)
    }

    /// Whether a capture fills the graph now.
    fn is_captured(&self, graph: Handle) -> bool {
        self.captures.values().any(|it| it.graph == graph)
    }
}

impl Runtime {
    /// `AMDEMU_NO_GRAPHS=1` stands for a HIP without them.
    pub fn graphs_are_supported(&self) -> Result<(), Failure> {
        if self.options.no_graphs { Err(HipError::NOT_SUPPORTED.into()) } else { Ok(()) }
    }
}
