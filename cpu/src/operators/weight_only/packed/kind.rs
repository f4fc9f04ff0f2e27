//! Which instructions a processor has for dot products of integers.

#[cfg(target_arch = "x86_64")]
use crate::isa::{Level, has_avx2, has_beyond_avx512, limit};

/// Which vectors this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// None of them.
    Missing,
}

impl Kind {
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of_machine() -> Self {
        if has_beyond_avx512!("avx512vnni") {
            Kind::Avx512Vnni
        } else if limit() == Level::Native && has_avx2() && is_x86_feature_detected!("avxvnni") {
            Kind::AvxVnni
        } else if has_avx2() {
            Kind::Avx2
        } else {
            Kind::Missing
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn of_machine() -> Self {
        Kind::Missing
    }

    /// Lanes of 32 bits of a vector.
    pub(super) fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512Vnni => 16,
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni | Kind::Avx2 => 8,
            Kind::Missing => 0,
        }
    }

    /// All that this machine has, whatever `of_machine` prefers.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let narrow = has_avx2() && limit() == Level::Native && is_x86_feature_detected!("avxvnni");
            [(has_avx2(), Kind::Avx2), (narrow, Kind::AvxVnni), (true, Kind::of_machine())]
                .into_iter()
                .filter_map(|(there, kind)| there.then_some(kind))
                .collect()
        }
        #[cfg(not(target_arch = "x86_64"))]
        vec![Kind::Missing]
    }
}
