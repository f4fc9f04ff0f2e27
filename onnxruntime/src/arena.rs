//! `OrtArenaCfg`: how an allocator of device memory grows.

use std::ffi::{c_char, c_int};

use ort_sys::OrtArenaCfg;

use crate::failure::{Failure, api, api_release};
use crate::handle::{array, give, handles, string};

/// Numbers by ONNX Runtime's names. A negative number, or one that is not there, stands for the default.
pub struct ArenaConfig(Vec<(String, i64)>);

handles! { ArenaConfig => OrtArenaCfg; }

const STRATEGY: &str = "arena_extend_strategy";
const NAMES: [&str; 6] = [
    "max_mem",
    STRATEGY,
    "initial_chunk_size_bytes",
    "max_dead_bytes_per_chunk",
    "initial_growth_chunk_size_bytes",
    "max_power_of_two_extend_bytes",
];

impl ArenaConfig {
    /// As librukh takes it: "key=value;key=value".
    pub fn text(&self) -> String {
        let given = self.0.iter().filter(|(_, number)| *number >= 0);
        let part = |(name, number): &(String, i64)| match (name.as_str(), *number) {
            (STRATEGY, 0) => format!("{STRATEGY}=kNextPowerOfTwo"),
            (STRATEGY, _) => format!("{STRATEGY}=kSameAsRequested"),
            (name, number) => format!("{name}={number}"),
        };
        given.map(part).collect::<Vec<_>>().join(";")
    }
}

/// ONNX Runtime writes 0 and the largest number for "no limit".
fn limit(bytes: usize) -> i64 {
    if bytes == 0 { -1 } else { i64::try_from(bytes).unwrap_or(-1) }
}

api! {
    fn CreateArenaCfg(max_mem: usize, strategy: c_int, initial_chunk: c_int, max_dead: c_int, out: *mut *mut OrtArenaCfg) {
        let numbers = [limit(max_mem), strategy.into(), initial_chunk.into(), max_dead.into()];
        give(out, ArenaConfig(NAMES.iter().map(ToString::to_string).zip(numbers).collect()))?;
    }

    fn CreateArenaCfgV2(keys: *const *const c_char, values: *const usize, count: usize, out: *mut *mut OrtArenaCfg) {
        let mut numbers = Vec::new();
        for (key, value) in array(keys, count, "keys")?.iter().zip(array(values, count, "values")?) {
            let key = string(*key, "a key")?;
            if !NAMES.contains(&key.as_str()) {
                return Err(unknown(&key));
            }
            let number = if key == NAMES[0] { limit(*value) } else { *value as i64 };
            numbers.push((key, number));
        }
        give(out, ArenaConfig(numbers))?;
    }
}

fn unknown(key: &str) -> Failure {
    Failure::argument(format!("\"{key}\" is no key of an arena; there are {}", NAMES.join(", ")))
}

api_release! {
    fn ReleaseArenaCfg(OrtArenaCfg) => ArenaConfig;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let config = |numbers: &[(&str, i64)]| {
            ArenaConfig(numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect()).text()
        };
        for (numbers, expected) in [
            (&[][..], ""),
            (&[("max_mem", -1), ("arena_extend_strategy", -1)], ""),
            (
                &[("max_mem", 7), ("arena_extend_strategy", 0)],
                "max_mem=7;arena_extend_strategy=kNextPowerOfTwo",
            ),
            (&[("arena_extend_strategy", 1)], "arena_extend_strategy=kSameAsRequested"),
        ] {
            assert_eq!(config(numbers), expected);
        }
    }
}
