//! The machine's widest vectors for plain loops.
//!
//! The library is compiled for the oldest processor of an architecture. A loop that runs through
//! [`widest`] is compiled once more for each instruction set that rten-simd knows, and the one the
//! machine has is chosen when it runs.

use crate::isa::Dispatch;
use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

/// A loop to be compiled for several instruction sets. `run` and what it calls in its inner loop
/// must be `#[inline(always)]` (or closures small enough to be inlined), else it is compiled for the
/// oldest processor only.
pub(crate) trait Loop {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs a loop, compiled for the best instruction set of this machine. Debug builds compile it once,
/// for the oldest: what it computes is the same.
#[cfg(not(debug_assertions))]
pub(crate) fn widest<L: Loop>(body: L) -> L::Output {
    Vectorised(body).widest()
}

#[cfg(debug_assertions)]
pub(crate) fn widest<L: Loop>(body: L) -> L::Output {
    body.run()
}

/// Runs a loop, compiled for several instruction sets only where that is worth its code: for the
/// types that models compute in.
#[inline(always)]
pub(crate) fn run<L: Loop, const WIDE: bool>(body: L) -> L::Output {
    if WIDE { widest(body) } else { body.run() }
}

#[cfg(not(debug_assertions))]
struct Vectorised<L>(L);

#[cfg(not(debug_assertions))]
impl<L: Loop> SimdOp for Vectorised<L> {
    type Output = L::Output;

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) -> L::Output {
        self.0.run()
    }
}

/// Copies the last one of each `S` elements, `N` of them, which compiles to shuffles of vectors: as nothing after the last one
/// is read, they may be a buffer's last.
#[inline(always)]
pub(crate) fn last_of_each<const S: usize, const N: usize>(from: &[f32], to: &mut [f32]) {
    let (from, to) = (&from[..S * N], &mut to[..N]);
    for i in 0..N {
        to[i] = from[S * i + S - 1];
    }
}

/// Writes a function of every `stride`-th word, for loops that are compiled for the machine's vectors already.
#[inline(always)]
pub(crate) fn every(words: &[u32], stride: usize, out: &mut [u32], f: impl Fn(u32) -> u32) {
    match stride {
        1 => {
            for (y, x) in out.iter_mut().zip(words) {
                *y = f(*x);
            }
        }
        2 => {
            // Pairs are loaded as vectors, single words at a stride are not.
            let (pairs, rest) = words.as_chunks::<2>();
            let (whole, end) = out.split_at_mut(pairs.len().min(out.len()));
            for (y, pair) in whole.iter_mut().zip(pairs) {
                *y = f(pair[0]);
            }
            for (y, x) in end.iter_mut().zip(rest) {
                *y = f(*x);
            }
        }
        _ => {
            for (y, x) in out.iter_mut().zip(words.iter().step_by(stride)) {
                *y = f(*x);
            }
        }
    }
}

/// Adds equally many numbers.
pub(crate) fn add<T: Copy + std::ops::Add<Output = T>>(y: &mut [T], x: &[T]) {
    widest(Add(y, x));
}

struct Add<'a, T>(&'a mut [T], &'a [T]);

impl<T: Copy + std::ops::Add<Output = T>> Loop for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().zip(self.1).for_each(|(y, &x)| *y = *y + x);
    }
}

/// Floats in the longest vector of any machine.
pub(crate) const LONGEST: usize = 16;

/// Floats in a vector of this machine.
pub(crate) fn vector_len() -> usize {
    struct Len;
    impl SimdOp for Len {
        type Output = usize;
        #[inline(always)]
        fn eval<I: Isa>(self, isa: I) -> usize {
            isa.f32().len()
        }
    }
    Len.widest()
}
