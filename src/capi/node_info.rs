//! A node whose operator the caller defined, as the caller's functions see it: its inputs, and what they answer.

use std::ffi::{CString, c_char, c_void};
use std::ptr::null;
use std::sync::{Arc, Mutex};

use super::args;
use super::guard::call_on;
use super::handles::{self, Handle, Kind};
use super::locked;
use super::types::*;
use super::user::User;
use super::values::{innermost, kind_of, make};
use crate::error::{Result, fail};
use crate::graph::{Dim, Fact};
use crate::ops::custom::NodeFacts;
use crate::tensor::Value;

/// What a function is asked, which decides what it may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Shapes,
    Kernel,
    Scratch,
}

pub(super) struct NodeInfoObject {
    pub(super) facts: NodeFacts,
    pub(super) question: Question,
    name: CString,
    state: Option<Arc<User>>,
    scratch: usize,
    error: Option<CString>,
    /// Handles that were lent to the caller: of input `i`, or of the tensor of an attribute.
    lent: Vec<(Lent, Handed)>,
}

/// What came of a question.
pub(super) struct Asked {
    pub(super) facts: NodeFacts,
    pub(super) state: Option<Arc<User>>,
    pub(super) scratch: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lent {
    Input(usize),
    Attribute(String),
}

/// A handle of a value that goes with the question.
struct Handed(*mut rukh_value);

// SAFETY: a handle is a number that is checked wherever it is used.
unsafe impl Send for Handed {}

impl Drop for Handed {
    fn drop(&mut self) {
        handles::remove(self.0);
    }
}

impl Handle for rukh_node_info {
    type Object = Mutex<NodeInfoObject>;
    const KIND: Kind = Kind::NodeInfo;
    const NAME: &'static str = "rukh_node_info";
}

impl NodeInfoObject {
    fn new(facts: NodeFacts, question: Question, state: Option<Arc<User>>) -> Self {
        let name = args::c_text(&facts.name);
        NodeInfoObject { facts, question, name, state, scratch: 0, error: None, lent: Vec::new() }
    }

    pub(super) fn for_shapes(facts: NodeFacts) -> Self {
        NodeInfoObject::new(facts, Question::Shapes, None)
    }

    pub(super) fn for_kernel(facts: NodeFacts) -> Self {
        NodeInfoObject::new(facts, Question::Kernel, None)
    }

    pub(super) fn for_scratch(facts: NodeFacts, state: Option<Arc<User>>) -> Self {
        NodeInfoObject::new(facts, Question::Scratch, state)
    }

    /// Takes the answers.
    pub(super) fn end(&mut self) -> (Asked, Option<CString>) {
        self.lent.clear();
        let asked = Asked { facts: self.facts.clone(), state: self.state.take(), scratch: self.scratch };
        (asked, self.error.take())
    }

    /// A handle of a value, the same each time it is asked for.
    pub(super) fn lend(
        &mut self,
        what: Lent,
        value: impl FnOnce() -> Result<Value>,
    ) -> Result<*const rukh_value> {
        if let Some((_, handed)) = self.lent.iter().find(|(other, _)| *other == what) {
            return Ok(handed.0);
        }
        let handle = make(value()?)?;
        self.lent.push((what, Handed(handle)));
        Ok(handle)
    }

    /// An input that is there.
    fn input(&self, index: usize) -> Result<&Fact> {
        match args::item(&self.facts.inputs, index, "input")? {
            Some(fact) => Ok(fact),
            None => fail!(NotFound, "input {index} is left out by the node; rukh_node_info_has_input tells"),
        }
    }

    /// Fails unless the function was asked this.
    pub(super) fn check(&self, question: Question, what: &str) -> Result<()> {
        match self.question == question {
            true => Ok(()),
            false => fail!(InvalidArgument, "{what} can be set in that function alone which is asked for it"),
        }
    }
}

/// The name of the node, for messages.
///
/// `node`, `name`: not NULL; the text is borrowed from the node. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_name(
    node: *const rukh_node_info,
    name: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| args::put(name, "name", locked(node).name.as_ptr()))
}

/// The version of the operator's domain that the model imports.
///
/// `node`, `version`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_version(
    node: *const rukh_node_info,
    version: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| args::put(version, "version", locked(node).facts.opset))
}

/// The number of the node's inputs, those included that it leaves out before others.
///
/// `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_input_count(
    node: *const rukh_node_info,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| args::put(count, "count", locked(node).facts.inputs.len()))
}

/// The number of the node's outputs, those included that it leaves out before others.
///
/// `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_output_count(
    node: *const rukh_node_info,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| args::put(count, "count", locked(node).facts.outputs.len()))
}

/// Whether the node has an input (1), or leaves it out (0).
///
/// `node`, `given`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_has_input(
    node: *const rukh_node_info,
    index: usize,
    given: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let has = locked(node).facts.inputs.get(index).is_some_and(Option::is_some);
        args::put(given, "given", i32::from(has))
    })
}

/// What an input is, and its element type: of a tensor, or of the tensors inside another kind.
///
/// `node`: not NULL. `index`: of an input that the node has. `kind`, `element`: may be NULL; receive
/// `RUKH_KIND_UNDEFINED` and `RUKH_ELEMENT_UNDEFINED` while the type is not known. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node
/// leaves out, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_input_type(
    node: *const rukh_node_info,
    index: usize,
    kind: *mut rukh_kind,
    element: *mut rukh_element_type,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let node = locked(node);
        let ty = node.input(index)?.ty.as_ref();
        args::put_if_wanted(kind, ty.map_or(RUKH_KIND_UNDEFINED, kind_of));
        args::put_if_wanted(element, ty.map_or(RUKH_ELEMENT_UNDEFINED, |ty| innermost(ty) as i32));
        Ok(())
    })
}

/// The shape of an input.
///
/// `node`: not NULL. `index`: of an input that the node has. `dims`: room for `cap` dimensions, which receives them in
/// elements, -1 for one that is not known; NULL allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives
/// the number of dimensions, -1 when that is not known. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or too little room, `RUKH_ERROR_NOT_FOUND` for an input
/// that the node leaves out, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_input_shape(
    node: *const rukh_node_info,
    index: usize,
    dims: *mut i64,
    cap: usize,
    rank: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let node = locked(node);
        let Some(shape) = &node.input(index)?.shape else {
            args::put_if_wanted(rank, -1);
            return Ok(());
        };
        args::put_if_wanted(rank, shape.len() as i64);
        let shape: Vec<i64> = shape.iter().map(|dim| Dim::known(dim).unwrap_or(-1)).collect();
        args::put_dims(&shape, dims, cap, std::ptr::null_mut())
    })
}

/// The value of an input where it is known: a constant of the model, or an input that decides a shape.
///
/// `node`: not NULL. `index`: of an input that the node has. `value`: not NULL; receives the tensor, borrowed from the
/// node; NULL when the value is not known. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
/// an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node leaves out, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_input_value(
    node: *const rukh_node_info,
    index: usize,
    value: *mut *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let mut node = locked(node);
        node.input(index)?;
        let Some(tensor) = node.facts.constants.get(index).cloned().flatten() else {
            return args::put(value, "value", null());
        };
        let handle = node.lend(Lent::Input(index), || Ok(Value::Tensor(tensor.aligned()?)))?;
        args::put(value, "value", handle)
    })
}

/// Says why a function cannot answer: the text of the error that opening or running the model returns, after the
/// node's name. The function then fails, whatever status it returns.
///
/// `node`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_error(
    node: *mut rukh_node_info,
    text: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        locked(node).error = Some(args::c_text(args::text(text, "text")?));
        Ok(())
    })
}

/// Gives the node's kernel a state, which `rukh_kernel_context_state` tells later. For the function `create` of a kernel.
///
/// `node`: not NULL. `state`: passed on as it is; may be NULL. `release`: may be NULL; called once with `state` when the
/// session is gone, or when another state takes its place, also when opening the session fails. `error`: may be NULL.
/// Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors; `release` is then not
/// called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_state(
    node: *mut rukh_node_info,
    state: *mut c_void,
    release: rukh_release,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        locked(node).check(Question::Kernel, "the state of a kernel")?;
        let old = locked(node).state.replace(Arc::new(User { pointer: state, release }));
        // Outside of the lock: the function may call the library.
        drop(old);
        Ok(())
    })
}

/// The state that the function `create` gave the node's kernel. For the function `prepare` of a GPU kernel.
///
/// `node`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_state(
    node: *const rukh_node_info,
    state: *mut *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let pointer = locked(node).state.as_ref().map_or(std::ptr::null_mut(), |state| state.pointer);
        args::put(state, "state", pointer)
    })
}

/// Asks for temporary device memory for each run of these shapes. For the function `prepare` of a GPU kernel.
///
/// `node`: not NULL. `bytes`: 0 or more; the memory is aligned to 256 bytes and its content is unspecified. `error`: may
/// be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_set_scratch(
    node: *mut rukh_node_info,
    bytes: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let mut node = locked(node);
        node.check(Question::Scratch, "temporary memory")?;
        node.scratch = bytes;
        Ok(())
    })
}
