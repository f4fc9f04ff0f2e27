//! The machine codes that rukh knows: their generation's name and matrix unit.

/// What multiplies matrices on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatrixUnit {
    /// Plain fused multiply-add, and dot products of small integers.
    None,
    /// CDNA's matrix cores.
    Mfma,
    /// RDNA 3 and 4.
    Wmma,
    /// NVIDIA's tensor cores.
    Mma,
}

impl MatrixUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MatrixUnit::None => "none",
            MatrixUnit::Mfma => "MFMA",
            MatrixUnit::Wmma => "WMMA",
            MatrixUnit::Mma => "mma",
        }
    }
}

/// One machine code: LLVM's name, the code name of its chips, and what multiplies matrices on them. From
/// LLVM's AMDGPU usage guide and AMD's list of supported hardware.
const TARGETS: &[(&str, &str, MatrixUnit)] = &[
    ("gfx906", "Vega 20", MatrixUnit::None),
    ("gfx908", "CDNA 1", MatrixUnit::Mfma),
    ("gfx90a", "CDNA 2", MatrixUnit::Mfma),
    ("gfx942", "CDNA 3", MatrixUnit::Mfma),
    ("gfx950", "CDNA 4", MatrixUnit::Mfma),
    ("gfx1030", "RDNA 2, Navi 21", MatrixUnit::None),
    ("gfx1100", "RDNA 3, Navi 31", MatrixUnit::Wmma),
    ("gfx1101", "RDNA 3, Navi 32", MatrixUnit::Wmma),
    ("gfx1102", "RDNA 3, Navi 33", MatrixUnit::Wmma),
    ("gfx1150", "RDNA 3.5, Strix Point", MatrixUnit::Wmma),
    ("gfx1151", "RDNA 3.5, Strix Halo", MatrixUnit::Wmma),
    ("gfx1200", "RDNA 4, Navi 44", MatrixUnit::Wmma),
    ("gfx1201", "RDNA 4, Navi 48", MatrixUnit::Wmma),
    ("sm_70", "Volta", MatrixUnit::Mma),
    ("sm_80", "Ampere", MatrixUnit::Mma),
    ("sm_90", "Hopper", MatrixUnit::Mma),
];

/// The names of all of them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, ..)| *name)
}

/// Code name and matrix unit of a machine code; `None` for one that rukh does not know.
pub(crate) fn find(arch: &str) -> Option<(&'static str, MatrixUnit)> {
    TARGETS.iter().find(|(name, ..)| *name == arch).map(|&(_, code_name, matrix)| (code_name, matrix))
}
