//! The C types: status codes, enums as plain integers, opaque handles, callbacks.
//!
//! An enum is a typedef of `int32_t` with defined values, so that a value this version does not know
//! is an error and no undefined behaviour.

use std::ffi::{c_char, c_void};

/// The version of the binary interface: `major * 1000000 + minor * 1000 + patch`. A program built with
/// one header works with every library of the same major and minor (while major is 0, else of the same
/// major) whose version is not smaller.
pub const RUKH_ABI_VERSION: u32 = 1001;

/// Whether this library runs what was compiled with the header of a version.
pub(super) const fn serves(version: u32) -> bool {
    const fn series(version: u32) -> u32 {
        match version / 1_000_000 {
            0 => version / 1000,
            major => major * 1000,
        }
    }
    series(version) == series(RUKH_ABI_VERSION) && version <= RUKH_ABI_VERSION
}

/// What a function returns: `RUKH_OK` or one of the `RUKH_ERROR_…` codes. The numbers never change.
pub type rukh_status = i32;

/// Success.
pub const RUKH_OK: rukh_status = 0;
/// An argument has a value that is not allowed (NULL where it must not be, an unknown enum value).
pub const RUKH_ERROR_INVALID_ARGUMENT: rukh_status = 1;
/// A handle is of another kind, was destroyed, or never was one.
pub const RUKH_ERROR_INVALID_HANDLE: rukh_status = 2;
/// A file or a name is not there.
pub const RUKH_ERROR_NOT_FOUND: rukh_status = 3;
/// The operating system refused to read or write.
pub const RUKH_ERROR_IO: rukh_status = 4;
/// The model breaks the ONNX standard.
pub const RUKH_ERROR_INVALID_MODEL: rukh_status = 5;
/// The model is valid, but something in it cannot be run.
pub const RUKH_ERROR_UNSUPPORTED: rukh_status = 6;
/// An input has the wrong type, rank or dimensions.
pub const RUKH_ERROR_INVALID_INPUT: rukh_status = 7;
/// The data given are not allowed: an index out of range, an integer division by zero.
pub const RUKH_ERROR_INVALID_DATA: rukh_status = 8;
/// Host or device memory is exhausted.
pub const RUKH_ERROR_OUT_OF_MEMORY: rukh_status = 9;
/// The run was cancelled.
pub const RUKH_ERROR_CANCELLED: rukh_status = 10;
/// There is no device, or it failed.
pub const RUKH_ERROR_DEVICE: rukh_status = 11;
/// An earlier failure left this handle unusable; it can only be destroyed.
pub const RUKH_ERROR_POISONED: rukh_status = 12;
/// The handle was made before `fork`, and this is the child.
pub const RUKH_ERROR_FORKED: rukh_status = 13;
/// A defect of the library. The message says where.
pub const RUKH_ERROR_INTERNAL: rukh_status = 14;

/// The type of a tensor's elements. The numbers are those of ONNX's `TensorProto.DataType`.
///
/// Elements narrower than a byte (`INT4`, `UINT4`, `INT2`, `UINT2`, `FLOAT4E2M1`, `FLOAT6E2M3`,
/// `FLOAT6E3M2`) take one byte each in memory; integers are sign-extended where signed. A `BOOL` is one byte; any byte but 0 is true.
pub type rukh_element_type = i32;

/// No type: where there is none to tell, or none to give.
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

/// Not known before the model runs.
pub const RUKH_KIND_UNDEFINED: rukh_kind = 0;
/// Elements of one type in a rectangle of any rank.
pub const RUKH_KIND_TENSOR: rukh_kind = 1;
/// Values of one type in order.
pub const RUKH_KIND_SEQUENCE: rukh_kind = 2;
/// Integer or string keys, each with a value.
pub const RUKH_KIND_MAP: rukh_kind = 3;
/// A value or none.
pub const RUKH_KIND_OPTIONAL: rukh_kind = 4;

/// How much a log message matters.
pub type rukh_log_level = i32;

pub const RUKH_LOG_DEBUG: rukh_log_level = 0;
pub const RUKH_LOG_INFO: rukh_log_level = 1;
pub const RUKH_LOG_WARNING: rukh_log_level = 2;
pub const RUKH_LOG_ERROR: rukh_log_level = 3;

/// A text of a log message.
pub type rukh_log_text = i32;

/// What it says, for people.
pub const RUKH_LOG_TEXT_MESSAGE: rukh_log_text = 0;
/// What it is about: "environment", "session", "provider", "tuning", "model_cache", "run" or "defect". Later versions may
/// have others.
pub const RUKH_LOG_TEXT_CATEGORY: rukh_log_text = 1;
/// Whose it is: the session's option "log_id", else the name of its model's file.
pub const RUKH_LOG_TEXT_SESSION: rukh_log_text = 2;
/// In which run it was written: the run's option "tag".
pub const RUKH_LOG_TEXT_RUN: rukh_log_text = 3;
/// The node that it is about.
pub const RUKH_LOG_TEXT_NODE: rukh_log_text = 4;
/// Where in the library's source it was written, as "file:line".
pub const RUKH_LOG_TEXT_LOCATION: rukh_log_text = 5;

/// How a model file comes into memory.
pub type rukh_load_mode = i32;

/// Mapped: pages are read when needed and shared between processes. The file must not shrink while the
/// session lives; a file that does ends the process with SIGBUS.
pub const RUKH_LOAD_MAP: rukh_load_mode = 0;
/// Read in whole: the file may change afterwards.
pub const RUKH_LOAD_READ: rukh_load_mode = 1;

/// How far the model's graph is rewritten before it runs. No level changes what the model means.
pub type rukh_optimization = i32;

/// Only what running needs.
pub const RUKH_OPTIMIZATION_NONE: rukh_optimization = 0;
/// Constants and shapes are folded, dead code is removed.
pub const RUKH_OPTIMIZATION_BASIC: rukh_optimization = 1;
/// Fusions as well. The default.
pub const RUKH_OPTIMIZATION_ALL: rukh_optimization = 2;

/// What happens to a node that none of the wanted providers can take.
pub type rukh_fallback = i32;

/// The CPU runs it. The default.
pub const RUKH_FALLBACK_CPU: rukh_fallback = 0;
/// The session is refused with an error that names the node.
pub const RUKH_FALLBACK_ERROR: rukh_fallback = 1;

/// Memory, as a device sees it.
pub type rukh_memory_kind = i32;

/// The device's own. That of the CPU is the host's.
pub const RUKH_MEMORY_DEVICE: rukh_memory_kind = 0;
/// The host's, pinned for a GPU, which copies from and to it by itself: such a copy does not hold up the thread that
/// queues it.
pub const RUKH_MEMORY_PINNED: rukh_memory_kind = 1;
/// The host's.
pub const RUKH_MEMORY_HOST: rukh_memory_kind = 2;

/// What another API exported memory as.
pub type rukh_external_handle = i32;

/// A file descriptor of the driver's own kind, as Vulkan's `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT` gives.
pub const RUKH_EXTERNAL_OPAQUE_FD: rukh_external_handle = 0;
/// A file descriptor of a dma-buf.
pub const RUKH_EXTERNAL_DMA_BUF: rukh_external_handle = 1;
/// A `HANDLE` of Windows', as `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT` gives.
pub const RUKH_EXTERNAL_WIN32: rukh_external_handle = 2;

/// Whether an artifact suits a device and options.
pub type rukh_artifact_verdict = i32;

/// It was compiled for them.
pub const RUKH_ARTIFACT_OPTIMAL: rukh_artifact_verdict = 0;
/// It works; compiling it again would make it better.
pub const RUKH_ARTIFACT_WORKS: rukh_artifact_verdict = 1;
/// It cannot be used.
pub const RUKH_ARTIFACT_UNFIT: rukh_artifact_verdict = 2;

/// How often an input or output of an operator may be there.
pub type rukh_arity = i32;

/// Once.
pub const RUKH_ARITY_REQUIRED: rukh_arity = 0;
/// Once or not at all.
pub const RUKH_ARITY_OPTIONAL: rukh_arity = 1;
/// Any number of times, none included. Allowed for the last one.
pub const RUKH_ARITY_VARIADIC: rukh_arity = 2;
/// Once or more. Allowed for the last one.
pub const RUKH_ARITY_VARIADIC_SOME: rukh_arity = 3;

/// The type of an attribute. The numbers are those of ONNX's `AttributeProto.AttributeType`.
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

/// The node's name.
pub const RUKH_PLACEMENT_NODE: rukh_placement_fact = 0;
/// The name of its operator.
pub const RUKH_PLACEMENT_OPERATOR: rukh_placement_fact = 1;
/// The provider that runs it: "cpu" or "hip".
pub const RUKH_PLACEMENT_PROVIDER: rukh_placement_fact = 2;
/// Why that one, for people.
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

/// Bytes of files that were mapped.
pub const RUKH_LOAD_MAPPED_BYTES: rukh_load_counter = 0;
/// Bytes of files that were read into memory.
pub const RUKH_LOAD_READ_BYTES: rukh_load_counter = 1;
/// Bytes of weights that were copied because they were not aligned or had to be converted.
pub const RUKH_LOAD_COPIED_BYTES: rukh_load_counter = 2;
/// Bytes of weights in a layout made for a kernel.
pub const RUKH_LOAD_PACKED_BYTES: rukh_load_counter = 3;
/// The number of weights that were copied.
pub const RUKH_LOAD_COPIED_WEIGHTS: rukh_load_counter = 4;
/// Bytes of all these kinds that another session of the environment had already, and that both use. The other counts are
/// then 0.
pub const RUKH_LOAD_SHARED_BYTES: rukh_load_counter = 5;

/// Why a call failed: a code and a message. Owned by who received it.
pub struct rukh_error(());
/// How an environment is made.
pub struct rukh_environment_options(());
/// What sessions share: threads and the log.
pub struct rukh_environment(());
/// A device that can run models.
pub struct rukh_device(());
/// How a session is made.
pub struct rukh_session_options(());
/// A model, ready to run.
pub struct rukh_session(());
/// A tensor, sequence, map or optional.
pub struct rukh_value(());
/// How one run behaves; cancels it from another thread.
pub struct rukh_run_options(());
/// What runs of one session read and write, kept between runs.
pub struct rukh_io_binding(());

/// A run that was started, or a run or a copy whose work is queued on a device.
pub struct rukh_completion(());
/// A queue of work for a device, which the caller orders.
pub struct rukh_stream(());

/// A message of the log, during the callback that receives it.
pub struct rukh_log_record(());
/// Where a node of a session runs, during the callback that is told.
pub struct rukh_placement(());

/// Memory that another API exported.
pub struct rukh_external_memory(());

/// How a model is compiled to an artifact.
pub struct rukh_compile_options(());
/// A model that was compiled, to ask about.
pub struct rukh_artifact(());

/// Named tensors in place of a model's inputs, as LoRA fine-tuning makes them.
pub struct rukh_adapter(());

/// An operator that the caller defines.
pub struct rukh_operator(());
/// A node whose operator the caller defined, during a callback that is asked about it.
pub struct rukh_node_info(());
/// One call of the caller's kernel, during the callback that computes.
pub struct rukh_kernel_context(());
/// What a shared library of operators adds its operators to, while it is asked for them.
pub struct rukh_operator_registry(());

/// Receives a log message. `record` is valid during the call. Called from any thread, from several at the same time, and
/// with no lock held, so it may call the library. It must return normally: no C++ exception, no `longjmp`.
///
/// Since: 0.1.1.
pub type rukh_log_record_callback =
    Option<unsafe extern "C" fn(record: *const rukh_log_record, user: *mut c_void)>;

/// Is told where a node runs. `placement` is valid during the call. Returns `RUKH_OK` to be told of the next node; anything
/// else ends it. Called on the thread that asks, with no lock held. It must return normally.
///
/// Since: 0.1.1.
pub type rukh_placement_callback =
    Option<unsafe extern "C" fn(placement: *const rukh_placement, user: *mut c_void) -> rukh_status>;

/// Is told that a run of `rukh_session_start` has ended, once, on a thread of the library. `completion` is valid during the
/// call: `rukh_completion_wait` tells at once how the run ended, `rukh_completion_output` gives its outputs. It may call
/// every function of the library, also to run again and to destroy the session. It must return normally.
///
/// Since: 0.1.1.
pub type rukh_completion_callback =
    Option<unsafe extern "C" fn(completion: *const rukh_completion, user: *mut c_void)>;

/// Receives a log message for `rukh_environment_options_set_log`, which is deprecated: a NUL-terminated text that is valid
/// during the call. Called from any thread, from several at the same time, and with no lock held, so it may call the
/// library. It must return normally: no C++ exception, no `longjmp`.
pub type rukh_log_callback =
    Option<unsafe extern "C" fn(user: *mut c_void, level: rukh_log_level, message: *const c_char)>;

/// Releases what `user` stands for; called once, from any thread, when the library will not use `user`
/// again. It must return normally.
pub type rukh_release = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Is told what compiling a model does now, and how many steps of how many are done. `step` is valid during the call.
/// Returns `RUKH_OK` to go on; with anything else compiling ends with `RUKH_ERROR_CANCELLED`. Called on the thread that
/// compiles, with no lock held. It must return normally.
pub type rukh_progress_callback = Option<
    unsafe extern "C" fn(user: *mut c_void, step: *const c_char, done: u64, total: u64) -> rukh_status,
>;

/// Asks the caller about a node whose operator it defined: for the shapes of outputs, for the state of a kernel, for the
/// temporary memory of a GPU kernel. `node` is valid during the call. Returns `RUKH_OK`, or one of `RUKH_ERROR_…` with a
/// text that `rukh_node_info_set_error` got. It may be called from any thread, from several at the same time, with no
/// lock held, and may call every function of the library. It must return normally.
pub type rukh_node_callback =
    Option<unsafe extern "C" fn(node: *mut rukh_node_info, user: *mut c_void) -> rukh_status>;

/// Computes the outputs of a node whose operator the caller defined. `context`, and the values that it gives, are valid
/// during the call. Returns `RUKH_OK`, or one of `RUKH_ERROR_…` with a text that `rukh_kernel_context_set_error` got. It
/// is called from any thread, from several at the same time when several runs go on, with no lock held, and may call
/// every function of the library, also to run the same session. It must return normally.
pub type rukh_kernel_callback =
    Option<unsafe extern "C" fn(context: *mut rukh_kernel_context, user: *mut c_void) -> rukh_status>;

/// One part of a loop, of `rukh_kernel_context_parallel_for` or of the library's own. Called on several threads. It must
/// return normally; the library's own do.
pub type rukh_parallel_body = Option<unsafe extern "C" fn(index: usize, user: *mut c_void)>;

/// Runs a loop of the library on threads of the caller's: calls `body` with each number below `count` and with `argument`, in
/// any order and on any threads, the calling one too, and returns when every call has returned; `body` and `argument` are
/// not to be used afterwards. `count` is no more than the number of threads that was told. It is called from any thread,
/// from several at the same time when several runs go on, with no lock held, never from inside of a body. It must return
/// normally; what it leaves out the calling thread does.
pub type rukh_parallel_for = Option<
    unsafe extern "C" fn(count: usize, body: rukh_parallel_body, argument: *mut c_void, user: *mut c_void),
>;

/// Allocates device memory for `rukh_session_options_set_external_allocator`.
pub type rukh_device_alloc = Option<unsafe extern "C" fn(bytes: usize, user: *mut c_void) -> *mut c_void>;
/// Frees device memory that a `rukh_device_alloc` gave.
pub type rukh_device_free = Option<unsafe extern "C" fn(address: *mut c_void, user: *mut c_void)>;
/// Gives back device memory that a caller's allocator keeps unused.
pub type rukh_device_empty_cache = Option<unsafe extern "C" fn(user: *mut c_void)>;

/// Releases memory that a tensor was laid over; called once, from any thread, when the last value, run
/// and session that use the memory are done with it. It must return normally.
pub type rukh_deleter = Option<unsafe extern "C" fn(data: *mut c_void, user: *mut c_void)>;

/// Receives the result of `rukh_session_run_async`, which is deprecated, once, on a thread of the library.
///
/// On success `status` is `RUKH_OK`, `error` is NULL and `outputs` holds `output_count` values, in the
/// order of the names that were asked for. On failure `outputs` is NULL, `output_count` is 0 and
/// `error` says why. The array is valid during the call; the values in it and the error belong to the
/// callback, which destroys them (then or later). It may call every function of the library, also to
/// run again and to destroy the session. It must return normally.
pub type rukh_run_callback = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        status: rukh_status,
        outputs: *const *mut rukh_value,
        output_count: usize,
        error: *mut rukh_error,
    ),
>;
