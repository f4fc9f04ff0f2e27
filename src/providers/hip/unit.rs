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
    /// Whether products of one row keep it as they multiply it (`WIDE` in `kernels/include/rukh/gemv_rows.h`): the kernels
    /// for sm_90, on later devices too.
    pub(super) wide_rows: bool,
    /// Whether the driver makes maps for sm_90's copies of tiles.
    pub(super) tensor_maps: bool,
    pub(super) compute_units: usize,
    /// See [`has_matrix_cores`].
    pub(super) matrix: bool,
}

impl Unit {
    /// How many clusters of 1, 2, 4 or 8 workgroups, each of which needs a processor, have room at the same time: an H200, whose 132
    /// processors are in groups of 8 to 18, has it for 15 of eight and 30 of four.
    pub(super) fn clusters(self, workgroups: usize) -> usize {
        let of_132 = if workgroups > 2 { 120 } else { 132 };
        self.compute_units * of_132 / 132 / workgroups
    }
}

#[cfg(test)]
impl Unit {
    /// An H100 or H200.
    pub(super) const HOPPER: Unit = Unit {
        wave: 32,
        mma_sync: true,
        wgmma: true,
        wide_rows: true,
        tensor_maps: true,
        compute_units: 132,
        matrix: true,
    };
    /// The same with the kernels for sm_80.
    pub(super) const AMPERE: Unit =
        Unit { wgmma: false, wide_rows: false, tensor_maps: false, ..Unit::HOPPER };
}

/// Whether the kernels of half-precision numbers and of bytes use matrix cores for a target. Those of sm_70 are others.
pub(crate) fn has_matrix_cores(target: &str) -> bool {
    let amd = target.starts_with("gfx");
    has_mma_sync(target) || amd && targets::find(target).is_some_and(|(_, matrix)| matrix != MatrixUnit::None)
}

/// Whether it is NVIDIA's from sm_80 on.
pub(super) fn has_mma_sync(target: &str) -> bool {
    target.strip_prefix("sm_").and_then(|n| n.parse::<u32>().ok()).is_some_and(|n| n >= 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_with_kernels_for_matrix_cores() {
        let without = ["gfx906", "gfx1030", "gfx1031", "sm_70", "sm_75", "gfx", ""];
        let with = ["gfx908", "gfx90a", "gfx942", "gfx1100", "gfx1201", "sm_80", "sm_89", "sm_90"];
        for (target, expected) in without.map(|t| (t, false)).into_iter().chain(with.map(|t| (t, true))) {
            assert_eq!(has_matrix_cores(target), expected, "{target}");
        }
    }
}
