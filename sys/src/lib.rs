//! The C API of librukh as Rust declares it. `rukh/rukh.h` says what each function does.
//!
//! Made from the library's source by `RUKH_UPDATE=1 cargo test --test header`. Nothing is linked: a library that uses
//! this names librukh in its build script, a program may bring it along as the crate `rukh`.
#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

/// What a function returns: `RUKH_OK` or one of the `RUKH_ERROR_…` codes.
pub type rukh_status = i32;
pub const RUKH_OK: rukh_status = 0;
pub const RUKH_ERROR_INVALID_ARGUMENT: rukh_status = 1;
pub const RUKH_ERROR_INVALID_HANDLE: rukh_status = 2;
pub const RUKH_ERROR_NOT_FOUND: rukh_status = 3;
pub const RUKH_ERROR_IO: rukh_status = 4;
pub const RUKH_ERROR_INVALID_MODEL: rukh_status = 5;
pub const RUKH_ERROR_UNSUPPORTED: rukh_status = 6;
pub const RUKH_ERROR_INVALID_INPUT: rukh_status = 7;
pub const RUKH_ERROR_INVALID_DATA: rukh_status = 8;
pub const RUKH_ERROR_OUT_OF_MEMORY: rukh_status = 9;
pub const RUKH_ERROR_CANCELLED: rukh_status = 10;
pub const RUKH_ERROR_DEVICE: rukh_status = 11;
pub const RUKH_ERROR_POISONED: rukh_status = 12;
pub const RUKH_ERROR_FORKED: rukh_status = 13;
pub const RUKH_ERROR_INTERNAL: rukh_status = 14;

/// The type of a tensor's elements.
pub type rukh_element_type = i32;
pub const RUKH_ELEMENT_UNDEFINED: rukh_element_type = 0;
pub const RUKH_ELEMENT_FLOAT: rukh_element_type = 1;
pub const RUKH_ELEMENT_UINT8: rukh_element_type = 2;
pub const RUKH_ELEMENT_INT8: rukh_element_type = 3;
pub const RUKH_ELEMENT_UINT16: rukh_element_type = 4;
pub const RUKH_ELEMENT_INT16: rukh_element_type = 5;
pub const RUKH_ELEMENT_INT32: rukh_element_type = 6;
pub const RUKH_ELEMENT_INT64: rukh_element_type = 7;
pub const RUKH_ELEMENT_STRING: rukh_element_type = 8;
pub const RUKH_ELEMENT_BOOL: rukh_element_type = 9;
pub const RUKH_ELEMENT_FLOAT16: rukh_element_type = 10;
pub const RUKH_ELEMENT_DOUBLE: rukh_element_type = 11;
pub const RUKH_ELEMENT_UINT32: rukh_element_type = 12;
pub const RUKH_ELEMENT_UINT64: rukh_element_type = 13;
pub const RUKH_ELEMENT_COMPLEX64: rukh_element_type = 14;
pub const RUKH_ELEMENT_COMPLEX128: rukh_element_type = 15;
pub const RUKH_ELEMENT_BFLOAT16: rukh_element_type = 16;
pub const RUKH_ELEMENT_FLOAT8E4M3FN: rukh_element_type = 17;
pub const RUKH_ELEMENT_FLOAT8E4M3FNUZ: rukh_element_type = 18;
pub const RUKH_ELEMENT_FLOAT8E5M2: rukh_element_type = 19;
pub const RUKH_ELEMENT_FLOAT8E5M2FNUZ: rukh_element_type = 20;
pub const RUKH_ELEMENT_UINT4: rukh_element_type = 21;
pub const RUKH_ELEMENT_INT4: rukh_element_type = 22;
pub const RUKH_ELEMENT_FLOAT4E2M1: rukh_element_type = 23;
pub const RUKH_ELEMENT_FLOAT8E8M0: rukh_element_type = 24;
pub const RUKH_ELEMENT_UINT2: rukh_element_type = 25;
pub const RUKH_ELEMENT_INT2: rukh_element_type = 26;
pub const RUKH_ELEMENT_FLOAT6E2M3: rukh_element_type = 27;
pub const RUKH_ELEMENT_FLOAT6E3M2: rukh_element_type = 28;

/// What a value is.
pub type rukh_kind = i32;
pub const RUKH_KIND_UNDEFINED: rukh_kind = 0;
pub const RUKH_KIND_TENSOR: rukh_kind = 1;
pub const RUKH_KIND_SEQUENCE: rukh_kind = 2;
pub const RUKH_KIND_MAP: rukh_kind = 3;
pub const RUKH_KIND_OPTIONAL: rukh_kind = 4;

/// How much a log message matters.
pub type rukh_log_level = i32;
pub const RUKH_LOG_DEBUG: rukh_log_level = 0;
pub const RUKH_LOG_INFO: rukh_log_level = 1;
pub const RUKH_LOG_WARNING: rukh_log_level = 2;
pub const RUKH_LOG_ERROR: rukh_log_level = 3;

/// A text of a log message.
pub type rukh_log_text = i32;
pub const RUKH_LOG_TEXT_MESSAGE: rukh_log_text = 0;
pub const RUKH_LOG_TEXT_CATEGORY: rukh_log_text = 1;
pub const RUKH_LOG_TEXT_SESSION: rukh_log_text = 2;
pub const RUKH_LOG_TEXT_RUN: rukh_log_text = 3;
pub const RUKH_LOG_TEXT_NODE: rukh_log_text = 4;
pub const RUKH_LOG_TEXT_LOCATION: rukh_log_text = 5;

/// How a model file comes into memory.
pub type rukh_load_mode = i32;
pub const RUKH_LOAD_MAP: rukh_load_mode = 0;
pub const RUKH_LOAD_READ: rukh_load_mode = 1;

/// How far the model's graph is rewritten before it runs.
pub type rukh_optimization = i32;
pub const RUKH_OPTIMIZATION_NONE: rukh_optimization = 0;
pub const RUKH_OPTIMIZATION_BASIC: rukh_optimization = 1;
pub const RUKH_OPTIMIZATION_ALL: rukh_optimization = 2;

/// What happens to a node that none of the wanted providers can take.
pub type rukh_fallback = i32;
pub const RUKH_FALLBACK_CPU: rukh_fallback = 0;
pub const RUKH_FALLBACK_ERROR: rukh_fallback = 1;

/// Memory, as a device sees it.
pub type rukh_memory_kind = i32;
pub const RUKH_MEMORY_DEVICE: rukh_memory_kind = 0;
pub const RUKH_MEMORY_PINNED: rukh_memory_kind = 1;
pub const RUKH_MEMORY_HOST: rukh_memory_kind = 2;

/// What another API exported memory as.
pub type rukh_external_handle = i32;
pub const RUKH_EXTERNAL_OPAQUE_FD: rukh_external_handle = 0;
pub const RUKH_EXTERNAL_DMA_BUF: rukh_external_handle = 1;
pub const RUKH_EXTERNAL_WIN32: rukh_external_handle = 2;

/// Whether an artifact suits a device and options.
pub type rukh_artifact_verdict = i32;
pub const RUKH_ARTIFACT_OPTIMAL: rukh_artifact_verdict = 0;
pub const RUKH_ARTIFACT_WORKS: rukh_artifact_verdict = 1;
pub const RUKH_ARTIFACT_UNFIT: rukh_artifact_verdict = 2;

/// How often an input or output of an operator may be there.
pub type rukh_arity = i32;
pub const RUKH_ARITY_REQUIRED: rukh_arity = 0;
pub const RUKH_ARITY_OPTIONAL: rukh_arity = 1;
pub const RUKH_ARITY_VARIADIC: rukh_arity = 2;
pub const RUKH_ARITY_VARIADIC_SOME: rukh_arity = 3;

/// The type of an attribute.
pub type rukh_attribute_type = i32;
pub const RUKH_ATTRIBUTE_FLOAT: rukh_attribute_type = 1;
pub const RUKH_ATTRIBUTE_INT: rukh_attribute_type = 2;
pub const RUKH_ATTRIBUTE_STRING: rukh_attribute_type = 3;
pub const RUKH_ATTRIBUTE_TENSOR: rukh_attribute_type = 4;
pub const RUKH_ATTRIBUTE_FLOATS: rukh_attribute_type = 6;
pub const RUKH_ATTRIBUTE_INTS: rukh_attribute_type = 7;
pub const RUKH_ATTRIBUTE_STRINGS: rukh_attribute_type = 8;

/// A text about where a node runs.
pub type rukh_placement_fact = i32;
pub const RUKH_PLACEMENT_NODE: rukh_placement_fact = 0;
pub const RUKH_PLACEMENT_OPERATOR: rukh_placement_fact = 1;
pub const RUKH_PLACEMENT_PROVIDER: rukh_placement_fact = 2;
pub const RUKH_PLACEMENT_REASON: rukh_placement_fact = 3;

/// A text that the model file carries about itself.
pub type rukh_model_text = i32;
pub const RUKH_MODEL_PRODUCER_NAME: rukh_model_text = 0;
pub const RUKH_MODEL_PRODUCER_VERSION: rukh_model_text = 1;
pub const RUKH_MODEL_DOMAIN: rukh_model_text = 2;
pub const RUKH_MODEL_GRAPH_NAME: rukh_model_text = 3;
pub const RUKH_MODEL_DESCRIPTION: rukh_model_text = 4;

/// A count of what opening a session did.
pub type rukh_load_counter = i32;
pub const RUKH_LOAD_MAPPED_BYTES: rukh_load_counter = 0;
pub const RUKH_LOAD_READ_BYTES: rukh_load_counter = 1;
pub const RUKH_LOAD_COPIED_BYTES: rukh_load_counter = 2;
pub const RUKH_LOAD_PACKED_BYTES: rukh_load_counter = 3;
pub const RUKH_LOAD_COPIED_WEIGHTS: rukh_load_counter = 4;
pub const RUKH_LOAD_SHARED_BYTES: rukh_load_counter = 5;

/// The version of the binary interface: `major * 1000000 + minor * 1000 + patch`.
pub const RUKH_ABI_VERSION: u32 = 1001;

/// The version of the library that this header came with, its first number.
pub const RUKH_VERSION_MAJOR: u32 = 0;

/// The second number of the version of the library that this header came with.
pub const RUKH_VERSION_MINOR: u32 = 1;

/// The third number of the version of the library that this header came with.
pub const RUKH_VERSION_PATCH: u32 = 0;

/// Why a call failed: a code and a message.
#[repr(C)]
pub struct rukh_error {
    _private: [u8; 0],
}

/// How an environment is made.
#[repr(C)]
pub struct rukh_environment_options {
    _private: [u8; 0],
}

/// What sessions share: threads and the log.
#[repr(C)]
pub struct rukh_environment {
    _private: [u8; 0],
}

/// A device that can run models.
#[repr(C)]
pub struct rukh_device {
    _private: [u8; 0],
}

/// How a session is made.
#[repr(C)]
pub struct rukh_session_options {
    _private: [u8; 0],
}

/// A model, ready to run.
#[repr(C)]
pub struct rukh_session {
    _private: [u8; 0],
}

/// A tensor, sequence, map or optional.
#[repr(C)]
pub struct rukh_value {
    _private: [u8; 0],
}

/// How one run behaves; cancels it from another thread.
#[repr(C)]
pub struct rukh_run_options {
    _private: [u8; 0],
}

/// What runs of one session read and write, kept between runs.
#[repr(C)]
pub struct rukh_io_binding {
    _private: [u8; 0],
}

/// A run that was started, or a run or a copy whose work is queued on a device.
#[repr(C)]
pub struct rukh_completion {
    _private: [u8; 0],
}

/// A queue of work for a device, which the caller orders.
#[repr(C)]
pub struct rukh_stream {
    _private: [u8; 0],
}

/// A message of the log, during the callback that receives it.
#[repr(C)]
pub struct rukh_log_record {
    _private: [u8; 0],
}

/// Where a node of a session runs, during the callback that is told.
#[repr(C)]
pub struct rukh_placement {
    _private: [u8; 0],
}

/// Memory that another API exported.
#[repr(C)]
pub struct rukh_external_memory {
    _private: [u8; 0],
}

/// How a model is compiled to an artifact.
#[repr(C)]
pub struct rukh_compile_options {
    _private: [u8; 0],
}

/// A model that was compiled, to ask about.
#[repr(C)]
pub struct rukh_artifact {
    _private: [u8; 0],
}

/// Named tensors in place of a model's inputs, as LoRA fine-tuning makes them.
#[repr(C)]
pub struct rukh_adapter {
    _private: [u8; 0],
}

/// An operator that the caller defines.
#[repr(C)]
pub struct rukh_operator {
    _private: [u8; 0],
}

/// A node whose operator the caller defined, during a callback that is asked about it.
#[repr(C)]
pub struct rukh_node_info {
    _private: [u8; 0],
}

/// One call of the caller's kernel, during the callback that computes.
#[repr(C)]
pub struct rukh_kernel_context {
    _private: [u8; 0],
}

/// What a shared library of operators adds its operators to, while it is asked for them.
#[repr(C)]
pub struct rukh_operator_registry {
    _private: [u8; 0],
}

/// DLPack's own struct.
#[repr(C)]
pub struct DLManagedTensor {
    _private: [u8; 0],
}

/// DLPack's own struct.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    _private: [u8; 0],
}

/// The functions as a table of pointers; `rukh/rukh_table.h` has its members.
#[repr(C)]
pub struct rukh_table {
    _private: [u8; 0],
}

/// Receives a log message.
pub type rukh_log_record_callback =
    Option<unsafe extern "C" fn(record: *const rukh_log_record, user: *mut c_void)>;

/// Is told where a node runs.
pub type rukh_placement_callback =
    Option<unsafe extern "C" fn(placement: *const rukh_placement, user: *mut c_void) -> rukh_status>;

/// Is told that a run of `rukh_session_start` has ended, once, on a thread of the library.
pub type rukh_completion_callback =
    Option<unsafe extern "C" fn(completion: *const rukh_completion, user: *mut c_void)>;

/// Receives a log message for `rukh_environment_options_set_log`, which is deprecated: a NUL-terminated text that is valid during the call.
pub type rukh_log_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, level: rukh_log_level, message: *const c_char)>;

/// Releases what `user` stands for; called once, from any thread, when the library will not use `user` again.
pub type rukh_release = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Is told what compiling a model does now, and how many steps of how many are done.
pub type rukh_progress_callback = Option<
    unsafe extern "C" fn(user: *mut c_void, step: *const c_char, done: u64, total: u64) -> rukh_status,
>;

/// Asks the caller about a node whose operator it defined: for the shapes of outputs, for the state of a kernel, for the temporary memory of a GPU kernel.
pub type rukh_node_callback =
    Option<unsafe extern "C" fn(node: *mut rukh_node_info, user: *mut c_void) -> rukh_status>;

/// Computes the outputs of a node whose operator the caller defined.
pub type rukh_kernel_callback =
    Option<unsafe extern "C" fn(context: *mut rukh_kernel_context, user: *mut c_void) -> rukh_status>;

/// One part of a loop, of `rukh_kernel_context_parallel_for` or of the library's own.
pub type rukh_parallel_body = Option<unsafe extern "C" fn(index: usize, user: *mut c_void)>;

/// Runs a loop of the library on threads of the caller's: calls `body` with each number below `count` and with `argument`, in any order and on any threads, the calling one too, and returns when every call has returned; `body` and `argument` are not to be used afterwards.
pub type rukh_parallel_for = Option<
    unsafe extern "C" fn(count: usize, body: rukh_parallel_body, argument: *mut c_void, user: *mut c_void),
>;

/// Allocates device memory for `rukh_session_options_set_external_allocator`.
pub type rukh_device_alloc = Option<unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void>;

/// Frees device memory that a `rukh_device_alloc` gave.
pub type rukh_device_free = Option<unsafe extern "C" fn(address: *mut c_void, user: *mut c_void)>;

/// Gives back device memory that a caller's allocator keeps unused.
pub type rukh_device_empty_cache = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Releases memory that a tensor was laid over; called once, from any thread, when the last value, run and session that use the memory are done with it.
pub type rukh_deleter = Option<unsafe extern "C" fn(data: *mut c_void, user: *mut c_void)>;

/// Receives the result of `rukh_session_run_async`, which is deprecated, once, on a thread of the library.
pub type rukh_run_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        status: rukh_status,
        outputs: *const *mut rukh_value,
        output_count: usize,
        error: *mut rukh_error,
    ),
>;

unsafe extern "C" {
    /// The version of the library as `major * 1000000 + minor * 1000 + patch`.
    pub fn rukh_version() -> u32;
    /// The version of the library as text, such as "0.1.0".
    pub fn rukh_version_string() -> *const c_char;
    /// The `RUKH_ABI_VERSION` of the library that runs.
    pub fn rukh_abi_version() -> u32;
    /// The functions of the library as a table of pointers, for who loads the library at run time: one symbol to look up in place of all.
    pub fn rukh_api(version: u32) -> *const rukh_table;
    /// The status code of an error.
    pub fn rukh_error_code(error: *const rukh_error) -> rukh_status;
    /// The message of an error: it names the thing, the value that was given and what is allowed.
    pub fn rukh_error_message(error: *const rukh_error) -> *const c_char;
    /// Makes an error: for libraries on top of this one, whose functions report failures as this one's do.
    pub fn rukh_error_create(code: rukh_status, message: *const c_char) -> *mut rukh_error;
    /// Destroys an error.
    pub fn rukh_error_destroy(error: *mut rukh_error);
    /// The name of a status code, such as "RUKH_ERROR_NOT_FOUND"; "unknown" for a code that this version does not know.
    pub fn rukh_status_name(status: rukh_status) -> *const c_char;
    /// Makes options for an environment, all at their defaults.
    pub fn rukh_environment_options_create(
        out: *mut *mut rukh_environment_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys options.
    pub fn rukh_environment_options_destroy(options: *mut rukh_environment_options);
    /// Sets an option by its name.
    pub fn rukh_environment_options_set(
        options: *mut rukh_environment_options,
        key: *const c_char,
        value: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an option, in a form that `rukh_environment_options_set` takes.
    pub fn rukh_environment_options_get(
        options: *const rukh_environment_options,
        key: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the option at `index`; together with `rukh_environment_options_get` this lists them all.
    pub fn rukh_environment_options_key(
        options: *const rukh_environment_options,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes an environment: the threads and the log that sessions share.
    pub fn rukh_environment_create(
        options: *const rukh_environment_options,
        out: *mut *mut rukh_environment,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys an environment.
    pub fn rukh_environment_destroy(environment: *mut rukh_environment);
    /// The number of threads that compute for one run, the calling one included.
    pub fn rukh_environment_thread_count(
        environment: *const rukh_environment,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets who receives log messages of `level` and above.
    pub fn rukh_environment_options_set_log_callback(
        options: *mut rukh_environment_options,
        level: rukh_log_level,
        callback: rukh_log_record_callback,
        user: *mut c_void,
        release: rukh_release,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Deprecated: use `rukh_environment_options_set_log_callback`, whose callback is told more.
    #[deprecated(note = "use rukh_environment_options_set_log_callback")]
    pub fn rukh_environment_options_set_log(
        options: *mut rukh_environment_options,
        level: rukh_log_level,
        callback: rukh_log_callback,
        user: *mut c_void,
        release: rukh_release,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Changes from which level on messages of an environment and its sessions are received.
    pub fn rukh_environment_set_log_level(
        environment: *mut rukh_environment,
        level: rukh_log_level,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// How much the message matters.
    pub fn rukh_log_record_level(
        record: *const rukh_log_record,
        level: *mut rukh_log_level,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A text of the message; "" where there is nothing to tell.
    pub fn rukh_log_record_text(
        record: *const rukh_log_record,
        which: rukh_log_text,
        text: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets the library compute on threads of the caller's, such as those of OpenMP or TBB: the environment then starts none to compute with.
    pub fn rukh_environment_options_set_parallel_for(
        options: *mut rukh_environment_options,
        callback: rukh_parallel_for,
        threads: usize,
        user: *mut c_void,
        release: rukh_release,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of devices of this machine that can run models.
    pub fn rukh_environment_device_count(
        environment: *const rukh_environment,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A description of the device at `index`.
    pub fn rukh_environment_device(
        environment: *const rukh_environment,
        index: usize,
        out: *mut *mut rukh_device,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The device of a provider by its number there, which is what options and functions call `device_id`.
    pub fn rukh_environment_find_device(
        environment: *const rukh_environment,
        provider: *const c_char,
        device_id: usize,
        out: *mut *mut rukh_device,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a device description.
    pub fn rukh_device_destroy(device: *mut rukh_device);
    /// The name of the provider that runs nodes on the device: "cpu" or "hip".
    pub fn rukh_device_provider(
        device: *const rukh_device,
        provider: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The device's number among those of its provider, which is what options and functions call `device_id`.
    pub fn rukh_device_id(
        device: *const rukh_device,
        device_id: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The device's name as its maker gives it.
    pub fn rukh_device_name(
        device: *const rukh_device,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The architecture whose machine code the device runs, such as "x86_64" or "gfx942".
    pub fn rukh_device_arch(
        device: *const rukh_device,
        arch: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// All the memory of the device in bytes, used or not; 0 when it is not known.
    pub fn rukh_device_memory(
        device: *const rukh_device,
        bytes: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of further facts about the device, each a key and a value of text.
    pub fn rukh_device_property_count(
        device: *const rukh_device,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The fact at `index`; see `rukh_device_property_count`.
    pub fn rukh_device_property(
        device: *const rukh_device,
        index: usize,
        key: *mut *const c_char,
        value: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The fact of this name; see `rukh_device_property_count`.
    pub fn rukh_device_find_property(
        device: *const rukh_device,
        key: *const c_char,
        value: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of providers this version knows, with or without a device.
    pub fn rukh_provider_count(count: *mut usize, error: *mut *mut rukh_error) -> rukh_status;
    /// The name of the provider at `index`: "hip" or "cpu".
    pub fn rukh_provider_name(
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Why a provider has no device on this machine, for people; "" when it has one.
    pub fn rukh_environment_provider_reason(
        environment: *const rukh_environment,
        provider: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Facts about this library and the GPU runtimes that it found or missed here, as a JSON object: what a report about a defect needs besides the devices.
    pub fn rukh_report(
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes an arena for a device that sessions of the environment share: those with session option "use_env_allocators" set to 1.
    pub fn rukh_environment_create_arena(
        environment: *mut rukh_environment,
        device_id: usize,
        config: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A statistic of a device's memory by name, summed over the arenas of all sessions of the environment.
    pub fn rukh_environment_memory_statistic(
        environment: *const rukh_environment,
        device_id: usize,
        name: *const c_char,
        value: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the statistic at `index`.
    pub fn rukh_environment_memory_statistic_name(
        environment: *const rukh_environment,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What sessions do with a device's memory, as a table for people: what is allocated, active, requested, reserved and not releasable, by pool, now and at its peak, in the form of PyTorch's `memory_summary`.
    pub fn rukh_environment_memory_summary(
        environment: *const rukh_environment,
        device_id: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Free and total bytes of a device's memory, as its runtime tells: other processes count.
    pub fn rukh_environment_memory_info(
        environment: *const rukh_environment,
        device_id: usize,
        free: *mut u64,
        total: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets the peaks of a device's memory start again from what is there now.
    pub fn rukh_environment_memory_reset_peaks(
        environment: *const rukh_environment,
        device_id: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives the device memory that no session uses back to the runtime.
    pub fn rukh_environment_memory_empty_cache(
        environment: *const rukh_environment,
        device_id: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets each session that is open now keep the last `events` events of its device memory for snapshots; 0 keeps none, as at first.
    pub fn rukh_environment_memory_record_history(
        environment: *const rukh_environment,
        device_id: usize,
        events: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What a device's memory holds, as JSON: an array with an object for each session, which has "segments" with their "blocks", and "device_traces" with the recorded events, by PyTorch's names.
    pub fn rukh_environment_memory_snapshot(
        environment: *const rukh_environment,
        device_id: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// How many plans of Fourier transforms (DFT, STFT) are kept for a GPU, and how many may be.
    pub fn rukh_environment_fourier_plans(
        environment: *const rukh_environment,
        device_id: usize,
        count: *mut usize,
        limit: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets how many plans of Fourier transforms are kept for a GPU.
    pub fn rukh_environment_set_fourier_plan_limit(
        environment: *const rukh_environment,
        device_id: usize,
        limit: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets all plans of Fourier transforms on a GPU go that no session needs.
    pub fn rukh_environment_clear_fourier_plans(
        environment: *const rukh_environment,
        device_id: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes options for a session, all at their defaults.
    pub fn rukh_session_options_create(
        out: *mut *mut rukh_session_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a copy of options; later changes to one do not touch the other.
    pub fn rukh_session_options_clone(
        options: *const rukh_session_options,
        out: *mut *mut rukh_session_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Ends every opening and compiling of a model that uses these options: each fails with `RUKH_ERROR_CANCELLED` as soon as it looks, which it does before each node, and each constant that it computes.
    pub fn rukh_session_options_cancel(
        options: *mut rukh_session_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Takes `rukh_session_options_cancel` back for openings that begin from now on.
    pub fn rukh_session_options_reset(
        options: *mut rukh_session_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys options.
    pub fn rukh_session_options_destroy(options: *mut rukh_session_options);
    /// Sets an option by its name; `rukh_session_options_create` lists them.
    pub fn rukh_session_options_set(
        options: *mut rukh_session_options,
        key: *const c_char,
        value: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an option, in a form that `rukh_session_options_set` takes.
    pub fn rukh_session_options_get(
        options: *const rukh_session_options,
        key: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the option at `index`; together with `rukh_session_options_get` this lists them all.
    pub fn rukh_session_options_key(
        options: *const rukh_session_options,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets how the model file comes into memory; the default is `RUKH_LOAD_MAP`.
    pub fn rukh_session_options_set_load(
        options: *mut rukh_session_options,
        mode: rukh_load_mode,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets how far the graph is rewritten; the default is `RUKH_OPTIMIZATION_ALL`.
    pub fn rukh_session_options_set_optimization(
        options: *mut rukh_session_options,
        optimization: rukh_optimization,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets what happens to a node that no wanted provider can take; the default is `RUKH_FALLBACK_CPU`.
    pub fn rukh_session_options_set_fallback(
        options: *mut rukh_session_options,
        fallback: rukh_fallback,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Switches the recording of runs for `rukh_session_profile` on (1) or off (0, the default).
    pub fn rukh_session_options_set_profiling(
        options: *mut rukh_session_options,
        on: i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives the session a pool of `threads` threads of its own, the calling one included; 0, the default, has it use the environment's.
    pub fn rukh_session_options_set_threads(
        options: *mut rukh_session_options,
        threads: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Fixes a symbolic dimension of the model to a size, wherever its name appears.
    pub fn rukh_session_options_set_dimension(
        options: *mut rukh_session_options,
        name: *const c_char,
        size: i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds a provider, less preferred than those added before.
    pub fn rukh_session_options_add_provider(
        options: *mut rukh_session_options,
        provider: *const c_char,
        keys: *const *const c_char,
        values: *const *const c_char,
        count: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets the hip provider take device memory from functions of the caller's instead of its arena, which is then bypassed: the limit and the strategy have no effect.
    pub fn rukh_session_options_set_external_allocator(
        options: *mut rukh_session_options,
        alloc: rukh_device_alloc,
        release_memory: rukh_device_free,
        empty_cache: rukh_device_empty_cache,
        user: *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of providers that were added.
    pub fn rukh_session_options_provider_count(
        options: *const rukh_session_options,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the provider that was added at `index`: "cpu" or "hip".
    pub fn rukh_session_options_provider_name(
        options: *const rukh_session_options,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of an option that was given to the provider at `provider`; `rukh_session_options_provider_get` gives its value.
    pub fn rukh_session_options_provider_key(
        options: *const rukh_session_options,
        provider: usize,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an option that was given to the provider at `provider`.
    pub fn rukh_session_options_provider_get(
        options: *const rukh_session_options,
        provider: usize,
        key: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Opens a model file (ONNX), or an artifact that `rukh_compile_model` made of one, and makes it ready to run.
    pub fn rukh_session_create(
        environment: *const rukh_environment,
        path: *const c_char,
        options: *const rukh_session_options,
        out: *mut *mut rukh_session,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a session from a copy of the bytes of a model file in memory.
    pub fn rukh_session_create_from_memory(
        environment: *const rukh_environment,
        data: *const c_void,
        size: usize,
        options: *const rukh_session_options,
        out: *mut *mut rukh_session,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a session.
    pub fn rukh_session_destroy(session: *mut rukh_session);
    /// Makes a session from the bytes of a model file in memory of the caller's, without a copy: weights stay where they are.
    pub fn rukh_session_create_from_buffer(
        environment: *const rukh_environment,
        data: *const c_void,
        size: usize,
        deleter: rukh_deleter,
        user: *mut c_void,
        options: *const rukh_session_options,
        out: *mut *mut rukh_session,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives sessions a tensor for an initializer of the model's main graph, in place of the one that the model has or whose external data it names; those data are then not read, and need not be there.
    pub fn rukh_session_options_add_initializer(
        options: *mut rukh_session_options,
        name: *const c_char,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives sessions the bytes of a file of external data, which then need not be there, without a copy.
    pub fn rukh_session_options_add_external_file(
        options: *mut rukh_session_options,
        location: *const c_char,
        data: *const c_void,
        size: usize,
        deleter: rukh_deleter,
        user: *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes options for compiling, all at their defaults.
    pub fn rukh_compile_options_create(
        out: *mut *mut rukh_compile_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys options.
    pub fn rukh_compile_options_destroy(options: *mut rukh_compile_options);
    /// Sets an option by name.
    pub fn rukh_compile_options_set(
        options: *mut rukh_compile_options,
        key: *const c_char,
        value: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an option.
    pub fn rukh_compile_options_get(
        options: *const rukh_compile_options,
        key: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the option at `index`; together with `rukh_compile_options_get` this lists them all.
    pub fn rukh_compile_options_key(
        options: *const rukh_compile_options,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets who is told how far compiling is, and may end it.
    pub fn rukh_compile_options_set_progress(
        options: *mut rukh_compile_options,
        callback: rukh_progress_callback,
        user: *mut c_void,
        release: rukh_release,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Compiles a model file (ONNX) to an artifact: a file that `rukh_session_create` opens in the model's place, without optimising it again and without packing weights.
    pub fn rukh_compile_model(
        environment: *const rukh_environment,
        path: *const c_char,
        session_options_handle: *const rukh_session_options,
        options: *const rukh_compile_options,
        out_path: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// As `rukh_compile_model`, from the bytes of a model file.
    pub fn rukh_compile_model_from_memory(
        environment: *const rukh_environment,
        data: *const c_void,
        size: usize,
        session_options_handle: *const rukh_session_options,
        options: *const rukh_compile_options,
        out_path: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Opens an artifact to ask about it.
    pub fn rukh_artifact_open(
        environment: *const rukh_environment,
        path: *const c_char,
        out: *mut *mut rukh_artifact,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys an artifact.
    pub fn rukh_artifact_destroy(artifact: *mut rukh_artifact);
    /// What an artifact holds, as a JSON object.
    pub fn rukh_artifact_info(
        artifact: *const rukh_artifact,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Whether an artifact suits this machine, a device and options, before a session is made of it.
    pub fn rukh_artifact_check(
        artifact: *const rukh_artifact,
        options: *const rukh_session_options,
        verdict: *mut rukh_artifact_verdict,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Reads a file of an adapter, which ONNX Runtime calls `.onnx_adapter`.
    pub fn rukh_adapter_open(
        path: *const c_char,
        out: *mut *mut rukh_adapter,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Reads an adapter from the bytes of its file in memory of the caller's.
    pub fn rukh_adapter_open_from_buffer(
        data: *const c_void,
        size: usize,
        deleter: rukh_deleter,
        user: *mut c_void,
        out: *mut *mut rukh_adapter,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes an adapter of tensors, to use or to save.
    pub fn rukh_adapter_create(
        names: *const *const c_char,
        values: *const *const rukh_value,
        count: usize,
        adapter_version: i32,
        model_version: i32,
        out: *mut *mut rukh_adapter,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Writes an adapter to a file that ONNX Runtime reads as well.
    pub fn rukh_adapter_save(
        adapter: *const rukh_adapter,
        path: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys an adapter.
    pub fn rukh_adapter_destroy(adapter: *mut rukh_adapter);
    /// The versions that an adapter tells: of the file's format, of itself, and of the model that it was made for.
    pub fn rukh_adapter_versions(
        adapter: *const rukh_adapter,
        format_version: *mut i32,
        adapter_version: *mut i32,
        model_version: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of tensors in an adapter.
    pub fn rukh_adapter_parameter_count(
        adapter: *const rukh_adapter,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the parameter at `index`: of the input that it is for.
    pub fn rukh_adapter_parameter_name(
        adapter: *const rukh_adapter,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The tensor of the parameter at `index`.
    pub fn rukh_adapter_parameter_value(
        adapter: *const rukh_adapter,
        index: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Has runs take inputs from an adapter: the model's initializers that are inputs as well, and other inputs, that a run is not given.
    pub fn rukh_run_options_add_adapter(
        options: *mut rukh_run_options,
        adapter: *const rukh_adapter,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Has sessions take an adapter's tensors in place of initializers of the model's main graph, for good: weights may be packed, and runs cost what they cost without an adapter.
    pub fn rukh_session_options_add_adapter(
        options: *mut rukh_session_options,
        adapter: *const rukh_adapter,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Tells the callback of each node that runs, after the graph was rewritten, in the order in which they run.
    pub fn rukh_session_for_each_placement(
        session: *const rukh_session,
        callback: rukh_placement_callback,
        user: *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A text about where a node runs.
    pub fn rukh_placement_text(
        placement: *const rukh_placement,
        which: rukh_placement_fact,
        text: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The device that runs the node.
    pub fn rukh_placement_device(
        placement: *const rukh_placement,
        out: *mut *mut rukh_device,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The steps of a session's runs and where each value lies, as a JSON object.
    pub fn rukh_session_plan(
        session: *const rukh_session,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the model's inputs.
    pub fn rukh_session_input_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of an input.
    pub fn rukh_session_input_name(
        session: *const rukh_session,
        index: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The position of an input by its name.
    pub fn rukh_session_input_index(
        session: *const rukh_session,
        name: *const c_char,
        index: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What an input is, and its element type: of a tensor, or of the tensors inside another kind.
    pub fn rukh_session_input_type(
        session: *const rukh_session,
        index: usize,
        kind: *mut rukh_kind,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The type and shape of an input for people: "tensor(float)[batch, 3, 224, 224]".
    pub fn rukh_session_input_type_text(
        session: *const rukh_session,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The shape of an input.
    pub fn rukh_session_input_shape(
        session: *const rukh_session,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of a dimension of an input that is not known before the model runs, or its formula over such names ("2*batch").
    pub fn rukh_session_input_dim_name(
        session: *const rukh_session,
        index: usize,
        axis: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the model's overridable initializers: inputs that the model has values for, which a run or binding may replace by name.
    pub fn rukh_session_overridable_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of an overridable initializer.
    pub fn rukh_session_overridable_name(
        session: *const rukh_session,
        index: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The type and shape of an overridable initializer for people, as `rukh_session_input_type_text`.
    pub fn rukh_session_overridable_type_text(
        session: *const rukh_session,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The shape of an overridable initializer, as `rukh_session_input_shape`.
    pub fn rukh_session_overridable_shape(
        session: *const rukh_session,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of a dimension of an overridable initializer, as `rukh_session_input_dim_name`.
    pub fn rukh_session_overridable_dim_name(
        session: *const rukh_session,
        index: usize,
        axis: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the model's outputs.
    pub fn rukh_session_output_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of an output.
    pub fn rukh_session_output_name(
        session: *const rukh_session,
        index: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The position of an output by its name.
    pub fn rukh_session_output_index(
        session: *const rukh_session,
        name: *const c_char,
        index: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What an output is, and its element type: of a tensor, or of the tensors inside another kind.
    pub fn rukh_session_output_type(
        session: *const rukh_session,
        index: usize,
        kind: *mut rukh_kind,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The type and shape of an output for people: "tensor(float)[batch, 3, 224, 224]".
    pub fn rukh_session_output_type_text(
        session: *const rukh_session,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The shape of an output.
    pub fn rukh_session_output_shape(
        session: *const rukh_session,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of a dimension of an output that is not known before the model runs, or its formula over such names ("2*batch").
    pub fn rukh_session_output_dim_name(
        session: *const rukh_session,
        index: usize,
        axis: usize,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A text that the model file carries about itself; "" when it has none.
    pub fn rukh_session_model_text(
        session: *const rukh_session,
        which: rukh_model_text,
        text: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The version of the model as its maker counts, and the version of the file format.
    pub fn rukh_session_model_version(
        session: *const rukh_session,
        model_version: *mut i64,
        ir_version: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of properties (keys and values) that the model's maker added to the file.
    pub fn rukh_session_property_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A property that the model's maker added to the file.
    pub fn rukh_session_property(
        session: *const rukh_session,
        index: usize,
        key: *mut *const c_char,
        value: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of operator sets that the model imports.
    pub fn rukh_session_opset_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// An operator set that the model imports.
    pub fn rukh_session_opset(
        session: *const rukh_session,
        index: usize,
        domain: *mut *const c_char,
        version: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of nodes that run, after the graph was rewritten.
    pub fn rukh_session_placement_count(
        session: *const rukh_session,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Deprecated: use `rukh_session_for_each_placement`, which tells the device too.
    #[deprecated(note = "use rukh_session_for_each_placement")]
    pub fn rukh_session_placement(
        session: *const rukh_session,
        index: usize,
        node: *mut *const c_char,
        operator_name: *mut *const c_char,
        provider: *mut *const c_char,
        reason: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What opening the session did with the model's bytes.
    pub fn rukh_session_load_counter(
        session: *const rukh_session,
        which: rukh_load_counter,
        value: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What the runs so far did, as a Chrome trace in JSON (chrome://tracing and Perfetto show it; times in microseconds).
    pub fn rukh_session_profile(
        session: *const rukh_session,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor of zeros (or empty strings) in memory of its own, aligned to 64 bytes.
    pub fn rukh_value_create_tensor(
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor in memory of its own with a copy of the caller's elements.
    pub fn rukh_value_create_tensor_copy(
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        data: *const c_void,
        bytes: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor over the caller's memory, without a copy.
    pub fn rukh_value_create_tensor_over(
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        data: *mut c_void,
        bytes: usize,
        deleter: rukh_deleter,
        user: *mut c_void,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes another handle of the same value; the elements are shared, not copied.
    pub fn rukh_value_clone(
        value: *const rukh_value,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor of another shape over the elements of this one, which are shared.
    pub fn rukh_value_reshape(
        value: *const rukh_value,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a value.
    pub fn rukh_value_destroy(value: *mut rukh_value);
    /// What the value is: one of `RUKH_KIND_…`.
    pub fn rukh_value_kind(
        value: *const rukh_value,
        kind: *mut rukh_kind,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The element type of a tensor, or of the tensors inside a sequence, map or optional.
    pub fn rukh_value_element_type(
        value: *const rukh_value,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The type of the value as the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))".
    pub fn rukh_value_type_text(
        value: *const rukh_value,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The shape of a tensor.
    pub fn rukh_value_shape(
        value: *const rukh_value,
        dims: *mut i64,
        cap: usize,
        rank: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of elements of a tensor; the product of its dimensions.
    pub fn rukh_value_element_count(
        value: *const rukh_value,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The elements of a tensor, to read: in row-major order without gaps.
    pub fn rukh_value_data(
        value: *const rukh_value,
        data: *mut *const c_void,
        bytes: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The elements of a tensor, to write: in row-major order without gaps.
    pub fn rukh_value_data_mut(
        value: *mut rukh_value,
        data: *mut *mut c_void,
        bytes: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor in the memory of a device; its elements are unspecified.
    pub fn rukh_value_create_device_tensor(
        environment: *const rukh_environment,
        device_id: usize,
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor over device memory of the caller's (of `hipMalloc`, or of another library's tensor).
    pub fn rukh_value_create_device_tensor_over(
        environment: *const rukh_environment,
        device_id: usize,
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        address: *mut c_void,
        bytes: usize,
        deleter: rukh_deleter,
        user: *mut c_void,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Copies the elements of a tensor into another of the same type and shape, from and to host or device memory, and waits for it.
    pub fn rukh_value_copy(
        from: *const rukh_value,
        to: *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Where the elements of a tensor are: the address in a device's memory, and which device.
    pub fn rukh_value_device(
        value: *const rukh_value,
        on_device: *mut i32,
        device_id: *mut usize,
        address: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor in the memory of a device; its elements are zeros on the host, else unspecified.
    pub fn rukh_value_create_tensor_in(
        device: *const rukh_device,
        kind: rukh_memory_kind,
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The kind of memory that a tensor lies in, and the number of the GPU that it belongs to or is pinned for.
    pub fn rukh_value_memory_kind(
        value: *const rukh_value,
        kind: *mut rukh_memory_kind,
        device_id: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Binds an output to memory that the library allocates at each run where the caller says: outputs whose shape is not known before stay in the memory of a GPU, and go into the next run from there.
    pub fn rukh_io_binding_bind_output_allocated_in(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        device: *const rukh_device,
        kind: rukh_memory_kind,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The device that runs nodes of a session: the GPU when any node runs there, else the CPU.
    pub fn rukh_session_device(
        session: *const rukh_session,
        out: *mut *mut rukh_device,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Queues a copy of the elements of a tensor into another of the same type and shape in a stream, and returns without waiting for it.
    pub fn rukh_value_copy_queued(
        from: *const rukh_value,
        to: *mut rukh_value,
        stream: u64,
        out: *mut *mut rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a stream of a GPU: a queue of work that goes on in order, for run option "compute_stream", for `rukh_value_copy_queued` and for work of the caller's.
    pub fn rukh_stream_create(
        device: *const rukh_device,
        out: *mut *mut rukh_stream,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a stream; its work goes on to its end.
    pub fn rukh_stream_destroy(stream: *mut rukh_stream);
    /// The runtime's handle of a stream (`hipStream_t`, or `CUstream` on the nvidia platform) as a number.
    pub fn rukh_stream_address(
        stream: *const rukh_stream,
        address: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Waits until a stream has done all that it was given.
    pub fn rukh_stream_wait(stream: *const rukh_stream, error: *mut *mut rukh_error) -> rukh_status;
    /// Marks the place that a stream has come to: a completion of all that it was given until now, which the host can wait for (`rukh_completion_wait`), and other streams too (`rukh_stream_wait_for`).
    pub fn rukh_stream_record(
        stream: *const rukh_stream,
        out: *mut *mut rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets a stream wait for work in another: what it is given from now on begins when that work is done.
    pub fn rukh_stream_wait_for(
        stream: *const rukh_stream,
        completion: *const rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Imports memory that another API exported, such as Vulkan (`vkGetMemoryFdKHR`), another process or a driver of a camera, so that a device computes where it lies.
    pub fn rukh_external_memory_import(
        device: *const rukh_device,
        kind: rukh_external_handle,
        handle: i64,
        bytes: usize,
        release: rukh_release,
        user: *mut c_void,
        out: *mut *mut rukh_external_memory,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a handle of imported memory.
    pub fn rukh_external_memory_destroy(memory: *mut rukh_external_memory);
    /// Makes a tensor over a part of imported memory.
    pub fn rukh_external_memory_tensor(
        memory: *const rukh_external_memory,
        offset: usize,
        element: rukh_element_type,
        shape: *const i64,
        rank: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a tensor of strings.
    pub fn rukh_value_create_strings(
        shape: *const i64,
        rank: usize,
        strings: *const *const c_char,
        lengths: *const usize,
        count: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// One string of a tensor.
    pub fn rukh_value_string(
        value: *const rukh_value,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Replaces one string of a tensor.
    pub fn rukh_value_set_string(
        value: *mut rukh_value,
        index: usize,
        string: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a sequence of values, which it shares.
    pub fn rukh_value_create_sequence(
        items: *const *const rukh_value,
        count: usize,
        element: rukh_element_type,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a map from keys to values, which it shares.
    pub fn rukh_value_create_map(
        keys: *const rukh_value,
        values: *const *const rukh_value,
        count: usize,
        element: rukh_element_type,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes an optional that holds a value, which it shares, or none.
    pub fn rukh_value_create_optional(
        value: *const rukh_value,
        element: rukh_element_type,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// How many values a sequence, map or optional holds; for an optional 0 or 1.
    pub fn rukh_value_item_count(
        value: *const rukh_value,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value at `index` of a sequence, map (in the order of its keys) or optional (at 0), shared.
    pub fn rukh_value_item(
        value: *const rukh_value,
        index: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The keys of a map: a tensor of rank 1, of integers or strings.
    pub fn rukh_value_map_keys(
        value: *const rukh_value,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives a tensor to another library as a versioned DLPack tensor that shares its elements.
    pub fn rukh_value_to_dlpack(
        value: *const rukh_value,
        out: *mut *mut DLManagedTensorVersioned,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// As `rukh_value_to_dlpack`, in the layout of DLPack before 1.0.
    pub fn rukh_value_to_dlpack_legacy(
        value: *const rukh_value,
        out: *mut *mut DLManagedTensor,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Takes a versioned DLPack tensor from another library; its elements are shared when they lie in row-major order without gaps, aligned, and may be written, else copied.
    pub fn rukh_value_from_dlpack(
        managed: *mut DLManagedTensorVersioned,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// As `rukh_value_from_dlpack`, from the layout of DLPack before 1.0.
    pub fn rukh_value_from_dlpack_legacy(
        managed: *mut DLManagedTensor,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes options for runs, all at their defaults.
    pub fn rukh_run_options_create(
        out: *mut *mut rukh_run_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys options; runs that use them go on.
    pub fn rukh_run_options_destroy(options: *mut rukh_run_options);
    /// Sets an option by its name; `rukh_run_options_create` lists them.
    pub fn rukh_run_options_set(
        options: *mut rukh_run_options,
        key: *const c_char,
        value: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an option, in a form that `rukh_run_options_set` takes.
    pub fn rukh_run_options_get(
        options: *const rukh_run_options,
        key: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the option at `index`; together with `rukh_run_options_get` this lists them all.
    pub fn rukh_run_options_key(
        options: *const rukh_run_options,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Ends every run that uses these options, now and later, with `RUKH_ERROR_CANCELLED`, soon but not at once.
    pub fn rukh_run_options_cancel(
        options: *mut rukh_run_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Takes `rukh_run_options_cancel` back for runs that begin from now on.
    pub fn rukh_run_options_reset(options: *mut rukh_run_options, error: *mut *mut rukh_error)
    -> rukh_status;
    /// Runs the model.
    pub fn rukh_session_run(
        session: *const rukh_session,
        options: *const rukh_run_options,
        input_names: *const *const c_char,
        inputs: *const *const rukh_value,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        outputs: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Runs the model on a thread of the environment and returns at once.
    pub fn rukh_session_start(
        session: *const rukh_session,
        options: *const rukh_run_options,
        input_names: *const *const c_char,
        inputs: *const *const rukh_value,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        callback: rukh_completion_callback,
        user: *mut c_void,
        release: rukh_release,
        out: *mut *mut rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Deprecated: use `rukh_session_start`, whose callback receives a completion.
    #[deprecated(note = "use rukh_session_start")]
    pub fn rukh_session_run_async(
        session: *const rukh_session,
        options: *const rukh_run_options,
        input_names: *const *const c_char,
        inputs: *const *const rukh_value,
        input_count: usize,
        output_names: *const *const c_char,
        output_count: usize,
        callback: rukh_run_callback,
        user: *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a binding for runs of a session: values stay bound from run to run, and a run with all outputs bound to values allocates nothing once it has seen the shapes.
    pub fn rukh_io_binding_create(
        session: *const rukh_session,
        out: *mut *mut rukh_io_binding,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a binding; the values that were bound lose one owner.
    pub fn rukh_io_binding_destroy(binding: *mut rukh_io_binding);
    /// Binds a value to an input, in place of what was bound before.
    pub fn rukh_io_binding_bind_input(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Binds the memory of a tensor to an output: runs write there.
    pub fn rukh_io_binding_bind_output(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Binds an output to memory that the library allocates at each run: for outputs whose shape is not known before, and for strings, sequences, maps and optionals.
    pub fn rukh_io_binding_bind_output_allocated(
        binding: *mut rukh_io_binding,
        name: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Unbinds all inputs.
    pub fn rukh_io_binding_clear_inputs(
        binding: *mut rukh_io_binding,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Unbinds all outputs.
    pub fn rukh_io_binding_clear_outputs(
        binding: *mut rukh_io_binding,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Runs the session with what is bound; only outputs that are bound are computed.
    pub fn rukh_io_binding_run(
        binding: *mut rukh_io_binding,
        options: *const rukh_run_options,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an output after a run: the one that was bound, or the one the run allocated.
    pub fn rukh_io_binding_output(
        binding: *const rukh_io_binding,
        name: *const c_char,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Queues a run of what is bound and returns without waiting for the device.
    pub fn rukh_io_binding_run_queued(
        binding: *mut rukh_io_binding,
        options: *const rukh_run_options,
        out: *mut *mut rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys a completion, and waits first for what is queued on a device, but for a mark of `rukh_stream_record`.
    pub fn rukh_completion_destroy(completion: *mut rukh_completion);
    /// Whether the run or copy is done; does not wait.
    pub fn rukh_completion_is_done(
        completion: *const rukh_completion,
        done: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Waits until the run or copy is done, and tells how it ended.
    pub fn rukh_completion_wait(
        completion: *const rukh_completion,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The event behind the work, for streams of the caller's to wait for (`hipStreamWaitEvent`).
    pub fn rukh_completion_event(
        completion: *const rukh_completion,
        event: *mut u64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of outputs that `rukh_completion_output` gives: as many as `rukh_session_start` was asked for.
    pub fn rukh_completion_output_count(
        completion: *const rukh_completion,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// An output of a run that `rukh_session_start` started.
    pub fn rukh_completion_output(
        completion: *const rukh_completion,
        index: usize,
        out: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The results of tuning so far: a line for each problem that was measured or taken from elsewhere, after lines that tell under which conditions they hold.
    pub fn rukh_session_tuning_results(
        session: *const rukh_session,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Lets a session use results of tuning, in addition to those it has and over those for the same problem.
    pub fn rukh_session_add_tuning_results(
        session: *const rukh_session,
        text: *const c_char,
        taken: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Measures problems that were recorded with the hip provider's option "tunable_op_record_file", on this machine and without the models that they came from.
    pub fn rukh_environment_tune(
        environment: *mut rukh_environment,
        options: *const rukh_session_options,
        shapes: *const c_char,
        tuned: *mut usize,
        without: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes an operator, to be described and then added to an environment or to options of sessions.
    pub fn rukh_operator_create(
        domain: *const c_char,
        name: *const c_char,
        since: i64,
        user: *mut c_void,
        release: rukh_release,
        out: *mut *mut rukh_operator,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Destroys an operator's handle.
    pub fn rukh_operator_destroy(operator: *mut rukh_operator);
    /// Adds a type variable: inputs and outputs whose type is the variable's name have one type in a node.
    pub fn rukh_operator_add_type_variable(
        operator: *mut rukh_operator,
        name: *const c_char,
        allowed: *const rukh_element_type,
        count: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an input, behind those that are there.
    pub fn rukh_operator_add_input(
        operator: *mut rukh_operator,
        name: *const c_char,
        ty: *const c_char,
        arity: rukh_arity,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an output, behind those that are there.
    pub fn rukh_operator_add_output(
        operator: *mut rukh_operator,
        name: *const c_char,
        ty: *const c_char,
        arity: rukh_arity,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says that the value of an input decides the shape of an output, as the `shape` of Reshape does.
    pub fn rukh_operator_set_shape_input(
        operator: *mut rukh_operator,
        index: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets the function that tells types and shapes of a node's outputs.
    pub fn rukh_operator_set_shape_function(
        operator: *mut rukh_operator,
        function: rukh_node_callback,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets the kernel for the CPU.
    pub fn rukh_operator_set_kernel(
        operator: *mut rukh_operator,
        create: rukh_node_callback,
        compute: rukh_kernel_callback,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Sets the kernel for GPUs, which launches by itself: it is lent tensors in device memory and the stream of the run.
    pub fn rukh_operator_set_gpu_kernel(
        operator: *mut rukh_operator,
        create: rukh_node_callback,
        prepare: rukh_node_callback,
        compute: rukh_kernel_callback,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says whether an operator is pure: the same inputs and attributes give the same outputs, bit for bit, and its functions do nothing else.
    pub fn rukh_operator_set_pure(
        operator: *mut rukh_operator,
        pure: i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says whether the work of the kernel for GPUs may be captured: all that `compute` does is to give work to the stream of the run, and that work is the same each time for the same shapes and addresses.
    pub fn rukh_operator_set_capturable(
        operator: *mut rukh_operator,
        capturable: i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an operator to options: sessions that are opened with them find it, before one of the same domain, name and version that the environment has.
    pub fn rukh_session_options_add_operator(
        options: *mut rukh_session_options,
        operator: *const rukh_operator,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an operator to an environment: its sessions that are opened from now on find it.
    pub fn rukh_environment_add_operator(
        environment: *mut rukh_environment,
        operator: *const rukh_operator,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an attribute that nodes of the operator may have.
    pub fn rukh_operator_add_attribute(
        operator: *mut rukh_operator,
        name: *const c_char,
        ty: rukh_attribute_type,
        required: i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an attribute with a default, which nodes without it have.
    pub fn rukh_operator_add_attribute_with_default(
        operator: *mut rukh_operator,
        name: *const c_char,
        ty: rukh_attribute_type,
        data: *const c_void,
        count: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds the operators of a shared library to options.
    pub fn rukh_session_options_load_operators(
        options: *mut rukh_session_options,
        path: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds the operators of a shared library to an environment, for its sessions that are opened from now on; as `rukh_session_options_load_operators`.
    pub fn rukh_environment_load_operators(
        environment: *mut rukh_environment,
        path: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Adds an operator, in the function of a library of operators that is asked for them.
    pub fn rukh_operator_registry_add(
        registry: *mut rukh_operator_registry,
        operator: *const rukh_operator,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says why a library of operators cannot add its operators.
    pub fn rukh_operator_registry_set_error(
        registry: *mut rukh_operator_registry,
        text: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The name of the node, for messages.
    pub fn rukh_node_info_name(
        node: *const rukh_node_info,
        name: *mut *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The version of the operator's domain that the model imports.
    pub fn rukh_node_info_version(
        node: *const rukh_node_info,
        version: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the node's inputs, those included that it leaves out before others.
    pub fn rukh_node_info_input_count(
        node: *const rukh_node_info,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the node's outputs, those included that it leaves out before others.
    pub fn rukh_node_info_output_count(
        node: *const rukh_node_info,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Whether the node has an input (1), or leaves it out (0).
    pub fn rukh_node_info_has_input(
        node: *const rukh_node_info,
        index: usize,
        given: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// What an input is, and its element type: of a tensor, or of the tensors inside another kind.
    pub fn rukh_node_info_input_type(
        node: *const rukh_node_info,
        index: usize,
        kind: *mut rukh_kind,
        element: *mut rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The shape of an input.
    pub fn rukh_node_info_input_shape(
        node: *const rukh_node_info,
        index: usize,
        dims: *mut i64,
        cap: usize,
        rank: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an input where it is known: a constant of the model, or an input that decides a shape.
    pub fn rukh_node_info_input_value(
        node: *const rukh_node_info,
        index: usize,
        value: *mut *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says why a function cannot answer: the text of the error that opening or running the model returns, after the node's name.
    pub fn rukh_node_info_set_error(
        node: *mut rukh_node_info,
        text: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Gives the node's kernel a state, which `rukh_kernel_context_state` tells later.
    pub fn rukh_node_info_set_state(
        node: *mut rukh_node_info,
        state: *mut c_void,
        release: rukh_release,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The state that the function `create` gave the node's kernel.
    pub fn rukh_node_info_state(
        node: *const rukh_node_info,
        state: *mut *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Asks for temporary device memory for each run of these shapes.
    pub fn rukh_node_info_set_scratch(
        node: *mut rukh_node_info,
        bytes: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Whether the node has an output (1), or leaves it out (0).
    pub fn rukh_node_info_has_output(
        node: *const rukh_node_info,
        index: usize,
        wanted: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Tells that an output is a tensor of this element type.
    pub fn rukh_node_info_set_output_type(
        node: *mut rukh_node_info,
        index: usize,
        element: rukh_element_type,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Tells the shape of an output.
    pub fn rukh_node_info_set_output_shape(
        node: *mut rukh_node_info,
        index: usize,
        dims: *const i64,
        rank: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Tells that an output has the shape of an input, also where dimensions of it are not known yet: the library then knows that both are equal.
    pub fn rukh_node_info_set_output_shape_of(
        node: *mut rukh_node_info,
        index: usize,
        input: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Tells that a dimension of an output, whose shape was told before, is one of an input, also where that is not known yet.
    pub fn rukh_node_info_set_output_dim_of(
        node: *mut rukh_node_info,
        index: usize,
        axis: usize,
        input: usize,
        input_axis: usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Whether a node has an attribute, by itself or by its default (1), or not (0).
    pub fn rukh_node_info_has_attribute(
        node: *const rukh_node_info,
        name: *const c_char,
        given: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an integer attribute.
    pub fn rukh_node_info_attribute_int(
        node: *const rukh_node_info,
        name: *const c_char,
        value: *mut i64,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of a float attribute.
    pub fn rukh_node_info_attribute_float(
        node: *const rukh_node_info,
        name: *const c_char,
        value: *mut f32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The text of a string attribute.
    pub fn rukh_node_info_attribute_string(
        node: *const rukh_node_info,
        name: *const c_char,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The values of an attribute that is a list of integers.
    pub fn rukh_node_info_attribute_ints(
        node: *const rukh_node_info,
        name: *const c_char,
        values: *mut *const i64,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The values of an attribute that is a list of floats.
    pub fn rukh_node_info_attribute_floats(
        node: *const rukh_node_info,
        name: *const c_char,
        values: *mut *const f32,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of texts of an attribute that is a list of strings.
    pub fn rukh_node_info_attribute_string_count(
        node: *const rukh_node_info,
        name: *const c_char,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// A text of an attribute that is a list of strings.
    pub fn rukh_node_info_attribute_string_at(
        node: *const rukh_node_info,
        name: *const c_char,
        index: usize,
        buf: *mut c_char,
        cap: usize,
        needed: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The tensor of a tensor attribute.
    pub fn rukh_node_info_attribute_tensor(
        node: *const rukh_node_info,
        name: *const c_char,
        value: *mut *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the node's inputs, those included that it leaves out before others.
    pub fn rukh_kernel_context_input_count(
        context: *const rukh_kernel_context,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of the node's outputs, those included that it leaves out before others.
    pub fn rukh_kernel_context_output_count(
        context: *const rukh_kernel_context,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The value of an input, to read alone.
    pub fn rukh_kernel_context_input(
        context: *const rukh_kernel_context,
        index: usize,
        value: *mut *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The tensor of an output, to write every element of; its content is unspecified.
    pub fn rukh_kernel_context_output(
        context: *mut rukh_kernel_context,
        index: usize,
        shape: *const i64,
        rank: usize,
        value: *mut *mut rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Makes a value an output: strings, a sequence, or a tensor that lies elsewhere; a planned output gets a copy of the elements.
    pub fn rukh_kernel_context_set_output(
        context: *mut rukh_kernel_context,
        index: usize,
        value: *const rukh_value,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The state that the kernel's function `create` gave the node.
    pub fn rukh_kernel_context_state(
        context: *const rukh_kernel_context,
        state: *mut *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Whether the run was cancelled (1) or not (0).
    pub fn rukh_kernel_context_cancelled(
        context: *const rukh_kernel_context,
        cancelled: *mut i32,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The number of threads that `rukh_kernel_context_parallel_for` can use, the calling one included.
    pub fn rukh_kernel_context_thread_count(
        context: *const rukh_kernel_context,
        count: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Calls `body` with each number below `count`, in any order and on the session's threads, and returns when all calls have returned.
    pub fn rukh_kernel_context_parallel_for(
        context: *mut rukh_kernel_context,
        count: usize,
        body: rukh_parallel_body,
        user: *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The stream that a kernel for GPUs gives its work to: a `hipStream_t`, on NVIDIA's GPUs a `CUstream`.
    pub fn rukh_kernel_context_stream(
        context: *const rukh_kernel_context,
        stream: *mut *mut c_void,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// The temporary device memory that the function `prepare` asked for; its content is unspecified.
    pub fn rukh_kernel_context_scratch(
        context: *const rukh_kernel_context,
        address: *mut *mut c_void,
        bytes: *mut usize,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
    /// Says why a kernel failed: the text of the error that the run returns, after the node's name.
    pub fn rukh_kernel_context_set_error(
        context: *mut rukh_kernel_context,
        text: *const c_char,
        error: *mut *mut rukh_error,
    ) -> rukh_status;
}
