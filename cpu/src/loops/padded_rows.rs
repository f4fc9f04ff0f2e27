//! Rows of bytes that are parts of others between fill values. Most rows of padded images are so short that calls of
//! functions that copy take longer than the copy.

use super::simd::Loop;

/// Bytes of the longest piece that is moved at a time.
const PIECE: usize = 64;
/// Longer parts are copied by the function of the library.
const LONG: usize = 2048;

/// Writes rows of `row` bytes each, of which `length` are copied and as many as are missing before and behind are filled.
pub(super) struct PaddedRows<'a, Starts> {
    pub(super) input: &'a [u8],
    pub(super) output: &'a mut [u8],
    pub(super) row: usize,
    /// Where in the input the part of each row begins; `None` where all of it is filled.
    pub(super) starts: Starts,
    pub(super) before: usize,
    pub(super) length: usize,
    /// The fill value, as often as it fits; all other numbers are multiples of its size.
    pub(super) fill: [u8; PIECE],
}

impl<Starts: Iterator<Item = Option<usize>>> Loop for PaddedRows<'_, Starts> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let PaddedRows { input, output, row, starts, before, length, fill } = self;
        for (row, start) in output.chunks_exact_mut(row.max(1)).zip(starts) {
            let Some(start) = start else {
                write(&fill, row);
                continue;
            };
            let (first, rest) = row.split_at_mut(before);
            let (middle, last) = rest.split_at_mut(length);
            write(&fill, first);
            copy(&input[start..start + length], middle);
            write(&fill, last);
        }
    }
}

/// Copies as many bytes as there are.
#[inline(always)]
fn copy(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len(), "a byte for each byte");
    // SAFETY: both have as many bytes, and only one of them is borrowed for writing.
    unsafe { pieces::<false>(from.as_ptr(), to.as_mut_ptr(), to.len()) }
}

#[inline(always)]
fn write(fill: &[u8; PIECE], to: &mut [u8]) {
    // SAFETY: `fill` has as many bytes as a piece.
    unsafe { pieces::<true>(fill.as_ptr(), to.as_mut_ptr(), to.len()) }
}

/// Writes `count` bytes by pieces, the last of which may overlap the one before. `FILLS`: all of them are the first of `from`;
/// the last one begins at a multiple of the value's size, as both lengths are multiples.
///
/// # Safety
/// There are so many bytes in both; in `from` only those of a piece where it fills. They do not overlap.
#[inline(always)]
unsafe fn pieces<const FILLS: bool>(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: as the caller promises: no piece is longer than `count`.
    unsafe {
        match count {
            LONG.. if !FILLS => to.copy_from_nonoverlapping(from, count),
            PIECE.. => {
                for at in (0..count - PIECE).step_by(PIECE) {
                    piece::<PIECE, FILLS>(from, to, at);
                }
                piece::<PIECE, FILLS>(from, to, count - PIECE);
            }
            32.. => ends::<32, FILLS>(from, to, count),
            16.. => ends::<16, FILLS>(from, to, count),
            8.. => ends::<8, FILLS>(from, to, count),
            4.. => ends::<4, FILLS>(from, to, count),
            2.. => ends::<2, FILLS>(from, to, count),
            1 => piece::<1, FILLS>(from, to, 0),
            0 => {}
        }
    }
}

/// The first `N` bytes and the last `N`.
///
/// # Safety
/// As of `pieces`, with at least `N`.
#[inline(always)]
unsafe fn ends<const N: usize, const FILLS: bool>(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: as the caller promises.
    unsafe {
        piece::<N, FILLS>(from, to, 0);
        piece::<N, FILLS>(from, to, count - N);
    }
}

/// `N` bytes from `at` on.
///
/// # Safety
/// As of `pieces`, with at least `at + N`.
#[inline(always)]
unsafe fn piece<const N: usize, const FILLS: bool>(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: as the caller promises; arrays of bytes have no alignment.
    unsafe {
        let from = if FILLS { from } else { from.add(at) };
        to.add(at).cast::<[u8; N]>().write(from.cast::<[u8; N]>().read());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::simd::widest;

    /// Rows of all lengths of parts, against the definition.
    #[test]
    fn parts_lie_between_fill_values() {
        let input: Vec<u8> = (0..3 * LONG + 7).map(|i| (i % 251) as u8).collect();
        for size in [1, 2, 4, 8, 16] {
            let fill: [u8; PIECE] = std::array::from_fn(|i| 1 + (i % size) as u8);
            let lengths = (0..20).chain([31, 32, 33, 63, 64, 65, 100, 129, LONG - 1, LONG, LONG + 1]);
            for (k, length) in lengths.enumerate() {
                for before in [0, 1, 3, k] {
                    let (before, length, after) =
                        (before * size, length.min(LONG / size + 1) * size, k / 3 * size);
                    let row = before + length + after;
                    let starts = [Some(0), None, Some(LONG), Some(5)];
                    let mut output = vec![0; row * starts.len()];
                    let out = &mut output[..];
                    let starts = starts.into_iter();
                    widest(PaddedRows {
                        input: &input,
                        output: out,
                        row,
                        starts: starts.clone(),
                        before,
                        length,
                        fill,
                    });
                    let filled = |count: usize| fill.into_iter().cycle().take(count);
                    let want = starts.flat_map(|start| -> Vec<u8> {
                        match start {
                            Some(at) => {
                                let part = input[at..at + length].iter().copied();
                                filled(before).chain(part).chain(filled(after)).collect()
                            }
                            None => filled(row).collect(),
                        }
                    });
                    assert!(
                        output.iter().copied().eq(want),
                        "{before} {length} {after} bytes, values of {size}"
                    );
                }
            }
        }
    }
}
