//! Which kernels a plan launches.

use super::{LaunchPlan, Work};

impl LaunchPlan {
    /// The names of its kernels, in order; of a choice those of both ways.
    pub(crate) fn kernel_names(&self) -> Vec<&'static str> {
        let name = |work: &Work| match work {
            Work::Kernel { name, .. } => Some(name.to_str().expect("names of kernels are ASCII")),
            _ => None,
        };
        self.launches.iter().filter_map(|launch| name(&launch.work)).collect()
    }
}
