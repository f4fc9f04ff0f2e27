//! What the options of a provider mean for librukh.

use ort_sys::OrtSessionOptions;

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

/// Options of theirs that make no difference here, and are accepted: hints for choosing among several implementations,
/// and where compiled kernels are kept, of which there are none.
const WITHOUT_EFFECT: &[&str] = &[
    "cache_dir",
    "disable_caching",
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
const SESSION_OPTIONS: &[&str] =
    &["optimization", "precision", "intra_op_threads", "plan_cache", "use_env_allocators"];

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
        let mut options = Options::default();
        for (key, value) in entries {
            match key.as_str() {
                "session.disable_cpu_ep_fallback" => options.no_cpu_fallback = value == "1",
                "ep.context_enable" if value == "1" => fail!(
                    NotImplemented,
                    "ep.context_enable is 1: {provider} makes no EPContext models, for nothing is compiled; leave the option out"
                ),
                _ => {}
            }
            if let Some(key) = key.strip_prefix(&prefix) {
                options.add(key, value, provider)?;
            }
        }
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
            ("ep.another.fp16_enable", "1"),
            ("session.disable_cpu_ep_fallback", "1"),
        ])
        .unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(options.hip, [pair("fp16_enable", "1"), pair("tunable_op_enable", "1")]);
        assert_eq!(options.session, [pair("optimization", "basic"), pair("dim.batch", "4")]);
        assert!(options.no_cpu_fallback);
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_name() {
        for (key, word) in [
            ("ep.amdgpuexecutionprovider.migraphx_int8_enable", "migraphx_int8_enable"),
            ("ep.context_enable", "ep.context_enable"),
        ] {
            assert!(read(&[(key, "1")]).unwrap_err().contains(word), "{key}");
        }
    }
}
