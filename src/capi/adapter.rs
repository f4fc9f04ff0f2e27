//! Adapters: named tensors in place of inputs, as LoRA fine-tuning makes them.

use std::ffi::{c_char, c_void};
use std::sync::{Arc, RwLock};

use super::args;
use super::guard::{call_on, create, create_on, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::types::*;
use super::values::{Foreign, tensor, value_of};
use super::weights::lent;
use crate::error::{Error, excerpt};
use crate::session::{ADAPTER_FORMAT_VERSION, Adapter, AdapterVersions};
use crate::tensor::Value;

impl Handle for rukh_adapter {
    type Object = Arc<Adapter>;
    const KIND: Kind = Kind::Adapter;
    const NAME: &'static str = "rukh_adapter";
}

/// Reads a file of an adapter, which ONNX Runtime calls `.onnx_adapter`.
///
/// The file is mapped, and elements stay in it; they are copied where they are not aligned to their type. It must not
/// shrink while something uses the adapter: a file that does ends the process with SIGBUS.
/// `rukh_adapter_open_from_buffer` takes the bytes of a file that may.
///
/// `path`: not NULL. `out`: not NULL; receives the adapter, which the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for the file,
/// `RUKH_ERROR_INVALID_MODEL` for one that is no adapter, was cut short or damaged (the message says which part),
/// `RUKH_ERROR_UNSUPPORTED` for another version of the format or a type of elements that it does not have,
/// `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_INVALID_ARGUMENT`.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_open(
    path: *const c_char,
    out: *mut *mut rukh_adapter,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let path = args::path(path, "path")?;
        Adapter::open(path).map(Arc::new)
    })
}

/// Reads an adapter from the bytes of its file in memory of the caller's. Elements stay where they are; they are copied
/// where they are not aligned to their type.
///
/// `data`: `size` bytes, which must stay as they are until `deleter` is called; NULL allowed with 0. `deleter`: may be NULL
/// (the memory then outlives the adapter and all that uses it); called once with `data` and `user` when nothing uses the
/// memory any more, also when this call fails. `out`: not NULL; receives the adapter, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_adapter_open`, but for those of files.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_open_from_buffer(
    data: *const c_void,
    size: usize,
    deleter: rukh_deleter,
    user: *mut c_void,
    out: *mut *mut rukh_adapter,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let owner = Foreign { data: data.cast_mut(), user, deleter };
    create(out, error, move || Adapter::from_bytes(&lent(owner, size)?).map(Arc::new))
}

/// Makes an adapter of tensors, to use or to save.
///
/// `names`: `count` names of inputs, each once; not empty; copied; NULL allowed with 0. `values`: as many tensors on the
/// host, shared, whose elements must stay as they are until the adapter and all that uses it are gone; the handles stay the
/// caller's. `adapter_version`, `model_version`: numbers that the adapter keeps and nobody compares. `out`: not NULL;
/// receives the adapter, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an empty name, one that is there twice, what is no tensor, strings, elements of
/// less than a byte and types behind `RUKH_ELEMENT_FLOAT8E5M2FNUZ`, and device memory; `RUKH_ERROR_OUT_OF_MEMORY`, and the
/// handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_create(
    names: *const *const c_char,
    values: *const *const rukh_value,
    count: usize,
    adapter_version: i32,
    model_version: i32,
    out: *mut *mut rukh_adapter,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let names = args::array(names, count, "names")?;
        let values = args::array(values, count, "values")?;
        let mut parameters = Vec::with_capacity(count);
        for (&name, &value) in names.iter().zip(values) {
            let name = args::text(name, "names")?;
            let at = |e: Error| Error::new(e.status, format!("parameter \"{}\": {e}", excerpt(name)));
            let value = value_of(value).map_err(at)?;
            parameters.push((name.to_owned(), tensor(&value).map_err(at)?.clone()));
        }
        let versions = AdapterVersions { adapter: adapter_version, model: model_version };
        Adapter::of(versions, parameters).map(Arc::new)
    })
}

/// Writes an adapter to a file that ONNX Runtime reads as well. A file that was there is replaced once all is written.
///
/// `adapter`: not NULL. `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_IO`,
/// `RUKH_ERROR_UNSUPPORTED` for an adapter of 2 GiB or more, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_save(
    adapter: *const rukh_adapter,
    path: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(adapter, error, |adapter| adapter.save(args::path(path, "path")?))
}

/// Destroys an adapter. Options, runs, sessions and values that use it keep what they need of it. NULL, and a pointer that
/// is no live handle of this kind, is left alone.
///
/// `adapter`: may be NULL. Threads: any.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_destroy(adapter: *mut rukh_adapter) {
    destroy(adapter);
}

/// The versions that an adapter tells: of the file's format, of itself, and of the model that it was made for.
///
/// `adapter`: not NULL. `format_version`, `adapter_version`, `model_version`: may be NULL; receive the numbers. `error`: may
/// be NULL. Threads: any, at the same time. Errors: the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_versions(
    adapter: *const rukh_adapter,
    format_version: *mut i32,
    adapter_version: *mut i32,
    model_version: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(adapter, error, |adapter| {
        args::put_if_wanted(format_version, ADAPTER_FORMAT_VERSION);
        args::put_if_wanted(adapter_version, adapter.versions().adapter);
        args::put_if_wanted(model_version, adapter.versions().model);
        Ok(())
    })
}

/// The number of tensors in an adapter.
///
/// `adapter`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_parameter_count(
    adapter: *const rukh_adapter,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(adapter, error, |adapter| args::put(count, "count", adapter.parameters().len()))
}

/// The name of the parameter at `index`: of the input that it is for.
///
/// `adapter`: not NULL. `index`: from 0, in the file's order. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
/// `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
/// or a buffer that is too small, and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_parameter_name(
    adapter: *const rukh_adapter,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(adapter, error, |adapter| {
        let parameter = args::item(adapter.parameters(), index, "parameter")?;
        args::put_text(&parameter.name, buf, cap, needed)
    })
}

/// The tensor of the parameter at `index`.
///
/// `adapter`: not NULL. `index`: from 0, in the file's order. `out`: not NULL; receives a value that shares the adapter's
/// elements, which must not be written, and which the caller destroys; it may outlive the adapter. NULL on failure. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
/// handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_adapter_parameter_value(
    adapter: *const rukh_adapter,
    index: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(adapter, out, error, |adapter| {
        let parameter = args::item(adapter.parameters(), index, "parameter")?;
        Ok(RwLock::new(Value::Tensor(parameter.tensor.clone())))
    })
}

/// Has runs take inputs from an adapter: the model's initializers that are inputs as well, and other inputs, that a run is
/// not given. Several adapters may be added; where two have one parameter, the one added last counts.
///
/// For each set of such initializers a program is made when a run first has it; four are kept. A session with a GPU copies
/// what only the GPU reads into its memory when a run first needs it; it stays there as long as the adapter is used, for all
/// sessions on that GPU. Such a first run must not be captured.
///
/// `options`: not NULL. Runs that have begun keep theirs. `adapter`: not NULL; kept alive by the options; the handle stays
/// the caller's. `error`: may be NULL. Threads: any. Errors: the handle errors. Runs fail with `RUKH_ERROR_NOT_FOUND` where the
/// model has no such input, and with `RUKH_ERROR_INVALID_INPUT` for another type or shape; the message names adapter and
/// parameter.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_run_options_add_adapter(
    options: *mut rukh_run_options,
    adapter: *const rukh_adapter,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let adapter = handles::pin(adapter)?;
        locked(options).adapters.push(Arc::clone(&adapter));
        Ok(())
    })
}

/// Has sessions take an adapter's tensors in place of initializers of the model's main graph, for good: weights may be
/// packed, and runs cost what they cost without an adapter. Several may be added; where two have one parameter, the one
/// added last counts, and a tensor of `rukh_session_options_add_initializer` counts before both.
///
/// Nothing is copied where a kernel takes the elements as they lie. Sessions of one environment that are given the same
/// adapter for the same model share it. An initializer that is an input as well may get any shape that the input may; runs
/// may still give it, too.
///
/// `options`: not NULL. `adapter`: not NULL; kept alive by the options and by sessions made from them; the handle stays the
/// caller's. `error`: may be NULL. Threads: any. Errors: the handle errors. Making the session fails with
/// `RUKH_ERROR_NOT_FOUND` where the model has no such initializer, and with `RUKH_ERROR_INVALID_ARGUMENT` for another type or
/// shape; the message names adapter and parameter.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_add_adapter(
    options: *mut rukh_session_options,
    adapter: *const rukh_adapter,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let adapter = handles::pin(adapter)?;
        locked(options).options.given.adapters.push(Arc::clone(&adapter));
        Ok(())
    })
}
