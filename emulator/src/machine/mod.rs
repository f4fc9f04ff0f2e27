//! The machine: waves and workgroups that run instructions.

pub mod check;
pub mod count;
mod execute;
mod fault;
mod group;
mod hot_blocks;
#[cfg(all(target_arch = "x86_64", unix))]
mod jit;
mod launch;
mod native;
mod numbers;
mod pool;
mod program;
mod ranges;
mod registers;
mod schedule;
mod start;
mod step;
pub mod trace;
mod wave;

pub use fault::{Fault, FaultKind};
pub use group::Watch;
#[cfg(test)]
pub use hot_blocks::{is_possible as translates, translated_blocks};
pub use launch::{Dispatch, run};
pub use program::Program;
pub use schedule::Settings;
