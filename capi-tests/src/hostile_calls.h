/* Every function of a kind of handle, called with that handle and nothing else right. */

#ifndef HOSTILE_CALLS_H
#define HOSTILE_CALLS_H

#include "check.h"

#include <limits.h>

/* Any status that there is: the call must come back, and that is all. */
#define ANY (-1)

static rukh_error *error;

#define EXPECT(call)                                                                         \
    do {                                                                                     \
        rukh_status status_ = (call);                                                        \
        if (wanted == ANY ? status_ < RUKH_OK || status_ > RUKH_ERROR_INTERNAL : status_ != wanted) { \
            fprintf(stderr, "%s:%d: %s\n  gave %s: %s\n", __FILE__, __LINE__, #call,         \
                    rukh_status_name(status_), rukh_error_message(error));                   \
            abort();                                                                         \
        }                                                                                    \
        CHECK((status_ == RUKH_OK) == (error == NULL));                                      \
        rukh_error_destroy(error);                                                           \
        error = NULL;                                                                        \
    } while (0)

/* Every function of a kind of handle, NULL and 0 in place of all other arguments. */

static void try_environment_options(rukh_environment_options *h, rukh_status wanted) {
    EXPECT(rukh_environment_options_set(h, NULL, NULL, &error));
    EXPECT(rukh_environment_options_get(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_environment_options_key(h, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_environment_options_set_log(h, 0, NULL, NULL, NULL, &error));
    EXPECT(rukh_environment_options_set_log_callback(h, 9, NULL, NULL, NULL, &error));
    EXPECT(rukh_environment_options_set_parallel_for(h, NULL, SIZE_MAX, NULL, NULL, &error));
}

static void try_environment(rukh_environment *h, rukh_status wanted) {
    rukh_session *session;
    EXPECT(rukh_environment_thread_count(h, NULL, &error));
    EXPECT(rukh_environment_set_log_level(h, INT_MAX, &error));
    EXPECT(rukh_environment_device_count(h, NULL, &error));
    EXPECT(rukh_environment_device(h, 0, NULL, &error));
    EXPECT(rukh_environment_provider_reason(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_environment_tune(h, NULL, NULL, NULL, NULL, &error));
    EXPECT(rukh_environment_fourier_plans(h, 0, NULL, NULL, &error));
    EXPECT(rukh_environment_set_fourier_plan_limit(h, 0, 1, &error));
    EXPECT(rukh_environment_clear_fourier_plans(h, 0, &error));
    EXPECT(rukh_session_create(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_session_create(h, NULL, NULL, &session, &error));
    EXPECT(rukh_session_create_from_memory(h, NULL, 0, NULL, NULL, &error));
    EXPECT(rukh_session_create_from_memory(h, NULL, 5, NULL, &session, &error));
    EXPECT(rukh_session_create_from_buffer(h, NULL, 5, NULL, NULL, NULL, &session, &error));
    EXPECT(rukh_environment_find_device(h, NULL, 0, NULL, &error));
}

static void try_completion(rukh_completion *h, rukh_status wanted) {
    EXPECT(rukh_completion_is_done(h, NULL, &error));
    EXPECT(rukh_completion_wait(h, &error));
    EXPECT(rukh_completion_event(h, NULL, &error));
    EXPECT(rukh_completion_output_count(h, NULL, &error));
    EXPECT(rukh_completion_output(h, SIZE_MAX, NULL, &error));
}

static void try_external_memory(rukh_external_memory *h, rukh_status wanted) {
    rukh_value *value;
    EXPECT(rukh_external_memory_tensor(h, SIZE_MAX, INT_MAX, NULL, 9, NULL, &error));
    EXPECT(rukh_external_memory_tensor(h, 0, RUKH_ELEMENT_FLOAT, NULL, 0, &value, &error));
}

static void try_log_record(rukh_log_record *h, rukh_status wanted) {
    EXPECT(rukh_log_record_level(h, NULL, &error));
    EXPECT(rukh_log_record_text(h, INT_MAX, NULL, &error));
}

static void try_placement(rukh_placement *h, rukh_status wanted) {
    rukh_device *device;
    EXPECT(rukh_placement_text(h, INT_MIN, NULL, &error));
    EXPECT(rukh_placement_device(h, NULL, &error));
    EXPECT(rukh_placement_device(h, &device, &error));
}

static void try_device(rukh_device *h, rukh_status wanted) {
    rukh_external_memory *memory;
    EXPECT(rukh_external_memory_import(h, INT_MAX, INT64_MIN, SIZE_MAX, NULL, NULL, NULL, &error));
    EXPECT(rukh_external_memory_import(h, 0, -1, 0, NULL, NULL, &memory, &error));
    EXPECT(rukh_device_provider(h, NULL, &error));
    EXPECT(rukh_device_name(h, NULL, &error));
    EXPECT(rukh_device_arch(h, NULL, &error));
    EXPECT(rukh_device_memory(h, NULL, &error));
    EXPECT(rukh_device_property_count(h, NULL, &error));
    EXPECT(rukh_device_property(h, 0, NULL, NULL, &error));
    EXPECT(rukh_device_id(h, NULL, &error));
    EXPECT(rukh_value_create_tensor_in(h, 0, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_stream_create(h, NULL, &error));
}

static void try_stream(rukh_stream *h, rukh_status wanted) {
    EXPECT(rukh_stream_address(h, NULL, &error));
    EXPECT(rukh_stream_wait(h, &error));
    EXPECT(rukh_stream_record(h, NULL, &error));
    EXPECT(rukh_stream_wait_for(h, NULL, &error));
}

static void try_session_options(rukh_session_options *h, rukh_status wanted) {
    EXPECT(rukh_session_options_clone(h, NULL, &error));
    EXPECT(rukh_session_options_cancel(h, &error));
    EXPECT(rukh_session_options_reset(h, &error));
    EXPECT(rukh_session_options_set(h, NULL, NULL, &error));
    EXPECT(rukh_session_options_get(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_session_options_key(h, SIZE_MAX, NULL, 0, NULL, &error));
    EXPECT(rukh_session_options_set_load(h, INT32_MIN, &error));
    EXPECT(rukh_session_options_set_optimization(h, INT32_MAX, &error));
    EXPECT(rukh_session_options_set_fallback(h, 2, &error));
    EXPECT(rukh_session_options_set_profiling(h, -1, &error));
    EXPECT(rukh_session_options_set_threads(h, SIZE_MAX, &error));
    EXPECT(rukh_session_options_set_dimension(h, NULL, 0, &error));
    EXPECT(rukh_session_options_add_provider(h, NULL, NULL, NULL, 0, &error));
    EXPECT(rukh_session_options_add_provider(h, "cpu", NULL, NULL, 3, &error));
    EXPECT(rukh_session_options_set_external_allocator(h, NULL, NULL, NULL, NULL, &error));
    EXPECT(rukh_session_options_add_initializer(h, NULL, NULL, &error));
    EXPECT(rukh_session_options_add_adapter(h, NULL, &error));
    EXPECT(rukh_session_options_add_external_file(h, NULL, NULL, 1, NULL, NULL, &error));
    EXPECT(rukh_session_options_provider_count(h, NULL, &error));
    EXPECT(rukh_session_options_provider_name(h, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_session_options_provider_key(h, 0, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_session_options_provider_get(h, 0, NULL, NULL, 0, NULL, &error));
}

static void try_session(rukh_session *h, rukh_status wanted) {
    rukh_value *out;
    EXPECT(rukh_session_input_count(h, NULL, &error));
    EXPECT(rukh_session_input_name(h, 0, NULL, &error));
    EXPECT(rukh_session_input_index(h, NULL, NULL, &error));
    EXPECT(rukh_session_input_type(h, SIZE_MAX, NULL, NULL, &error));
    EXPECT(rukh_session_input_type_text(h, SIZE_MAX, NULL, 0, NULL, &error));
    EXPECT(rukh_session_input_shape(h, 0, NULL, 5, NULL, &error));
    EXPECT(rukh_session_input_dim_name(h, 0, 0, NULL, &error));
    EXPECT(rukh_session_output_count(h, NULL, &error));
    EXPECT(rukh_session_output_name(h, 0, NULL, &error));
    EXPECT(rukh_session_output_index(h, NULL, NULL, &error));
    EXPECT(rukh_session_output_type(h, SIZE_MAX, NULL, NULL, &error));
    EXPECT(rukh_session_output_type_text(h, SIZE_MAX, NULL, 0, NULL, &error));
    EXPECT(rukh_session_output_shape(h, 0, NULL, 5, NULL, &error));
    EXPECT(rukh_session_output_dim_name(h, 0, 0, NULL, &error));
    EXPECT(rukh_session_model_text(h, 0, NULL, &error));
    EXPECT(rukh_session_property_count(h, NULL, &error));
    EXPECT(rukh_session_property(h, 0, NULL, NULL, &error));
    EXPECT(rukh_session_opset_count(h, NULL, &error));
    EXPECT(rukh_session_opset(h, 0, NULL, NULL, &error));
    EXPECT(rukh_session_placement_count(h, NULL, &error));
    EXPECT(rukh_session_placement(h, SIZE_MAX, NULL, NULL, NULL, NULL, &error));
    EXPECT(rukh_session_load_counter(h, 0, NULL, &error));
    EXPECT(rukh_session_profile(h, NULL, 0, NULL, &error));
    EXPECT(rukh_session_tuning_results(h, NULL, 0, NULL, &error));
    EXPECT(rukh_session_tuning_results(h, NULL, 5, NULL, &error));
    EXPECT(rukh_session_add_tuning_results(h, NULL, NULL, &error));
    EXPECT(rukh_session_run(h, NULL, NULL, NULL, 2, NULL, 0, NULL, &error));
    EXPECT(rukh_session_run(h, NULL, NULL, NULL, SIZE_MAX, NULL, 0, NULL, &error));
    EXPECT(rukh_session_run(h, NULL, NULL, NULL, 0, NULL, SIZE_MAX, &out, &error));
    EXPECT(rukh_session_run(h, NULL, NULL, NULL, 0, NULL, 1, NULL, &error));
    EXPECT(rukh_session_for_each_placement(h, NULL, NULL, &error));
    EXPECT(rukh_session_start(h, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, NULL, &error));
    EXPECT(rukh_session_run_async(h, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, &error));
    EXPECT(rukh_session_device(h, NULL, &error));
    EXPECT(rukh_io_binding_create(h, NULL, &error));
}

static void try_value(rukh_value *h, rukh_status wanted) {
    const rukh_value *list[1];
    const char *const names[] = {"x"};
    rukh_adapter *adapter;
    rukh_value *out;
    list[0] = h;
    EXPECT(rukh_value_clone(h, NULL, &error));
    EXPECT(rukh_value_reshape(h, NULL, 3, &out, &error));
    EXPECT(rukh_value_kind(h, NULL, &error));
    EXPECT(rukh_value_element_type(h, NULL, &error));
    EXPECT(rukh_value_type_text(h, NULL, 1, NULL, &error));
    EXPECT(rukh_value_shape(h, NULL, 5, NULL, &error));
    EXPECT(rukh_value_element_count(h, NULL, &error));
    EXPECT(rukh_value_memory_kind(h, NULL, NULL, &error));
    EXPECT(rukh_value_copy_queued(h, NULL, 0, NULL, &error));
    EXPECT(rukh_value_data(h, NULL, NULL, &error));
    EXPECT(rukh_value_data_mut(h, NULL, NULL, &error));
    EXPECT(rukh_value_string(h, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_value_set_string(h, 0, NULL, &error));
    EXPECT(rukh_value_item_count(h, NULL, &error));
    EXPECT(rukh_value_item(h, 0, &out, &error));
    EXPECT(rukh_value_map_keys(h, &out, &error));
    EXPECT(rukh_value_to_dlpack(h, NULL, &error));
    EXPECT(rukh_value_to_dlpack_legacy(h, NULL, &error));
    EXPECT(rukh_adapter_create(names, list, 1, 0, 0, &adapter, &error));
    rukh_adapter_destroy(adapter);
    EXPECT(rukh_value_create_map(h, list, 1, 0, &out, &error));
    if (wanted != ANY) {
        EXPECT(rukh_value_create_sequence(list, 1, 0, &out, &error));
        CHECK(out == NULL);
    }
}

static void try_run_options(rukh_run_options *h, rukh_status wanted) {
    EXPECT(rukh_run_options_set(h, NULL, NULL, &error));
    EXPECT(rukh_run_options_get(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_run_options_key(h, 5, NULL, 0, NULL, &error));
    EXPECT(rukh_run_options_add_adapter(h, NULL, &error));
    EXPECT(rukh_run_options_cancel(h, &error));
    EXPECT(rukh_run_options_reset(h, &error));
}

static void try_binding(rukh_io_binding *h, rukh_status wanted) {
    rukh_value *out;
    EXPECT(rukh_io_binding_bind_input(h, NULL, NULL, &error));
    EXPECT(rukh_io_binding_bind_output(h, NULL, NULL, &error));
    EXPECT(rukh_io_binding_bind_output_allocated(h, NULL, &error));
    EXPECT(rukh_io_binding_bind_output_allocated_in(h, NULL, NULL, 0, &error));
    EXPECT(rukh_io_binding_clear_inputs(h, &error));
    EXPECT(rukh_io_binding_clear_outputs(h, &error));
    EXPECT(rukh_io_binding_run(h, NULL, &error));
    EXPECT(rukh_io_binding_output(h, NULL, &out, &error));
}

static void try_adapter(rukh_adapter *h, rukh_status wanted) {
    rukh_value *out;
    EXPECT(rukh_adapter_versions(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_adapter_save(h, NULL, &error));
    EXPECT(rukh_adapter_parameter_count(h, NULL, &error));
    EXPECT(rukh_adapter_parameter_name(h, SIZE_MAX, NULL, 0, NULL, &error));
    EXPECT(rukh_adapter_parameter_value(h, SIZE_MAX, &out, &error));
    EXPECT(rukh_adapter_parameter_value(h, 0, NULL, &error));
}

static void try_makers(void) {
    const rukh_status wanted = RUKH_ERROR_INVALID_ARGUMENT;
    const int32_t types[] = {-1, 0, 29, INT32_MIN, INT32_MAX};
    rukh_adapter *adapter;
    rukh_value *out;
    size_t i;
    EXPECT(rukh_adapter_open(NULL, &adapter, &error));
    EXPECT(rukh_adapter_open("a", NULL, &error));
    EXPECT(rukh_adapter_open_from_buffer(NULL, 9, NULL, NULL, &adapter, &error));
    EXPECT(rukh_adapter_open_from_buffer(NULL, 0, NULL, NULL, NULL, &error));
    EXPECT(rukh_adapter_create(NULL, NULL, 1, 0, 0, &adapter, &error));
    EXPECT(rukh_adapter_create(NULL, NULL, SIZE_MAX, 0, 0, &adapter, &error));
    EXPECT(rukh_adapter_create(NULL, NULL, 0, 0, 0, NULL, &error));
    EXPECT(rukh_environment_options_create(NULL, &error));
    EXPECT(rukh_environment_create(NULL, NULL, &error));
    EXPECT(rukh_session_options_create(NULL, &error));
    EXPECT(rukh_run_options_create(NULL, &error));
    EXPECT(rukh_provider_count(NULL, &error));
    EXPECT(rukh_report(NULL, 1, NULL, &error));
    EXPECT(rukh_provider_name(99, NULL, 0, NULL, &error));
    EXPECT(rukh_value_create_tensor(1, NULL, 0, NULL, &error));
    EXPECT(rukh_value_create_tensor(1, NULL, 2, &out, &error));
    EXPECT(rukh_value_create_tensor(1, NULL, SIZE_MAX, &out, &error));
    EXPECT(rukh_value_create_tensor_copy(1, NULL, 0, NULL, 4, &out, &error));
    EXPECT(rukh_value_create_tensor_over(1, NULL, 0, NULL, 4, NULL, NULL, &out, &error));
    EXPECT(rukh_value_create_tensor_over(RUKH_ELEMENT_STRING, NULL, 0, NULL, 0, NULL, NULL, &out, &error));
    EXPECT(rukh_value_create_strings(NULL, 0, NULL, NULL, 1, &out, &error));
    EXPECT(rukh_value_create_sequence(NULL, 1, 1, &out, &error));
    EXPECT(rukh_value_create_map(NULL, NULL, 0, 1, &out, &error));
    EXPECT(rukh_value_create_optional(NULL, 99, &out, &error));
    EXPECT(rukh_value_from_dlpack(NULL, &out, &error));
    EXPECT(rukh_value_from_dlpack_legacy(NULL, &out, &error));
    for (i = 0; i < COUNT_OF(types); i++) {
        EXPECT(rukh_value_create_tensor(types[i], NULL, 0, &out, &error));
        EXPECT(rukh_value_create_sequence(NULL, 0, types[i], &out, &error));
        CHECK(out == NULL);
    }
    /* Without anywhere to put the error. */
    CHECK(rukh_value_create_tensor(99, NULL, 0, NULL, NULL) == RUKH_ERROR_INVALID_ARGUMENT);
}

#endif
