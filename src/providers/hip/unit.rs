//! The execution units of a device.

use crate::hip::targets::{self, MatrixUnit};

/// What a choice among kernels must know of the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub(super) wave: usize,
    /// NVIDIA's tensor cores with asynchronous copies (sm_80 and later), whose kernels take dynamic
    /// workgroup memory.
    pub(super) mma_sync: bool,
    /// The matrix units of sm_90 alone.
    pub(super) wgmma: bool,
    /// Whether the driver makes maps for sm_90's copies of tiles.
    pub(super) tensor_maps: bool,
    pub(super) compute_units: usize,
    /// Whether the kernels of half-precision numbers use matrix cores.
    pub(super) matrix: bool,
}

/// Whether a target has matrix units for the kernels of half-precision numbers and of bytes.
pub(crate) fn multiplies_bytes(target: &str) -> bool {
    let amd = || targets::find(target).is_some_and(|(_, matrix)| matrix != MatrixUnit::None);
    has_mma_sync(target) || amd()
}

/// Whether it is NVIDIA's from sm_80 on.
pub(super) fn has_mma_sync(target: &str) -> bool {
    target.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 80)
}
