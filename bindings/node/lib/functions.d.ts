// Written by scripts/bindings/write.py from abi/rukh-api.json; not to be changed by hand.

/** An address: of a handle, of memory, of a callback that `koffi.register` made. */
export type Address = bigint | null;
/** An integer of 64 bits; the library gives a `bigint` where a `number` cannot tell it. */
export type Integer = number | bigint;
/** Memory that the library reads or writes during the call, or an address. */
export type Memory = ArrayBufferView | Address;
/** What a call writes into: the first element is replaced. */
export type Out<T> = [T];

/**
 * The C API's functions without `rukh_`. Those that return a status leave out its last parameter, `error`, and throw
 * a `RukhError`; by `async` they run on a thread of Node's pool.
 */
export interface Functions {
  /**
   * The version of the library as `major * 1000000 + minor * 1000 + patch`.
   *
   * Never fails. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  version(): number;
  /**
   * The version of the library as text, such as "0.1.0".
   *
   * The text is static: never NULL, never freed. Never fails. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  version_string(): string;
  /**
   * The `RUKH_ABI_VERSION` of the library that runs. A program that loads the library by hand compares
   * it with the `RUKH_ABI_VERSION` of its header.
   *
   * Never fails. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  abi_version(): number;
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
   * @since 0.1.1
   */
  api(version: number): Address;
  /**
   * The status code of an error.
   *
   * `error`: NULL gives `RUKH_OK`; a pointer that is no live error gives what is wrong with it, such as
   * `RUKH_ERROR_INVALID_HANDLE`. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  error_code(error: Address): number;
  /**
   * The message of an error: it names the thing, the value that was given and what is allowed.
   *
   * Never NULL. The text is UTF-8, borrowed from the error and valid until the error is destroyed.
   * `error`: NULL gives ""; a pointer that is no live error gives a static text that says so. Threads:
   * any, at the same time.
   *
   * @since 0.1.0
   */
  error_message(error: Address): string;
  /**
   * Makes an error: for libraries on top of this one, whose functions report failures as this one's do.
   *
   * `code`: one of `RUKH_ERROR_…`. `message`: not NULL; copied; bytes that are not UTF-8 are replaced. Returns the
   * error, which its owner destroys; NULL for a code that is none, for a NULL message and when host memory is
   * exhausted. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  error_create(code: number, message: string): Address;
  /**
   * Destroys an error. NULL, and a pointer that is no live error, is left alone.
   *
   * Threads: any; the error must not be in use by another thread.
   *
   * @since 0.1.0
   */
  error_destroy(error: Address): void;
  /**
   * The name of a status code, such as "RUKH_ERROR_NOT_FOUND"; "unknown" for a code that this version
   * does not know.
   *
   * Never NULL; the text is static. Never fails. Threads: any, at the same time.
   *
   * @since 0.1.0
   */
  status_name(status: number): string;
  /**
   * Makes options for an environment, all at their defaults.
   *
   * Keys of `rukh_environment_options_set`: "threads" (threads of the pool that computes, the calling
   * one included; 0, the default, for all that the process may use) and "log_level" ("debug", "info",
   * "warning", the default, or "error").
   *
   * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be
   * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
   *
   * @since 0.1.0
   */
  environment_options_create: {
    (out: Out<Address>): void;
    async(out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys options. Environments made from them stay. NULL, and a pointer that is no live handle of
   * this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  environment_options_destroy(options: Address): void;
  /**
   * Sets an option by its name.
   *
   * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
   * keeps its value), and the handle errors.
   *
   * @since 0.1.0
   */
  environment_options_set: {
    (options: Address, key: string, value: string): void;
    async(options: Address, key: string, value: string): Promise<void>;
  };
  /**
   * The value of an option, in a form that `rukh_environment_options_set` takes.
   *
   * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
   * key or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_options_get: {
    (options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of the option at `index`; together with `rukh_environment_options_get` this lists them all.
   *
   * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
   * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
   * same time. Errors: also the handle errors.
   *
   * @since 0.1.0
   */
  environment_options_key: {
    (options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Makes an environment: the threads and the log that sessions share. Most programs need one.
   *
   * `options`: NULL for the defaults; copied. `out`: not NULL; receives the environment, which the
   * caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_create: {
    (options: Address, out: Out<Address>): void;
    async(options: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys an environment. Its sessions stay usable and keep the threads; they end with the last
   * session. NULL, and a pointer that is no live handle of this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  environment_destroy(environment: Address): void;
  /**
   * The number of threads that compute for one run, the calling one included.
   *
   * `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_thread_count: {
    (environment: Address, count: Out<Integer>): void;
    async(environment: Address, count: Out<Integer>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  environment_options_set_log_callback: {
    (options: Address, level: number, callback: Address, user: Memory, release: Address): void;
    async(options: Address, level: number, callback: Address, user: Memory, release: Address): Promise<void>;
  };
  /**
   * Deprecated: use `rukh_environment_options_set_log_callback`, whose callback is told more. Of two listeners the one that
   * was set last receives the messages.
   *
   * `options`: not NULL. `level`: one of `RUKH_LOG_…`. `callback`: NULL for none. `user`: passed to the
   * callback as it is; may be NULL. `release`: may be NULL; else called once with `user` when these
   * options and all environments and sessions made from them are gone, also when this call fails.
   * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  environment_options_set_log: {
    (options: Address, level: number, callback: Address, user: Memory, release: Address): void;
    async(options: Address, level: number, callback: Address, user: Memory, release: Address): Promise<void>;
  };
  /**
   * Changes from which level on messages of an environment and its sessions are received. Sessions and runs that have a level
   * of their own keep it. Without a callback it has no effect.
   *
   * `environment`: not NULL. `level`: one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown level, and the handle errors.
   *
   * @since 0.1.1
   */
  environment_set_log_level: {
    (environment: Address, level: number): void;
    async(environment: Address, level: number): Promise<void>;
  };
  /**
   * How much the message matters.
   *
   * `record`: not NULL; valid during the callback that received it, later the call is `RUKH_ERROR_INVALID_HANDLE`. `level`:
   * not NULL; receives one of `RUKH_LOG_…`. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.1
   */
  log_record_level: {
    (record: Address, level: Out<number>): void;
    async(record: Address, level: Out<number>): Promise<void>;
  };
  /**
   * A text of the message; "" where there is nothing to tell.
   *
   * `record`: not NULL; valid during the callback that received it. `which`: one of `RUKH_LOG_TEXT_…`. `text`: not NULL; the
   * text is borrowed from the record. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
   *
   * @since 0.1.1
   */
  log_record_text: {
    (record: Address, which: number, text: Out<string | null>): void;
    async(record: Address, which: number, text: Out<string | null>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  environment_options_set_parallel_for: {
    (options: Address, callback: Address, threads: Integer, user: Memory, release: Address): void;
    async(options: Address, callback: Address, threads: Integer, user: Memory, release: Address): Promise<void>;
  };
  /**
   * The number of devices of this machine that can run models. The CPU is one, and the last.
   *
   * `environment`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_device_count: {
    (environment: Address, count: Out<Integer>): void;
    async(environment: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * A description of the device at `index`.
   *
   * `environment`: not NULL. `index`: from 0. `out`: not NULL; receives a handle that the caller
   * destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_device: {
    (environment: Address, index: Integer, out: Out<Address>): void;
    async(environment: Address, index: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * The device of a provider by its number there, which is what options and functions call `device_id`.
   *
   * `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "cpu" or "hip". `device_id`: from 0;
   * 0 for the CPU. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown provider or a number that is
   * not there, `RUKH_ERROR_DEVICE` for a provider without a device, and the handle errors.
   *
   * @since 0.1.1
   */
  environment_find_device: {
    (environment: Address, provider: string, device_id: Integer, out: Out<Address>): void;
    async(environment: Address, provider: string, device_id: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a device description. NULL, and a pointer that is no live handle of this kind, is left
   * alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  device_destroy(device: Address): void;
  /**
   * The name of the provider that runs nodes on the device: "cpu" or "hip".
   *
   * `device`, `provider`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads:
   * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  device_provider: {
    (device: Address, provider: Out<string | null>): void;
    async(device: Address, provider: Out<string | null>): Promise<void>;
  };
  /**
   * The device's number among those of its provider, which is what options and functions call `device_id`.
   *
   * `device`, `device_id`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_DEVICE` for a GPU of a platform that is not used, as another one has GPUs too;
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.1
   */
  device_id: {
    (device: Address, device_id: Out<Integer>): void;
    async(device: Address, device_id: Out<Integer>): Promise<void>;
  };
  /**
   * The device's name as its maker gives it.
   *
   * `device`, `name`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
   * at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  device_name: {
    (device: Address, name: Out<string | null>): void;
    async(device: Address, name: Out<string | null>): Promise<void>;
  };
  /**
   * The architecture whose machine code the device runs, such as "x86_64" or "gfx942".
   *
   * `device`, `arch`: not NULL; the text is borrowed from the device. `error`: may be NULL. Threads: any,
   * at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  device_arch: {
    (device: Address, arch: Out<string | null>): void;
    async(device: Address, arch: Out<string | null>): Promise<void>;
  };
  /**
   * All the memory of the device in bytes, used or not; 0 when it is not known.
   *
   * `device`, `bytes`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  device_memory: {
    (device: Address, bytes: Out<Integer>): void;
    async(device: Address, bytes: Out<Integer>): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  device_property_count: {
    (device: Address, count: Out<Integer>): void;
    async(device: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The fact at `index`; see `rukh_device_property_count`.
   *
   * `device`, `key`, `value`: not NULL; the texts are borrowed from the device. `index`: from 0. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
   * is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  device_property: {
    (device: Address, index: Integer, key: Out<string | null>, value: Out<string | null>): void;
    async(device: Address, index: Integer, key: Out<string | null>, value: Out<string | null>): Promise<void>;
  };
  /**
   * The fact of this name; see `rukh_device_property_count`.
   *
   * `device`, `key`: not NULL. `value`: not NULL; the text is borrowed from the device; NULL when the device has no such
   * fact, which is no error. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL or a key that is no UTF-8, and the handle errors.
   *
   * @since 0.1.1
   */
  device_find_property: {
    (device: Address, key: string, value: Out<string | null>): void;
    async(device: Address, key: string, value: Out<string | null>): Promise<void>;
  };
  /**
   * The number of providers this version knows, with or without a device.
   *
   * `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL.
   *
   * @since 0.1.0
   */
  provider_count: {
    (count: Out<Integer>): void;
    async(count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of the provider at `index`: "hip" or "cpu".
   *
   * `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
   * or a buffer that is too small.
   *
   * @since 0.1.0
   */
  provider_name: {
    (index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Why a provider has no device on this machine, for people; "" when it has one.
   *
   * `environment`: not NULL. `provider`: not NULL; any name of a provider, such as "hip" or
   * "ROCMExecutionProvider". `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may
   * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
   * provider or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_provider_reason: {
    (environment: Address, provider: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(environment: Address, provider: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  report: {
    (buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Makes an arena for a device that sessions of the environment share: those with session option
   * "use_env_allocators" set to 1. Their own arena options then have no effect.
   *
   * `environment`: not NULL; owns the arena. `device_id`: as the hip provider's option; one arena for each
   * device. `config`: "key=value;key=value" as the hip provider's `default_memory_arena_cfg`; NULL for the
   * defaults. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or
   * device, or a second arena; `RUKH_ERROR_DEVICE` without a device, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_create_arena: {
    (environment: Address, device_id: Integer, config: string): void;
    async(environment: Address, device_id: Integer, config: string): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  environment_memory_statistic: {
    (environment: Address, device_id: Integer, name: string, value: Out<Integer>): void;
    async(environment: Address, device_id: Integer, name: string, value: Out<Integer>): Promise<void>;
  };
  /**
   * The name of the statistic at `index`.
   *
   * `environment`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
   * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_DEVICE` without a device, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_statistic_name: {
    (environment: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(environment: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * What sessions do with a device's memory, as a table for people: what is allocated, active, requested, reserved and not
   * releasable, by pool, now and at its peak, in the form of PyTorch's `memory_summary`.
   *
   * `environment`: not NULL. `device_id`: as the hip provider's option. `buf`, `cap`, `needed`: see "Texts" at the top of
   * this header. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * unknown device or a buffer that is too small, `RUKH_ERROR_DEVICE` without a device, and the handle errors.
   *
   * @since 0.1.1
   */
  environment_memory_summary: {
    (environment: Address, device_id: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(environment: Address, device_id: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Free and total bytes of a device's memory, as its runtime tells: other processes count.
   *
   * `environment`, `free`, `total`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_info: {
    (environment: Address, device_id: Integer, free: Out<Integer>, total: Out<Integer>): void;
    async(environment: Address, device_id: Integer, free: Out<Integer>, total: Out<Integer>): Promise<void>;
  };
  /**
   * Lets the peaks of a device's memory start again from what is there now.
   *
   * `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
   * an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_reset_peaks: {
    (environment: Address, device_id: Integer): void;
    async(environment: Address, device_id: Integer): Promise<void>;
  };
  /**
   * Gives the device memory that no session uses back to the runtime. Waits for the streams that still use
   * what was freed.
   *
   * `environment`: not NULL. `error`: may be NULL. Threads: any, also while sessions run. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_empty_cache: {
    (environment: Address, device_id: Integer): void;
    async(environment: Address, device_id: Integer): Promise<void>;
  };
  /**
   * Lets each session that is open now keep the last `events` events of its device memory for snapshots; 0
   * keeps none, as at first.
   *
   * `environment`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
   * an unknown device, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_record_history: {
    (environment: Address, device_id: Integer, events: Integer): void;
    async(environment: Address, device_id: Integer, events: Integer): Promise<void>;
  };
  /**
   * What a device's memory holds, as JSON: an array with an object for each session, which has "segments"
   * with their "blocks", and "device_traces" with the recorded events, by PyTorch's names. Asking changes nothing:
   * the size that one call tells holds for the next, unless memory is taken or given back in between.
   *
   * `environment`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device or a
   * buffer that is too small, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  environment_memory_snapshot: {
    (environment: Address, device_id: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(environment: Address, device_id: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.1
   */
  environment_fourier_plans: {
    (environment: Address, device_id: Integer, count: Out<Integer>, limit: Out<Integer>): void;
    async(environment: Address, device_id: Integer, count: Out<Integer>, limit: Out<Integer>): Promise<void>;
  };
  /**
   * Sets how many plans of Fourier transforms are kept for a GPU. With 0 none is: each session makes its own.
   *
   * `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
   * run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
   * Since: 0.1.1.
   *
   * @since 0.1.1
   */
  environment_set_fourier_plan_limit: {
    (environment: Address, device_id: Integer, limit: Integer): void;
    async(environment: Address, device_id: Integer, limit: Integer): Promise<void>;
  };
  /**
   * Lets all plans of Fourier transforms on a GPU go that no session needs.
   *
   * `environment`: not NULL. `device_id`: as the hip provider's option. `error`: may be NULL. Threads: any, also while sessions
   * run. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown device, `RUKH_ERROR_DEVICE` without one, and the handle errors.
   * Since: 0.1.1.
   *
   * @since 0.1.1
   */
  environment_clear_fourier_plans: {
    (environment: Address, device_id: Integer): void;
    async(environment: Address, device_id: Integer): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_options_create: {
    (out: Out<Address>): void;
    async(out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a copy of options; later changes to one do not touch the other. The copy is not cancelled.
   *
   * `options`: not NULL. `out`: not NULL; receives the copy, which the caller destroys; NULL on failure.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
   * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_clone: {
    (options: Address, out: Out<Address>): void;
    async(options: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Ends every opening and compiling of a model that uses these options: each fails with `RUKH_ERROR_CANCELLED` as soon as
   * it looks, which it does before each node, and each constant that it computes. Later ones fail too, until
   * `rukh_session_options_reset`.
   *
   * Sessions that are open stay. `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than that
   * which opens. Errors: the handle errors.
   *
   * @since 0.1.1
   */
  session_options_cancel: {
    (options: Address): void;
    async(options: Address): Promise<void>;
  };
  /**
   * Takes `rukh_session_options_cancel` back for openings that begin from now on. Those already cancelled stay cancelled.
   *
   * `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
   *
   * @since 0.1.1
   */
  session_options_reset: {
    (options: Address): void;
    async(options: Address): Promise<void>;
  };
  /**
   * Destroys options. Sessions made from them stay. NULL, and a pointer that is no live handle of this
   * kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  session_options_destroy(options: Address): void;
  /**
   * Sets an option by its name; `rukh_session_options_create` lists them.
   *
   * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a value that is not allowed (the option
   * keeps its value), and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set: {
    (options: Address, key: string, value: string): void;
    async(options: Address, key: string, value: string): Promise<void>;
  };
  /**
   * The value of an option, in a form that `rukh_session_options_set` takes.
   *
   * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a key that is
   * unknown or not set, or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_get: {
    (options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of the option at `index`; together with `rukh_session_options_get` this lists them all.
   *
   * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
   * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
   * same time. Errors: also the handle errors.
   *
   * @since 0.1.0
   */
  session_options_key: {
    (options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Sets how the model file comes into memory; the default is `RUKH_LOAD_MAP`. The same as key "load".
   *
   * `options`: not NULL. `mode`: one of `RUKH_LOAD_…`. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown mode, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_load: {
    (options: Address, mode: number): void;
    async(options: Address, mode: number): Promise<void>;
  };
  /**
   * Sets how far the graph is rewritten; the default is `RUKH_OPTIMIZATION_ALL`. The same as key
   * "optimization".
   *
   * `options`: not NULL. `optimization`: one of `RUKH_OPTIMIZATION_…`. `error`: may be NULL. Threads:
   * any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_optimization: {
    (options: Address, optimization: number): void;
    async(options: Address, optimization: number): Promise<void>;
  };
  /**
   * Sets what happens to a node that no wanted provider can take; the default is `RUKH_FALLBACK_CPU`.
   * The same as key "fallback".
   *
   * `options`: not NULL. `fallback`: one of `RUKH_FALLBACK_…`. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown value, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_fallback: {
    (options: Address, fallback: number): void;
    async(options: Address, fallback: number): Promise<void>;
  };
  /**
   * Switches the recording of runs for `rukh_session_profile` on (1) or off (0, the default). The same
   * as key "profiling".
   *
   * `options`: not NULL. `on`: 0 or 1. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for another value of `on`, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_profiling: {
    (options: Address, on: number): void;
    async(options: Address, on: number): Promise<void>;
  };
  /**
   * Gives the session a pool of `threads` threads of its own, the calling one included; 0, the default,
   * has it use the environment's. The same as key "intra_op_threads".
   *
   * `options`: not NULL. `threads`: 0 to 1024. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for a number that is too large, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_threads: {
    (options: Address, threads: Integer): void;
    async(options: Address, threads: Integer): Promise<void>;
  };
  /**
   * Fixes a symbolic dimension of the model to a size, wherever its name appears. The same as key
   * "dim.NAME".
   *
   * `options`: not NULL. `name`: not NULL and not empty; copied. Opening a model whose inputs do not have
   * the name is an error. `size`: elements, 0 or more. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an empty name or a negative size, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_set_dimension: {
    (options: Address, name: string, size: Integer): void;
    async(options: Address, name: string, size: Integer): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_options_add_provider: {
    (options: Address, provider: string, keys: string[] | null, values: string[] | null, count: Integer): void;
    async(options: Address, provider: string, keys: string[] | null, values: string[] | null, count: Integer): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_options_set_external_allocator: {
    (options: Address, alloc: Address, release_memory: Address, empty_cache: Address, user: Memory): void;
    async(options: Address, alloc: Address, release_memory: Address, empty_cache: Address, user: Memory): Promise<void>;
  };
  /**
   * The number of providers that were added.
   *
   * `options`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_provider_count: {
    (options: Address, count: Out<Integer>): void;
    async(options: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of the provider that was added at `index`: "cpu" or "hip".
   *
   * `options`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * index that is not there or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_provider_name: {
    (options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of an option that was given to the provider at `provider`; `rukh_session_options_provider_get`
   * gives its value.
   *
   * `options`: not NULL. `provider`, `index`: from 0; an index past the last is
   * `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
   *
   * @since 0.1.0
   */
  session_options_provider_key: {
    (options: Address, provider: Integer, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, provider: Integer, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The value of an option that was given to the provider at `provider`.
   *
   * `options`, `key`: not NULL. `provider`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of
   * this header. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for a provider or key that is not there or a buffer that is too small,
   * and the handle errors.
   *
   * @since 0.1.0
   */
  session_options_provider_get: {
    (options: Address, provider: Integer, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, provider: Integer, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_create: {
    (environment: Address, path: string, options: Address, out: Out<Address>): void;
    async(environment: Address, path: string, options: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a session from a copy of the bytes of a model file in memory. External data come from option
   * "external_data_folder" and from `rukh_session_options_add_external_file`; `rukh_session_create_from_buffer` copies
   * nothing.
   *
   * `environment`: not NULL; kept alive by the session. `data`: `size` bytes; copied. `options`: NULL for
   * the defaults; copied. `out`: not NULL; receives the session, which the caller destroys; NULL on
   * failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_session_create`, but
   * for the file.
   *
   * @since 0.1.0
   */
  session_create_from_memory: {
    (environment: Address, data: Memory, size: Integer, options: Address, out: Out<Address>): void;
    async(environment: Address, data: Memory, size: Integer, options: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a session. Runs that are under way and io bindings keep what they need. NULL, and a pointer
   * that is no live handle of this kind, is left alone.
   *
   * Threads: any; a run's callback may call it too.
   *
   * @since 0.1.0
   */
  session_destroy(session: Address): void;
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
   * @since 0.1.1
   */
  session_create_from_buffer: {
    (environment: Address, data: Memory, size: Integer, deleter: Address, user: Memory, options: Address, out: Out<Address>): void;
    async(environment: Address, data: Memory, size: Integer, deleter: Address, user: Memory, options: Address, out: Out<Address>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  session_options_add_initializer: {
    (options: Address, name: string, value: Address): void;
    async(options: Address, name: string, value: Address): Promise<void>;
  };
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
   * @since 0.1.1
   */
  session_options_add_external_file: {
    (options: Address, location: string, data: Memory, size: Integer, deleter: Address, user: Memory): void;
    async(options: Address, location: string, data: Memory, size: Integer, deleter: Address, user: Memory): Promise<void>;
  };
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
   * @since 0.1.1
   */
  compile_options_create: {
    (out: Out<Address>): void;
    async(out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys options. `options`: may be NULL. Threads: any.
   *
   * @since 0.1.1
   */
  compile_options_destroy(options: Address): void;
  /**
   * Sets an option by name.
   *
   * `options`, `key`, `value`: not NULL; copied. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
   * for a key that is not known or a value that is not allowed (the message lists what is), and the handle errors.
   *
   * @since 0.1.1
   */
  compile_options_set: {
    (options: Address, key: string, value: string): void;
    async(options: Address, key: string, value: string): Promise<void>;
  };
  /**
   * The value of an option.
   *
   * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a buffer that is too small,
   * and the handle errors.
   *
   * @since 0.1.1
   */
  compile_options_get: {
    (options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of the option at `index`; together with `rukh_compile_options_get` this lists them all.
   *
   * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see
   * "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
   *
   * @since 0.1.1
   */
  compile_options_key: {
    (options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Sets who is told how far compiling is, and may end it.
   *
   * `options`: not NULL. `callback`: NULL for nobody. `user`: handed to it. `release`: NULL, or called once with `user` when
   * it is not used any more, also when this call fails. `error`: may be NULL. Threads: any. Errors: the handle errors.
   *
   * @since 0.1.1
   */
  compile_options_set_progress: {
    (options: Address, callback: Address, user: Memory, release: Address): void;
    async(options: Address, callback: Address, user: Memory, release: Address): Promise<void>;
  };
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
   * @since 0.1.1
   */
  compile_model: {
    (environment: Address, path: string, session_options_handle: Address, options: Address, out_path: string): void;
    async(environment: Address, path: string, session_options_handle: Address, options: Address, out_path: string): Promise<void>;
  };
  /**
   * As `rukh_compile_model`, from the bytes of a model file.
   *
   * `data`: `size` bytes, copied. External data come from option "external_data_folder" and from
   * `rukh_session_options_add_external_file`. The rest, threads and errors: as `rukh_compile_model`.
   *
   * @since 0.1.1
   */
  compile_model_from_memory: {
    (environment: Address, data: Memory, size: Integer, session_options_handle: Address, options: Address, out_path: string): void;
    async(environment: Address, data: Memory, size: Integer, session_options_handle: Address, options: Address, out_path: string): Promise<void>;
  };
  /**
   * Opens an artifact to ask about it. Every byte of it is read and compared with its checksum.
   *
   * `environment`: not NULL; kept alive by the artifact. `path`: not NULL; a file that `rukh_compile_model` made. `out`: not
   * NULL; receives the artifact, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for the file, `RUKH_ERROR_INVALID_MODEL` for one that is no
   * artifact, was cut short, damaged or changed, or is of a version that this library does not read (the message says which
   * part), and the handle errors.
   *
   * @since 0.1.1
   */
  artifact_open: {
    (environment: Address, path: string, out: Out<Address>): void;
    async(environment: Address, path: string, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys an artifact. `artifact`: may be NULL. Threads: any.
   *
   * @since 0.1.1
   */
  artifact_destroy(artifact: Address): void;
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
   * @since 0.1.1
   */
  artifact_info: {
    (artifact: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(artifact: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Whether an artifact suits this machine, a device and options, before a session is made of it.
   *
   * `artifact`: not NULL. `options`: those that the session would have; NULL for the defaults. `verdict`: not NULL; receives
   * `RUKH_ARTIFACT_OPTIMAL`, `RUKH_ARTIFACT_WORKS` or `RUKH_ARTIFACT_UNFIT`. `buf`, `cap`, `needed`: the reason, empty for an
   * optimal one; see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_DEVICE` where the options want a device that is not there, `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is
   * too small, and the handle errors.
   *
   * @since 0.1.1
   */
  artifact_check: {
    (artifact: Address, options: Address, verdict: number[] | Int32Array | null, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(artifact: Address, options: Address, verdict: number[] | Int32Array | null, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
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
   * @since 0.1.1
   */
  adapter_open: {
    (path: string, out: Out<Address>): void;
    async(path: string, out: Out<Address>): Promise<void>;
  };
  /**
   * Reads an adapter from the bytes of its file in memory of the caller's. Elements stay where they are; they are copied
   * where they are not aligned to their type.
   *
   * `data`: `size` bytes, which must stay as they are until `deleter` is called; NULL allowed with 0. `deleter`: may be NULL
   * (the memory then outlives the adapter and all that uses it); called once with `data` and `user` when nothing uses the
   * memory any more, also when this call fails. `out`: not NULL; receives the adapter, which the caller destroys; NULL on
   * failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_adapter_open`, but for those of files.
   *
   * @since 0.1.1
   */
  adapter_open_from_buffer: {
    (data: Memory, size: Integer, deleter: Address, user: Memory, out: Out<Address>): void;
    async(data: Memory, size: Integer, deleter: Address, user: Memory, out: Out<Address>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  adapter_create: {
    (names: string[] | null, values: Address[] | null, count: Integer, adapter_version: number, model_version: number, out: Out<Address>): void;
    async(names: string[] | null, values: Address[] | null, count: Integer, adapter_version: number, model_version: number, out: Out<Address>): Promise<void>;
  };
  /**
   * Writes an adapter to a file that ONNX Runtime reads as well. A file that was there is replaced once all is written.
   *
   * `adapter`: not NULL. `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_IO`,
   * `RUKH_ERROR_UNSUPPORTED` for an adapter of 2 GiB or more, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.1
   */
  adapter_save: {
    (adapter: Address, path: string): void;
    async(adapter: Address, path: string): Promise<void>;
  };
  /**
   * Destroys an adapter. Options, runs, sessions and values that use it keep what they need of it. NULL, and a pointer that
   * is no live handle of this kind, is left alone.
   *
   * `adapter`: may be NULL. Threads: any.
   *
   * @since 0.1.1
   */
  adapter_destroy(adapter: Address): void;
  /**
   * The versions that an adapter tells: of the file's format, of itself, and of the model that it was made for.
   *
   * `adapter`: not NULL. `format_version`, `adapter_version`, `model_version`: may be NULL; receive the numbers. `error`: may
   * be NULL. Threads: any, at the same time. Errors: the handle errors.
   *
   * @since 0.1.1
   */
  adapter_versions: {
    (adapter: Address, format_version: Out<number> | null, adapter_version: Out<number> | null, model_version: Out<number> | null): void;
    async(adapter: Address, format_version: Out<number> | null, adapter_version: Out<number> | null, model_version: Out<number> | null): Promise<void>;
  };
  /**
   * The number of tensors in an adapter.
   *
   * `adapter`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.1
   */
  adapter_parameter_count: {
    (adapter: Address, count: Out<Integer>): void;
    async(adapter: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of the parameter at `index`: of the input that it is for.
   *
   * `adapter`: not NULL. `index`: from 0, in the file's order. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there
   * or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.1
   */
  adapter_parameter_name: {
    (adapter: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(adapter: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The tensor of the parameter at `index`.
   *
   * `adapter`: not NULL. `index`: from 0, in the file's order. `out`: not NULL; receives a value that shares the adapter's
   * elements, which must not be written, and which the caller destroys; it may outlive the adapter. NULL on failure. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
   * handle errors.
   *
   * @since 0.1.1
   */
  adapter_parameter_value: {
    (adapter: Address, index: Integer, out: Out<Address>): void;
    async(adapter: Address, index: Integer, out: Out<Address>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  run_options_add_adapter: {
    (options: Address, adapter: Address): void;
    async(options: Address, adapter: Address): Promise<void>;
  };
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
   * @since 0.1.1
   */
  session_options_add_adapter: {
    (options: Address, adapter: Address): void;
    async(options: Address, adapter: Address): Promise<void>;
  };
  /**
   * Tells the callback of each node that runs, after the graph was rewritten, in the order in which they run.
   *
   * `session`: not NULL. `callback`: not NULL. `user`: passed to the callback as it is; may be NULL. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the callback
   * ended it, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.1
   */
  session_for_each_placement: {
    (session: Address, callback: Address, user: Memory): void;
    async(session: Address, callback: Address, user: Memory): Promise<void>;
  };
  /**
   * A text about where a node runs.
   *
   * `placement`: not NULL; valid during the callback that is told. `which`: one of `RUKH_PLACEMENT_…`. `text`: not NULL; the
   * text is borrowed from the placement. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown `which`, and the handle errors.
   *
   * @since 0.1.1
   */
  placement_text: {
    (placement: Address, which: number, text: Out<string | null>): void;
    async(placement: Address, which: number, text: Out<string | null>): Promise<void>;
  };
  /**
   * The device that runs the node.
   *
   * `placement`: not NULL; valid during the callback that is told. `out`: not NULL; receives a handle that the caller
   * destroys, and that outlives the callback; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_DEVICE` when the device is gone, and the handle errors.
   *
   * @since 0.1.1
   */
  placement_device: {
    (placement: Address, out: Out<Address>): void;
    async(placement: Address, out: Out<Address>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  session_plan: {
    (session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The number of the model's inputs.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_input_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of an input.
   *
   * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
   * there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_input_name: {
    (session: Address, index: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * The position of an input by its name.
   *
   * `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  session_input_index: {
    (session: Address, name: string, index: Out<Integer>): void;
    async(session: Address, name: string, index: Out<Integer>): Promise<void>;
  };
  /**
   * What an input is, and its element type: of a tensor, or of the tensors inside another kind.
   *
   * `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
   * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
   * handle errors.
   *
   * @since 0.1.0
   */
  session_input_type: {
    (session: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): void;
    async(session: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): Promise<void>;
  };
  /**
   * The type and shape of an input for people: "tensor(float)[batch, 3, 224, 224]".
   *
   * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * index that is not there or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_input_type_text: {
    (session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The shape of an input.
   *
   * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
   * elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
   * alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
   * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
   * not there or too little room, and the handle errors.
   *
   * @since 0.1.0
   */
  session_input_shape: {
    (session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): void;
    async(session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of a dimension of an input that is not known before the model runs, or its formula over such
   * names ("2*batch").
   *
   * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
   * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_input_dim_name: {
    (session: Address, index: Integer, axis: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, axis: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * The number of the model's overridable initializers: inputs that the model has values for, which a run or
   * binding may replace by name. The first run that does takes the time that opening the model took.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_overridable_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of an overridable initializer.
   *
   * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
   * there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_overridable_name: {
    (session: Address, index: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * The type and shape of an overridable initializer for people, as `rukh_session_input_type_text`.
   *
   * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * index that is not there or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_overridable_type_text: {
    (session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The shape of an overridable initializer, as `rukh_session_input_shape`.
   *
   * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, -1 for one that is not known;
   * NULL allowed with 0. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index
   * that is not there or too little room, and the handle errors.
   *
   * @since 0.1.0
   */
  session_overridable_shape: {
    (session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): void;
    async(session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of a dimension of an overridable initializer, as `rukh_session_input_dim_name`.
   *
   * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
   * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_overridable_dim_name: {
    (session: Address, index: Integer, axis: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, axis: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * The number of the model's outputs.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_output_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The name of an output.
   *
   * `session`, `name`: not NULL; the text is borrowed from the session. `index`: from 0. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not
   * there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_output_name: {
    (session: Address, index: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * The position of an output by its name.
   *
   * `session`, `name`, `index`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  session_output_index: {
    (session: Address, name: string, index: Out<Integer>): void;
    async(session: Address, name: string, index: Out<Integer>): Promise<void>;
  };
  /**
   * What an output is, and its element type: of a tensor, or of the tensors inside another kind.
   *
   * `session`: not NULL. `index`: from 0. `kind`, `element`: may be NULL. `error`: may be NULL. Threads:
   * any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the
   * handle errors.
   *
   * @since 0.1.0
   */
  session_output_type: {
    (session: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): void;
    async(session: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): Promise<void>;
  };
  /**
   * The type and shape of an output for people: "tensor(float)[batch, 3, 224, 224]".
   *
   * `session`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: see "Texts" at the top of this header.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * index that is not there or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_output_type_text: {
    (session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The shape of an output.
   *
   * `session`: not NULL. `index`: from 0. `dims`: room for `cap` dimensions, which receives them in
   * elements, -1 for one that is not known before the model runs; NULL allowed with 0, to ask for the rank
   * alone. `rank`: may be NULL; receives the number of dimensions, -1 when that is not known. `error`: may
   * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is
   * not there or too little room, and the handle errors.
   *
   * @since 0.1.0
   */
  session_output_shape: {
    (session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): void;
    async(session: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of a dimension of an output that is not known before the model runs, or its formula over such
   * names ("2*batch").
   *
   * `session`, `name`: not NULL; the text is borrowed from the session, NULL for a dimension that is known
   * or has no name. `index`, `axis`: from 0. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_output_dim_name: {
    (session: Address, index: Integer, axis: Integer, name: Out<string | null>): void;
    async(session: Address, index: Integer, axis: Integer, name: Out<string | null>): Promise<void>;
  };
  /**
   * A text that the model file carries about itself; "" when it has none.
   *
   * `session`, `text`: not NULL; the text is borrowed from the session. `which`: one of `RUKH_MODEL_…`.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * unknown `which`, and the handle errors.
   *
   * @since 0.1.0
   */
  session_model_text: {
    (session: Address, which: number, text: Out<string | null>): void;
    async(session: Address, which: number, text: Out<string | null>): Promise<void>;
  };
  /**
   * The version of the model as its maker counts, and the version of the file format.
   *
   * `session`: not NULL. `model_version`, `ir_version`: may be NULL. `error`: may be NULL. Threads: any, at
   * the same time. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  session_model_version: {
    (session: Address, model_version: Out<Integer> | null, ir_version: Out<Integer> | null): void;
    async(session: Address, model_version: Out<Integer> | null, ir_version: Out<Integer> | null): Promise<void>;
  };
  /**
   * The number of properties (keys and values) that the model's maker added to the file.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_property_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * A property that the model's maker added to the file.
   *
   * `session`, `key`, `value`: not NULL; the texts are borrowed from the session. `index`: from 0. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that
   * is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_property: {
    (session: Address, index: Integer, key: Out<string | null>, value: Out<string | null>): void;
    async(session: Address, index: Integer, key: Out<string | null>, value: Out<string | null>): Promise<void>;
  };
  /**
   * The number of operator sets that the model imports.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_opset_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * An operator set that the model imports.
   *
   * `session`: not NULL. `index`: from 0. `domain`: not NULL; receives its domain, borrowed from the
   * session; "" stands for ai.onnx. `version`: not NULL. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  session_opset: {
    (session: Address, index: Integer, domain: Out<string | null>, version: Out<Integer>): void;
    async(session: Address, index: Integer, domain: Out<string | null>, version: Out<Integer>): Promise<void>;
  };
  /**
   * The number of nodes that run, after the graph was rewritten.
   *
   * `session`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  session_placement_count: {
    (session: Address, count: Out<Integer>): void;
    async(session: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * Deprecated: use `rukh_session_for_each_placement`, which tells the device too. Where a node runs, and why there.
   *
   * `session`: not NULL. `index`: from 0. `node` (its name), `operator_name`, `provider` ("cpu" or "hip"),
   * `reason` (for people): each may be NULL; the texts are borrowed from the session. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there,
   * and the handle errors.
   *
   * @since 0.1.0
   */
  session_placement: {
    (session: Address, index: Integer, node: Out<string | null>, operator_name: Out<string | null>, provider: Out<string | null>, reason: Out<string | null>): void;
    async(session: Address, index: Integer, node: Out<string | null>, operator_name: Out<string | null>, provider: Out<string | null>, reason: Out<string | null>): Promise<void>;
  };
  /**
   * What opening the session did with the model's bytes.
   *
   * `session`, `value`: not NULL. `which`: one of `RUKH_LOAD_…_BYTES` and `RUKH_LOAD_COPIED_WEIGHTS`.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an
   * unknown `which`, and the handle errors.
   *
   * @since 0.1.0
   */
  session_load_counter: {
    (session: Address, which: number, value: Out<Integer>): void;
    async(session: Address, which: number, value: Out<Integer>): Promise<void>;
  };
  /**
   * What the runs so far did, as a Chrome trace in JSON (chrome://tracing and Perfetto show it; times in
   * microseconds). The session must have been made with profiling on.
   *
   * `session`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a run that ends
   * between two calls makes the text longer, so ask until it fits. `error`: may be NULL. Threads: any, at
   * the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` without profiling or for a buffer that is too
   * small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_profile: {
    (session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Makes a tensor of zeros (or empty strings) in memory of its own, aligned to 64 bytes.
   *
   * `element`: one of `RUKH_ELEMENT_…`. `shape`: `rank` dimensions in elements, each 0 or more; NULL
   * allowed with rank 0, a scalar. `out`: not NULL; receives the value, which the caller destroys; NULL
   * on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
   * type or a bad dimension, `RUKH_ERROR_OUT_OF_MEMORY`.
   *
   * @since 0.1.0
   */
  value_create_tensor: {
    (element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): void;
    async(element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a tensor in memory of its own with a copy of the caller's elements.
   *
   * `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed
   * with rank 0. `data`: `bytes` bytes, the elements in row-major order without gaps, at any alignment;
   * NULL allowed with 0. `bytes`: what the shape takes, checked. `out`: not NULL; receives the value,
   * which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an unknown type, a bad dimension or a wrong size,
   * `RUKH_ERROR_OUT_OF_MEMORY`.
   *
   * @since 0.1.0
   */
  value_create_tensor_copy: {
    (element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, data: Memory, bytes: Integer, out: Out<Address>): void;
    async(element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, data: Memory, bytes: Integer, out: Out<Address>): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  value_create_tensor_over: {
    (element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, data: Memory, bytes: Integer, deleter: Address, user: Memory, out: Out<Address>): void;
    async(element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, data: Memory, bytes: Integer, deleter: Address, user: Memory, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes another handle of the same value; the elements are shared, not copied.
   *
   * `value`: not NULL. `out`: not NULL; receives the handle, which the caller destroys; NULL on failure.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
   * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.0
   */
  value_clone: {
    (value: Address, out: Out<Address>): void;
    async(value: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a tensor of another shape over the elements of this one, which are shared.
   *
   * `value`: not NULL; a tensor. `shape`: `rank` dimensions with as many elements together as the tensor
   * has; NULL allowed with rank 0. `out`: not NULL; receives the value, which the caller destroys; NULL on
   * failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
   * for a shape that does not fit or a value that is no tensor, and the handle errors.
   *
   * @since 0.1.0
   */
  value_reshape: {
    (value: Address, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): void;
    async(value: Address, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a value. Memory that other values, bindings or runs share stays until they are done. NULL,
   * and a pointer that is no live handle of this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  value_destroy(value: Address): void;
  /**
   * What the value is: one of `RUKH_KIND_…`.
   *
   * `value`, `kind`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  value_kind: {
    (value: Address, kind: Out<number>): void;
    async(value: Address, kind: Out<number>): Promise<void>;
  };
  /**
   * The element type of a tensor, or of the tensors inside a sequence, map or optional.
   *
   * `value`, `element`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  value_element_type: {
    (value: Address, element: Out<number>): void;
    async(value: Address, element: Out<number>): Promise<void>;
  };
  /**
   * The type of the value as the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))".
   *
   * `value`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too
   * small, and the handle errors.
   *
   * @since 0.1.0
   */
  value_type_text: {
    (value: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(value: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The shape of a tensor.
   *
   * `value`: not NULL; a tensor. `dims`: room for `cap` dimensions, which receives them in elements; NULL
   * allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives the number of dimensions.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a
   * value that is no tensor or too little room, and the handle errors.
   *
   * @since 0.1.0
   */
  value_shape: {
    (value: Address, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): void;
    async(value: Address, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): Promise<void>;
  };
  /**
   * The number of elements of a tensor; the product of its dimensions.
   *
   * `value`, `count`: not NULL; the value a tensor. `error`: may be NULL. Threads: any, at the same time.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a value that is no tensor, and the handle errors.
   *
   * @since 0.1.0
   */
  value_element_count: {
    (value: Address, count: Out<Integer>): void;
    async(value: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The elements of a tensor, to read: in row-major order without gaps.
   *
   * `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
   * from the value; not NULL even when there are no elements. `bytes`: may be NULL; receives the size of
   * all elements in bytes. `error`: may be NULL. Threads: any, at the same time, while nobody writes the
   * elements. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  value_data: {
    (value: Address, data: Out<Address>, bytes: Out<Integer> | null): void;
    async(value: Address, data: Out<Address>, bytes: Out<Integer> | null): Promise<void>;
  };
  /**
   * The elements of a tensor, to write: in row-major order without gaps. Every value that shares them sees
   * what is written.
   *
   * `value`: not NULL; a tensor of anything but strings. `data`: not NULL; receives the address, borrowed
   * from the value. `bytes`: may be NULL; receives the size of all elements in bytes. `error`: may be
   * NULL. Threads: any; the elements must not be in use by a run or another thread while they are
   * written. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for strings and what is no tensor, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  value_data_mut: {
    (value: Address, data: Out<Address>, bytes: Out<Integer> | null): void;
    async(value: Address, data: Out<Address>, bytes: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  value_create_device_tensor: {
    (environment: Address, device_id: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): void;
    async(environment: Address, device_id: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a tensor over device memory of the caller's (of `hipMalloc`, or of another library's tensor).
   *
   * `environment`: not NULL. `device_id`: whose memory it is. `element`, `shape`, `rank`: as in
   * `rukh_value_create_device_tensor`. `address`: the elements in row-major order without gaps, aligned to the
   * element; not NULL. `bytes`: what the shape takes, checked. `deleter`: may be NULL; called once with `address`
   * and `user` when nothing uses the memory any more, also when this call fails (as in
   * `rukh_value_create_tensor_over`). `out`: not NULL; receives the value, which the caller destroys; NULL on
   * failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE`.
   *
   * @since 0.1.0
   */
  value_create_device_tensor_over: {
    (environment: Address, device_id: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, address: Memory, bytes: Integer, deleter: Address, user: Memory, out: Out<Address>): void;
    async(environment: Address, device_id: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, address: Memory, bytes: Integer, deleter: Address, user: Memory, out: Out<Address>): Promise<void>;
  };
  /**
   * Copies the elements of a tensor into another of the same type and shape, from and to host or device
   * memory, and waits for it.
   *
   * `from`, `to`: not NULL; tensors of anything but strings. `error`: may be NULL. Threads: any; `to` must not
   * be in use meanwhile. Errors: `RUKH_ERROR_INVALID_ARGUMENT` when types or shapes differ,
   * `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.0
   */
  value_copy: {
    (from: Address, to: Address): void;
    async(from: Address, to: Address): Promise<void>;
  };
  /**
   * Where the elements of a tensor are: the address in a device's memory, and which device.
   *
   * `value`: not NULL; a tensor of anything but strings. `on_device`: not NULL; receives 1, or 0 for host
   * memory, whose address `rukh_value_data` tells. `device_id`, `address`: may be NULL; receive 0 for host
   * memory. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  value_device: {
    (value: Address, on_device: Out<number>, device_id: Out<Integer> | null, address: Out<Integer> | null): void;
    async(value: Address, on_device: Out<number>, device_id: Out<Integer> | null, address: Out<Integer> | null): Promise<void>;
  };
  /**
   * Makes a tensor in the memory of a device; its elements are zeros on the host, else unspecified.
   *
   * `device`: not NULL. `kind`: one of `RUKH_MEMORY_…`. `element`: one of `RUKH_ELEMENT_…`; `STRING` on the host only.
   * `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not NULL; receives the value, which the
   * caller destroys when no run and no copy uses it; NULL on failure. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_DEVICE` (also where the runtime has no pinned memory),
   * `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.1
   */
  value_create_tensor_in: {
    (device: Address, kind: number, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): void;
    async(device: Address, kind: number, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * The kind of memory that a tensor lies in, and the number of the GPU that it belongs to or is pinned for.
   *
   * `value`: not NULL; a tensor. `kind`: not NULL; receives one of `RUKH_MEMORY_…`: `HOST` for all memory of the host
   * that is not known to be pinned, and for strings. `device_id`: may be NULL; receives the number, 0 for `HOST`.
   * `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
   * and the handle errors.
   *
   * @since 0.1.1
   */
  value_memory_kind: {
    (value: Address, kind: Out<number>, device_id: Out<Integer> | null): void;
    async(value: Address, kind: Out<number>, device_id: Out<Integer> | null): Promise<void>;
  };
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
   * @since 0.1.1
   */
  io_binding_bind_output_allocated_in: {
    (binding: Address, name: string, device: Address, kind: number): void;
    async(binding: Address, name: string, device: Address, kind: number): Promise<void>;
  };
  /**
   * The device that runs nodes of a session: the GPU when any node runs there, else the CPU.
   *
   * `session`: not NULL. `out`: not NULL; receives a handle that the caller destroys; NULL on failure. `error`: may be
   * NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.1
   */
  session_device: {
    (session: Address, out: Out<Address>): void;
    async(session: Address, out: Out<Address>): Promise<void>;
  };
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
   * @since 0.1.1
   */
  value_copy_queued: {
    (from: Address, to: Address, stream: Integer, out: Out<Address> | null): void;
    async(from: Address, to: Address, stream: Integer, out: Out<Address> | null): Promise<void>;
  };
  /**
   * Makes a stream of a GPU: a queue of work that goes on in order, for run option "compute_stream", for
   * `rukh_value_copy_queued` and for work of the caller's.
   *
   * `device`: not NULL; a GPU. `out`: not NULL; receives the stream, which the caller destroys when nothing uses it any
   * more; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for the CPU, which
   * has no streams, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.1
   */
  stream_create: {
    (device: Address, out: Out<Address>): void;
    async(device: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a stream; its work goes on to its end. NULL, and a pointer that is no live handle of this kind, is left
   * alone.
   *
   * Threads: any.
   *
   * @since 0.1.1
   */
  stream_destroy(stream: Address): void;
  /**
   * The runtime's handle of a stream (`hipStream_t`, or `CUstream` on the nvidia platform) as a number.
   *
   * `stream`, `address`: not NULL; the runtime's handle is the stream's. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.1
   */
  stream_address: {
    (stream: Address, address: Out<Integer>): void;
    async(stream: Address, address: Out<Integer>): Promise<void>;
  };
  /**
   * Waits until a stream has done all that it was given.
   *
   * `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_DEVICE`, and the handle
   * errors.
   *
   * @since 0.1.1
   */
  stream_wait: {
    (stream: Address): void;
    async(stream: Address): Promise<void>;
  };
  /**
   * Marks the place that a stream has come to: a completion of all that it was given until now, which the host can wait for
   * (`rukh_completion_wait`), and other streams too (`rukh_stream_wait_for`).
   *
   * `stream`: not NULL. `out`: not NULL; receives the completion, which the caller destroys, before or after the stream; NULL
   * on failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a stream that
   * is being captured, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.1
   */
  stream_record: {
    (stream: Address, out: Out<Address>): void;
    async(stream: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Lets a stream wait for work in another: what it is given from now on begins when that work is done. The call returns
   * without waiting.
   *
   * `stream`: not NULL. `completion`: not NULL; of a run, a copy or `rukh_stream_record`; it may be destroyed when the call
   * has returned. `error`: may be NULL. Threads: any, at the same time; a thread that waits for the completion holds up the
   * call. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a completion of `rukh_session_start`, whose outputs are there when it has
   * ended, `RUKH_ERROR_UNSUPPORTED` for a stream of another runtime, `RUKH_ERROR_DEVICE`, and the handle errors.
   *
   * @since 0.1.1
   */
  stream_wait_for: {
    (stream: Address, completion: Address): void;
    async(stream: Address, completion: Address): Promise<void>;
  };
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
   * @since 0.1.1
   */
  external_memory_import: {
    (device: Address, kind: number, handle: Integer, bytes: Integer, release: Address, user: Memory, out: Out<Address>): void;
    async(device: Address, kind: number, handle: Integer, bytes: Integer, release: Address, user: Memory, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a handle of imported memory. The memory is given back when no tensor and no run uses it any more. NULL, and a
   * pointer that is no live handle of this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.1
   */
  external_memory_destroy(memory: Address): void;
  /**
   * Makes a tensor over a part of imported memory. It is used like any tensor in the memory of its device.
   *
   * `memory`: not NULL; kept alive by the tensor. `offset`: where the elements begin, in bytes; a multiple of the element's size.
   * `element`: one of `RUKH_ELEMENT_…` but `STRING`. `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `out`: not
   * NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time;
   * tensors may overlap. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what lies outside of the memory, and the handle errors.
   *
   * @since 0.1.1
   */
  external_memory_tensor: {
    (memory: Address, offset: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): void;
    async(memory: Address, offset: Integer, element: number, shape: Integer[] | BigInt64Array | null, rank: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a tensor of strings.
   *
   * `shape`: `rank` dimensions in elements; NULL allowed with rank 0. `strings`: `count` texts, one an
   * element in row-major order; UTF-8; copied; NULL allowed with 0. `lengths`: NULL when the texts end
   * with a NUL; else `count` lengths in bytes, and a text may then hold NULs. `count`: what the shape
   * takes, checked. `out`: not NULL; receives the value, which the caller destroys; NULL on failure.
   * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a text that is NULL or
   * no UTF-8, a bad dimension or a wrong count, `RUKH_ERROR_OUT_OF_MEMORY`.
   *
   * @since 0.1.0
   */
  value_create_strings: {
    (shape: Integer[] | BigInt64Array | null, rank: Integer, strings: string[] | null, lengths: Integer[] | BigUint64Array | null, count: Integer, out: Out<Address>): void;
    async(shape: Integer[] | BigInt64Array | null, rank: Integer, strings: string[] | null, lengths: Integer[] | BigUint64Array | null, count: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * One string of a tensor.
   *
   * `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `buf`,
   * `cap`, `needed`: see "Texts" at the top of this header; a string may hold NULs, its length is
   * `*needed - 1`. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there or a
   * buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  value_string: {
    (value: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(value: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Replaces one string of a tensor. Other values that share the tensor keep theirs.
   *
   * `value`: not NULL; a tensor of strings. `index`: of the element in row-major order, from 0. `string`:
   * not NULL; UTF-8 that ends with a NUL; copied. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor of strings, an index that is not there, or a text
   * that is no UTF-8; and the handle errors.
   *
   * @since 0.1.0
   */
  value_set_string: {
    (value: Address, index: Integer, string: string): void;
    async(value: Address, index: Integer, string: string): Promise<void>;
  };
  /**
   * Makes a sequence of values, which it shares.
   *
   * `items`: `count` values of one type; NULL allowed with 0; the handles stay the caller's. `element`:
   * for an empty sequence the element type of the tensors it could hold; else ignored. `out`: not NULL;
   * receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for items of different types or an unknown type, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  value_create_sequence: {
    (items: Address[] | null, count: Integer, element: number, out: Out<Address>): void;
    async(items: Address[] | null, count: Integer, element: number, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes a map from keys to values, which it shares.
   *
   * `keys`: not NULL; a tensor of rank 1, of integers or strings without duplicates; copied. `values`:
   * `count` values of one type, in the order of the keys; NULL allowed with 0; the handles stay the
   * caller's. `element`: for an empty map the element type of the tensors it could hold; else ignored.
   * `out`: not NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be
   * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for keys of another type or rank, twice the
   * same key, another number of values than keys, or values of different types; and the handle errors.
   *
   * @since 0.1.0
   */
  value_create_map: {
    (keys: Address, values: Address[] | null, count: Integer, element: number, out: Out<Address>): void;
    async(keys: Address, values: Address[] | null, count: Integer, element: number, out: Out<Address>): Promise<void>;
  };
  /**
   * Makes an optional that holds a value, which it shares, or none.
   *
   * `value`: NULL for none; the handle stays the caller's. `element`: without a value the element type of
   * the tensor it could hold; else ignored. `out`: not NULL; receives the optional, which the caller
   * destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
   * for an unknown type, and the handle errors.
   *
   * @since 0.1.0
   */
  value_create_optional: {
    (value: Address, element: number, out: Out<Address>): void;
    async(value: Address, element: number, out: Out<Address>): Promise<void>;
  };
  /**
   * How many values a sequence, map or optional holds; for an optional 0 or 1.
   *
   * `value`, `count`: not NULL; the value no tensor. `error`: may be NULL. Threads: any, at the same time.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a tensor, and the handle errors.
   *
   * @since 0.1.0
   */
  value_item_count: {
    (value: Address, count: Out<Integer>): void;
    async(value: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The value at `index` of a sequence, map (in the order of its keys) or optional (at 0), shared.
   *
   * `value`: not NULL; no tensor. `index`: from 0. `out`: not NULL; receives the value, which the caller
   * destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for a tensor or an index that is not there, and the handle errors.
   *
   * @since 0.1.0
   */
  value_item: {
    (value: Address, index: Integer, out: Out<Address>): void;
    async(value: Address, index: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * The keys of a map: a tensor of rank 1, of integers or strings.
   *
   * `value`: not NULL; a map. `out`: not NULL; receives the tensor, which the caller destroys; NULL on
   * failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
   * for what is no map, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.0
   */
  value_map_keys: {
    (value: Address, out: Out<Address>): void;
    async(value: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Gives a tensor to another library as a versioned DLPack tensor that shares its elements.
   *
   * `value`: not NULL; a tensor of numbers or booleans, on the host or a device. `out`: not NULL; receives the
   * DLPack tensor, row-major, on the CPU or on `device_id` of ROCm or CUDA, which its receiver releases by its
   * `deleter`; NULL on failure. It keeps the elements alive; the value may be destroyed. What was queued on the
   * elements must be done, or ordered before what the receiver does. `error`: may be NULL. Threads: any, at the
   * same time; the `deleter` on any thread. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for what is no tensor,
   * `RUKH_ERROR_UNSUPPORTED` for strings and element types narrower than a byte, and the handle errors.
   *
   * @since 0.1.0
   */
  value_to_dlpack: {
    (value: Address, out: Out<Address>): void;
    async(value: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * As `rukh_value_to_dlpack`, in the layout of DLPack before 1.0.
   *
   * `value`: not NULL; a tensor of numbers or booleans. `out`: not NULL; receives the DLPack tensor, which
   * its receiver releases by its `deleter`; NULL on failure. `error`: may be NULL. Threads: any, at the
   * same time. Errors: as `rukh_value_to_dlpack`.
   *
   * @since 0.1.0
   */
  value_to_dlpack_legacy: {
    (value: Address, out: Out<Address>): void;
    async(value: Address, out: Out<Address>): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  value_from_dlpack: {
    (managed: Address, out: Out<Address>): void;
    async(managed: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * As `rukh_value_from_dlpack`, from the layout of DLPack before 1.0.
   *
   * `managed`: not NULL; on success the value owns it, on failure the caller. `out`: not NULL; receives
   * the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: as
   * `rukh_value_from_dlpack`.
   *
   * @since 0.1.0
   */
  value_from_dlpack_legacy: {
    (managed: Address, out: Out<Address>): void;
    async(managed: Address, out: Out<Address>): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  run_options_create: {
    (out: Out<Address>): void;
    async(out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys options; runs that use them go on. NULL, and a pointer that is no live handle of this kind,
   * is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  run_options_destroy(options: Address): void;
  /**
   * Sets an option by its name; `rukh_run_options_create` lists them. Runs that have begun keep theirs.
   *
   * `options`, `key`, `value`: not NULL; the texts are copied. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key, and the handle errors.
   *
   * @since 0.1.0
   */
  run_options_set: {
    (options: Address, key: string, value: string): void;
    async(options: Address, key: string, value: string): Promise<void>;
  };
  /**
   * The value of an option, in a form that `rukh_run_options_set` takes.
   *
   * `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`:
   * may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown
   * key or a buffer that is too small, and the handle errors.
   *
   * @since 0.1.0
   */
  run_options_get: {
    (options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, key: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The name of the option at `index`; together with `rukh_run_options_get` this lists them all.
   *
   * `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`,
   * `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the
   * same time. Errors: also the handle errors.
   *
   * @since 0.1.0
   */
  run_options_key: {
    (options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(options: Address, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * Ends every run that uses these options, now and later, with `RUKH_ERROR_CANCELLED`, soon but not at
   * once. `rukh_run_options_reset` allows runs again.
   *
   * `options`: not NULL. `error`: may be NULL. Threads: any, above all another one than the run's.
   * Errors: the handle errors.
   *
   * @since 0.1.0
   */
  run_options_cancel: {
    (options: Address): void;
    async(options: Address): Promise<void>;
  };
  /**
   * Takes `rukh_run_options_cancel` back for runs that begin from now on. Those already cancelled stay
   * cancelled.
   *
   * `options`: not NULL. `error`: may be NULL. Threads: any. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  run_options_reset: {
    (options: Address): void;
    async(options: Address): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_run: {
    (session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, outputs: Address[]): void;
    async(session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, outputs: Address[]): Promise<void>;
  };
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
   * @since 0.1.1
   */
  session_start: {
    (session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, callback: Address, user: Memory, release: Address, out: Out<Address> | null): void;
    async(session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, callback: Address, user: Memory, release: Address, out: Out<Address> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_run_async: {
    (session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, callback: Address, user: Memory): void;
    async(session: Address, options: Address, input_names: string[] | null, inputs: Address[] | null, input_count: Integer, output_names: string[] | null, output_count: Integer, callback: Address, user: Memory): Promise<void>;
  };
  /**
   * Makes a binding for runs of a session: values stay bound from run to run, and a run with all outputs
   * bound to values allocates nothing once it has seen the shapes.
   *
   * `session`: not NULL; kept alive by the binding. `out`: not NULL; receives the binding, which the caller
   * destroys; NULL on failure. `error`: may be NULL. Threads: any; one session may have many bindings, each
   * is used by one call at a time (another gets `RUKH_ERROR_INVALID_ARGUMENT`). Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  io_binding_create: {
    (session: Address, out: Out<Address>): void;
    async(session: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a binding; the values that were bound lose one owner. NULL, and a pointer that is no live
   * handle of this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  io_binding_destroy(binding: Address): void;
  /**
   * Binds a value to an input, in place of what was bound before. What is written into the value's elements
   * later, between runs, is what later runs read.
   *
   * `binding`, `name`, `value`: not NULL; the value is shared, its handle stays the caller's. `error`: may
   * be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not
   * have, `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors. Type and shape are checked by the run.
   *
   * @since 0.1.0
   */
  io_binding_bind_input: {
    (binding: Address, name: string, value: Address): void;
    async(binding: Address, name: string, value: Address): Promise<void>;
  };
  /**
   * Binds the memory of a tensor to an output: runs write there. It may be the memory that an input is
   * bound to, when the model may update it in place.
   *
   * `binding`, `name`: not NULL. `value`: not NULL; a tensor of the output's type and shape, but not of
   * strings; shared, its handle stays the caller's. `error`: may be NULL. Threads: any, one at a time.
   * Errors: `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`
   * for a value that is no tensor of plain elements, and the handle errors. Type and shape are checked by
   * the run.
   *
   * @since 0.1.0
   */
  io_binding_bind_output: {
    (binding: Address, name: string, value: Address): void;
    async(binding: Address, name: string, value: Address): Promise<void>;
  };
  /**
   * Binds an output to memory that the library allocates at each run: for outputs whose shape is not known
   * before, and for strings, sequences, maps and optionals.
   *
   * `binding`, `name`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
   * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, `RUKH_ERROR_INVALID_ARGUMENT`, and the
   * handle errors.
   *
   * @since 0.1.0
   */
  io_binding_bind_output_allocated: {
    (binding: Address, name: string): void;
    async(binding: Address, name: string): Promise<void>;
  };
  /**
   * Unbinds all inputs.
   *
   * `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  io_binding_clear_inputs: {
    (binding: Address): void;
    async(binding: Address): Promise<void>;
  };
  /**
   * Unbinds all outputs.
   *
   * `binding`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  io_binding_clear_outputs: {
    (binding: Address): void;
    async(binding: Address): Promise<void>;
  };
  /**
   * Runs the session with what is bound; only outputs that are bound are computed.
   *
   * `binding`: not NULL. `options`: NULL for the defaults. `error`: may be NULL. Threads: any, one at a time
   * for each binding. Errors: as `rukh_session_run`, and `RUKH_ERROR_INVALID_INPUT` for an input that is
   * not bound or an output bound to a tensor of another type or shape.
   *
   * @since 0.1.0
   */
  io_binding_run: {
    (binding: Address, options: Address): void;
    async(binding: Address, options: Address): Promise<void>;
  };
  /**
   * The value of an output after a run: the one that was bound, or the one the run allocated.
   *
   * `binding`, `name`: not NULL. `out`: not NULL; receives a value that shares the elements and that the
   * caller destroys; NULL on failure. `error`: may be NULL. Threads: any, one at a time. Errors:
   * `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, or an output that is not bound or has
   * no value yet; `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  io_binding_output: {
    (binding: Address, name: string, out: Out<Address>): void;
    async(binding: Address, name: string, out: Out<Address>): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  io_binding_run_queued: {
    (binding: Address, options: Address, out: Out<Address>): void;
    async(binding: Address, options: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys a completion, and waits first for what is queued on a device, but for a mark of `rukh_stream_record`. A run that
   * `rukh_session_start` started goes on, and its callback is called. NULL, and a pointer that is no live handle of this kind,
   * is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  completion_destroy(completion: Address): void;
  /**
   * Whether the run or copy is done; does not wait.
   *
   * `completion`: not NULL. `done`: not NULL; receives 1 or 0. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_DEVICE` and `RUKH_ERROR_POISONED` when the device failed, and the handle errors.
   *
   * @since 0.1.0
   */
  completion_is_done: {
    (completion: Address, done: Out<number>): void;
    async(completion: Address, done: Out<number>): Promise<void>;
  };
  /**
   * Waits until the run or copy is done, and tells how it ended.
   *
   * `completion`: not NULL. `error`: may be NULL. Threads: any, at the same time; but a callback must not wait for a run that
   * waits for the callback's own thread. Errors: of a run that was started those of `rukh_session_run`, each time; of what is
   * queued `RUKH_ERROR_INVALID_DATA` for data that a kernel refused (told once), `RUKH_ERROR_DEVICE` and
   * `RUKH_ERROR_POISONED`; and the handle errors.
   *
   * @since 0.1.0
   */
  completion_wait: {
    (completion: Address): void;
    async(completion: Address): Promise<void>;
  };
  /**
   * The event behind the work, for streams of the caller's to wait for (`hipStreamWaitEvent`).
   *
   * `completion`: not NULL; owns the event. `event`: not NULL; receives the `hipEvent_t` (`CUevent` on the
   * nvidia platform) as a number, 0 when the run left nothing queued, as one of `rukh_session_start` does. `error`: may be
   * NULL. Threads: any, at the same time. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  completion_event: {
    (completion: Address, event: Out<Integer>): void;
    async(completion: Address, event: Out<Integer>): Promise<void>;
  };
  /**
   * The number of outputs that `rukh_completion_output` gives: as many as `rukh_session_start` was asked for. 0 for what is
   * queued, whose outputs the io binding has.
   *
   * `completion`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.1
   */
  completion_output_count: {
    (completion: Address, count: Out<Integer>): void;
    async(completion: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * An output of a run that `rukh_session_start` started. Waits until the run has ended.
   *
   * `completion`: not NULL. `index`: from 0, in the order in which outputs were asked for. `out`: not NULL; receives a value
   * that the caller destroys, and that outlives the completion; NULL on failure. Asked for again, another handle of the same
   * value. `error`: may be NULL. Threads: any, at the same time, as for `rukh_completion_wait`. Errors: those of the run;
   * `RUKH_ERROR_INVALID_ARGUMENT` for an output that is not there, and the handle errors.
   *
   * @since 0.1.1
   */
  completion_output: {
    (completion: Address, index: Integer, out: Out<Address>): void;
    async(completion: Address, index: Integer, out: Out<Address>): Promise<void>;
  };
  /**
   * The results of tuning so far: a line for each problem that was measured or taken from elsewhere, after
   * lines that tell under which conditions they hold. `rukh_session_add_tuning_results` takes the text again.
   *
   * `session`: not NULL; made with the hip provider's option "tunable_op_enable" set to "1". `buf`, `cap`,
   * `needed`: see "Texts" at the top of this header; a run that ends between two calls may make the text
   * longer, so ask until it fits. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for a session that does not choose among kernels or a buffer that is too
   * small, and the handle errors.
   *
   * @since 0.1.0
   */
  session_tuning_results: {
    (session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(session: Address, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_add_tuning_results: {
    (session: Address, text: string, taken: Out<Integer> | null): void;
    async(session: Address, text: string, taken: Out<Integer> | null): Promise<void>;
  };
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
   * @since 0.1.1
   */
  environment_tune: {
    (environment: Address, options: Address, shapes: string, tuned: Out<Integer> | null, without: Out<Integer> | null): void;
    async(environment: Address, options: Address, shapes: string, tuned: Out<Integer> | null, without: Out<Integer> | null): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  operator_create: {
    (domain: string, name: string, since: Integer, user: Memory, release: Address, out: Out<Address>): void;
    async(domain: string, name: string, since: Integer, user: Memory, release: Address, out: Out<Address>): Promise<void>;
  };
  /**
   * Destroys an operator's handle. What it was added to keeps the operator. NULL, and a pointer that is no live handle
   * of this kind, is left alone.
   *
   * Threads: any.
   *
   * @since 0.1.0
   */
  operator_destroy(operator: Address): void;
  /**
   * Adds a type variable: inputs and outputs whose type is the variable's name have one type in a node.
   *
   * `operator`: not NULL. `name`: not NULL; no name of an element type, and not added before. `allowed`: `count` element
   * types, `RUKH_ELEMENT_…`; NULL and 0 for all. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_add_type_variable: {
    (operator: Address, name: string, allowed: number[] | Int32Array | null, count: Integer): void;
    async(operator: Address, name: string, allowed: number[] | Int32Array | null, count: Integer): Promise<void>;
  };
  /**
   * Adds an input, behind those that are there.
   *
   * `operator`: not NULL. `name`: not NULL; for messages. `ty`: not NULL; the name of a type variable that was added
   * before, an element type as ONNX writes it ("float", "int64", "string" …), "seq(TYPE)" or "opt(TYPE)" of these, or
   * "any". `arity`: one of `RUKH_ARITY_…`. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  operator_add_input: {
    (operator: Address, name: string, ty: string, arity: number): void;
    async(operator: Address, name: string, ty: string, arity: number): Promise<void>;
  };
  /**
   * Adds an output, behind those that are there. Its type is written as an input's; where it is "any" or a variable
   * that no input has, the shape function sets it.
   *
   * The arguments, threads and errors are those of `rukh_operator_add_input`.
   *
   * @since 0.1.0
   */
  operator_add_output: {
    (operator: Address, name: string, ty: string, arity: number): void;
    async(operator: Address, name: string, ty: string, arity: number): Promise<void>;
  };
  /**
   * Says that the value of an input decides the shape of an output, as the `shape` of Reshape does. The shape function
   * then gets the value whenever outputs are to be planned, and the input stays in host memory.
   *
   * `operator`: not NULL. `index`: of an input that was added. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_set_shape_input: {
    (operator: Address, index: Integer): void;
    async(operator: Address, index: Integer): Promise<void>;
  };
  /**
   * Sets the function that tells types and shapes of a node's outputs. It is called when a model is opened, with
   * dimensions that may be unknown, and again for the shapes of a run. Outputs whose shapes it tells then lie in memory
   * that the run plans; without the function, or where it leaves a shape unset, the kernel decides and memory is allocated
   * while the model runs.
   *
   * `operator`: not NULL. `function`: NULL for none. `error`: may be NULL. Threads: any. Errors: the handle errors.
   *
   * @since 0.1.0
   */
  operator_set_shape_function: {
    (operator: Address, function_: Address): void;
    async(operator: Address, function_: Address): Promise<void>;
  };
  /**
   * Sets the kernel for the CPU.
   *
   * `operator`: not NULL. `create`: may be NULL; called once for each node of a session that runs on the CPU, with its
   * types and attributes; it may refuse the node, and give it a state by `rukh_node_info_set_state`. `compute`: not NULL;
   * called in each run. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_set_kernel: {
    (operator: Address, create: Address, compute: Address): void;
    async(operator: Address, create: Address, compute: Address): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  operator_set_gpu_kernel: {
    (operator: Address, create: Address, prepare: Address, compute: Address): void;
    async(operator: Address, create: Address, prepare: Address, compute: Address): Promise<void>;
  };
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
   * @since 0.1.1
   */
  operator_set_pure: {
    (operator: Address, pure: number): void;
    async(operator: Address, pure: number): Promise<void>;
  };
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
   * @since 0.1.1
   */
  operator_set_capturable: {
    (operator: Address, capturable: number): void;
    async(operator: Address, capturable: number): Promise<void>;
  };
  /**
   * Adds an operator to options: sessions that are opened with them find it, before one of the same domain, name and
   * version that the environment has. Where a model has a function of the operator's name, for libraries without the
   * operator, the operator is taken.
   *
   * `options`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an operator without outputs or kernel, or that was added before, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  session_options_add_operator: {
    (options: Address, operator: Address): void;
    async(options: Address, operator: Address): Promise<void>;
  };
  /**
   * Adds an operator to an environment: its sessions that are opened from now on find it.
   *
   * `environment`, `operator`: not NULL; what the operator is now is copied. `error`: may be NULL. Threads: any, at the
   * same time. Errors: as `rukh_session_options_add_operator`.
   *
   * @since 0.1.0
   */
  environment_add_operator: {
    (environment: Address, operator: Address): void;
    async(environment: Address, operator: Address): Promise<void>;
  };
  /**
   * Adds an attribute that nodes of the operator may have. One that is not required and has no default may be left out:
   * it then is not there.
   *
   * `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`.
   * `required`: 1 where a node without it is an error, else 0. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_add_attribute: {
    (operator: Address, name: string, ty: number, required: number): void;
    async(operator: Address, name: string, ty: number, required: number): Promise<void>;
  };
  /**
   * Adds an attribute with a default, which nodes without it have.
   *
   * `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`. `data`: the
   * default, copied: a `float`, an `int64_t`, a NUL-terminated text in UTF-8, a `rukh_value *` (a tensor); for lists an
   * array of `float`, of `int64_t`, of `const char *`. NULL allowed for a list of 0. `count`: the length of a list; 1 for
   * what is no list. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_add_attribute_with_default: {
    (operator: Address, name: string, ty: number, data: Memory, count: Integer): void;
    async(operator: Address, name: string, ty: number, data: Memory, count: Integer): Promise<void>;
  };
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
   *
   * @since 0.1.0
   */
  session_options_load_operators: {
    (options: Address, path: string): void;
    async(options: Address, path: string): Promise<void>;
  };
  /**
   * Adds the operators of a shared library to an environment, for its sessions that are opened from now on; as
   * `rukh_session_options_load_operators`.
   *
   * `environment`, `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: as
   * `rukh_session_options_load_operators`.
   *
   * @since 0.1.0
   */
  environment_load_operators: {
    (environment: Address, path: string): void;
    async(environment: Address, path: string): Promise<void>;
  };
  /**
   * Adds an operator, in the function of a library of operators that is asked for them.
   *
   * `registry`, `operator`: not NULL; what the operator is now is copied, and the caller destroys its handle. `error`: may
   * be NULL. Threads: any. Errors: as `rukh_session_options_add_operator`.
   *
   * @since 0.1.0
   */
  operator_registry_add: {
    (registry: Address, operator: Address): void;
    async(registry: Address, operator: Address): Promise<void>;
  };
  /**
   * Says why a library of operators cannot add its operators.
   *
   * `registry`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  operator_registry_set_error: {
    (registry: Address, text: string): void;
    async(registry: Address, text: string): Promise<void>;
  };
  /**
   * The name of the node, for messages.
   *
   * `node`, `name`: not NULL; the text is borrowed from the node. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_name: {
    (node: Address, name: Out<string | null>): void;
    async(node: Address, name: Out<string | null>): Promise<void>;
  };
  /**
   * The version of the operator's domain that the model imports.
   *
   * `node`, `version`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  node_info_version: {
    (node: Address, version: Out<Integer>): void;
    async(node: Address, version: Out<Integer>): Promise<void>;
  };
  /**
   * The number of the node's inputs, those included that it leaves out before others.
   *
   * `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
   * handle errors.
   *
   * @since 0.1.0
   */
  node_info_input_count: {
    (node: Address, count: Out<Integer>): void;
    async(node: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The number of the node's outputs, those included that it leaves out before others.
   *
   * `node`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the
   * handle errors.
   *
   * @since 0.1.0
   */
  node_info_output_count: {
    (node: Address, count: Out<Integer>): void;
    async(node: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * Whether the node has an input (1), or leaves it out (0).
   *
   * `node`, `given`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_has_input: {
    (node: Address, index: Integer, given: Out<number>): void;
    async(node: Address, index: Integer, given: Out<number>): Promise<void>;
  };
  /**
   * What an input is, and its element type: of a tensor, or of the tensors inside another kind.
   *
   * `node`: not NULL. `index`: of an input that the node has. `kind`, `element`: may be NULL; receive
   * `RUKH_KIND_UNDEFINED` and `RUKH_ELEMENT_UNDEFINED` while the type is not known. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node
   * leaves out, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_input_type: {
    (node: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): void;
    async(node: Address, index: Integer, kind: Out<number> | null, element: Out<number> | null): Promise<void>;
  };
  /**
   * The shape of an input.
   *
   * `node`: not NULL. `index`: of an input that the node has. `dims`: room for `cap` dimensions, which receives them in
   * elements, -1 for one that is not known; NULL allowed with 0, to ask for the rank alone. `rank`: may be NULL; receives
   * the number of dimensions, -1 when that is not known. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or too little room, `RUKH_ERROR_NOT_FOUND` for an input
   * that the node leaves out, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_input_shape: {
    (node: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): void;
    async(node: Address, index: Integer, dims: Integer[] | BigInt64Array | null, cap: Integer, rank: Out<Integer> | null): Promise<void>;
  };
  /**
   * The value of an input where it is known: a constant of the model, or an input that decides a shape.
   *
   * `node`: not NULL. `index`: of an input that the node has. `value`: not NULL; receives the tensor, borrowed from the
   * node; NULL when the value is not known. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for
   * an index that is not there, `RUKH_ERROR_NOT_FOUND` for an input that the node leaves out, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_input_value: {
    (node: Address, index: Integer, value: Out<Address>): void;
    async(node: Address, index: Integer, value: Out<Address>): Promise<void>;
  };
  /**
   * Says why a function cannot answer: the text of the error that opening or running the model returns, after the
   * node's name. The function then fails, whatever status it returns.
   *
   * `node`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_set_error: {
    (node: Address, text: string): void;
    async(node: Address, text: string): Promise<void>;
  };
  /**
   * Gives the node's kernel a state, which `rukh_kernel_context_state` tells later. For the function `create` of a kernel.
   *
   * `node`: not NULL. `state`: passed on as it is; may be NULL. `release`: may be NULL; called once with `state` when the
   * session is gone, or when another state takes its place, also when opening the session fails. `error`: may be NULL.
   * Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors; `release` is then not
   * called.
   *
   * @since 0.1.0
   */
  node_info_set_state: {
    (node: Address, state: Memory, release: Address): void;
    async(node: Address, state: Memory, release: Address): Promise<void>;
  };
  /**
   * The state that the function `create` gave the node's kernel. For the function `prepare` of a GPU kernel.
   *
   * `node`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_state: {
    (node: Address, state: Out<Address>): void;
    async(node: Address, state: Out<Address>): Promise<void>;
  };
  /**
   * Asks for temporary device memory for each run of these shapes. For the function `prepare` of a GPU kernel.
   *
   * `node`: not NULL. `bytes`: 0 or more; the memory is aligned to 256 bytes and its content is unspecified. `error`: may
   * be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` in another function, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_set_scratch: {
    (node: Address, bytes: Integer): void;
    async(node: Address, bytes: Integer): Promise<void>;
  };
  /**
   * Whether the node has an output (1), or leaves it out (0). Known in the functions `create` and `prepare` of a kernel.
   *
   * `node`, `wanted`: not NULL. `index`: any number. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL or in a shape function, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_has_output: {
    (node: Address, index: Integer, wanted: Out<number>): void;
    async(node: Address, index: Integer, wanted: Out<number>): Promise<void>;
  };
  /**
   * Tells that an output is a tensor of this element type. Needed only where the signature does not tell the type.
   *
   * `node`: not NULL. `index`: from 0. `element`: one of `RUKH_ELEMENT_…`. `error`: may be NULL. Threads: any. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for an index or type that is not there or outside of a shape function, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  node_info_set_output_type: {
    (node: Address, index: Integer, element: number): void;
    async(node: Address, index: Integer, element: number): Promise<void>;
  };
  /**
   * Tells the shape of an output.
   *
   * `node`: not NULL. `index`: from 0. `dims`: `rank` dimensions in elements, -1 for one that is not known, which is
   * allowed only while dimensions or values of inputs are not known; NULL allowed with rank 0, a scalar. `error`: may be
   * NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, a dimension below -1 or
   * outside of a shape function, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_set_output_shape: {
    (node: Address, index: Integer, dims: Integer[] | BigInt64Array | null, rank: Integer): void;
    async(node: Address, index: Integer, dims: Integer[] | BigInt64Array | null, rank: Integer): Promise<void>;
  };
  /**
   * Tells that an output has the shape of an input, also where dimensions of it are not known yet: the library then
   * knows that both are equal.
   *
   * `node`: not NULL. `index`: of the output, from 0. `input`: of an input that the node has. `error`: may be NULL.
   * Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or outside of a shape function, and
   * the handle errors.
   *
   * @since 0.1.0
   */
  node_info_set_output_shape_of: {
    (node: Address, index: Integer, input: Integer): void;
    async(node: Address, index: Integer, input: Integer): Promise<void>;
  };
  /**
   * Tells that a dimension of an output, whose shape was told before, is one of an input, also where that is not known
   * yet.
   *
   * `node`: not NULL. `index`, `axis`: of the output, from 0. `input`, `input_axis`: of an input that the node has.
   * `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index or axis that is not there or
   * outside of a shape function, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_set_output_dim_of: {
    (node: Address, index: Integer, axis: Integer, input: Integer, input_axis: Integer): void;
    async(node: Address, index: Integer, axis: Integer, input: Integer, input_axis: Integer): Promise<void>;
  };
  /**
   * Whether a node has an attribute, by itself or by its default (1), or not (0).
   *
   * `node`, `name`, `given`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
   * and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_has_attribute: {
    (node: Address, name: string, given: Out<number>): void;
    async(node: Address, name: string, given: Out<number>): Promise<void>;
  };
  /**
   * The value of an integer attribute.
   *
   * `node`, `name`, `value`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_NOT_FOUND` for an attribute
   * that the node does not have, `RUKH_ERROR_INVALID_ARGUMENT` for one of another type, and the handle errors.
   *
   * @since 0.1.0
   */
  node_info_attribute_int: {
    (node: Address, name: string, value: Out<Integer>): void;
    async(node: Address, name: string, value: Out<Integer>): Promise<void>;
  };
  /**
   * The value of a float attribute.
   *
   * The arguments, threads and errors are those of `rukh_node_info_attribute_int`.
   *
   * @since 0.1.0
   */
  node_info_attribute_float: {
    (node: Address, name: string, value: Out<number>): void;
    async(node: Address, name: string, value: Out<number>): Promise<void>;
  };
  /**
   * The text of a string attribute.
   *
   * `node`, `name`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a text that is no UTF-8 is
   * given with replacement characters. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`, and
   * `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small.
   *
   * @since 0.1.0
   */
  node_info_attribute_string: {
    (node: Address, name: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(node: Address, name: string, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The values of an attribute that is a list of integers.
   *
   * `node`, `name`: not NULL. `values`, `count`: not NULL; the array is borrowed from the node, NULL where it is empty.
   * `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
   *
   * @since 0.1.0
   */
  node_info_attribute_ints: {
    (node: Address, name: string, values: Out<Address>, count: Out<Integer>): void;
    async(node: Address, name: string, values: Out<Address>, count: Out<Integer>): Promise<void>;
  };
  /**
   * The values of an attribute that is a list of floats.
   *
   * The arguments, threads and errors are those of `rukh_node_info_attribute_ints`.
   *
   * @since 0.1.0
   */
  node_info_attribute_floats: {
    (node: Address, name: string, values: Out<Address>, count: Out<Integer>): void;
    async(node: Address, name: string, values: Out<Address>, count: Out<Integer>): Promise<void>;
  };
  /**
   * The number of texts of an attribute that is a list of strings.
   *
   * `node`, `name`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
   *
   * @since 0.1.0
   */
  node_info_attribute_string_count: {
    (node: Address, name: string, count: Out<Integer>): void;
    async(node: Address, name: string, count: Out<Integer>): Promise<void>;
  };
  /**
   * A text of an attribute that is a list of strings.
   *
   * `node`, `name`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: as for `rukh_node_info_attribute_string`. `error`:
   * may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_string`, and `RUKH_ERROR_INVALID_ARGUMENT` for an index
   * that is not there.
   *
   * @since 0.1.0
   */
  node_info_attribute_string_at: {
    (node: Address, name: string, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): void;
    async(node: Address, name: string, index: Integer, buf: Memory, cap: Integer, needed: Out<Integer> | null): Promise<void>;
  };
  /**
   * The tensor of a tensor attribute.
   *
   * `node`, `name`: not NULL. `value`: not NULL; receives the tensor, borrowed from the node. `error`: may be NULL.
   * Threads: any. Errors: as `rukh_node_info_attribute_int`.
   *
   * @since 0.1.0
   */
  node_info_attribute_tensor: {
    (node: Address, name: string, value: Out<Address>): void;
    async(node: Address, name: string, value: Out<Address>): Promise<void>;
  };
  /**
   * The number of the node's inputs, those included that it leaves out before others.
   *
   * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_input_count: {
    (context: Address, count: Out<Integer>): void;
    async(context: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The number of the node's outputs, those included that it leaves out before others.
   *
   * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_output_count: {
    (context: Address, count: Out<Integer>): void;
    async(context: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * The value of an input, to read alone. In a kernel for GPUs it is in device memory (`rukh_value_device` tells its
   * address), but for inputs that decide a shape.
   *
   * `context`: not NULL. `index`: from 0. `value`: not NULL; receives the value, borrowed for the call: it must not be
   * destroyed, and no clone of it may outlive the call; NULL for an input that the node leaves out. `error`: may be NULL.
   * Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, and the handle
   * errors.
   *
   * @since 0.1.0
   */
  kernel_context_input: {
    (context: Address, index: Integer, value: Out<Address>): void;
    async(context: Address, index: Integer, value: Out<Address>): Promise<void>;
  };
  /**
   * The tensor of an output, to write every element of; its content is unspecified. In a kernel for GPUs it is in device
   * memory.
   *
   * `context`: not NULL. `index`: from 0. `shape`: `rank` dimensions in elements, which must be those that the shape
   * function told, where it did; NULL allowed with rank 0. `value`: not NULL; receives the tensor, borrowed for the call:
   * it must not be destroyed, and no clone of it may outlive the call; NULL for an output that nobody wants. `error`: may
   * be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there, another
   * shape, or an output that is no tensor, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_output: {
    (context: Address, index: Integer, shape: Integer[] | BigInt64Array | null, rank: Integer, value: Out<Address>): void;
    async(context: Address, index: Integer, shape: Integer[] | BigInt64Array | null, rank: Integer, value: Out<Address>): Promise<void>;
  };
  /**
   * Makes a value an output: strings, a sequence, or a tensor that lies elsewhere; a planned output gets a copy of the
   * elements. In a kernel for the CPU.
   *
   * `context`, `value`: not NULL; the value is shared. `index`: from 0. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an index that is not there or a value of another type or shape than the
   * output's, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_set_output: {
    (context: Address, index: Integer, value: Address): void;
    async(context: Address, index: Integer, value: Address): Promise<void>;
  };
  /**
   * The state that the kernel's function `create` gave the node.
   *
   * `context`, `state`: not NULL; receives NULL where there is none. `error`: may be NULL. Threads: any, at the same
   * time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_state: {
    (context: Address, state: Out<Address>): void;
    async(context: Address, state: Out<Address>): Promise<void>;
  };
  /**
   * Whether the run was cancelled (1) or not (0). A kernel that takes long asks now and then, and may then return with
   * its outputs as they are.
   *
   * `context`, `cancelled`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_cancelled: {
    (context: Address, cancelled: Out<number>): void;
    async(context: Address, cancelled: Out<number>): Promise<void>;
  };
  /**
   * The number of threads that `rukh_kernel_context_parallel_for` can use, the calling one included.
   *
   * `context`, `count`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_thread_count: {
    (context: Address, count: Out<Integer>): void;
    async(context: Address, count: Out<Integer>): Promise<void>;
  };
  /**
   * Calls `body` with each number below `count`, in any order and on the session's threads, and returns when all calls
   * have returned.
   *
   * `context`: not NULL. `count`: 0 or more; some parts for each thread make an even load. `body`: not NULL; it may call
   * the functions of this context. `user`: passed to the body as it is; may be NULL. `error`: may be NULL. Threads: any.
   * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL, `RUKH_ERROR_CANCELLED` when the run was cancelled and parts were left
   * out, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_parallel_for: {
    (context: Address, count: Integer, body: Address, user: Memory): void;
    async(context: Address, count: Integer, body: Address, user: Memory): Promise<void>;
  };
  /**
   * The stream that a kernel for GPUs gives its work to: a `hipStream_t`, on NVIDIA's GPUs a `CUstream`.
   *
   * `context`, `stream`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT` for NULL and in a kernel for the CPU, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_stream: {
    (context: Address, stream: Out<Address>): void;
    async(context: Address, stream: Out<Address>): Promise<void>;
  };
  /**
   * The temporary device memory that the function `prepare` asked for; its content is unspecified.
   *
   * `context`, `address`: not NULL; receives NULL where there is none. `bytes`: may be NULL; receives its size. `error`:
   * may be NULL. Threads: any, at the same time. Errors: as `rukh_kernel_context_stream`.
   *
   * @since 0.1.0
   */
  kernel_context_scratch: {
    (context: Address, address: Out<Address>, bytes: Out<Integer> | null): void;
    async(context: Address, address: Out<Address>, bytes: Out<Integer> | null): Promise<void>;
  };
  /**
   * Says why a kernel failed: the text of the error that the run returns, after the node's name. The kernel then fails,
   * whatever status it returns.
   *
   * `context`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any, at the same time. Errors:
   * `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
   *
   * @since 0.1.0
   */
  kernel_context_set_error: {
    (context: Address, text: string): void;
    async(context: Address, text: string): Promise<void>;
  };
}

export const ABI_VERSION: number;
export const CALLBACKS: Record<string, [string, string[]]>;
export const FUNCTIONS: Record<keyof Functions, [string, string[]]>;
export const FAILING: Set<string>;
export const SINCE: Record<string, string>;
