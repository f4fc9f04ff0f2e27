//! From memory of the host to rows of registers and back, sixteen lanes at a time.

use std::arch::x86_64::*;

use crate::machine::wave::Wave;

use super::super::emitter::TOGETHER;

/// How the elements of sixteen lanes lie, behind a base. It is small, for it is kept.
#[derive(Clone, Copy)]
pub struct Part {
    /// The offset of the first lane that takes part.
    first: u32,
    /// Lanes that take part, and the first of them.
    mask: u16,
    lane: u8,
    shape: Shape,
}

impl Part {
    /// No lane takes part.
    pub const NOTHING: Part = Part { first: 0, mask: 0, lane: 0, shape: Shape::Equal };

    /// Of the lanes of a mask, whose elements have so many words; and the largest offset.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1")]
    pub fn new(offsets: &[u32; TOGETHER], mask: u16, words: usize) -> (Part, u32) {
        let lane = mask.trailing_zeros() as usize % TOGETHER;
        let first = offsets[lane];
        // SAFETY: sixteen words, which need no alignment.
        let offsets = unsafe { _mm512_loadu_si512(offsets.as_ptr().cast()) };
        let shape = shape(words, offsets, first, lane, mask);
        let highest = match shape {
            Shape::Equal => first,
            _ => _mm512_mask_reduce_max_epu32(mask, offsets),
        };
        (Part { first, mask, lane: lane as u8, shape }, highest)
    }

    /// Loads the elements into as many rows as they have words. `offsets`: those that the part was made of.
    ///
    /// # Safety
    ///
    /// The rows are of `LANES` words each, and the elements can be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub unsafe fn load<const LANES: usize, const WORDS: usize>(
        &self,
        to: *mut u32,
        base: *const u8,
        offsets: *const u32,
    ) {
        let from = base.wrapping_add(self.first as usize);
        // SAFETY: the caller promises that the rows exist and that the element of each lane of the mask can be read; by its
        // shape each access stays within those.
        unsafe {
            match self.shape {
                _ if self.mask == 0 => {}
                Shape::Equal => {
                    for word in 0..WORDS {
                        let value = from.cast::<i32>().add(word).read_unaligned();
                        put(to.add(word * LANES), self.mask, _mm512_set1_epi32(value));
                    }
                }
                Shape::Run if WORDS == 1 => {
                    let from = from.cast::<i32>().wrapping_sub(usize::from(self.lane));
                    put(to, self.mask, _mm512_maskz_loadu_epi32(self.mask, from));
                }
                Shape::Run if self.mask == u16::MAX && WORDS != 3 => run::<LANES, WORDS>(to, from),
                _ => {
                    let offsets = _mm512_loadu_si512(offsets.cast());
                    let distances = _mm512_sub_epi32(offsets, _mm512_set1_epi32(self.first as i32));
                    let zero = _mm512_setzero_si512();
                    for word in 0..WORDS {
                        let from = from.cast::<i32>().add(word);
                        let value = _mm512_mask_i32gather_epi32::<1>(zero, self.mask, distances, from);
                        put(to.add(word * LANES), self.mask, value);
                    }
                }
            }
        }
    }
}

/// Loads the elements of the lanes of a mask: the words at the offsets that a row holds, into as many rows.
///
/// # Safety
///
/// The rows exist, and the elements can be read.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn load<const LANES: usize, const WORDS: usize>(
    wave: &mut Wave,
    offsets: usize,
    to: usize,
    base: *const u8,
    mask: u64,
) {
    for index in 0..LANES / TOGETHER {
        let row = &wave.vector.rows::<LANES>()[offsets].as_chunks::<TOGETHER>().0[index];
        let (part, _) = Part::new(row, (mask >> (index * TOGETHER)) as u16, WORDS);
        let rows = wave.vector.words_mut().as_mut_ptr();
        let row = |register: usize| rows.wrapping_add(register * LANES + index * TOGETHER);
        // SAFETY: the caller promises that the rows exist and the elements can be read.
        unsafe { part.load::<LANES, WORDS>(row(to), base, row(offsets)) };
    }
}

/// Stores the elements of the lanes of a mask, lanes in order.
///
/// # Safety
///
/// The rows exist, and the elements can be written.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub unsafe fn store<const LANES: usize, const WORDS: usize>(
    wave: &Wave,
    offsets: usize,
    from: usize,
    base: *mut u8,
    mask: u64,
) {
    let rows = wave.vector.words().as_ptr();
    for part in 0..LANES / TOGETHER {
        let mask = (mask >> (part * TOGETHER)) as u16;
        if mask == 0 {
            continue;
        }
        // SAFETY: the caller promises that the rows exist, which are aligned as a whole, and that the element of each lane of
        // the mask can be written.
        unsafe {
            let at = rows.add(offsets * LANES + part * TOGETHER);
            let from = rows.add(from * LANES + part * TOGETHER);
            let lane = mask.trailing_zeros() as usize;
            let first = *at.add(lane);
            let values = _mm512_load_si512(at.cast());
            let to = base.wrapping_add(first as usize);
            if WORDS == 1
                && let Shape::Run = shape(WORDS, values, first, lane, mask)
            {
                let to = to.cast::<i32>().wrapping_sub(lane);
                _mm512_mask_storeu_epi32(to, mask, _mm512_load_si512(from.cast()));
                continue;
            }
            let distances = _mm512_sub_epi32(values, _mm512_set1_epi32(first as i32));
            for word in 0..WORDS {
                let value = _mm512_load_si512(from.add(word * LANES).cast());
                _mm512_mask_i32scatter_epi32::<1>(to.cast::<i32>().add(word).cast(), mask, distances, value);
            }
        }
    }
}

/// Whether the values of the lanes of a mask lie between two, or equal one of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub fn within<const LANES: usize>(values: &[u32; LANES], mask: u64, lowest: u32, highest: u32) -> bool {
    let (first, range) = (_mm512_set1_epi32(lowest as i32), _mm512_set1_epi32((highest - lowest) as i32));
    let mut outside = 0;
    for (part, values) in values.as_chunks::<TOGETHER>().0.iter().enumerate() {
        // SAFETY: sixteen words, which need no alignment.
        let values = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        // What is below becomes large.
        let beyond = _mm512_cmpgt_epu32_mask(_mm512_sub_epi32(values, first), range);
        outside |= beyond & (mask >> (part * TOGETHER)) as u16;
    }
    outside == 0
}

/// Whether the elements of different lanes are the same or have no byte in common, as far as that is seen at once: then it
/// makes no difference whether lanes store whole elements or all lanes a word after the other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1")]
pub fn are_apart<const LANES: usize, const WORDS: usize>(offsets: &[u32; LANES], mask: u64) -> bool {
    if WORDS == 1 {
        return true;
    }
    let lane = mask.trailing_zeros() as usize % LANES;
    let (first, steps) = (offsets[lane], steps(WORDS));
    let mut overlap = 0;
    for (part, offsets) in offsets.as_chunks::<TOGETHER>().0.iter().enumerate() {
        let mask = (mask >> (part * TOGETHER)) as u16;
        // SAFETY: sixteen words, which need no alignment.
        let offsets = unsafe { _mm512_loadu_si512(offsets.as_ptr().cast()) };
        overlap |= if WORDS == 3 {
            // Nothing but a run is seen at once.
            let begin = first.wrapping_add((4 * WORDS * part * TOGETHER) as u32);
            let begin = begin.wrapping_sub((4 * WORDS * lane) as u32);
            let run = _mm512_add_epi32(_mm512_set1_epi32(begin as i32), steps);
            _mm512_mask_cmpneq_epi32_mask(mask, offsets, run)
        } else {
            let distances = _mm512_sub_epi32(offsets, _mm512_set1_epi32(first as i32));
            _mm512_mask_test_epi32_mask(mask, distances, _mm512_set1_epi32(4 * WORDS as i32 - 1))
        };
    }
    overlap == 0
}

/// How the elements of some lanes lie.
#[derive(Clone, Copy)]
enum Shape {
    /// All lanes have the same.
    Equal,
    /// Each lies behind that of the lane before.
    Run,
    Other,
}

/// The shape of the offsets of the lanes of a mask, of which `lane` is the first and has the offset `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn shape(words: usize, offsets: __m512i, first: u32, lane: usize, mask: u16) -> Shape {
    let begin = first.wrapping_sub((4 * words * lane) as u32);
    let run = _mm512_add_epi32(_mm512_set1_epi32(begin as i32), steps(words));
    if _mm512_cmpneq_epi32_mask(offsets, run) & mask == 0 {
        return Shape::Run;
    }
    match _mm512_cmpneq_epi32_mask(offsets, _mm512_set1_epi32(first as i32)) & mask {
        0 => Shape::Equal,
        _ => Shape::Other,
    }
}

/// Distances of elements one behind the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn steps(words: usize) -> __m512i {
    let numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_mullo_epi32(numbers, _mm512_set1_epi32(4 * words as i32))
}

/// Sixteen lanes of a row, as far as the mask says.
///
/// # Safety
///
/// The lanes are those of a row of a wave's registers, from a multiple of sixteen on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn put(to: *mut u32, mask: u16, value: __m512i) {
    // What is written is read soon: all of it is written.
    // SAFETY: the caller promises sixteen lanes of a row, which are aligned.
    unsafe {
        let value = match mask {
            u16::MAX => value,
            _ => _mm512_mask_mov_epi32(_mm512_load_si512(to.cast()), mask, value),
        };
        _mm512_store_si512(to.cast(), value);
    }
}

/// Sixteen elements of two or four words, one behind the other.
///
/// # Safety
///
/// They can be read, and the rows exist.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run<const LANES: usize, const WORDS: usize>(to: *mut u32, from: *const u8) {
    // SAFETY: the caller promises sixteen elements, which are as many times 64 bytes as they have words, and the rows.
    unsafe {
        let part = |index: usize| _mm512_loadu_si512(from.add(64 * index).cast());
        if WORDS == 2 {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            let (a, b) = (part(0), part(1));
            put(to, u16::MAX, _mm512_permutex2var_epi32(a, even, b));
            put(to.add(LANES), u16::MAX, _mm512_permutex2var_epi32(a, odd, b));
            return;
        }
        // First words of eight elements, then second ones; third and fourth likewise.
        let low = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
        let high = _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
        let (a, b, c, d) = (part(0), part(1), part(2), part(3));
        let (first, second) = (_mm512_permutex2var_epi32(a, low, b), _mm512_permutex2var_epi32(c, low, d));
        let (third, fourth) = (_mm512_permutex2var_epi32(a, high, b), _mm512_permutex2var_epi32(c, high, d));
        put(to, u16::MAX, _mm512_shuffle_i64x2::<0x44>(first, second));
        put(to.add(LANES), u16::MAX, _mm512_shuffle_i64x2::<0xee>(first, second));
        put(to.add(2 * LANES), u16::MAX, _mm512_shuffle_i64x2::<0x44>(third, fourth));
        put(to.add(3 * LANES), u16::MAX, _mm512_shuffle_i64x2::<0xee>(third, fourth));
    }
}
