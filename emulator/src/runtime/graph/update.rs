//! Changes of executable graphs.

use std::mem::discriminant;
use std::sync::Arc;

use super::parameters::{FillParameters, HostParameters, KernelParameters};
use super::{Node, Program};
use crate::runtime::Runtime;
use crate::runtime::call::{Address, Failure, Handle, Out, call, null, put};
use crate::runtime::errors::HipError;
use crate::runtime::work::Work;

/// `hipGraphExecUpdateResult`
const SUCCESS: i32 = 0;
const TOPOLOGY_CHANGED: i32 = 2;
const NODE_TYPE_CHANGED: i32 = 3;
const PARAMETERS_CHANGED: i32 = 5;
const NOT_SUPPORTED: i32 = 6;

impl Runtime {
    /// Gives a node of an executable graph other work of the same kind. Launches that are queued keep the old one.
    fn change(
        &self,
        executable: Handle,
        node: Handle,
        work: Work,
        label: Option<String>,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        state.node_mut(node)?;
        let program = Arc::make_mut(&mut state.executable_mut(executable)?.program);
        let found = program.nodes.iter_mut().find(|it| it.id == node);
        let found = found
            .ok_or_else(|| Failure::invalid(format!("node {node:#x} is not of this executable graph")))?;
        if !same_kind(&found.work, &work) {
            let text =
                format!("the node is a {}, the parameters are of a {}", found.work.kind(), work.kind());
            return Err(Failure::invalid(text));
        }
        found.work = work;
        if let Some(label) = label {
            found.label = label;
        }
        Ok(())
    }
}

/// Whether one may take the other's place. Copies must not change their direction.
fn same_kind(old: &Work, new: &Work) -> bool {
    match (old, new) {
        (Work::Copy(old), Work::Copy(new)) => old.kind == new.kind,
        _ => discriminant(old) == discriminant(new),
    }
}

/// # Safety
///
/// The arguments are as HIP demands them for the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphExecKernelNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: Option<&KernelParameters>,
) -> HipError {
    call("hipGraphExecKernelNodeSetParams", format_args!("{executable:#x}, {node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        // SAFETY: by this function's contract.
        let (work, name) = unsafe { runtime.kernel_work(parameters) }?;
        runtime.change(executable, node, work, Some(name))
    })
}

/// Of a graph that is not executable yet.
///
/// # Safety
///
/// The arguments are as HIP demands them for the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGraphKernelNodeSetParams(
    node: Handle,
    parameters: Option<&KernelParameters>,
) -> HipError {
    call("hipGraphKernelNodeSetParams", format_args!("{node:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        // SAFETY: by this function's contract.
        let (work, name) = unsafe { runtime.kernel_work(parameters) }?;
        let mut state = runtime.state();
        let found = state.node_mut(node)?;
        if !same_kind(&found.work, &work) {
            return Err(Failure::invalid(format!("the node is a {}", found.work.kind())));
        }
        (found.work, found.label) = (work, name);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphExecMemcpyNodeSetParams1D(
    executable: Handle,
    node: Handle,
    to: Address,
    from: Address,
    size: usize,
    kind: i32,
) -> HipError {
    let arguments = format_args!("{executable:#x}, {node:#x}, {to:#x}, {from:#x}, {size}, {kind}");
    call("hipGraphExecMemcpyNodeSetParams1D", arguments, |runtime| {
        runtime.graphs_are_supported()?;
        let work = runtime.copy_work(to, from, size, kind)?;
        runtime.change(executable, node, work, None)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphExecMemsetNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: Option<&FillParameters>,
) -> HipError {
    call(
        "hipGraphExecMemsetNodeSetParams",
        format_args!("{executable:#x}, {node:#x}, {parameters:?}"),
        |runtime| {
            runtime.graphs_are_supported()?;
            let work = runtime.fill_work(parameters)?;
            runtime.change(executable, node, work, None)
        },
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGraphExecHostNodeSetParams(
    executable: Handle,
    node: Handle,
    parameters: Option<&HostParameters>,
) -> HipError {
    call(
        "hipGraphExecHostNodeSetParams",
        format_args!("{executable:#x}, {node:#x}, {parameters:?}"),
        |runtime| {
            runtime.graphs_are_supported()?;
            let work = runtime.host_work(parameters)?;
            runtime.change(executable, node, work, None)
        },
    )
}

/// Gives all nodes the work of another graph of the same form, or changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn hipGraphExecUpdate(
    executable: Handle,
    graph: Handle,
    error_node: Out<'_, Handle>,
    result: Out<'_, i32>,
) -> HipError {
    call("hipGraphExecUpdate", format_args!("{executable:#x}, {graph:#x}"), |runtime| {
        runtime.graphs_are_supported()?;
        if error_node.is_none() || result.is_none() {
            return Err(null("errorNode or result"));
        }
        let mut state = runtime.state();
        let other = state.graph_mut(graph)?;
        let (nodes, cyclic) = (other.nodes.clone(), Program::new(other, false).is_none());
        let program = &mut state.executable_mut(executable)?.program;
        let outcome = if cyclic { Err((0, TOPOLOGY_CHANGED)) } else { fits(&program.nodes, &nodes) };
        let (node, number) = outcome.err().unwrap_or((0, SUCCESS));
        put(error_node, node, "errorNode")?;
        put(result, number, "result")?;
        if number != SUCCESS {
            return Err(HipError::GRAPH_EXEC_UPDATE_FAILURE.into());
        }
        let program = Arc::make_mut(program);
        for (old, new) in program.nodes.iter_mut().zip(nodes) {
            (old.work, old.label) = (new.work, new.label);
        }
        Ok(())
    })
}

/// The first node that forbids an update, and the reason.
fn fits(old: &[Node], new: &[Node]) -> Result<(), (Handle, i32)> {
    if old.len() != new.len() {
        return Err((0, TOPOLOGY_CHANGED));
    }
    for index in 0..old.len() {
        let (before, after) = (&old[index], &new[index]);
        let reason = match (&before.work, &after.work) {
            (a, b) if discriminant(a) != discriminant(b) => NODE_TYPE_CHANGED,
            _ if Program::dependencies(old, index) != Program::dependencies(new, index) => TOPOLOGY_CHANGED,
            (Work::Copy(a), Work::Copy(b)) if a.kind != b.kind => PARAMETERS_CHANGED,
            (Work::Allocate { address: a, size: n }, Work::Allocate { address: b, size: m })
                if (a, n) != (b, m) =>
            {
                NOT_SUPPORTED
            }
            (Work::Free { address: a }, Work::Free { address: b }) if a != b => NOT_SUPPORTED,
            _ => continue,
        };
        return Err((after.id, reason));
    }
    Ok(())
}
