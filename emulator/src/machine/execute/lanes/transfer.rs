//! Loads and stores of all lanes.

use std::marker::PhantomData;

use crate::isa::{Instruction, Operand};
use crate::machine::execute::operands::vector;
use crate::machine::fault::Fault;
use crate::machine::group::{AccessKind, Group};
use crate::machine::native::{Work, action};
use crate::machine::step::Action;
use crate::machine::wave::{Wave, lanes_of};

use super::element::{Load, LoadBuilder, Store, StoreBuilder};
use super::{Place, Placed, Places, Want};

/// Builds the action that loads elements into registers.
pub struct Loading<'a, P, const LANES: usize> {
    pub instruction: &'a Instruction,
    pub place: P,
    pub to: Operand,
}

impl<P: Place, const LANES: usize> LoadBuilder for Loading<'_, P, LANES> {
    type Output = Result<Action, Box<Fault>>;

    fn build<K: Load>(self) -> Result<Action, Box<Fault>> {
        let to = vector(self.instruction, self.to, K::REGISTERS)?;
        Ok(action(LoadWork::<K, P, LANES> { place: self.place, to, kind: PhantomData }))
    }
}

/// Builds the action that stores registers.
pub struct Storing<'a, P, const LANES: usize> {
    pub instruction: &'a Instruction,
    pub place: P,
    pub from: Operand,
}

impl<P: Place, const LANES: usize> StoreBuilder for Storing<'_, P, LANES> {
    type Output = Result<Action, Box<Fault>>;

    fn build<K: Store>(self) -> Result<Action, Box<Fault>> {
        let from = vector(self.instruction, self.from, K::REGISTERS)?;
        Ok(action(StoreWork::<K, P, LANES> { place: self.place, from, kind: PhantomData }))
    }
}

struct LoadWork<K, P, const LANES: usize> {
    place: P,
    to: usize,
    kind: PhantomData<K>,
}

/// What a lane loads that lies outside of its buffer.
static ZEROS: [u8; 16] = [0; 16];

impl<K: Load, P: Place, const LANES: usize> Work for LoadWork<K, P, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        let exec = wave.exec();
        if exec == 0 {
            return Ok(());
        }
        if let Some(near) = self.place.near::<LANES>(wave, group, K::BYTES) {
            // SAFETY: the place checked all lanes.
            unsafe { near.load::<K>(&mut wave.vector.rows_mut()[self.to..][..K::REGISTERS]) };
            return Ok(());
        }
        let want = Want { bytes: K::BYTES, kind: AccessKind::Load };
        let Placed { mut places, mask } = self.place.place::<LANES>(wave, group, want)?;
        if mask != exec
            && let Places::Each(pointers) = &mut places
        {
            for lane in lanes_of(exec & !mask) {
                pointers[lane] = ZEROS.as_ptr().cast_mut();
            }
        }
        // SAFETY: the place checked its lanes, and there are as many zeros as the largest element has bytes.
        unsafe { load::<K, LANES>(wave.vector.rows_mut(), self.to, &places, exec) };
        Ok(())
    }
}

struct StoreWork<K, P, const LANES: usize> {
    place: P,
    from: usize,
    kind: PhantomData<K>,
}

impl<K: Store, P: Place, const LANES: usize> Work for StoreWork<K, P, LANES> {
    #[inline(always)]
    fn run(&self, wave: &mut Wave, group: &mut Group<'_>) -> Result<(), Box<Fault>> {
        if wave.exec() == 0 {
            return Ok(());
        }
        if let Some(near) = self.place.near::<LANES>(wave, group, K::BYTES) {
            // SAFETY: the place checked all lanes.
            unsafe { near.store::<K>(&wave.vector.rows()[self.from..][..K::REGISTERS]) };
            return Ok(());
        }
        let want = Want { bytes: K::BYTES, kind: AccessKind::Store };
        let Placed { places, mask } = self.place.place::<LANES>(wave, group, want)?;
        // SAFETY: the place checked its lanes.
        unsafe { store::<K, LANES>(wave.vector.rows(), self.from, &places, mask) };
        Ok(())
    }
}

/// Loads the elements of the lanes in `mask` into the registers from `to` on.
///
/// # Safety
///
/// The places of those lanes lead to `K::BYTES` bytes that can be read.
#[inline(always)]
pub unsafe fn load<K: Load, const LANES: usize>(
    rows: &mut [[u32; LANES]],
    to: usize,
    from: &Places<LANES>,
    mask: u64,
) {
    for (register, row) in rows[to..to + K::REGISTERS].iter_mut().enumerate() {
        // The row is copied, so that the compiler knows that memory is not in it.
        let mut values = *row;
        match from {
            Places::Run(first) => {
                for (lane, value) in values.iter_mut().enumerate() {
                    // SAFETY: the caller's promise for this lane.
                    *value = unsafe { K::read(first.add(lane * K::BYTES), register, *value) };
                }
            }
            Places::Each(pointers) => {
                for lane in lanes_of(mask) {
                    // SAFETY: the caller's promise.
                    values[lane] = unsafe { K::read(pointers[lane], register, values[lane]) };
                }
            }
        }
        *row = values;
    }
}

/// Stores the registers from `from` on as elements of the lanes in `mask`.
///
/// # Safety
///
/// The places of those lanes lead to `K::BYTES` bytes that can be written.
#[inline(always)]
pub unsafe fn store<K: Store, const LANES: usize>(
    rows: &[[u32; LANES]],
    from: usize,
    to: &Places<LANES>,
    mask: u64,
) {
    for (register, row) in rows[from..from + K::REGISTERS].iter().enumerate() {
        let values = *row;
        match to {
            Places::Run(first) => {
                for (lane, &value) in values.iter().enumerate() {
                    // SAFETY: the caller's promise for this lane.
                    unsafe { K::write(first.add(lane * K::BYTES), register, value) };
                }
            }
            Places::Each(pointers) => {
                for lane in lanes_of(mask) {
                    // SAFETY: the caller's promise.
                    unsafe { K::write(pointers[lane], register, values[lane]) };
                }
            }
        }
    }
}
