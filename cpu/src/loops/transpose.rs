//! Blocks of a matrix, transposed: `output[r·row_size + i] = input[i·stride + r]` for `r < rows`, `i < columns`.

use super::item::Item;
use super::parallel::Parts;

/// Rows, or columns, that are so few that the elements of all of them are moved one after the other.
pub(super) const FEW: usize = 3;

/// The edge of a block: a cache line on either side.
pub(super) const fn edge<T>() -> usize {
    if size_of::<T>() > 8 { 8 } else { 64 / size_of::<T>() }
}

/// Where a block is read and written.
pub(crate) struct Block<'a, T> {
    pub(crate) input: &'a [T],
    pub(crate) stride: usize,
    pub(crate) output: &'a Parts<'a, T>,
    /// Where the block's first element is written.
    pub(crate) at: usize,
    pub(crate) row_size: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<T: Item> Block<'_, T> {
    /// # Safety
    /// Nobody else may use what is written at the same time.
    pub(crate) unsafe fn transpose(self) {
        let Block { input, stride, row_size, rows, columns, .. } = self;
        if rows == 0 || columns == 0 {
            return;
        }
        assert!((columns - 1) * stride + rows <= input.len(), "what is read lies inside");
        if columns <= FEW && row_size == columns {
            // SAFETY: as the caller promises.
            let output = unsafe { self.output.get(self.at..self.at + rows * columns) };
            let line = |i: usize| input[i * stride..][..rows].iter();
            return match columns {
                1 => output.clone_from_slice(&input[..rows]),
                2 => {
                    let lines = line(0).zip(line(1));
                    let groups = output.as_chunks_mut().0.iter_mut().zip(lines);
                    groups.for_each(|(y, (a, b))| *y = [a, b].map(T::clone));
                }
                _ => {
                    let lines = line(0).zip(line(1)).zip(line(2));
                    let groups = output.as_chunks_mut().0.iter_mut().zip(lines);
                    groups.for_each(|(y, ((a, b), c))| *y = [a, b, c].map(T::clone));
                }
            };
        }
        // SAFETY: as the caller promises; rows do not overlap.
        let row = |r: usize| unsafe {
            let start = self.at + r * row_size;
            self.output.get(start..start + columns)
        };
        match rows {
            2 if stride == 2 => pairs(&input.as_chunks().0[..columns], row(0), row(1)),
            3 if stride == 3 => {
                #[cfg_attr(
                    not(target_arch = "x86_64"),
                    allow(unused_mut, reason = "what changes it is of x86-64")
                )]
                let (lines, mut planes) = (&input.as_chunks().0[..columns], [row(0), row(1), row(2)]);
                #[cfg(target_arch = "x86_64")]
                let done = squares::triples(lines, &mut planes);
                #[cfg(not(target_arch = "x86_64"))]
                let done = 0;
                let [a, b, c] = planes;
                triples(&lines[done..], &mut a[done..], &mut b[done..], &mut c[done..]);
            }
            // SAFETY: as the caller promises.
            _ => unsafe { self.square() },
        }
    }

    /// # Safety
    /// As for `transpose`.
    unsafe fn square(self) {
        let Block { input, stride, row_size, rows, columns, .. } = self;
        #[cfg(target_arch = "x86_64")]
        if squares::edge(size_of::<T>()).is_some_and(|edge| rows >= edge && columns >= edge) {
            // SAFETY: as the caller promises. Elements of these sizes are bytes that may be moved as numbers; what is read
            // lies inside, as `transpose` saw, and so does what is written.
            unsafe {
                let end = self.at + (rows - 1) * row_size + columns;
                assert!(end <= self.output.len(), "what is written lies inside");
                let output = self.output.start().add(self.at);
                squares::transpose(input.as_ptr(), stride, output, row_size, (rows, columns));
            }
            return;
        }
        for r in 0..rows {
            let start = self.at + r * row_size;
            // SAFETY: as the caller promises.
            let row = unsafe { self.output.get(start..start + columns) };
            for (y, x) in row.iter_mut().zip(input[r..].iter().step_by(stride)) {
                y.clone_from(x);
            }
        }
    }
}

// Loops of their own, where nothing that is written can be what is read.

#[inline(never)]
fn pairs<T: Clone>(input: &[[T; 2]], a: &mut [T], b: &mut [T]) {
    for ((x, a), b) in input.iter().zip(a).zip(b) {
        (*a, *b) = (x[0].clone(), x[1].clone());
    }
}

#[inline(never)]
fn triples<T: Clone>(input: &[[T; 3]], a: &mut [T], b: &mut [T], c: &mut [T]) {
    for (((x, a), b), c) in input.iter().zip(a).zip(b).zip(c) {
        (*a, *b, *c) = (x[0].clone(), x[1].clone(), x[2].clone());
    }
}

/// Elements of 1, 2, 4 and 8 bytes, in squares that registers hold. The last square of a line has elements of the one
/// before it.
#[cfg(target_arch = "x86_64")]
mod squares {
    use std::arch::x86_64::*;

    use crate::isa::has_avx2;
    use crate::loops::avx2;

    /// The edge of a square of elements of this size.
    pub(super) fn edge(size: usize) -> Option<usize> {
        match size {
            1 | 2 => Some(8),
            4 => Some(4),
            8 => Some(2),
            _ => None,
        }
    }

    /// # Safety
    /// All elements may be read and written; their size has an edge, and there are at least as many rows and columns.
    pub(super) unsafe fn transpose<T>(
        input: *const T,
        stride: usize,
        output: *mut T,
        row_size: usize,
        (rows, columns): (usize, usize),
    ) {
        // SAFETY: as the caller promises, on a processor that has the instructions.
        unsafe {
            match size_of::<T>() {
                1 => each::<u8, 8>(input.cast(), stride, output.cast(), row_size, (rows, columns), bytes),
                2 => each::<u16, 8>(input.cast(), stride, output.cast(), row_size, (rows, columns), halves),
                4 if rows >= avx2::LEN && columns >= avx2::LEN && has_avx2() => {
                    eights(input.cast(), stride, output.cast(), row_size, (rows, columns));
                }
                4 => each::<f32, 4>(input.cast(), stride, output.cast(), row_size, (rows, columns), words),
                _ => each::<f64, 2>(input.cast(), stride, output.cast(), row_size, (rows, columns), doubles),
            }
        }
    }

    /// Where the squares of a line begin; it has at least one.
    #[inline(always)]
    fn starts(len: usize, edge: usize) -> impl Iterator<Item = usize> {
        (0..len.div_ceil(edge)).map(move |i| (i * edge).min(len - edge))
    }

    /// # Safety
    /// As for `transpose`.
    #[inline(always)]
    unsafe fn each<T, const EDGE: usize>(
        input: *const T,
        stride: usize,
        output: *mut T,
        row_size: usize,
        (rows, columns): (usize, usize),
        square: impl Fn([*const T; EDGE], [*mut T; EDGE]),
    ) {
        for i in starts(columns, EDGE) {
            for r in starts(rows, EDGE) {
                // SAFETY: a square is a part of what the caller gives.
                let (from, to) = unsafe { (input.add(i * stride + r), output.add(r * row_size + i)) };
                square(
                    std::array::from_fn(|i| from.wrapping_add(i * stride)),
                    std::array::from_fn(|r| to.wrapping_add(r * row_size)),
                );
            }
        }
    }

    /// # Safety
    /// As for `transpose`, with at least `avx2::LEN` rows and columns.
    #[target_feature(enable = "avx2")]
    unsafe fn eights(
        input: *const f32,
        stride: usize,
        output: *mut f32,
        row_size: usize,
        extent: (usize, usize),
    ) {
        // SAFETY: as the caller promises, who gives squares of `avx2::LEN` lines and rows of as many elements.
        unsafe {
            each::<f32, { avx2::LEN }>(input, stride, output, row_size, extent, |lines, rows| {
                let columns = avx2::transposed(lines.map(|line| _mm256_loadu_ps(line)));
                rows.into_iter().zip(columns).for_each(|(row, x)| _mm256_storeu_ps(row, x));
            });
        }
    }

    /// Separates the elements of triples of words, four triples at a time; tells of how many.
    pub(super) fn triples<T>(input: &[[T; 3]], planes: &mut [&mut [T]; 3]) -> usize {
        let count = planes.iter().fold(input.len(), |count, plane| count.min(plane.len()));
        if size_of::<T>() != 4 {
            return 0;
        }
        let whole = count / 4 * 4;
        let from = input.as_ptr().cast::<f32>();
        let to = planes.each_mut().map(|plane| plane.as_mut_ptr().cast::<f32>());
        for i in (0..whole).step_by(4) {
            // SAFETY: all have so many elements, of 4 bytes that may be moved as numbers; every processor has SSE2.
            unsafe {
                let [a, b, c] = [0, 4, 8].map(|at| _mm_loadu_ps(from.add(3 * i + at)));
                let ends = _mm_shuffle_ps::<0b01_01_10_10>(b, c);
                let starts = _mm_shuffle_ps::<0b00_00_01_01>(a, b);
                let second = _mm_shuffle_ps::<0b10_10_11_11>(b, c);
                let third = _mm_shuffle_ps::<0b01_01_10_10>(a, b);
                _mm_storeu_ps(to[0].add(i), _mm_shuffle_ps::<0b10_00_11_00>(a, ends));
                _mm_storeu_ps(to[1].add(i), _mm_shuffle_ps::<0b10_00_10_00>(starts, second));
                _mm_storeu_ps(to[2].add(i), _mm_shuffle_ps::<0b11_00_10_00>(third, c));
            }
        }
        whole
    }

    /// Of the elements of two vectors, the first halves and the second, taken in turns.
    macro_rules! in_turns {
        ($low:ident, $high:ident, $a:expr, $b:expr) => {
            [$low($a, $b), $high($a, $b)]
        };
    }

    #[inline(always)]
    fn bytes(lines: [*const u8; 8], rows: [*mut u8; 8]) {
        // SAFETY: `each` gives lines and rows of eight elements; every processor has SSE2.
        unsafe {
            let x = lines.map(|line| _mm_loadl_epi64(line.cast()));
            // Pairs, fours and eights of lines.
            let twos: [_; 4] = std::array::from_fn(|i| _mm_unpacklo_epi8(x[2 * i], x[2 * i + 1]));
            let [a, b] = in_turns!(_mm_unpacklo_epi16, _mm_unpackhi_epi16, twos[0], twos[1]);
            let [c, d] = in_turns!(_mm_unpacklo_epi16, _mm_unpackhi_epi16, twos[2], twos[3]);
            let [low, high] =
                [(a, c), (b, d)].map(|(x, y)| in_turns!(_mm_unpacklo_epi32, _mm_unpackhi_epi32, x, y));
            for (i, x) in low.into_iter().chain(high).enumerate() {
                _mm_storel_epi64(rows[2 * i].cast(), x);
                _mm_storel_epi64(rows[2 * i + 1].cast(), _mm_unpackhi_epi64(x, x));
            }
        }
    }

    #[inline(always)]
    fn halves(lines: [*const u16; 8], rows: [*mut u16; 8]) {
        // SAFETY: as in `bytes`.
        unsafe {
            let x = lines.map(|line| _mm_loadu_si128(line.cast()));
            for half in 0..2 {
                // Four columns: pairs, fours and eights of lines.
                let twos: [_; 4] = std::array::from_fn(|i| match half {
                    0 => _mm_unpacklo_epi16(x[2 * i], x[2 * i + 1]),
                    _ => _mm_unpackhi_epi16(x[2 * i], x[2 * i + 1]),
                });
                let first = in_turns!(_mm_unpacklo_epi32, _mm_unpackhi_epi32, twos[0], twos[1]);
                let last = in_turns!(_mm_unpacklo_epi32, _mm_unpackhi_epi32, twos[2], twos[3]);
                for (i, (a, b)) in first.into_iter().zip(last).enumerate() {
                    let row = 4 * half + 2 * i;
                    _mm_storeu_si128(rows[row].cast(), _mm_unpacklo_epi64(a, b));
                    _mm_storeu_si128(rows[row + 1].cast(), _mm_unpackhi_epi64(a, b));
                }
            }
        }
    }

    #[inline(always)]
    fn words(lines: [*const f32; 4], rows: [*mut f32; 4]) {
        // SAFETY: `each` gives lines and rows of four elements; every processor has SSE2.
        unsafe {
            let [a, b, c, d] = lines.map(|line| _mm_loadu_ps(line));
            let [first, second] = in_turns!(_mm_unpacklo_ps, _mm_unpackhi_ps, a, b);
            let [third, fourth] = in_turns!(_mm_unpacklo_ps, _mm_unpackhi_ps, c, d);
            _mm_storeu_ps(rows[0], _mm_movelh_ps(first, third));
            _mm_storeu_ps(rows[1], _mm_movehl_ps(third, first));
            _mm_storeu_ps(rows[2], _mm_movelh_ps(second, fourth));
            _mm_storeu_ps(rows[3], _mm_movehl_ps(fourth, second));
        }
    }

    #[inline(always)]
    fn doubles(lines: [*const f64; 2], rows: [*mut f64; 2]) {
        // SAFETY: `each` gives lines and rows of two elements; every processor has SSE2.
        unsafe {
            let [a, b] = lines.map(|line| _mm_loadu_pd(line));
            _mm_storeu_pd(rows[0], _mm_unpacklo_pd(a, b));
            _mm_storeu_pd(rows[1], _mm_unpackhi_pd(a, b));
        }
    }
}
