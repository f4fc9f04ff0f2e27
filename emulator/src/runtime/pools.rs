//! Memory pools. There is one; it keeps nothing back.

use super::call::{Failure, Handle, Out, call, put};
use super::errors::HipError;

const POOL: Handle = 0x6d68_0000_0000_0010;

/// `hipMemPoolAttr`: the first three are numbers of 32 bits, the others of 64.
const ATTRIBUTES: std::ops::RangeInclusive<i32> = 1..=8;
const LAST_OF_32_BITS: i32 = 3;

fn check(pool: Handle) -> Result<(), Failure> {
    if pool == POOL { Ok(()) } else { Err(Failure::invalid(format!("{pool:#x} is no memory pool"))) }
}

fn check_attribute(attribute: i32) -> Result<(), Failure> {
    if ATTRIBUTES.contains(&attribute) {
        return Ok(());
    }
    Err(Failure::invalid(format!("attribute {attribute} of a memory pool, allowed are {ATTRIBUTES:?}")))
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetDefaultMemPool(pool: Out<'_, Handle>, device: i32) -> HipError {
    call("hipDeviceGetDefaultMemPool", format_args!("{device}"), |runtime| {
        runtime.device(device)?;
        put(pool, POOL, "pool")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipDeviceGetMemPool(pool: Out<'_, Handle>, device: i32) -> HipError {
    call("hipDeviceGetMemPool", format_args!("{device}"), |runtime| {
        runtime.device(device)?;
        put(pool, POOL, "pool")
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemPoolSetAttribute(pool: Handle, attribute: i32, _value: u64) -> HipError {
    call("hipMemPoolSetAttribute", format_args!("{pool:#x}, {attribute}"), |_| {
        check(pool)?;
        check_attribute(attribute)
    })
}

/// # Safety
///
/// `value` is null or has room for the attribute's type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemPoolGetAttribute(pool: Handle, attribute: i32, value: *mut u8) -> HipError {
    call("hipMemPoolGetAttribute", format_args!("{pool:#x}, {attribute}"), |_| {
        check(pool)?;
        check_attribute(attribute)?;
        if value.is_null() {
            return Err(super::call::null("value"));
        }
        let size = if attribute <= LAST_OF_32_BITS { 4 } else { 8 };
        // SAFETY: by this function's contract.
        unsafe { value.write_bytes(0, size) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn hipMemPoolTrimTo(pool: Handle, keep: usize) -> HipError {
    call("hipMemPoolTrimTo", format_args!("{pool:#x}, {keep}"), |_| check(pool))
}
