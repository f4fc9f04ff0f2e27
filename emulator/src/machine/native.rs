//! Actions that are compiled several times, for older and for newer processors.

use super::fault::Fault;
use super::group::Group;
use super::step::Action;
use super::wave::Wave;

/// What an instruction does, where vector code of newer processors makes it faster. `run` and what it calls for each
/// lane should be `#[inline(always)]`, else it is compiled for the oldest processor only.
pub trait Work: Send + Sync + 'static {
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>>;
}

/// An action that does the work with the best vector code that this processor has.
#[cfg(target_arch = "x86_64")]
pub fn action<W: Work>(work: W) -> Action {
    if has_avx512() {
        // SAFETY: the processor has AVX-512 and what else the function is compiled for.
        return Box::new(move |wave, group| unsafe { run_avx512(&work, wave, group) });
    }
    if has_avx2() {
        // SAFETY: the processor has AVX2 and what else the function is compiled for.
        return Box::new(move |wave, group| unsafe { run_avx2(&work, wave, group) });
    }
    Box::new(move |wave, group| work.run(wave, group))
}

/// An action that does the work.
#[cfg(not(target_arch = "x86_64"))]
pub fn action<W: Work>(work: W) -> Action {
    Box::new(move |wave, group| work.run(wave, group))
}

#[cfg(target_arch = "x86_64")]
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
pub fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<W: Work>(work: &W, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
    work.run(wave, group)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx512<W: Work>(work: &W, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
    work.run(wave, group)
}
