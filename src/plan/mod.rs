//! Graph in, executable plan out.
//!
//! A [`Program`] knows no concrete shape: its steps, kernels with packed weights, and which value is
//! used last where. A [`ShapedPlan`] is made from it for each signature of input shapes: what is
//! known without running, where each value lies in one block of memory, and which steps only a run
//! can shape.

mod chain;
mod compile;
mod crossing;
mod early;
mod given;
mod layout;
mod limit;
mod limited;
mod memory;
mod packs;
mod place;
mod planner;
mod program;
mod settled;
mod shaped;
mod specialize;

pub(crate) use compile::{CompileContext, compile};
pub(crate) use packs::{KeptPacks, ModelPacks, PackedNode, RecordedPacks};
pub(crate) use program::{Body, Control, DevicePool, Generator, PlacementRow, Program, Step, StepBody};
pub(crate) use shaped::{DeviceStep, OutputPlace, PlannedStep, ShapedPlan, Signature, State, StepPlan};
