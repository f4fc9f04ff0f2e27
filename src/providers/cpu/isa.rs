//! Which vector instructions kernels use: the best that the processor has, or fewer when the environment variable
//! `RUKH_CPU_ISA` says so. It is for tests and benchmarks on machines with more than their users have.
//!
//! Two crates choose for themselves and are not limited: `rten-gemm` for products of floats neither of which is a
//! constant, and `rten-vecmath` for elementwise functions.

use std::sync::OnceLock;

use rten_simd::isa::GenericIsa;
use rten_simd::{Isa, SimdOp};

/// Levels of vector instructions; each has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What every processor of the architecture has (on ARM: NEON).
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// Whatever the processor has besides: VNNI, BF16, VBMI.
    Native,
}

/// What `RUKH_CPU_ISA` may be.
pub(crate) const LEVELS: [(&str, Level); 4] = [
    ("portable", Level::Portable),
    ("avx2", Level::Avx2),
    ("avx512", Level::Avx512),
    ("native", Level::Native),
];

/// The level that kernels may use at most; read once. A value that is not known limits nothing.
pub(crate) fn limit() -> Level {
    static LIMIT: OnceLock<Level> = OnceLock::new();
    *LIMIT.get_or_init(|| wanted().and_then(|name| parse(&name)).unwrap_or(Level::Native))
}

/// The variable's value, when it is not known.
pub(crate) fn unknown() -> Option<String> {
    wanted().filter(|name| !name.is_empty() && parse(name).is_none())
}

fn wanted() -> Option<String> {
    std::env::var("RUKH_CPU_ISA").ok()
}

fn parse(name: &str) -> Option<Level> {
    LEVELS.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
}

/// A vectorised operation, run with the widest vectors of this machine that are allowed.
pub(super) trait Dispatch: SimdOp + Sized {
    fn widest(self) -> Self::Output {
        match limit() {
            Level::Avx512 | Level::Native => self.dispatch(),
            Level::Avx2 => with_avx2(self),
            Level::Portable => self.eval(GenericIsa::new()),
        }
    }
}

impl<Op: SimdOp> Dispatch for Op {}

#[cfg(target_arch = "x86_64")]
fn with_avx2<Op: SimdOp>(op: Op) -> Op::Output {
    #[target_feature(enable = "avx,avx2,fma,f16c")]
    fn run<Op: SimdOp>(isa: impl Isa, op: Op) -> Op::Output {
        op.eval(isa)
    }
    match rten_simd::isa::Avx2Isa::new() {
        // SAFETY: there is such a value only where the processor has these instructions.
        Some(isa) => unsafe { run(isa, op) },
        None => op.eval(GenericIsa::new()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn with_avx2<Op: SimdOp>(op: Op) -> Op::Output {
    op.dispatch()
}

/// Whether kernels may use AVX-512 (F, BW, DQ and VL).
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    limit() >= Level::Avx512
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

/// Whether kernels may use a feature beyond [`has_avx512`], named as `is_x86_feature_detected` does.
#[cfg(target_arch = "x86_64")]
macro_rules! has_beyond_avx512 {
    ($feature:tt) => {
        $crate::providers::cpu::isa::limit() == $crate::providers::cpu::isa::Level::Native
            && $crate::providers::cpu::isa::has_avx512()
            && is_x86_feature_detected!($feature)
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use has_beyond_avx512;
