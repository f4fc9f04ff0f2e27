//! Loops of the library on threads of the caller's.

use std::ffi::c_void;
use std::sync::Arc;

use super::guard::call_on;
use super::locked;
use super::types::*;
use super::user::User;
use crate::error::fail;
use crate::threads::ParallelFor;

/// Threads of a pool at most.
pub(super) const MAX_THREADS: usize = 1024;

type Run = unsafe extern "C" fn(usize, rukh_parallel_body, *mut c_void, *mut c_void);

/// The caller's function, and its pointer.
pub(super) struct CallersThreads {
    run: Run,
    user: User,
}

impl ParallelFor for CallersThreads {
    fn run(&self, count: usize, part: &(dyn Fn() + Sync)) {
        let argument = (&raw const part).cast_mut().cast();
        // SAFETY: the caller's function with the caller's pointer. It returns after the last call of `call_part`, so that
        // `part` outlives them all.
        unsafe { (self.run)(count, Some(call_part), argument, self.user.pointer) }
    }
}

/// A part of a loop, as the caller's function calls it.
unsafe extern "C" fn call_part(_index: usize, argument: *mut c_void) {
    // SAFETY: the header demands the argument that `run` gave, during its call.
    let part = unsafe { *argument.cast::<&(dyn Fn() + Sync)>() };
    part();
}

/// Lets the library compute on threads of the caller's, such as those of OpenMP or TBB: the environment then starts none to
/// compute with. Sessions with option "intra_op_threads", "spinning" or "thread_affinities" still have threads of their
/// own, and asynchronous runs are started by threads of the library.
///
/// `options`: not NULL. `callback`: NULL for the library's own threads. `threads`: how many calls of a body may run at
/// the same time, the calling thread's included, 1 to 1024; in place of option "threads". `user`: passed to the callback as
/// it is; may be NULL. `release`: may be NULL; else called once with `user` when these options and all environments and
/// sessions made from them are gone, also when this call fails. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for another number of threads, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_set_parallel_for(
    options: *mut rukh_environment_options,
    callback: rukh_parallel_for,
    threads: usize,
    user: *mut c_void,
    release: rukh_release,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = User { pointer: user, release };
    call_on(options, error, move |options| {
        if callback.is_some() && !(1..=MAX_THREADS).contains(&threads) {
            fail!(InvalidArgument, "threads: {threads} is not allowed; allowed is 1 to {MAX_THREADS}");
        }
        let new = callback.map(|run| (threads, Arc::new(CallersThreads { run, user })));
        let before = std::mem::replace(&mut locked(options).parallel_for, new);
        // Its release is foreign code, so the lock is gone by now.
        drop(before);
        Ok(())
    })
}
