//! Execution providers: ONNX Runtime's names and options, and what they are in rukh.

use std::ffi::{c_char, c_int};

use ort_sys::{OrtEnv, OrtEpDevice, OrtSessionOptions, OrtStatusPtr};

use crate::environment::Environment;
use crate::failure::{Failure, Result, api, guard};
use crate::handle::{array, get, get_mut, null, pairs, put, string};
use crate::session_options::Options;

/// What runs nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Provider {
    Cpu,
    Gpu,
}

impl Provider {
    /// librukh's name.
    pub fn name(self) -> &'static str {
        match self {
            Provider::Cpu => "cpu",
            Provider::Gpu => "hip",
        }
    }
}

/// The provider behind one of ONNX Runtime's names, with or without "ExecutionProvider".
pub fn find(name: &str) -> Result<Provider> {
    let short = name.strip_suffix("ExecutionProvider").unwrap_or(name).to_ascii_lowercase();
    match short.as_str() {
        "cpu" => Ok(Provider::Cpu),
        "rocm" | "migraphx" | "amdgpu" | "hip" | "cuda" => Ok(Provider::Gpu),
        _ => Err(Failure::argument(format!(
            "the provider {name} is not here; there are CPU, ROCM, MIGraphX, AMDGPU and CUDA, the last four for GPUs"
        ))),
    }
}

/// How options of ONNX Runtime's providers for GPUs are called in rukh. All others keep their names.
const RENAMED: [(&str, &str); 4] = [
    ("migraphx_fp16_enable", "fp16_enable"),
    ("migraphx_bf16_enable", "bf16_enable"),
    ("migraphx_mem_limit", "gpu_mem_limit"),
    ("migraphx_arena_extend_strategy", "arena_extend_strategy"),
];

/// Options that choose among ways that ONNX Runtime's own kernels have, and change no result: they have no effect.
const WITHOUT_EFFECT: [&str; 15] = [
    "cudnn_conv_algo_search",
    "cudnn_conv_use_max_workspace",
    "cudnn_conv1d_pad_to_nc1d",
    "enable_cuda_graph",
    "use_tf32",
    "enable_skip_layer_norm_strict_mode",
    "prefer_nhwc",
    "use_ep_level_unified_stream",
    "sdpa_kernel",
    "fuse_conv_bias",
    "migraphx_exhaustive_tune",
    "migraphx_max_dynamic_batch",
    "migraphx_int8_calibration_table_name",
    "migraphx_use_native_calibration_table",
    "migraphx_int8_use_native_calibration_table",
];

/// Options that ask for what rukh does not have. They may be there with a value that asks for nothing.
const REFUSED: [(&str, &str); 2] = [
    (
        "migraphx_fp8_enable",
        "rukh does not turn models of floats into fp8; fp16_enable and bf16_enable are there",
    ),
    ("migraphx_int8_enable", "rukh does not quantize models of floats; quantized models run as they are"),
];

/// The options as rukh takes them.
pub fn translate(provider: Provider, given: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
    if provider == Provider::Cpu {
        // The CPU's only option is whether to use ONNX Runtime's arena.
        return Ok(Vec::new());
    }
    let mut options = Vec::new();
    for (key, value) in given {
        if WITHOUT_EFFECT.contains(&key.as_str()) {
            continue;
        }
        if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == key) {
            if !["", "0", "false", "False"].contains(&value.as_str()) {
                return Err(Failure::absent(format!("option {key}={value} cannot be met: {reason}")));
            }
            continue;
        }
        let name = RENAMED.iter().find(|(name, _)| *name == key).map_or(key.as_str(), |(_, name)| name);
        options.push((name.to_owned(), plain(name, &value)));
    }
    Ok(options)
}

/// ONNX Runtime writes flags as "True" and "1", strategies also as numbers.
fn plain(name: &str, value: &str) -> String {
    match (name, value) {
        ("arena_extend_strategy", "0") => "kNextPowerOfTwo",
        ("arena_extend_strategy", "1") => "kSameAsRequested",
        (_, "True" | "true") => "1",
        (_, "False" | "false") => "0",
        _ => value,
    }
    .to_owned()
}

/// Adds a provider by name.
///
/// # Safety
/// `options` is NULL or live options that nobody else uses.
pub unsafe fn append(
    options: *mut OrtSessionOptions,
    name: &str,
    given: Vec<(String, String)>,
) -> Result<()> {
    let provider = find(name)?;
    let translated = translate(provider, given)?;
    // SAFETY: the caller's promise.
    unsafe { get_mut::<Options>(options) }?.add_provider(provider, translated);
    Ok(())
}

/// The names of providers that have a device on this machine, the most preferred first: those that ONNX Runtime of the
/// caller's version knows, since its package for Java refuses to start where there is any other. `rocm`: whether that
/// version had the provider of ROCm.
fn available(rocm: bool) -> Result<Vec<*mut c_char>> {
    let environment = Environment::current()?;
    let devices = environment.devices()?;
    let (amd, nvidia) = (devices.gpu() && !devices.nvidia(), devices.gpu() && devices.nvidia());
    let names = [
        (c"CUDAExecutionProvider", nvidia),
        (c"MIGraphXExecutionProvider", amd),
        (c"ROCMExecutionProvider", amd && rocm),
        (c"CPUExecutionProvider", true),
    ];
    Ok(names.iter().filter(|(_, there)| *there).map(|(name, _)| name.as_ptr().cast_mut()).collect())
}

/// # Safety
/// `out` and `count` are places for the results.
unsafe fn give_available(rocm: bool, out: *mut RawNames, count: *mut c_int) -> Result<()> {
    let names = Names(available(rocm)?.into_boxed_slice());
    // SAFETY: the caller's promise.
    unsafe {
        put(count, names.0.len() as c_int)?;
        if out.is_null() {
            return Err(null("the place for the result"));
        }
        put(out, Box::into_raw(names.0).cast())
    }
}

/// The list of `GetAvailableProviders`, whose address the caller gives back.
pub struct Names(Box<[*mut c_char]>);

/// Only its address is known to callers, as that of its first name.
type RawNames = *mut *mut c_char;

api! {
    fn SessionOptionsAppendExecutionProvider(options: *mut OrtSessionOptions, name: *const c_char, keys: *const *const c_char, values: *const *const c_char, count: usize) {
        append(options, &string(name, "the provider's name")?, pairs(keys, values, count)?)?;
    }

    fn SessionOptionsAppendExecutionProvider_V2(options: *mut OrtSessionOptions, _environment: *mut OrtEnv, devices: *const *const OrtEpDevice, count: usize, keys: *const *const c_char, values: *const *const c_char, option_count: usize) {
        let given = pairs(keys, values, option_count)?;
        if count == 0 {
            return Err(Failure::argument("no device is given: at least one must be"));
        }
        for device in array(devices, count, "devices")? {
            let device = get::<crate::devices::ProviderDevice>(*device)?;
            let mut given = given.clone();
            if find(&device.provider())? == Provider::Gpu && !given.iter().any(|(key, _)| key == "device_id") {
                given.push(("device_id".to_owned(), device.number().to_string()));
            }
            append(options, &device.provider(), given)?;
        }
    }

    fn GetAvailableProviders(out: *mut RawNames, count: *mut c_int) {
        give_available(false, out, count)?;
    }

    #[allow(non_snake_case)]
    fn GetAvailableProviders_16(out: *mut RawNames, count: *mut c_int) {
        give_available(true, out, count)?;
    }

    fn ReleaseAvailableProviders(names: RawNames, count: c_int) {
        let Ok(count) = usize::try_from(count) else {
            return Err(Failure::argument(format!("{count} is no number of providers")));
        };
        if !names.is_null() {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(names, count)));
        }
    }

    fn SetCurrentGpuDeviceId(device: c_int) {
        if device != 0 {
            return Err(Failure::absent("a thread has no current GPU here: the provider's option device_id chooses it"));
        }
    }

    fn GetCurrentGpuDeviceId(out: *mut c_int) {
        put(out, 0)?;
    }
}

/// Adds a provider with a device's number, as the functions that old programs link do.
///
/// # Safety
/// As `append`.
pub unsafe fn append_device(options: *mut OrtSessionOptions, name: &str, device: c_int) -> OrtStatusPtr {
    guard(name, || {
        // SAFETY: the caller's promise.
        unsafe { append(options, name, vec![("device_id".to_owned(), device.to_string())]) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("CPU", Some(Provider::Cpu)),
            ("CPUExecutionProvider", Some(Provider::Cpu)),
            ("ROCM", Some(Provider::Gpu)),
            ("ROCMExecutionProvider", Some(Provider::Gpu)),
            ("MIGraphX", Some(Provider::Gpu)),
            ("MIGraphXExecutionProvider", Some(Provider::Gpu)),
            ("AMDGPU", Some(Provider::Gpu)),
            ("CUDA", Some(Provider::Gpu)),
            ("TensorRT", None),
            ("XNNPACK", None),
            ("", None),
        ] {
            assert_eq!(find(name).ok(), expected, "{name}");
        }
    }

    #[test]
    fn options() {
        let translated = |key: &str, value: &str| {
            translate(Provider::Gpu, vec![(key.to_owned(), value.to_owned())])
                .map(|options| {
                    options.iter().map(|(key, value)| format!("{key}={value}")).collect::<String>()
                })
                .map_err(|failure| failure.message)
        };
        for (key, value, expected) in [
            ("device_id", "1", "device_id=1"),
            ("migraphx_fp16_enable", "1", "fp16_enable=1"),
            ("migraphx_bf16_enable", "True", "bf16_enable=1"),
            ("migraphx_mem_limit", "7", "gpu_mem_limit=7"),
            ("arena_extend_strategy", "1", "arena_extend_strategy=kSameAsRequested"),
            ("tunable_op_enable", "1", "tunable_op_enable=1"),
            ("cudnn_conv_algo_search", "EXHAUSTIVE", ""),
            ("migraphx_save_compiled_model", "0", "migraphx_save_compiled_model=0"),
            ("migraphx_load_model_path", "", "migraphx_load_model_path="),
        ] {
            assert_eq!(translated(key, value).as_deref(), Ok(expected), "{key}={value}");
        }
        for (key, value) in REFUSED.map(|(key, _)| (key, "1")) {
            let message = translated(key, value).expect_err(key);
            assert!(message.contains(key), "{message}");
        }
    }
}
