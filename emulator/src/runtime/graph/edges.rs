//! Edges of graphs, and nodes that go.

use crate::runtime::Runtime;
use crate::runtime::call::{Failure, Handle, call};
use crate::runtime::errors::HipError;

impl Runtime {
    /// Pairs of nodes of a graph.
    ///
    /// # Safety
    ///
    /// Both lists are null or have `count` nodes.
    unsafe fn pairs(
        &self,
        graph: Handle,
        from: *const Handle,
        to: *const Handle,
        count: usize,
    ) -> Result<Vec<(Handle, Handle)>, Failure> {
        self.graphs_are_supported()?;
        let mut state = self.state();
        state.graph_mut(graph)?;
        // SAFETY: by this function's contract.
        let (from, to) = unsafe { (state.nodes_of(graph, from, count)?, state.nodes_of(graph, to, count)?) };
        Ok(from.into_iter().zip(to).collect())
    }
}

/// # Safety
///
/// Both lists are null or have `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddDependencies(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    count: usize,
) -> HipError {
    call("hipGraphAddDependencies", format_args!("{graph:#x}, {count}"), |runtime| {
        // SAFETY: by this function's contract.
        for (before, after) in unsafe { runtime.pairs(graph, from, to, count) }? {
            let mut state = runtime.state();
            let dependencies = &mut state.node_mut(after)?.dependencies;
            if before == after || dependencies.contains(&before) {
                return Err(Failure::invalid(format!(
                    "an edge from {before:#x} to {after:#x} is no new one"
                )));
            }
            dependencies.push(before);
        }
        Ok(())
    })
}

/// # Safety
///
/// Both lists are null or have `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphRemoveDependencies(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    count: usize,
) -> HipError {
    call("hipGraphRemoveDependencies", format_args!("{graph:#x}, {count}"), |runtime| {
        // SAFETY: by this function's contract.
        for (before, after) in unsafe { runtime.pairs(graph, from, to, count) }? {
            let mut state = runtime.state();
            let dependencies = &mut state.node_mut(after)?.dependencies;
            let Some(at) = dependencies.iter().position(|it| *it == before) else {
                return Err(Failure::invalid(format!("there is no edge from {before:#x} to {after:#x}")));
            };
            dependencies.remove(at);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphDestroyNode(node: Handle) -> HipError {
    call("hipGraphDestroyNode", format_args!("{node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        state.node_mut(node)?;
        if let Some(graph) = state.graph_of_node.remove(&node) {
            let graph = state.graph_mut(graph)?;
            graph.nodes.retain(|it| it.id != node);
            for other in &mut graph.nodes {
                other.dependencies.retain(|it| *it != node);
            }
        }
        Ok(())
    })
}
