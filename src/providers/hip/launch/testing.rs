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

    /// The parameters of its kernels whose names begin so.
    pub(crate) fn params_of(&self, start: &str) -> Vec<&[u8]> {
        let is_one = |work: &Work| matches!(work, Work::Kernel { name, .. } if name.to_bytes().starts_with(start.as_bytes()));
        let ones = self.launches.iter().filter(|launch| is_one(&launch.work));
        ones.map(|launch| &self.params[launch.params.clone()]).collect()
    }
}
