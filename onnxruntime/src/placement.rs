//! Where a session runs: the memory and devices of its inputs and outputs, and which provider runs which nodes.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null;

use ort_sys::{OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, OrtMemoryInfo, OrtSession};
use rukh_sys::*;

use crate::failure::{Failure, Result, api};
use crate::handle::{get, handles, put};
use crate::library::{self, Own};
use crate::ports::Side;
use crate::session::{Model, Session};

/// The nodes that one provider runs.
pub struct Subgraph {
    provider: CString,
    nodes: Vec<Node>,
    pointers: Vec<*const OrtEpAssignedNode>,
}

/// A node, after the graph was rewritten.
pub struct Node {
    name: CString,
    domain: CString,
    operator: CString,
}

handles! {
    Subgraph => OrtEpAssignedSubgraph;
    Node => OrtEpAssignedNode;
}

/// All nodes of a session by their provider.
pub struct Assignment {
    _subgraphs: Vec<Subgraph>,
    pointers: Vec<*const OrtEpAssignedSubgraph>,
}

// SAFETY: the addresses point into lists of the same object, which are only read.
unsafe impl Send for Assignment {}
// SAFETY: as above.
unsafe impl Sync for Assignment {}

impl Assignment {
    /// `gpu` is the name of the provider for GPUs.
    pub fn of(session: &Own<rukh_session>, gpu: &CStr) -> Result<Assignment> {
        // SAFETY: live handle, a place for the number.
        let count = library::get(|out, error| unsafe {
            rukh_session_placement_count(session.pointer(), out, error)
        })?;
        let mut subgraphs = [gpu, c"CPUExecutionProvider"].map(|provider| Subgraph {
            provider: provider.to_owned(),
            nodes: Vec::new(),
            pointers: Vec::new(),
        });
        for index in 0..count {
            let (provider, node) = node(session, index)?;
            subgraphs[usize::from(provider != "hip")].nodes.push(node);
        }
        let mut found: Vec<Subgraph> =
            subgraphs.into_iter().filter(|subgraph| !subgraph.nodes.is_empty()).collect();
        for subgraph in &mut found {
            subgraph.pointers = subgraph.nodes.iter().map(|node| std::ptr::from_ref(node).cast()).collect();
        }
        let pointers = found.iter().map(|subgraph| std::ptr::from_ref(subgraph).cast()).collect();
        Ok(Assignment { _subgraphs: found, pointers })
    }
}

/// A node and librukh's name of its provider.
fn node(session: &Own<rukh_session>, index: usize) -> Result<(String, Node)> {
    let (mut name, mut operator, mut provider) = (null(), null(), null());
    // SAFETY: live handle, places for the texts; the reason is not wanted.
    library::call(|error| unsafe {
        let pointer = session.pointer();
        rukh_session_placement(
            pointer,
            index,
            &mut name,
            &mut operator,
            &mut provider,
            std::ptr::null_mut(),
            error,
        )
    })?;
    // SAFETY: the texts are borrowed from the session, which lives.
    let text = |text: *const c_char| unsafe { crate::handle::string_or_empty(text) };
    let full = text(operator);
    // The operators of domains but ONNX's own are written "domain.Name" or "domain:Name".
    let (domain, operator) = full.rsplit_once(['.', ':']).unwrap_or(("", &full));
    let [name, domain, operator] = [&text(name), domain, operator].map(crate::handle::c_string);
    Ok((text(provider), Node { name, domain, operator }))
}

/// Writes the same for each input or output.
///
/// # Safety
/// `out` has `count` places.
unsafe fn each<T: Copy>(model: &Model, side: Side, out: *mut T, count: usize, item: T) -> Result<()> {
    let there = model.ports(side).len();
    if count != there {
        return Err(Failure::argument(format!(
            "there is room for {count}; the model has {there} {}s",
            side.name()
        )));
    }
    for index in 0..count {
        // SAFETY: the caller's promise.
        unsafe { put(out.wrapping_add(index), item)? };
    }
    Ok(())
}

/// Where a session's inputs and outputs are best: in the memory of the GPU, if one was wanted.
fn memory(model: &Model) -> *const OrtMemoryInfo {
    std::ptr::from_ref(model.memory()).cast()
}

fn device(model: &Model) -> Result<*const OrtEpDevice> {
    let devices = model.environment().devices()?;
    Ok(devices.with(model.memory()).map_or(null(), |device| std::ptr::from_ref(device).cast()))
}

api! {
    fn SessionGetMemoryInfoForInputs(session: *const OrtSession, out: *mut *const OrtMemoryInfo, count: usize) {
        let model = &get::<Session>(session)?.0;
        each(model, Side::Input, out, count, memory(model))?;
    }

    fn SessionGetMemoryInfoForOutputs(session: *const OrtSession, out: *mut *const OrtMemoryInfo, count: usize) {
        let model = &get::<Session>(session)?.0;
        each(model, Side::Output, out, count, memory(model))?;
    }

    fn SessionGetEpDeviceForInputs(session: *const OrtSession, out: *mut *const OrtEpDevice, count: usize) {
        let model = &get::<Session>(session)?.0;
        each(model, Side::Input, out, count, device(model)?)?;
    }

    fn SessionGetEpDeviceForOutputs(session: *const OrtSession, out: *mut *const OrtEpDevice, count: usize) {
        let model = &get::<Session>(session)?.0;
        each(model, Side::Output, out, count, device(model)?)?;
    }

    fn Session_GetEpGraphAssignmentInfo(session: *const OrtSession, out: *mut *const *const OrtEpAssignedSubgraph, count: *mut usize) {
        let assignment = get::<Session>(session)?.0.assignment()?;
        put(out, assignment.pointers.as_ptr())?;
        put(count, assignment.pointers.len())?;
    }

    fn EpAssignedSubgraph_GetEpName(subgraph: *const OrtEpAssignedSubgraph, out: *mut *const c_char) {
        put(out, get::<Subgraph>(subgraph)?.provider.as_ptr())?;
    }

    fn EpAssignedSubgraph_GetNodes(subgraph: *const OrtEpAssignedSubgraph, out: *mut *const *const OrtEpAssignedNode, count: *mut usize) {
        let nodes = &get::<Subgraph>(subgraph)?.pointers;
        put(out, nodes.as_ptr())?;
        put(count, nodes.len())?;
    }

    fn EpAssignedNode_GetName(node: *const OrtEpAssignedNode, out: *mut *const c_char) {
        put(out, get::<Node>(node)?.name.as_ptr())?;
    }

    fn EpAssignedNode_GetDomain(node: *const OrtEpAssignedNode, out: *mut *const c_char) {
        put(out, get::<Node>(node)?.domain.as_ptr())?;
    }

    fn EpAssignedNode_GetOperatorType(node: *const OrtEpAssignedNode, out: *mut *const c_char) {
        put(out, get::<Node>(node)?.operator.as_ptr())?;
    }
}
