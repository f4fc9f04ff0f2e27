/*
 * rukh: runs ONNX models on AMD GPUs, NVIDIA GPUs and any CPU.
 *
 * This file is made from the library's source. Everything a function needs to be told is in its
 * comment; what holds for all of them is here.
 *
 * Contents: handles, callbacks and constants; then functions, each section under its number as "-- 1.":
 *    1. Versions
 *    2. The functions as a table of pointers, for who loads the library at run time
 *    3. Errors: code and message
 *    4. Environments: what sessions share
 *    5. The log: who receives messages, and what a message tells of itself
 *    6. Loops of the library on threads of the caller's
 *    7. Devices and providers
 *    8. The library and its surroundings, for a report about a defect
 *    9. The memory of devices: statistics, peaks, the cache, snapshots
 *   10. The plans of Fourier transforms that an environment keeps for a device
 *   11. Options of a session
 *   12. The providers of a session and their options
 *   13. Sessions: opening a model, and what it takes and gives
 *   14. Models and weights in memory of the caller's, without a copy
 *   15. Compiling a model to an artifact
 *   16. What a compiled model is, and whether it suits
 *   17. Adapters: named tensors in place of inputs, as LoRA fine-tuning makes them
 *   18. Where the nodes of a session run, and why there
 *   19. What a session does in a run, for pictures and tools
 *   20. The inputs and outputs of a session: names, types, shapes
 *   21. What a session tells of its model, its placement, its loading and its runs
 *   22. Values: making tensors, and what a value tells of itself
 *   23. Tensors in the memory of a device
 *   24. Tensors and outputs in the memory of a device that a handle names, and copies that a stream orders
 *   25. Memory that another API exported, as tensors of a device
 *   26. Tensors of strings
 *   27. Sequences, maps and optionals
 *   28. Tensors to and from other libraries through DLPack, without a copy
 *   29. Options of a run, and cancelling it
 *   30. Running a session
 *   31. Running a session in the background
 *   32. Io bindings: inputs and outputs that stay from run to run
 *   33. Runs that were started, runs and copies whose work is queued on a device, and waiting for them
 *   34. What tuning found: which kernels are fastest on this device
 *   35. Operators that the caller defines: their name, inputs and outputs, and functions
 *   36. The attributes of an operator that the caller defines, and their defaults
 *   37. Shared libraries of operators
 *   38. A node whose operator the caller defined, as the caller's functions see it: its inputs, and what they answer
 *   39. What a shape function tells of a node's outputs
 *   40. The attributes of a node whose operator the caller defined
 *   41. One call of the caller's kernel: its inputs and outputs, and the threads and the stream that it may use
 *
 * Errors. Functions return a rukh_status, which must be looked at; RUKH_OK is 0. The last argument, `error`, may be NULL; else
 *   it receives NULL on success and on failure an object with code and message, which the caller
 *   destroys with rukh_error_destroy. There is no thread-local "last error".
 * Handles are opaque pointers, made by rukh_..._create and such, destroyed by rukh_..._destroy. Where
 *   a function makes a handle, `*out` is NULL unless it succeeds. What depends on a handle keeps it
 *   alive, so they may be destroyed in any order. Every function that takes a handle may return the
 *   handle errors: RUKH_ERROR_INVALID_ARGUMENT for NULL, RUKH_ERROR_INVALID_HANDLE for a pointer that
 *   is no live handle of the kind (destroyed, of another kind, or anything else),
 *   RUKH_ERROR_POISONED after a defect of the library was met while the handle was in use, and
 *   RUKH_ERROR_FORKED in the child of a fork for handles made before it. Destroying such a pointer
 *   does nothing (a poisoned handle is destroyed).
 * Threads. All functions may be called from any thread. A parameter that points to const is only read:
 *   calls that only read an object may run at the same time. Calls that change an object must not run
 *   at the same time as other calls on it, unless the comment allows it ("Threads: any").
 * Texts. In: NUL-terminated UTF-8, copied. Out, borrowed: `const char **`, valid until the handle they
 *   are borrowed from is destroyed. Out, built: `(char *buf, size_t cap, size_t *needed)`: `needed`,
 *   which may be NULL, receives the bytes the text takes with its NUL; `buf` may be NULL with `cap` 0,
 *   to ask for `needed` alone; a buffer that is too small receives "" and the call is
 *   RUKH_ERROR_INVALID_ARGUMENT.
 * Paths are texts. On Windows they are UTF-8 like all texts, whatever the code page is, and `/` or `\` stands between
 *   folders; on other systems they may be any bytes.
 * Arrays are a pointer and a length; NULL is allowed with length 0 only.
 * Enums are int32_t with defined values; an unknown value is an error.
 * Shapes are arrays of int64_t, the outermost dimension first, in elements. Elements lie in row-major
 *   order without gaps. Sizes are in bytes where the name says so.
 * Callbacks receive a `void *user` that the library only passes on. No lock is held while one runs, so
 *   it may call the library.
 */


#ifndef RUKH_H
#define RUKH_H



#include <stddef.h>
#include <stdint.h>

/*
 * Functions of the library. On Windows they come from rukh.dll; a program that is linked to the static library there
 * defines RUKH_STATIC first. The calling convention is C's everywhere.
 */
#if defined(_WIN32) && !defined(RUKH_STATIC)
#define RUKH_API __declspec(dllimport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define RUKH_API __attribute__((visibility("default")))
#else
#define RUKH_API
#endif

/* For the two functions that a library of operators has for others to find, see rukh_session_options_load_operators. */
#if defined(_WIN32)
#define RUKH_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define RUKH_EXPORT __attribute__((visibility("default")))
#else
#define RUKH_EXPORT
#endif

/*
 * Every function that returns a status is marked RUKH_MUST_CHECK: the compiler warns where nobody looks at the status.
 * What a later series will not have is marked RUKH_DEPRECATED, with what takes its place. A program that wants neither
 * warning defines the name before it includes this header: as nothing, and as RUKH_DEPRECATED(note).
 */
#ifndef RUKH_MUST_CHECK
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define RUKH_MUST_CHECK [[nodiscard]]
#elif defined(__GNUC__)
#define RUKH_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RUKH_MUST_CHECK
#endif
#endif

#ifndef RUKH_DEPRECATED
#if (defined(__cplusplus) && __cplusplus >= 201402L) || (defined(_MSVC_LANG) && _MSVC_LANG >= 201402L) || \
    (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define RUKH_DEPRECATED(note) [[deprecated(note)]]
#elif defined(__GNUC__)
#define RUKH_DEPRECATED(note) __attribute__((deprecated(note)))
#elif defined(_MSC_VER)
#define RUKH_DEPRECATED(note) __declspec(deprecated(note))
#else
#define RUKH_DEPRECATED(note)
#endif
#endif

/* DLPack's own structs; their definition is in dlpack.h, which is needed only to look inside. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
/* The functions as a table of pointers, for who loads the library at run time: see rukh_table.h. */
struct rukh_table;


/**
 * The version of the binary interface: `major * 1000000 + minor * 1000 + patch`. A program built with
 * one header works with every library of the same major and minor (while major is 0, else of the same
 * major) whose version is not smaller.
 */
#define RUKH_ABI_VERSION 1001

/**
 * The version of the library that this header came with, its first number. It counts releases; what a program may rely on
 * is `RUKH_ABI_VERSION`.
 */
#define RUKH_VERSION_MAJOR 0

/**
 * The second number of the version of the library that this header came with.
 */
#define RUKH_VERSION_MINOR 1

/**
 * The third number of the version of the library that this header came with.
 */
#define RUKH_VERSION_PATCH 0

/**
 * Named tensors in place of a model's inputs, as LoRA fine-tuning makes them.
 */
typedef struct rukh_adapter rukh_adapter;

/**
 * A model that was compiled, to ask about.
 */
typedef struct rukh_artifact rukh_artifact;

/**
 * How a model is compiled to an artifact.
 */
typedef struct rukh_compile_options rukh_compile_options;

/**
 * A run that was started, or a run or a copy whose work is queued on a device.
 */
typedef struct rukh_completion rukh_completion;

/**
 * A device that can run models.
 */
typedef struct rukh_device rukh_device;

/**
 * What sessions share: threads and the log.
 */
typedef struct rukh_environment rukh_environment;

/**
 * How an environment is made.
 */
typedef struct rukh_environment_options rukh_environment_options;

/**
 * Why a call failed: a code and a message. Owned by who received it.
 */
typedef struct rukh_error rukh_error;

/**
 * Memory that another API exported.
 */
typedef struct rukh_external_memory rukh_external_memory;

/**
 * What runs of one session read and write, kept between runs.
 */
typedef struct rukh_io_binding rukh_io_binding;

/**
 * One call of the caller's kernel, during the callback that computes.
 */
typedef struct rukh_kernel_context rukh_kernel_context;

/**
 * A message of the log, during the callback that receives it.
 */
typedef struct rukh_log_record rukh_log_record;

/**
 * A node whose operator the caller defined, during a callback that is asked about it.
 */
typedef struct rukh_node_info rukh_node_info;

/**
 * An operator that the caller defines.
 */
typedef struct rukh_operator rukh_operator;

/**
 * What a shared library of operators adds its operators to, while it is asked for them.
 */
typedef struct rukh_operator_registry rukh_operator_registry;

/**
 * Where a node of a session runs, during the callback that is told.
 */
typedef struct rukh_placement rukh_placement;

/**
 * How one run behaves; cancels it from another thread.
 */
typedef struct rukh_run_options rukh_run_options;

/**
 * A model, ready to run.
 */
typedef struct rukh_session rukh_session;

/**
 * How a session is made.
 */
typedef struct rukh_session_options rukh_session_options;

/**
 * A queue of work for a device, which the caller orders.
 */
typedef struct rukh_stream rukh_stream;

/**
 * A tensor, sequence, map or optional.
 */
typedef struct rukh_value rukh_value;

/**
 * What a function returns: `RUKH_OK` or one of the `RUKH_ERROR_…` codes. The numbers never change.
 */
typedef int32_t rukh_status;

/**
 * How much a log message matters.
 */
typedef int32_t rukh_log_level;

/**
 * Receives a log message. `record` is valid during the call. Called from any thread, from several at the same time, and
 * with no lock held, so it may call the library. It must return normally: no C++ exception, no `longjmp`.
 *
 * Since: 0.1.1.
 */
typedef void (*rukh_log_record_callback)(const struct rukh_log_record *record,
                                         void *user);

/**
 * Releases what `user` stands for; called once, from any thread, when the library will not use `user`
 * again. It must return normally.
 */
typedef void (*rukh_release)(void *user);

/**
 * Receives a log message for `rukh_environment_options_set_log`, which is deprecated: a NUL-terminated text that is valid
 * during the call. Called from any thread, from several at the same time, and with no lock held, so it may call the
 * library. It must return normally: no C++ exception, no `longjmp`.
 */
typedef void (*rukh_log_callback)(void *user,
                                  rukh_log_level level,
                                  const char *message);

/**
 * A text of a log message.
 */
typedef int32_t rukh_log_text;

/**
 * One part of a loop, of `rukh_kernel_context_parallel_for` or of the library's own. Called on several threads. It must
 * return normally; the library's own do.
 */
typedef void (*rukh_parallel_body)(size_t index,
                                   void *user);

/**
 * Runs a loop of the library on threads of the caller's: calls `body` with each number below `count` and with `argument`, in
 * any order and on any threads, the calling one too, and returns when every call has returned; `body` and `argument` are
 * not to be used afterwards. `count` is no more than the number of threads that was told. It is called from any thread,
 * from several at the same time when several runs go on, with no lock held, never from inside of a body. It must return
 * normally; what it leaves out the calling thread does.
 */
typedef void (*rukh_parallel_for)(size_t count,
                                  rukh_parallel_body body,
                                  void *argument,
                                  void *user);

/**
 * How a model file comes into memory.
 */
typedef int32_t rukh_load_mode;

/**
 * How far the model's graph is rewritten before it runs. No level changes what the model means.
 */
typedef int32_t rukh_optimization;

/**
 * What happens to a node that none of the wanted providers can take.
 */
typedef int32_t rukh_fallback;

/**
 * Allocates device memory for `rukh_session_options_set_external_allocator`.
 */
typedef void *(*rukh_device_alloc)(size_t bytes,
                                   void *user);

/**
 * Frees device memory that a `rukh_device_alloc` gave.
 */
typedef void (*rukh_device_free)(void *address,
                                 void *user);

/**
 * Gives back device memory that a caller's allocator keeps unused.
 */
typedef void (*rukh_device_empty_cache)(void *user);

/**
 * Releases memory that a tensor was laid over; called once, from any thread, when the last value, run
 * and session that use the memory are done with it. It must return normally.
 */
typedef void (*rukh_deleter)(void *data,
                             void *user);

/**
 * Is told what compiling a model does now, and how many steps of how many are done. `step` is valid during the call.
 * Returns `RUKH_OK` to go on; with anything else compiling ends with `RUKH_ERROR_CANCELLED`. Called on the thread that
 * compiles, with no lock held. It must return normally.
 */
typedef rukh_status (*rukh_progress_callback)(void *user,
                                              const char *step,
                                              uint64_t done,
                                              uint64_t total);

/**
 * Whether an artifact suits a device and options.
 */
typedef int32_t rukh_artifact_verdict;

/**
 * Is told where a node runs. `placement` is valid during the call. Returns `RUKH_OK` to be told of the next node; anything
 * else ends it. Called on the thread that asks, with no lock held. It must return normally.
 *
 * Since: 0.1.1.
 */
typedef rukh_status (*rukh_placement_callback)(const struct rukh_placement *placement,
                                               void *user);

/**
 * A text about where a node runs.
 */
typedef int32_t rukh_placement_fact;

/**
 * What a value is.
 */
typedef int32_t rukh_kind;

/**
 * The type of a tensor's elements. The numbers are those of ONNX's `TensorProto.DataType`.
 *
 * Elements narrower than a byte (`INT4`, `UINT4`, `INT2`, `UINT2`, `FLOAT4E2M1`, `FLOAT6E2M3`,
 * `FLOAT6E3M2`) take one byte each in memory; integers are sign-extended where signed. A `BOOL` is one byte; any byte but 0 is true.
 */
typedef int32_t rukh_element_type;

/**
 * A text that the model file carries about itself.
 */
typedef int32_t rukh_model_text;

/**
 * A count of what opening a session did.
 */
typedef int32_t rukh_load_counter;

/**
 * Memory, as a device sees it.
 */
typedef int32_t rukh_memory_kind;

/**
 * What another API exported memory as.
 */
typedef int32_t rukh_external_handle;

/**
 * Is told that a run of `rukh_session_start` has ended, once, on a thread of the library. `completion` is valid during the
 * call: `rukh_completion_wait` tells at once how the run ended, `rukh_completion_output` gives its outputs. It may call
 * every function of the library, also to run again and to destroy the session. It must return normally.
 *
 * Since: 0.1.1.
 */
typedef void (*rukh_completion_callback)(const struct rukh_completion *completion,
                                         void *user);

/**
 * Receives the result of `rukh_session_run_async`, which is deprecated, once, on a thread of the library.
 *
 * On success `status` is `RUKH_OK`, `error` is NULL and `outputs` holds `output_count` values, in the
 * order of the names that were asked for. On failure `outputs` is NULL, `output_count` is 0 and
 * `error` says why. The array is valid during the call; the values in it and the error belong to the
 * callback, which destroys them (then or later). It may call every function of the library, also to
 * run again and to destroy the session. It must return normally.
 */
typedef void (*rukh_run_callback)(void *user,
                                  rukh_status status,
                                  struct rukh_value *const *outputs,
                                  size_t output_count,
                                  struct rukh_error *error);

/**
 * How often an input or output of an operator may be there.
 */
typedef int32_t rukh_arity;

/**
 * Asks the caller about a node whose operator it defined: for the shapes of outputs, for the state of a kernel, for the
 * temporary memory of a GPU kernel. `node` is valid during the call. Returns `RUKH_OK`, or one of `RUKH_ERROR_…` with a
 * text that `rukh_node_info_set_error` got. It may be called from any thread, from several at the same time, with no
 * lock held, and may call every function of the library. It must return normally.
 */
typedef rukh_status (*rukh_node_callback)(struct rukh_node_info *node,
                                          void *user);

/**
 * Computes the outputs of a node whose operator the caller defined. `context`, and the values that it gives, are valid
 * during the call. Returns `RUKH_OK`, or one of `RUKH_ERROR_…` with a text that `rukh_kernel_context_set_error` got. It
 * is called from any thread, from several at the same time when several runs go on, with no lock held, and may call
 * every function of the library, also to run the same session. It must return normally.
 */
typedef rukh_status (*rukh_kernel_callback)(struct rukh_kernel_context *context,
                                            void *user);

/**
 * The type of an attribute. The numbers are those of ONNX's `AttributeProto.AttributeType`.
 */
typedef int32_t rukh_attribute_type;

/**
 * Success.
 */
#define RUKH_OK 0

/**
 * An argument has a value that is not allowed (NULL where it must not be, an unknown enum value).
 */
#define RUKH_ERROR_INVALID_ARGUMENT 1

/**
 * A handle is of another kind, was destroyed, or never was one.
 */
#define RUKH_ERROR_INVALID_HANDLE 2

/**
 * A file or a name is not there.
 */
#define RUKH_ERROR_NOT_FOUND 3

/**
 * The operating system refused to read or write.
 */
#define RUKH_ERROR_IO 4

/**
 * The model breaks the ONNX standard.
 */
#define RUKH_ERROR_INVALID_MODEL 5

/**
 * The model is valid, but something in it cannot be run.
 */
#define RUKH_ERROR_UNSUPPORTED 6

/**
 * An input has the wrong type, rank or dimensions.
 */
#define RUKH_ERROR_INVALID_INPUT 7

/**
 * The data given are not allowed: an index out of range, an integer division by zero.
 */
#define RUKH_ERROR_INVALID_DATA 8

/**
 * Host or device memory is exhausted.
 */
#define RUKH_ERROR_OUT_OF_MEMORY 9

/**
 * The run was cancelled.
 */
#define RUKH_ERROR_CANCELLED 10

/**
 * There is no device, or it failed.
 */
#define RUKH_ERROR_DEVICE 11

/**
 * An earlier failure left this handle unusable; it can only be destroyed.
 */
#define RUKH_ERROR_POISONED 12

/**
 * The handle was made before `fork`, and this is the child.
 */
#define RUKH_ERROR_FORKED 13

/**
 * A defect of the library. The message says where.
 */
#define RUKH_ERROR_INTERNAL 14

/**
 * No type: where there is none to tell, or none to give.
 */
#define RUKH_ELEMENT_UNDEFINED 0

#define RUKH_ELEMENT_FLOAT 1

#define RUKH_ELEMENT_UINT8 2

#define RUKH_ELEMENT_INT8 3

#define RUKH_ELEMENT_UINT16 4

#define RUKH_ELEMENT_INT16 5

#define RUKH_ELEMENT_INT32 6

#define RUKH_ELEMENT_INT64 7

#define RUKH_ELEMENT_STRING 8

#define RUKH_ELEMENT_BOOL 9

#define RUKH_ELEMENT_FLOAT16 10

#define RUKH_ELEMENT_DOUBLE 11

#define RUKH_ELEMENT_UINT32 12

#define RUKH_ELEMENT_UINT64 13

#define RUKH_ELEMENT_COMPLEX64 14

#define RUKH_ELEMENT_COMPLEX128 15

#define RUKH_ELEMENT_BFLOAT16 16

#define RUKH_ELEMENT_FLOAT8E4M3FN 17

#define RUKH_ELEMENT_FLOAT8E4M3FNUZ 18

#define RUKH_ELEMENT_FLOAT8E5M2 19

#define RUKH_ELEMENT_FLOAT8E5M2FNUZ 20

#define RUKH_ELEMENT_UINT4 21

#define RUKH_ELEMENT_INT4 22

#define RUKH_ELEMENT_FLOAT4E2M1 23

#define RUKH_ELEMENT_FLOAT8E8M0 24

#define RUKH_ELEMENT_UINT2 25

#define RUKH_ELEMENT_INT2 26

#define RUKH_ELEMENT_FLOAT6E2M3 27

#define RUKH_ELEMENT_FLOAT6E3M2 28

/**
 * Not known before the model runs.
 */
#define RUKH_KIND_UNDEFINED 0

/**
 * Elements of one type in a rectangle of any rank.
 */
#define RUKH_KIND_TENSOR 1

/**
 * Values of one type in order.
 */
#define RUKH_KIND_SEQUENCE 2

/**
 * Integer or string keys, each with a value.
 */
#define RUKH_KIND_MAP 3

/**
 * A value or none.
 */
#define RUKH_KIND_OPTIONAL 4

#define RUKH_LOG_DEBUG 0

#define RUKH_LOG_INFO 1

#define RUKH_LOG_WARNING 2

#define RUKH_LOG_ERROR 3

/**
 * What it says, for people.
 */
#define RUKH_LOG_TEXT_MESSAGE 0

/**
 * What it is about: "environment", "session", "provider", "tuning", "model_cache", "run" or "defect". Later versions may
 * have others.
 */
#define RUKH_LOG_TEXT_CATEGORY 1

/**
 * Whose it is: the session's option "log_id", else the name of its model's file.
 */
#define RUKH_LOG_TEXT_SESSION 2

/**
 * In which run it was written: the run's option "tag".
 */
#define RUKH_LOG_TEXT_RUN 3

/**
 * The node that it is about.
 */
#define RUKH_LOG_TEXT_NODE 4

/**
 * Where in the library's source it was written, as "file:line".
 */
#define RUKH_LOG_TEXT_LOCATION 5

/**
 * Mapped: pages are read when needed and shared between processes. The file must not shrink while the
 * session lives; a file that does ends the process with SIGBUS.
 */
#define RUKH_LOAD_MAP 0

/**
 * Read in whole: the file may change afterwards.
 */
#define RUKH_LOAD_READ 1

/**
 * Only what running needs.
 */
#define RUKH_OPTIMIZATION_NONE 0

/**
 * Constants and shapes are folded, dead code is removed.
 */
#define RUKH_OPTIMIZATION_BASIC 1

/**
 * Fusions as well. The default.
 */
#define RUKH_OPTIMIZATION_ALL 2

/**
 * The CPU runs it. The default.
 */
#define RUKH_FALLBACK_CPU 0

/**
 * The session is refused with an error that names the node.
 */
#define RUKH_FALLBACK_ERROR 1

/**
 * The device's own. That of the CPU is the host's.
 */
#define RUKH_MEMORY_DEVICE 0

/**
 * The host's, pinned for a GPU, which copies from and to it by itself: such a copy does not hold up the thread that
 * queues it.
 */
#define RUKH_MEMORY_PINNED 1

/**
 * The host's.
 */
#define RUKH_MEMORY_HOST 2

/**
 * A file descriptor of the driver's own kind, as Vulkan's `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT` gives.
 */
#define RUKH_EXTERNAL_OPAQUE_FD 0

/**
 * A file descriptor of a dma-buf.
 */
#define RUKH_EXTERNAL_DMA_BUF 1

/**
 * A `HANDLE` of Windows', as `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT` gives.
 */
#define RUKH_EXTERNAL_WIN32 2

/**
 * It was compiled for them.
 */
#define RUKH_ARTIFACT_OPTIMAL 0

/**
 * It works; compiling it again would make it better.
 */
#define RUKH_ARTIFACT_WORKS 1

/**
 * It cannot be used.
 */
#define RUKH_ARTIFACT_UNFIT 2

/**
 * Once.
 */
#define RUKH_ARITY_REQUIRED 0

/**
 * Once or not at all.
 */
#define RUKH_ARITY_OPTIONAL 1

/**
 * Any number of times, none included. Allowed for the last one.
 */
#define RUKH_ARITY_VARIADIC 2

/**
 * Once or more. Allowed for the last one.
 */
#define RUKH_ARITY_VARIADIC_SOME 3

#define RUKH_ATTRIBUTE_FLOAT 1

#define RUKH_ATTRIBUTE_INT 2

#define RUKH_ATTRIBUTE_STRING 3

#define RUKH_ATTRIBUTE_TENSOR 4

#define RUKH_ATTRIBUTE_FLOATS 6

#define RUKH_ATTRIBUTE_INTS 7

#define RUKH_ATTRIBUTE_STRINGS 8

/**
 * The node's name.
 */
#define RUKH_PLACEMENT_NODE 0

/**
 * The name of its operator.
 */
#define RUKH_PLACEMENT_OPERATOR 1

/**
 * The provider that runs it: "cpu" or "hip".
 */
#define RUKH_PLACEMENT_PROVIDER 2

/**
 * Why that one, for people.
 */
#define RUKH_PLACEMENT_REASON 3

#define RUKH_MODEL_PRODUCER_NAME 0

#define RUKH_MODEL_PRODUCER_VERSION 1

#define RUKH_MODEL_DOMAIN 2

#define RUKH_MODEL_GRAPH_NAME 3

#define RUKH_MODEL_DESCRIPTION 4

/**
 * Bytes of files that were mapped.
 */
#define RUKH_LOAD_MAPPED_BYTES 0

/**
 * Bytes of files that were read into memory.
 */
#define RUKH_LOAD_READ_BYTES 1

/**
 * Bytes of weights that were copied because they were not aligned or had to be converted.
 */
#define RUKH_LOAD_COPIED_BYTES 2

/**
 * Bytes of weights in a layout made for a kernel.
 */
#define RUKH_LOAD_PACKED_BYTES 3

/**
 * The number of weights that were copied.
 */
#define RUKH_LOAD_COPIED_WEIGHTS 4

/**
 * Bytes of all these kinds that another session of the environment had already, and that both use. The other counts are
 * then 0.
 */
#define RUKH_LOAD_SHARED_BYTES 5

#ifdef __cplusplus
extern "C" {
#endif  /* __cplusplus */

/* -- 1. Versions -- */

/**
 * The version of the library as `major * 1000000 + minor * 1000 + patch`.
 *
 * Never fails. Threads: any, at the same time.
 */
RUKH_API
uint32_t rukh_version(void);

/**
 * The version of the library as text, such as "0.1.0".
 *
 * The text is static: never NULL, never freed. Never fails. Threads: any, at the same time.
 */
RUKH_API
const char *rukh_version_string(void);

/**
 * The `RUKH_ABI_VERSION` of the library that runs. A program that loads the library by hand compares
 * it with the `RUKH_ABI_VERSION` of its header.
 *
 * Never fails. Threads: any, at the same time.
 */
RUKH_API
uint32_t rukh_abi_version(void);

/* -- 2. The functions as a table of pointers, for who loads the library at run time -- */

/**
 * The functions of the library as a table of pointers, for who loads the library at run time: one symbol to look up
 * in place of all. `rukh/rukh_table.h` has the table's members.
 *
 * `version`: the `RUKH_ABI_VERSION` of the header that the program was compiled with.
 *
 * The table is static: never freed. NULL where the library cannot serve the program: it is older than `version`, or of
 * another series (while the major is 0: another minor; else another major). Never fails otherwise. Threads: any, at the
 * same time.
 *
 * Since: 0.1.1.
 */
RUKH_API
const struct rukh_table *rukh_api(uint32_t version);

/* -- 3. Errors: code and message -- */

/**
 * The status code of an error.
 *
 * `error`: NULL gives `RUKH_OK`; a pointer that is no live error gives what is wrong with it, such as
 * `RUKH_ERROR_INVALID_HANDLE`. Threads: any, at the same time.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_error_code(const struct rukh_error *error);

/**
 * The message of an error: it names the thing, the value that was given and what is allowed.
 *
 * Never NULL. The text is UTF-8, borrowed from the error and valid until the error is destroyed.
 * `error`: NULL gives ""; a pointer that is no live error gives a static text that says so. Threads:
 * any, at the same time.
 */
RUKH_API
const char *rukh_error_message(const struct rukh_error *error);

/**
 * Makes an error: for libraries on top of this one, whose functions report failures as this one's do.
 *
 * `code`: one of `RUKH_ERROR_…`. `message`: not NULL; copied; bytes that are not UTF-8 are replaced. Returns the
 * error, which its owner destroys; NULL for a code that is none, for a NULL message and when host memory is
 * exhausted. Threads: any, at the same time.
 */
RUKH_API
struct rukh_error *rukh_error_create(rukh_status code,
                                     const char *message);

/**
 * Destroys an error. NULL, and a pointer that is no live error, is left alone.
 *
 * Threads: any; the error must not be in use by another thread.
 */
RUKH_API
void rukh_error_destroy(struct rukh_error *error);

/**
 * The name of a status code, such as "RUKH_ERROR_NOT_FOUND"; "unknown" for a code that this version
 * does not know.
 *
 * Never NULL; the text is static. Never fails. Threads: any, at the same time.
 */
RUKH_API
const char *rukh_status_name(rukh_status status);

/* -- 4. Environments: what sessions share -- */

/**
 * Makes options for an environment, all at their defaults.
 *
 * Keys of `rukh_environment_options_set`: "threads" (threads of the pool that computes, the calling
 * one included; 0, the default, for all that the process may use) and "log_level" ("debug", "info",
 * "warning", the default, or "error").
 *
 * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_create(struct rukh_environment_options **out,
                                            struct rukh_error **error);

/**
 * Destroys options. Environments made from them stay. NULL, and a pointer that is no live handle of
 * this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_environment_options_destroy(struct rukh_environment_options *options);

/**
 * Sets an option by its name.
 *
 * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
 * keeps its value), and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_set(struct rukh_environment_options *options,
                                         const char *key,
                                         const char *value,
                                         struct rukh_error **error);

/**
 * The value of an option, in a form that `rukh_environment_options_set` takes.
 *
 * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
 * key or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_get(const struct rukh_environment_options *options,
                                         const char *key,
                                         char *buf,
                                         size_t cap,
                                         size_t *needed,
                                         struct rukh_error **error);

/**
 * The name of the option at `index`; together with `rukh_environment_options_get` this lists them all.
 *
 * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
 * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
 * same time. Errors: also the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_key(const struct rukh_environment_options *options,
                                         size_t index,
                                         char *buf,
                                         size_t cap,
                                         size_t *needed,
                                         struct rukh_error **error);

/**
 * Makes an environment: the threads and the log that sessions share. Most programs need one.
 *
 * `options`: NULL for the defaults; copied. `out`: not NULL; receives the environment, which the
 * caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_create(const struct rukh_environment_options *options,
                                    struct rukh_environment **out,
                                    struct rukh_error **error);

/**
 * Destroys an environment. Its sessions stay usable and keep the threads; they end with the last
 * session. NULL, and a pointer that is no live handle of this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_environment_destroy(struct rukh_environment *environment);

/**
 * The number of threads that compute for one run, the calling one included.
 *
 * `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_thread_count(const struct rukh_environment *environment,
                                          size_t *count,
                                          struct rukh_error **error);

/* -- 5. The log: who receives messages, and what a message tells of itself -- */

/**
 * Sets who receives log messages of `level` and above. Without a callback nothing is logged, but for one
 * warning that goes to stderr: a wanted GPU is not there and the model runs on the CPU. The environment
 * variable `RUKH_NO_WARNINGS` set to 1 silences it.
 *
 * A session (option "log_level") and a run (the same option of its own) may have another level than this one.
 *
 * `options`: not NULL. `level`: one of `RUKH_LOG_…`. `callback`: NULL for none. `user`: passed to the
 * callback as it is; may be NULL. `release`: may be NULL; else called once with `user` when these
 * options and all environments and sessions made from them are gone, also when this call fails.
 * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and
 * the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_set_log_callback(struct rukh_environment_options *options,
                                                      rukh_log_level level,
                                                      rukh_log_record_callback callback,
                                                      void *user,
                                                      rukh_release release,
                                                      struct rukh_error **error);

/**
 * Deprecated: use `rukh_environment_options_set_log_callback`, whose callback is told more. Of two listeners the one that
 * was set last receives the messages.
 *
 * `options`: not NULL. `level`: one of `RUKH_LOG_…`. `callback`: NULL for none. `user`: passed to the
 * callback as it is; may be NULL. `release`: may be NULL; else called once with `user` when these
 * options and all environments and sessions made from them are gone, also when this call fails.
 * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and
 * the handle errors.
 */
RUKH_DEPRECATED("use rukh_environment_options_set_log_callback")
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_set_log(struct rukh_environment_options *options,
                                             rukh_log_level level,
                                             rukh_log_callback callback,
                                             void *user,
                                             rukh_release release,
                                             struct rukh_error **error);

/**
 * Changes from which level on messages of an environment and its sessions are received. Sessions and runs that have a level
 * of their own keep it. Without a callback it has no effect.
 *
 * `environment`: not NULL. `level`: one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_set_log_level(struct rukh_environment *environment,
                                           rukh_log_level level,
                                           struct rukh_error **error);

/**
 * How much the message matters.
 *
 * `record`: not NULL; valid during the callback that received it, later the call is `RUKH_ERROR_INVALID_HANDLE`. `level`:
 * not NULL; receives one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_log_record_level(const struct rukh_log_record *record,
                                  rukh_log_level *level,
                                  struct rukh_error **error);

/**
 * A text of the message; "" where there is nothing to tell.
 *
 * `record`: not NULL; valid during the callback that received it. `which`: one of `RUKH_LOG_TEXT_…`. `text`: not NULL; the
 * text is borrowed from the record. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_log_record_text(const struct rukh_log_record *record,
                                 rukh_log_text which,
                                 const char **text,
                                 struct rukh_error **error);

/* -- 6. Loops of the library on threads of the caller's -- */

/**
 * Lets the library compute on threads of the caller's, such as those of OpenMP or TBB: the environment then starts none to
 * compute with. Sessions with option "intra_op_threads", "spinning" or "thread_affinities" still have threads of their
 * own, and asynchronous runs are started by threads of the library.
 *
 * `options`: not NULL. `callback`: NULL for the library's own threads. `threads`: how many calls of a body may run at
 * the same time, the calling thread's included, 1 to 1024; in place of option "threads". `user`: passed to the callback as
 * it is; may be NULL. `release`: may be NULL; else called once with `user` when these options and all environments and
 * sessions made from them are gone, also when this call fails. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for another number of threads, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_options_set_parallel_for(struct rukh_environment_options *options,
                                                      rukh_parallel_for callback,
                                                      size_t threads,
                                                      void *user,
                                                      rukh_release release,
                                                      struct rukh_error **error);

/* -- 7. Devices and providers -- */

/**
 * The number of devices of this machine that can run models. The CPU is one, and the last.
 *
 * `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_device_count(const struct rukh_environment *environment,
                                          size_t *count,
                                          struct rukh_error **error);

/**
 * A description of the device at `index`.
 *
 * `environment`: not NULL. `index`: from 0. `out`: not NULL; receives a handle that the caller
 * destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_device(const struct rukh_environment *environment,
                                    size_t index,
                                    struct rukh_device **out,
                                    struct rukh_error **error);

/**
 * The device of a provider by its number there, which is what options and functions call `device_id`.
 *
 * `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "cpu" or "hip". `device_id`: from 0;
 * 0 for the CPU. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown provider or a number that is
 * not there, `RUKH_ERROR_DEVICE` for a provider without a device, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_find_device(const struct rukh_environment *environment,
                                         const char *provider,
                                         size_t device_id,
                                         struct rukh_device **out,
                                         struct rukh_error **error);

/**
 * Destroys a device description. NULL, and a pointer that is no live handle of this kind, is left
 * alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_device_destroy(struct rukh_device *device);

/**
 * The name of the provider that runs nodes on the device: "cpu" or "hip".
 *
 * `device`, `provider`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads:
 * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_provider(const struct rukh_device *device,
                                 const char **provider,
                                 struct rukh_error **error);

/**
 * The device's number among those of its provider, which is what options and functions call `device_id`.
 *
 * `device`, `device_id`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_DEVICE` for a GPU of a platform that is not used, as another one has GPUs too;
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_id(const struct rukh_device *device,
                           size_t *device_id,
                           struct rukh_error **error);

/**
 * The device's name as its maker gives it.
 *
 * `device`, `name`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
 * at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_name(const struct rukh_device *device,
                             const char **name,
                             struct rukh_error **error);

/**
 * The architecture whose machine code the device runs, such as "x86_64" or "gfx942".
 *
 * `device`, `arch`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
 * at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_arch(const struct rukh_device *device,
                             const char **arch,
                             struct rukh_error **error);

/**
 * All the memory of the device in bytes, used or not; 0 when it is not known.
 *
 * `device`, `bytes`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_memory(const struct rukh_device *device,
                               uint64_t *bytes,
                               struct rukh_error **error);

/**
 * The number of further facts about the device, each a key and a value of text.
 *
 * A CPU has "threads" (that the process may use) and "vector_extensions". A GPU has "platform" ("amd" or
 * "nvidia"), "target" (its architecture with features, such as "gfx90a:sramecc+:xnack-"), "compute_units",
 * "wave_size" (lanes), "lds_bytes" (for each workgroup), "pci" (its address on the bus), "runtime" (the file that was
 * opened) and "runtime_version"; where they are known "driver_version" (the newest runtime that the driver serves),
 * "kernel_driver_version" (of the driver in the system's kernel), "pci_id" (maker and model, such as "1002:740c"),
 * "code_name" and "matrix_unit"; and "HIP_VISIBLE_DEVICES" when that variable is set. Later versions may add keys.
 *
 * `device`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_property_count(const struct rukh_device *device,
                                       size_t *count,
                                       struct rukh_error **error);

/**
 * The fact at `index`; see `rukh_device_property_count`.
 *
 * `device`, `key`, `value`: not NULL; the texts are borrowed from the device. `index`: from 0. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
 * is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_property(const struct rukh_device *device,
                                 size_t index,
                                 const char **key,
                                 const char **value,
                                 struct rukh_error **error);

/**
 * The fact of this name; see `rukh_device_property_count`.
 *
 * `device`, `key`: not NULL. `value`: not NULL; the text is borrowed from the device; NULL when the device has no such
 * fact, which is no error. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL or a key that is no UTF-8, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_device_find_property(const struct rukh_device *device,
                                      const char *key,
                                      const char **value,
                                      struct rukh_error **error);

/**
 * The number of providers this version knows, with or without a device.
 *
 * `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_provider_count(size_t *count,
                                struct rukh_error **error);

/**
 * The name of the provider at `index`: "hip" or "cpu".
 *
 * `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
 * or a buffer that is too small.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_provider_name(size_t index,
                               char *buf,
                               size_t cap,
                               size_t *needed,
                               struct rukh_error **error);

/**
 * Why a provider has no device on this machine, for people; "" when it has one.
 *
 * `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "hip" or
 * "ROCMExecutionProvider". `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may
 * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
 * provider or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_provider_reason(const struct rukh_environment *environment,
                                             const char *provider,
                                             char *buf,
                                             size_t cap,
                                             size_t *needed,
                                             struct rukh_error **error);

/* -- 8. The library and its surroundings, for a report about a defect -- */

/**
 * Facts about this library and the GPU runtimes that it found or missed here, as a JSON object: what a report
 * about a defect needs besides the devices.
 *
 * The keys are "version" and "abi_version" of the library; "kernel_targets", the GPUs that it was built for;
 * "vector_levels", which of the levels that RUKH_CPU_ISA names the processor has, and "vector_level", the one that
 * the CPU's kernels use; "instructions", what weights of an artifact are packed for here, and "artifact_revision", which
 * revision of compiled programs the library reads; "runtimes", a list with an object for each "platform" ("amd", "nvidia")
 * that has either "file", "version" and "devices", or the "reason" why there is none; and "tried", the files that were tried
 * and not taken, each with its "path" and the loader's "reason". A device has "name", "arch", and either "kernels", which of
 * the targets it runs, or a "reason". Later versions may add keys.
 *
 * `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_report(char *buf,
                        size_t cap,
                        size_t *needed,
                        struct rukh_error **error);

/* -- 9. The memory of devices: statistics, peaks, the cache, snapshots -- */

/**
 * Makes an arena for a device that sessions of the environment share: those with session option
 * "use_env_allocators" set to 1. Their own arena options then have no effect.
 *
 * `environment`: not NULL; owns the arena. `device_id`: as the hip provider's option; one arena for each
 * device. `config`: "key=value;key=value" as the hip provider's `default_memory_arena_cfg`; NULL for the
 * defaults. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or
 * device, or a second arena; `RUKH_ERROR_DEVICE` without a device, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_create_arena(struct rukh_environment *environment,
                                          size_t device_id,
                                          const char *config,
                                          struct rukh_error **error);

/**
 * A statistic of a device's memory by name, summed over the arenas of all sessions of the environment.
 *
 * PyTorch's names: "allocated_bytes.all.current" (what sessions hold), "reserved_bytes.all.current" (what
 * the arenas hold), and the same with "peak", "allocated" and "freed" for "current", "large_pool" and
 * "small_pool" for "all"; "num_ooms", "num_alloc_retries", … ONNX Runtime's names: "Limit", "InUse",
 * "TotalAllocated", "MaxInUse", "NumAllocs", … `rukh_environment_memory_statistic_name` lists them. Sizes
 * are in bytes. Peaks of several sessions are added up, which may be more than was there at one time.
 *
 * `environment`, `name`, `value`: not NULL. `device_id`: as the hip provider's option. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown name or
 * device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_statistic(const struct rukh_environment *environment,
                                              size_t device_id,
                                              const char *name,
                                              uint64_t *value,
                                              struct rukh_error **error);

/**
 * The name of the statistic at `index`.
 *
 * `environment`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
 * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_DEVICE` without a device, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_statistic_name(const struct rukh_environment *environment,
                                                   size_t index,
                                                   char *buf,
                                                   size_t cap,
                                                   size_t *needed,
                                                   struct rukh_error **error);

/**
 * What sessions do with a device's memory, as a table for people: what is allocated, active, requested, reserved and not
 * releasable, by pool, now and at its peak, in the form of PyTorch's `memory_summary`.
 *
 * `environment`: not NULL. `device_id`: as the hip provider's option. `buf`, `cap`, `needed`: see "Texts" at the top of
 * this header. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * unknown device or a buffer that is too small, `RUKH_ERROR_DEVICE` without a device, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_summary(const struct rukh_environment *environment,
                                            size_t device_id,
                                            char *buf,
                                            size_t cap,
                                            size_t *needed,
                                            struct rukh_error **error);

/**
 * Free and total bytes of a device's memory, as its runtime tells: other processes count.
 *
 * `environment`, `free`, `total`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_info(const struct rukh_environment *environment,
                                         size_t device_id,
                                         uint64_t *free,
                                         uint64_t *total,
                                         struct rukh_error **error);

/**
 * Lets the peaks of a device's memory start again from what is there now.
 *
 * `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
 * an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_reset_peaks(const struct rukh_environment *environment,
                                                size_t device_id,
                                                struct rukh_error **error);

/**
 * Gives the device memory that no session uses back to the runtime. Waits for the streams that still use
 * what was freed.
 *
 * `environment`: not NULL. `error`: may be NULL. Threads: any, also while sessions run. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_empty_cache(const struct rukh_environment *environment,
                                                size_t device_id,
                                                struct rukh_error **error);

/**
 * Lets each session that is open now keep the last `events` events of its device memory for snapshots; 0
 * keeps none, as at first.
 *
 * `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
 * an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_record_history(const struct rukh_environment *environment,
                                                   size_t device_id,
                                                   size_t events,
                                                   struct rukh_error **error);

/**
 * What a device's memory holds, as JSON: an array with an object for each session, which has "segments"
 * with their "blocks", and "device_traces" with the recorded events, by PyTorch's names. Asking changes nothing:
 * the size that one call tells holds for the next, unless memory is taken or given back in between.
 *
 * `environment`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device or a
 * buffer that is too small, `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_memory_snapshot(const struct rukh_environment *environment,
                                             size_t device_id,
                                             char *buf,
                                             size_t cap,
                                             size_t *needed,
                                             struct rukh_error **error);

/* -- 10. The plans of Fourier transforms that an environment keeps for a device -- */

/**
 * How many plans of Fourier transforms (DFT, STFT) are kept for a GPU, and how many may be.
 *
 * A plan is made when a session first needs a transform of a length, direction and precision, and has the tables that the
 * kernels read. Sessions of the environment share them. When there are more than the limit, 4096 at first, the ones that
 * were not used for longest go; what a session needs stays on the device as long as the session does.
 *
 * `environment`, `count`, `limit`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, at
 * the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the
 * handle errors. Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_fourier_plans(const struct rukh_environment *environment,
                                           size_t device_id,
                                           size_t *count,
                                           size_t *limit,
                                           struct rukh_error **error);

/**
 * Sets how many plans of Fourier transforms are kept for a GPU. With 0 none is: each session makes its own.
 *
 * `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
 * run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_set_fourier_plan_limit(const struct rukh_environment *environment,
                                                    size_t device_id,
                                                    size_t limit,
                                                    struct rukh_error **error);

/**
 * Lets all plans of Fourier transforms on a GPU go that no session needs.
 *
 * `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
 * run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_clear_fourier_plans(const struct rukh_environment *environment,
                                                 size_t device_id,
                                                 struct rukh_error **error);

/* -- 11. Options of a session -- */

/**
 * Makes options for a session, all at their defaults.
 *
 * Keys of `rukh_session_options_set`: "compiled_model_path" (a file for the compiled model; "", the default, for none),
 * "external_data_folder" (where files of external data are, in place of the model's
 * folder), "fallback" ("cpu" or "error"), "intra_op_threads" (threads of a
 * pool of the session's own; 0, the default, for the environment's), "load" ("map" or "read"),
 * "log_id" (who the session is in the log; "", the default, for the name of the model's file), "log_level" (from which level
 * on messages of the session reach the log's callback: "debug", "info", "warning", "error" or "off", or ONNX Runtime's numbers
 * 0 to 4; "", the default, for the environment's level), "model_cache_dir" (a folder in which compiled models are kept for later
 * sessions; "", the default, for none), "model_cache_limit" (bytes that they may have in all; 0 for any number; 17179869184),
 * "optimization" ("none", "basic" or "all"), "optimized_model_path" (a file that the optimised model is written to when the
 * session is made: as "optimization" says, without fusions, which no other program knows; "", the default, for none),
 * "optimized_model_external_data" ("1": its weights go into a file beside it, with ".data" behind its name, as they do
 * anyway when they are larger than a file of ONNX can be; "0", the default), "optimized_model_external_data_file" (the name
 * of that file, without a folder; given, the weights go there in any case; "", the default),
 * "optimized_model_external_data_min_bytes" (smaller weights stay in the model; "1024", the default), "plan_cache" (plans for different input shapes that are
 * kept, 64), "precision" ("f32", "f16", "bf16" or "auto": what floats compute in; "auto", the default, leaves
 * it to the provider's options and the environment), "profiling" ("0" or "1"), "share_weights" ("0" or "1", the default:
 * weights are shared with sessions of the same environment on the same file), "spinning" ("0" or "1", the default: threads
 * that have nothing to do look for work for a millisecond before they sleep; with "0" the session has threads of its own),
 * "thread_affinities" ("1,2;3-5": the processors, numbered from 1, of each thread of a pool of the session's own but the
 * caller's; "", the default, for all), "use_env_allocators" ("0" or
 * "1": device memory comes from the environment's arena), and "dim.NAME" (a number that the model's symbolic
 * dimension NAME is fixed to).
 *
 * Keys of ONNX Runtime's are taken as well where they mean the same, and set the key that stands above:
 * "session.disable_cpu_ep_fallback", "session.use_env_allocators",
 * "session.model_external_initializers_file_folder_path", "session.optimized_model_external_initializers_file_name",
 * "session.optimized_model_external_initializers_min_size_in_bytes", "session.intra_op.allow_spinning" and
 * "session.intra_op_thread_affinities".
 *
 * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_create(struct rukh_session_options **out,
                                        struct rukh_error **error);

/**
 * Makes a copy of options; later changes to one do not touch the other. The copy is not cancelled.
 *
 * `options`: not NULL. `out`: not NULL; receives the copy, which the caller destroys; NULL on failure.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
 * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_clone(const struct rukh_session_options *options,
                                       struct rukh_session_options **out,
                                       struct rukh_error **error);

/**
 * Ends every opening and compiling of a model that uses these options: each fails with `RUKH_ERROR_CANCELLED` as soon as
 * it looks, which it does before each node, and each constant that it computes. Later ones fail too, until
 * `rukh_session_options_reset`.
 *
 * Sessions that are open stay. `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than that
 * which opens. Errors: the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_cancel(struct rukh_session_options *options,
                                        struct rukh_error **error);

/**
 * Takes `rukh_session_options_cancel` back for openings that begin from now on. Those already cancelled stay cancelled.
 *
 * `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_reset(struct rukh_session_options *options,
                                       struct rukh_error **error);

/**
 * Destroys options. Sessions made from them stay. NULL, and a pointer that is no live handle of this
 * kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_session_options_destroy(struct rukh_session_options *options);

/**
 * Sets an option by its name; `rukh_session_options_create` lists them.
 *
 * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
 * keeps its value), and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set(struct rukh_session_options *options,
                                     const char *key,
                                     const char *value,
                                     struct rukh_error **error);

/**
 * The value of an option, in a form that `rukh_session_options_set` takes.
 *
 * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a key that is
 * unknown or not set, or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_get(const struct rukh_session_options *options,
                                     const char *key,
                                     char *buf,
                                     size_t cap,
                                     size_t *needed,
                                     struct rukh_error **error);

/**
 * The name of the option at `index`; together with `rukh_session_options_get` this lists them all.
 *
 * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
 * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
 * same time. Errors: also the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_key(const struct rukh_session_options *options,
                                     size_t index,
                                     char *buf,
                                     size_t cap,
                                     size_t *needed,
                                     struct rukh_error **error);

/**
 * Sets how the model file comes into memory; the default is `RUKH_LOAD_MAP`. The same as key "load".
 *
 * `options`: not NULL. `mode`: one of `RUKH_LOAD_…`. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown mode, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_load(struct rukh_session_options *options,
                                          rukh_load_mode mode,
                                          struct rukh_error **error);

/**
 * Sets how far the graph is rewritten; the default is `RUKH_OPTIMIZATION_ALL`. The same as key
 * "optimization".
 *
 * `options`: not NULL. `optimization`: one of `RUKH_OPTIMIZATION_…`. `error`: may be NULL. Threads:
 * any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_optimization(struct rukh_session_options *options,
                                                  rukh_optimization optimization,
                                                  struct rukh_error **error);

/**
 * Sets what happens to a node that no wanted provider can take; the default is `RUKH_FALLBACK_CPU`.
 * The same as key "fallback".
 *
 * `options`: not NULL. `fallback`: one of `RUKH_FALLBACK_…`. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_fallback(struct rukh_session_options *options,
                                              rukh_fallback fallback,
                                              struct rukh_error **error);

/**
 * Switches the recording of runs for `rukh_session_profile` on (1) or off (0, the default). The same
 * as key "profiling".
 *
 * `options`: not NULL. `on`: 0 or 1. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for another value of `on`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_profiling(struct rukh_session_options *options,
                                               int32_t on,
                                               struct rukh_error **error);

/**
 * Gives the session a pool of `threads` threads of its own, the calling one included; 0, the default,
 * has it use the environment's. The same as key "intra_op_threads".
 *
 * `options`: not NULL. `threads`: 0 to 1024. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a number that is too large, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_threads(struct rukh_session_options *options,
                                             size_t threads,
                                             struct rukh_error **error);

/**
 * Fixes a symbolic dimension of the model to a size, wherever its name appears. The same as key
 * "dim.NAME".
 *
 * `options`: not NULL. `name`: not NULL and not empty; copied. Opening a model whose inputs do not have
 * the name is an error. `size`: elements, 0 or more. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an empty name or a negative size, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_dimension(struct rukh_session_options *options,
                                               const char *name,
                                               int64_t size,
                                               struct rukh_error **error);

/* -- 12. The providers of a session and their options -- */

/**
 * Adds a provider, less preferred than those added before. Without any the CPU runs everything.
 *
 * Whether there is a device is found out when the session is made: a list none of whose providers has a device
 * is `RUKH_ERROR_DEVICE` then; one that also names "cpu" runs on the CPU, with a warning in the log. Without a
 * log the warning is one line on stderr, which the environment variable `RUKH_NO_WARNINGS` set to 1 silences.
 * Single nodes that a device cannot run go to the CPU in any case, unless option "fallback" is "error".
 *
 * `options`: not NULL. `provider`: not NULL; "cpu" (or "CPUExecutionProvider") or "hip" (or
 * "ROCMExecutionProvider", "MIGraphXExecutionProvider"). `keys`, `values`: arrays of `count` texts, the
 * provider's options; NULL allowed with 0; copied. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown provider or option, and for one that was added before;
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_add_provider(struct rukh_session_options *options,
                                              const char *provider,
                                              const char *const *keys,
                                              const char *const *values,
                                              size_t count,
                                              struct rukh_error **error);

/**
 * Lets the hip provider take device memory from functions of the caller's instead of its arena, which
 * is then bypassed: the limit and the strategy have no effect.
 *
 * `alloc` gets a number of bytes (never 0) and `user`, and returns an address in the memory of the
 * provider's device, aligned to 256 bytes, or NULL when there is none; `release_memory` gets what `alloc`
 * returned, when no stream uses it any more; `empty_cache`, which may be NULL, is asked to give back what
 * nobody uses before an allocation is tried again. They are called from any thread, at the same time too,
 * with no lock held, and must not throw. The provider options "gpu_external_alloc", "gpu_external_free"
 * and "gpu_external_empty_cache" do the same with functions that take no `user`. Not to be used with a
 * user's stream.
 *
 * `options`, `alloc`, `release_memory`: not NULL. `user`: handed on as it is; it must stay valid until
 * every session made with these options is destroyed. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_set_external_allocator(struct rukh_session_options *options,
                                                        rukh_device_alloc alloc,
                                                        rukh_device_free release_memory,
                                                        rukh_device_empty_cache empty_cache,
                                                        void *user,
                                                        struct rukh_error **error);

/**
 * The number of providers that were added.
 *
 * `options`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_provider_count(const struct rukh_session_options *options,
                                                size_t *count,
                                                struct rukh_error **error);

/**
 * The name of the provider that was added at `index`: "cpu" or "hip".
 *
 * `options`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * index that is not there or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_provider_name(const struct rukh_session_options *options,
                                               size_t index,
                                               char *buf,
                                               size_t cap,
                                               size_t *needed,
                                               struct rukh_error **error);

/**
 * The name of an option that was given to the provider at `provider`; `rukh_session_options_provider_get`
 * gives its value.
 *
 * `options`: not NULL. `provider`, `index`: from 0; an index past the last is
 * `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_provider_key(const struct rukh_session_options *options,
                                              size_t provider,
                                              size_t index,
                                              char *buf,
                                              size_t cap,
                                              size_t *needed,
                                              struct rukh_error **error);

/**
 * The value of an option that was given to the provider at `provider`.
 *
 * `options`, `key`: not NULL. `provider`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of
 * this header. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a provider or key that is not there or a buffer that is too small,
 * and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_provider_get(const struct rukh_session_options *options,
                                              size_t provider,
                                              const char *key,
                                              char *buf,
                                              size_t cap,
                                              size_t *needed,
                                              struct rukh_error **error);

/* -- 13. Sessions: opening a model, and what it takes and gives -- */

/**
 * Opens a model file (ONNX), or an artifact that `rukh_compile_model` made of one, and makes it ready to run. Sessions of one environment that open the
 * same unchanged file with the same options share its weights, unless option "share_weights" is "0".
 *
 * `environment`: not NULL; kept alive by the session. `path`: not NULL; a file name, see
 * "Texts" at the top of this header. External data are read from the model's folder. `options`: NULL for the defaults;
 * copied. `out`: not NULL; receives the session, which the caller destroys; NULL on failure. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for
 * the file, `RUKH_ERROR_INVALID_MODEL` for a model that breaks the standard (the message names the
 * node), `RUKH_ERROR_UNSUPPORTED` for what cannot be run, `RUKH_ERROR_DEVICE` for a wanted provider
 * without a device, `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_CANCELLED` after `rukh_session_options_cancel`, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_create(const struct rukh_environment *environment,
                                const char *path,
                                const struct rukh_session_options *options,
                                struct rukh_session **out,
                                struct rukh_error **error);

/**
 * Makes a session from a copy of the bytes of a model file in memory. External data come from option
 * "external_data_folder" and from `rukh_session_options_add_external_file`; `rukh_session_create_from_buffer` copies
 * nothing.
 *
 * `environment`: not NULL; kept alive by the session. `data`: `size` bytes; copied. `options`: NULL for
 * the defaults; copied. `out`: not NULL; receives the session, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_session_create`, but
 * for the file.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_create_from_memory(const struct rukh_environment *environment,
                                            const void *data,
                                            size_t size,
                                            const struct rukh_session_options *options,
                                            struct rukh_session **out,
                                            struct rukh_error **error);

/**
 * Destroys a session. Runs that are under way and io bindings keep what they need. NULL, and a pointer
 * that is no live handle of this kind, is left alone.
 *
 * Threads: any; a run's callback may call it too.
 */
RUKH_API
void rukh_session_destroy(struct rukh_session *session);

/* -- 14. Models and weights in memory of the caller's, without a copy -- */

/**
 * Makes a session from the bytes of a model file in memory of the caller's, without a copy: weights stay where they are.
 * External data come from option "external_data_folder" and from `rukh_session_options_add_external_file`.
 *
 * Sessions of one environment that are given the same memory with the same options share its weights, unless option
 * "share_weights" is "0"; it is then held for as long as one of them lives.
 *
 * `environment`: not NULL; kept alive by the session. `data`: `size` bytes, which must stay as they are until `deleter`
 * is called. `deleter`: may be NULL (the memory then outlives every session made of it); called once with `data` and
 * `user` when nothing uses the memory any more, also when this call fails. `options`: NULL for the defaults; copied.
 * `out`: not NULL; receives the session, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
 * any, at the same time. Errors: as `rukh_session_create`.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_create_from_buffer(const struct rukh_environment *environment,
                                            const void *data,
                                            size_t size,
                                            rukh_deleter deleter,
                                            void *user,
                                            const struct rukh_session_options *options,
                                            struct rukh_session **out,
                                            struct rukh_error **error);

/**
 * Gives sessions a tensor for an initializer of the model's main graph, in place of the one that the model has or whose
 * external data it names; those data are then not read, and need not be there.
 *
 * Nothing is copied where a kernel takes the elements as they lie; `rukh_value_create_tensor_over` makes a tensor over
 * memory of the caller's. Sessions of one environment that are given the same memory for the same model share it.
 *
 * `options`: not NULL. `name`: not NULL; copied; one that was given before is replaced. `value`: not NULL; a tensor of
 * the initializer's type and shape on the host, shared, whose elements must stay as they are until the options and every
 * session made from them are gone; the handle stays the caller's. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an empty name, a value that is no tensor or lies in device memory, and the handle
 * errors. Making the session fails with `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, and
 * `RUKH_ERROR_INVALID_ARGUMENT` for another type or shape.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_add_initializer(struct rukh_session_options *options,
                                                 const char *name,
                                                 const struct rukh_value *value,
                                                 struct rukh_error **error);

/**
 * Gives sessions the bytes of a file of external data, which then need not be there, without a copy.
 *
 * `options`: not NULL. `location`: not NULL; the file's name as the model's tensors have it, relative to the model's
 * folder; copied; one that was given before is replaced. `data`: `size` bytes, which must stay as they are until
 * `deleter` is called; NULL allowed with 0. `deleter`: may be NULL (the memory then outlives the options and every
 * session made from them); called once with `data` and `user` when nothing uses the memory any more, also when this call
 * fails. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors. A name that no
 * tensor of the model has is left alone.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_add_external_file(struct rukh_session_options *options,
                                                   const char *location,
                                                   const void *data,
                                                   size_t size,
                                                   rukh_deleter deleter,
                                                   void *user,
                                                   struct rukh_error **error);

/* -- 15. Compiling a model to an artifact -- */

/**
 * Makes options for compiling, all at their defaults.
 *
 * Keys of `rukh_compile_options_set`: "targets" (what the artifact is for, with commas between: "cpu", GPUs by their
 * machine codes as "gfx1100" or "sm_90", "all" for the CPU and every GPU that is known, "native", the default, for the CPU
 * and the GPUs of this machine; GPUs need not be there. The CPU's program is for processors with the vector instructions of
 * this one), "weights" ("used", the default: those that the programs read, in the form in which they read them; "all": also
 * in the model's form, so that any processor can pack them; "external": what the model's own files have as well is read
 * from there), "shapes" (dimensions of further programs, in which they are fixed: "batch=1,sequence=128", and more with
 * semicolons between; a session whose options "dim.NAME" fix the same dimensions gets that program) and "tuning_files" (the
 * names of files with results of tuning for GPUs among the targets, with semicolons between, which are read when the model
 * is compiled; a session uses those that hold on its device, unless "tunable_op_enable" is set to "0").
 *
 * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_options_create(struct rukh_compile_options **out,
                                        struct rukh_error **error);

/**
 * Destroys options. `options`: may be NULL. Threads: any.
 *
 * Since: 0.1.1.
 */
RUKH_API
void rukh_compile_options_destroy(struct rukh_compile_options *options);

/**
 * Sets an option by name.
 *
 * `options`, `key`, `value`: not NULL; copied. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
 * for a key that is not known or a value that is not allowed (the message lists what is), and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_options_set(struct rukh_compile_options *options,
                                     const char *key,
                                     const char *value,
                                     struct rukh_error **error);

/**
 * The value of an option.
 *
 * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a buffer that is too small,
 * and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_options_get(const struct rukh_compile_options *options,
                                     const char *key,
                                     char *buf,
                                     size_t cap,
                                     size_t *needed,
                                     struct rukh_error **error);

/**
 * The name of the option at `index`; together with `rukh_compile_options_get` this lists them all.
 *
 * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see
 * "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_options_key(const struct rukh_compile_options *options,
                                     size_t index,
                                     char *buf,
                                     size_t cap,
                                     size_t *needed,
                                     struct rukh_error **error);

/**
 * Sets who is told how far compiling is, and may end it.
 *
 * `options`: not NULL. `callback`: NULL for nobody. `user`: handed to it. `release`: NULL, or called once with `user` when
 * it is not used any more, also when this call fails. `error`: may be NULL. Threads: any. Errors: the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_options_set_progress(struct rukh_compile_options *options,
                                              rukh_progress_callback callback,
                                              void *user,
                                              rukh_release release,
                                              struct rukh_error **error);

/**
 * Compiles a model file (ONNX) to an artifact: a file that `rukh_session_create` opens in the model's place, without
 * optimising it again and without packing weights. It computes what the model computes on the same device with the same
 * options.
 *
 * No GPU and no compiler is needed: an artifact has no machine code, as the library has the kernels. The same library makes
 * the same bytes of the same model, options and kind of processor. The file has its name when all of it is written, and
 * whatever had that name before is then replaced.
 *
 * What runs could give besides the model's inputs (initializers that are inputs as well) is fixed. Operators that the
 * program defines cannot be compiled.
 *
 * `environment`: not NULL; its threads do the work. `path`: not NULL; a model's file. `session_options`: NULL for the
 * defaults; those of the model (precision, optimization, dimensions, weights from memory) are compiled in, a number of
 * threads is what weights are packed for, and providers matter only where their options choose a precision. `options`:
 * NULL for the defaults. `out_path`: not NULL; the file to make. `error`: may be NULL. Threads: any, at the same time.
 * Errors: as `rukh_session_create`; `RUKH_ERROR_INVALID_ARGUMENT` for results of tuning that no session of this library would
 * use, `RUKH_ERROR_IO` for a file that cannot be written, `RUKH_ERROR_CANCELLED` when the
 * callback ended it; nothing is left behind then.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_model(const struct rukh_environment *environment,
                               const char *path,
                               const struct rukh_session_options *session_options_handle,
                               const struct rukh_compile_options *options,
                               const char *out_path,
                               struct rukh_error **error);

/**
 * As `rukh_compile_model`, from the bytes of a model file.
 *
 * `data`: `size` bytes, copied. External data come from option "external_data_folder" and from
 * `rukh_session_options_add_external_file`. The rest, threads and errors: as `rukh_compile_model`.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_compile_model_from_memory(const struct rukh_environment *environment,
                                           const void *data,
                                           size_t size,
                                           const struct rukh_session_options *session_options_handle,
                                           const struct rukh_compile_options *options,
                                           const char *out_path,
                                           struct rukh_error **error);

/* -- 16. What a compiled model is, and whether it suits -- */

/**
 * Opens an artifact to ask about it. Every byte of it is read and compared with its checksum.
 *
 * `environment`: not NULL; kept alive by the artifact. `path`: not NULL; a file that `rukh_compile_model` made. `out`: not
 * NULL; receives the artifact, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for the file, `RUKH_ERROR_INVALID_MODEL` for one that is no
 * artifact, was cut short, damaged or changed, or is of a version that this library does not read (the message says which
 * part), and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_artifact_open(const struct rukh_environment *environment,
                               const char *path,
                               struct rukh_artifact **out,
                               struct rukh_error **error);

/**
 * Destroys an artifact. `artifact`: may be NULL. Threads: any.
 *
 * Since: 0.1.1.
 */
RUKH_API
void rukh_artifact_destroy(struct rukh_artifact *artifact);

/**
 * What an artifact holds, as a JSON object.
 *
 * The keys are "library" and "revision", which made it; "weights", as the compile option; "targets", what it is for;
 * "sources", a list with "file", "bytes", "digest" of each file of the model, and whether it is "needed" to open the
 * artifact; "programs", a list with "kind" ("cpu" or "gpu"), "targets", "instructions" of the processor, "threads",
 * "dimensions", "precision", "optimization" and "packed_bytes" of each; "tuning", a list with
 * "target" and "device" of each text of results of tuning, and how many "results" it has; "parts", a list with "name",
 * "bytes" and "checksum" of each part of the file. Later versions may add keys.
 *
 * `artifact`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any,
 * at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_artifact_info(const struct rukh_artifact *artifact,
                               char *buf,
                               size_t cap,
                               size_t *needed,
                               struct rukh_error **error);

/**
 * Whether an artifact suits this machine, a device and options, before a session is made of it.
 *
 * `artifact`: not NULL. `options`: those that the session would have; NULL for the defaults. `verdict`: not NULL; receives
 * `RUKH_ARTIFACT_OPTIMAL`, `RUKH_ARTIFACT_WORKS` or `RUKH_ARTIFACT_UNFIT`. `buf`, `cap`, `needed`: the reason, empty for an
 * optimal one; see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_DEVICE` where the options want a device that is not there, `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is
 * too small, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_artifact_check(const struct rukh_artifact *artifact,
                                const struct rukh_session_options *options,
                                rukh_artifact_verdict *verdict,
                                char *buf,
                                size_t cap,
                                size_t *needed,
                                struct rukh_error **error);

/* -- 17. Adapters: named tensors in place of inputs, as LoRA fine-tuning makes them -- */

/**
 * Reads a file of an adapter, which ONNX Runtime calls `.onnx_adapter`.
 *
 * The file is mapped, and elements stay in it; they are copied where they are not aligned to their type. It must not
 * shrink while something uses the adapter: a file that does ends the process with SIGBUS.
 * `rukh_adapter_open_from_buffer` takes the bytes of a file that may.
 *
 * `path`: not NULL. `out`: not NULL; receives the adapter, which the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for the file,
 * `RUKH_ERROR_INVALID_MODEL` for one that is no adapter, was cut short or damaged (the message says which part),
 * `RUKH_ERROR_UNSUPPORTED` for another version of the format or a type of elements that it does not have,
 * `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_INVALID_ARGUMENT`.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_open(const char *path,
                              struct rukh_adapter **out,
                              struct rukh_error **error);

/**
 * Reads an adapter from the bytes of its file in memory of the caller's. Elements stay where they are; they are copied
 * where they are not aligned to their type.
 *
 * `data`: `size` bytes, which must stay as they are until `deleter` is called; NULL allowed with 0. `deleter`: may be NULL
 * (the memory then outlives the adapter and all that uses it); called once with `data` and `user` when nothing uses the
 * memory any more, also when this call fails. `out`: not NULL; receives the adapter, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_adapter_open`, but for those of files.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_open_from_buffer(const void *data,
                                          size_t size,
                                          rukh_deleter deleter,
                                          void *user,
                                          struct rukh_adapter **out,
                                          struct rukh_error **error);

/**
 * Makes an adapter of tensors, to use or to save.
 *
 * `names`: `count` names of inputs, each once; not empty; copied; NULL allowed with 0. `values`: as many tensors on the
 * host, shared, whose elements must stay as they are until the adapter and all that uses it are gone; the handles stay the
 * caller's. `adapter_version`, `model_version`: numbers that the adapter keeps and nobody compares. `out`: not NULL;
 * receives the adapter, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an empty name, one that is there twice, what is no tensor, strings, elements of
 * less than a byte and types behind `RUKH_ELEMENT_FLOAT8E5M2FNUZ`, and device memory; `RUKH_ERROR_OUT_OF_MEMORY`, and the
 * handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_create(const char *const *names,
                                const struct rukh_value *const *values,
                                size_t count,
                                int32_t adapter_version,
                                int32_t model_version,
                                struct rukh_adapter **out,
                                struct rukh_error **error);

/**
 * Writes an adapter to a file that ONNX Runtime reads as well. A file that was there is replaced once all is written.
 *
 * `adapter`: not NULL. `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_IO`,
 * `RUKH_ERROR_UNSUPPORTED` for an adapter of 2 GiB or more, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_save(const struct rukh_adapter *adapter,
                              const char *path,
                              struct rukh_error **error);

/**
 * Destroys an adapter. Options, runs, sessions and values that use it keep what they need of it. NULL, and a pointer that
 * is no live handle of this kind, is left alone.
 *
 * `adapter`: may be NULL. Threads: any.
 *
 * Since: 0.1.1.
 */
RUKH_API
void rukh_adapter_destroy(struct rukh_adapter *adapter);

/**
 * The versions that an adapter tells: of the file's format, of itself, and of the model that it was made for.
 *
 * `adapter`: not NULL. `format_version`, `adapter_version`, `model_version`: may be NULL; receive the numbers. `error`: may
 * be NULL. Threads: any, at the same time. Errors: the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_versions(const struct rukh_adapter *adapter,
                                  int32_t *format_version,
                                  int32_t *adapter_version,
                                  int32_t *model_version,
                                  struct rukh_error **error);

/**
 * The number of tensors in an adapter.
 *
 * `adapter`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_parameter_count(const struct rukh_adapter *adapter,
                                         size_t *count,
                                         struct rukh_error **error);

/**
 * The name of the parameter at `index`: of the input that it is for.
 *
 * `adapter`: not NULL. `index`: from 0, in the file's order. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
 * or a buffer that is too small, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_parameter_name(const struct rukh_adapter *adapter,
                                        size_t index,
                                        char *buf,
                                        size_t cap,
                                        size_t *needed,
                                        struct rukh_error **error);

/**
 * The tensor of the parameter at `index`.
 *
 * `adapter`: not NULL. `index`: from 0, in the file's order. `out`: not NULL; receives a value that shares the adapter's
 * elements, which must not be written, and which the caller destroys; it may outlive the adapter. NULL on failure. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
 * handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_adapter_parameter_value(const struct rukh_adapter *adapter,
                                         size_t index,
                                         struct rukh_value **out,
                                         struct rukh_error **error);

/**
 * Has runs take inputs from an adapter: the model's initializers that are inputs as well, and other inputs, that a run is
 * not given. Several adapters may be added; where two have one parameter, the one added last counts.
 *
 * For each set of such initializers a program is made when a run first has it; four are kept. A session with a GPU copies
 * what only the GPU reads into its memory when a run first needs it; it stays there as long as the adapter is used, for all
 * sessions on that GPU. Such a first run must not be captured.
 *
 * `options`: not NULL. Runs that have begun keep theirs. `adapter`: not NULL; kept alive by the options; the handle stays
 * the caller's. `error`: may be NULL. Threads: any. Errors: the handle errors. Runs fail with `RUKH_ERROR_NOT_FOUND` where the
 * model has no such input, and with `RUKH_ERROR_INVALID_INPUT` for another type or shape; the message names adapter and
 * parameter.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_add_adapter(struct rukh_run_options *options,
                                         const struct rukh_adapter *adapter,
                                         struct rukh_error **error);

/**
 * Has sessions take an adapter's tensors in place of initializers of the model's main graph, for good: weights may be
 * packed, and runs cost what they cost without an adapter. Several may be added; where two have one parameter, the one
 * added last counts, and a tensor of `rukh_session_options_add_initializer` counts before both.
 *
 * Nothing is copied where a kernel takes the elements as they lie. Sessions of one environment that are given the same
 * adapter for the same model share it. An initializer that is an input as well may get any shape that the input may; runs
 * may still give it, too.
 *
 * `options`: not NULL. `adapter`: not NULL; kept alive by the options and by sessions made from them; the handle stays the
 * caller's. `error`: may be NULL. Threads: any. Errors: the handle errors. Making the session fails with
 * `RUKH_ERROR_NOT_FOUND` where the model has no such initializer, and with `RUKH_ERROR_INVALID_ARGUMENT` for another type or
 * shape; the message names adapter and parameter.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_add_adapter(struct rukh_session_options *options,
                                             const struct rukh_adapter *adapter,
                                             struct rukh_error **error);

/* -- 18. Where the nodes of a session run, and why there -- */

/**
 * Tells the callback of each node that runs, after the graph was rewritten, in the order in which they run.
 *
 * `session`: not NULL. `callback`: not NULL. `user`: passed to the callback as it is; may be NULL. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the callback
 * ended it, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_for_each_placement(const struct rukh_session *session,
                                            rukh_placement_callback callback,
                                            void *user,
                                            struct rukh_error **error);

/**
 * A text about where a node runs.
 *
 * `placement`: not NULL; valid during the callback that is told. `which`: one of `RUKH_PLACEMENT_…`. `text`: not NULL; the
 * text is borrowed from the placement. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_placement_text(const struct rukh_placement *placement,
                                rukh_placement_fact which,
                                const char **text,
                                struct rukh_error **error);

/**
 * The device that runs the node.
 *
 * `placement`: not NULL; valid during the callback that is told. `out`: not NULL; receives a handle that the caller
 * destroys, and that outlives the callback; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_DEVICE` when the device is gone, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_placement_device(const struct rukh_placement *placement,
                                  struct rukh_device **out,
                                  struct rukh_error **error);

/* -- 19. What a session does in a run, for pictures and tools -- */

/**
 * The steps of a session's runs and where each value lies, as a JSON object. Shapes and memory are those of the
 * inputs that were run last; before the first run they are what the model alone tells.
 *
 * The keys are "planned" (whether there was a run); "blocks", the bytes of the block of memory on the "host" and on the
 * "device" that values share; "inputs" and "outputs", indices of values; "steps" in the order of the run; and "values".
 * A step has "node", "operator", "provider" ("cpu", "hip", or "copy"), "inputs" and "outputs" (indices of values, null
 * for one that is left out), "action" (what a run does for it: "kernel", "launch", "copy to host", "copy to device",
 * "none", or "shapes while running"; "unplanned" before the first run), and where it needs temporary memory "scratch"
 * with "place", "offset" and "bytes". A value has "name", "type", "shape" (numbers, texts for open dimensions; null
 * where the rank is not known), "place" ("host" or "device"), and "memory": "block" (with its "offset" there),
 * "shared" (that of value "of"), "input", "output", "constant", "run" (made while running), "none" (nobody needs it),
 * or "unplanned"; where they are known, its "bytes", and "first" and "last", the steps between which its memory is
 * needed. Later versions may add keys and words.
 *
 * `session`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a run that ends between two calls
 * may make the text longer, so ask until it fits. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_plan(const struct rukh_session *session,
                              char *buf,
                              size_t cap,
                              size_t *needed,
                              struct rukh_error **error);

/* -- 20. The inputs and outputs of a session: names, types, shapes -- */

/**
 * The number of the model's inputs.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_count(const struct rukh_session *session,
                                     size_t *count,
                                     struct rukh_error **error);

/**
 * The name of an input.
 *
 * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
 * there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_name(const struct rukh_session *session,
                                    size_t index,
                                    const char **name,
                                    struct rukh_error **error);

/**
 * The position of an input by its name.
 *
 * `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_index(const struct rukh_session *session,
                                     const char *name,
                                     size_t *index,
                                     struct rukh_error **error);

/**
 * What an input is, and its element type: of a tensor, or of the tensors inside another kind.
 *
 * `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
 * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_type(const struct rukh_session *session,
                                    size_t index,
                                    rukh_kind *kind,
                                    rukh_element_type *element,
                                    struct rukh_error **error);

/**
 * The type and shape of an input for people: "tensor(float)[batch, 3, 224, 224]".
 *
 * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * index that is not there or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_type_text(const struct rukh_session *session,
                                         size_t index,
                                         char *buf,
                                         size_t cap,
                                         size_t *needed,
                                         struct rukh_error **error);

/**
 * The shape of an input.
 *
 * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
 * elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
 * alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
 * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
 * not there or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_shape(const struct rukh_session *session,
                                     size_t index,
                                     int64_t *dims,
                                     size_t cap,
                                     int64_t *rank,
                                     struct rukh_error **error);

/**
 * The name of a dimension of an input that is not known before the model runs, or its formula over such
 * names ("2*batch").
 *
 * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
 * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_input_dim_name(const struct rukh_session *session,
                                        size_t index,
                                        size_t axis,
                                        const char **name,
                                        struct rukh_error **error);

/**
 * The number of the model's overridable initializers: inputs that the model has values for, which a run or
 * binding may replace by name. The first run that does takes the time that opening the model took.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_overridable_count(const struct rukh_session *session,
                                           size_t *count,
                                           struct rukh_error **error);

/**
 * The name of an overridable initializer.
 *
 * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
 * there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_overridable_name(const struct rukh_session *session,
                                          size_t index,
                                          const char **name,
                                          struct rukh_error **error);

/**
 * The type and shape of an overridable initializer for people, as `rukh_session_input_type_text`.
 *
 * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * index that is not there or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_overridable_type_text(const struct rukh_session *session,
                                               size_t index,
                                               char *buf,
                                               size_t cap,
                                               size_t *needed,
                                               struct rukh_error **error);

/**
 * The shape of an overridable initializer, as `rukh_session_input_shape`.
 *
 * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, -1 for one that is not known;
 * NULL allowed with 0. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index
 * that is not there or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_overridable_shape(const struct rukh_session *session,
                                           size_t index,
                                           int64_t *dims,
                                           size_t cap,
                                           int64_t *rank,
                                           struct rukh_error **error);

/**
 * The name of a dimension of an overridable initializer, as `rukh_session_input_dim_name`.
 *
 * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
 * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_overridable_dim_name(const struct rukh_session *session,
                                              size_t index,
                                              size_t axis,
                                              const char **name,
                                              struct rukh_error **error);

/**
 * The number of the model's outputs.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_count(const struct rukh_session *session,
                                      size_t *count,
                                      struct rukh_error **error);

/**
 * The name of an output.
 *
 * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
 * there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_name(const struct rukh_session *session,
                                     size_t index,
                                     const char **name,
                                     struct rukh_error **error);

/**
 * The position of an output by its name.
 *
 * `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_index(const struct rukh_session *session,
                                      const char *name,
                                      size_t *index,
                                      struct rukh_error **error);

/**
 * What an output is, and its element type: of a tensor, or of the tensors inside another kind.
 *
 * `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
 * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_type(const struct rukh_session *session,
                                     size_t index,
                                     rukh_kind *kind,
                                     rukh_element_type *element,
                                     struct rukh_error **error);

/**
 * The type and shape of an output for people: "tensor(float)[batch, 3, 224, 224]".
 *
 * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * index that is not there or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_type_text(const struct rukh_session *session,
                                          size_t index,
                                          char *buf,
                                          size_t cap,
                                          size_t *needed,
                                          struct rukh_error **error);

/**
 * The shape of an output.
 *
 * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
 * elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
 * alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
 * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
 * not there or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_shape(const struct rukh_session *session,
                                      size_t index,
                                      int64_t *dims,
                                      size_t cap,
                                      int64_t *rank,
                                      struct rukh_error **error);

/**
 * The name of a dimension of an output that is not known before the model runs, or its formula over such
 * names ("2*batch").
 *
 * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
 * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_output_dim_name(const struct rukh_session *session,
                                         size_t index,
                                         size_t axis,
                                         const char **name,
                                         struct rukh_error **error);

/* -- 21. What a session tells of its model, its placement, its loading and its runs -- */

/**
 * A text that the model file carries about itself; "" when it has none.
 *
 * `session`, `text`: not NULL; the text is borrowed from the session. `which`: one of `RUKH_MODEL_…`.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * unknown `which`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_model_text(const struct rukh_session *session,
                                    rukh_model_text which,
                                    const char **text,
                                    struct rukh_error **error);

/**
 * The version of the model as its maker counts, and the version of the file format.
 *
 * `session`: not NULL. `model_version`, `ir_version`: may be NULL. `error`: may be NULL. Threads: any, at
 * the same time. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_model_version(const struct rukh_session *session,
                                       int64_t *model_version,
                                       int64_t *ir_version,
                                       struct rukh_error **error);

/**
 * The number of properties (keys and values) that the model's maker added to the file.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_property_count(const struct rukh_session *session,
                                        size_t *count,
                                        struct rukh_error **error);

/**
 * A property that the model's maker added to the file.
 *
 * `session`, `key`, `value`: not NULL; the texts are borrowed from the session. `index`: from 0. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
 * is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_property(const struct rukh_session *session,
                                  size_t index,
                                  const char **key,
                                  const char **value,
                                  struct rukh_error **error);

/**
 * The number of operator sets that the model imports.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_opset_count(const struct rukh_session *session,
                                     size_t *count,
                                     struct rukh_error **error);

/**
 * An operator set that the model imports.
 *
 * `session`: not NULL. `index`: from 0. `domain`: not NULL; receives its domain, borrowed from the
 * session; "" stands for ai.onnx. `version`: not NULL. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_opset(const struct rukh_session *session,
                               size_t index,
                               const char **domain,
                               int64_t *version,
                               struct rukh_error **error);

/**
 * The number of nodes that run, after the graph was rewritten.
 *
 * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_placement_count(const struct rukh_session *session,
                                         size_t *count,
                                         struct rukh_error **error);

/**
 * Deprecated: use `rukh_session_for_each_placement`, which tells the device too. Where a node runs, and why there.
 *
 * `session`: not NULL. `index`: from 0. `node` (its name), `operator_name`, `provider` ("cpu" or "hip"),
 * `reason` (for people): each may be NULL; the texts are borrowed from the session. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there,
 * and the handle errors.
 */
RUKH_DEPRECATED("use rukh_session_for_each_placement")
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_placement(const struct rukh_session *session,
                                   size_t index,
                                   const char **node,
                                   const char **operator_name,
                                   const char **provider,
                                   const char **reason,
                                   struct rukh_error **error);

/**
 * What opening the session did with the model's bytes.
 *
 * `session`, `value`: not NULL. `which`: one of `RUKH_LOAD_…_BYTES` and `RUKH_LOAD_COPIED_WEIGHTS`.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
 * unknown `which`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_load_counter(const struct rukh_session *session,
                                      rukh_load_counter which,
                                      uint64_t *value,
                                      struct rukh_error **error);

/**
 * What the runs so far did, as a Chrome trace in JSON (chrome://tracing and Perfetto show it; times in
 * microseconds). The session must have been made with profiling on.
 *
 * `session`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a run that ends
 * between two calls makes the text longer, so ask until it fits. `error`: may be NULL. Threads: any, at
 * the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` without profiling or for a buffer that is too
 * small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_profile(const struct rukh_session *session,
                                 char *buf,
                                 size_t cap,
                                 size_t *needed,
                                 struct rukh_error **error);

/* -- 22. Values: making tensors, and what a value tells of itself -- */

/**
 * Makes a tensor of zeros (or empty strings) in memory of its own, aligned to 64 bytes.
 *
 * `element`: one of `RUKH_ELEMENT_…`. `shape`: `rank` dimensions in elements, each 0 or more; NULL
 * allowed with rank 0, a scalar. `out`: not NULL; receives the value, which the caller destroys; NULL
 * on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
 * type or a bad dimension, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_tensor(rukh_element_type element,
                                     const int64_t *shape,
                                     size_t rank,
                                     struct rukh_value **out,
                                     struct rukh_error **error);

/**
 * Makes a tensor in memory of its own with a copy of the caller's elements.
 *
 * `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed
 * with rank 0. `data`: `bytes` bytes, the elements in row-major order without gaps, at any alignment;
 * NULL allowed with 0. `bytes`: what the shape takes, checked. `out`: not NULL; receives the value,
 * which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown type, a bad dimension or a wrong size,
 * `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_tensor_copy(rukh_element_type element,
                                          const int64_t *shape,
                                          size_t rank,
                                          const void *data,
                                          size_t bytes,
                                          struct rukh_value **out,
                                          struct rukh_error **error);

/**
 * Makes a tensor over the caller's memory, without a copy. The memory must stay as it is until
 * `deleter` is called, and is written when the value is bound as an output.
 *
 * `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed
 * with rank 0. `data`: `bytes` bytes, the elements in row-major order without gaps, aligned to the
 * element's size (to 8 bytes at the most); NULL allowed with 0. `bytes`: what the shape takes, checked.
 * `deleter`: may be NULL; called once with `data` and `user` when nothing uses the memory any more,
 * also when this call fails. `out`: not NULL; receives the value, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
 * type, a bad dimension, a wrong size or alignment, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_tensor_over(rukh_element_type element,
                                          const int64_t *shape,
                                          size_t rank,
                                          void *data,
                                          size_t bytes,
                                          rukh_deleter deleter,
                                          void *user,
                                          struct rukh_value **out,
                                          struct rukh_error **error);

/**
 * Makes another handle of the same value; the elements are shared, not copied.
 *
 * `value`: not NULL. `out`: not NULL; receives the handle, which the caller destroys; NULL on failure.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
 * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_clone(const struct rukh_value *value,
                             struct rukh_value **out,
                             struct rukh_error **error);

/**
 * Makes a tensor of another shape over the elements of this one, which are shared.
 *
 * `value`: not NULL; a tensor. `shape`: `rank` dimensions with as many elements together as the tensor
 * has; NULL allowed with rank 0. `out`: not NULL; receives the value, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
 * for a shape that does not fit or a value that is no tensor, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_reshape(const struct rukh_value *value,
                               const int64_t *shape,
                               size_t rank,
                               struct rukh_value **out,
                               struct rukh_error **error);

/**
 * Destroys a value. Memory that other values, bindings or runs share stays until they are done. NULL,
 * and a pointer that is no live handle of this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_value_destroy(struct rukh_value *value);

/**
 * What the value is: one of `RUKH_KIND_…`.
 *
 * `value`, `kind`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_kind(const struct rukh_value *value,
                            rukh_kind *kind,
                            struct rukh_error **error);

/**
 * The element type of a tensor, or of the tensors inside a sequence, map or optional.
 *
 * `value`, `element`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_element_type(const struct rukh_value *value,
                                    rukh_element_type *element,
                                    struct rukh_error **error);

/**
 * The type of the value as the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))".
 *
 * `value`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too
 * small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_type_text(const struct rukh_value *value,
                                 char *buf,
                                 size_t cap,
                                 size_t *needed,
                                 struct rukh_error **error);

/**
 * The shape of a tensor.
 *
 * `value`: not NULL; a tensor. `dims`: room for `cap` dimensions, which receives them in elements; NULL
 * allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives the number of dimensions.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a
 * value that is no tensor or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_shape(const struct rukh_value *value,
                             int64_t *dims,
                             size_t cap,
                             size_t *rank,
                             struct rukh_error **error);

/**
 * The number of elements of a tensor; the product of its dimensions.
 *
 * `value`, `count`: not NULL; the value a tensor. `error`: may be NULL. Threads: any, at the same time.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a value that is no tensor, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_element_count(const struct rukh_value *value,
                                     size_t *count,
                                     struct rukh_error **error);

/**
 * The elements of a tensor, to read: in row-major order without gaps.
 *
 * `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
 * from the value; not NULL even when there are no elements. `bytes`: may be NULL; receives the size of
 * all elements in bytes. `error`: may be NULL. Threads: any, at the same time, while nobody writes the
 * elements. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_data(const struct rukh_value *value,
                            const void **data,
                            size_t *bytes,
                            struct rukh_error **error);

/**
 * The elements of a tensor, to write: in row-major order without gaps. Every value that shares them sees
 * what is written.
 *
 * `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
 * from the value. `bytes`: may be NULL; receives the size of all elements in bytes. `error`: may be
 * NULL. Threads: any; the elements must not be in use by a run or another thread while they are
 * written. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_data_mut(struct rukh_value *value,
                                void **data,
                                size_t *bytes,
                                struct rukh_error **error);

/* -- 23. Tensors in the memory of a device -- */

/**
 * Makes a tensor in the memory of a device; its elements are unspecified.
 *
 * Bound to inputs and outputs of a session on that device, it is read and written where it is: nothing is
 * copied. `rukh_value_copy` fills and reads it.
 *
 * `environment`: not NULL. `device_id`: as the hip provider's option. `element`: one of `RUKH_ELEMENT_…` but
 * `STRING`. `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not NULL; receives the
 * value, which the caller destroys when no run uses it; NULL on failure. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE` without a device, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_device_tensor(const struct rukh_environment *environment,
                                            size_t device_id,
                                            rukh_element_type element,
                                            const int64_t *shape,
                                            size_t rank,
                                            struct rukh_value **out,
                                            struct rukh_error **error);

/**
 * Makes a tensor over device memory of the caller's (of `hipMalloc`, or of another library's tensor).
 *
 * `environment`: not NULL. `device_id`: whose memory it is. `element`, `shape`, `rank`: as in
 * `rukh_value_create_device_tensor`. `address`: the elements in row-major order without gaps, aligned to the
 * element; not NULL. `bytes`: what the shape takes, checked. `deleter`: may be NULL; called once with `address`
 * and `user` when nothing uses the memory any more, also when this call fails (as in
 * `rukh_value_create_tensor_over`). `out`: not NULL; receives the value, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_device_tensor_over(const struct rukh_environment *environment,
                                                 size_t device_id,
                                                 rukh_element_type element,
                                                 const int64_t *shape,
                                                 size_t rank,
                                                 void *address,
                                                 size_t bytes,
                                                 rukh_deleter deleter,
                                                 void *user,
                                                 struct rukh_value **out,
                                                 struct rukh_error **error);

/**
 * Copies the elements of a tensor into another of the same type and shape, from and to host or device
 * memory, and waits for it.
 *
 * `from`, `to`: not NULL; tensors of anything but strings. `error`: may be NULL. Threads: any; `to` must not
 * be in use meanwhile. Errors: `RUKH_ERROR_INVALID_ARGUMENT` when types or shapes differ,
 * `RUKH_ERROR_DEVICE`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_copy(const struct rukh_value *from,
                            struct rukh_value *to,
                            struct rukh_error **error);

/**
 * Where the elements of a tensor are: the address in a device's memory, and which device.
 *
 * `value`: not NULL; a tensor of anything but strings. `on_device`: not NULL; receives 1, or 0 for host
 * memory, whose address `rukh_value_data` tells. `device_id`, `address`: may be NULL; receive 0 for host
 * memory. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_device(const struct rukh_value *value,
                              int32_t *on_device,
                              size_t *device_id,
                              uint64_t *address,
                              struct rukh_error **error);

/* -- 24. Tensors and outputs in the memory of a device that a handle names, and copies that a stream orders -- */

/**
 * Makes a tensor in the memory of a device; its elements are zeros on the host, else unspecified.
 *
 * `device`: not NULL. `kind`: one of `RUKH_MEMORY_…`. `element`: one of `RUKH_ELEMENT_…`; `STRING` on the host only.
 * `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not NULL; receives the value, which the
 * caller destroys when no run and no copy uses it; NULL on failure. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE` (also where the runtime has no pinned memory),
 * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_tensor_in(const struct rukh_device *device,
                                        rukh_memory_kind kind,
                                        rukh_element_type element,
                                        const int64_t *shape,
                                        size_t rank,
                                        struct rukh_value **out,
                                        struct rukh_error **error);

/**
 * The kind of memory that a tensor lies in, and the number of the GPU that it belongs to or is pinned for.
 *
 * `value`: not NULL; a tensor. `kind`: not NULL; receives one of `RUKH_MEMORY_…`: `HOST` for all memory of the host
 * that is not known to be pinned, and for strings. `device_id`: may be NULL; receives the number, 0 for `HOST`.
 * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
 * and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_memory_kind(const struct rukh_value *value,
                                   rukh_memory_kind *kind,
                                   size_t *device_id,
                                   struct rukh_error **error);

/**
 * Binds an output to memory that the library allocates at each run where the caller says: outputs whose shape is not
 * known before stay in the memory of a GPU, and go into the next run from there.
 *
 * A value that nodes on that GPU make is made there and crosses no bus; what the CPU or another GPU makes is copied there.
 * Strings, sequences, maps and optionals come to the host. Outputs of a run in a captured stream must be bound to
 * values (`rukh_io_binding_bind_output`).
 *
 * `binding`, `name`, `device`: not NULL. `kind`: one of `RUKH_MEMORY_…`. `error`: may be NULL. Threads: any, one at a
 * time. Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`,
 * `RUKH_ERROR_DEVICE`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_bind_output_allocated_in(struct rukh_io_binding *binding,
                                                     const char *name,
                                                     const struct rukh_device *device,
                                                     rukh_memory_kind kind,
                                                     struct rukh_error **error);

/**
 * The device that runs nodes of a session: the GPU when any node runs there, else the CPU.
 *
 * `session`: not NULL. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_device(const struct rukh_session *session,
                                struct rukh_device **out,
                                struct rukh_error **error);

/**
 * Queues a copy of the elements of a tensor into another of the same type and shape in a stream, and returns without
 * waiting for it. Between the host and a GPU nothing holds up the caller where the host's side is pinned memory; from
 * other memory the runtime may wait. Between two tensors on the host the copy is done when the call returns.
 *
 * `from`, `to`: not NULL; tensors of anything but strings, not of two GPUs; they must not change, and stay, until the
 * stream has come past the copy. `stream`: the address of a `hipStream_t` (`CUstream` on the nvidia platform) of the
 * tensors' device, such as `rukh_stream_address` gives; 0 for the default stream. `out`: may be NULL; receives a
 * completion that keeps both values until the copy is done, and that the caller destroys; NULL on failure. `error`:
 * may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` when types or shapes differ, for a stream of another
 * device (not told while it is being captured), or for one that is being captured while `out` is given;
 * `RUKH_ERROR_UNSUPPORTED` for tensors of two GPUs; `RUKH_ERROR_DEVICE`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_copy_queued(const struct rukh_value *from,
                                   struct rukh_value *to,
                                   uint64_t stream,
                                   struct rukh_completion **out,
                                   struct rukh_error **error);

/**
 * Makes a stream of a GPU: a queue of work that goes on in order, for run option "compute_stream", for
 * `rukh_value_copy_queued` and for work of the caller's.
 *
 * `device`: not NULL; a GPU. `out`: not NULL; receives the stream, which the caller destroys when nothing uses it any
 * more; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for the CPU, which
 * has no streams, `RUKH_ERROR_DEVICE`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_stream_create(const struct rukh_device *device,
                               struct rukh_stream **out,
                               struct rukh_error **error);

/**
 * Destroys a stream; its work goes on to its end. NULL, and a pointer that is no live handle of this kind, is left
 * alone.
 *
 * Threads: any.
 *
 * Since: 0.1.1.
 */
RUKH_API
void rukh_stream_destroy(struct rukh_stream *stream);

/**
 * The runtime's handle of a stream (`hipStream_t`, or `CUstream` on the nvidia platform) as a number.
 *
 * `stream`, `address`: not NULL; the runtime's handle is the stream's. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_stream_address(const struct rukh_stream *stream,
                                uint64_t *address,
                                struct rukh_error **error);

/**
 * Waits until a stream has done all that it was given.
 *
 * `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_DEVICE`, and the handle
 * errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_stream_wait(const struct rukh_stream *stream,
                             struct rukh_error **error);

/**
 * Marks the place that a stream has come to: a completion of all that it was given until now, which the host can wait for
 * (`rukh_completion_wait`), and other streams too (`rukh_stream_wait_for`).
 *
 * `stream`: not NULL. `out`: not NULL; receives the completion, which the caller destroys, before or after the stream; NULL
 * on failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a stream that
 * is being captured, `RUKH_ERROR_DEVICE`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_stream_record(const struct rukh_stream *stream,
                               struct rukh_completion **out,
                               struct rukh_error **error);

/**
 * Lets a stream wait for work in another: what it is given from now on begins when that work is done. The call returns
 * without waiting.
 *
 * `stream`: not NULL. `completion`: not NULL; of a run, a copy or `rukh_stream_record`; it may be destroyed when the call
 * has returned. `error`: may be NULL. Threads: any, at the same time; a thread that waits for the completion holds up the
 * call. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a completion of `rukh_session_start`, whose outputs are there when it has
 * ended, `RUKH_ERROR_UNSUPPORTED` for a stream of another runtime, `RUKH_ERROR_DEVICE`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_stream_wait_for(const struct rukh_stream *stream,
                                 const struct rukh_completion *completion,
                                 struct rukh_error **error);

/* -- 25. Memory that another API exported, as tensors of a device -- */

/**
 * Imports memory that another API exported, such as Vulkan (`vkGetMemoryFdKHR`), another process or a driver of a camera, so
 * that a device computes where it lies.
 *
 * The device's runtime does it (`hipImportExternalMemory`, on the nvidia platform `cuImportExternalMemory`), and says what
 * it takes: as a rule memory that lies on the same device, or that the device can reach.
 *
 * `device`: not NULL; a GPU. `kind`: one of `RUKH_EXTERNAL_…`. `handle`: a file descriptor, or on Windows a `HANDLE` as a
 * number. When this call succeeds a file descriptor belongs to the runtime, and the caller neither uses nor closes it; when it
 * fails it stays the caller's. `bytes`: the size of the whole memory, as it was exported. `release`: may be NULL; else called
 * once with `user` when the memory was given back, also when this call fails. `user`: passed on as it is; may be NULL. `out`:
 * not NULL; receives the memory, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. The caller
 * orders what the other API does with the memory and what runs do. Errors: `RUKH_ERROR_INVALID_ARGUMENT`,
 * `RUKH_ERROR_UNSUPPORTED` where the runtime has no such functions, or the system no such handles, `RUKH_ERROR_DEVICE` for
 * what the runtime refuses, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_external_memory_import(const struct rukh_device *device,
                                        rukh_external_handle kind,
                                        int64_t handle,
                                        size_t bytes,
                                        rukh_release release,
                                        void *user,
                                        struct rukh_external_memory **out,
                                        struct rukh_error **error);

/**
 * Destroys a handle of imported memory. The memory is given back when no tensor and no run uses it any more. NULL, and a
 * pointer that is no live handle of this kind, is left alone.
 *
 * Threads: any.
 *
 * Since: 0.1.1.
 */
RUKH_API
void rukh_external_memory_destroy(struct rukh_external_memory *memory);

/**
 * Makes a tensor over a part of imported memory. It is used like any tensor in the memory of its device.
 *
 * `memory`: not NULL; kept alive by the tensor. `offset`: where the elements begin, in bytes; a multiple of the element's size.
 * `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not
 * NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time;
 * tensors may overlap. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what lies outside of the memory, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_external_memory_tensor(const struct rukh_external_memory *memory,
                                        size_t offset,
                                        rukh_element_type element,
                                        const int64_t *shape,
                                        size_t rank,
                                        struct rukh_value **out,
                                        struct rukh_error **error);

/* -- 26. Tensors of strings -- */

/**
 * Makes a tensor of strings.
 *
 * `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `strings`: `count` texts, one an
 * element in row-major order; UTF-8; copied; NULL allowed with 0. `lengths`: NULL when the texts end
 * with a NUL; else `count` lengths in bytes, and a text may then hold NULs. `count`: what the shape
 * takes, checked. `out`: not NULL; receives the value, which the caller destroys; NULL on failure.
 * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a text that is NULL or
 * no UTF-8, a bad dimension or a wrong count, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_strings(const int64_t *shape,
                                      size_t rank,
                                      const char *const *strings,
                                      const size_t *lengths,
                                      size_t count,
                                      struct rukh_value **out,
                                      struct rukh_error **error);

/**
 * One string of a tensor.
 *
 * `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `buf`,
 * `cap`, `needed`: see "Texts" at the top of this header; a string may hold NULs, its length is
 * `*needed - 1`. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there or a
 * buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_string(const struct rukh_value *value,
                              size_t index,
                              char *buf,
                              size_t cap,
                              size_t *needed,
                              struct rukh_error **error);

/**
 * Replaces one string of a tensor. Other values that share the tensor keep theirs.
 *
 * `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `string`:
 * not NULL; UTF-8 that ends with a NUL; copied. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there, or a text
 * that is no UTF-8; and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_set_string(struct rukh_value *value,
                                  size_t index,
                                  const char *string,
                                  struct rukh_error **error);

/* -- 27. Sequences, maps and optionals -- */

/**
 * Makes a sequence of values, which it shares.
 *
 * `items`: `count` values of one type; NULL allowed with 0; the handles stay the caller's. `element`:
 * for an empty sequence the element type of the tensors it could hold; else ignored. `out`: not NULL;
 * receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for items of different types or an unknown type, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_sequence(const struct rukh_value *const *items,
                                       size_t count,
                                       rukh_element_type element,
                                       struct rukh_value **out,
                                       struct rukh_error **error);

/**
 * Makes a map from keys to values, which it shares.
 *
 * `keys`: not NULL; a tensor of rank 1, of integers or strings without duplicates; copied. `values`:
 * `count` values of one type, in the order of the keys; NULL allowed with 0; the handles stay the
 * caller's. `element`: for an empty map the element type of the tensors it could hold; else ignored.
 * `out`: not NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for keys of another type or rank, twice the
 * same key, another number of values than keys, or values of different types; and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_map(const struct rukh_value *keys,
                                  const struct rukh_value *const *values,
                                  size_t count,
                                  rukh_element_type element,
                                  struct rukh_value **out,
                                  struct rukh_error **error);

/**
 * Makes an optional that holds a value, which it shares, or none.
 *
 * `value`: NULL for none; the handle stays the caller's. `element`: without a value the element type of
 * the tensor it could hold; else ignored. `out`: not NULL; receives the optional, which the caller
 * destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
 * for an unknown type, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_create_optional(const struct rukh_value *value,
                                       rukh_element_type element,
                                       struct rukh_value **out,
                                       struct rukh_error **error);

/**
 * How many values a sequence, map or optional holds; for an optional 0 or 1.
 *
 * `value`, `count`: not NULL; the value no tensor. `error`: may be NULL. Threads: any, at the same time.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a tensor, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_item_count(const struct rukh_value *value,
                                  size_t *count,
                                  struct rukh_error **error);

/**
 * The value at `index` of a sequence, map (in the order of its keys) or optional (at 0), shared.
 *
 * `value`: not NULL; no tensor. `index`: from 0. `out`: not NULL; receives the value, which the caller
 * destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a tensor or an index that is not there, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_item(const struct rukh_value *value,
                            size_t index,
                            struct rukh_value **out,
                            struct rukh_error **error);

/**
 * The keys of a map: a tensor of rank 1, of integers or strings.
 *
 * `value`: not NULL; a map. `out`: not NULL; receives the tensor, which the caller destroys; NULL on
 * failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
 * for what is no map, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_map_keys(const struct rukh_value *value,
                                struct rukh_value **out,
                                struct rukh_error **error);

/* -- 28. Tensors to and from other libraries through DLPack, without a copy -- */

/**
 * Gives a tensor to another library as a versioned DLPack tensor that shares its elements.
 *
 * `value`: not NULL; a tensor of numbers or booleans, on the host or a device. `out`: not NULL; receives the
 * DLPack tensor, row-major, on the CPU or on `device_id` of ROCm or CUDA, which its receiver releases by its
 * `deleter`; NULL on failure. It keeps the elements alive; the value may be destroyed. What was queued on the
 * elements must be done, or ordered before what the receiver does. `error`: may be NULL. Threads: any, at the
 * same time; the `deleter` on any thread. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
 * `RUKH_ERROR_UNSUPPORTED` for strings and element types narrower than a byte, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_to_dlpack(const struct rukh_value *value,
                                 struct DLManagedTensorVersioned **out,
                                 struct rukh_error **error);

/**
 * As `rukh_value_to_dlpack`, in the layout of DLPack before 1.0.
 *
 * `value`: not NULL; a tensor of numbers or booleans. `out`: not NULL; receives the DLPack tensor, which
 * its receiver releases by its `deleter`; NULL on failure. `error`: may be NULL. Threads: any, at the
 * same time. Errors: as `rukh_value_to_dlpack`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_to_dlpack_legacy(const struct rukh_value *value,
                                        struct DLManagedTensor **out,
                                        struct rukh_error **error);

/**
 * Takes a versioned DLPack tensor from another library; its elements are shared when they lie in
 * row-major order without gaps, aligned, and may be written, else copied.
 *
 * `managed`: not NULL; on the CPU, in host memory pinned for a GPU, or in the memory of a GPU that this library
 * reaches (ROCm, or CUDA where that is the platform), where the elements must lie in row-major order. On success
 * the value owns it and calls its `deleter`, on any thread, when nothing uses the elements any more (after a
 * copy: at once). On failure it stays the caller's. `out`: not NULL; receives the value, which the caller destroys;
 * NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a
 * malformed tensor, `RUKH_ERROR_UNSUPPORTED` for a version above 1, another device or an element type
 * without an ONNX counterpart, `RUKH_ERROR_DEVICE` for one on a GPU where none is found,
 * `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_from_dlpack(struct DLManagedTensorVersioned *managed,
                                   struct rukh_value **out,
                                   struct rukh_error **error);

/**
 * As `rukh_value_from_dlpack`, from the layout of DLPack before 1.0.
 *
 * `managed`: not NULL; on success the value owns it, on failure the caller. `out`: not NULL; receives
 * the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: as
 * `rukh_value_from_dlpack`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_value_from_dlpack_legacy(struct DLManagedTensor *managed,
                                          struct rukh_value **out,
                                          struct rukh_error **error);

/* -- 29. Options of a run, and cancelling it -- */

/**
 * Makes options for runs, all at their defaults. One object may serve many runs, also at once.
 *
 * Keys of `rukh_run_options_set`: "tag" (a name for the run in the profile and in the log), "log_level" (from which level on
 * messages of this run reach the log's callback: "debug", which also tells each node and how long the run took, "info",
 * "warning", "error" or "off", or ONNX Runtime's numbers 0 to 4; "", the default, for the session's level;
 * "log_severity_level" is another name of this key), "priority" ("high", "normal", the default, or "low": which of the runs
 * that wait for a thread after `rukh_session_start` goes first, and where the GPU's runtime has priorities, that of the
 * run's stream; a run that goes on is not interrupted),
 * "memory.enable_memory_arena_shrinkage" ("1", or "gpu:0" as in ONNX Runtime: after the run, device memory
 * that nobody uses goes back to the runtime), "output_memory" ("host", the default; "device": outputs that the run
 * allocates stay in the memory of the GPU that runs nodes of the session; "pinned": in memory of the host that this GPU
 * copies to by itself; where there is no GPU all come to the host, and so do strings, sequences, maps and optionals
 * anyway), "timeout_ms" (milliseconds after which the run is ended as by `rukh_run_options_cancel`, with a message that says
 * so; 0, the default, for no limit) and "compute_stream" (the address of a `hipStream_t` of the
 * session's device, decimal or 0x…, 0 for the default stream, "" for none: the run's work on the device comes
 * after what that stream was given before and before what it is given later; outputs in device memory are
 * ordered in it, and the call does not wait for them).
 *
 * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
 * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_create(struct rukh_run_options **out,
                                    struct rukh_error **error);

/**
 * Destroys options; runs that use them go on. NULL, and a pointer that is no live handle of this kind,
 * is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_run_options_destroy(struct rukh_run_options *options);

/**
 * Sets an option by its name; `rukh_run_options_create` lists them. Runs that have begun keep theirs.
 *
 * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_set(struct rukh_run_options *options,
                                 const char *key,
                                 const char *value,
                                 struct rukh_error **error);

/**
 * The value of an option, in a form that `rukh_run_options_set` takes.
 *
 * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
 * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
 * key or a buffer that is too small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_get(const struct rukh_run_options *options,
                                 const char *key,
                                 char *buf,
                                 size_t cap,
                                 size_t *needed,
                                 struct rukh_error **error);

/**
 * The name of the option at `index`; together with `rukh_run_options_get` this lists them all.
 *
 * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
 * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
 * same time. Errors: also the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_key(const struct rukh_run_options *options,
                                 size_t index,
                                 char *buf,
                                 size_t cap,
                                 size_t *needed,
                                 struct rukh_error **error);

/**
 * Ends every run that uses these options, now and later, with `RUKH_ERROR_CANCELLED`, soon but not at
 * once. `rukh_run_options_reset` allows runs again.
 *
 * `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than the run's.
 * Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_cancel(struct rukh_run_options *options,
                                    struct rukh_error **error);

/**
 * Takes `rukh_run_options_cancel` back for runs that begin from now on. Those already cancelled stay
 * cancelled.
 *
 * `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_run_options_reset(struct rukh_run_options *options,
                                   struct rukh_error **error);

/* -- 30. Running a session -- */

/**
 * Runs the model.
 *
 * `session`: not NULL. `options`: NULL for the defaults. `input_names`: `input_count` names, of inputs or of
 * overridable initializers; NULL for the first `input_count` inputs in the model's order. `inputs`: as many values, which the run shares
 * and which must not be written meanwhile; the handles stay the caller's. `output_names`:
 * `output_count` names of outputs that are wanted; NULL for the first `output_count` outputs in the
 * model's order. `outputs`: room for `output_count` handles; receives new values, which the caller
 * destroys; all NULL on failure. `error`: may be NULL. Threads: any, at the same time; one session may be
 * run by many threads at once. Returns when the run has ended. Errors: `RUKH_ERROR_NOT_FOUND` for a name
 * that the model does not have, `RUKH_ERROR_INVALID_INPUT` for a missing input, a wrong type, rank or
 * dimension, `RUKH_ERROR_INVALID_DATA` for data that an operator refuses (the message names the node),
 * `RUKH_ERROR_CANCELLED`, `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_run(const struct rukh_session *session,
                             const struct rukh_run_options *options,
                             const char *const *input_names,
                             const struct rukh_value *const *inputs,
                             size_t input_count,
                             const char *const *output_names,
                             size_t output_count,
                             struct rukh_value **outputs,
                             struct rukh_error **error);

/* -- 31. Running a session in the background -- */

/**
 * Runs the model on a thread of the environment and returns at once. The run's result is learnt by a callback, or by the
 * completion, or by both.
 *
 * `session`: not NULL; kept alive until the callback has returned. `options`: NULL for the defaults;
 * `rukh_run_options_cancel` on them ends the run. `input_names`, `inputs`, `input_count`,
 * `output_names`, `output_count`: as for `rukh_session_run`; names are copied, values shared until the run
 * has ended. `callback`: NULL for none; called once when the run has ended, if and only if this call returns
 * `RUKH_OK`, maybe before it returns. `user`: passed to the callback as it is; may be NULL. `release`: may be NULL; else
 * called once with `user` when the callback has returned, also when this call fails. `out`: NULL for none; receives a
 * completion that can be waited for and asked for outputs, which the caller destroys, at any time; the run goes on without
 * it. `error`: may be NULL.
 * Threads: any, at the same time. At most as many runs as the environment has threads are under way; further ones wait
 * their turn, those with the higher option "priority" first, then those that were started first. Errors: of this call for
 * arguments (also when `callback` and `out` are both NULL), `RUKH_ERROR_OUT_OF_MEMORY` when no thread can be had,
 * and the handle errors; those of the run are told by `rukh_completion_wait`.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_start(const struct rukh_session *session,
                               const struct rukh_run_options *options,
                               const char *const *input_names,
                               const struct rukh_value *const *inputs,
                               size_t input_count,
                               const char *const *output_names,
                               size_t output_count,
                               rukh_completion_callback callback,
                               void *user,
                               rukh_release release,
                               struct rukh_completion **out,
                               struct rukh_error **error);

/**
 * Deprecated: use `rukh_session_start`, whose callback receives a completion. Runs the model on a thread of the environment
 * and returns at once.
 *
 * `session`: not NULL; kept alive until the callback has returned. `options`: NULL for the defaults;
 * `rukh_run_options_cancel` on them ends the run. `input_names`, `inputs`, `input_count`,
 * `output_names`, `output_count`: as for `rukh_session_run`; names are copied, values shared until the run
 * has ended. `callback`: not NULL; called once when the run has ended, if and only if this call returns
 * `RUKH_OK`. `user`: passed to the callback as it is; may be NULL. `error`: may be NULL. Threads: any, at
 * the same time. At most as many runs as the environment has threads are under way; further ones wait
 * their turn. Errors: of this call for arguments, `RUKH_ERROR_OUT_OF_MEMORY` when no thread can be had,
 * and the handle errors; those of the run go to the callback.
 */
RUKH_DEPRECATED("use rukh_session_start")
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_run_async(const struct rukh_session *session,
                                   const struct rukh_run_options *options,
                                   const char *const *input_names,
                                   const struct rukh_value *const *inputs,
                                   size_t input_count,
                                   const char *const *output_names,
                                   size_t output_count,
                                   rukh_run_callback callback,
                                   void *user,
                                   struct rukh_error **error);

/* -- 32. Io bindings: inputs and outputs that stay from run to run -- */

/**
 * Makes a binding for runs of a session: values stay bound from run to run, and a run with all outputs
 * bound to values allocates nothing once it has seen the shapes.
 *
 * `session`: not NULL; kept alive by the binding. `out`: not NULL; receives the binding, which the caller
 * destroys; NULL on failure. `error`: may be NULL. Threads: any; one session may have many bindings, each
 * is used by one call at a time (another gets `RUKH_ERROR_INVALID_ARGUMENT`). Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_create(const struct rukh_session *session,
                                   struct rukh_io_binding **out,
                                   struct rukh_error **error);

/**
 * Destroys a binding; the values that were bound lose one owner. NULL, and a pointer that is no live
 * handle of this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_io_binding_destroy(struct rukh_io_binding *binding);

/**
 * Binds a value to an input, in place of what was bound before. What is written into the value's elements
 * later, between runs, is what later runs read.
 *
 * `binding`, `name`, `value`: not NULL; the value is shared, its handle stays the caller's. `error`: may
 * be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not
 * have, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors. Type and shape are checked by the run.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_bind_input(struct rukh_io_binding *binding,
                                       const char *name,
                                       const struct rukh_value *value,
                                       struct rukh_error **error);

/**
 * Binds the memory of a tensor to an output: runs write there. It may be the memory that an input is
 * bound to, when the model may update it in place.
 *
 * `binding`, `name`: not NULL. `value`: not NULL; a tensor of the output's type and shape, but not of
 * strings; shared, its handle stays the caller's. `error`: may be NULL. Threads: any, one at a time.
 * Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`
 * for a value that is no tensor of plain elements, and the handle errors. Type and shape are checked by
 * the run.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_bind_output(struct rukh_io_binding *binding,
                                        const char *name,
                                        const struct rukh_value *value,
                                        struct rukh_error **error);

/**
 * Binds an output to memory that the library allocates at each run: for outputs whose shape is not known
 * before, and for strings, sequences, maps and optionals.
 *
 * `binding`, `name`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_bind_output_allocated(struct rukh_io_binding *binding,
                                                  const char *name,
                                                  struct rukh_error **error);

/**
 * Unbinds all inputs.
 *
 * `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_clear_inputs(struct rukh_io_binding *binding,
                                         struct rukh_error **error);

/**
 * Unbinds all outputs.
 *
 * `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_clear_outputs(struct rukh_io_binding *binding,
                                          struct rukh_error **error);

/**
 * Runs the session with what is bound; only outputs that are bound are computed.
 *
 * `binding`: not NULL. `options`: NULL for the defaults. `error`: may be NULL. Threads: any, one at a time
 * for each binding. Errors: as `rukh_session_run`, and `RUKH_ERROR_INVALID_INPUT` for an input that is
 * not bound or an output bound to a tensor of another type or shape.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_run(struct rukh_io_binding *binding,
                                const struct rukh_run_options *options,
                                struct rukh_error **error);

/**
 * The value of an output after a run: the one that was bound, or the one the run allocated.
 *
 * `binding`, `name`: not NULL. `out`: not NULL; receives a value that shares the elements and that the
 * caller destroys; NULL on failure. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, or an output that is not bound or has
 * no value yet; `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_output(const struct rukh_io_binding *binding,
                                   const char *name,
                                   struct rukh_value **out,
                                   struct rukh_error **error);

/* -- 33. Runs that were started, runs and copies whose work is queued on a device, and waiting for them -- */

/**
 * Queues a run of what is bound and returns without waiting for the device.
 *
 * Nothing is waited for when all inputs and outputs that the run uses are in device memory and no node runs on
 * the CPU; else the call waits for what the host must read, as `rukh_io_binding_run` does. The values that are
 * bound stay alive until the run is done and must not be written meanwhile, except by work that the caller
 * orders after it: in the stream of run option "compute_stream" or of the provider's `user_compute_stream`, or
 * behind `rukh_completion_event`.
 *
 * `binding`: not NULL; free again when the call returns. `options`: NULL for the defaults. `out`: not NULL;
 * receives the completion, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, one
 * at a time for each binding. Errors: as `rukh_io_binding_run`; what kernels find wrong with the data is told
 * by `rukh_completion_wait`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_io_binding_run_queued(struct rukh_io_binding *binding,
                                       const struct rukh_run_options *options,
                                       struct rukh_completion **out,
                                       struct rukh_error **error);

/**
 * Destroys a completion, and waits first for what is queued on a device, but for a mark of `rukh_stream_record`. A run that
 * `rukh_session_start` started goes on, and its callback is called. NULL, and a pointer that is no live handle of this kind,
 * is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_completion_destroy(struct rukh_completion *completion);

/**
 * Whether the run or copy is done; does not wait.
 *
 * `completion`: not NULL. `done`: not NULL; receives 1 or 0. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_DEVICE` and `RUKH_ERROR_POISONED` when the device failed, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_completion_is_done(const struct rukh_completion *completion,
                                    int32_t *done,
                                    struct rukh_error **error);

/**
 * Waits until the run or copy is done, and tells how it ended.
 *
 * `completion`: not NULL. `error`: may be NULL. Threads: any, at the same time; but a callback must not wait for a run that
 * waits for the callback's own thread. Errors: of a run that was started those of `rukh_session_run`, each time; of what is
 * queued `RUKH_ERROR_INVALID_DATA` for data that a kernel refused (told once), `RUKH_ERROR_DEVICE` and
 * `RUKH_ERROR_POISONED`; and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_completion_wait(const struct rukh_completion *completion,
                                 struct rukh_error **error);

/**
 * The event behind the work, for streams of the caller's to wait for (`hipStreamWaitEvent`).
 *
 * `completion`: not NULL; owns the event. `event`: not NULL; receives the `hipEvent_t` (`CUevent` on the
 * nvidia platform) as a number, 0 when the run left nothing queued, as one of `rukh_session_start` does. `error`: may be
 * NULL. Threads: any, at the same time. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_completion_event(const struct rukh_completion *completion,
                                  uint64_t *event,
                                  struct rukh_error **error);

/**
 * The number of outputs that `rukh_completion_output` gives: as many as `rukh_session_start` was asked for. 0 for what is
 * queued, whose outputs the io binding has.
 *
 * `completion`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_completion_output_count(const struct rukh_completion *completion,
                                         size_t *count,
                                         struct rukh_error **error);

/**
 * An output of a run that `rukh_session_start` started. Waits until the run has ended.
 *
 * `completion`: not NULL. `index`: from 0, in the order in which outputs were asked for. `out`: not NULL; receives a value
 * that the caller destroys, and that outlives the completion; NULL on failure. Asked for again, another handle of the same
 * value. `error`: may be NULL. Threads: any, at the same time, as for `rukh_completion_wait`. Errors: those of the run;
 * `RUKH_ERROR_INVALID_ARGUMENT` for an output that is not there, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_completion_output(const struct rukh_completion *completion,
                                   size_t index,
                                   struct rukh_value **out,
                                   struct rukh_error **error);

/* -- 34. What tuning found: which kernels are fastest on this device -- */

/**
 * The results of tuning so far: a line for each problem that was measured or taken from elsewhere, after
 * lines that tell under which conditions they hold. `rukh_session_add_tuning_results` takes the text again.
 *
 * `session`: not NULL; made with the hip provider's option "tunable_op_enable" set to "1". `buf`, `cap`,
 * `needed`: see "Texts" at the top of this header; a run that ends between two calls may make the text
 * longer, so ask until it fits. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a session that does not choose among kernels or a buffer that is too
 * small, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_tuning_results(const struct rukh_session *session,
                                        char *buf,
                                        size_t cap,
                                        size_t *needed,
                                        struct rukh_error **error);

/**
 * Lets a session use results of tuning, in addition to those it has and over those for the same problem.
 * Runs that begin later follow them. A text that was made by another version of the library or of its
 * kernels, on another device, with another runtime or other libraries is ignored, as are lines that cannot
 * be read; the log tells why.
 *
 * `session`: not NULL; made with the hip provider's option "tunable_op_enable" set to "1". `text`: not NULL;
 * copied. `taken`: may be NULL; receives how many results were taken. `error`: may be NULL. Threads: any, at
 * the same time, also while the session runs. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a session that does
 * not choose among kernels, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_add_tuning_results(const struct rukh_session *session,
                                            const char *text,
                                            size_t *taken,
                                            struct rukh_error **error);

/**
 * Measures problems that were recorded with the hip provider's option "tunable_op_record_file", on this machine and
 * without the models that they came from. Results go into the file that option "tunable_op_file" names, from which
 * sessions take them; problems that have one there already are not measured again.
 *
 * `environment`: not NULL. `options`: not NULL; with provider "hip", its options "tunable_op_enable" and
 * "tunable_op_tuning_enable" set to "1" and "tunable_op_file" to a file. `shapes`: not NULL; a text of problems. `tuned`,
 * `without`: may be NULL; receive how many problems of the text have a result now, and how many lines have none, which
 * the log tells of. `error`: may be NULL. Threads: any, also while sessions run, whose work disturbs what is measured.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for options without these or another text, `RUKH_ERROR_IO` for a file that cannot
 * be written, `RUKH_ERROR_DEVICE` without a device, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_tune(struct rukh_environment *environment,
                                  const struct rukh_session_options *options,
                                  const char *shapes,
                                  size_t *tuned,
                                  size_t *without,
                                  struct rukh_error **error);

/* -- 35. Operators that the caller defines: their name, inputs and outputs, and functions -- */

/**
 * Makes an operator, to be described and then added to an environment or to options of sessions.
 *
 * `domain`: not NULL; "" or "ai.onnx" for the standard's, whose own names are not allowed. `name`: not NULL and not
 * empty. `since`: the version of the domain's operator set in which the operator appeared, 1 or more; of several
 * versions a node gets the newest that is not newer than the version that the model imports. `user`: passed to the
 * operator's callbacks as it is; may be NULL. `release`: may be NULL; called once with `user` when the handle, and every
 * environment, options and session with the operator, are gone, also when this call fails. `out`: not NULL; receives
 * the operator, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_create(const char *domain,
                                 const char *name,
                                 int64_t since,
                                 void *user,
                                 rukh_release release,
                                 struct rukh_operator **out,
                                 struct rukh_error **error);

/**
 * Destroys an operator's handle. What it was added to keeps the operator. NULL, and a pointer that is no live handle
 * of this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_operator_destroy(struct rukh_operator *operator_);

/**
 * Adds a type variable: inputs and outputs whose type is the variable's name have one type in a node.
 *
 * `operator`: not NULL. `name`: not NULL; no name of an element type, and not added before. `allowed`: `count` element
 * types, `RUKH_ELEMENT_…`; NULL and 0 for all. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_add_type_variable(struct rukh_operator *operator_,
                                            const char *name,
                                            const rukh_element_type *allowed,
                                            size_t count,
                                            struct rukh_error **error);

/**
 * Adds an input, behind those that are there.
 *
 * `operator`: not NULL. `name`: not NULL; for messages. `ty`: not NULL; the name of a type variable that was added
 * before, an element type as ONNX writes it ("float", "int64", "string" …), "seq(TYPE)" or "opt(TYPE)" of these, or
 * "any". `arity`: one of `RUKH_ARITY_…`. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_add_input(struct rukh_operator *operator_,
                                    const char *name,
                                    const char *ty,
                                    rukh_arity arity,
                                    struct rukh_error **error);

/**
 * Adds an output, behind those that are there. Its type is written as an input's; where it is "any" or a variable
 * that no input has, the shape function sets it.
 *
 * The arguments, threads and errors are those of `rukh_operator_add_input`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_add_output(struct rukh_operator *operator_,
                                     const char *name,
                                     const char *ty,
                                     rukh_arity arity,
                                     struct rukh_error **error);

/**
 * Says that the value of an input decides the shape of an output, as the `shape` of Reshape does. The shape function
 * then gets the value whenever outputs are to be planned, and the input stays in host memory.
 *
 * `operator`: not NULL. `index`: of an input that was added. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_shape_input(struct rukh_operator *operator_,
                                          size_t index,
                                          struct rukh_error **error);

/**
 * Sets the function that tells types and shapes of a node's outputs. It is called when a model is opened, with
 * dimensions that may be unknown, and again for the shapes of a run. Outputs whose shapes it tells then lie in memory
 * that the run plans; without the function, or where it leaves a shape unset, the kernel decides and memory is allocated
 * while the model runs.
 *
 * `operator`: not NULL. `function`: NULL for none. `error`: may be NULL. Threads: any. Errors: the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_shape_function(struct rukh_operator *operator_,
                                             rukh_node_callback function,
                                             struct rukh_error **error);

/**
 * Sets the kernel for the CPU.
 *
 * `operator`: not NULL. `create`: may be NULL; called once for each node of a session that runs on the CPU, with its
 * types and attributes; it may refuse the node, and give it a state by `rukh_node_info_set_state`. `compute`: not NULL;
 * called in each run. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_kernel(struct rukh_operator *operator_,
                                     rukh_node_callback create,
                                     rukh_kernel_callback compute,
                                     struct rukh_error **error);

/**
 * Sets the kernel for GPUs, which launches by itself: it is lent tensors in device memory and the stream of the run.
 *
 * `operator`: not NULL; it needs a shape function, since the outputs' memory is planned. `create`: may be NULL; as for
 * the CPU. `prepare`: may be NULL; called when a run of new shapes is planned, with the shapes known, to ask for temporary
 * memory by `rukh_node_info_set_scratch`. `compute`: not NULL; called in each run. It must give its work to the
 * stream of `rukh_kernel_context_stream`, must not wait for it, and must not use tensors or temporary memory after work
 * in that stream. A run with such a node is replayed as a graph of the runtime's only where
 * `rukh_operator_set_capturable` says that it may be. `error`: may be NULL. Threads:
 * any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_gpu_kernel(struct rukh_operator *operator_,
                                         rukh_node_callback create,
                                         rukh_node_callback prepare,
                                         rukh_kernel_callback compute,
                                         struct rukh_error **error);

/**
 * Says whether an operator is pure: the same inputs and attributes give the same outputs, bit for bit, and its
 * functions do nothing else. A node of a pure operator with a kernel for the CPU is computed once where all its inputs
 * are constants, when a model is opened with optimisation, or follow from the shapes of runs, when a run of new shapes
 * is planned; each run then takes the result. A kernel that fails meanwhile leaves the node as it is, for the runs to
 * tell. A result of more than 1 MiB is kept only where it has at most 16 times the bytes of the inputs.
 *
 * `operator`: not NULL. `pure`: 1 or 0; 0 when this is not called. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_pure(struct rukh_operator *operator_,
                                   int32_t pure,
                                   struct rukh_error **error);

/**
 * Says whether the work of the kernel for GPUs may be captured: all that `compute` does is to give work to the stream
 * of the run, and that work is the same each time for the same shapes and addresses. Runs with such nodes are replayed as
 * graphs of the runtime's, in which `compute` is not called: it is called in the first run of given shapes, and again each
 * time that its work is recorded. What it passes to its kernels must live as long as the node's state. A kernel that fails
 * while it is recorded, or makes a call that the runtime does not allow then, leaves the run without a graph.
 *
 * `operator`: not NULL. `capturable`: 1 or 0; 0 when this is not called: `compute` is called in each run, and a run
 * whose stream the caller captures is an error. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 *
 * Since: 0.1.1.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_set_capturable(struct rukh_operator *operator_,
                                         int32_t capturable,
                                         struct rukh_error **error);

/**
 * Adds an operator to options: sessions that are opened with them find it, before one of the same domain, name and
 * version that the environment has. Where a model has a function of the operator's name, for libraries without the
 * operator, the operator is taken.
 *
 * `options`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an operator without outputs or kernel, or that was added before, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_add_operator(struct rukh_session_options *options,
                                              const struct rukh_operator *operator_,
                                              struct rukh_error **error);

/**
 * Adds an operator to an environment: its sessions that are opened from now on find it.
 *
 * `environment`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any, at the
 * same time. Errors: as `rukh_session_options_add_operator`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_add_operator(struct rukh_environment *environment,
                                          const struct rukh_operator *operator_,
                                          struct rukh_error **error);

/* -- 36. The attributes of an operator that the caller defines, and their defaults -- */

/**
 * Adds an attribute that nodes of the operator may have. One that is not required and has no default may be left out:
 * it then is not there.
 *
 * `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`.
 * `required`: 1 where a node without it is an error, else 0. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_add_attribute(struct rukh_operator *operator_,
                                        const char *name,
                                        rukh_attribute_type ty,
                                        int32_t required,
                                        struct rukh_error **error);

/**
 * Adds an attribute with a default, which nodes without it have.
 *
 * `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`. `data`: the
 * default, copied: a `float`, an `int64_t`, a NUL-terminated text in UTF-8, a `rukh_value *` (a tensor); for lists an
 * array of `float`, of `int64_t`, of `const char *`. NULL allowed for a list of 0. `count`: the length of a list; 1 for
 * what is no list. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_add_attribute_with_default(struct rukh_operator *operator_,
                                                     const char *name,
                                                     rukh_attribute_type ty,
                                                     const void *data,
                                                     size_t count,
                                                     struct rukh_error **error);

/* -- 37. Shared libraries of operators -- */

/**
 * Adds the operators of a shared library to options. The library must export two functions in C (`RUKH_EXPORT`
 * before them does it):
 *
 * `uint32_t rukh_operators_abi_version(void)`: the `RUKH_ABI_VERSION` that it was built with;
 * `rukh_status rukh_register_operators(rukh_operator_registry *registry)`: adds operators by
 * `rukh_operator_registry_add`.
 *
 * It finds the functions of this header in the librukh that it is linked to, which must be the one that loads it. It
 * stays loaded until the process ends. Either all of its operators are added or none.
 *
 * `options`, `path`: not NULL; a file name, or a name that the system looks up. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_NOT_FOUND` for a library that cannot be opened, `RUKH_ERROR_UNSUPPORTED` for one without these
 * functions, of another version, or that fails, `RUKH_ERROR_INVALID_ARGUMENT` for an operator that was added before, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_session_options_load_operators(struct rukh_session_options *options,
                                                const char *path,
                                                struct rukh_error **error);

/**
 * Adds the operators of a shared library to an environment, for its sessions that are opened from now on; as
 * `rukh_session_options_load_operators`.
 *
 * `environment`, `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: as
 * `rukh_session_options_load_operators`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_environment_load_operators(struct rukh_environment *environment,
                                            const char *path,
                                            struct rukh_error **error);

/**
 * Adds an operator, in the function of a library of operators that is asked for them.
 *
 * `registry`, `operator`: not NULL; what the operator is now is copied, and the caller destroys its handle. `error`: may
 * be NULL. Threads: any. Errors: as `rukh_session_options_add_operator`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_registry_add(struct rukh_operator_registry *registry,
                                       const struct rukh_operator *operator_,
                                       struct rukh_error **error);

/**
 * Says why a library of operators cannot add its operators.
 *
 * `registry`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_operator_registry_set_error(struct rukh_operator_registry *registry,
                                             const char *text,
                                             struct rukh_error **error);

/* -- 38. A node whose operator the caller defined, as the caller's functions see it: its inputs, and what they answer -- */

/**
 * The name of the node, for messages.
 *
 * `node`, `name`: not NULL; the text is borrowed from the node. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_name(const struct rukh_node_info *node,
                                const char **name,
                                struct rukh_error **error);

/**
 * The version of the operator's domain that the model imports.
 *
 * `node`, `version`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_version(const struct rukh_node_info *node,
                                   int64_t *version,
                                   struct rukh_error **error);

/**
 * The number of the node's inputs, those included that it leaves out before others.
 *
 * `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_input_count(const struct rukh_node_info *node,
                                       size_t *count,
                                       struct rukh_error **error);

/**
 * The number of the node's outputs, those included that it leaves out before others.
 *
 * `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_output_count(const struct rukh_node_info *node,
                                        size_t *count,
                                        struct rukh_error **error);

/**
 * Whether the node has an input (1), or leaves it out (0).
 *
 * `node`, `given`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_has_input(const struct rukh_node_info *node,
                                     size_t index,
                                     int32_t *given,
                                     struct rukh_error **error);

/**
 * What an input is, and its element type: of a tensor, or of the tensors inside another kind.
 *
 * `node`: not NULL. `index`: of an input that the node has. `kind`, `element`: may be NULL; receive
 * `RUKH_KIND_UNDEFINED` and `RUKH_ELEMENT_UNDEFINED` while the type is not known. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node
 * leaves out, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_input_type(const struct rukh_node_info *node,
                                      size_t index,
                                      rukh_kind *kind,
                                      rukh_element_type *element,
                                      struct rukh_error **error);

/**
 * The shape of an input.
 *
 * `node`: not NULL. `index`: of an input that the node has. `dims`: room for `cap` dimensions, which receives them in
 * elements, -1 for one that is not known; NULL allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives
 * the number of dimensions, -1 when that is not known. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or too little room, `RUKH_ERROR_NOT_FOUND` for an input
 * that the node leaves out, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_input_shape(const struct rukh_node_info *node,
                                       size_t index,
                                       int64_t *dims,
                                       size_t cap,
                                       int64_t *rank,
                                       struct rukh_error **error);

/**
 * The value of an input where it is known: a constant of the model, or an input that decides a shape.
 *
 * `node`: not NULL. `index`: of an input that the node has. `value`: not NULL; receives the tensor, borrowed from the
 * node; NULL when the value is not known. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
 * an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node leaves out, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_input_value(const struct rukh_node_info *node,
                                       size_t index,
                                       const struct rukh_value **value,
                                       struct rukh_error **error);

/**
 * Says why a function cannot answer: the text of the error that opening or running the model returns, after the
 * node's name. The function then fails, whatever status it returns.
 *
 * `node`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_error(struct rukh_node_info *node,
                                     const char *text,
                                     struct rukh_error **error);

/**
 * Gives the node's kernel a state, which `rukh_kernel_context_state` tells later. For the function `create` of a kernel.
 *
 * `node`: not NULL. `state`: passed on as it is; may be NULL. `release`: may be NULL; called once with `state` when the
 * session is gone, or when another state takes its place, also when opening the session fails. `error`: may be NULL.
 * Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors; `release` is then not
 * called.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_state(struct rukh_node_info *node,
                                     void *state,
                                     rukh_release release,
                                     struct rukh_error **error);

/**
 * The state that the function `create` gave the node's kernel. For the function `prepare` of a GPU kernel.
 *
 * `node`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_state(const struct rukh_node_info *node,
                                 void **state,
                                 struct rukh_error **error);

/**
 * Asks for temporary device memory for each run of these shapes. For the function `prepare` of a GPU kernel.
 *
 * `node`: not NULL. `bytes`: 0 or more; the memory is aligned to 256 bytes and its content is unspecified. `error`: may
 * be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_scratch(struct rukh_node_info *node,
                                       size_t bytes,
                                       struct rukh_error **error);

/* -- 39. What a shape function tells of a node's outputs -- */

/**
 * Whether the node has an output (1), or leaves it out (0). Known in the functions `create` and `prepare` of a kernel.
 *
 * `node`, `wanted`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL or in a shape function, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_has_output(const struct rukh_node_info *node,
                                      size_t index,
                                      int32_t *wanted,
                                      struct rukh_error **error);

/**
 * Tells that an output is a tensor of this element type. Needed only where the signature does not tell the type.
 *
 * `node`: not NULL. `index`: from 0. `element`: one of `RUKH_ELEMENT_…`. `error`: may be NULL. Threads: any. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for an index or type that is not there or outside of a shape function, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_output_type(struct rukh_node_info *node,
                                           size_t index,
                                           rukh_element_type element,
                                           struct rukh_error **error);

/**
 * Tells the shape of an output.
 *
 * `node`: not NULL. `index`: from 0. `dims`: `rank` dimensions in elements, -1 for one that is not known, which is
 * allowed only while dimensions or values of inputs are not known; NULL allowed with rank 0, a scalar. `error`: may be
 * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, a dimension below -1 or
 * outside of a shape function, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_output_shape(struct rukh_node_info *node,
                                            size_t index,
                                            const int64_t *dims,
                                            size_t rank,
                                            struct rukh_error **error);

/**
 * Tells that an output has the shape of an input, also where dimensions of it are not known yet: the library then
 * knows that both are equal.
 *
 * `node`: not NULL. `index`: of the output, from 0. `input`: of an input that the node has. `error`: may be NULL.
 * Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or outside of a shape function, and
 * the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_output_shape_of(struct rukh_node_info *node,
                                               size_t index,
                                               size_t input,
                                               struct rukh_error **error);

/**
 * Tells that a dimension of an output, whose shape was told before, is one of an input, also where that is not known
 * yet.
 *
 * `node`: not NULL. `index`, `axis`: of the output, from 0. `input`, `input_axis`: of an input that the node has.
 * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there or
 * outside of a shape function, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_set_output_dim_of(struct rukh_node_info *node,
                                             size_t index,
                                             size_t axis,
                                             size_t input,
                                             size_t input_axis,
                                             struct rukh_error **error);

/* -- 40. The attributes of a node whose operator the caller defined -- */

/**
 * Whether a node has an attribute, by itself or by its default (1), or not (0).
 *
 * `node`, `name`, `given`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
 * and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_has_attribute(const struct rukh_node_info *node,
                                         const char *name,
                                         int32_t *given,
                                         struct rukh_error **error);

/**
 * The value of an integer attribute.
 *
 * `node`, `name`, `value`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_NOT_FOUND` for an attribute
 * that the node does not have, `RUKH_ERROR_INVALID_ARGUMENT` for one of another type, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_int(const struct rukh_node_info *node,
                                         const char *name,
                                         int64_t *value,
                                         struct rukh_error **error);

/**
 * The value of a float attribute.
 *
 * The arguments, threads and errors are those of `rukh_node_info_attribute_int`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_float(const struct rukh_node_info *node,
                                           const char *name,
                                           float *value,
                                           struct rukh_error **error);

/**
 * The text of a string attribute.
 *
 * `node`, `name`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a text that is no UTF-8 is
 * given with replacement characters. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`, and
 * `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_string(const struct rukh_node_info *node,
                                            const char *name,
                                            char *buf,
                                            size_t cap,
                                            size_t *needed,
                                            struct rukh_error **error);

/**
 * The values of an attribute that is a list of integers.
 *
 * `node`, `name`: not NULL. `values`, `count`: not NULL; the array is borrowed from the node, NULL where it is empty.
 * `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_ints(const struct rukh_node_info *node,
                                          const char *name,
                                          const int64_t **values,
                                          size_t *count,
                                          struct rukh_error **error);

/**
 * The values of an attribute that is a list of floats.
 *
 * The arguments, threads and errors are those of `rukh_node_info_attribute_ints`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_floats(const struct rukh_node_info *node,
                                            const char *name,
                                            const float **values,
                                            size_t *count,
                                            struct rukh_error **error);

/**
 * The number of texts of an attribute that is a list of strings.
 *
 * `node`, `name`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_string_count(const struct rukh_node_info *node,
                                                  const char *name,
                                                  size_t *count,
                                                  struct rukh_error **error);

/**
 * A text of an attribute that is a list of strings.
 *
 * `node`, `name`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: as for `rukh_node_info_attribute_string`. `error`:
 * may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_string`, and `RUKH_ERROR_INVALID_ARGUMENT` for an index
 * that is not there.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_string_at(const struct rukh_node_info *node,
                                               const char *name,
                                               size_t index,
                                               char *buf,
                                               size_t cap,
                                               size_t *needed,
                                               struct rukh_error **error);

/**
 * The tensor of a tensor attribute.
 *
 * `node`, `name`: not NULL. `value`: not NULL; receives the tensor, borrowed from the node. `error`: may be NULL.
 * Threads: any. Errors: as `rukh_node_info_attribute_int`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_node_info_attribute_tensor(const struct rukh_node_info *node,
                                            const char *name,
                                            const struct rukh_value **value,
                                            struct rukh_error **error);

/* -- 41. One call of the caller's kernel: its inputs and outputs, and the threads and the stream that it may use -- */

/**
 * The number of the node's inputs, those included that it leaves out before others.
 *
 * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_input_count(const struct rukh_kernel_context *context,
                                            size_t *count,
                                            struct rukh_error **error);

/**
 * The number of the node's outputs, those included that it leaves out before others.
 *
 * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_output_count(const struct rukh_kernel_context *context,
                                             size_t *count,
                                             struct rukh_error **error);

/**
 * The value of an input, to read alone. In a kernel for GPUs it is in device memory (`rukh_value_device` tells its
 * address), but for inputs that decide a shape.
 *
 * `context`: not NULL. `index`: from 0. `value`: not NULL; receives the value, borrowed for the call: it must not be
 * destroyed, and no clone of it may outlive the call; NULL for an input that the node leaves out. `error`: may be NULL.
 * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_input(const struct rukh_kernel_context *context,
                                      size_t index,
                                      const struct rukh_value **value,
                                      struct rukh_error **error);

/**
 * The tensor of an output, to write every element of; its content is unspecified. In a kernel for GPUs it is in device
 * memory.
 *
 * `context`: not NULL. `index`: from 0. `shape`: `rank` dimensions in elements, which must be those that the shape
 * function told, where it did; NULL allowed with rank 0. `value`: not NULL; receives the tensor, borrowed for the call:
 * it must not be destroyed, and no clone of it may outlive the call; NULL for an output that nobody wants. `error`: may
 * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, another
 * shape, or an output that is no tensor, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_output(struct rukh_kernel_context *context,
                                       size_t index,
                                       const int64_t *shape,
                                       size_t rank,
                                       struct rukh_value **value,
                                       struct rukh_error **error);

/**
 * Makes a value an output: strings, a sequence, or a tensor that lies elsewhere; a planned output gets a copy of the
 * elements. In a kernel for the CPU.
 *
 * `context`, `value`: not NULL; the value is shared. `index`: from 0. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or a value of another type or shape than the
 * output's, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_set_output(struct rukh_kernel_context *context,
                                           size_t index,
                                           const struct rukh_value *value,
                                           struct rukh_error **error);

/**
 * The state that the kernel's function `create` gave the node.
 *
 * `context`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any, at the same
 * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_state(const struct rukh_kernel_context *context,
                                      void **state,
                                      struct rukh_error **error);

/**
 * Whether the run was cancelled (1) or not (0). A kernel that takes long asks now and then, and may then return with
 * its outputs as they are.
 *
 * `context`, `cancelled`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_cancelled(const struct rukh_kernel_context *context,
                                          int32_t *cancelled,
                                          struct rukh_error **error);

/**
 * The number of threads that `rukh_kernel_context_parallel_for` can use, the calling one included.
 *
 * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_thread_count(const struct rukh_kernel_context *context,
                                             size_t *count,
                                             struct rukh_error **error);

/**
 * Calls `body` with each number below `count`, in any order and on the session's threads, and returns when all calls
 * have returned.
 *
 * `context`: not NULL. `count`: 0 or more; some parts for each thread make an even load. `body`: not NULL; it may call
 * the functions of this context. `user`: passed to the body as it is; may be NULL. `error`: may be NULL. Threads: any.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the run was cancelled and parts were left
 * out, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_parallel_for(struct rukh_kernel_context *context,
                                             size_t count,
                                             rukh_parallel_body body,
                                             void *user,
                                             struct rukh_error **error);

/**
 * The stream that a kernel for GPUs gives its work to: a `hipStream_t`, on NVIDIA's GPUs a `CUstream`.
 *
 * `context`, `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for NULL and in a kernel for the CPU, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_stream(const struct rukh_kernel_context *context,
                                       void **stream,
                                       struct rukh_error **error);

/**
 * The temporary device memory that the function `prepare` asked for; its content is unspecified.
 *
 * `context`, `address`: not NULL; receives NULL where there is none. `bytes`: may be NULL; receives its size. `error`:
 * may be NULL. Threads: any, at the same time. Errors: as `rukh_kernel_context_stream`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_scratch(const struct rukh_kernel_context *context,
                                        void **address,
                                        size_t *bytes,
                                        struct rukh_error **error);

/**
 * Says why a kernel failed: the text of the error that the run returns, after the node's name. The kernel then fails,
 * whatever status it returns.
 *
 * `context`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any, at the same time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_kernel_context_set_error(struct rukh_kernel_context *context,
                                          const char *text,
                                          struct rukh_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  /* __cplusplus */

#endif  /* RUKH_H */
