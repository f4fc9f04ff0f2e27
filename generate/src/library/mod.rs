//! librukh as this library sees it: owners of the handles of its C API.

mod binding;
mod call;
mod session;
mod status;
mod value;

pub(crate) use binding::Binding;
pub(crate) use session::{Environment, Port, Session, SessionOptions};
pub(crate) use status::Status;
pub(crate) use value::{Element, Value};
