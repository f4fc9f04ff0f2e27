//! Where a session runs: the memory and devices of its inputs and outputs, and which provider runs which nodes.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null;

use ort_sys::{OrtEpAssignedNode, OrtEpAssignedSubgraph, OrtEpDevice, OrtMemoryInfo, OrtSession};
use rukh_sys::*;

use crate::failure::{Failure, Result, api, guard_value};
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
        let mut rows: Vec<[String; 3]> = Vec::new();
        let user = (&raw mut rows).cast();
        // SAFETY: live handle; `add_row` gets the list, which outlives the call.
        library::call(|error| unsafe {
            rukh_session_for_each_placement(session.pointer(), Some(add_row), user, error)
        })?;
        let mut subgraphs = [gpu, c"CPUExecutionProvider"].map(|provider| Subgraph {
            provider: provider.to_owned(),
            nodes: Vec::new(),
            pointers: Vec::new(),
        });
        for [name, operator, provider] in &rows {
            subgraphs[usize::from(provider != "hip")].nodes.push(node(name, operator));
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

/// A node by its name and librukh's name of its operator.
fn node(name: &str, full: &str) -> Node {
    // The operators of domains but ONNX's own are written "domain.Name" or "domain:Name".
    let (domain, operator) = full.rsplit_once(['.', ':']).unwrap_or(("", full));
    let [name, domain, operator] = [name, domain, operator].map(crate::handle::c_string);
    Node { name, domain, operator }
}

/// Adds a node's name, operator and provider to the list that `user` is.
unsafe extern "C" fn add_row(placement: *const rukh_placement, user: *mut c_void) -> rukh_status {
    guard_value(RUKH_ERROR_INTERNAL, || {
        let mut texts = [null(); 3];
        let wanted = [RUKH_PLACEMENT_NODE, RUKH_PLACEMENT_OPERATOR, RUKH_PLACEMENT_PROVIDER];
        // SAFETY: the placement lives during the call, its texts as long as it does; `user` is the list of
        // `Assignment::of`, which nobody else uses meanwhile.
        unsafe {
            for (place, which) in texts.iter_mut().zip(wanted) {
                let status = rukh_placement_text(placement, which, place, std::ptr::null_mut());
                if status != RUKH_OK {
                    return status;
                }
            }
            let rows = &mut *user.cast::<Vec<[String; 3]>>();
            rows.push(texts.map(|text| crate::handle::string_or_empty(text)));
        }
        RUKH_OK
    })
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
