//! A safe face of the C API, as far as the command needs it.

mod adapter;
mod artifact;
mod call;
mod environment;
mod generator;
mod metadata;
mod options;
mod session;
mod value;

pub use adapter::Adapter;
pub use artifact::{Artifact, Verdict, compile, is_artifact};
pub use call::{Error, Result};
pub use environment::{Device, Environment, Tuned, report, version};
pub use generator::Generator;
pub use metadata::{LoadCounters, Metadata};
pub use options::{Options, Provider, alone_or_helped};
pub use rukh_client::Placement;
pub use session::{Bound, Session};
pub use value::Value;
