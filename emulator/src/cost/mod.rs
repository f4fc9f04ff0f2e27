//! Predicted times of kernels on named cards, from counters. See docs/prediction.md.
//!
//! | file | what is in it |
//! |---|---|
//! | `cards` | what cards can do, with sources |
//! | `predict` | from the counters of a launch to a time |
//! | `replay` | recorded times of instructions beside those of the model |
//! | `report` | many launches: tables and JSON |

mod cards;
mod predict;
mod replay;
mod report;
#[cfg(test)]
mod tests;

pub use cards::{CARDS, Card, LAUNCH, Peak};
pub use predict::{Bound, Prediction, Settings, predict};
pub use replay::{Issued, Step, replay};
pub use report::{Report, Row};
