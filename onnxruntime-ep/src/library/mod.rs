//! librukh as this library sees it: owners of its handles.

mod artifact;
mod binding;
mod call;
mod environment;
mod session;
mod stream;
mod value;

pub(crate) use artifact::{Compilation, compile, info, report};
pub(crate) use binding::Binding;
pub(crate) use environment::{Device, Environment};
pub(crate) use session::{Port, Session, SessionOptions};
pub(crate) use stream::{Completion, RunOptions, Stream};
pub(crate) use value::Value;
