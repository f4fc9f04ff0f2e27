//! What products read of an image: words of neighbouring channels in planes, or gathered for each kernel position.

use super::image::{Image, Pixels};
use super::interleave::{Weave, store};
use super::layout::Layout;
use crate::providers::cpu::gemm::{DotGroup, VECTOR};
use crate::providers::cpu::parallel::{GRAIN, split_mut};
use crate::providers::cpu::scratch::with_scratch;
use crate::providers::cpu::simd::every;
use crate::tensor::bytes_of;
use crate::threads::Pool;

/// Writes what products read of all words of channels, on all threads of the pool.
pub(crate) fn arrange<T: Weave>(layout: &Layout, pool: &Pool, image: &Image<'_, T>, out: &mut [u32]) {
    let unit = layout.unit();
    if let Pixels::Channels(data) = image.pixels
        && unit == 1
        && !layout.planes.copied()
        && layout.channels.is_multiple_of(T::Group::COUNT)
    {
        // Channels are neighbours in memory.
        let bytes = bytemuck::cast_slice_mut::<u32, u8>(out);
        return bytes.iter_mut().zip(bytes_of(data)).for_each(|(y, &x)| *y = x ^ image.flip);
    }
    split_mut(pool, out, unit, GRAIN.div_ceil(unit), |range, out| {
        with_scratch([layout.room()], |[room]: [&mut [u32]; 1]| {
            arrange_units(layout, image, range.start, room, out);
        });
    });
}

/// Writes units from the `first` one on. A word's planes are made in `room` where they are gathered from there.
pub(crate) fn arrange_units<T: Weave>(
    layout: &Layout,
    image: &Image<'_, T>,
    first: usize,
    room: &mut [u32],
    out: &mut [u32],
) {
    assert!(T::Group::available());
    // SAFETY: the processor has what words ask for.
    unsafe { units(layout, image, first, room, out) }
}

/// # Safety
/// `T::Group::available()`.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl"))]
unsafe fn units<T: Weave>(
    layout: &Layout,
    image: &Image<'_, T>,
    first: usize,
    room: &mut [u32],
    out: &mut [u32],
) {
    let places = (first..).zip(out.chunks_exact_mut(layout.unit()));
    // SAFETY: as the caller promises.
    unsafe {
        match image.pixels {
            Pixels::Channels(data) => {
                for (i, out) in places {
                    Channels::new(layout, image, data, word_of(layout, i)).unit(layout, i, room, out);
                }
            }
            Pixels::Words(words) => {
                for (i, out) in places {
                    Words::new(layout, image, words, word_of(layout, i)).unit(layout, i, room, out);
                }
            }
        }
    }
}

/// The word of channels that a unit is of.
fn word_of(layout: &Layout, unit: usize) -> usize {
    if layout.gathered { unit } else { unit / layout.planes.phases() }
}

/// Where the words of a plane come from.
trait Lines {
    /// The word of what lies around the image.
    fn border(&self) -> u32;

    /// Makes words of every `stride`-th element from `start` on.
    ///
    /// # Safety
    /// As of `units`.
    unsafe fn line(&self, start: usize, stride: usize, out: &mut [u32]);

    /// Writes a unit, whose planes are made in `room` where they are gathered from there.
    ///
    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn unit(&self, layout: &Layout, unit: usize, room: &mut [u32], out: &mut [u32]) {
        // SAFETY: as the caller promises.
        unsafe {
            if layout.gathered {
                for (phase, plane) in room.chunks_exact_mut(layout.planes.plane).enumerate() {
                    self.plane(layout, phase, plane);
                }
                gather(layout, room, out);
            } else {
                self.plane(layout, unit % layout.planes.phases(), out);
            }
        }
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
        let (mut done, border) = (0, self.border());
        for (to, from) in layout.planes.lines(phase) {
            out[done..to.start].fill(border);
            done = to.end;
            // SAFETY: as the caller promises.
            unsafe { self.line(from, layout.planes.stride(), &mut out[to]) };
        }
        out[done..].fill(border);
    }
}

/// The channels of a word.
struct Channels<'a, T> {
    lines: [&'a [T]; 4],
    /// Bits that are turned round.
    flip: u32,
    /// Bits of channels that there are. Those of others are 0: weights are, too, but infinity times 0 is not.
    present: u32,
    border: u32,
}

impl<'a, T: Weave> Channels<'a, T> {
    #[inline(always)]
    fn new(layout: &Layout, image: &Image<'a, T>, data: &'a [T], word: usize) -> Self {
        let (count, plane) = (T::Group::COUNT, layout.planes.image());
        let (group, first) = (word / layout.words, word % layout.words * count);
        let mut lines = [&data[..0]; 4];
        for (j, line) in lines.iter_mut().enumerate() {
            let channel = group * layout.channels + (first + j.min(count - 1)).min(layout.channels - 1);
            *line = &data[channel * layout.channel + layout.skipped..][..plane];
        }
        let present = !0 >> (32 / count * count.saturating_sub(layout.channels - first));
        Channels { lines, flip: u32::from_le_bytes([image.flip; 4]), present, border: image.border & present }
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

impl<T: Weave> Lines for Channels<'_, T> {
    #[inline(always)]
    fn border(&self) -> u32 {
        self.border
    }

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
                        for (j, line) in self.lines[..T::Group::COUNT].iter().enumerate() {
                            *word |= line[start + i * stride].bits() << (32 / T::Group::COUNT * j);
                        }
                        *word = (*word ^ self.flip) & self.present;
                    }
                }
            }
        }
    }
}

/// The same of an image of words.
struct Words<'a> {
    plane: &'a [u32],
    flip: u32,
    border: u32,
}

impl<'a> Words<'a> {
    #[inline(always)]
    fn new<T>(layout: &Layout, image: &Image<'a, T>, words: &'a [u32], word: usize) -> Self {
        let plane = &words[word * layout.channel + layout.skipped..][..layout.planes.image()];
        Words { plane, flip: u32::from_le_bytes([image.flip; 4]), border: image.border }
    }
}

impl Lines for Words<'_> {
    #[inline(always)]
    fn border(&self) -> u32 {
        self.border
    }

    #[inline(always)]
    unsafe fn line(&self, start: usize, stride: usize, out: &mut [u32]) {
        every(&self.plane[start..], stride, out, |x| x ^ self.flip);
    }
}

/// Writes the runs of a word's planes for all kernel positions.
#[inline(always)]
fn gather(layout: &Layout, planes: &[u32], out: &mut [u32]) {
    let crate::providers::cpu::conv::common::lines::Lines { line, pitch } = layout.planes.lines;
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
