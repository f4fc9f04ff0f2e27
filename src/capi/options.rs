//! What options handles have in common: keys and values of text.

use std::ffi::c_char;

use super::args;
use crate::error::{Result, fail};

/// Options that are also keys and values of text.
pub(super) trait TextOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<()>;

    /// Every option, in a form that `set` takes.
    fn entries(&self) -> Vec<(String, String)>;
}

pub(super) fn set(options: &mut impl TextOptions, key: *const c_char, value: *const c_char) -> Result<()> {
    options.set(args::text(key, "key")?, args::text(value, "value")?)
}

pub(super) fn get(
    options: &impl TextOptions,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> Result<()> {
    value_of(&options.entries(), args::text(key, "key")?, buf, cap, needed)
}

pub(super) fn key(
    options: &impl TextOptions,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> Result<()> {
    let entries = options.entries();
    args::put_text(&args::item(&entries, index, "option")?.0, buf, cap, needed)
}

/// The value of `key` among `entries`, or an error that lists the keys.
pub(super) fn value_of(
    entries: &[(String, String)],
    key: &str,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
) -> Result<()> {
    match entries.iter().find(|(k, _)| k == key) {
        Some((_, value)) => args::put_text(value, buf, cap, needed),
        None => {
            let keys: Vec<&str> = entries.iter().map(|(k, _)| k.as_str()).collect();
            fail!(InvalidArgument, "option \"{key}\" is not set; set are {}", keys.join(", "))
        }
    }
}
