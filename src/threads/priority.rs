//! Which of several runs goes first.

/// Which of the runs that wait for a thread, or for a device, goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Priority {
    Low,
    #[default]
    Normal,
    High,
}

impl Priority {
    pub(crate) const COUNT: usize = 3;
}

/// The names of priorities.
pub(crate) const PRIORITIES: &[(&str, Priority)] =
    &[("low", Priority::Low), ("normal", Priority::Normal), ("high", Priority::High)];
