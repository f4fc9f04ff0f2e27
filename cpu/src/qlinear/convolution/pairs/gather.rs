//! What positions read of an image, as lines of dot groups. All of it is for processors with AVX2 and FMA, as are products of
//! pairs: whoever calls it asserts `pairs::available()`.

use crate::conv::PatchTable;
use crate::ops::window::Geometry;

/// Makes dot groups of the bytes of four lines, of which every `stride`-th one counts. The lines have as many.
pub(super) fn interleave(lines: [&[u8]; 4], stride: usize, flip: u32, out: &mut [u32]) {
    let count = out.len();
    if count == 0 {
        return;
    }
    let least = lines.iter().map(|line| line.len()).min().unwrap_or(0);
    assert!(least > (count - 1) * stride);
    // SAFETY: `pairs::available()`, as the module says; lines have `least` bytes.
    #[cfg(target_arch = "x86_64")]
    let done = unsafe {
        match stride {
            1 => x86::interleave::<1>(lines.map(<[u8]>::as_ptr), least, flip, out),
            2 => x86::interleave::<2>(lines.map(<[u8]>::as_ptr), least, flip, out),
            _ => 0,
        }
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    for (i, out) in out.iter_mut().enumerate().skip(done) {
        *out = flip ^ u32::from_le_bytes(lines.map(|line| line[i * stride]));
    }
}

/// Makes dot groups of the bytes of four planes that windows of a single position read, none of which lies outside.
pub(super) fn interleave_picked(table: &PatchTable, planes: [&[u8]; 4], flip: u32, out: &mut [u32]) {
    for (i, out) in out.chunks_exact_mut(table.line()).enumerate() {
        let start = table.row(i, 0).unwrap_or(0);
        interleave(planes.map(|plane| &plane[start..]), table.stride(), flip, out);
    }
}

/// Words of a plane that windows read at one of their positions, from window `first` on; `padding` lies around it.
pub(super) fn gather(
    table: &PatchTable,
    tap: usize,
    plane: &[u32],
    padding: u32,
    first: usize,
    out: &mut [u32],
) {
    let (spans, line) = (table.spans(), table.line());
    let (outer, inner) = (tap / spans.len(), tap % spans.len());
    let (span, at) = &spans[inner];
    let (mut row, mut column, mut rest) = (first / line, first % line, out);
    while !rest.is_empty() {
        let (part, after) = rest.split_at_mut((line - column).min(rest.len()));
        let end = column + part.len();
        match table.row(row, outer) {
            None => part.fill(padding),
            Some(start) => {
                let from = span.start.clamp(column, end);
                let to = span.end.clamp(from, end);
                part[..from - column].iter_mut().for_each(|y| *y = padding);
                part[to - column..].iter_mut().for_each(|y| *y = padding);
                if from < to {
                    // Inside the span, so not negative.
                    let begin = (start as isize + (from * table.stride()) as isize + at) as usize;
                    every(&plane[begin..], table.stride(), &mut part[from - column..to - column]);
                }
            }
        }
        (row, column, rest) = (row + 1, 0, after);
    }
}

/// Copies every `stride`-th word, of which there are as many.
fn every(words: &[u32], stride: usize, out: &mut [u32]) {
    let count = out.len();
    if stride == 1 {
        return out.copy_from_slice(&words[..count]);
    }
    #[cfg(target_arch = "x86_64")]
    if stride == 2 {
        assert!(words.len() >= 2 * count - 1);
        // SAFETY: `pairs::available()`, as the module says; there are so many words.
        let done = unsafe { x86::every_second_word(words.as_ptr(), words.len(), out) };
        return out.iter_mut().enumerate().skip(done).for_each(|(i, y)| *y = words[2 * i]);
    }
    out.iter_mut().zip(words.iter().step_by(stride)).for_each(|(y, &x)| *y = x);
}

/// An image with what lies around it, over two axes. Columns are parted by which positions of outputs read them, so that of
/// outputs side by side each position of a window reads bytes side by side.
pub(super) struct Padded {
    input: [usize; 2],
    pads: [usize; 2],
    /// The stride of columns.
    stride: usize,
    rows: usize,
    /// Bytes of the columns of a part, and of a plane.
    pitch: usize,
    plane: usize,
    /// Outputs of a line, and bytes from what one line of outputs reads to what the next one does.
    line: usize,
    step: usize,
    /// Where what the first output reads lies for each position of a window.
    taps: Vec<usize>,
}

impl Padded {
    pub(super) fn new(g: &Geometry) -> Option<Self> {
        let two = |of: &[usize]| <[usize; 2]>::try_from(of).ok();
        let (input, pads, output) = (two(&g.input)?, two(&g.pads_begin)?, two(&g.output)?);
        let (kernel, strides, dilations) = (two(&g.kernel)?, two(&g.strides)?, two(&g.dilations)?);
        if output.contains(&0) || kernel.contains(&0) {
            return None;
        }
        let reach = [0, 1].map(|axis| (kernel[axis] - 1) * dilations[axis]);
        let stride = strides[1];
        let (rows, pitch) = ((output[0] - 1) * strides[0] + reach[0] + 1, output[1] + reach[1] / stride);
        let of_row = stride * pitch;
        let tap = |row: usize, column: usize| {
            let column = column * dilations[1];
            row * dilations[0] * of_row + column % stride * pitch + column / stride
        };
        let taps = (0..kernel[0]).flat_map(|row| (0..kernel[1]).map(move |column| (row, column)));
        Some(Padded {
            input,
            pads,
            stride,
            rows,
            pitch,
            plane: rows * of_row,
            line: output[1],
            step: strides[0] * of_row,
            taps: taps.map(|(row, column)| tap(row, column)).collect(),
        })
    }

    /// Bytes of a channel.
    pub(super) fn plane(&self) -> usize {
        self.plane
    }

    /// Copies a channel.
    pub(super) fn fill(&self, image: &[u8], flip: u8, padding: u8, out: &mut [u8]) {
        let ([height, width], [above, before]) = (self.input, self.pads);
        for (row, out) in out.chunks_exact_mut(self.stride * self.pitch).enumerate().take(self.rows) {
            let row = row.wrapping_sub(above);
            if row >= height {
                out.fill(padding);
                continue;
            }
            let image = &image[row * width..][..width];
            for (part, out) in out.chunks_exact_mut(self.pitch).enumerate() {
                // The first column of this part that the image has, and where it lies there.
                let first = before.saturating_sub(part).div_ceil(self.stride).min(out.len());
                let begin = (first * self.stride + part).saturating_sub(before).min(width);
                let count = (width - begin).div_ceil(self.stride).min(out.len() - first);
                let (inside, after) = out[first..].split_at_mut(count);
                after.fill(padding);
                every_byte(&image[begin..], self.stride, inside);
                inside.iter_mut().for_each(|y| *y ^= flip);
                out[..first].fill(padding);
            }
        }
    }

    /// Dot groups of what windows read at four positions of channels, from window `first` on.
    pub(super) fn gather(&self, bytes: &[u8], positions: [usize; 4], first: usize, out: &mut [u32]) {
        let taps = self.taps.len();
        let starts = positions.map(|at| at / taps * self.plane + self.taps[at % taps]);
        let (mut row, mut column, mut rest) = (first / self.line, first % self.line, out);
        while !rest.is_empty() {
            let (part, after) = rest.split_at_mut((self.line - column).min(rest.len()));
            let lines = starts.map(|start| &bytes[start + row * self.step + column..]);
            interleave(lines, 1, 0, part);
            (row, column, rest) = (row + 1, 0, after);
        }
    }
}

/// Copies every `stride`-th byte, of which there are as many.
fn every_byte(bytes: &[u8], stride: usize, out: &mut [u8]) {
    let count = out.len();
    if stride == 1 {
        return out.copy_from_slice(&bytes[..count]);
    }
    #[cfg(target_arch = "x86_64")]
    let done = match stride {
        // SAFETY: `pairs::available()`, as the module says; there are so many bytes.
        2 => unsafe { x86::every_second_byte(bytes.as_ptr(), bytes.len(), out) },
        _ => 0,
    };
    #[cfg(not(target_arch = "x86_64"))]
    let done = 0;
    let rest = out.iter_mut().zip(bytes.iter().step_by(stride));
    rest.skip(done).for_each(|(y, &x)| *y = x);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Bytes and words that a vector of outputs has.
    const LEN: usize = 16;
    const WORDS: usize = 8;

    /// Makes dot groups, and tells how many are made. `STRIDE` is 1 or 2.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; lines have `len` bytes.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn interleave<const STRIDE: usize>(
        lines: [*const u8; 4],
        len: usize,
        flip: u32,
        out: &mut [u32],
    ) -> usize {
        let (count, flip, low) = (out.len(), _mm256_set1_epi32(flip as i32), _mm256_set1_epi16(0xff));
        let mut at = 0;
        while at < count && count >= LEN {
            // The last vector may overlap the one before.
            let begin = at.min(count - LEN);
            if (begin + LEN) * STRIDE > len {
                break;
            }
            let [a, b, c, d] = lines.map(|line| line.wrapping_add(begin * STRIDE));
            // SAFETY: a vector of each line is inside, as is that of dot groups.
            unsafe {
                // Bytes of the first and the second line, and of the other two, side by side.
                let (ab, cd) = if STRIDE == 1 {
                    let [a, b, c, d] = [
                        _mm_loadu_si128(a.cast()),
                        _mm_loadu_si128(b.cast()),
                        _mm_loadu_si128(c.cast()),
                        _mm_loadu_si128(d.cast()),
                    ];
                    (
                        _mm256_set_m128i(_mm_unpackhi_epi8(a, b), _mm_unpacklo_epi8(a, b)),
                        _mm256_set_m128i(_mm_unpackhi_epi8(c, d), _mm_unpacklo_epi8(c, d)),
                    )
                } else {
                    let [a, b, c, d] = [
                        _mm256_loadu_si256(a.cast()),
                        _mm256_loadu_si256(b.cast()),
                        _mm256_loadu_si256(c.cast()),
                        _mm256_loadu_si256(d.cast()),
                    ];
                    (
                        _mm256_or_si256(_mm256_and_si256(a, low), _mm256_slli_epi16::<8>(b)),
                        _mm256_or_si256(_mm256_and_si256(c, low), _mm256_slli_epi16::<8>(d)),
                    )
                };
                let (first, second) = (_mm256_unpacklo_epi16(ab, cd), _mm256_unpackhi_epi16(ab, cd));
                let to = out.as_mut_ptr().add(begin);
                let low = _mm256_permute2x128_si256::<0x20>(first, second);
                let high = _mm256_permute2x128_si256::<0x31>(first, second);
                _mm256_storeu_si256(to.cast(), _mm256_xor_si256(low, flip));
                _mm256_storeu_si256(to.add(WORDS).cast(), _mm256_xor_si256(high, flip));
            }
            at = begin + LEN;
        }
        at
    }

    /// Copies every second word, and tells how many are copied.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; there are `len` words.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn every_second_word(words: *const u32, len: usize, out: &mut [u32]) -> usize {
        let (count, mut at) = (out.len(), 0);
        while at < count && count >= WORDS {
            let begin = at.min(count - WORDS);
            if 2 * (begin + WORDS) > len {
                break;
            }
            // SAFETY: two vectors are inside, as is that of outputs.
            unsafe {
                let from = words.add(2 * begin).cast::<f32>();
                let even = _mm256_shuffle_ps::<0x88>(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(WORDS)));
                let even = _mm256_permute4x64_pd::<0b11_01_10_00>(_mm256_castps_pd(even));
                _mm256_storeu_pd(out.as_mut_ptr().add(begin).cast(), even);
            }
            at = begin + WORDS;
        }
        at
    }

    /// Copies every second byte, and tells how many are copied.
    ///
    /// # Safety
    /// The processor has AVX2 and FMA; there are `len` bytes.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn every_second_byte(bytes: *const u8, len: usize, out: &mut [u8]) -> usize {
        let (count, mut at) = (out.len(), 0);
        while at < count && count >= LEN {
            let begin = at.min(count - LEN);
            if 2 * (begin + LEN) > len {
                break;
            }
            // SAFETY: a vector is inside, as is the half of one of outputs.
            unsafe {
                let pairs = _mm256_loadu_si256(bytes.add(2 * begin).cast());
                let even = _mm256_and_si256(pairs, _mm256_set1_epi16(0xff));
                let even = _mm256_permute4x64_epi64::<0b10_00>(_mm256_packus_epi16(even, even));
                _mm_storeu_si128(out.as_mut_ptr().add(begin).cast(), _mm256_castsi256_si128(even));
            }
            at = begin + LEN;
        }
        at
    }
}
