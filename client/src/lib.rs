//! librukh in safe Rust, for the clients of its C API: owners of its handles, and its errors as `Result`s.
//!
//! Nothing is linked: a library that uses this names librukh in its build script, a program may bring it along as the
//! crate `rukh`. What this layer has no method for is called with `call`, `get` and `make` on the handles that
//! `handle()` of each owner gives.

mod binding;
mod call;
mod device;
mod element;
mod environment;
mod options;
mod port;
mod session;
mod status;
mod value;

pub use binding::Binding;
pub use call::{call, copy, get, make, with_text};
pub use device::Device;
pub use element::Element;
pub use environment::{Environment, EnvironmentOptions, LogLevel};
pub use options::{RunOptions, SessionOptions};
pub use port::{Kind, Port};
pub use session::{Placement, Session, placements_of};
pub use status::{Error, Result, Status};
pub use value::Value;
