//! The functions of the API that make and change session options.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use ort_sys::{
    OrtCustomCreateThreadFn, OrtCustomJoinThreadFn, OrtKeyValuePairs, OrtLoggingFunction, OrtSessionOptions,
    OrtValue, os_char,
};
use rukh_sys::rukh_value_clone;

use crate::failure::{Failure, Result, api, api_release};
use crate::handle::{array, get, get_mut, give, put, string};
use crate::key_values::KeyValues;
use crate::library;
use crate::session_options::Options;
use crate::value::Value;

api! {
    fn CreateSessionOptions(out: *mut *mut OrtSessionOptions) {
        give(out, Options::default())?;
    }

    fn CloneSessionOptions(options: *const OrtSessionOptions, out: *mut *mut OrtSessionOptions) {
        give(out, get::<Options>(options)?.clone())?;
    }

    // The file is written when the session is made.
    fn SetOptimizedModelFilePath(options: *mut OrtSessionOptions, path: *const os_char) {
        let path = string(path, "the path")?;
        get_mut::<Options>(options)?.optimized_path = (!path.is_empty()).then_some(path);
    }

    // Nodes run one after the other in both modes.
    fn SetSessionExecutionMode(options: *mut OrtSessionOptions, mode: i32) {
        get_mut::<Options>(options)?.execution_mode = mode;
    }

    fn GetSessionExecutionMode(options: *const OrtSessionOptions, out: *mut i32) {
        put(out, get::<Options>(options)?.execution_mode)?;
    }

    fn EnableProfiling(options: *mut OrtSessionOptions, prefix: *const os_char) {
        let prefix = Options::profile_prefix(string(prefix, "the prefix of the file")?);
        get_mut::<Options>(options)?.profile = Some(prefix);
    }

    fn DisableProfiling(options: *mut OrtSessionOptions) {
        get_mut::<Options>(options)?.profile = None;
    }

    // Memory is planned for each combination of shapes in any case.
    fn EnableMemPattern(options: *mut OrtSessionOptions) {
        get_mut::<Options>(options)?.memory_pattern = true;
    }

    fn DisableMemPattern(options: *mut OrtSessionOptions) {
        get_mut::<Options>(options)?.memory_pattern = false;
    }

    fn GetMemPatternEnabled(options: *const OrtSessionOptions, out: *mut c_int) {
        put(out, get::<Options>(options)?.memory_pattern.into())?;
    }

    fn EnableCpuMemArena(options: *mut OrtSessionOptions) {
        get::<Options>(options)?;
    }

    fn DisableCpuMemArena(options: *mut OrtSessionOptions) {
        get::<Options>(options)?;
    }

    fn SetSessionLogId(options: *mut OrtSessionOptions, id: *const c_char) {
        get_mut::<Options>(options)?.log_id = string(id, "the name")?;
    }

    fn SetSessionLogVerbosityLevel(options: *mut OrtSessionOptions, _level: c_int) {
        get::<Options>(options)?;
    }

    fn SetSessionLogSeverityLevel(options: *mut OrtSessionOptions, level: c_int) {
        if !(-1..=4).contains(&level) {
            return Err(Failure::argument(format!("severity {level} is none of 0 to 4, and -1 for the environment's")));
        }
        get_mut::<Options>(options)?.log_severity = (level >= 0).then_some(level);
    }

    fn SetUserLoggingFunction(options: *mut OrtSessionOptions, function: Option<OrtLoggingFunction>, parameter: *mut c_void) {
        get_mut::<Options>(options)?.log = function.map(|function| (function, parameter));
    }

    fn SetSessionGraphOptimizationLevel(options: *mut OrtSessionOptions, level: i32) {
        if ![0, 1, 2, 3, 99].contains(&level) {
            return Err(Failure::argument(format!("optimization level {level} is none of 0, 1, 2, 3 and 99")));
        }
        get_mut::<Options>(options)?.optimization = level;
    }

    fn SetIntraOpNumThreads(options: *mut OrtSessionOptions, threads: c_int) {
        if threads < 0 {
            return Err(Failure::argument(format!("{threads} threads were asked for; 0, for all, or more are allowed")));
        }
        get_mut::<Options>(options)?.threads = threads;
    }

    // There is no second pool: nodes run one after the other.
    fn SetInterOpNumThreads(options: *mut OrtSessionOptions, _threads: c_int) {
        get::<Options>(options)?;
    }

    fn DisablePerSessionThreads(options: *mut OrtSessionOptions) {
        get_mut::<Options>(options)?.threads = 0;
    }

    // Runs of the same inputs give the same outputs in any case.
    fn SetDeterministicCompute(options: *mut OrtSessionOptions, _value: bool) {
        get::<Options>(options)?;
    }

    fn AddFreeDimensionOverride(options: *mut OrtSessionOptions, denotation: *const c_char, _size: i64) {
        get::<Options>(options)?;
        let denotation = string(denotation, "the denotation")?;
        return Err(Failure::absent(format!("dimensions cannot be fixed by their denotation (\"{denotation}\"); by name they can")));
    }

    fn AddFreeDimensionOverrideByName(options: *mut OrtSessionOptions, name: *const c_char, size: i64) {
        let name = string(name, "the name")?;
        let dimensions = &mut get_mut::<Options>(options)?.dimensions;
        dimensions.retain(|(known, _)| *known != name);
        dimensions.push((name, size));
    }

    fn AddSessionConfigEntry(options: *mut OrtSessionOptions, key: *const c_char, value: *const c_char) {
        let (key, value) = (string(key, "the key")?, string(value, "the value")?);
        if key.is_empty() {
            return Err(Failure::argument("the key is empty"));
        }
        get_mut::<Options>(options)?.entries.insert(key, value);
    }

    fn HasSessionConfigEntry(options: *const OrtSessionOptions, key: *const c_char, out: *mut c_int) {
        let there = get::<Options>(options)?.entries.contains_key(&string(key, "the key")?);
        put(out, there.into())?;
    }

    fn GetSessionConfigEntry(options: *const OrtSessionOptions, key: *const c_char, value: *mut c_char, size: *mut usize) {
        let key = string(key, "the key")?;
        let Some(text) = get::<Options>(options)?.entries.get(&key) else {
            return Err(Failure::argument(format!("the entry \"{key}\" is not set")));
        };
        copy_sized(text.as_bytes(), value, size)?;
    }

    fn GetSessionOptionsConfigEntries(options: *const OrtSessionOptions, out: *mut *mut OrtKeyValuePairs) {
        let mut pairs = KeyValues::default();
        for (key, value) in &get::<Options>(options)?.entries {
            pairs.set(key, value);
        }
        give(out, pairs)?;
    }

    fn AddInitializer(options: *mut OrtSessionOptions, name: *const c_char, value: *const OrtValue) {
        add_initializer(options, string(name, "the name")?, value)?;
    }

    fn AddExternalInitializers(options: *mut OrtSessionOptions, names: *const *const c_char, values: *const *const OrtValue, count: usize) {
        for (name, value) in array(names, count, "names")?.iter().zip(array(values, count, "values")?) {
            add_initializer(options, string(*name, "a name")?, *value)?;
        }
    }

    fn AddExternalInitializersFromMemory(options: *mut OrtSessionOptions, names: *const *const os_char, buffers: *const *mut c_char, sizes: *const usize, count: usize) {
        let options = get_mut::<Options>(options)?;
        let (names, sizes) = (array(names, count, "the files' names")?, array(sizes, count, "the sizes")?);
        for ((name, buffer), size) in names.iter().zip(array(buffers, count, "the buffers")?).zip(sizes) {
            if buffer.is_null() && *size > 0 {
                return Err(crate::handle::null("a buffer"));
            }
            options.external_files.push((string(*name, "a file's name")?, buffer.cast_const(), *size));
        }
    }

    fn SessionOptionsSetCustomCreateThreadFn(options: *mut OrtSessionOptions, function: OrtCustomCreateThreadFn) {
        own_threads(options, function.is_some())?;
    }

    fn SessionOptionsSetCustomThreadCreationOptions(options: *mut OrtSessionOptions, creation: *mut c_void) {
        own_threads(options, !creation.is_null())?;
    }

    fn SessionOptionsSetCustomJoinThreadFn(options: *mut OrtSessionOptions, function: OrtCustomJoinThreadFn) {
        own_threads(options, function.is_some())?;
    }

    // Called while a session is made with the options, on another thread: nothing else of them is touched.
    fn SessionOptionsSetLoadCancellationFlag(options: *mut OrtSessionOptions, cancel: bool) {
        get::<Options>(options)?.openings.cancel(cancel)?;
    }
}

/// A tensor in the place of an initializer. Its elements are shared; the caller keeps them.
///
/// # Safety
/// The pointers are NULL or live objects.
unsafe fn add_initializer(
    options: *mut OrtSessionOptions,
    name: String,
    value: *const OrtValue,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (options, value) = unsafe { (get_mut::<Options>(options)?, get::<Value>(value)?.pointer()?) };
    // SAFETY: live handle, a place for the value.
    let shared = library::make(|out, error| unsafe { rukh_value_clone(value, out, error) })?;
    options.initializers.retain(|(known, _)| *known != name);
    options.initializers.push((name, Arc::new(shared)));
    Ok(())
}

/// Threads that the caller makes: librukh makes its own.
///
/// # Safety
/// `options` is NULL or live options.
unsafe fn own_threads(options: *const OrtSessionOptions, given: bool) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { get::<Options>(options) }?;
    if given {
        Err(Failure::absent("rukh makes its threads itself: custom thread functions are not called"))
    } else {
        Ok(())
    }
}

/// Copies a text into a caller's buffer: `size` says how large that is and receives what the text takes with its NUL.
///
/// # Safety
/// `buffer` is NULL or has `*size` bytes; `size` is NULL or may be read and written.
pub unsafe fn copy_sized(text: &[u8], buffer: *mut c_char, size: *mut usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let Some(size) = (unsafe { size.as_mut() }) else {
        return Err(crate::handle::null("the size of the buffer"));
    };
    let (room, needed) = (*size, text.len() + 1);
    *size = needed;
    if buffer.is_null() {
        return Ok(());
    }
    if room < needed {
        return Err(Failure::argument(format!("the text takes {needed} bytes; the buffer has {room}")));
    }
    // SAFETY: the buffer has room, as was checked.
    unsafe {
        buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
    Ok(())
}

api_release! {
    fn ReleaseSessionOptions(OrtSessionOptions) => Options;
}
