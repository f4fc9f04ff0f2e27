//! Loads and stores of global memory whose elements lie in one allocation, and scalar loads.

use crate::machine::group::Group;
use crate::machine::wave::Wave;

use super::super::call::{Call, Context, perform};
use super::Access;
use super::transfer::{are_apart, load, store, within};

/// Loads scalar registers.
///
/// # Safety
///
/// The call is one that translated code makes: its action lives, and its registers exist.
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
        // SAFETY: the caller promises that the action lives.
        return unsafe { perform(call, wave, group, context) };
    };
    let from = range.host.wrapping_add((address - range.start) as usize);
    let to = &mut wave.scalar[access.register..][..BYTES / 4];
    // SAFETY: the range holds all the bytes, and the registers have room for them.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr().cast(), BYTES) };
    0
}

/// Loads or stores an element for each lane that takes part.
///
/// # Safety
///
/// The call is one that translated code makes: its action lives, its registers exist, and the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe extern "sysv64" fn transfer_global<const LANES: usize, const WORDS: usize, const STORES: bool>(
    call: &Call,
    wave: &mut Wave,
    group: &mut Group<'_>,
    context: &mut Context,
) -> u32 {
    let (access, mask) = (&call.access, wave.exec());
    if mask == 0 {
        return 0;
    }
    let base = in_memory::<LANES>(access, wave, group, mask, 4 * WORDS as u64);
    let ordered = !STORES || are_apart::<LANES, WORDS>(&wave.vector.rows::<LANES>()[access.vector], mask);
    let Some(base) = base.filter(|_| ordered) else {
        // SAFETY: the caller promises that the action lives.
        return unsafe { perform(call, wave, group, context) };
    };
    // SAFETY: the caller promises that the registers exist; the elements of all lanes were found in an allocation.
    unsafe {
        match STORES {
            true => store::<LANES, WORDS>(wave, access.vector, access.register, base, mask),
            false => load::<LANES, WORDS>(wave, access.vector, access.register, base, mask),
        }
    }
    0
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
