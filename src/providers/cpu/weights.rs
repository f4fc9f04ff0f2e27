//! Memory for weights that kernels packed: parts of larger pieces, which the system can back with large pages.
//!
//! A piece is given back when all its parts are; other sessions may have some of them.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

use crate::tensor::{ALIGNMENT, Buffer, Element};

/// Bytes of a piece. A quarter of that, or more, gets memory of its own.
const PIECE: usize = 8 << 20;

/// The piece that parts are taken of, and how much of it is.
static PIECES: Mutex<Option<(Buffer, usize)>> = Mutex::new(None);

/// Elements that do not change any more.
pub(super) struct Weights<T> {
    piece: Buffer,
    /// The first byte, and the number of elements.
    start: usize,
    len: usize,
    _element: PhantomData<T>,
}

impl<T: Element> Weights<T> {
    /// `len` elements, written by `fill` in the place of zeros. Panics when the host has no memory left.
    pub(super) fn filled(len: usize, fill: impl FnOnce(&mut [T])) -> Self {
        let (piece, start) = take(len * size_of::<T>());
        // SAFETY: nobody else has this part of the piece yet; it is aligned to 64, and zero is an element.
        fill(unsafe {
            let part = piece.as_ptr().add(start).cast::<T>();
            part.write_bytes(0, len);
            std::slice::from_raw_parts_mut(part, len)
        });
        Weights { piece, start, len, _element: PhantomData }
    }
}

impl<T: Element> Deref for Weights<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as in `filled`; nobody writes any more.
        unsafe { std::slice::from_raw_parts(self.piece.as_ptr().add(self.start).cast(), self.len) }
    }
}

/// A piece, and where a part of it begins that nobody else has, aligned to [`ALIGNMENT`].
fn take(bytes: usize) -> (Buffer, usize) {
    let new = |bytes: usize| Buffer::unwritten(bytes).unwrap_or_else(|e| panic!("{e}"));
    if bytes == 0 || bytes >= PIECE / 4 {
        return (new(bytes), 0);
    }
    let mut pieces = PIECES.lock().unwrap_or_else(PoisonError::into_inner);
    let (piece, used) = match pieces.take() {
        Some((piece, used)) if used + bytes <= piece.len() => (piece, used),
        _ => (new(PIECE), 0),
    };
    *pieces = Some((piece.clone(), (used + bytes).next_multiple_of(ALIGNMENT)));
    (piece, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_aligned_and_large_ones_alone() {
        let lengths = [3, 0, 1000, PIECE / 8, PIECE / 8, PIECE / 16, PIECE];
        let weights = lengths.map(|len| {
            Weights::<f32>::filled(len, |part| {
                assert!(part.iter().all(|&x| x == 0.0));
                part.fill(len as f32);
            })
        });
        for (weights, len) in weights.iter().zip(lengths) {
            assert!(weights.len() == len && weights.iter().all(|&x| x == len as f32));
            assert!(weights.as_ptr().addr().is_multiple_of(ALIGNMENT) || len == 0);
        }
    }
}
