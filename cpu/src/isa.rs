//! Which vector instructions kernels use: the best that the processor has, or fewer when the environment variable
//! `RUKH_CPU_ISA` says so. It is for tests and benchmarks on machines with more than their users have.
//!
//! A crate chooses for itself and is not limited: `rten-gemm`, for products of floats neither of which is a constant.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use rten_simd::Isa;
use rten_simd::SimdOp;
#[cfg(target_arch = "x86_64")]
use rten_simd::isa::{Avx2Isa, Avx512Isa, GenericIsa};

/// Levels of vector instructions; each has those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has (on ARM: NEON).
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// AVX-512's dot products and permutations of bytes, as far as the processor has them: VNNI, BF16, VBMI.
    Avx512Dot,
    /// Whatever the processor has besides: AMX, AVX-VNNI.
    Native,
}

/// What `RUKH_CPU_ISA` may be.
pub const LEVELS: [(&str, Level); 5] = [
    ("portable", Level::Portable),
    ("avx2", Level::Avx2),
    ("avx512", Level::Avx512),
    ("avx512dot", Level::Avx512Dot),
    ("native", Level::Native),
];

/// The level that kernels may use at most; read once. A value that is not known limits nothing.
pub fn limit() -> Level {
    static LIMIT: OnceLock<Level> = OnceLock::new();
    *LIMIT.get_or_init(|| wanted().and_then(|name| parse(&name)).unwrap_or(Level::Native))
}

/// Finds out all that is found out once. To be called before a process forks: if another thread was finding it out, the child
/// would wait for that thread, which it does not have.
pub fn settle() {
    #[cfg(target_arch = "x86_64")]
    {
        LazyLock::force(&AVX512);
        LazyLock::force(&AVX2);
        is_intel();
    }
    limit();
    halves_avx512();
    has_tiles();
}

/// The variable's value, when it is not known.
pub fn unknown() -> Option<String> {
    wanted().filter(|name| !name.is_empty() && parse(name).is_none())
}

fn wanted() -> Option<String> {
    std::env::var("RUKH_CPU_ISA").ok()
}

fn parse(name: &str) -> Option<Level> {
    LEVELS.iter().find(|(known, _)| *known == name).map(|(_, level)| *level)
}

/// AVX-512, where kernels may use it. Asked once, as loops over short rows are many; so is AVX2.
#[cfg(target_arch = "x86_64")]
static AVX512: LazyLock<Option<Avx512Isa>> =
    LazyLock::new(|| Avx512Isa::new().filter(|_| limit() >= Level::Avx512));
#[cfg(target_arch = "x86_64")]
static AVX2: LazyLock<Option<Avx2Isa>> = LazyLock::new(|| Avx2Isa::new().filter(|_| limit() >= Level::Avx2));

/// A vectorised operation, run with the widest vectors of this machine that are allowed.
pub(super) trait Dispatch: SimdOp + Sized {
    /// As `SimdOp::dispatch`, which knows no limit: the operation is compiled once for each instruction set.
    #[cfg(target_arch = "x86_64")]
    fn widest(self) -> Self::Output {
        // The features are those that the type of rten-simd stands for.
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,f16c")]
        fn with_avx512<Op: SimdOp>(isa: impl Isa, op: Op) -> Op::Output {
            op.eval(isa)
        }
        if let Some(isa) = *AVX512 {
            // SAFETY: there is such a value only where the processor has these instructions.
            return unsafe { with_avx512(isa, self) };
        }
        self.by_eight()
    }

    /// The same with vectors of at most eight floats.
    #[cfg(target_arch = "x86_64")]
    fn by_eight(self) -> Self::Output {
        #[target_feature(enable = "avx,avx2,fma,f16c")]
        fn with_avx2<Op: SimdOp>(isa: impl Isa, op: Op) -> Op::Output {
            op.eval(isa)
        }
        if let Some(isa) = *AVX2 {
            // SAFETY: as in `widest`.
            return unsafe { with_avx2(isa, self) };
        }
        self.eval(GenericIsa::new())
    }

    /// Other architectures have one instruction set.
    #[cfg(not(target_arch = "x86_64"))]
    fn widest(self) -> Self::Output {
        self.dispatch()
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn by_eight(self) -> Self::Output {
        self.dispatch()
    }
}

impl<Op: SimdOp> Dispatch for Op {}

/// Whether kernels may use AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx2() -> bool {
    limit() >= Level::Avx2
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
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
        $crate::isa::limit() >= $crate::isa::Level::Avx512Dot
            && $crate::isa::has_avx512()
            && is_x86_feature_detected!($feature)
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use has_beyond_avx512;

/// Whether a product of one row, which is bound by reading its right operand, prefetches it. On a Zen 4 that takes 1.05 (from
/// memory) to 1.3 times (from the L3 cache) as long; what other processors but Intel's do was not measured.
pub(super) fn prefetches_single_row() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_intel();
    #[cfg(not(target_arch = "x86_64"))]
    true
}

/// Whether the processor is one of Intel's.
#[cfg(target_arch = "x86_64")]
pub(super) fn is_intel() -> bool {
    static INTEL: OnceLock<bool> = OnceLock::new();
    *INTEL.get_or_init(|| is_of(b"GenuineIntel"))
}

/// Whether the processor's vendor has this name.
#[cfg(target_arch = "x86_64")]
fn is_of(vendor: &[u8; 12]) -> bool {
    let leaf = std::arch::x86_64::__cpuid(0);
    [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).as_flattened() == vendor
}

/// Whether the processor computes vectors of 512 bits in two halves, so that they save instructions but no time: Zen 4, the
/// first of AMD's that has AVX-512. Layouts of weights depend on it, so that [`crate::instructions`] names it.
pub(super) fn halves_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        static HALVES: OnceLock<bool> = OnceLock::new();
        let halves = || {
            let signature = std::arch::x86_64::__cpuid(1).eax;
            // The family: 15 and more are the sum of two fields.
            let family = (signature >> 8 & 15) + (signature >> 20 & 255);
            is_of(b"AuthenticAMD") && family == 0x19 && has_avx512()
        };
        *HALVES.get_or_init(halves)
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Whether the processor has AMX with products of bytes and of bfloat16 numbers.
#[cfg(target_arch = "x86_64")]
pub fn has_amx() -> bool {
    // AMX-BF16, AMX-TILE and AMX-INT8 in EDX of leaf 7, which is there where AVX-512 is.
    const AMX: u32 = 1 << 22 | 1 << 24 | 1 << 25;
    is_x86_feature_detected!("avx512f") && std::arch::x86_64::__cpuid_count(7, 0).edx & AMX == AMX
}

/// Whether kernels may use AMX: the processor has it, nothing limits the instructions, and the system lets this process use
/// it. A process has to ask Linux before it uses tiles, which make the state of each of its threads larger; it is asked
/// once. Other systems are not asked, and their tiles not used.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_tiles() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    limit() == Level::Native && *ALLOWED.get_or_init(|| has_amx() && ask_for_tiles())
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn has_tiles() -> bool {
    false
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn ask_for_tiles() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: this takes a number and writes no memory. A kernel that does not know it refuses.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn ask_for_tiles() -> bool {
    false
}
