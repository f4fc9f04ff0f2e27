//! One file a command.

mod artifact_facts;
mod bench;
mod bench_generate;
mod compile;
mod devices;
mod generate;
mod info;
mod inputs;
mod launches;
mod pictures;
mod report;
mod report_full;
mod run;
mod targets;
mod tune;

pub use bench::bench;
pub use compile::compile;
pub use devices::devices;
pub use generate::generate;
pub use info::info;
pub use report::report;
pub use run::run;
pub use targets::targets;
pub use tune::tune;
