//! What the options of a provider mean for librukh.

use std::collections::HashMap;

use ort_sys::OrtSessionOptions;

use crate::compiled_models::CompiledModels;
use crate::context::ContextSettings;
use crate::error::{Result, fail};
use crate::library::SessionOptions;
use crate::ort::{Ort, Pairs};

/// The options of a session, as far as they are about this provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Of librukh's provider hip.
    pub(crate) hip: Vec<(String, String)>,
    /// Of librukh's session.
    pub(crate) session: Vec<(String, String)>,
    /// Whether ONNX Runtime's CPU provider may take nodes.
    pub(crate) no_cpu_fallback: bool,
    /// What librukh compiles and keeps by itself.
    pub(crate) compiled: CompiledModels,
    /// What ONNX Runtime's options say of models with compiled parts.
    pub(crate) context: ContextSettings,
    /// For what such parts are compiled, and which weights they have; none for the session's device alone.
    pub(crate) compile_targets: Option<String>,
    pub(crate) compile_weights: Option<String>,
}

/// Names of options that other providers for AMD's GPUs have, with those of the provider hip.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("migraphx_fp16_enable", "fp16_enable"),
    ("migraphx_bf16_enable", "bf16_enable"),
    ("migraphx_mem_limit", "gpu_mem_limit"),
    ("migraphx_arena_extend_strategy", "arena_extend_strategy"),
    ("migraphx_external_alloc", "gpu_external_alloc"),
    ("migraphx_external_free", "gpu_external_free"),
    ("migraphx_external_empty_cache", "gpu_external_empty_cache"),
    ("migraphx_exhaustive_tune", "tunable_op_enable"),
    ("exhaustive_tune", "tunable_op_enable"),
];

/// Options of theirs that make no difference here, and are accepted: hints for choosing among several implementations, and
/// an order to compile anew, which happens by itself where a model or the library changed.
const WITHOUT_EFFECT: &[&str] = &[
    "force_recompile",
    "mlss_use_specific_ops",
    "model_arch",
    "profile",
    "telemetry_dir",
    "telemetry_enable",
    "telemetry_file",
    "use_dynamic_dispatch",
];

/// Options of theirs that have no meaning here, and why. Allowed where they are switched off.
const REFUSED: &[(&str, &str)] = &[
    ("migraphx_fp8_enable", "models are not converted to 8-bit floats"),
    ("migraphx_int8_enable", "models are not quantized; quantized models run as they are"),
    ("migraphx_int8_calibration_table_name", "models are not quantized; quantized models run as they are"),
    ("migraphx_int8_use_native_calibration_table", "models are not quantized"),
];

/// Options of librukh's sessions, which can be given beside those of the provider.
const SESSION_OPTIONS: &[&str] = &[
    "optimization",
    "precision",
    "intra_op_threads",
    "plan_cache",
    "fallback",
    "use_env_allocators",
    "load",
    "model_cache_limit",
];

impl Options {
    /// # Safety
    /// `options` is what ONNX Runtime gives to `CreateEp`.
    pub(crate) unsafe fn read(
        ort: Ort,
        options: *const OrtSessionOptions,
        provider: &str,
    ) -> Result<Options> {
        let mut pairs = std::ptr::null_mut();
        // SAFETY: the options are live; what is made is released by `Pairs`.
        ort.check(unsafe { (ort.api.GetSessionOptionsConfigEntries)(options, &mut pairs) })?;
        Options::of(&Pairs::owned(ort, pairs).read(), provider)
    }

    /// The options among a session's entries: those that begin with `ep.` and the provider's name in small letters.
    fn of(entries: &[(String, String)], provider: &str) -> Result<Options> {
        let prefix = format!("ep.{}.", provider.to_lowercase());
        let (mut options, mut compiled) = (Options::default(), HashMap::new());
        for (key, value) in entries {
            match key.as_str() {
                "session.disable_cpu_ep_fallback" => options.no_cpu_fallback = value == "1",
                _ => options.context.take(key, value)?,
            }
            match key.strip_prefix(&prefix) {
                Some(key) if CompiledModels::has(key) => drop(compiled.insert(key.to_owned(), value.clone())),
                Some(key) => options.add(key, value, provider)?,
                None => {}
            }
        }
        options.context.check()?;
        options.compiled = CompiledModels::of(&compiled)?;
        Ok(options)
    }

    fn add(&mut self, key: &str, value: &str, provider: &str) -> Result<()> {
        if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == key) {
            if matches!(value, "" | "0" | "false" | "False") {
                return Ok(());
            }
            fail!(
                NotImplemented,
                "option \"{key}\" of {provider} is \"{value}\": {reason}; leave the option out"
            );
        }
        if WITHOUT_EFFECT.contains(&key) {
            return Ok(());
        }
        if key == "compile_targets" {
            self.compile_targets = Some(value.to_owned());
            return Ok(());
        }
        if key == "compile_weights" {
            if !["used", "all"].contains(&value) {
                fail!(
                    InvalidArgument,
                    "option \"{key}\" of {provider} is \"{value}\"; allowed is used or all"
                );
            }
            self.compile_weights = Some(value.to_owned());
            return Ok(());
        }
        if SESSION_OPTIONS.contains(&key) || key.starts_with("dim.") {
            self.session.push((key.to_owned(), value.to_owned()));
            return Ok(());
        }
        let name = OTHER_NAMES.iter().find(|(name, _)| *name == key).map_or(key, |(_, name)| name);
        self.hip.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Whether runs go to a stream of the program's own.
    pub(crate) fn in_user_stream(&self) -> bool {
        self.hip.iter().any(|(key, _)| key == "user_compute_stream" || key == "has_user_compute_stream")
    }

    /// Options for librukh's sessions on a GPU, or on the CPU alone.
    pub(crate) fn for_library(&self, gpu: Option<usize>) -> Result<SessionOptions> {
        let mut options = SessionOptions::new()?;
        for (key, value) in &self.session {
            options.set(key, value)?;
        }
        let Some(gpu) = gpu else {
            options.add_provider("cpu", &[])?;
            return Ok(options);
        };
        let mut hip = self.hip.clone();
        hip.retain(|(key, _)| key != "device_id");
        hip.push(("device_id".to_owned(), gpu.to_string()));
        options.add_provider("hip", &hip)?;
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(entries: &[(&str, &str)]) -> std::result::Result<Options, String> {
        let entries: Vec<_> =
            entries.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        Options::of(&entries, "AMDGPUExecutionProvider").map_err(|error| error.message)
    }

    #[test]
    fn options_of_other_providers_mean_what_they_meant() {
        let options = read(&[
            ("ep.amdgpuexecutionprovider.migraphx_fp16_enable", "1"),
            ("ep.amdgpuexecutionprovider.tunable_op_enable", "1"),
            ("ep.amdgpuexecutionprovider.optimization", "basic"),
            ("ep.amdgpuexecutionprovider.dim.batch", "4"),
            ("ep.amdgpuexecutionprovider.migraphx_int8_enable", "0"),
            ("ep.amdgpuexecutionprovider.cache_dir", "/tmp"),
            ("ep.amdgpuexecutionprovider.compile_targets", "cpu,gfx90a"),
            ("ep.amdgpuexecutionprovider.compile_weights", "all"),
            ("ep.context_enable", "1"),
            ("ep.another.fp16_enable", "1"),
            ("session.disable_cpu_ep_fallback", "1"),
        ])
        .unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(options.hip, [pair("fp16_enable", "1"), pair("tunable_op_enable", "1")]);
        assert_eq!(options.session, [pair("optimization", "basic"), pair("dim.batch", "4")]);
        assert!(options.no_cpu_fallback && options.context.enabled);
        assert_eq!(options.compile_targets.as_deref(), Some("cpu,gfx90a"));
        assert_eq!(options.compile_weights.as_deref(), Some("all"));
        assert_ne!(options.compiled, CompiledModels::default());
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (key, word) in [
            ("ep.amdgpuexecutionprovider.migraphx_int8_enable", "migraphx_int8_enable"),
            ("ep.amdgpuexecutionprovider.compile_weights", "allowed is used or all"),
            ("ep.amdgpuexecutionprovider.migraphx_save_compiled_model", "migraphx_save_model_path"),
        ] {
            assert!(read(&[(key, "1")]).unwrap_err().contains(word), "{key}");
        }
        assert!(read(&[("ep.context_enable", "yes")]).unwrap_err().contains("ep.context_enable"));
    }
}
