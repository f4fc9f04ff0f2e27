//! The memory of devices: statistics, peaks, the cache, snapshots.

use std::ffi::c_char;

use super::args::{self, put_text};
use super::guard::call_on;
use super::types::*;
use crate::error::fail;
use crate::session::ArenaConfig;

/// Makes an arena for a device that sessions of the environment share: those with session option
/// "use_env_allocators" set to 1. Their own arena options then have no effect.
///
/// `environment`: not NULL; owns the arena. `device_id`: as the hip provider's option; one arena for each
/// device. `config`: "key=value;key=value" as the hip provider's `default_memory_arena_cfg`; NULL for the
/// defaults. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or
/// device, or a second arena; `RUKH_ERROR_DEVICE` without a device, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_create_arena(
    environment: *mut rukh_environment,
    device_id: usize,
    config: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let text = if config.is_null() { "" } else { args::text(config, "config")? };
        let config = if text.trim().is_empty() { ArenaConfig::default() } else { ArenaConfig::parse(text)? };
        object.environment.create_device_arena(device_id, &config)
    })
}

/// A statistic of a device's memory by name, summed over the arenas of all sessions of the environment.
///
/// PyTorch's names: "allocated_bytes.all.current" (what sessions hold), "reserved_bytes.all.current" (what
/// the arenas hold), and the same with "peak", "allocated" and "freed" for "current", "large_pool" and
/// "small_pool" for "all"; "num_ooms", "num_alloc_retries", … ONNX Runtime's names: "Limit", "InUse",
/// "TotalAllocated", "MaxInUse", "NumAllocs", … `rukh_environment_memory_statistic_name` lists them. Sizes
/// are in bytes. Peaks of several sessions are added up, which may be more than was there at one time.
///
/// `environment`, `name`, `value`: not NULL. `device_id`: as the hip provider's option. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown name or
/// device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_statistic(
    environment: *const rukh_environment,
    device_id: usize,
    name: *const c_char,
    value: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let name = args::text(name, "name")?;
        let all = object.environment.memory_statistics(device_id)?;
        match all.iter().find(|(known, _)| known == name) {
            Some((_, n)) => args::put(value, "value", *n),
            None => fail!(
                InvalidArgument,
                "memory statistic \"{name}\" is not known; rukh_environment_memory_statistic_name lists the {}",
                all.len()
            ),
        }
    })
}

/// The name of the statistic at `index`.
///
/// `environment`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
/// `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same
/// time. Errors: `RUKH_ERROR_DEVICE` without a device, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_statistic_name(
    environment: *const rukh_environment,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let all = object.environment.memory_statistics(0)?;
        put_text(&args::item(&all, index, "memory statistic")?.0, buf, cap, needed)
    })
}

/// What sessions do with a device's memory, as a table for people: what is allocated, active, requested, reserved and not
/// releasable, by pool, now and at its peak, in the form of PyTorch's `memory_summary`.
///
/// `environment`: not NULL. `device_id`: as the hip provider's option. `buf`, `cap`, `needed`: see "Texts" at the top of
/// this header. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
/// unknown device or a buffer that is too small, `RUKH_ERROR_DEVICE` without a device, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_summary(
    environment: *const rukh_environment,
    device_id: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        put_text(&object.environment.memory_summary(device_id)?, buf, cap, needed)
    })
}

/// Free and total bytes of a device's memory, as its runtime tells: other processes count.
///
/// `environment`, `free`, `total`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_info(
    environment: *const rukh_environment,
    device_id: usize,
    free: *mut u64,
    total: *mut u64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let (has_free, has_total) = object.environment.memory_info(device_id)?;
        args::put(free, "free", has_free)?;
        args::put(total, "total", has_total)
    })
}

/// Lets the peaks of a device's memory start again from what is there now.
///
/// `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
/// an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_reset_peaks(
    environment: *const rukh_environment,
    device_id: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| object.environment.reset_memory_peaks(device_id))
}

/// Gives the device memory that no session uses back to the runtime. Waits for the streams that still use
/// what was freed.
///
/// `environment`: not NULL. `error`: may be NULL. Threads: any, also while sessions run. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_empty_cache(
    environment: *const rukh_environment,
    device_id: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| object.environment.empty_memory_cache(device_id))
}

/// Lets each session that is open now keep the last `events` events of its device memory for snapshots; 0
/// keeps none, as at first.
///
/// `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
/// an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_record_history(
    environment: *const rukh_environment,
    device_id: usize,
    events: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| object.environment.record_memory_history(device_id, events))
}

/// What a device's memory holds, as JSON: an array with an object for each session, which has "segments"
/// with their "blocks", and "device_traces" with the recorded events, by PyTorch's names. Asking changes nothing:
/// the size that one call tells holds for the next, unless memory is taken or given back in between.
///
/// `environment`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device or a
/// buffer that is too small, `RUKH_ERROR_DEVICE`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_memory_snapshot(
    environment: *const rukh_environment,
    device_id: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        put_text(&object.environment.memory_snapshot(device_id)?, buf, cap, needed)
    })
}
