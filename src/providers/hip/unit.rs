//! The execution units of a device.

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
