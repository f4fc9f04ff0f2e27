//! What HIP keeps for each thread of the program.

use std::cell::Cell;

use super::errors::HipError;

thread_local! {
    static LAST_ERROR: Cell<HipError> = const { Cell::new(HipError::SUCCESS) };
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static CAPTURE_MODE: Cell<i32> = const { Cell::new(0) };
    /// How often a query was answered with "not ready" (see [`poll`]).
    static POLLS: Cell<u32> = const { Cell::new(0) };
}

pub fn last_error() -> HipError {
    LAST_ERROR.get()
}

pub fn take_last_error() -> HipError {
    LAST_ERROR.replace(HipError::SUCCESS)
}

pub fn set_last_error(error: HipError) {
    LAST_ERROR.set(error);
}

pub fn device() -> i32 {
    DEVICE.get()
}

pub fn set_device(device: i32) {
    DEVICE.set(device);
}

/// What `hipThreadExchangeStreamCaptureMode` set: how the thread's own calls are judged during a capture.
pub fn capture_mode() -> i32 {
    CAPTURE_MODE.get()
}

pub fn set_capture_mode(mode: i32) {
    CAPTURE_MODE.set(mode);
}

/// Whether a query of deferred work shall do it now. Three of four are answered with "not ready", so that a program
/// that does not ask again is noticed, and one that asks in a loop comes to an end.
pub fn poll() -> bool {
    let count = POLLS.get().wrapping_add(1);
    POLLS.set(count);
    count.is_multiple_of(4)
}
