//! The caller's functions of an operator, called.

use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

use super::handles;
use super::kernel_context::KernelContextObject;
use super::locked;
use super::node_info::{Asked, NodeInfoObject};
use super::types::*;
use super::user::User;
use crate::error::{Error, Status};
use crate::graph::Fact;
use crate::ops::OpError;
use crate::ops::custom::{Behaviour, Call, Instance, NodeFacts, OutputFact, Side};

type OpResult<T> = std::result::Result<T, OpError>;
type NodeFunction = unsafe extern "C" fn(*mut rukh_node_info, *mut c_void) -> rukh_status;
type KernelFunction = unsafe extern "C" fn(*mut rukh_kernel_context, *mut c_void) -> rukh_status;

/// The functions of an operator. Clones share `user`.
#[derive(Clone)]
pub(super) struct Functions {
    user: Arc<User>,
    pub(super) shape: rukh_node_callback,
    pub(super) cpu: Option<KernelFunctions>,
    pub(super) gpu: Option<GpuFunctions>,
}

#[derive(Clone, Copy)]
pub(super) struct KernelFunctions {
    pub(super) create: rukh_node_callback,
    pub(super) compute: KernelFunction,
}

#[derive(Clone, Copy)]
pub(super) struct GpuFunctions {
    pub(super) kernel: KernelFunctions,
    pub(super) prepare: rukh_node_callback,
}

impl Functions {
    pub(super) fn new(user: Arc<User>) -> Self {
        Functions { user, shape: None, cpu: None, gpu: None }
    }
}

impl Behaviour for Functions {
    fn infer(&self, node: NodeFacts) -> OpResult<NodeFacts> {
        match self.shape {
            Some(function) => {
                let asked = ask(function, &self.user, NodeInfoObject::for_shapes(node), "shape function")?;
                Ok(asked.facts)
            }
            None => Ok(node),
        }
    }

    fn runs_on(&self, side: Side) -> bool {
        match side {
            Side::Host => self.cpu.is_some(),
            Side::Device => self.gpu.is_some(),
        }
    }

    fn instance(&self, node: NodeFacts, side: Side) -> OpResult<Box<dyn Instance>> {
        let (functions, prepare) = match side {
            Side::Host => (self.cpu, None),
            Side::Device => (self.gpu.map(|gpu| gpu.kernel), self.gpu.and_then(|gpu| gpu.prepare)),
        };
        let Some(KernelFunctions { create, compute }) = functions else {
            return Err(OpError::Unsupported("the operator has no kernel there".to_owned()));
        };
        let mut state = None;
        if let Some(create) = create {
            let object = NodeInfoObject::for_kernel(node.clone());
            state = ask(create, &self.user, object, "function that makes the kernel's state")?.state;
        }
        Ok(Box::new(Kernel { user: self.user.clone(), compute, prepare, state, node }))
    }
}

/// The kernel of a node.
struct Kernel {
    /// Released before `user`, which its release function may use.
    state: Option<Arc<User>>,
    user: Arc<User>,
    compute: KernelFunction,
    prepare: rukh_node_callback,
    node: NodeFacts,
}

impl Instance for Kernel {
    fn compute(&self, call: Call) -> OpResult<Call> {
        let state = self.state.as_ref().map_or(std::ptr::null_mut(), |state| state.pointer);
        let object = Arc::new(KernelContextObject::new(call, state));
        let handle = handles::insert::<rukh_kernel_context>(object.clone())?;
        // SAFETY: the caller's function with the caller's pointer; the handle lives during the call.
        let status = unsafe { (self.compute)(handle, self.user.pointer) };
        handles::remove(handle);
        let (call, text) = object.end();
        check(status, text, "kernel")?;
        call.ok_or_else(|| OpError::Data("the kernel's call ended twice".to_owned()))
    }

    fn prepare(&self, inputs: &[Option<Fact>], outputs: Vec<OutputFact>) -> OpResult<usize> {
        let Some(prepare) = self.prepare else { return Ok(0) };
        let facts = NodeFacts { inputs: inputs.to_vec(), outputs, ..self.node.clone() };
        let object = NodeInfoObject::for_scratch(facts, self.state.clone());
        Ok(ask(prepare, &self.user, object, "function that prepares a GPU kernel")?.scratch)
    }
}

/// Asks one of the caller's functions about a node.
fn ask(function: NodeFunction, user: &User, object: NodeInfoObject, what: &str) -> OpResult<Asked> {
    let object = Arc::new(Mutex::new(object));
    let handle = handles::insert::<rukh_node_info>(object.clone())?;
    // SAFETY: the caller's function with the caller's pointer; the handle lives during the call.
    let status = unsafe { function(handle, user.pointer) };
    handles::remove(handle);
    let (asked, text) = locked(&object).end();
    check(status, text, what)?;
    Ok(asked)
}

/// What a callback's status and text say.
pub(super) fn check(status: rukh_status, text: Option<CString>, what: &str) -> OpResult<()> {
    let known = |number| STATUSES.into_iter().find(|status| *status as i32 == number);
    let error = match (status, text) {
        (RUKH_OK, None) => return Ok(()),
        (RUKH_OK, Some(text)) => Error::new(Status::InvalidData, text.to_string_lossy().into_owned()),
        (number, text) => {
            let status = known(number).unwrap_or(Status::InvalidData);
            let text = match text {
                Some(text) => text.to_string_lossy().into_owned(),
                None => format!("the operator's {what} failed with status {number} and without a text"),
            };
            Error::new(status, text)
        }
    };
    Err(if error.status == Status::Cancelled { OpError::Cancelled } else { OpError::Failed(error) })
}

const STATUSES: [Status; 14] = [
    Status::InvalidArgument,
    Status::InvalidHandle,
    Status::NotFound,
    Status::Io,
    Status::InvalidModel,
    Status::Unsupported,
    Status::InvalidInput,
    Status::InvalidData,
    Status::OutOfMemory,
    Status::Cancelled,
    Status::Device,
    Status::Poisoned,
    Status::Forked,
    Status::Internal,
];
