//! The GPUs that rukh knows: what a card is called, its machine code, its wave size and matrix unit.

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

/// One machine code.
pub(crate) struct Target {
    /// LLVM's name: `gfx942`.
    pub(crate) arch: &'static str,
    /// The generation's code names.
    pub(crate) code_names: &'static [&'static str],
    /// Cards that run it.
    pub(crate) cards: &'static [&'static str],
    pub(crate) wave: u32,
    pub(crate) matrix: MatrixUnit,
}

macro_rules! targets {
    ($($arch:literal, $wave:literal, $matrix:ident, [$($code:literal),*], [$($card:literal),*];)*) => {
        pub(crate) const TARGETS: &[Target] = &[$(Target {
            arch: $arch,
            code_names: &[$($code),*],
            cards: &[$($card),*],
            wave: $wave,
            matrix: MatrixUnit::$matrix,
        }),*];
    };
}

// From LLVM's AMDGPU usage guide and AMD's list of supported hardware.
targets! {
    "gfx906", 64, None, ["vega20"], ["mi50", "mi60", "radeon vii", "radeon pro vii"];
    "gfx908", 64, Mfma, ["cdna1", "arcturus"], ["mi100"];
    "gfx90a", 64, Mfma, ["cdna2", "aldebaran"], ["mi210", "mi250", "mi250x"];
    "gfx942", 64, Mfma, ["cdna3", "aqua vanjaram"], ["mi300a", "mi300x", "mi325x"];
    "gfx950", 64, Mfma, ["cdna4"], ["mi350x", "mi355x"];
    "gfx1030", 32, None, ["rdna2", "navi21"], ["rx 6800", "rx 6800 xt", "rx 6900 xt", "rx 6950 xt", "pro w6800", "pro v620"];
    "gfx1100", 32, Wmma, ["navi31"], ["rx 7900 xtx", "rx 7900 xt", "rx 7900 gre", "pro w7900", "pro w7800"];
    "gfx1101", 32, Wmma, ["navi32"], ["rx 7800 xt", "rx 7700 xt", "pro w7700", "pro v710"];
    "gfx1102", 32, Wmma, ["navi33"], ["rx 7600", "rx 7600 xt", "pro w7600", "pro w7500"];
    "gfx1150", 32, Wmma, ["strix point"], ["radeon 890m", "radeon 880m"];
    "gfx1151", 32, Wmma, ["strix halo"], ["radeon 8060s", "radeon 8050s"];
    "gfx1200", 32, Wmma, ["navi44"], ["rx 9060 xt"];
    "gfx1201", 32, Wmma, ["navi48"], ["rx 9070", "rx 9070 xt", "pro r9700"];
    "sm_70", 32, Mma, ["volta"], ["v100"];
    "sm_80", 32, Mma, ["ampere"], ["a100", "a30"];
    "sm_90", 32, Mma, ["hopper"], ["h100", "h200", "gh200"];
}
