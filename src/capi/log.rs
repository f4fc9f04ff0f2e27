//! The log: who receives messages, and what a message tells of itself.

use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;

use super::args::{self, c_text};
use super::guard::call_on;
use super::handles::{self, Handle, Kind};
use super::locked;
use super::types::*;
use super::user::User;
use crate::error::{Result, fail};
use crate::session::{Level, Log, Record};

type MessageCallback = unsafe extern "C" fn(*mut c_void, rukh_log_level, *const c_char);
type RecordCallback = unsafe extern "C" fn(*const rukh_log_record, *mut c_void);

/// A function of the caller's that receives messages. Clones share `user`.
#[derive(Clone)]
pub(super) struct Listener {
    receiver: Receiver,
    user: Arc<User>,
}

#[derive(Clone, Copy)]
enum Receiver {
    Message(MessageCallback),
    Record(RecordCallback),
}

impl Listener {
    /// A log whose messages of `least` and above the function receives.
    pub(super) fn log(self, least: Level) -> Log {
        Log::new(least, move |record| self.tell(record))
    }

    fn tell(&self, record: &Record<'_>) {
        match self.receiver {
            Receiver::Message(callback) => {
                let message: CString = c_text(record.message);
                // SAFETY: the caller's function with the caller's pointer; the text lives during the call.
                unsafe { callback(self.user.pointer, record.level as rukh_log_level, message.as_ptr()) };
            }
            Receiver::Record(callback) => {
                // Out of memory: there is nobody else to tell.
                let Ok(handle) = handles::insert::<rukh_log_record>(Arc::new(RecordObject::new(record)))
                else {
                    return;
                };
                // SAFETY: the caller's function with the caller's pointer; the handle lives during the call.
                unsafe { callback(handle, self.user.pointer) };
                handles::remove(handle);
            }
        }
    }
}

pub(super) struct RecordObject {
    level: Level,
    /// In the order of `RUKH_LOG_TEXT_…`.
    texts: [CString; 6],
}

impl RecordObject {
    fn new(record: &Record<'_>) -> Self {
        let place = format!("{}:{}", record.location.file(), record.location.line());
        let texts = [record.message, record.category.name(), record.session, record.run, record.node, &place];
        RecordObject { level: record.level, texts: texts.map(c_text) }
    }
}

impl Handle for rukh_log_record {
    type Object = RecordObject;
    const KIND: Kind = Kind::LogRecord;
    const NAME: &'static str = "rukh_log_record";
}

/// The level of a number, which is a caller's.
fn level_of(level: rukh_log_level) -> Result<Level> {
    match Level::from_number(level) {
        Some(level) => Ok(level),
        None => fail!(InvalidArgument, "level: {level} is not known; known are 0 to 3"),
    }
}

fn set_listener(
    options: *mut rukh_environment_options,
    level: rukh_log_level,
    listener: Option<Listener>,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, move |options| {
        let level = level_of(level)?;
        let before = {
            let mut options = locked(options);
            options.level = level;
            std::mem::replace(&mut options.listener, listener)
        };
        // Its release is foreign code, so the lock is gone by now.
        drop(before);
        Ok(())
    })
}

/// Sets who receives log messages of `level` and above. Without a callback nothing is logged, but for one
/// warning that goes to stderr: a wanted GPU is not there and the model runs on the CPU. The environment
/// variable `RUKH_NO_WARNINGS` set to 1 silences it.
///
/// A session (option "log_level") and a run (the same option of its own) may have another level than this one.
///
/// `options`: not NULL. `level`: one of `RUKH_LOG_…`. `callback`: NULL for none. `user`: passed to the
/// callback as it is; may be NULL. `release`: may be NULL; else called once with `user` when these
/// options and all environments and sessions made from them are gone, also when this call fails.
/// `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and
/// the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_options_set_log_callback(
    options: *mut rukh_environment_options,
    level: rukh_log_level,
    callback: rukh_log_record_callback,
    user: *mut c_void,
    release: rukh_release,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = Arc::new(User { pointer: user, release });
    let listener = callback.map(|callback| Listener { receiver: Receiver::Record(callback), user });
    set_listener(options, level, listener, error)
}

/// Deprecated: use `rukh_environment_options_set_log_callback`, whose callback is told more. Of two listeners the one that
/// was set last receives the messages.
///
/// `options`: not NULL. `level`: one of `RUKH_LOG_…`. `callback`: NULL for none. `user`: passed to the
/// callback as it is; may be NULL. `release`: may be NULL; else called once with `user` when these
/// options and all environments and sessions made from them are gone, also when this call fails.
/// `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and
/// the handle errors.
#[unsafe(no_mangle)]
#[deprecated(note = "use rukh_environment_options_set_log_callback")]
pub unsafe extern "C" fn rukh_environment_options_set_log(
    options: *mut rukh_environment_options,
    level: rukh_log_level,
    callback: rukh_log_callback,
    user: *mut c_void,
    release: rukh_release,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = Arc::new(User { pointer: user, release });
    let listener = callback.map(|callback| Listener { receiver: Receiver::Message(callback), user });
    set_listener(options, level, listener, error)
}

/// Changes from which level on messages of an environment and its sessions are received. Sessions and runs that have a level
/// of their own keep it. Without a callback it has no effect.
///
/// `environment`: not NULL. `level`: one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_set_log_level(
    environment: *mut rukh_environment,
    level: rukh_log_level,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |environment| {
        environment.environment.log.set_least(level_of(level)?);
        Ok(())
    })
}

/// How much the message matters.
///
/// `record`: not NULL; valid during the callback that received it, later the call is `RUKH_ERROR_INVALID_HANDLE`. `level`:
/// not NULL; receives one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_log_record_level(
    record: *const rukh_log_record,
    level: *mut rukh_log_level,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(record, error, |record| args::put(level, "level", record.level as rukh_log_level))
}

/// A text of the message; "" where there is nothing to tell.
///
/// `record`: not NULL; valid during the callback that received it. `which`: one of `RUKH_LOG_TEXT_…`. `text`: not NULL; the
/// text is borrowed from the record. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_log_record_text(
    record: *const rukh_log_record,
    which: rukh_log_text,
    text: *mut *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(record, error, |record| match usize::try_from(which).ok().and_then(|i| record.texts.get(i)) {
        Some(found) => args::put(text, "text", found.as_ptr()),
        None => fail!(InvalidArgument, "which: {which} is not known; known are 0 to 5"),
    })
}
