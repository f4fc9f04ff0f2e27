#ifndef RUKH_TABLE_H
#define RUKH_TABLE_H

/*
 * The functions of rukh.h as a table of pointers, for who loads the library at run time. One symbol is looked up:
 *
 *   const rukh_table *(*api)(uint32_t);
 *   *(void **)&api = dlsym(library, "rukh_api");
 *   const rukh_table *rukh = api(RUKH_ABI_VERSION);
 *   if (rukh == NULL) { ... the library is older than this header, or of another series ... }
 *   rukh->environment_create(options, &environment, &error);
 *
 * A member has the name of its function without "rukh_", and its contract. New functions come at the end: a
 * table has more members than an older header names, never others. This file is made from the library's source.
 */

#include <rukh/rukh.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rukh_table {
    /** How many functions follow. */
    size_t count;
    uint32_t (*version)(void);
    const char *(*version_string)(void);
    uint32_t (*abi_version)(void);
    rukh_status (*error_code)(const rukh_error *error);
    const char *(*error_message)(const rukh_error *error);
    rukh_error *(*error_create)(rukh_status code, const char *message);
    void (*error_destroy)(rukh_error *error);
    const char *(*status_name)(rukh_status status);
    rukh_status (*environment_options_create)(rukh_environment_options **out, rukh_error **error);
    void (*environment_options_destroy)(rukh_environment_options *options);
    rukh_status (*environment_options_set)(rukh_environment_options *options, const char *key, const char *value, rukh_error **error);
    rukh_status (*environment_options_get)(const rukh_environment_options *options, const char *key, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_options_key)(const rukh_environment_options *options, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    RUKH_DEPRECATED("use rukh_environment_options_set_log_callback")
    rukh_status (*environment_options_set_log)(rukh_environment_options *options, rukh_log_level level, rukh_log_callback callback, void *user, rukh_release release, rukh_error **error);
    rukh_status (*environment_create)(const rukh_environment_options *options, rukh_environment **out, rukh_error **error);
    void (*environment_destroy)(rukh_environment *environment);
    rukh_status (*environment_thread_count)(const rukh_environment *environment, size_t *count, rukh_error **error);
    rukh_status (*environment_device_count)(const rukh_environment *environment, size_t *count, rukh_error **error);
    rukh_status (*environment_device)(const rukh_environment *environment, size_t index, rukh_device **out, rukh_error **error);
    rukh_status (*environment_find_device)(const rukh_environment *environment, const char *provider, size_t device_id, rukh_device **out, rukh_error **error);
    void (*device_destroy)(rukh_device *device);
    rukh_status (*device_provider)(const rukh_device *device, const char **provider, rukh_error **error);
    rukh_status (*device_id)(const rukh_device *device, size_t *device_id, rukh_error **error);
    rukh_status (*device_name)(const rukh_device *device, const char **name, rukh_error **error);
    rukh_status (*device_arch)(const rukh_device *device, const char **arch, rukh_error **error);
    rukh_status (*device_memory)(const rukh_device *device, uint64_t *bytes, rukh_error **error);
    rukh_status (*device_property_count)(const rukh_device *device, size_t *count, rukh_error **error);
    rukh_status (*device_property)(const rukh_device *device, size_t index, const char **key, const char **value, rukh_error **error);
    rukh_status (*device_find_property)(const rukh_device *device, const char *key, const char **value, rukh_error **error);
    rukh_status (*provider_count)(size_t *count, rukh_error **error);
    rukh_status (*provider_name)(size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_provider_reason)(const rukh_environment *environment, const char *provider, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*report)(char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_create_arena)(rukh_environment *environment, size_t device_id, const char *config, rukh_error **error);
    rukh_status (*environment_memory_statistic)(const rukh_environment *environment, size_t device_id, const char *name, uint64_t *value, rukh_error **error);
    rukh_status (*environment_memory_statistic_name)(const rukh_environment *environment, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_memory_summary)(const rukh_environment *environment, size_t device_id, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_memory_info)(const rukh_environment *environment, size_t device_id, uint64_t *free, uint64_t *total, rukh_error **error);
    rukh_status (*environment_memory_reset_peaks)(const rukh_environment *environment, size_t device_id, rukh_error **error);
    rukh_status (*environment_memory_empty_cache)(const rukh_environment *environment, size_t device_id, rukh_error **error);
    rukh_status (*environment_memory_record_history)(const rukh_environment *environment, size_t device_id, size_t events, rukh_error **error);
    rukh_status (*environment_memory_snapshot)(const rukh_environment *environment, size_t device_id, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*environment_fourier_plans)(const rukh_environment *environment, size_t device_id, size_t *count, size_t *limit, rukh_error **error);
    rukh_status (*environment_set_fourier_plan_limit)(const rukh_environment *environment, size_t device_id, size_t limit, rukh_error **error);
    rukh_status (*environment_clear_fourier_plans)(const rukh_environment *environment, size_t device_id, rukh_error **error);
    rukh_status (*session_options_create)(rukh_session_options **out, rukh_error **error);
    rukh_status (*session_options_clone)(const rukh_session_options *options, rukh_session_options **out, rukh_error **error);
    void (*session_options_destroy)(rukh_session_options *options);
    rukh_status (*session_options_set)(rukh_session_options *options, const char *key, const char *value, rukh_error **error);
    rukh_status (*session_options_get)(const rukh_session_options *options, const char *key, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_options_key)(const rukh_session_options *options, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_options_set_load)(rukh_session_options *options, rukh_load_mode mode, rukh_error **error);
    rukh_status (*session_options_set_optimization)(rukh_session_options *options, rukh_optimization optimization, rukh_error **error);
    rukh_status (*session_options_set_fallback)(rukh_session_options *options, rukh_fallback fallback, rukh_error **error);
    rukh_status (*session_options_set_profiling)(rukh_session_options *options, int32_t on, rukh_error **error);
    rukh_status (*session_options_set_threads)(rukh_session_options *options, size_t threads, rukh_error **error);
    rukh_status (*session_options_set_dimension)(rukh_session_options *options, const char *name, int64_t size, rukh_error **error);
    rukh_status (*session_options_add_provider)(rukh_session_options *options, const char *provider, const char *const *keys, const char *const *values, size_t count, rukh_error **error);
    rukh_status (*session_options_set_external_allocator)(rukh_session_options *options, rukh_device_alloc alloc, rukh_device_free release_memory, rukh_device_empty_cache empty_cache, void *user, rukh_error **error);
    rukh_status (*session_options_provider_count)(const rukh_session_options *options, size_t *count, rukh_error **error);
    rukh_status (*session_options_provider_name)(const rukh_session_options *options, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_options_provider_key)(const rukh_session_options *options, size_t provider, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_options_provider_get)(const rukh_session_options *options, size_t provider, const char *key, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_create)(const rukh_environment *environment, const char *path, const rukh_session_options *options, rukh_session **out, rukh_error **error);
    rukh_status (*session_create_from_memory)(const rukh_environment *environment, const void *data, size_t size, const rukh_session_options *options, rukh_session **out, rukh_error **error);
    void (*session_destroy)(rukh_session *session);
    rukh_status (*session_create_from_buffer)(const rukh_environment *environment, const void *data, size_t size, rukh_deleter deleter, void *user, const rukh_session_options *options, rukh_session **out, rukh_error **error);
    rukh_status (*session_options_add_initializer)(rukh_session_options *options, const char *name, const rukh_value *value, rukh_error **error);
    rukh_status (*session_options_add_external_file)(rukh_session_options *options, const char *location, const void *data, size_t size, rukh_deleter deleter, void *user, rukh_error **error);
    rukh_status (*compile_options_create)(rukh_compile_options **out, rukh_error **error);
    void (*compile_options_destroy)(rukh_compile_options *options);
    rukh_status (*compile_options_set)(rukh_compile_options *options, const char *key, const char *value, rukh_error **error);
    rukh_status (*compile_options_get)(const rukh_compile_options *options, const char *key, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*compile_options_key)(const rukh_compile_options *options, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*compile_options_set_progress)(rukh_compile_options *options, rukh_progress_callback callback, void *user, rukh_release release, rukh_error **error);
    rukh_status (*compile_model)(const rukh_environment *environment, const char *path, const rukh_session_options *session_options_handle, const rukh_compile_options *options, const char *out_path, rukh_error **error);
    rukh_status (*compile_model_from_memory)(const rukh_environment *environment, const void *data, size_t size, const rukh_session_options *session_options_handle, const rukh_compile_options *options, const char *out_path, rukh_error **error);
    rukh_status (*artifact_open)(const rukh_environment *environment, const char *path, rukh_artifact **out, rukh_error **error);
    void (*artifact_destroy)(rukh_artifact *artifact);
    rukh_status (*artifact_info)(const rukh_artifact *artifact, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*artifact_check)(const rukh_artifact *artifact, const rukh_session_options *options, rukh_artifact_verdict *verdict, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_plan)(const rukh_session *session, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_input_count)(const rukh_session *session, size_t *count, rukh_error **error);
    rukh_status (*session_input_name)(const rukh_session *session, size_t index, const char **name, rukh_error **error);
    rukh_status (*session_input_index)(const rukh_session *session, const char *name, size_t *index, rukh_error **error);
    rukh_status (*session_input_type)(const rukh_session *session, size_t index, rukh_kind *kind, rukh_element_type *element, rukh_error **error);
    rukh_status (*session_input_type_text)(const rukh_session *session, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_input_shape)(const rukh_session *session, size_t index, int64_t *dims, size_t cap, int64_t *rank, rukh_error **error);
    rukh_status (*session_input_dim_name)(const rukh_session *session, size_t index, size_t axis, const char **name, rukh_error **error);
    rukh_status (*session_overridable_count)(const rukh_session *session, size_t *count, rukh_error **error);
    rukh_status (*session_overridable_name)(const rukh_session *session, size_t index, const char **name, rukh_error **error);
    rukh_status (*session_overridable_type_text)(const rukh_session *session, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_overridable_shape)(const rukh_session *session, size_t index, int64_t *dims, size_t cap, int64_t *rank, rukh_error **error);
    rukh_status (*session_overridable_dim_name)(const rukh_session *session, size_t index, size_t axis, const char **name, rukh_error **error);
    rukh_status (*session_output_count)(const rukh_session *session, size_t *count, rukh_error **error);
    rukh_status (*session_output_name)(const rukh_session *session, size_t index, const char **name, rukh_error **error);
    rukh_status (*session_output_index)(const rukh_session *session, const char *name, size_t *index, rukh_error **error);
    rukh_status (*session_output_type)(const rukh_session *session, size_t index, rukh_kind *kind, rukh_element_type *element, rukh_error **error);
    rukh_status (*session_output_type_text)(const rukh_session *session, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_output_shape)(const rukh_session *session, size_t index, int64_t *dims, size_t cap, int64_t *rank, rukh_error **error);
    rukh_status (*session_output_dim_name)(const rukh_session *session, size_t index, size_t axis, const char **name, rukh_error **error);
    rukh_status (*session_model_text)(const rukh_session *session, rukh_model_text which, const char **text, rukh_error **error);
    rukh_status (*session_model_version)(const rukh_session *session, int64_t *model_version, int64_t *ir_version, rukh_error **error);
    rukh_status (*session_property_count)(const rukh_session *session, size_t *count, rukh_error **error);
    rukh_status (*session_property)(const rukh_session *session, size_t index, const char **key, const char **value, rukh_error **error);
    rukh_status (*session_opset_count)(const rukh_session *session, size_t *count, rukh_error **error);
    rukh_status (*session_opset)(const rukh_session *session, size_t index, const char **domain, int64_t *version, rukh_error **error);
    rukh_status (*session_placement_count)(const rukh_session *session, size_t *count, rukh_error **error);
    RUKH_DEPRECATED("use rukh_session_for_each_placement")
    rukh_status (*session_placement)(const rukh_session *session, size_t index, const char **node, const char **operator_name, const char **provider, const char **reason, rukh_error **error);
    rukh_status (*session_load_counter)(const rukh_session *session, rukh_load_counter which, uint64_t *value, rukh_error **error);
    rukh_status (*session_profile)(const rukh_session *session, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*value_create_tensor)(rukh_element_type element, const int64_t *shape, size_t rank, rukh_value **out, rukh_error **error);
    rukh_status (*value_create_tensor_copy)(rukh_element_type element, const int64_t *shape, size_t rank, const void *data, size_t bytes, rukh_value **out, rukh_error **error);
    rukh_status (*value_create_tensor_over)(rukh_element_type element, const int64_t *shape, size_t rank, void *data, size_t bytes, rukh_deleter deleter, void *user, rukh_value **out, rukh_error **error);
    rukh_status (*value_clone)(const rukh_value *value, rukh_value **out, rukh_error **error);
    rukh_status (*value_reshape)(const rukh_value *value, const int64_t *shape, size_t rank, rukh_value **out, rukh_error **error);
    void (*value_destroy)(rukh_value *value);
    rukh_status (*value_kind)(const rukh_value *value, rukh_kind *kind, rukh_error **error);
    rukh_status (*value_element_type)(const rukh_value *value, rukh_element_type *element, rukh_error **error);
    rukh_status (*value_type_text)(const rukh_value *value, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*value_shape)(const rukh_value *value, int64_t *dims, size_t cap, size_t *rank, rukh_error **error);
    rukh_status (*value_element_count)(const rukh_value *value, size_t *count, rukh_error **error);
    rukh_status (*value_data)(const rukh_value *value, const void **data, size_t *bytes, rukh_error **error);
    rukh_status (*value_data_mut)(rukh_value *value, void **data, size_t *bytes, rukh_error **error);
    rukh_status (*value_create_device_tensor)(const rukh_environment *environment, size_t device_id, rukh_element_type element, const int64_t *shape, size_t rank, rukh_value **out, rukh_error **error);
    rukh_status (*value_create_device_tensor_over)(const rukh_environment *environment, size_t device_id, rukh_element_type element, const int64_t *shape, size_t rank, void *address, size_t bytes, rukh_deleter deleter, void *user, rukh_value **out, rukh_error **error);
    rukh_status (*value_copy)(const rukh_value *from, rukh_value *to, rukh_error **error);
    rukh_status (*value_device)(const rukh_value *value, int32_t *on_device, size_t *device_id, uint64_t *address, rukh_error **error);
    rukh_status (*value_create_tensor_in)(const rukh_device *device, rukh_memory_kind kind, rukh_element_type element, const int64_t *shape, size_t rank, rukh_value **out, rukh_error **error);
    rukh_status (*value_memory_kind)(const rukh_value *value, rukh_memory_kind *kind, size_t *device_id, rukh_error **error);
    rukh_status (*io_binding_bind_output_allocated_in)(rukh_io_binding *binding, const char *name, const rukh_device *device, rukh_memory_kind kind, rukh_error **error);
    rukh_status (*session_device)(const rukh_session *session, rukh_device **out, rukh_error **error);
    rukh_status (*value_copy_queued)(const rukh_value *from, rukh_value *to, uint64_t stream, rukh_completion **out, rukh_error **error);
    rukh_status (*stream_create)(const rukh_device *device, rukh_stream **out, rukh_error **error);
    void (*stream_destroy)(rukh_stream *stream);
    rukh_status (*stream_address)(const rukh_stream *stream, uint64_t *address, rukh_error **error);
    rukh_status (*stream_wait)(const rukh_stream *stream, rukh_error **error);
    rukh_status (*value_create_strings)(const int64_t *shape, size_t rank, const char *const *strings, const size_t *lengths, size_t count, rukh_value **out, rukh_error **error);
    rukh_status (*value_string)(const rukh_value *value, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*value_set_string)(rukh_value *value, size_t index, const char *string, rukh_error **error);
    rukh_status (*value_create_sequence)(const rukh_value *const *items, size_t count, rukh_element_type element, rukh_value **out, rukh_error **error);
    rukh_status (*value_create_map)(const rukh_value *keys, const rukh_value *const *values, size_t count, rukh_element_type element, rukh_value **out, rukh_error **error);
    rukh_status (*value_create_optional)(const rukh_value *value, rukh_element_type element, rukh_value **out, rukh_error **error);
    rukh_status (*value_item_count)(const rukh_value *value, size_t *count, rukh_error **error);
    rukh_status (*value_item)(const rukh_value *value, size_t index, rukh_value **out, rukh_error **error);
    rukh_status (*value_map_keys)(const rukh_value *value, rukh_value **out, rukh_error **error);
    rukh_status (*value_to_dlpack)(const rukh_value *value, struct DLManagedTensorVersioned **out, rukh_error **error);
    rukh_status (*value_to_dlpack_legacy)(const rukh_value *value, struct DLManagedTensor **out, rukh_error **error);
    rukh_status (*value_from_dlpack)(struct DLManagedTensorVersioned *managed, rukh_value **out, rukh_error **error);
    rukh_status (*value_from_dlpack_legacy)(struct DLManagedTensor *managed, rukh_value **out, rukh_error **error);
    rukh_status (*run_options_create)(rukh_run_options **out, rukh_error **error);
    void (*run_options_destroy)(rukh_run_options *options);
    rukh_status (*run_options_set)(rukh_run_options *options, const char *key, const char *value, rukh_error **error);
    rukh_status (*run_options_get)(const rukh_run_options *options, const char *key, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*run_options_key)(const rukh_run_options *options, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*run_options_cancel)(rukh_run_options *options, rukh_error **error);
    rukh_status (*run_options_reset)(rukh_run_options *options, rukh_error **error);
    rukh_status (*session_run)(const rukh_session *session, const rukh_run_options *options, const char *const *input_names, const rukh_value *const *inputs, size_t input_count, const char *const *output_names, size_t output_count, rukh_value **outputs, rukh_error **error);
    RUKH_DEPRECATED("use rukh_session_start")
    rukh_status (*session_run_async)(const rukh_session *session, const rukh_run_options *options, const char *const *input_names, const rukh_value *const *inputs, size_t input_count, const char *const *output_names, size_t output_count, rukh_run_callback callback, void *user, rukh_error **error);
    rukh_status (*io_binding_create)(const rukh_session *session, rukh_io_binding **out, rukh_error **error);
    void (*io_binding_destroy)(rukh_io_binding *binding);
    rukh_status (*io_binding_bind_input)(rukh_io_binding *binding, const char *name, const rukh_value *value, rukh_error **error);
    rukh_status (*io_binding_bind_output)(rukh_io_binding *binding, const char *name, const rukh_value *value, rukh_error **error);
    rukh_status (*io_binding_bind_output_allocated)(rukh_io_binding *binding, const char *name, rukh_error **error);
    rukh_status (*io_binding_clear_inputs)(rukh_io_binding *binding, rukh_error **error);
    rukh_status (*io_binding_clear_outputs)(rukh_io_binding *binding, rukh_error **error);
    rukh_status (*io_binding_run)(rukh_io_binding *binding, const rukh_run_options *options, rukh_error **error);
    rukh_status (*io_binding_output)(const rukh_io_binding *binding, const char *name, rukh_value **out, rukh_error **error);
    rukh_status (*io_binding_run_queued)(rukh_io_binding *binding, const rukh_run_options *options, rukh_completion **out, rukh_error **error);
    void (*completion_destroy)(rukh_completion *completion);
    rukh_status (*completion_is_done)(const rukh_completion *completion, int32_t *done, rukh_error **error);
    rukh_status (*completion_wait)(const rukh_completion *completion, rukh_error **error);
    rukh_status (*completion_event)(const rukh_completion *completion, uint64_t *event, rukh_error **error);
    rukh_status (*session_tuning_results)(const rukh_session *session, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*session_add_tuning_results)(const rukh_session *session, const char *text, size_t *taken, rukh_error **error);
    rukh_status (*environment_tune)(rukh_environment *environment, const rukh_session_options *options, const char *shapes, size_t *tuned, size_t *without, rukh_error **error);
    rukh_status (*operator_create)(const char *domain, const char *name, int64_t since, void *user, rukh_release release, rukh_operator **out, rukh_error **error);
    void (*operator_destroy)(rukh_operator *operator_);
    rukh_status (*operator_add_type_variable)(rukh_operator *operator_, const char *name, const rukh_element_type *allowed, size_t count, rukh_error **error);
    rukh_status (*operator_add_input)(rukh_operator *operator_, const char *name, const char *ty, rukh_arity arity, rukh_error **error);
    rukh_status (*operator_add_output)(rukh_operator *operator_, const char *name, const char *ty, rukh_arity arity, rukh_error **error);
    rukh_status (*operator_set_shape_input)(rukh_operator *operator_, size_t index, rukh_error **error);
    rukh_status (*operator_set_shape_function)(rukh_operator *operator_, rukh_node_callback function, rukh_error **error);
    rukh_status (*operator_set_kernel)(rukh_operator *operator_, rukh_node_callback create, rukh_kernel_callback compute, rukh_error **error);
    rukh_status (*operator_set_gpu_kernel)(rukh_operator *operator_, rukh_node_callback create, rukh_node_callback prepare, rukh_kernel_callback compute, rukh_error **error);
    rukh_status (*session_options_add_operator)(rukh_session_options *options, const rukh_operator *operator_, rukh_error **error);
    rukh_status (*environment_add_operator)(rukh_environment *environment, const rukh_operator *operator_, rukh_error **error);
    rukh_status (*operator_add_attribute)(rukh_operator *operator_, const char *name, rukh_attribute_type ty, int32_t required, rukh_error **error);
    rukh_status (*operator_add_attribute_with_default)(rukh_operator *operator_, const char *name, rukh_attribute_type ty, const void *data, size_t count, rukh_error **error);
    rukh_status (*session_options_load_operators)(rukh_session_options *options, const char *path, rukh_error **error);
    rukh_status (*environment_load_operators)(rukh_environment *environment, const char *path, rukh_error **error);
    rukh_status (*operator_registry_add)(rukh_operator_registry *registry, const rukh_operator *operator_, rukh_error **error);
    rukh_status (*operator_registry_set_error)(rukh_operator_registry *registry, const char *text, rukh_error **error);
    rukh_status (*node_info_name)(const rukh_node_info *node, const char **name, rukh_error **error);
    rukh_status (*node_info_version)(const rukh_node_info *node, int64_t *version, rukh_error **error);
    rukh_status (*node_info_input_count)(const rukh_node_info *node, size_t *count, rukh_error **error);
    rukh_status (*node_info_output_count)(const rukh_node_info *node, size_t *count, rukh_error **error);
    rukh_status (*node_info_has_input)(const rukh_node_info *node, size_t index, int32_t *given, rukh_error **error);
    rukh_status (*node_info_input_type)(const rukh_node_info *node, size_t index, rukh_kind *kind, rukh_element_type *element, rukh_error **error);
    rukh_status (*node_info_input_shape)(const rukh_node_info *node, size_t index, int64_t *dims, size_t cap, int64_t *rank, rukh_error **error);
    rukh_status (*node_info_input_value)(const rukh_node_info *node, size_t index, const rukh_value **value, rukh_error **error);
    rukh_status (*node_info_set_error)(rukh_node_info *node, const char *text, rukh_error **error);
    rukh_status (*node_info_set_state)(rukh_node_info *node, void *state, rukh_release release, rukh_error **error);
    rukh_status (*node_info_state)(const rukh_node_info *node, void **state, rukh_error **error);
    rukh_status (*node_info_set_scratch)(rukh_node_info *node, size_t bytes, rukh_error **error);
    rukh_status (*node_info_has_output)(const rukh_node_info *node, size_t index, int32_t *wanted, rukh_error **error);
    rukh_status (*node_info_set_output_type)(rukh_node_info *node, size_t index, rukh_element_type element, rukh_error **error);
    rukh_status (*node_info_set_output_shape)(rukh_node_info *node, size_t index, const int64_t *dims, size_t rank, rukh_error **error);
    rukh_status (*node_info_set_output_shape_of)(rukh_node_info *node, size_t index, size_t input, rukh_error **error);
    rukh_status (*node_info_set_output_dim_of)(rukh_node_info *node, size_t index, size_t axis, size_t input, size_t input_axis, rukh_error **error);
    rukh_status (*node_info_has_attribute)(const rukh_node_info *node, const char *name, int32_t *given, rukh_error **error);
    rukh_status (*node_info_attribute_int)(const rukh_node_info *node, const char *name, int64_t *value, rukh_error **error);
    rukh_status (*node_info_attribute_float)(const rukh_node_info *node, const char *name, float *value, rukh_error **error);
    rukh_status (*node_info_attribute_string)(const rukh_node_info *node, const char *name, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*node_info_attribute_ints)(const rukh_node_info *node, const char *name, const int64_t **values, size_t *count, rukh_error **error);
    rukh_status (*node_info_attribute_floats)(const rukh_node_info *node, const char *name, const float **values, size_t *count, rukh_error **error);
    rukh_status (*node_info_attribute_string_count)(const rukh_node_info *node, const char *name, size_t *count, rukh_error **error);
    rukh_status (*node_info_attribute_string_at)(const rukh_node_info *node, const char *name, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*node_info_attribute_tensor)(const rukh_node_info *node, const char *name, const rukh_value **value, rukh_error **error);
    rukh_status (*kernel_context_input_count)(const rukh_kernel_context *context, size_t *count, rukh_error **error);
    rukh_status (*kernel_context_output_count)(const rukh_kernel_context *context, size_t *count, rukh_error **error);
    rukh_status (*kernel_context_input)(const rukh_kernel_context *context, size_t index, const rukh_value **value, rukh_error **error);
    rukh_status (*kernel_context_output)(rukh_kernel_context *context, size_t index, const int64_t *shape, size_t rank, rukh_value **value, rukh_error **error);
    rukh_status (*kernel_context_set_output)(rukh_kernel_context *context, size_t index, const rukh_value *value, rukh_error **error);
    rukh_status (*kernel_context_state)(const rukh_kernel_context *context, void **state, rukh_error **error);
    rukh_status (*kernel_context_cancelled)(const rukh_kernel_context *context, int32_t *cancelled, rukh_error **error);
    rukh_status (*kernel_context_thread_count)(const rukh_kernel_context *context, size_t *count, rukh_error **error);
    rukh_status (*kernel_context_parallel_for)(rukh_kernel_context *context, size_t count, rukh_parallel_body body, void *user, rukh_error **error);
    rukh_status (*kernel_context_stream)(const rukh_kernel_context *context, void **stream, rukh_error **error);
    rukh_status (*kernel_context_scratch)(const rukh_kernel_context *context, void **address, size_t *bytes, rukh_error **error);
    rukh_status (*kernel_context_set_error)(rukh_kernel_context *context, const char *text, rukh_error **error);
    rukh_status (*environment_options_set_parallel_for)(rukh_environment_options *options, rukh_parallel_for callback, size_t threads, void *user, rukh_release release, rukh_error **error);
    rukh_status (*session_options_cancel)(rukh_session_options *options, rukh_error **error);
    rukh_status (*session_options_reset)(rukh_session_options *options, rukh_error **error);
    rukh_status (*adapter_open)(const char *path, rukh_adapter **out, rukh_error **error);
    rukh_status (*adapter_open_from_buffer)(const void *data, size_t size, rukh_deleter deleter, void *user, rukh_adapter **out, rukh_error **error);
    rukh_status (*adapter_create)(const char *const *names, const rukh_value *const *values, size_t count, int32_t adapter_version, int32_t model_version, rukh_adapter **out, rukh_error **error);
    rukh_status (*adapter_save)(const rukh_adapter *adapter, const char *path, rukh_error **error);
    void (*adapter_destroy)(rukh_adapter *adapter);
    rukh_status (*adapter_versions)(const rukh_adapter *adapter, int32_t *format_version, int32_t *adapter_version, int32_t *model_version, rukh_error **error);
    rukh_status (*adapter_parameter_count)(const rukh_adapter *adapter, size_t *count, rukh_error **error);
    rukh_status (*adapter_parameter_name)(const rukh_adapter *adapter, size_t index, char *buf, size_t cap, size_t *needed, rukh_error **error);
    rukh_status (*adapter_parameter_value)(const rukh_adapter *adapter, size_t index, rukh_value **out, rukh_error **error);
    rukh_status (*run_options_add_adapter)(rukh_run_options *options, const rukh_adapter *adapter, rukh_error **error);
    rukh_status (*session_options_add_adapter)(rukh_session_options *options, const rukh_adapter *adapter, rukh_error **error);
    rukh_status (*environment_options_set_log_callback)(rukh_environment_options *options, rukh_log_level level, rukh_log_record_callback callback, void *user, rukh_release release, rukh_error **error);
    rukh_status (*environment_set_log_level)(rukh_environment *environment, rukh_log_level level, rukh_error **error);
    rukh_status (*log_record_level)(const rukh_log_record *record, rukh_log_level *level, rukh_error **error);
    rukh_status (*log_record_text)(const rukh_log_record *record, rukh_log_text which, const char **text, rukh_error **error);
    rukh_status (*session_for_each_placement)(const rukh_session *session, rukh_placement_callback callback, void *user, rukh_error **error);
    rukh_status (*placement_text)(const rukh_placement *placement, rukh_placement_fact which, const char **text, rukh_error **error);
    rukh_status (*placement_device)(const rukh_placement *placement, rukh_device **out, rukh_error **error);
    rukh_status (*session_start)(const rukh_session *session, const rukh_run_options *options, const char *const *input_names, const rukh_value *const *inputs, size_t input_count, const char *const *output_names, size_t output_count, rukh_completion_callback callback, void *user, rukh_release release, rukh_completion **out, rukh_error **error);
    rukh_status (*completion_output_count)(const rukh_completion *completion, size_t *count, rukh_error **error);
    rukh_status (*completion_output)(const rukh_completion *completion, size_t index, rukh_value **out, rukh_error **error);
    rukh_status (*external_memory_import)(const rukh_device *device, rukh_external_handle kind, int64_t handle, size_t bytes, rukh_release release, void *user, rukh_external_memory **out, rukh_error **error);
    void (*external_memory_destroy)(rukh_external_memory *memory);
    rukh_status (*external_memory_tensor)(const rukh_external_memory *memory, size_t offset, rukh_element_type element, const int64_t *shape, size_t rank, rukh_value **out, rukh_error **error);
    rukh_status (*operator_set_pure)(rukh_operator *operator_, int32_t pure, rukh_error **error);
    rukh_status (*operator_set_capturable)(rukh_operator *operator_, int32_t capturable, rukh_error **error);
    rukh_status (*stream_record)(const rukh_stream *stream, rukh_completion **out, rukh_error **error);
    rukh_status (*stream_wait_for)(const rukh_stream *stream, const rukh_completion *completion, rukh_error **error);
} rukh_table;

#ifdef __cplusplus
}
#endif

#endif  /* RUKH_TABLE_H */
