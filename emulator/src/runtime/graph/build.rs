//! Graphs by hand.

use std::collections::HashMap;
use std::sync::Arc;

use super::parameters::{FillParameters, HostParameters, KernelParameters};
use super::{Graph, Program};
use crate::runtime::Runtime;
use crate::runtime::call::{Address, Failure, Handle, Out, call, null, put};
use crate::runtime::errors::HipError;
use crate::runtime::work::Work;

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphCreate(graph: Out<'_, Handle>, flags: u32) -> HipError {
    call("hipGraphCreate", format_args!("{flags}"), |runtime| {
        runtime.graphs_are_supported()?;
        if flags != 0 {
            return Err(Failure::invalid(format!("flags {flags:#x}, allowed is 0")));
        }
        if graph.is_none() {
            return Err(null("graph"));
        }
        let mut state = runtime.state();
        let handle = state.new_handle();
        state.graphs.insert(handle, Graph::default());
        put(graph, handle, "graph")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphDestroy(graph: Handle) -> HipError {
    call("hipGraphDestroy", format_args!("{graph:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        let mut state = runtime.state();
        state.graph_mut(graph)?;
        if state.is_captured(graph) {
            return Err(Failure::invalid("the graph is still being captured"));
        }
        state.remove_graph(graph);
        Ok(())
    })
}

/// The copy has nodes of its own.
#[unsafe(no_mangle)]
pub extern "C" fn hipGraphClone(clone: Out<'_, Handle>, graph: Handle) -> HipError {
    call("hipGraphClone", format_args!("{graph:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        if clone.is_none() {
            return Err(null("clone"));
        }
        let mut state = runtime.state();
        let original = state.graph_mut(graph)?.clone();
        let handle = state.new_handle();
        state.graphs.insert(handle, Graph { nodes: Vec::new(), instantiated: original.instantiated });
        let mut copies = HashMap::new();
        for node in &original.nodes {
            let copy = state.add_node(handle, node.work.clone(), Vec::new(), &node.label)?;
            copies.insert(node.id, copy);
        }
        for node in &original.nodes {
            let dependencies = node.dependencies.iter().filter_map(|it| copies.get(it)).copied().collect();
            if let Some(copy) = copies.get(&node.id) {
                state.node_mut(*copy)?.dependencies = dependencies;
            }
        }
        put(clone, handle, "clone")
    })
}

/// Where a new node goes.
struct Place<'a> {
    node: Out<'a, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
}

impl Runtime {
    /// # Safety
    ///
    /// The list of dependencies is null or as long as it says.
    unsafe fn add(
        &self,
        place: Place<'_>,
        make: impl FnOnce() -> Result<(Work, String), Failure>,
    ) -> Result<(), Failure> {
        self.graphs_are_supported()?;
        if place.node.is_none() {
            return Err(null("node"));
        }
        self.state().graph_mut(place.graph)?;
        // SAFETY: by this function's contract.
        let dependencies = unsafe { self.state().nodes_of(place.graph, place.dependencies, place.count) }?;
        let (work, label) = make()?;
        let node = self.state().add_node(place.graph, work, dependencies, &label)?;
        put(place.node, node, "node")
    }
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddEmptyNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
) -> HipError {
    call("hipGraphAddEmptyNode", format_args!("{graph:#x}, {count}"), |runtime| {
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || Ok((Work::Empty, String::new()))) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes. The arguments are as HIP demands them for the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddKernelNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    parameters: Option<&KernelParameters>,
) -> HipError {
    call("hipGraphAddKernelNode", format_args!("{graph:#x}, {count}, {parameters:?}"), |runtime| {
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || runtime.kernel_work(parameters)) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddMemcpyNode1D(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    to: Address,
    from: Address,
    size: usize,
    kind: i32,
) -> HipError {
    let arguments = format_args!("{graph:#x}, {count}, {to:#x}, {from:#x}, {size}, {kind}");
    call("hipGraphAddMemcpyNode1D", arguments, |runtime| {
        let place = Place { node, graph, dependencies, count };
        let make = || Ok((runtime.copy_work(to, from, size, kind)?, "memcpy node".to_owned()));
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, make) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddMemsetNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    parameters: Option<&FillParameters>,
) -> HipError {
    call("hipGraphAddMemsetNode", format_args!("{graph:#x}, {count}, {parameters:?}"), |runtime| {
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || Ok((runtime.fill_work(parameters)?, "memset node".to_owned()))) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddHostNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    parameters: Option<&HostParameters>,
) -> HipError {
    call("hipGraphAddHostNode", format_args!("{graph:#x}, {count}, {parameters:?}"), |runtime| {
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || Ok((runtime.host_work(parameters)?, "host node".to_owned()))) }
    })
}

/// The node has a copy of the other graph as it is now.
///
/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddChildGraphNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    child: Handle,
) -> HipError {
    call("hipGraphAddChildGraphNode", format_args!("{graph:#x}, {count}, {child:#x}"), |runtime| {
        let make = || {
            if child == graph {
                return Err(Failure::invalid("a graph cannot be its own child"));
            }
            let newest_first = runtime.options.defer;
            let program = Program::new(runtime.state().graph_mut(child)?, newest_first);
            let program = program.ok_or_else(|| Failure::invalid("the child graph has a cycle"))?;
            Ok((Work::Child(Arc::new(program)), "child graph".to_owned()))
        };
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, make) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddEventRecordNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    event: Handle,
) -> HipError {
    call("hipGraphAddEventRecordNode", format_args!("{graph:#x}, {count}, {event:#x}"), |runtime| {
        runtime.state().event_mut(event)?;
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || Ok((Work::RecordEvent { event }, "event record".to_owned()))) }
    })
}

/// # Safety
///
/// `dependencies` is null or has `count` nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphAddEventWaitNode(
    node: Out<'_, Handle>,
    graph: Handle,
    dependencies: *const Handle,
    count: usize,
    event: Handle,
) -> HipError {
    call("hipGraphAddEventWaitNode", format_args!("{graph:#x}, {count}, {event:#x}"), |runtime| {
        runtime.state().event_mut(event)?;
        let place = Place { node, graph, dependencies, count };
        // SAFETY: by this function's contract.
        unsafe { runtime.add(place, || Ok((Work::WaitEvent { event }, "event wait".to_owned()))) }
    })
}
