//! What products read of an image: words of neighbouring channels in planes, or gathered for each kernel position.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::providers::cpu::gemm::{ByteWord, HalfWord, SumVector, VECTOR, Word, missing};
use crate::providers::cpu::parallel::{GRAIN, split_mut};
use crate::providers::cpu::scratch::with_scratch;
use crate::tensor::{Element, bf16, bytes_of};
use crate::threads::Pool;

use super::super::tile::Lines;
use super::Image;
use super::layout::Layout;

/// An element of an image that goes into words.
pub(in crate::providers::cpu) trait Woven: Element {
    type Word: Word;

    fn bits(self) -> u32;

    /// Words of `count` elements of each line, every `STRIDE`-th (first or second) from there on; the other words
    /// of the vector are 0.
    ///
    /// # Safety
    /// As of `TileSink::row`; the elements must be valid.
    unsafe fn weave<const STRIDE: usize>(lines: [*const Self; 4], count: usize) -> SumVector {
        missing((lines, count))
    }
}

/// Writes what products read of all words of channels, on all threads of the pool.
pub(super) fn arrange<T: Woven>(layout: &Layout, pool: &Pool, image: &Image<'_, T>, out: &mut [u32]) {
    let unit = layout.unit();
    if unit == 1 && !layout.planes.copied() && layout.channels.is_multiple_of(T::Word::COUNT) {
        // Channels are neighbours in memory.
        let bytes = bytemuck::cast_slice_mut::<u32, u8>(out);
        return bytes.iter_mut().zip(bytes_of(image.data)).for_each(|(y, &x)| *y = x ^ image.flip);
    }
    split_mut(pool, out, unit, GRAIN.div_ceil(unit), |range, out| {
        with_scratch([layout.room()], |[room]: [&mut [u32]; 1]| {
            arrange_units(layout, image, range.start, room, out);
        });
    });
}

/// Writes units from the `first` one on. A word's planes are made in `room` where they are gathered from there.
pub(super) fn arrange_units<T: Woven>(
    layout: &Layout,
    image: &Image<'_, T>,
    first: usize,
    room: &mut [u32],
    out: &mut [u32],
) {
    assert!(T::Word::available());
    // SAFETY: the processor has what words ask for.
    unsafe { units(layout, image, first, room, out) }
}

/// # Safety
/// `T::Word::available()`.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl"))]
unsafe fn units<T: Woven>(
    layout: &Layout,
    image: &Image<'_, T>,
    first: usize,
    room: &mut [u32],
    out: &mut [u32],
) {
    let phases = layout.planes.phases();
    for (i, out) in (first..).zip(out.chunks_exact_mut(layout.unit())) {
        // SAFETY: as the caller promises.
        unsafe {
            if layout.gathered {
                let channels = Channels::new(layout, image, i);
                for (phase, plane) in room.chunks_exact_mut(layout.planes.plane).enumerate() {
                    channels.plane(layout, phase, plane);
                }
                gather(layout, room, out);
            } else {
                Channels::new(layout, image, i / phases).plane(layout, i % phases, out);
            }
        }
    }
}

/// The channels of a word.
struct Channels<'a, T> {
    lines: [&'a [T]; 4],
    /// Bits that are turned round.
    flip: u32,
    /// Bits of channels that there are. Those of others are 0: weights are, too, but infinity times 0 is not.
    present: u32,
    /// The word of what lies around the image.
    border: u32,
}

impl<'a, T: Woven> Channels<'a, T> {
    #[inline(always)]
    fn new(layout: &Layout, image: &Image<'a, T>, word: usize) -> Self {
        let (count, plane) = (T::Word::COUNT, layout.planes.image());
        let (group, first) = (word / layout.words, word % layout.words * count);
        let mut lines = [&image.data[..0]; 4];
        for (j, line) in lines.iter_mut().enumerate() {
            let channel = group * layout.channels + (first + j.min(count - 1)).min(layout.channels - 1);
            *line = &image.data[channel * layout.channel + layout.skipped..][..plane];
        }
        let present = !0 >> (32 / count * count.saturating_sub(layout.channels - first));
        Channels { lines, flip: u32::from_le_bytes([image.flip; 4]), present, border: image.border & present }
    }

    /// Makes a plane of words.
    ///
    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn plane(&self, layout: &Layout, phase: usize, out: &mut [u32]) {
        if !layout.planes.copied() {
            // SAFETY: as the caller promises.
            return unsafe { self.line(0, 1, out) };
        }
        let mut done = 0;
        for (to, from) in layout.planes.lines(phase) {
            out[done..to.start].fill(self.border);
            done = to.end;
            // SAFETY: as the caller promises.
            unsafe { self.line(from, layout.planes.stride(), &mut out[to]) };
        }
        out[done..].fill(self.border);
    }

    /// Makes words of every `stride`-th element from `start` on.
    ///
    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn line(&self, start: usize, stride: usize, out: &mut [u32]) {
        // SAFETY: as the caller promises.
        unsafe {
            match stride {
                1 => self.vectors::<1>(start, out),
                2 => self.vectors::<2>(start, out),
                _ => {
                    for (i, word) in out.iter_mut().enumerate() {
                        *word = 0;
                        for (j, line) in self.lines[..T::Word::COUNT].iter().enumerate() {
                            *word |= line[start + i * stride].bits() << (32 / T::Word::COUNT * j);
                        }
                        *word = (*word ^ self.flip) & self.present;
                    }
                }
            }
        }
    }

    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn vectors<const STRIDE: usize>(&self, start: usize, out: &mut [u32]) {
        let Some(last) = out.len().checked_sub(1) else { return };
        let [a, b, c, d] = self.lines;
        let end = start + STRIDE * last;
        assert!(end < a.len() && end < b.len() && end < c.len() && end < d.len());
        // The last vector overlaps another.
        let last = out.len().saturating_sub(VECTOR);
        let mut at = 0;
        while at < out.len() {
            at = at.min(last);
            let (from, count) = (start + STRIDE * at, VECTOR.min(out.len()));
            // SAFETY: the elements lie inside by the assertion; as the caller promises.
            unsafe {
                let lines =
                    [a.as_ptr().add(from), b.as_ptr().add(from), c.as_ptr().add(from), d.as_ptr().add(from)];
                store(T::weave::<STRIDE>(lines, count), self.flip, self.present, &mut out[at..at + count]);
            }
            at += VECTOR;
        }
    }
}

/// Writes the runs of a word's planes for all kernel positions.
#[inline(always)]
fn gather(layout: &Layout, planes: &[u32], out: &mut [u32]) {
    let Lines { line, pitch } = layout.planes.lines;
    for (tap, out) in layout.planes.taps.iter().zip(out.chunks_exact_mut(layout.positions)) {
        for (y, at) in (0..layout.positions).step_by(line).enumerate() {
            let (from, to) = (&planes[tap + y * pitch..], &mut out[at..]);
            match (from.first_chunk::<VECTOR>(), to.first_chunk_mut::<VECTOR>()) {
                // What is too much is overwritten by the next line.
                (Some(from), Some(to)) if line <= VECTOR => *to = *from,
                _ => to[..line].copy_from_slice(&from[..line]),
            }
        }
    }
}

/// Writes the first words of a vector.
///
/// # Safety
/// As of `TileSink::row`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn store(words: SumVector, flip: u32, present: u32, out: &mut [u32]) {
    // SAFETY: as the caller promises; the mask has as many words as `out`.
    unsafe {
        let words = _mm512_xor_si512(words, _mm512_set1_epi32(flip as i32));
        let words = _mm512_and_si512(words, _mm512_set1_epi32(present as i32));
        match out.len() {
            VECTOR => _mm512_storeu_si512(out.as_mut_ptr().cast(), words),
            count => _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), first(count), words),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn store(words: SumVector, flip: u32, present: u32, out: &mut [u32]) {
    missing((words, flip, present, out))
}

/// A mask of the first `count` of sixteen.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first(count: usize) -> u16 {
    !0 >> (VECTOR - count)
}

/// The same of every second of 32, from the first on.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn first_of_pairs(count: usize) -> u32 {
    0x5555_5555 & (!0 >> (2 * (VECTOR - count)))
}

impl Woven for u8 {
    type Word = ByteWord;

    fn bits(self) -> u32 {
        self.into()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weave<const STRIDE: usize>(lines: [*const u8; 4], count: usize) -> SumVector {
        // SAFETY: as the caller promises; masks leave out what is not asked for.
        unsafe {
            let [a, b, c, d] = lines;
            let (a, b) = (bytes::<STRIDE>(a, count), bytes::<STRIDE>(b, count));
            let (c, d) = (bytes::<STRIDE>(c, count), bytes::<STRIDE>(d, count));
            let all = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
            let all = _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(all, c), d);
            // Four bytes of each line side by side, then the bytes of each word.
            let fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            let turn = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
            _mm512_shuffle_epi8(_mm512_permutexvar_epi32(fours, all), _mm512_broadcast_i32x4(turn))
        }
    }
}

/// The bytes of a line.
///
/// # Safety
/// As of `Woven::weave`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn bytes<const STRIDE: usize>(line: *const u8, count: usize) -> __m128i {
    // SAFETY: as the caller promises.
    unsafe {
        match STRIDE {
            1 => _mm_maskz_loadu_epi8(first(count), line.cast()),
            _ => _mm256_cvtepi16_epi8(_mm256_maskz_loadu_epi8(first_of_pairs(count), line.cast())),
        }
    }
}

impl Woven for bf16 {
    type Word = HalfWord;

    fn bits(self) -> u32 {
        self.to_bits().into()
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn weave<const STRIDE: usize>(lines: [*const bf16; 4], count: usize) -> SumVector {
        // SAFETY: as the caller promises.
        unsafe {
            let [even, odd, ..] = lines;
            let (even, odd) = (halves::<STRIDE>(even, count), halves::<STRIDE>(odd, count));
            _mm512_or_si512(even, _mm512_slli_epi32::<16>(odd))
        }
    }
}

/// The halves of a line, each in the lower half of a word.
///
/// # Safety
/// As of `Woven::weave`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves<const STRIDE: usize>(line: *const bf16, count: usize) -> __m512i {
    // SAFETY: as the caller promises; masks leave out what is not asked for.
    unsafe {
        match STRIDE {
            1 => _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first(count), line.cast())),
            _ => _mm512_maskz_loadu_epi16(first_of_pairs(count), line.cast()),
        }
    }
}
