//! The exported functions, called as a C program would.

mod capture;
mod checks;
mod counts;
mod deferred;
mod devices;
mod errors;
mod external;
mod graphs;
mod kernels;
mod objects;
mod options;
mod translated;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Runtime;
use super::call::{Address, Handle, Out};
use super::copies::{hipMemcpy, hipMemcpyAsync};
use super::errors::HipError;
use super::events::hipEventCreate;
use super::instance::for_tests;
use super::memory::hipMalloc;
use super::options::Options;
use super::streams::api::{hipStreamCreateWithFlags, hipStreamSynchronize};

const TO_DEVICE: i32 = 1;
const TO_HOST: i32 = 2;
const ON_DEVICE: i32 = 3;
const NON_BLOCKING: u32 = 1;

/// A runtime of this test's own. It takes little of the host's address space.
fn start(change: impl FnOnce(&mut Options)) -> &'static Runtime {
    let mut options = Options::default();
    options.memory.limit = 1 << 30;
    options.memory.address_space = 1 << 34;
    change(&mut options);
    for_tests::create(options)
}

/// What a function writes through its first pointer.
fn get<T>(function: impl FnOnce(Out<'_, T>) -> HipError) -> Result<T, HipError> {
    let mut place = MaybeUninit::uninit();
    match function(Some(&mut place)) {
        // SAFETY: a function that succeeds has written its result.
        HipError::SUCCESS => Ok(unsafe { place.assume_init() }),
        error => Err(error),
    }
}

fn ok(error: HipError) {
    assert_eq!(error, HipError::SUCCESS, "{}", error.name());
}

fn stream(flags: u32) -> Handle {
    get(|out| hipStreamCreateWithFlags(out, flags)).expect("a stream")
}

fn event() -> Handle {
    get(|out| hipEventCreate(out)).expect("an event")
}

/// Device memory with values.
fn buffer(values: &[u32]) -> Address {
    let address = get(|out| hipMalloc(out, size_of_val(values))).expect("memory");
    write(address, values);
    address
}

fn write(address: Address, values: &[u32]) {
    ok(hipMemcpy(address, values.as_ptr() as Address, size_of_val(values), TO_DEVICE));
}

fn read(address: Address, count: usize) -> Vec<u32> {
    let mut values = vec![0; count];
    ok(hipMemcpy(values.as_mut_ptr() as Address, address, count * 4, TO_HOST));
    values
}

/// A copy on the device, in a stream.
fn copy(to: Address, from: Address, count: usize, stream: Handle) -> HipError {
    hipMemcpyAsync(to, from, count * 4, ON_DEVICE, stream)
}

fn synchronize(stream: Handle) {
    ok(hipStreamSynchronize(stream));
}

/// Calls a function in another thread of the same program.
fn in_other_thread<T: Send>(runtime: &'static Runtime, function: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            for_tests::adopt(runtime);
            function()
        });
        thread.join().expect("the thread ends")
    })
}

/// A host function that counts its calls.
unsafe extern "C" fn count(counter: *mut c_void) {
    // SAFETY: the tests give a counter that lives long enough.
    unsafe { &*counter.cast::<AtomicU64>() }.fetch_add(1, Ordering::Relaxed);
}

fn pointer(counter: &AtomicU64) -> *mut c_void {
    std::ptr::from_ref(counter).cast_mut().cast()
}
