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
use super::{Place, Placed, Pointers, Want, all};

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
        let want = Want { bytes: K::BYTES, kind: AccessKind::Load };
        let Placed { mut pointers, mask } = self.place.place::<LANES>(wave, group, want)?;
        if mask != exec {
            for lane in lanes_of(exec & !mask) {
                pointers[lane] = ZEROS.as_ptr().cast_mut();
            }
        }
        // SAFETY: the place checked its lanes, and there are as many zeros as the largest element has bytes.
        unsafe { load::<K, LANES>(wave.vector.rows_mut(), self.to, &pointers, exec) };
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
        let want = Want { bytes: K::BYTES, kind: AccessKind::Store };
        let Placed { pointers, mask } = self.place.place::<LANES>(wave, group, want)?;
        // SAFETY: the place checked its lanes.
        unsafe { store::<K, LANES>(wave.vector.rows(), self.from, &pointers, mask) };
        Ok(())
    }
}

/// Loads the elements of the lanes in `mask` into the registers from `to` on.
///
/// # Safety
///
/// The pointers of those lanes lead to `K::BYTES` bytes that can be read.
#[inline(always)]
pub unsafe fn load<K: Load, const LANES: usize>(
    rows: &mut [[u32; LANES]],
    to: usize,
    from: &Pointers<LANES>,
    mask: u64,
) {
    let rows = &mut rows[to..to + K::REGISTERS];
    if mask != all::<LANES>() {
        for lane in lanes_of(mask) {
            for (register, row) in rows.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                row[lane] = unsafe { K::read(from[lane], register, row[lane]) };
            }
        }
        return;
    }
    if K::WORDS && K::REGISTERS > 1 {
        // SAFETY: the caller's promise.
        return unsafe { load_words::<K, LANES>(rows, from) };
    }
    let consecutive = are_consecutive(from, K::BYTES);
    for (register, row) in rows.iter_mut().enumerate() {
        // The row is copied, so that the compiler knows that memory is not in it.
        let mut values = *row;
        if consecutive {
            for (lane, value) in values.iter_mut().enumerate() {
                // SAFETY: this is the lane's pointer.
                *value = unsafe { K::read(from[0].add(lane * K::BYTES), register, *value) };
            }
        } else {
            for (value, &from) in values.iter_mut().zip(from) {
                // SAFETY: the caller's promise.
                *value = unsafe { K::read(from, register, *value) };
            }
        }
        *row = values;
    }
}

/// Lanes whose elements are turned into rows together.
const TOGETHER: usize = 4;

/// Loads elements of several words: those of a few lanes at a time, which are then transposed.
///
/// # Safety
///
/// The pointers lead to `K::BYTES` bytes that can be read.
#[inline(always)]
unsafe fn load_words<K: Load, const LANES: usize>(rows: &mut [[u32; LANES]], from: &Pointers<LANES>) {
    for first in (0..LANES).step_by(TOGETHER) {
        let mut words = [[0; 4]; TOGETHER];
        for (lane, words) in words.iter_mut().enumerate() {
            for (register, word) in words.iter_mut().take(K::REGISTERS).enumerate() {
                // SAFETY: the caller's promise.
                *word = unsafe { K::read(from[first + lane], register, 0) };
            }
        }
        for (register, row) in rows.iter_mut().enumerate() {
            let column: [u32; TOGETHER] = std::array::from_fn(|lane| words[lane][register]);
            row[first..first + TOGETHER].copy_from_slice(&column);
        }
    }
}

/// Stores the registers from `from` on as elements of the lanes in `mask`.
///
/// # Safety
///
/// The pointers of those lanes lead to `K::BYTES` bytes that can be written.
#[inline(always)]
pub unsafe fn store<K: Store, const LANES: usize>(
    rows: &[[u32; LANES]],
    from: usize,
    to: &Pointers<LANES>,
    mask: u64,
) {
    let rows = &rows[from..from + K::REGISTERS];
    if mask != all::<LANES>() {
        for lane in lanes_of(mask) {
            for (register, row) in rows.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { K::write(to[lane], register, row[lane]) };
            }
        }
        return;
    }
    let consecutive = are_consecutive(to, K::BYTES);
    for (register, row) in rows.iter().enumerate() {
        let values = *row;
        if consecutive {
            for (lane, &value) in values.iter().enumerate() {
                // SAFETY: this is the lane's pointer.
                unsafe { K::write(to[0].add(lane * K::BYTES), register, value) };
            }
        } else {
            for (&value, &to) in values.iter().zip(to) {
                // SAFETY: the caller's promise.
                unsafe { K::write(to, register, value) };
            }
        }
    }
}

/// Whether each lane's element lies behind that of the lane before.
#[inline(always)]
fn are_consecutive<const LANES: usize>(pointers: &Pointers<LANES>, bytes: usize) -> bool {
    let first = pointers[0].addr();
    let mut different = 0;
    for (lane, pointer) in pointers.iter().enumerate() {
        different |= pointer.addr() ^ first.wrapping_add(lane * bytes);
    }
    different == 0
}
