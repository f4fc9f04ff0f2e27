use super::Entry;

pub(super) const KERNELS: &[Entry] = &[];
