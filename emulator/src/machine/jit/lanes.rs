//! Loads and stores of whole waves, for translated code: the usual ways of addressing, in all of which the elements lie in
//! one allocation. What is not usual goes the way of the interpreter.

use std::arch::x86_64::*;

use crate::machine::group::Group;
use crate::machine::wave::Wave;

use super::access::Access;
use super::call::{Call, Context, perform};
use super::emitter::TOGETHER;
use super::transfer::{load, store};

/// Loads scalar registers.
///
/// # Safety
///
/// The call is one of translated code's.
pub unsafe extern "sysv64" fn load_scalars<const BYTES: usize>(
    call: &Call,
    wave: &mut Wave,
    group: &mut Group<'_>,
    context: &mut Context,
) -> u32 {
    let access = &call.access;
    let base = access.scalar.map_or(0, |register| wave.scalar64(register));
    let address = base.wrapping_add(access.offset as u64) & !3;
    let Some(range) = wave.ranges.covering(group.memory, address, address.wrapping_add(BYTES as u64)) else {
        // SAFETY: the caller's promise.
        return unsafe { perform(call, wave, group, context) };
    };
    let from = range.host.wrapping_add((address - range.start) as usize);
    let to = &mut wave.scalar[access.register..][..BYTES / 4];
    // SAFETY: the range holds all the bytes, and the registers have room for them.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr().cast(), BYTES) };
    0
}

/// Functions that translated code calls: the fast way, or where that gives `None` the interpreter's.
macro_rules! functions {
    ($($name:ident: $fast:ident)*) => { $(
        /// # Safety
        ///
        /// The call is one of translated code's, which is made for processors with AVX-512 alone.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
        pub unsafe extern "sysv64" fn $name<const LANES: usize, const WORDS: usize>(
            call: &Call,
            wave: &mut Wave,
            group: &mut Group<'_>,
            context: &mut Context,
        ) -> u32 {
            let mask = wave.exec();
            if mask == 0 {
                return 0;
            }
            // SAFETY: the registers of the access exist.
            match unsafe { $fast::<LANES, WORDS>(&call.access, wave, group, mask) } {
                Some(()) => 0,
                // SAFETY: the caller's promise.
                None => unsafe { perform(call, wave, group, context) },
            }
        }
    )* };
}

functions! {
    load_global: fast_load_global
    store_global: fast_store_global
    store_lds: fast_store_lds
    store_pair: fast_store_pair
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn fast_load_global<const LANES: usize, const WORDS: usize>(
    access: &Access,
    wave: &mut Wave,
    group: &mut Group<'_>,
    mask: u64,
) -> Option<()> {
    // SAFETY: the caller's promise; all elements were found.
    unsafe {
        let base = in_memory::<LANES>(access, wave, group, mask, 4 * WORDS as u64)?;
        load::<LANES, WORDS>(wave, access.vector, access.register, base, mask);
    }
    Some(())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn fast_store_global<const LANES: usize, const WORDS: usize>(
    access: &Access,
    wave: &mut Wave,
    group: &mut Group<'_>,
    mask: u64,
) -> Option<()> {
    // SAFETY: the caller's promise; all elements were found.
    unsafe {
        let base = in_memory::<LANES>(access, wave, group, mask, 4 * WORDS as u64)?;
        store::<LANES, WORDS>(wave, access.vector, access.register, base, mask);
    }
    Some(())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn fast_store_lds<const LANES: usize, const WORDS: usize>(
    access: &Access,
    wave: &mut Wave,
    group: &mut Group<'_>,
    mask: u64,
) -> Option<()> {
    // SAFETY: the caller's promise; all elements were found.
    unsafe {
        let base = in_lds::<LANES>(access, wave, group, mask, access.offset, 4 * WORDS)?;
        store::<LANES, WORDS>(wave, access.vector, access.register, base, mask);
    }
    Some(())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn fast_store_pair<const LANES: usize, const WORDS: usize>(
    access: &Access,
    wave: &mut Wave,
    group: &mut Group<'_>,
    mask: u64,
) -> Option<()> {
    // SAFETY: the caller's promise; all elements were found.
    unsafe {
        let first = in_lds::<LANES>(access, wave, group, mask, access.offset, 4 * WORDS)?;
        let second = in_lds::<LANES>(access, wave, group, mask, access.second_offset, 4 * WORDS)?;
        store::<LANES, WORDS>(wave, access.vector, access.register, first, mask);
        store::<LANES, WORDS>(wave, access.vector, access.second_register?, second, mask);
    }
    Some(())
}

/// The byte of LDS that offsets count from, if the elements of all lanes lie within LDS.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn in_lds<const LANES: usize>(
    access: &Access,
    wave: &Wave,
    group: &mut Group<'_>,
    mask: u64,
    offset: i64,
    bytes: usize,
) -> Option<*mut u8> {
    let last = group.lds.len().checked_sub(offset as usize + bytes)?;
    let offsets = &wave.vector.rows::<LANES>()[access.vector];
    within::<LANES>(offsets, mask, 0, last as u32)
        .then(|| group.lds.as_mut_ptr().wrapping_add(offset as usize))
}

/// The byte that offsets count from, if the elements of all lanes lie in one allocation.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1")]
fn in_memory<const LANES: usize>(
    access: &Access,
    wave: &mut Wave,
    group: &Group<'_>,
    mask: u64,
    bytes: u64,
) -> Option<*mut u8> {
    let lane = mask.trailing_zeros() as usize % LANES;
    let rows = wave.vector.rows::<LANES>();
    let mut base = match access.scalar {
        Some(register) => wave.scalar64(register),
        None => {
            let high = rows[access.vector + 1][lane];
            if !within::<LANES>(&rows[access.vector + 1], mask, high, high) {
                return None;
            }
            u64::from(high) << 32
        }
    };
    base = base.wrapping_add(access.offset as u64);
    let offset = rows[access.vector][lane];
    let address = base.checked_add(u64::from(offset))?;
    let range = wave.ranges.covering(group.memory, address, address.checked_add(bytes)?)?;
    // Distances between lanes have a sign.
    if range.end - range.start > i32::MAX as u64 {
        return None;
    }
    let lowest = range.start.saturating_sub(base) as u32;
    let highest = (range.end - bytes - base).min(u64::from(u32::MAX)) as u32;
    let inside = within::<LANES>(&wave.vector.rows::<LANES>()[access.vector], mask, lowest, highest);
    inside.then(|| range.host.wrapping_add(base.wrapping_sub(range.start) as usize))
}

/// Whether the values of the lanes of a mask lie between two, or equal one of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn within<const LANES: usize>(values: &[u32; LANES], mask: u64, lowest: u32, highest: u32) -> bool {
    let (first, range) = (_mm512_set1_epi32(lowest as i32), _mm512_set1_epi32((highest - lowest) as i32));
    let mut outside = 0;
    for (part, values) in values.as_chunks::<TOGETHER>().0.iter().enumerate() {
        // SAFETY: sixteen words.
        let values = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        // What is below becomes large.
        let beyond = _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(values, first), range);
        outside |= beyond & (mask >> (part * TOGETHER)) as u16;
    }
    outside == 0
}
