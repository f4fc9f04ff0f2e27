//! librukh as this library sees it: the functions of its C API, and owners of its handles.

pub(crate) mod functions;

mod binding;
mod call;
mod session;
mod status;
mod value;

pub(crate) use binding::Binding;
pub(crate) use session::{Environment, Port, Session, SessionOptions};
pub(crate) use status::Status;
pub(crate) use value::{Element, Value};
