//! The plans of Fourier transforms that an environment keeps for a device.

use super::args;
use super::guard::call_on;
use super::types::*;

/// How many plans of Fourier transforms (DFT, STFT) are kept for a GPU, and how many may be.
///
/// A plan is made when a session first needs a transform of a length, direction and precision, and has the tables that the
/// kernels read. Sessions of the environment share them. When there are more than the limit, 4096 at first, the ones that
/// were not used for longest go; what a session needs stays on the device as long as the session does.
///
/// `environment`, `count`, `limit`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, at
/// the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the
/// handle errors. Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_fourier_plans(
    environment: *const rukh_environment,
    device_id: usize,
    count: *mut usize,
    limit: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        let plans = object.environment.fourier_plans_of(device_id)?;
        args::put(count, "count", plans.count())?;
        args::put(limit, "limit", plans.limit())
    })
}

/// Sets how many plans of Fourier transforms are kept for a GPU. With 0 none is: each session makes its own.
///
/// `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
/// run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_set_fourier_plan_limit(
    environment: *const rukh_environment,
    device_id: usize,
    limit: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        object.environment.fourier_plans_of(device_id)?.set_limit(limit);
        Ok(())
    })
}

/// Lets all plans of Fourier transforms on a GPU go that no session needs.
///
/// `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
/// run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_clear_fourier_plans(
    environment: *const rukh_environment,
    device_id: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |object| {
        object.environment.fourier_plans_of(device_id)?.clear();
        Ok(())
    })
}
