//! Loads and stores without a call, where the elements lie as they usually do.
//!
//! The first instruction that uses a register of addresses looks how the elements lie, and leaves a [`Place`] for those behind
//! it. Each asks whether the place has room for its offset. Where it has not, and where elements lie otherwise, the
//! instruction is called as any other.

mod learn;
mod loads;
mod place;
mod ranges;
mod scalars;
mod stores;

use super::assembler::Label;
use super::emitter::Emitter;
use super::memory::{Access, Kind};

pub use place::{KnownPlaces, Place, shape_memory};
pub use ranges::finish_range_finder;

/// Makes the code, if there is any for the access; where it jumps to for the instruction to be called.
pub fn emit(e: &mut Emitter, access: &Access) -> Option<Label> {
    match access.kind {
        Kind::LoadScalars => scalars::load(e, access),
        // Where not all lanes take part larger elements are rare.
        _ if e.masked && access.words != 1 => None,
        Kind::LoadLds | Kind::LoadGlobal => loads::load(e, access),
        Kind::StoreLds | Kind::StoreGlobal => stores::store(e, access),
    }
}
