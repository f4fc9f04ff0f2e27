//! Loads from LDS and stores to it.

use crate::machine::group::Group;
use crate::machine::wave::Wave;

use super::super::call::{Call, Context, perform};
use super::super::emitter::TOGETHER;
use super::Access;
use super::transfer::{Part, are_apart, store, within};

/// What is known of the addresses in a register.
#[derive(Clone, Copy)]
struct Known {
    vector: usize,
    words: usize,
    highest: u32,
    parts: [Part; 4],
}

/// Registers of addresses that are remembered.
const KNOWN: usize = 2;

/// Loads for an instruction and those behind it, which often have the same register of addresses.
///
/// # Safety
///
/// The call is one that translated code makes: it and those behind it have actions that live and registers that exist, and
/// the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe extern "sysv64" fn load_lds<const LANES: usize>(
    call: &Call,
    wave: &mut Wave,
    group: &mut Group<'_>,
    context: &mut Context,
) -> u32 {
    let mask = wave.exec();
    if mask == 0 {
        return 0;
    }
    // Nothing is known of a register that there is not.
    let nothing = Known { vector: usize::MAX, words: 0, highest: 0, parts: [Part::NOTHING; 4] };
    let (mut known, mut oldest) = ([nothing; KNOWN], 0);
    for call in std::iter::once(call).chain(&call.others) {
        let access = &call.access;
        let is_it = |it: &Known| it.vector == access.vector && it.words == access.words;
        let found = known.iter().position(is_it).unwrap_or_else(|| {
            let place = oldest;
            learn::<LANES>(access, wave, mask, &mut known[place]);
            oldest = (place + 1) % KNOWN;
            place
        });
        let found = &known[found];
        // SAFETY: the caller promises that the registers of the access exist.
        let done = unsafe {
            match access.words {
                1 => load::<LANES, 1>(access, found, wave, group),
                2 => load::<LANES, 2>(access, found, wave, group),
                3 => load::<LANES, 3>(access, found, wave, group),
                _ => load::<LANES, 4>(access, found, wave, group),
            }
        };
        // SAFETY: the caller promises that the action lives.
        if !done && unsafe { perform(call, wave, group, context) } != 0 {
            return 1;
        }
        let last = access.register.max(access.second_register.unwrap_or(0)) + access.words;
        for it in &mut known {
            if (access.register..last).contains(&it.vector) {
                it.vector = usize::MAX;
            }
        }
    }
    0
}

/// Written where it is read from, field by field: a copy of what was just written would wait for it.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn learn<const LANES: usize>(access: &Access, wave: &Wave, mask: u64, known: &mut Known) {
    (known.vector, known.words) = (access.vector, access.words);
    let (row, mut largest) = (&wave.vector.rows::<LANES>()[access.vector], 0);
    for (index, offsets) in row.as_chunks::<TOGETHER>().0.iter().enumerate() {
        let mask = (mask >> (index * TOGETHER)) as u16;
        if mask == 0 {
            known.parts[index] = Part::NOTHING;
            continue;
        }
        let (part, highest) = Part::new(offsets, mask, access.words);
        known.parts[index] = part;
        largest = largest.max(highest);
    }
    known.highest = largest;
}

/// Whether all elements lie within LDS; then they are loaded.
///
/// # Safety
///
/// The registers of the access exist.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn load<const LANES: usize, const WORDS: usize>(
    access: &Access,
    known: &Known,
    wave: &mut Wave,
    group: &mut Group<'_>,
) -> bool {
    // The first load of a pair must not overwrite the addresses of the second.
    let overwrites = access.second_register.is_some()
        && (access.register..access.register + WORDS).contains(&access.vector);
    let end = u64::from(known.highest) + access.furthest() as u64 + 4 * WORDS as u64;
    if overwrites || end > group.lds.len() as u64 {
        return false;
    }
    let (rows, lds) = (wave.vector.words_mut().as_mut_ptr(), group.lds.as_ptr());
    for (index, part) in known.parts[..LANES / TOGETHER].iter().enumerate() {
        let row = |register: usize| rows.wrapping_add(register * LANES + index * TOGETHER);
        let (from, offsets) = (lds.wrapping_add(access.offset as usize), row(access.vector));
        // SAFETY: the caller promises that the registers exist; the furthest element of any lane ends within LDS.
        unsafe {
            part.load::<LANES, WORDS>(row(access.register), from, offsets);
            if let Some(second) = access.second_register {
                let from = lds.wrapping_add(access.second_offset as usize);
                part.load::<LANES, WORDS>(row(second), from, offsets);
            }
        }
    }
    true
}

/// Stores an element for each lane that takes part, or two.
///
/// # Safety
///
/// The call is one that translated code makes: its action lives, its registers exist, and the processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe extern "sysv64" fn store_lds<const LANES: usize, const WORDS: usize>(
    call: &Call,
    wave: &mut Wave,
    group: &mut Group<'_>,
    context: &mut Context,
) -> u32 {
    let (access, mask) = (&call.access, wave.exec());
    if mask == 0 {
        return 0;
    }
    let offsets = &wave.vector.rows::<LANES>()[access.vector];
    let room = group.lds.len().checked_sub(access.furthest() as usize + 4 * WORDS);
    let inside = room.is_some_and(|last| within::<LANES>(offsets, mask, 0, last as u32));
    if !inside || !are_apart::<LANES, WORDS>(offsets, mask) {
        // SAFETY: the caller promises that the action lives.
        return unsafe { perform(call, wave, group, context) };
    }
    let base = group.lds.as_mut_ptr();
    let at = |offset: i64| base.wrapping_add(offset as usize);
    // SAFETY: the caller promises that the registers exist; the furthest element of any lane ends within LDS.
    unsafe {
        store::<LANES, WORDS>(wave, access.vector, access.register, at(access.offset), mask);
        if let Some(second) = access.second_register {
            store::<LANES, WORDS>(wave, access.vector, second, at(access.second_offset), mask);
        }
    }
    0
}
