//! The provider's options, by the names and with the values of ONNX Runtime's ROCm provider.

use std::collections::BTreeMap;

use crate::error::{Error, Result, excerpt, fail};
use crate::memory::device::config::{ArenaConfig, ExtendStrategy};
use crate::memory::device::external::parse_address;

use super::tuning::TuningOptions;
use super::variables;

/// Every option of the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HipOptions {
    pub(crate) device_id: usize,
    /// Bytes; `u64::MAX` is no limit.
    gpu_mem_limit: u64,
    arena_extend_strategy: ExtendStrategy,
    /// Overrides the two above.
    default_memory_arena_cfg: Option<ArenaConfig>,
    /// The user's stream; with `has_user_compute_stream` and address 0, the default stream.
    has_user_compute_stream: bool,
    user_compute_stream: u64,
    pub(super) do_copy_in_default_stream: bool,
    /// `None`: where the runtime can.
    pub(super) enable_hip_graph: Option<bool>,
    pub(crate) fp16_enable: bool,
    pub(crate) bf16_enable: bool,
    /// Addresses of functions, 0 for none.
    pub(crate) gpu_external_alloc: usize,
    pub(crate) gpu_external_free: usize,
    pub(crate) gpu_external_empty_cache: usize,
    miopen_conv_exhaustive_search: bool,
    miopen_conv_use_max_workspace: bool,
    tuning: TuningOptions,
}

impl Default for HipOptions {
    fn default() -> Self {
        HipOptions {
            device_id: 0,
            gpu_mem_limit: u64::MAX,
            arena_extend_strategy: ExtendStrategy::NextPowerOfTwo,
            default_memory_arena_cfg: None,
            has_user_compute_stream: false,
            user_compute_stream: 0,
            do_copy_in_default_stream: true,
            enable_hip_graph: None,
            fp16_enable: false,
            bf16_enable: false,
            gpu_external_alloc: 0,
            gpu_external_free: 0,
            gpu_external_empty_cache: 0,
            miopen_conv_exhaustive_search: false,
            miopen_conv_use_max_workspace: true,
            tuning: TuningOptions::default(),
        }
    }
}

/// One option: all that is particular to it.
struct Key {
    name: &'static str,
    /// What the value may be, for errors.
    allowed: &'static str,
    /// Variables of the environment that give a value, less binding than an option that is set. The first that is
    /// there counts; those of ONNX Runtime are its own.
    variables: &'static [&'static str],
    /// `None` when the value is not allowed.
    set: fn(&mut HipOptions, &str) -> Result<Option<()>>,
    /// The value as `set` takes it.
    print: fn(&HipOptions) -> String,
}

/// The row of a key that a field of type `bool` keeps.
macro_rules! flag {
    ($name:literal, $($field:ident).+ $(, $variable:literal)*) => {
        Key {
            name: $name,
            allowed: "0 or 1",
            variables: &[$($variable),*],
            set: |options, value| Ok(truth(value).map(|on| options.$($field).+ = on)),
            print: |options| (options.$($field).+ as u8).to_string(),
        }
    };
}

/// The row of a key that a field of an unsigned type keeps.
macro_rules! number {
    ($name:literal, $allowed:literal, $($field:ident).+ $(, $variable:literal)*) => {
        Key {
            name: $name,
            allowed: $allowed,
            variables: &[$($variable),*],
            set: |options, value| Ok(value.parse().ok().map(|number| options.$($field).+ = number)),
            print: |options| options.$($field).+.to_string(),
        }
    };
}

/// The row of a key whose value is an address, which a field of an unsigned type keeps.
macro_rules! address {
    ($name:literal, $allowed:literal, $field:ident) => {
        Key {
            name: $name,
            allowed: $allowed,
            variables: &[],
            set: |options, value| {
                options.$field = parse_address($name, value)? as _;
                Ok(Some(()))
            },
            print: |options| options.$field.to_string(),
        }
    };
}

/// Every key, in the order in which errors list them. A new key is a field of [`HipOptions`] and a row here.
const KEYS: &[Key] = &[
    Key {
        name: "arena_extend_strategy",
        allowed: "kNextPowerOfTwo (0) or kSameAsRequested (1)",
        variables: &[],
        set: |options, value| {
            options.arena_extend_strategy = ExtendStrategy::parse(value)?;
            Ok(Some(()))
        },
        print: |options| options.arena_extend_strategy.name().to_owned(),
    },
    flag!("bf16_enable", bf16_enable),
    Key {
        name: "default_memory_arena_cfg",
        allowed: "key=value;key=value, or nothing",
        variables: &[],
        set: |options, value| {
            let text = value.trim();
            options.default_memory_arena_cfg =
                if text.is_empty() { None } else { Some(ArenaConfig::parse(text)?) };
            Ok(Some(()))
        },
        print: |o| o.default_memory_arena_cfg.as_ref().map_or_else(String::new, ToString::to_string),
    },
    number!("device_id", "a number from 0", device_id),
    flag!("do_copy_in_default_stream", do_copy_in_default_stream),
    Key {
        name: "enable_hip_graph",
        allowed: "0 or 1",
        variables: &[],
        set: |options, value| Ok(truth(value).map(|on| options.enable_hip_graph = Some(on))),
        print: |options| (options.enable_hip_graph.unwrap_or(true) as u8).to_string(),
    },
    flag!("fp16_enable", fp16_enable),
    address!("gpu_external_alloc", "an address, or 0", gpu_external_alloc),
    address!("gpu_external_empty_cache", "an address, or 0", gpu_external_empty_cache),
    address!("gpu_external_free", "an address, or 0", gpu_external_free),
    number!("gpu_mem_limit", "a number of bytes", gpu_mem_limit),
    flag!("has_user_compute_stream", has_user_compute_stream),
    flag!("miopen_conv_exhaustive_search", miopen_conv_exhaustive_search),
    flag!("miopen_conv_use_max_workspace", miopen_conv_use_max_workspace),
    flag!("tunable_op_enable", tuning.enable, "RUKH_TUNABLE_OP_ENABLE", "ORT_ROCM_TUNABLE_OP_ENABLE"),
    Key {
        name: "tunable_op_file",
        allowed: "a file's name, or nothing",
        variables: &["RUKH_TUNABLE_OP_FILE"],
        set: |options, value| {
            options.tuning.file = Some(value).filter(|name| !name.is_empty()).map(Into::into);
            Ok(Some(()))
        },
        print: |o| o.tuning.file.as_ref().map_or_else(String::new, |f| f.to_string_lossy().into_owned()),
    },
    number!(
        "tunable_op_max_tuning_duration_ms",
        "a number of milliseconds, or 0",
        tuning.max_duration_ms,
        "RUKH_TUNABLE_OP_MAX_TUNING_DURATION_MS",
        "ORT_ROCM_TUNABLE_OP_MAX_TUNING_DURATION_MS"
    ),
    flag!(
        "tunable_op_tuning_enable",
        tuning.tune,
        "RUKH_TUNABLE_OP_TUNING_ENABLE",
        "ORT_ROCM_TUNABLE_OP_TUNING_ENABLE"
    ),
    address!("user_compute_stream", "a stream's address, or 0", user_compute_stream),
];

impl HipOptions {
    /// From keys and values, in any order; what is not named has the environment's value, or its default.
    pub(crate) fn parse(entries: &BTreeMap<String, String>) -> Result<Self> {
        Self::parse_in(entries, &|name| std::env::var(name).ok())
    }

    fn parse_in(
        entries: &BTreeMap<String, String>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let mut options = HipOptions::default();
        for key in KEYS.iter().filter(|key| !entries.contains_key(key.name)) {
            let found = key.variables.iter().find_map(|name| Some((name, variable(name)?)));
            if let Some((name, value)) = found {
                options.set(key.name, &value).map_err(|e| {
                    let message = format!("environment variable {name}: {}", e.message);
                    Error::new(e.status, message)
                })?;
            }
        }
        for (key, value) in entries {
            options.set(key, value)?;
        }
        if !entries.contains_key("fp16_enable") && !entries.contains_key("bf16_enable") {
            options.fp16_enable = variables::wants_fp16();
        }
        options.has_user_compute_stream |= options.user_compute_stream != 0;
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            fail!(
                InvalidArgument,
                "Unknown provider option: \"{}\". The hip provider has {}",
                excerpt(name),
                known.join(", ")
            );
        };
        if (key.set)(self, value)?.is_none() {
            fail!(
                InvalidArgument,
                "Failed to parse provider option \"{name}\": \"{}\" is not allowed; allowed is {}",
                excerpt(value),
                key.allowed
            );
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        if (self.gpu_external_alloc == 0) != (self.gpu_external_free == 0) {
            fail!(
                InvalidArgument,
                "provider options \"gpu_external_alloc\" and \"gpu_external_free\" must be given together; one is 0"
            );
        }
        if self.fp16_enable && self.bf16_enable {
            fail!(
                InvalidArgument,
                "provider options \"fp16_enable\" and \"bf16_enable\" are both 1; give one of them"
            );
        }
        if self.gpu_external_alloc != 0 && self.user_stream().is_some() {
            fail!(
                InvalidArgument,
                "provider options \"user_compute_stream\" and \"gpu_external_alloc\" cannot be used together; give one of them"
            );
        }
        Ok(())
    }

    /// What was set and has no effect, for the log.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.tuning.tune && !self.tuning.enable {
            remarks
                .push("tunable_op_tuning_enable is 1 and has no effect: tunable_op_enable is 0".to_owned());
        }
        remarks.extend(variables::remarks());
        remarks
    }

    /// Every key with its value, as `parse` takes them.
    pub(crate) fn entries(&self) -> BTreeMap<String, String> {
        KEYS.iter().map(|key| (key.name.to_owned(), (key.print)(self))).collect()
    }

    /// The stream that the user gave, 0 for the default stream.
    pub(crate) fn user_stream(&self) -> Option<u64> {
        self.has_user_compute_stream.then_some(self.user_compute_stream)
    }

    /// Whether no other session may use the provider: for what is the caller's, or limits this session's arena.
    pub(crate) fn is_for_one_session(&self, environment_arena: bool) -> bool {
        let limited = self.gpu_mem_limit != u64::MAX || self.default_memory_arena_cfg.is_some();
        self.user_stream().is_some() || self.gpu_external_alloc != 0 || (limited && !environment_arena)
    }

    /// How to choose among several ways to compute the same.
    pub(crate) fn tuning(&self) -> TuningOptions {
        self.tuning.clone()
    }

    /// How the arena is to grow.
    pub(crate) fn arena(&self) -> ArenaConfig {
        let mut config = self.default_memory_arena_cfg.clone().unwrap_or_else(|| ArenaConfig {
            max_mem: self.gpu_mem_limit,
            arena_extend_strategy: self.arena_extend_strategy,
            ..ArenaConfig::default()
        });
        config.caching = variables::caching();
        config
    }
}

fn truth(value: &str) -> Option<bool> {
    match value {
        "0" | "false" | "False" => Some(false),
        "1" | "true" | "True" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &[(&str, &str)]) -> Result<HipOptions> {
        HipOptions::parse(&entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn what_entries_tell_can_be_parsed_again() {
        for entries in [
            &[][..],
            &[
                ("device_id", "2"),
                ("gpu_mem_limit", "1048576"),
                ("arena_extend_strategy", "kSameAsRequested"),
            ],
            &[("user_compute_stream", "4096"), ("enable_hip_graph", "1"), ("do_copy_in_default_stream", "0")],
            &[
                ("gpu_external_alloc", "0x10"),
                ("gpu_external_free", "32"),
                ("gpu_external_empty_cache", "48"),
            ],
            &[("default_memory_arena_cfg", "max_mem=1024;arena_extend_strategy=1")],
            &[
                ("tunable_op_enable", "True"),
                ("tunable_op_file", "results.txt"),
                ("tunable_op_max_tuning_duration_ms", "30"),
            ],
        ] {
            let options = parse(entries).unwrap();
            let again = HipOptions::parse(&options.entries()).unwrap();
            assert_eq!(again.entries(), options.entries(), "{entries:?}");
            assert_eq!(options.entries().len(), KEYS.len());
        }
    }

    #[test]
    fn wrong_options_say_what_is_allowed() {
        for (entries, part) in [
            (&[("devce_id", "0")][..], "Unknown provider option: \"devce_id\". The hip provider has arena"),
            (&[("device_id", "-1")], "Failed to parse provider option \"device_id\": \"-1\""),
            (&[("do_copy_in_default_stream", "2")], "allowed is 0 or 1"),
            (&[("gpu_external_alloc", "16")], "must be given together"),
            (&[("gpu_external_alloc", "sixteen")], "not an address"),
            (&[("default_memory_arena_cfg", "max_memory=4")], "max_mem"),
            (&[("fp16_enable", "1"), ("bf16_enable", "1")], "give one of them"),
            (&[("tunable_op_enable", "yes")], "\"yes\" is not allowed; allowed is 0 or 1"),
            (&[("tunable_op_max_tuning_duration_ms", "-1")], "allowed is a number of milliseconds, or 0"),
            (
                &[("user_compute_stream", "16"), ("gpu_external_alloc", "16"), ("gpu_external_free", "16")],
                "cannot be used together",
            ),
        ] {
            let error = parse(entries).unwrap_err();
            assert!(error.message.contains(part), "{entries:?}: {error}");
        }
    }

    #[test]
    fn the_arena_configuration_overrides_limit_and_strategy() {
        let alone = parse(&[("gpu_mem_limit", "4096"), ("arena_extend_strategy", "1")]).unwrap().arena();
        assert_eq!((alone.max_mem, alone.arena_extend_strategy), (4096, ExtendStrategy::SameAsRequested));
        let both = parse(&[("gpu_mem_limit", "4096"), ("default_memory_arena_cfg", "max_mem=512")]).unwrap();
        assert_eq!(both.arena().max_mem, 512);
    }

    #[test]
    fn what_is_set_binds_more_than_the_environment() {
        let there = |name: &str| {
            let all = [
                ("RUKH_TUNABLE_OP_ENABLE", "1"),
                ("ORT_ROCM_TUNABLE_OP_ENABLE", "0"),
                ("ORT_ROCM_TUNABLE_OP_TUNING_ENABLE", "1"),
            ];
            all.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        let parse = |entries: &[(&str, &str)]| {
            let entries = entries.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            HipOptions::parse_in(&entries, &there).unwrap().tuning()
        };
        assert_eq!((parse(&[]).enable, parse(&[]).tune), (true, true));
        assert!(!parse(&[("tunable_op_enable", "0")]).enable);
        let wrong = |name: &str| (name == "RUKH_TUNABLE_OP_ENABLE").then(|| "on".to_owned());
        let error = HipOptions::parse_in(&BTreeMap::new(), &wrong).unwrap_err();
        assert!(error.message.starts_with("environment variable RUKH_TUNABLE_OP_ENABLE: "), "{error}");
    }
}
