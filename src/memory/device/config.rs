//! The settings of an arena, from and to text.

use crate::error::{Result, fail};

/// How the arena grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtendStrategy {
    /// Regions double in size.
    NextPowerOfTwo,
    /// A region is as large as the request.
    SameAsRequested,
}

/// Each strategy by its name and by its number.
const STRATEGIES: &[(ExtendStrategy, &str, &str)] = &[
    (ExtendStrategy::NextPowerOfTwo, "kNextPowerOfTwo", "0"),
    (ExtendStrategy::SameAsRequested, "kSameAsRequested", "1"),
];

impl ExtendStrategy {
    /// From its name, or its number as ONNX Runtime counts.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        match STRATEGIES.iter().find(|(_, name, number)| [*name, *number].contains(&text)) {
            Some((strategy, ..)) => Ok(*strategy),
            None => fail!(
                InvalidArgument,
                "arena_extend_strategy \"{text}\" is not known; allowed are kNextPowerOfTwo (0) and \
                 kSameAsRequested (1)"
            ),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ExtendStrategy::NextPowerOfTwo => "kNextPowerOfTwo",
            ExtendStrategy::SameAsRequested => "kSameAsRequested",
        }
    }
}

/// The settings of an arena, by ONNX Runtime's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArenaConfig {
    /// Bytes that the arena may hold; `u64::MAX` is no limit, as text 0.
    pub(crate) max_mem: u64,
    pub(crate) arena_extend_strategy: ExtendStrategy,
    /// The first region, under `kNextPowerOfTwo`.
    pub(crate) initial_chunk_size_bytes: u64,
    /// More than this is never wasted behind a block: the chunk is split.
    pub(crate) max_dead_bytes_per_chunk: u64,
    /// The second region, and the first after shrinking, under `kNextPowerOfTwo`.
    pub(crate) initial_growth_chunk_size_bytes: u64,
    /// Regions stop doubling here; no limit for a request.
    pub(crate) max_power_of_two_extend_bytes: u64,
    /// Off: every block comes straight from the device and goes straight back, as
    /// `RUKH_NO_MEMORY_CACHING=1` asks for. Not a key of the text.
    pub(crate) caching: bool,
}

impl Default for ArenaConfig {
    fn default() -> Self {
        ArenaConfig {
            max_mem: u64::MAX,
            arena_extend_strategy: ExtendStrategy::NextPowerOfTwo,
            initial_chunk_size_bytes: 1 << 20,
            max_dead_bytes_per_chunk: 128 << 20,
            initial_growth_chunk_size_bytes: 2 << 20,
            max_power_of_two_extend_bytes: 1 << 30,
            caching: true,
        }
    }
}

impl ArenaConfig {
    pub(crate) const KEYS: [&str; 6] = [
        "max_mem",
        "arena_extend_strategy",
        "initial_chunk_size_bytes",
        "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes",
        "max_power_of_two_extend_bytes",
    ];

    /// From `key=value;key=value`. What is not named has its default; -1 is the default by name.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut config = ArenaConfig::default();
        let mut seen: Vec<&str> = Vec::new();
        for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
            let Some((key, value)) = entry.split_once('=') else {
                fail!(
                    InvalidArgument,
                    "arena configuration \"{entry}\" is not key=value; entries are separated by ';', keys are {}",
                    Self::KEYS.join(", ")
                )
            };
            let key = key.trim();
            if seen.contains(&key) {
                fail!(InvalidArgument, "arena configuration has {key} twice: \"{text}\"");
            }
            config.set(key, value.trim())?;
            seen.push(key);
        }
        Ok(config)
    }

    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let default = ArenaConfig::default();
        match key {
            "max_mem" => {
                self.max_mem = match bytes(key, value, default.max_mem, 0)? {
                    0 => u64::MAX,
                    limit => limit,
                }
            }
            "arena_extend_strategy" if value == "-1" => {
                self.arena_extend_strategy = default.arena_extend_strategy
            }
            "arena_extend_strategy" => self.arena_extend_strategy = ExtendStrategy::parse(value)?,
            "initial_chunk_size_bytes" => {
                self.initial_chunk_size_bytes = bytes(key, value, default.initial_chunk_size_bytes, 1)?
            }
            "max_dead_bytes_per_chunk" => {
                self.max_dead_bytes_per_chunk = bytes(key, value, default.max_dead_bytes_per_chunk, 0)?
            }
            "initial_growth_chunk_size_bytes" => {
                self.initial_growth_chunk_size_bytes =
                    bytes(key, value, default.initial_growth_chunk_size_bytes, 1)?
            }
            "max_power_of_two_extend_bytes" => {
                self.max_power_of_two_extend_bytes =
                    bytes(key, value, default.max_power_of_two_extend_bytes, 1)?
            }
            _ => return unknown(key),
        }
        Ok(())
    }

    /// A value as text that `set` takes.
    pub(crate) fn get(&self, key: &str) -> Result<String> {
        Ok(match key {
            "max_mem" if self.max_mem == u64::MAX => "0".to_string(),
            "max_mem" => self.max_mem.to_string(),
            "arena_extend_strategy" => self.arena_extend_strategy.name().to_string(),
            "initial_chunk_size_bytes" => self.initial_chunk_size_bytes.to_string(),
            "max_dead_bytes_per_chunk" => self.max_dead_bytes_per_chunk.to_string(),
            "initial_growth_chunk_size_bytes" => self.initial_growth_chunk_size_bytes.to_string(),
            "max_power_of_two_extend_bytes" => self.max_power_of_two_extend_bytes.to_string(),
            _ => return unknown(key),
        })
    }
}

/// The text that `parse` takes, with every key.
impl std::fmt::Display for ArenaConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, key) in Self::KEYS.iter().enumerate() {
            let value = self.get(key).map_err(|_| std::fmt::Error)?;
            write!(f, "{}{key}={value}", if i == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

fn unknown<T>(key: &str) -> Result<T> {
    fail!(
        InvalidArgument,
        "arena configuration key \"{key}\" is not known; keys are {}",
        ArenaConfig::KEYS.join(", ")
    )
}

fn bytes(key: &str, value: &str, default: u64, least: u64) -> Result<u64> {
    if value == "-1" {
        return Ok(default);
    }
    match value.parse::<u64>() {
        Ok(bytes) if bytes >= least => Ok(bytes),
        _ => fail!(
            InvalidArgument,
            "{key} \"{value}\" is not a number of bytes; allowed are {least} to {}{}, or -1 for the default",
            u64::MAX,
            if key == "max_mem" { " (0: no limit)" } else { "" }
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        let default = "max_mem=0;arena_extend_strategy=kNextPowerOfTwo;initial_chunk_size_bytes=1048576;\
                       max_dead_bytes_per_chunk=134217728;initial_growth_chunk_size_bytes=2097152;\
                       max_power_of_two_extend_bytes=1073741824";
        for (text, expected) in [
            ("", default.to_string()),
            (default, default.to_string()),
            (" max_mem = -1 ; arena_extend_strategy=-1;;initial_chunk_size_bytes=-1;", default.to_string()),
            ("max_mem=18446744073709551615;arena_extend_strategy=0", default.to_string()),
            ("arena_extend_strategy=1", default.replace("kNextPowerOfTwo", "kSameAsRequested")),
            (
                "max_mem=1000;max_dead_bytes_per_chunk=0;initial_growth_chunk_size_bytes=7",
                default
                    .replace("max_mem=0", "max_mem=1000")
                    .replace("134217728", "0")
                    .replace("2097152", "7"),
            ),
        ] {
            let config = ArenaConfig::parse(text).unwrap();
            assert_eq!(config.to_string(), expected);
            assert_eq!(ArenaConfig::parse(&expected).unwrap(), config);
        }
    }

    #[test]
    fn errors_name_what_is_allowed() {
        for (text, expected) in [
            ("max_mem", "\"max_mem\" is not key=value"),
            (
                "limit=3",
                "key \"limit\" is not known; keys are max_mem, arena_extend_strategy, initial_chunk_",
            ),
            ("max_mem=3;max_mem=4", "has max_mem twice"),
            (
                "max_mem=1GB",
                "max_mem \"1GB\" is not a number of bytes; allowed are 0 to 18446744073709551615 (0: no",
            ),
            ("max_mem=-2", "or -1 for the default"),
            (
                "initial_chunk_size_bytes=0",
                "initial_chunk_size_bytes \"0\" is not a number of bytes; allowed are 1 to",
            ),
            (
                "arena_extend_strategy=2",
                "\"2\" is not known; allowed are kNextPowerOfTwo (0) and kSameAsRequested (1)",
            ),
        ] {
            let error = ArenaConfig::parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{}", error.message);
        }
        assert!(ArenaConfig::default().get("caching").is_err());
    }
}
