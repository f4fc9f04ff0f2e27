use super::Declaration;

pub(super) const DECLARATIONS: &[Declaration] = &[];
