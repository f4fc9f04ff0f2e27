//! Memory for weights that kernels packed: parts of larger pieces, which the system can back with large pages.
//!
//! A piece is given back when all its parts are; sessions that were made on one thread may share it.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use crate::provider::packs::Pack;
use crate::tensor::{ALIGNMENT, Buffer, Element};

/// Bytes of a piece. A quarter of that, or more, gets memory of its own.
const PIECE: usize = 8 << 20;

thread_local! {
    /// The piece that this thread takes parts of while anybody has some, and how much of it is taken.
    static SHARED: RefCell<(Weak<Buffer>, usize)> = const { RefCell::new((Weak::new(), 0)) };
}

/// Elements that do not change any more.
pub(crate) struct Weights<T> {
    piece: Arc<Buffer>,
    /// The first byte, and the number of elements.
    start: usize,
    len: usize,
    _element: PhantomData<T>,
}

impl<T: Element> Weights<T> {
    /// `len` elements, written by `fill` in the place of zeros. Panics when the host has no memory left.
    pub(crate) fn filled(len: usize, fill: impl FnOnce(&mut [T])) -> Self {
        let (piece, start) = take(len * size_of::<T>());
        // SAFETY: nobody else has this part of the piece yet; it is aligned to 64, and its zeros are elements.
        fill(unsafe { std::slice::from_raw_parts_mut(piece.as_ptr().add(start).cast::<T>(), len) });
        Weights { piece, start, len, _element: PhantomData }
    }

    /// What was packed before; `None` where it does not lie as elements must.
    pub(crate) fn kept(pack: &Pack) -> Option<Self> {
        if pack.len == 0 {
            // Nothing lies anywhere.
            return Some(Self::filled(0, |_| {}));
        }
        let bytes = pack.bytes();
        let fits = bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) && pack.len.is_multiple_of(size_of::<T>());
        let (piece, start) = (pack.buffer.clone(), pack.start);
        fits.then(|| Weights { piece, start, len: pack.len / size_of::<T>(), _element: PhantomData })
    }

    pub(crate) fn pack(&self) -> Pack {
        let len = self.len * size_of::<T>();
        Pack { buffer: self.piece.clone(), start: self.start, len, width: size_of::<T>() }
    }
}

impl<T: Element> Deref for Weights<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: as in `filled` and `kept`, every bit pattern being an element; nobody writes any more.
        unsafe { std::slice::from_raw_parts(self.piece.as_ptr().add(self.start).cast(), self.len) }
    }
}

/// A piece of zeros, and where a part of it begins that nobody had before, aligned to [`ALIGNMENT`].
fn take(bytes: usize) -> (Arc<Buffer>, usize) {
    let new = |bytes: usize| Arc::new(Buffer::zeroed(bytes).unwrap_or_else(|e| panic!("{e}")));
    if bytes == 0 || bytes >= PIECE / 4 {
        return (new(bytes), 0);
    }
    SHARED.with_borrow_mut(|(shared, used)| {
        let piece = shared.upgrade().filter(|piece| *used + bytes <= piece.len()).unwrap_or_else(|| {
            let piece = new(PIECE);
            (*shared, *used) = (Arc::downgrade(&piece), 0);
            piece
        });
        let start = *used;
        *used = (start + bytes).next_multiple_of(ALIGNMENT);
        (piece, start)
    })
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
