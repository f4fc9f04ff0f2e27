//! What this process holds of a device's memory.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub(super) struct Held {
    /// Bytes by address.
    pub(super) blocks: HashMap<u64, usize>,
    pub(super) total: u64,
}
