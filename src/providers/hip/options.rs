//! The provider's options, by the names and with the values of ONNX Runtime's ROCm provider.

use std::collections::BTreeMap;

use crate::error::{Error, Result, excerpt, fail};
use crate::memory::device::config::{ArenaConfig, ExtendStrategy};
use crate::memory::device::external::parse_address;

use super::tuning::TuningOptions;
use super::variables;

#[cfg(test)]
mod tests;

/// Every option of the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HipOptions {
    pub(crate) device_id: usize,
    /// Bytes; `u64::MAX` is no limit.
    gpu_mem_limit: u64,
    /// The part of the device's memory that the process may hold, above 0; 1 is no limit.
    gpu_mem_fraction: f64,
    arena_extend_strategy: ExtendStrategy,
    /// Overrides the two above.
    default_memory_arena_cfg: Option<ArenaConfig>,
    /// The user's stream; with `has_user_compute_stream` and address 0, the default stream.
    has_user_compute_stream: bool,
    user_compute_stream: u64,
    pub(super) do_copy_in_default_stream: bool,
    /// `None`: where the runtime can.
    pub(super) enable_hip_graph: Option<bool>,
    /// Launches are waited for one by one.
    pub(super) launch_blocking: bool,
    /// Several products may be one launch.
    pub(super) chain_products: bool,
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
            gpu_mem_fraction: 1.0,
            arena_extend_strategy: ExtendStrategy::NextPowerOfTwo,
            default_memory_arena_cfg: None,
            has_user_compute_stream: false,
            user_compute_stream: 0,
            do_copy_in_default_stream: true,
            enable_hip_graph: None,
            launch_blocking: false,
            chain_products: true,
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
    flag!("chain_products", chain_products),
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
    Key {
        name: "gpu_mem_fraction",
        allowed: "a number above 0 and at most 1",
        variables: &[],
        set: |options, value| {
            let fraction = value.parse().ok().filter(|f| *f > 0.0 && *f <= 1.0);
            Ok(fraction.map(|fraction| options.gpu_mem_fraction = fraction))
        },
        print: |options| options.gpu_mem_fraction.to_string(),
    },
    number!("gpu_mem_limit", "a number of bytes", gpu_mem_limit),
    flag!("has_user_compute_stream", has_user_compute_stream),
    flag!("launch_blocking", launch_blocking, "RUKH_HIP_LAUNCH_BLOCKING"),
    flag!("miopen_conv_exhaustive_search", miopen_conv_exhaustive_search),
    flag!("miopen_conv_use_max_workspace", miopen_conv_use_max_workspace),
    Key {
        name: "tunable_op_enable",
        allowed: "0 or 1",
        variables: &["RUKH_TUNABLE_OP_ENABLE", "ORT_ROCM_TUNABLE_OP_ENABLE"],
        set: |options, value| Ok(truth(value).map(|on| options.tuning.enable = Some(on))),
        print: |options| (options.tuning.enable.unwrap_or(false) as u8).to_string(),
    },
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
    Key {
        name: "tunable_op_record_file",
        allowed: "a file's name, or nothing",
        variables: &["RUKH_TUNABLE_OP_RECORD_FILE"],
        set: |options, value| {
            options.tuning.record = Some(value).filter(|name| !name.is_empty()).map(Into::into);
            Ok(Some(()))
        },
        print: |o| o.tuning.record.as_ref().map_or_else(String::new, |f| f.to_string_lossy().into_owned()),
    },
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
        if self.gpu_external_alloc != 0 && self.gpu_mem_fraction < 1.0 {
            fail!(
                InvalidArgument,
                "provider options \"gpu_mem_fraction\" and \"gpu_external_alloc\" cannot be used together, as memory \
                 of the caller's own is not counted; give one of them"
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
        let enabled = self.tuning.enable == Some(true);
        if self.tuning.tune && !enabled {
            remarks
                .push("tunable_op_tuning_enable is 1 and has no effect: tunable_op_enable is 0".to_owned());
        }
        if self.tuning.record.is_some() && !enabled {
            remarks.push("tunable_op_record_file has no effect: tunable_op_enable is 0".to_owned());
        }
        if self.launch_blocking && self.enable_hip_graph == Some(true) {
            remarks.push("enable_hip_graph is 1 and has no effect: launch_blocking is 1".to_owned());
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

    /// How many of a device's bytes the process may hold; `None`: all.
    pub(super) fn share(&self, bytes: usize) -> Option<u64> {
        (self.gpu_mem_fraction < 1.0).then_some((bytes as f64 * self.gpu_mem_fraction) as u64)
    }

    /// Whether the results of tuning in a compiled model are used.
    pub(crate) fn takes_compiled_results(&self) -> bool {
        self.tuning.enable != Some(false)
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
