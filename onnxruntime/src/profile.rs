//! The file that a profiled session writes.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use ort_sys::OrtErrorCode::ORT_FAIL;
use rukh_sys::*;

use crate::failure::{Failure, Result};
use crate::handle::c_string;
use crate::library::{self, Own};

/// What is known of a profile before and after its file is written.
pub struct Profile {
    prefix: String,
    start: SystemTime,
    written: Mutex<Option<CString>>,
}

impl Profile {
    pub fn new(prefix: &str) -> Profile {
        Profile { prefix: prefix.to_owned(), start: SystemTime::now(), written: Mutex::new(None) }
    }

    /// Nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        self.start.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }

    /// Writes the file, and tells its name; the second time the name alone.
    pub fn end(&self, session: &Own<rukh_session>) -> Result<CString> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = &*written {
            return Ok(name.clone());
        }
        let trace = library::bytes(|buf, cap, needed, error| {
            // SAFETY: live handle, a buffer of `cap` bytes, a place for the number.
            unsafe { rukh_session_profile(session.pointer(), buf, cap, needed, error) }
        })?;
        let name = format!("{}_{}.json", self.prefix, self.stamp());
        std::fs::write(&name, trace).map_err(|error| {
            Failure::new(ORT_FAIL, format!("the profile cannot be written to \"{name}\": {error}"))
        })?;
        let name = c_string(&name);
        *written = Some(name.clone());
        Ok(name)
    }

    /// Date and time of the start in UTC: `2026-01-31_13-05-59`, and microseconds, so that two sessions do not share a
    /// file.
    fn stamp(&self) -> String {
        let micros = self.start() / 1000;
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{year:04}-{month:02}-{day:02}_{hour:02}-{minute:02}-{second:02}-{micros:06}")
    }
}

/// Year, month and day of a day after 1970-01-01, of the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    let (mut year, mut days) = (1970, days);
    loop {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        if days < 365 + u64::from(leap) {
            let lengths = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let mut month = 0;
            while days >= lengths[month] {
                days -= lengths[month];
                month += 1;
            }
            return (year, month as u64 + 1, days + 1);
        }
        days -= 365 + u64::from(leap);
        year += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates() {
        // Days as `date -u -d DATE +%s` tells them, divided by 86400.
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (20_782, (2026, 11, 25)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }
}
