//! What products read of an image: dot groups of neighbouring channels in planes, or gathered for each kernel position.

use super::image::{Image, Pixels};
use super::interleave::{Interleave, store};
use super::layout::PackedLayout;
use crate::gemm::{DotGroup, VECTOR};
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::scratch::with_scratch;
use crate::loops::simd::every;
use crate::tensor::bytes_of;
use crate::threads::Pool;

/// Writes what products read of all dot groups of channels, on all threads of the pool.
pub(crate) fn arrange<T: Interleave>(
    layout: &PackedLayout,
    pool: &Pool,
    image: &Image<'_, T>,
    out: &mut [u32],
) {
    let unit = layout.unit();
    if let Pixels::Nchw(data) = image.pixels
        && unit == 1
        && !layout.planes.copied()
        && layout.channels.is_multiple_of(T::Group::COUNT)
    {
        // Channels are neighbours in memory.
        let bytes = bytemuck::cast_slice_mut::<u32, u8>(out);
        return bytes.iter_mut().zip(bytes_of(data)).for_each(|(y, &x)| *y = x ^ image.flip);
    }
    split_mut(pool, out, unit, GRAIN.div_ceil(unit), |range, out| {
        with_scratch([layout.scratch_len()], |[scratch]: [&mut [u32]; 1]| {
            arrange_units(layout, image, range.start, scratch, out);
        });
    });
}

/// Writes units from the `first` one on. A dot group's planes are made in `scratch` where they are gathered from there.
pub(crate) fn arrange_units<T: Interleave>(
    layout: &PackedLayout,
    image: &Image<'_, T>,
    first: usize,
    scratch: &mut [u32],
    out: &mut [u32],
) {
    assert!(T::Group::available());
    // SAFETY: the processor has what dot groups ask for.
    unsafe { units(layout, image, first, scratch, out) }
}

/// # Safety
/// `T::Group::available()`.
#[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl"))]
unsafe fn units<T: Interleave>(
    layout: &PackedLayout,
    image: &Image<'_, T>,
    first: usize,
    scratch: &mut [u32],
    out: &mut [u32],
) {
    let places = (first..).zip(out.chunks_exact_mut(layout.unit()));
    // SAFETY: as the caller promises.
    unsafe {
        match image.pixels {
            Pixels::Nchw(data) => {
                for (i, out) in places {
                    NchwSource::new(layout, image, data, dot_group_of(layout, i))
                        .unit(layout, i, scratch, out);
                }
            }
            Pixels::ChannelBlocked(dot_groups) => {
                for (i, out) in places {
                    BlockedSource::new(layout, image, dot_groups, dot_group_of(layout, i))
                        .unit(layout, i, scratch, out);
                }
            }
        }
    }
}

/// The dot group of channels that a unit is of.
fn dot_group_of(layout: &PackedLayout, unit: usize) -> usize {
    if layout.gathered { unit } else { unit / layout.planes.phases() }
}

/// Where the dot groups of a plane come from.
trait PlaneSource {
    /// The dot group of what lies around the image.
    fn border(&self) -> u32;

    /// Makes dot groups of every `stride`-th element from `start` on.
    ///
    /// # Safety
    /// As of `units`.
    unsafe fn line(&self, start: usize, stride: usize, out: &mut [u32]);

    /// Writes a unit, whose planes are made in `scratch` where they are gathered from there.
    ///
    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn unit(&self, layout: &PackedLayout, unit: usize, scratch: &mut [u32], out: &mut [u32]) {
        // SAFETY: as the caller promises.
        unsafe {
            if layout.gathered {
                for (phase, plane) in scratch.chunks_exact_mut(layout.planes.plane).enumerate() {
                    self.plane(layout, phase, plane);
                }
                gather(layout, scratch, out);
            } else {
                self.plane(layout, unit % layout.planes.phases(), out);
            }
        }
    }

    /// Makes a plane of dot groups.
    ///
    /// # Safety
    /// As of `units`.
    #[inline(always)]
    unsafe fn plane(&self, layout: &PackedLayout, phase: usize, out: &mut [u32]) {
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

/// The channels of a dot group.
struct NchwSource<'a, T> {
    lines: [&'a [T]; 4],
    /// The sign bits of bytes that are flipped.
    flip: u32,
    /// Bits of channels that there are. Those of others are 0: weights are, too, but infinity times 0 is not.
    present: u32,
    border: u32,
}

impl<'a, T: Interleave> NchwSource<'a, T> {
    #[inline(always)]
    fn new(layout: &PackedLayout, image: &Image<'a, T>, data: &'a [T], dot_group: usize) -> Self {
        let (count, plane) = (T::Group::COUNT, layout.planes.image());
        let (group, first) = (dot_group / layout.dot_groups, dot_group % layout.dot_groups * count);
        let mut lines = [&data[..0]; 4];
        for (j, line) in lines.iter_mut().enumerate() {
            let channel = group * layout.channels + (first + j.min(count - 1)).min(layout.channels - 1);
            *line = &data[channel * layout.channel + layout.skipped..][..plane];
        }
        let present = !0 >> (32 / count * count.saturating_sub(layout.channels - first));
        NchwSource {
            lines,
            flip: u32::from_le_bytes([image.flip; 4]),
            present,
            border: image.border & present,
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
                store(
                    T::interleave::<STRIDE>(lines, count),
                    self.flip,
                    self.present,
                    &mut out[at..at + count],
                );
            }
            at += VECTOR;
        }
    }
}

impl<T: Interleave> PlaneSource for NchwSource<'_, T> {
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
                    for (i, dot_group) in out.iter_mut().enumerate() {
                        *dot_group = 0;
                        for (j, line) in self.lines[..T::Group::COUNT].iter().enumerate() {
                            *dot_group |= line[start + i * stride].bits() << (32 / T::Group::COUNT * j);
                        }
                        *dot_group = (*dot_group ^ self.flip) & self.present;
                    }
                }
            }
        }
    }
}

/// The same of an image of dot groups.
struct BlockedSource<'a> {
    plane: &'a [u32],
    flip: u32,
    border: u32,
}

impl<'a> BlockedSource<'a> {
    #[inline(always)]
    fn new<T>(layout: &PackedLayout, image: &Image<'a, T>, dot_groups: &'a [u32], dot_group: usize) -> Self {
        let plane = &dot_groups[dot_group * layout.channel + layout.skipped..][..layout.planes.image()];
        BlockedSource { plane, flip: u32::from_le_bytes([image.flip; 4]), border: image.border }
    }
}

impl PlaneSource for BlockedSource<'_> {
    #[inline(always)]
    fn border(&self) -> u32 {
        self.border
    }

    #[inline(always)]
    unsafe fn line(&self, start: usize, stride: usize, out: &mut [u32]) {
        every(&self.plane[start..], stride, out, |x| x ^ self.flip);
    }
}

/// Writes the runs of a dot group's planes for all kernel positions.
#[inline(always)]
fn gather(layout: &PackedLayout, planes: &[u32], out: &mut [u32]) {
    let crate::conv::common::lines::Lines { line, pitch } = layout.planes.lines;
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
