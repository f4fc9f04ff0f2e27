//! Loads of all lanes from places near each other. Lanes often read the same word, or words one behind the other, for a
//! part of the wave at least: that is looked for in each sixteen lanes.

use super::element::{Load, Store};

/// Lanes that are looked at together: a vector register of 512 bits.
const TOGETHER: usize = 16;
/// Lanes whose elements of several words are transposed together.
const SQUARE: usize = 4;

/// Where the elements of all lanes lie: so many bytes behind a byte.
pub struct Near<const LANES: usize> {
    pub base: *mut u8,
    pub offsets: [u32; LANES],
}

impl<const LANES: usize> Near<LANES> {
    /// Loads elements into the registers' rows.
    ///
    /// # Safety
    ///
    /// `K::BYTES` bytes can be read at each offset behind the base.
    #[inline(always)]
    pub unsafe fn load<K: Load>(&self, rows: &mut [[u32; LANES]]) {
        for (part, offsets) in self.offsets.as_chunks::<TOGETHER>().0.iter().enumerate() {
            let (at, shape) = (part * TOGETHER, shape::<TOGETHER>(offsets, K::BYTES));
            let first = self.base.wrapping_add(offsets[0] as usize);
            // SAFETY: the caller's promise.
            unsafe {
                match shape {
                    Shape::Equal => splat::<K, LANES>(rows, at, first),
                    _ if K::WORDS && K::REGISTERS > 1 => transpose::<K, LANES>(rows, at, self.base, offsets),
                    Shape::Run => consecutive::<K, LANES>(rows, at, first),
                    Shape::Other => gather::<K, LANES>(rows, at, self.base, offsets),
                }
            }
        }
    }

    /// Stores the registers' rows, lanes in order.
    ///
    /// # Safety
    ///
    /// `K::BYTES` bytes can be written at each offset behind the base.
    #[inline(always)]
    pub unsafe fn store<K: Store>(&self, rows: &[[u32; LANES]]) {
        for (part, offsets) in self.offsets.as_chunks::<TOGETHER>().0.iter().enumerate() {
            let at = part * TOGETHER;
            let first = self.base.wrapping_add(offsets[0] as usize);
            let is_run = matches!(shape::<TOGETHER>(offsets, K::BYTES), Shape::Run);
            for (register, row) in rows.iter().enumerate() {
                let values: &[u32; TOGETHER] = row[at..].first_chunk().unwrap_or(&[0; TOGETHER]);
                for (lane, &value) in values.iter().enumerate() {
                    let to = if is_run && K::REGISTERS == 1 {
                        first.wrapping_add(lane * K::BYTES)
                    } else {
                        self.base.wrapping_add(offsets[lane] as usize)
                    };
                    // SAFETY: the caller's promise.
                    unsafe { K::write(to, register, value) };
                }
            }
        }
    }
}

/// How the elements of some lanes lie.
enum Shape {
    /// All lanes have the same.
    Equal,
    /// Each lies behind that of the lane before.
    Run,
    Other,
}

#[inline(always)]
fn shape<const COUNT: usize>(offsets: &[u32; COUNT], bytes: usize) -> Shape {
    let (mut different, mut apart) = (0, 0);
    for (lane, &offset) in offsets.iter().enumerate() {
        different |= offset ^ offsets[0];
        apart |= offset ^ offsets[0].wrapping_add((lane * bytes) as u32);
    }
    match (different, apart) {
        (0, _) => Shape::Equal,
        (_, 0) => Shape::Run,
        _ => Shape::Other,
    }
}

/// The largest of all lanes' values.
#[inline(always)]
pub fn largest<const LANES: usize>(values: &[u32; LANES]) -> u32 {
    let mut largest = [0; TOGETHER];
    for part in values.as_chunks::<TOGETHER>().0 {
        for (largest, &value) in largest.iter_mut().zip(part) {
            *largest = value.max(*largest);
        }
    }
    largest.into_iter().fold(0, u32::max)
}

/// # Safety
///
/// `K::BYTES` bytes can be read at `from`.
#[inline(always)]
unsafe fn splat<K: Load, const LANES: usize>(rows: &mut [[u32; LANES]], at: usize, from: *const u8) {
    for (register, row) in rows.iter_mut().enumerate() {
        for value in &mut row[at..at + TOGETHER] {
            // SAFETY: the caller's promise.
            *value = unsafe { K::read(from, register, *value) };
        }
    }
}

/// # Safety
///
/// As many elements can be read at `from` as there are lanes.
#[inline(always)]
unsafe fn consecutive<K: Load, const LANES: usize>(rows: &mut [[u32; LANES]], at: usize, from: *const u8) {
    for (register, row) in rows.iter_mut().enumerate() {
        for (lane, value) in row[at..at + TOGETHER].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            *value = unsafe { K::read(from.add(lane * K::BYTES), register, *value) };
        }
    }
}

/// # Safety
///
/// As [`Near::load`].
#[inline(always)]
unsafe fn gather<K: Load, const LANES: usize>(
    rows: &mut [[u32; LANES]],
    at: usize,
    base: *const u8,
    offsets: &[u32; TOGETHER],
) {
    for (register, row) in rows.iter_mut().enumerate() {
        for (value, &offset) in row[at..at + TOGETHER].iter_mut().zip(offsets) {
            // SAFETY: the caller's promise.
            *value = unsafe { K::read(base.add(offset as usize), register, *value) };
        }
    }
}

/// Reads whole elements of a few lanes at a time, whose words then go to the rows.
///
/// # Safety
///
/// As [`Near::load`].
#[inline(always)]
unsafe fn transpose<K: Load, const LANES: usize>(
    rows: &mut [[u32; LANES]],
    at: usize,
    base: *const u8,
    offsets: &[u32; TOGETHER],
) {
    for (part, offsets) in offsets.as_chunks::<SQUARE>().0.iter().enumerate() {
        let elements = offsets.map(|offset| base.wrapping_add(offset as usize));
        // SAFETY: the caller's promise.
        let columns = square::transposed(elements.map(|from| unsafe { square::read(from, K::REGISTERS) }));
        for (row, column) in rows.iter_mut().zip(columns) {
            row[at + part * SQUARE..][..SQUARE].copy_from_slice(&square::words(column));
        }
    }
}

/// Four elements of up to four words, in vector registers of 128 bits.
#[cfg(target_arch = "x86_64")]
mod square {
    use std::arch::x86_64::*;

    /// An element; words that it does not have are 0.
    ///
    /// # Safety
    ///
    /// So many words can be read there.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, words: usize) -> __m128i {
        // SAFETY: SSE2 is a part of x86-64; the caller's promise.
        unsafe {
            match words {
                4 => _mm_loadu_si128(from.cast()),
                3 => {
                    let last = from.add(8).cast::<i32>().read_unaligned();
                    _mm_unpacklo_epi64(_mm_loadl_epi64(from.cast()), _mm_cvtsi32_si128(last))
                }
                2 => _mm_loadl_epi64(from.cast()),
                _ => _mm_cvtsi32_si128(from.cast::<i32>().read_unaligned()),
            }
        }
    }

    /// Rows become columns.
    #[inline(always)]
    pub fn transposed(rows: [__m128i; 4]) -> [__m128i; 4] {
        // SAFETY: SSE2 is a part of x86-64.
        unsafe {
            let low = [_mm_unpacklo_epi32(rows[0], rows[1]), _mm_unpacklo_epi32(rows[2], rows[3])];
            let high = [_mm_unpackhi_epi32(rows[0], rows[1]), _mm_unpackhi_epi32(rows[2], rows[3])];
            [
                _mm_unpacklo_epi64(low[0], low[1]),
                _mm_unpackhi_epi64(low[0], low[1]),
                _mm_unpacklo_epi64(high[0], high[1]),
                _mm_unpackhi_epi64(high[0], high[1]),
            ]
        }
    }

    #[inline(always)]
    pub fn words(vector: __m128i) -> [u32; 4] {
        // SAFETY: both are 16 bytes of which any are allowed.
        unsafe { std::mem::transmute(vector) }
    }
}

/// The same in plain words.
#[cfg(not(target_arch = "x86_64"))]
mod square {
    /// # Safety
    ///
    /// So many words can be read there.
    #[inline(always)]
    pub unsafe fn read(from: *const u8, words: usize) -> [u32; 4] {
        let mut element = [0; 4];
        for (i, word) in element.iter_mut().take(words).enumerate() {
            // SAFETY: the caller's promise.
            *word = unsafe { from.cast::<u32>().add(i).read_unaligned() };
        }
        element
    }

    #[inline(always)]
    pub fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
        std::array::from_fn(|column| rows.map(|row| row[column]))
    }

    #[inline(always)]
    pub fn words(vector: [u32; 4]) -> [u32; 4] {
        vector
    }
}
