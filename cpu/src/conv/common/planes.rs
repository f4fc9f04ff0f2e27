//! Images laid out so that, for every kernel position, neighbouring output positions are neighbours in
//! memory.
//!
//! An image is copied with its padding, and for strides `s` split into the planes of every `s`-th element.
//! Kernel position `t` then reads plane `t mod s`, shifted by `t div s`. Output lines are as far apart as
//! lines of a plane: between them lie positions that are computed and not stored. An image that is read
//! with stride 1 and without padding is used where it lies.

use std::ops::Range;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use super::lines::Lines;
use super::masks::Masks;
use crate::isa::Dispatch;
use crate::loops::parallel::{GRAIN, split_mut};
use crate::loops::simd::last_of_each;
use crate::loops::store::store_first;
use crate::ops::window::Geometry;
use crate::threads::Pool;

/// The layout of one channel; depends on shapes only.
pub(crate) struct Planes {
    /// Rows and columns of the image.
    image: [usize; 2],
    /// Elements from one row of a plane to the next, and of a whole plane.
    pub(crate) pitch: usize,
    pub(crate) plane: usize,
    strides: [usize; 2],
    /// What each plane takes of the image.
    phases: Vec<Phase>,
    /// Where each kernel position reads, for output position 0.
    pub(crate) taps: Vec<usize>,
    pub(crate) lines: Lines,
    /// Positions up to the last output, gaps included.
    pub(crate) positions: usize,
}

/// The rows and columns of a plane that lie inside the image, and what the first of them reads.
struct Phase {
    /// The first row and column of the padded image.
    of: [usize; 2],
    rows: Range<usize>,
    columns: Range<usize>,
    first: [usize; 2],
}

impl Phase {
    fn new(
        of: [usize; 2],
        plane: [usize; 2],
        image: [usize; 2],
        strides: [usize; 2],
        pads: [usize; 2],
    ) -> Self {
        let inside = |axis: usize| {
            let first = pads[axis].saturating_sub(of[axis]).div_ceil(strides[axis]).min(plane[axis]);
            let end = (image[axis] + pads[axis]).saturating_sub(of[axis]).div_ceil(strides[axis]);
            first..end.clamp(first, plane[axis])
        };
        let (rows, columns) = (inside(0), inside(1));
        // Not negative, but where nothing lies inside.
        let at = |axis: usize, i: usize| (i * strides[axis] + of[axis]).saturating_sub(pads[axis]);
        Phase { of, first: [at(0, rows.start), at(1, columns.start)], rows, columns }
    }
}

impl Planes {
    /// `None` where the layout would waste memory or work, for more than two axes, and without elements.
    pub(crate) fn new(g: &Geometry) -> Option<Self> {
        Self::of_any(g).filter(|planes| {
            let area: usize = g.output.iter().product();
            planes.positions <= 2 * area + 64 && planes.size() <= 4 * (area + planes.image()) + 4096
        })
    }

    /// The same, whatever it wastes.
    pub(crate) fn of_any(g: &Geometry) -> Option<Self> {
        let axes = g.input.len();
        if !(1..=2).contains(&axes) || [&g.input, &g.output, &g.kernel].iter().any(|list| list.contains(&0)) {
            return None;
        }
        let two = |list: &[usize], one: usize| if axes == 1 { [one, list[0]] } else { [list[0], list[1]] };
        let (image, kernel, output) = (two(&g.input, 1), two(&g.kernel, 1), two(&g.output, 1));
        let (strides, dilations, pads) = (two(&g.strides, 1), two(&g.dilations, 1), two(&g.pads_begin, 0));
        let tap = |axis: usize, k: usize| k * dilations[axis];
        // How far the last kernel position shifts.
        let shift = |axis: usize| (0..kernel[axis]).map(|k| tap(axis, k) / strides[axis]).max().unwrap_or(0);
        let plane = [output[0] + shift(0), output[1] + shift(1)];
        let mut phases: Vec<Phase> = Vec::new();
        let mut at = Vec::with_capacity(kernel[0] * kernel[1]);
        for ky in 0..kernel[0] {
            for kx in 0..kernel[1] {
                let t = [tap(0, ky), tap(1, kx)];
                let of = [t[0] % strides[0], t[1] % strides[1]];
                let index = phases.iter().position(|phase| phase.of == of).unwrap_or_else(|| {
                    phases.push(Phase::new(of, plane, image, strides, pads));
                    phases.len() - 1
                });
                at.push((index, t[0] / strides[0], t[1] / strides[1]));
            }
        }
        let in_place = strides == [1, 1] && pads == [0, 0] && plane[0] <= image[0] && plane[1] <= image[1];
        // What lies right of a line serves as what lies left of the next one.
        let reach = |phase: &Phase| phase.columns.end.max(plane[1] - phase.columns.start);
        let pitch = match in_place {
            true => image[1],
            false => phases.iter().map(reach).fold(output[1], usize::max),
        };
        let size = match in_place {
            true => image[0].checked_mul(pitch)?,
            false => (plane[0] - 1).checked_mul(pitch)?.checked_add(plane[1])?,
        };
        // Taps, too, lie inside all planes together.
        phases.len().max(1).checked_mul(size)?;
        let taps = at.into_iter().map(|(index, y, x)| index * size + y * pitch + x).collect();
        if in_place {
            phases.clear();
        }
        let positions = (output[0] - 1) * pitch + output[1];
        let area = output[0] * output[1];
        let lines = match output[1] == pitch {
            true => Lines::whole(area),
            false => Lines { line: output[1], pitch },
        };
        Some(Planes { image, pitch, plane: size, strides, phases, taps, lines, positions })
    }

    /// Whether the image has to be copied.
    pub(crate) fn copied(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Planes of one channel.
    pub(crate) fn phases(&self) -> usize {
        self.phases.len().max(1)
    }

    /// Elements of the planes of one channel.
    pub(crate) fn size(&self) -> usize {
        self.phases() * self.plane
    }

    /// Elements of a row of the image from one that a line of a plane takes to the next.
    pub(crate) fn stride(&self) -> usize {
        self.strides[1]
    }

    /// The lines of a plane that lie inside the image: each with where it begins in a channel of that.
    #[inline(always)]
    pub(crate) fn lines(&self, phase: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
        let Phase { rows, columns, first, .. } = &self.phases[phase];
        let rows = if columns.is_empty() { 0..0 } else { rows.clone() };
        rows.enumerate().map(move |(i, row)| {
            let start = row * self.pitch + columns.start;
            (start..start + columns.len(), (first[0] + i * self.strides[0]) * self.image[1] + first[1])
        })
    }

    /// Elements of one channel of the image.
    pub(crate) fn image(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Copies the channels of an image, so many elements from one to the next, on all threads of the pool, plane by
    /// plane; what lies outside the image is 0.
    pub(crate) fn copy_image(&self, pool: &Pool, image: &[f32], channel: usize, out: &mut [f32]) {
        split_mut(pool, out, self.plane, GRAIN.div_ceil(self.plane.max(1)), |range, out| {
            CopyPlanes { planes: self, image, channel, first: range.start, out }.widest();
        });
    }

    /// Copies one channel. What lies outside the image is written only if `border` says with what.
    #[inline(always)]
    pub(crate) fn copy<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        image: &[f32],
        out: &mut [f32],
        border: Option<f32>,
    ) {
        if !self.copied() {
            return out.copy_from_slice(image);
        }
        let (mut phase, mut out) = (0, out);
        while phase < self.phases.len() {
            let count = self.of_lines(phase);
            let (planes, rest) = out.split_at_mut(count * self.plane);
            self.copy_planes(isa, masks, image, phase, planes, border);
            (phase, out) = (phase + count, rest);
        }
    }

    /// How many planes from one on take elements of the same lines.
    #[inline(always)]
    fn of_lines(&self, phase: usize) -> usize {
        let phases = &self.phases[phase..];
        phases.iter().take_while(|other| other.of[0] == phases[0].of[0]).count()
    }

    /// Copies some planes of a channel from a phase on that take elements of the same lines. All of them take a line's before
    /// the next line comes: a line is read from a farther cache once.
    #[inline(always)]
    fn copy_planes<I: Isa>(
        &self,
        isa: I,
        masks: &Masks<I>,
        image: &[f32],
        phase: usize,
        planes: &mut [f32],
        border: Option<f32>,
    ) {
        let phases = &self.phases[phase..][..planes.len() / self.plane];
        let Some(Phase { rows, .. }) = phases.first() else { return };
        for (i, row) in rows.clone().enumerate() {
            let each = phases.iter().zip(planes.chunks_exact_mut(self.plane));
            for (Phase { columns, first, .. }, plane) in each.filter(|(phase, _)| !phase.columns.is_empty()) {
                let start = row * self.pitch + columns.start;
                if let Some(border) = border {
                    // What lies left of the line, and right of the one before it.
                    let done = if i == 0 { 0 } else { start + columns.len() - self.pitch };
                    plane[done..start].fill(border);
                }
                let from = (first[0] + i * self.strides[0]) * self.image[1] + first[1];
                copy_line(isa, masks, image, from, self.strides[1], &mut plane[start..][..columns.len()]);
            }
        }
        let Some(border) = border else { return };
        for (Phase { columns, .. }, plane) in phases.iter().zip(planes.chunks_exact_mut(self.plane)) {
            let none = rows.is_empty() || columns.is_empty();
            let done = if none { 0 } else { (rows.end - 1) * self.pitch + columns.end };
            plane[done..].fill(border);
        }
    }
}

/// Copies every `stride`-th element from `start` on.
#[inline(always)]
fn copy_line<I: Isa>(isa: I, masks: &Masks<I>, image: &[f32], start: usize, stride: usize, to: &mut [f32]) {
    match (stride, to.len()) {
        (_, 0) => {}
        (1, count) => {
            let ops = isa.f32();
            let len = ops.len();
            let from = &image[start..][..count];
            let whole = count / len * len;
            for i in (0..whole).step_by(len) {
                ops.store(ops.load(&from[i..]), &mut to[i..]);
            }
            if whole < count {
                let mask = masks.first(count - whole);
                // SAFETY: the mask has as many elements as are left in both.
                unsafe {
                    let x = ops.load_ptr_mask(from[whole..].as_ptr(), mask);
                    store_first(isa, x, to[whole..].as_mut_ptr(), count - whole, mask);
                }
            }
        }
        (2, 4..) if start > 0 => every_nth::<2>(image, start, to),
        (4, 4..) if start > 2 => every_nth::<4>(image, start, to),
        _ => {
            for (y, &x) in to.iter_mut().zip(image[start..].iter().step_by(stride)) {
                *y = x;
            }
        }
    }
}

/// Copies every `S`-th element, of 4 or more, with the longest vectors that fit.
#[inline(always)]
fn every_nth<const S: usize>(image: &[f32], start: usize, to: &mut [f32]) {
    match to.len() {
        16.. => by_vectors::<S, 16>(image, start, to),
        8..16 => by_vectors::<S, 8>(image, start, to),
        _ => by_vectors::<S, 4>(image, start, to),
    }
}

/// Copies every `S`-th element, `N` at a time; the last ones overlap others.
#[inline(always)]
fn by_vectors<const S: usize, const N: usize>(image: &[f32], start: usize, to: &mut [f32]) {
    let last = to.len() - N;
    for i in (0..last).step_by(N).chain([last]) {
        last_of_each::<S, N>(&image[start + S * i - (S - 1)..], &mut to[i..]);
    }
}

/// Copies planes, from the `first` one of all channels on, with what lies outside the image.
pub(crate) struct CopyPlanes<'a> {
    pub(crate) planes: &'a Planes,
    pub(crate) image: &'a [f32],
    /// Elements from a channel to the next.
    pub(crate) channel: usize,
    pub(crate) first: usize,
    pub(crate) out: &'a mut [f32],
}

impl SimdOp for CopyPlanes<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let CopyPlanes { planes, image, channel: step, first, out } = self;
        let masks = Masks::new(isa);
        let (mut i, mut out) = (first, out);
        assert!(out.len().is_multiple_of(planes.plane), "whole planes are copied");
        while !out.is_empty() {
            let (channel, phase) = (i / planes.phases.len(), i % planes.phases.len());
            let image = &image[channel * step..][..planes.image()];
            let count = planes.of_lines(phase).min(out.len() / planes.plane);
            let (some, rest) = out.split_at_mut(count * planes.plane);
            planes.copy_planes(isa, &masks, image, phase, some, Some(0.0));
            (i, out) = (i + count, rest);
        }
    }
}
