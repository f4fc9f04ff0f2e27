//! One file a command.

mod bench;
mod devices;
mod info;
mod inputs;
mod launches;
mod report;
mod run;

pub use bench::bench;
pub use devices::devices;
pub use info::info;
pub use report::report;
pub use run::run;
