//! The provider's options, by the names and with the values of ONNX Runtime's ROCm provider.

use std::collections::BTreeMap;

use crate::error::{Error, Result, excerpt, fail};
use crate::memory::device::config::{ArenaConfig, ExtendStrategy};
use crate::memory::device::external::parse_address;

use super::tuning::TuningOptions;

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
    pub(super) enable_hip_graph: bool,
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
            enable_hip_graph: false,
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

/// The keys, with what each may be.
const KEYS: &[(&str, &str)] = &[
    ("arena_extend_strategy", "kNextPowerOfTwo (0) or kSameAsRequested (1)"),
    ("bf16_enable", "0 or 1"),
    ("default_memory_arena_cfg", "key=value;key=value, or nothing"),
    ("device_id", "a number from 0"),
    ("do_copy_in_default_stream", "0 or 1"),
    ("enable_hip_graph", "0 or 1"),
    ("fp16_enable", "0 or 1"),
    ("gpu_external_alloc", "an address, or 0"),
    ("gpu_external_empty_cache", "an address, or 0"),
    ("gpu_external_free", "an address, or 0"),
    ("gpu_mem_limit", "a number of bytes"),
    ("has_user_compute_stream", "0 or 1"),
    ("miopen_conv_exhaustive_search", "0 or 1"),
    ("miopen_conv_use_max_workspace", "0 or 1"),
    ("tunable_op_enable", "0 or 1"),
    ("tunable_op_file", "a file's name, or nothing"),
    ("tunable_op_max_tuning_duration_ms", "a number of milliseconds, or 0"),
    ("tunable_op_tuning_enable", "0 or 1"),
    ("user_compute_stream", "a stream's address, or 0"),
];

/// Keys that the environment may give a value, less binding than an option that is set. The first variable
/// that is there counts; those of ONNX Runtime are its own.
const VARIABLES: &[(&str, &[&str])] = &[
    ("tunable_op_enable", &["RUKH_TUNABLE_OP_ENABLE", "ORT_ROCM_TUNABLE_OP_ENABLE"]),
    ("tunable_op_file", &["RUKH_TUNABLE_OP_FILE"]),
    (
        "tunable_op_max_tuning_duration_ms",
        &["RUKH_TUNABLE_OP_MAX_TUNING_DURATION_MS", "ORT_ROCM_TUNABLE_OP_MAX_TUNING_DURATION_MS"],
    ),
    ("tunable_op_tuning_enable", &["RUKH_TUNABLE_OP_TUNING_ENABLE", "ORT_ROCM_TUNABLE_OP_TUNING_ENABLE"]),
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
        for (key, names) in VARIABLES.iter().filter(|(key, _)| !entries.contains_key(*key)) {
            let found = names.iter().find_map(|name| Some((name, variable(name)?)));
            if let Some((name, value)) = found {
                options.set(key, &value).map_err(|e| {
                    let message = format!("environment variable {name}: {}", e.message);
                    Error::new(e.status, message)
                })?;
            }
        }
        for (key, value) in entries {
            options.set(key, value)?;
        }
        if !entries.contains_key("fp16_enable") && !entries.contains_key("bf16_enable") {
            options.fp16_enable = wants_fp16();
        }
        options.has_user_compute_stream |= options.user_compute_stream != 0;
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let given = excerpt(value);
        let Some((_, allowed)) = KEYS.iter().find(|(k, _)| *k == key) else {
            let known: Vec<&str> = KEYS.iter().map(|(k, _)| *k).collect();
            fail!(
                InvalidArgument,
                "Unknown provider option: \"{}\". The hip provider has {}",
                excerpt(key),
                known.join(", ")
            );
        };
        match self.set_known(key, value)? {
            Some(()) => Ok(()),
            None => fail!(
                InvalidArgument,
                "Failed to parse provider option \"{key}\": \"{given}\" is not allowed; allowed is {allowed}"
            ),
        }
    }

    /// `None` when the value is not allowed.
    fn set_known(&mut self, key: &str, value: &str) -> Result<Option<()>> {
        let flag = |to: &mut bool| truth(value).map(|on| *to = on);
        Ok(match key {
            "device_id" => value.parse().ok().map(|id| self.device_id = id),
            "gpu_mem_limit" => value.parse().ok().map(|limit| self.gpu_mem_limit = limit),
            "arena_extend_strategy" => {
                self.arena_extend_strategy = ExtendStrategy::parse(value)?;
                Some(())
            }
            "default_memory_arena_cfg" => {
                let text = value.trim();
                self.default_memory_arena_cfg =
                    if text.is_empty() { None } else { Some(ArenaConfig::parse(text)?) };
                Some(())
            }
            "has_user_compute_stream" => flag(&mut self.has_user_compute_stream),
            "user_compute_stream" => {
                self.user_compute_stream = parse_address(key, value)? as u64;
                Some(())
            }
            "do_copy_in_default_stream" => flag(&mut self.do_copy_in_default_stream),
            "enable_hip_graph" => flag(&mut self.enable_hip_graph),
            "fp16_enable" => flag(&mut self.fp16_enable),
            "bf16_enable" => flag(&mut self.bf16_enable),
            "gpu_external_alloc" => {
                self.gpu_external_alloc = parse_address(key, value)?;
                Some(())
            }
            "gpu_external_free" => {
                self.gpu_external_free = parse_address(key, value)?;
                Some(())
            }
            "gpu_external_empty_cache" => {
                self.gpu_external_empty_cache = parse_address(key, value)?;
                Some(())
            }
            "miopen_conv_exhaustive_search" => flag(&mut self.miopen_conv_exhaustive_search),
            "miopen_conv_use_max_workspace" => flag(&mut self.miopen_conv_use_max_workspace),
            "tunable_op_enable" => flag(&mut self.tuning.enable),
            "tunable_op_tuning_enable" => flag(&mut self.tuning.tune),
            "tunable_op_max_tuning_duration_ms" => {
                value.parse().ok().map(|ms| self.tuning.max_duration_ms = ms)
            }
            "tunable_op_file" => {
                self.tuning.file = Some(value).filter(|name| !name.is_empty()).map(Into::into);
                Some(())
            }
            _ => None,
        })
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
        if self.has_external_allocator() && self.user_stream().is_some() {
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
        for name in FP16_VARIABLES {
            if let Ok(value) = std::env::var(name)
                && !matches!(value.as_str(), "" | "0" | "1")
            {
                let value = excerpt(&value);
                remarks.push(format!(
                    "environment variable {name} is \"{value}\" and has no effect; allowed are 0 and 1"
                ));
            }
        }
        remarks
    }

    /// Every key with its value, as `parse` takes them.
    pub(crate) fn entries(&self) -> BTreeMap<String, String> {
        let limit = if self.gpu_mem_limit == u64::MAX { usize::MAX as u64 } else { self.gpu_mem_limit };
        let arena = self.default_memory_arena_cfg.as_ref().map_or_else(String::new, ToString::to_string);
        let flag = |on: bool| (on as u8).to_string();
        let file = self.tuning.file.as_ref().map_or_else(String::new, |f| f.to_string_lossy().into_owned());
        [
            ("arena_extend_strategy", self.arena_extend_strategy.name().to_owned()),
            ("default_memory_arena_cfg", arena),
            ("device_id", self.device_id.to_string()),
            ("do_copy_in_default_stream", flag(self.do_copy_in_default_stream)),
            ("enable_hip_graph", flag(self.enable_hip_graph)),
            ("fp16_enable", flag(self.fp16_enable)),
            ("bf16_enable", flag(self.bf16_enable)),
            ("gpu_external_alloc", self.gpu_external_alloc.to_string()),
            ("gpu_external_empty_cache", self.gpu_external_empty_cache.to_string()),
            ("gpu_external_free", self.gpu_external_free.to_string()),
            ("gpu_mem_limit", limit.to_string()),
            ("has_user_compute_stream", flag(self.has_user_compute_stream)),
            ("miopen_conv_exhaustive_search", flag(self.miopen_conv_exhaustive_search)),
            ("miopen_conv_use_max_workspace", flag(self.miopen_conv_use_max_workspace)),
            ("tunable_op_enable", flag(self.tuning.enable)),
            ("tunable_op_file", file),
            ("tunable_op_max_tuning_duration_ms", self.tuning.max_duration_ms.to_string()),
            ("tunable_op_tuning_enable", flag(self.tuning.tune)),
            ("user_compute_stream", self.user_compute_stream.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// The stream that the user gave, 0 for the default stream.
    pub(crate) fn user_stream(&self) -> Option<u64> {
        self.has_user_compute_stream.then_some(self.user_compute_stream)
    }

    pub(crate) fn has_external_allocator(&self) -> bool {
        self.gpu_external_alloc != 0
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
        config.caching = caching();
        config
    }
}

/// Whether the environment asks for half precision where no option says what to do.
pub(crate) fn wants_fp16() -> bool {
    FP16_VARIABLES.iter().any(|name| std::env::var(name).as_deref() == Ok("1"))
}

const FP16_VARIABLES: [&str; 2] = ["RUKH_FP16_ENABLE", "ORT_MIGRAPHX_FP16_ENABLE"];

/// Whether arenas keep memory. `RUKH_NO_MEMORY_CACHING=1` in the environment switches that off.
pub(super) fn caching() -> bool {
    std::env::var("RUKH_NO_MEMORY_CACHING").as_deref() != Ok("1")
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
            assert_eq!(HipOptions::parse(&options.entries()).unwrap(), options, "{entries:?}");
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
