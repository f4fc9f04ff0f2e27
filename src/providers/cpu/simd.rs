//! The machine's widest vectors for plain loops.
//!
//! The library is compiled for the oldest processor of an architecture. A loop that runs through
//! [`widest`] is compiled once more for each instruction set that rten-simd knows, and the one the
//! machine has is chosen when it runs.

use rten_simd::{Isa, SimdOp};

/// A loop to be compiled for several instruction sets. `run` and what it calls in its inner loop
/// must be `#[inline(always)]` (or closures small enough to be inlined), else it is compiled for the
/// oldest processor only.
pub(super) trait Loop {
    type Output;
    fn run(self) -> Self::Output;
}

/// Runs a loop, compiled for the best instruction set of this machine.
pub(super) fn widest<L: Loop>(body: L) -> L::Output {
    Vectorised(body).dispatch()
}

struct Vectorised<L>(L);

impl<L: Loop> SimdOp for Vectorised<L> {
    type Output = L::Output;

    #[inline(always)]
    fn eval<I: Isa>(self, _isa: I) -> L::Output {
        self.0.run()
    }
}
