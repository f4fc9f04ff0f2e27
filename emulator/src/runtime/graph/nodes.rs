//! What a graph consists of.

use super::Node;
use crate::runtime::call::{Failure, Handle, Out, call, null, put, required};
use crate::runtime::errors::HipError;
use crate::runtime::work::Work;

/// Writes a list into a C array of `count` places, or only its length when there is no array. Places that are left over
/// become null.
///
/// # Safety
///
/// `to` is null or has `count` places.
unsafe fn list(found: &[Handle], to: *mut Handle, count: Option<&mut usize>) -> Result<(), Failure> {
    let count = required(count, "the number of nodes")?;
    if to.is_null() {
        *count = found.len();
        return Ok(());
    }
    for index in 0..*count {
        // SAFETY: by this function's contract.
        unsafe { to.add(index).write(found.get(index).copied().unwrap_or(0)) };
    }
    *count = found.len().min(*count);
    Ok(())
}

/// # Safety
///
/// `nodes` is null or has as many places as `count` says.
unsafe fn nodes_that(
    name: &str,
    graph: Handle,
    nodes: *mut Handle,
    count: Option<&mut usize>,
    wanted: fn(&Node) -> bool,
) -> HipError {
    call(name, format_args!("{graph:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        let found: Vec<Handle> =
            state.graph_mut(graph)?.nodes.iter().filter(|it| wanted(it)).map(|it| it.id).collect();
        // SAFETY: by this function's contract.
        unsafe { list(&found, nodes, count) }
    })
}

/// # Safety
///
/// `nodes` is null or has as many places as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphGetNodes(
    graph: Handle,
    nodes: *mut Handle,
    count: Option<&mut usize>,
) -> HipError {
    // SAFETY: by this function's contract.
    unsafe { nodes_that("hipGraphGetNodes", graph, nodes, count, |_| true) }
}

/// # Safety
///
/// `nodes` is null or has as many places as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphGetRootNodes(
    graph: Handle,
    nodes: *mut Handle,
    count: Option<&mut usize>,
) -> HipError {
    // SAFETY: by this function's contract.
    unsafe { nodes_that("hipGraphGetRootNodes", graph, nodes, count, |node| node.dependencies.is_empty()) }
}

/// # Safety
///
/// `nodes` is null or has as many places as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphNodeGetDependencies(
    node: Handle,
    nodes: *mut Handle,
    count: Option<&mut usize>,
) -> HipError {
    call("hipGraphNodeGetDependencies", format_args!("{node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let found = runtime.state().node_mut(node)?.dependencies.clone();
        // SAFETY: by this function's contract.
        unsafe { list(&found, nodes, count) }
    })
}

/// # Safety
///
/// `nodes` is null or has as many places as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphNodeGetDependentNodes(
    node: Handle,
    nodes: *mut Handle,
    count: Option<&mut usize>,
) -> HipError {
    call("hipGraphNodeGetDependentNodes", format_args!("{node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        state.node_mut(node)?;
        let graph = state.graph_of_node.get(&node).copied().unwrap_or(0);
        let all = &state.graph_mut(graph)?.nodes;
        let after = all.iter().filter(|it| it.dependencies.contains(&node));
        let found: Vec<Handle> = after.map(|it| it.id).collect();
        // SAFETY: by this function's contract.
        unsafe { list(&found, nodes, count) }
    })
}

/// # Safety
///
/// `from` and `to` are null or have as many places as `count` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphGetEdges(
    graph: Handle,
    from: *mut Handle,
    to: *mut Handle,
    count: Option<&mut usize>,
) -> HipError {
    call("hipGraphGetEdges", format_args!("{graph:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        if from.is_null() != to.is_null() {
            return Err(null("one of the lists"));
        }
        let mut state = runtime.state();
        let nodes = &state.graph_mut(graph)?.nodes;
        let edges = nodes.iter().flat_map(|node| node.dependencies.iter().map(|before| (*before, node.id)));
        let (before, after): (Vec<Handle>, Vec<Handle>) = edges.unzip();
        let count = required(count, "the number of edges")?;
        let mut room = *count;
        // SAFETY: by this function's contract.
        unsafe {
            list(&before, from, Some(&mut room))?;
            list(&after, to, Some(count))
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphNodeGetType(node: Handle, kind: Out<'_, i32>) -> HipError {
    call("hipGraphNodeGetType", format_args!("{node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let number = node_type(&runtime.state().node_mut(node)?.work);
        // HIP 5 counts from 1, and its numbers of memory nodes are the next free ones.
        let number = match number {
            number if runtime.options.hip_major >= 6 => number,
            number @ ..8 => number + 1,
            number => number + 2,
        };
        put(kind, number, "type")
    })
}

/// `hipGraphNodeType`, since HIP 6.
fn node_type(work: &Work) -> i32 {
    match work {
        Work::Kernel(_) => 0,
        Work::Copy(_) => 1,
        Work::Fill(_) => 2,
        Work::Host { .. } => 3,
        Work::Child(_) => 4,
        Work::Empty => 5,
        Work::WaitEvent { .. } => 6,
        Work::RecordEvent { .. } => 7,
        Work::Allocate { .. } => 10,
        Work::Free { .. } => 11,
    }
}
