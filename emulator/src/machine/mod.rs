//! The machine: waves and workgroups that run instructions.

mod execute;
mod fault;
mod group;
mod launch;
mod native;
mod numbers;
mod program;
mod registers;
mod schedule;
mod start;
mod step;
mod translate;
mod wave;

pub use fault::{Fault, FaultKind};
pub use launch::{Dispatch, run};
pub use program::Program;
pub fn probe(instruction: &crate::isa::Instruction, target: crate::isa::Target) -> Result<(), String> {
    execute::action(instruction, step::Setting { target, lanes: target.wave as usize, base: 0 })
        .map(|_| ())
        .map_err(|f| f.message)
}
