//! What the algorithms of convolution share: how images lie in memory, how work is split over threads, and what happens
//! to sums on their way to memory.

pub(crate) mod activation;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod blocks;
pub(crate) mod epilogue;
pub(crate) mod lines;
pub(crate) mod masks;
pub(crate) mod partition;
pub(crate) mod planes;
pub(crate) mod weight;
