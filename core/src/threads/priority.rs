//! Which of several runs goes first.

/// Which of the runs that wait for a thread, or for a device, goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    pub const COUNT: usize = 3;
}

/// The names of priorities.
pub const PRIORITIES: &[(&str, Priority)] =
    &[("low", Priority::Low), ("normal", Priority::Normal), ("high", Priority::High)];
