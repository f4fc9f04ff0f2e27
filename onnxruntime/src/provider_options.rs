//! Options of providers in structs: those that callers fill in, whose layout changed from version to version of the API,
//! and those that the API makes and fills by name.

use std::ffi::{CStr, c_char, c_int, c_void};

use ort_sys::{
    OrtAllocator, OrtArenaCfg, OrtCUDAProviderOptions, OrtCUDAProviderOptionsV2, OrtMIGraphXProviderOptions,
    OrtROCMProviderOptions, OrtSessionOptions,
};

use crate::allocator::copy_text;
use crate::arena::ArenaConfig;
use crate::failure::{Failure, Result, api, api_release};
use crate::handle::{c_string, get, get_mut, give, handles, null, pairs, put, string};
use crate::providers::append;

/// Options by name, behind `OrtCUDAProviderOptionsV2`.
#[derive(Default)]
pub struct Named(Vec<(String, String)>);

handles! { Named => OrtCUDAProviderOptionsV2; }

impl Named {
    fn set(&mut self, key: String, value: String) {
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some(pair) => pair.1 = value,
            None => self.0.push((key, value)),
        }
    }

    fn text(&self) -> String {
        self.0.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(";")
    }
}

/// Reads the fields of a struct one after the other, at the places where a C compiler puts them.
struct Fields {
    base: *const u8,
    offset: usize,
}

impl Fields {
    /// # Safety
    /// The struct that was given goes on with a field of this type.
    unsafe fn next<T: Copy>(&mut self) -> T {
        self.offset = self.offset.next_multiple_of(align_of::<T>());
        // SAFETY: the caller's promise.
        let value = unsafe { self.base.add(self.offset).cast::<T>().read() };
        self.offset += size_of::<T>();
        value
    }

    /// # Safety
    /// As `next`, for an `int`.
    unsafe fn flag(&mut self, name: &str, options: &mut Vec<(String, String)>) {
        // SAFETY: the caller's promise.
        let value: c_int = unsafe { self.next() };
        options.push((name.to_owned(), value.to_string()));
    }

    /// # Safety
    /// As `next`, for a text or NULL.
    unsafe fn text(&mut self, name: &str, options: &mut Vec<(String, String)>) {
        // SAFETY: the caller's promise.
        let text: *const c_char = unsafe { self.next() };
        if !text.is_null() {
            // SAFETY: the caller's promise.
            options.push((name.to_owned(), unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()));
        }
    }

    /// # Safety
    /// As `next`, for a number of bytes. The largest number stands for no limit.
    unsafe fn limit(&mut self, name: &str, options: &mut Vec<(String, String)>) {
        // SAFETY: the caller's promise.
        let bytes: usize = unsafe { self.next() };
        if bytes != usize::MAX && bytes != 0 {
            options.push((name.to_owned(), bytes.to_string()));
        }
    }

    /// # Safety
    /// As `next`, for the fields of a user's stream and an arena.
    unsafe fn stream_and_arena(&mut self, options: &mut Vec<(String, String)>) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            let has_stream: c_int = self.next();
            let stream: *mut c_void = self.next();
            if has_stream != 0 {
                options.push(("has_user_compute_stream".to_owned(), "1".to_owned()));
                options.push(("user_compute_stream".to_owned(), (stream as usize).to_string()));
            }
            let arena: *mut OrtArenaCfg = self.next();
            if !arena.is_null() {
                options.push(("default_memory_arena_cfg".to_owned(), get::<ArenaConfig>(arena)?.text()));
            }
        }
        Ok(())
    }
}

fn fields<T>(options: *const T) -> Result<Fields> {
    if options.is_null() {
        return Err(null("the provider's options"));
    }
    Ok(Fields { base: options.cast(), offset: 0 })
}

/// # Safety
/// `given` is NULL or a struct as version `version` of the API lays it out.
unsafe fn rocm(given: *const OrtROCMProviderOptions, version: u32) -> Result<Vec<(String, String)>> {
    let mut fields = fields(given)?;
    let mut options = Vec::new();
    // SAFETY: the caller's promise; these are the fields in their order.
    unsafe {
        fields.flag("device_id", &mut options);
        fields.flag("miopen_conv_exhaustive_search", &mut options);
        fields.limit("gpu_mem_limit", &mut options);
        fields.flag("arena_extend_strategy", &mut options);
        fields.flag("do_copy_in_default_stream", &mut options);
        fields.stream_and_arena(&mut options)?;
        if version >= 18 {
            // 0 there meant that a user had not asked for graphs, which were an experiment; here they are the default.
            let _: c_int = fields.next();
        }
        for name in ["tunable_op_enable", "tunable_op_tuning_enable", "tunable_op_max_tuning_duration_ms"] {
            fields.flag(name, &mut options);
        }
    }
    Ok(options)
}

/// # Safety
/// As `rocm`.
unsafe fn migraphx(given: *const OrtMIGraphXProviderOptions, version: u32) -> Result<Vec<(String, String)>> {
    let mut fields = fields(given)?;
    let mut options = Vec::new();
    // SAFETY: the caller's promise; these are the fields in their order.
    unsafe {
        fields.flag("device_id", &mut options);
        fields.flag("migraphx_fp16_enable", &mut options);
        if version >= 23 {
            fields.flag("migraphx_fp8_enable", &mut options);
        }
        fields.flag("migraphx_int8_enable", &mut options);
        if version >= 17 {
            fields.flag("migraphx_use_native_calibration_table", &mut options);
            fields.text("migraphx_int8_calibration_table_name", &mut options);
        }
        if version >= 19 {
            compiled_model("save", &mut fields, &mut options);
            compiled_model("load", &mut fields, &mut options);
        }
        if version >= 20 {
            let _exhaustive_tune: u8 = fields.next();
        }
        if version >= 23 {
            fields.limit("migraphx_mem_limit", &mut options);
            fields.flag("migraphx_arena_extend_strategy", &mut options);
        }
    }
    Ok(options)
}

/// Whether a compiled model is saved or loaded, and where.
///
/// # Safety
/// As `Fields::next`, for these two fields.
unsafe fn compiled_model(what: &str, fields: &mut Fields, options: &mut Vec<(String, String)>) {
    // SAFETY: the caller's promise.
    unsafe {
        fields.flag(&format!("migraphx_{what}_compiled_model"), options);
        match options.last().is_some_and(|(_, value)| value != "0") {
            true => fields.text(&format!("migraphx_{what}_model_path"), options),
            // A path that is not used need not be one.
            false => drop(fields.next::<*const c_char>()),
        }
    }
}

/// Declares the functions for one layout of the structs.
macro_rules! structs {
    ($($rocm:ident $migraphx:ident $version:literal;)*) => { api! {$(
        fn $rocm(options: *mut OrtSessionOptions, given: *const OrtROCMProviderOptions) {
            append(options, "ROCM", rocm(given, $version)?)?;
        }

        fn $migraphx(options: *mut OrtSessionOptions, given: *const OrtMIGraphXProviderOptions) {
            append(options, "MIGraphX", migraphx(given, $version)?)?;
        }
    )*}};
}

// One for each version of the API in which a layout changed.
structs! {
    append_rocm_16 append_migraphx_16 16;
    append_rocm_17 append_migraphx_17 17;
    append_rocm_18 append_migraphx_18 18;
    append_rocm_19 append_migraphx_19 19;
    append_rocm_20 append_migraphx_20 20;
    append_rocm_23 append_migraphx_23 23;
}

api! {
    fn SessionOptionsAppendExecutionProvider_CUDA(options: *mut OrtSessionOptions, given: *const OrtCUDAProviderOptions) {
        let mut fields = fields(given)?;
        let mut found = Vec::new();
        fields.flag("device_id", &mut found);
        let _convolution_search: c_int = fields.next();
        fields.limit("gpu_mem_limit", &mut found);
        fields.flag("arena_extend_strategy", &mut found);
        fields.flag("do_copy_in_default_stream", &mut found);
        fields.stream_and_arena(&mut found)?;
        append(options, "CUDA", found)?;
    }

    fn SessionOptionsAppendExecutionProvider_CUDA_V2(options: *mut OrtSessionOptions, given: *const OrtCUDAProviderOptionsV2) {
        append(options, "CUDA", get::<Named>(given)?.0.clone())?;
    }

    fn CreateCUDAProviderOptions(out: *mut *mut OrtCUDAProviderOptionsV2) {
        give(out, Named::default())?;
    }

    fn UpdateCUDAProviderOptions(options: *mut OrtCUDAProviderOptionsV2, keys: *const *const c_char, values: *const *const c_char, count: usize) {
        let options = get_mut::<Named>(options)?;
        for (key, value) in pairs(keys, values, count)? {
            options.set(key, value);
        }
    }

    fn UpdateCUDAProviderOptionsWithValue(options: *mut OrtCUDAProviderOptionsV2, key: *const c_char, value: *mut c_void) {
        let options = get_mut::<Named>(options)?;
        let key = string(key, "the key")?;
        if key != "user_compute_stream" {
            return Err(Failure::argument(format!("only user_compute_stream is set by address, not {key}")));
        }
        options.set("has_user_compute_stream".to_owned(), "1".to_owned());
        options.set(key, (value as usize).to_string());
    }

    fn GetCUDAProviderOptionsByName(options: *const OrtCUDAProviderOptionsV2, key: *const c_char, out: *mut *mut c_void) {
        let key = string(key, "the key")?;
        let pair = get::<Named>(options)?.0.iter().find(|(name, _)| *name == key);
        let Some(address) = pair.and_then(|(_, value)| value.parse::<usize>().ok()) else {
            return Err(Failure::argument(format!("{key} is not set to an address")));
        };
        put(out, address as *mut c_void)?;
    }

    fn GetCUDAProviderOptionsAsString(options: *const OrtCUDAProviderOptionsV2, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        put(out, copy_text(allocator, &c_string(&get::<Named>(options)?.text()))?)?;
    }

    fn CreateROCMProviderOptions(out: *mut *mut OrtROCMProviderOptions) {
        let options = OrtROCMProviderOptions {
            device_id: 0,
            miopen_conv_exhaustive_search: 0,
            gpu_mem_limit: usize::MAX,
            arena_extend_strategy: 0,
            do_copy_in_default_stream: 1,
            has_user_compute_stream: 0,
            user_compute_stream: std::ptr::null_mut(),
            default_memory_arena_cfg: std::ptr::null_mut(),
            enable_hip_graph: 0,
            tunable_op_enable: 0,
            tunable_op_tuning_enable: 0,
            tunable_op_max_tuning_duration_ms: 0,
        };
        put(out, std::ptr::null_mut())?;
        put(out, Box::into_raw(Box::new(options)))?;
    }

    fn UpdateROCMProviderOptions(options: *mut OrtROCMProviderOptions, keys: *const *const c_char, values: *const *const c_char, count: usize) {
        let options = options.as_mut().ok_or_else(|| null("the provider's options"))?;
        for (key, value) in pairs(keys, values, count)? {
            update_rocm(options, &key, &value)?;
        }
    }

    fn GetROCMProviderOptionsAsString(options: *const OrtROCMProviderOptions, allocator: *mut OrtAllocator, out: *mut *mut c_char) {
        let named = Named(rocm(options, 31)?);
        put(out, copy_text(allocator, &c_string(&named.text()))?)?;
    }
}

fn update_rocm(options: &mut OrtROCMProviderOptions, key: &str, value: &str) -> Result<()> {
    let wrong = || Failure::argument(format!("{key}={value} is not allowed"));
    let flag = || match value {
        "True" | "true" => Ok(1),
        "False" | "false" => Ok(0),
        _ => value.parse::<c_int>().map_err(|_| wrong()),
    };
    match key {
        "device_id" => options.device_id = flag()?,
        "miopen_conv_exhaustive_search" => options.miopen_conv_exhaustive_search = flag()?,
        "gpu_mem_limit" => options.gpu_mem_limit = value.parse().map_err(|_| wrong())?,
        "arena_extend_strategy" => {
            options.arena_extend_strategy = match value {
                "kNextPowerOfTwo" | "0" => 0,
                "kSameAsRequested" | "1" => 1,
                _ => return Err(wrong()),
            }
        }
        "do_copy_in_default_stream" => options.do_copy_in_default_stream = flag()?,
        "has_user_compute_stream" => options.has_user_compute_stream = flag()?,
        "user_compute_stream" => {
            options.user_compute_stream = value.parse::<usize>().map_err(|_| wrong())? as *mut c_void;
            options.has_user_compute_stream = 1;
        }
        "enable_hip_graph" => options.enable_hip_graph = flag()?,
        "tunable_op_enable" => options.tunable_op_enable = flag()?,
        "tunable_op_tuning_enable" => options.tunable_op_tuning_enable = flag()?,
        "tunable_op_max_tuning_duration_ms" => options.tunable_op_max_tuning_duration_ms = flag()?,
        // The struct has no place for it, in ONNX Runtime neither.
        "miopen_conv_use_max_workspace" => {}
        _ => return Err(Failure::argument(format!("{key} is no option of the ROCm provider"))),
    }
    Ok(())
}

api_release! {
    fn ReleaseCUDAProviderOptions(OrtCUDAProviderOptionsV2) => Named;
}

pub(crate) unsafe extern "system" fn ReleaseROCMProviderOptions(options: *mut OrtROCMProviderOptions) {
    if !options.is_null() {
        // SAFETY: made by `CreateROCMProviderOptions`, and not used afterwards.
        drop(unsafe { Box::from_raw(options) });
    }
}
