//! Convolution of words, as the processor's scalar products take them: of four bytes or of two bfloat16 numbers of
//! neighbouring channels. Laid out like images of floats, see `planes`, with a plane for each word of channels; where
//! lines are short, so that the gaps between them would cost too much, a run of positions for each row of the
//! right operand.

mod block;
mod panels;
mod store;
mod thin;
#[cfg(target_arch = "x86_64")]
mod vectors;

use half::slice::HalfBitsSliceExt;

use crate::ops::window::Geometry;
use crate::tensor::{Element, bf16, bytes_of};
use crate::threads::Pool;

use super::planes::Planes;
use super::products::{At, Blocks};
use super::tile::Lines;
use crate::providers::cpu::gemm::{ByteWord, HalfWord, VECTOR, Weave, Word};
use crate::providers::cpu::parallel::{GRAIN as COPY_GRAIN, split_mut};
use crate::providers::cpu::scratch::with_scratch;
use crate::providers::cpu::simd::{Loop, widest};
use block::Block;
pub(in crate::providers::cpu) use panels::WordPanels;
pub(in crate::providers::cpu) use store::{Place, Requantized, RoundedToHalf, Store, WholeSums};
use thin::Thin;
#[cfg(target_arch = "x86_64")]
pub(super) use vectors::{Function, HardSwish, Identity, Other, Relu, with_function};

/// Rows of a panel, whose sums with three vectors of positions registers hold.
const ROWS: usize = 8;

/// What depends on shapes.
pub(in crate::providers::cpu) struct WordPlan {
    /// What is left of an image, where windows of one position step over elements; the rest is planned for that.
    thin: Option<Thin>,
    planes: Planes,
    /// Whether the positions of each row of the right operand are gathered.
    gathered: bool,
    /// Where the rows of the right operand begin, in what a group's planes (or runs) are.
    taps: Vec<usize>,
    lines: Lines,
    positions: usize,
    blocks: Blocks,
    /// Channels of a group, and their planes of words.
    channels: usize,
    words: usize,
}

/// How many vectors so many positions take, see `Block`: one or two beyond the last whole one a part of one.
fn vectors(positions: usize) -> usize {
    positions / VECTOR + usize::from(positions % VECTOR > 2)
}

/// An element of an image that goes into words.
pub(in crate::providers::cpu) trait Woven: Element {
    type Word: Word;

    /// Makes words of the lines of as many channels; the bits of `flip` are turned round in each byte.
    fn weave(lines: &[&[Self]], flip: u8, out: &mut [u32]);

    /// Room for elements.
    fn of_words(words: &mut [u32]) -> &mut [Self];
}

impl WordPlan {
    /// `None` where the layout would waste memory or work, for more than two axes, and without elements.
    pub(in crate::providers::cpu) fn new<W: Word>(
        panels: &WordPanels<W>,
        g: &Geometry,
        channels: usize,
        threads: usize,
    ) -> Option<Self> {
        let thin = Thin::new(g);
        let g = thin.as_ref().map_or(g, Thin::geometry);
        let planes = Planes::new(g).filter(|_| channels > 0)?;
        let words = channels.div_ceil(W::COUNT);
        let (area, [_, m, depth]) = (g.output.iter().product(), panels.shape());
        // To gather costs about as much as the products of a few rows.
        let gain = vectors(planes.positions).saturating_sub(vectors(area)) * m;
        let gathered = gain > 8 * vectors(area);
        let (lines, positions) = match gathered {
            true => (Lines { line: area, pitch: area }, area),
            false => (planes.lines, planes.positions),
        };
        let of_word = |c: usize| planes.taps.iter().map(move |tap| (c, *tap));
        let taps: Vec<usize> = match gathered {
            true => (0..depth).map(|row| row * area).collect(),
            false => (0..words).flat_map(of_word).map(|(c, tap)| c * planes.size() + tap).collect(),
        };
        let blocks = Blocks::new(ROWS, panels.shape(), positions, threads);
        Some(WordPlan { thin, planes, gathered, taps, lines, positions, blocks, channels, words })
    }

    /// Channels of a group.
    pub(in crate::providers::cpu) fn channels(&self) -> usize {
        self.channels
    }

    /// Words of scratch for an image of `groups` groups.
    pub(in crate::providers::cpu) fn room(&self, groups: usize) -> usize {
        // Elements of at most half a word.
        let thin =
            self.thin.as_ref().map_or(0, |_| (groups * self.channels * self.planes.image()).div_ceil(2));
        let copied = if self.planes.copied() { self.planes.size() } else { 0 };
        let gathered = if self.gathered { self.taps.len() * self.positions } else { 0 };
        thin + groups * (self.words * (self.planes.image() + copied) + gathered)
    }

    /// Writes the runs of the planes of all groups.
    fn gather(&self, pool: &Pool, planes: &[u32], out: &mut [u32]) {
        let (taps, size) = (&self.planes.taps, self.planes.size());
        let Lines { line, pitch } = self.planes.lines;
        let run = taps.len() * self.positions;
        split_mut(pool, out, run, COPY_GRAIN.div_ceil(run), |words, out| {
            for (plane, out) in planes[words.start * size..].chunks_exact(size).zip(out.chunks_exact_mut(run))
            {
                for (tap, out) in taps.iter().zip(out.chunks_exact_mut(self.positions)) {
                    for (y, at) in (0..self.positions).step_by(line).enumerate() {
                        let (from, to) = (&plane[tap + y * pitch..], &mut out[at..]);
                        match (from.first_chunk::<VECTOR>(), to.first_chunk_mut::<VECTOR>()) {
                            // What is too much is overwritten by the next line.
                            (Some(from), Some(to)) if line <= VECTOR => *to = *from,
                            _ => to[..line].copy_from_slice(&from[..line]),
                        }
                    }
                }
            }
        });
    }

    /// Convolves one image: channels of a group follow one another.
    pub(in crate::providers::cpu) fn image<T: Woven>(
        &self,
        pool: &Pool,
        panels: &WordPanels<T::Word>,
        image: &Image<'_, T>,
        first: &[u32],
        room: &mut [u32],
        store: &dyn Store<T::Word>,
    ) {
        let [groups, m, depth] = panels.shape();
        let (thinned, room) = match &self.thin {
            Some(thin) => {
                let elements = groups * self.channels * self.planes.image();
                let (out, room) = room.split_at_mut(elements.div_ceil(2));
                let out = &mut T::of_words(out)[..elements];
                thin.copy(pool, image.data, out);
                (Image { data: &*out, ..*image }, room)
            }
            None => (*image, room),
        };
        let image = &thinned;
        let (plane, words) = (self.planes.image(), groups * self.words);
        let (woven, rest) = room.split_at_mut(words * plane);
        image.weave(pool, self.words, plane, woven);
        let copied = if self.planes.copied() { words * self.planes.size() } else { 0 };
        let (copied, gathered) = rest.split_at_mut(copied);
        let mut source: &[u32] = woven;
        if self.planes.copied() {
            let (from, to) = (bytemuck::cast_slice(woven), bytemuck::cast_slice_mut(copied));
            self.planes.copy_image(pool, from, to, f32::from_bits(image.border));
            source = copied;
        }
        if self.gathered {
            let gathered = &mut gathered[..groups * depth * self.positions];
            self.gather(pool, source, gathered);
            source = gathered;
        }
        let group = source.len() / groups;
        self.blocks.split(pool, [groups, m, depth], self.positions, |blocks| {
            with_scratch([ROWS * depth], |[room]: [&mut [u32]; 1]| {
                for At { group: g, rows, columns } in blocks {
                    let block = Block {
                        panels: panels.from(g, rows.start),
                        first: &first[g * panels.padded_rows() + rows.start..],
                        taps: &self.taps,
                        planes: &source[g * group..][..group],
                        columns,
                        lines: self.lines,
                        rows: g * m + rows.start..g * m + rows.end,
                        room: &mut *room,
                    };
                    store.block(block);
                }
            });
        });
    }
}

/// An image to convolve.
#[derive(Clone, Copy)]
pub(in crate::providers::cpu) struct Image<'a, T> {
    /// All channels.
    pub(in crate::providers::cpu) data: &'a [T],
    /// Of a group.
    pub(in crate::providers::cpu) channels: usize,
    /// Bits of each byte that are turned round.
    pub(in crate::providers::cpu) flip: u8,
    /// The word of what lies around the image.
    pub(in crate::providers::cpu) border: u32,
}

impl<T: Woven> Image<'_, T> {
    /// Makes `words` planes of words for each group.
    fn weave(&self, pool: &Pool, words: usize, plane: usize, out: &mut [u32]) {
        let count = T::Word::COUNT;
        if plane == 1 && self.channels.is_multiple_of(count) {
            // Channels are neighbours in memory.
            let bytes = bytemuck::cast_slice_mut::<u32, u8>(out);
            return bytes.iter_mut().zip(bytes_of(self.data)).for_each(|(y, &x)| *y = x ^ self.flip);
        }
        split_mut(pool, out, plane, COPY_GRAIN.div_ceil(plane.max(1)), |range, out| {
            for (i, out) in range.zip(out.chunks_exact_mut(plane.max(1))) {
                self.weave_word(i / words, i % words, plane, out);
            }
        });
    }

    /// Makes a plane of words of a group's channels, of `plane` elements each. Missing channels are 0:
    /// weights are, too, but infinity times 0 is not.
    fn weave_word(&self, group: usize, word: usize, plane: usize, out: &mut [u32]) {
        let count = T::Word::COUNT;
        let line = |j: usize| {
            let channel = (word * count + j.min(count - 1)).min(self.channels - 1);
            &self.data[(group * self.channels + channel) * plane..][..plane]
        };
        let lines: [&[T]; 4] = std::array::from_fn(line);
        T::weave(&lines[..count], self.flip, out);
        let present = self.channels - word * count;
        if present < count {
            let mask = !(!0 << (32 / count * present));
            out.iter_mut().for_each(|word| *word &= mask);
        }
    }
}

impl Woven for u8 {
    type Word = ByteWord;

    fn weave(lines: &[&[u8]], flip: u8, out: &mut [u32]) {
        if let Some(&lines) = lines.first_chunk() {
            widest(Weave { lines, flip, out });
        }
    }

    fn of_words(words: &mut [u32]) -> &mut [u8] {
        bytemuck::cast_slice_mut(words)
    }
}

impl Woven for bf16 {
    type Word = HalfWord;

    fn weave(lines: &[&[bf16]], _flip: u8, out: &mut [u32]) {
        if let Some(&lines) = lines.first_chunk() {
            widest(Pairs { lines, out });
        }
    }

    fn of_words(words: &mut [u32]) -> &mut [bf16] {
        bytemuck::cast_slice_mut::<u32, u16>(words).reinterpret_cast_mut()
    }
}

struct Pairs<'a> {
    lines: [&'a [bf16]; 2],
    out: &'a mut [u32],
}

impl Loop for Pairs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let [even, odd] = self.lines;
        for ((word, even), odd) in self.out.iter_mut().zip(even).zip(odd) {
            *word = u32::from(even.to_bits()) | u32::from(odd.to_bits()) << 16;
        }
    }
}
