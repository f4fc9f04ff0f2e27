//! Pictures of what a session does, as SVG files that need nothing else.

mod arena;
mod draw;
mod graph;
mod layers;
mod memory;
mod plan;
mod times;

pub use arena::Arena;
pub use graph::graph;
pub use memory::memory;
pub use plan::{Memory, Plan, PlanStep, PlanValue, Scratch};
pub use times::Times;
