//! Atomic operations of all lanes, one lane after the other.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::machine::fault::Fault;
use crate::machine::group::{AccessKind, Group};
use crate::machine::registers::Registers;
use crate::machine::step::Action;
use crate::machine::wave::{Wave, lanes_of};

use super::operation::Apply;
use super::{Place, Want};

/// The registers of an atomic operation.
#[derive(Clone, Copy)]
pub struct Operands {
    pub data: usize,
    pub second: Option<usize>,
    /// Where the value before goes.
    pub returned: Option<usize>,
}

/// The action of an operation on values of type `T`.
pub fn action<T: Word, P: Place, const LANES: usize>(
    place: P,
    operands: Operands,
    apply: Apply<T>,
) -> Action {
    Box::new(move |wave, group| run::<T, P, LANES>(&place, operands, apply, wave, group))
}

fn run<T: Word, P: Place, const LANES: usize>(
    place: &P,
    operands: Operands,
    apply: Apply<T>,
    wave: &mut Wave,
    group: &mut Group<'_>,
) -> Result<(), Box<Fault>> {
    let exec = wave.exec();
    if exec == 0 {
        return Ok(());
    }
    let want = Want { bytes: size_of::<T>(), kind: AccessKind::Atomic };
    let placed = place.place::<LANES>(wave, group, want)?;
    for lane in lanes_of(exec) {
        let old = if placed.mask >> lane & 1 == 0 {
            T::default()
        } else {
            let data = T::get(&wave.vector, operands.data, lane);
            let second = operands.second.map_or(data, |second| T::get(&wave.vector, second, lane));
            let pointer = placed.places.pointer(lane, want.bytes);
            if P::SHARED {
                if !pointer.addr().is_multiple_of(size_of::<T>()) {
                    return Err(Fault::address(format!(
                        "memory at a misaligned address of the host, lane {lane}"
                    )));
                }
                // SAFETY: the place checked that the bytes are there, they are aligned, and other waves use them
                // by atomic operations, or it is the kernel's mistake.
                unsafe { T::exchange(pointer, |old| apply(old, data, second)) }
            } else {
                // SAFETY: the place checked that the bytes are there.
                unsafe { T::replace(pointer, |old| apply(old, data, second)) }
            }
        };
        if let Some(returned) = operands.returned {
            T::set(&mut wave.vector, returned, lane, old);
        }
    }
    Ok(())
}

/// Values that atomic operations work on.
pub trait Word: Copy + Default + Send + Sync + 'static {
    fn get(registers: &Registers, register: usize, lane: usize) -> Self;
    fn set(registers: &mut Registers, register: usize, lane: usize, value: Self);

    /// Changes the value atomically and returns the one before.
    ///
    /// # Safety
    ///
    /// The value at `pointer` can be read and written, is aligned, and other threads change it atomically only.
    unsafe fn exchange(pointer: *mut u8, change: impl Fn(Self) -> Self) -> Self;

    /// Changes a value that no other thread uses and returns the one before.
    ///
    /// # Safety
    ///
    /// The value at `pointer` can be read and written.
    unsafe fn replace(pointer: *mut u8, change: impl Fn(Self) -> Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let old = pointer.cast::<Self>().read_unaligned();
            pointer.cast::<Self>().write_unaligned(change(old));
            old
        }
    }
}

impl Word for u32 {
    fn get(registers: &Registers, register: usize, lane: usize) -> u32 {
        registers.get(register, lane)
    }

    fn set(registers: &mut Registers, register: usize, lane: usize, value: u32) {
        registers.set(register, lane, value);
    }

    unsafe fn exchange(pointer: *mut u8, change: impl Fn(u32) -> u32) -> u32 {
        // SAFETY: the caller's promise.
        let atomic = unsafe { AtomicU32::from_ptr(pointer.cast()) };
        let mut old = atomic.load(Ordering::SeqCst);
        while let Err(now) = atomic.compare_exchange(old, change(old), Ordering::SeqCst, Ordering::SeqCst) {
            old = now;
        }
        old
    }
}

impl Word for u64 {
    fn get(registers: &Registers, register: usize, lane: usize) -> u64 {
        registers.get64(register, lane)
    }

    fn set(registers: &mut Registers, register: usize, lane: usize, value: u64) {
        registers.set64(register, lane, value);
    }

    unsafe fn exchange(pointer: *mut u8, change: impl Fn(u64) -> u64) -> u64 {
        // SAFETY: the caller's promise.
        let atomic = unsafe { AtomicU64::from_ptr(pointer.cast()) };
        let mut old = atomic.load(Ordering::SeqCst);
        while let Err(now) = atomic.compare_exchange(old, change(old), Ordering::SeqCst, Ordering::SeqCst) {
            old = now;
        }
        old
    }
}
