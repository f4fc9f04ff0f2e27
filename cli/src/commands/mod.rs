//! One file a command.

mod bench;
mod devices;
mod info;
mod inputs;
mod run;

pub use bench::bench;
pub use devices::devices;
pub use info::info;
pub use run::run;
