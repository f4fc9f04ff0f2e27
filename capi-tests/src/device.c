/* The memory of devices, with a device and without one. */

#include "check.h"
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

/* Without a device every function says so, and why. */
static void without(rukh_environment *environment) {
    const char *part = "no HIP device";
    const int64_t shape[] = {2};
    rukh_value *made;
    uint64_t value;
    size_t needed;
    char text[64];
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_create_arena(environment, 0, NULL, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_statistic(environment, 0, "InUse", &value, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_info(environment, 0, &value, &value, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_reset_peaks(environment, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_empty_cache(environment, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_record_history(environment, 0, 10, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_fourier_plans(environment, 0, &needed, &needed, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_set_fourier_plan_limit(environment, 0, 1, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_clear_fourier_plans(environment, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, part,
          rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &made, &error));
    FAILS(RUKH_ERROR_DEVICE, part,
          rukh_environment_memory_snapshot(environment, 0, text, sizeof text, &needed, &error));
}

static void count_warning(const rukh_log_record *record, void *user) {
    rukh_log_level level;
    const char *message, *category;
    OK(rukh_log_record_level(record, &level, &error));
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_MESSAGE, &message, &error));
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_CATEGORY, &category, &error));
    if (level == RUKH_LOG_WARNING && strstr(message, "runs on the CPU") != NULL) ++*(int *)user;
    CHECK(strcmp(category, "provider") == 0);
}

/* A list of providers none of which has a device is an error; one that also names the CPU runs there, and says so. */
static void wanted_in_vain(void) {
    rukh_environment_options *settings;
    rukh_environment *environment;
    rukh_session_options *options;
    rukh_session *session;
    int warnings = 0;
    OK(rukh_environment_options_create(&settings, &error));
    OK(rukh_environment_options_set_log_callback(settings, RUKH_LOG_WARNING, count_warning, &warnings, NULL, &error));
    OK(rukh_environment_create(settings, &environment, &error));
    rukh_environment_options_destroy(settings);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, "the only provider that was added; add \"cpu\" after it",
          rukh_session_create(environment, model_path("linear"), options, &session, &error));
    CHECK(warnings == 0);
    OK(rukh_session_options_add_provider(options, "cpu", NULL, NULL, 0, &error));
    OK(rukh_session_create(environment, model_path("linear"), options, &session, &error));
    CHECK(warnings == 1);
    rukh_session_destroy(session);
    OK(rukh_session_options_set_fallback(options, RUKH_FALLBACK_ERROR, &error));
    FAILS(RUKH_ERROR_DEVICE, "option \"fallback\" is \"error\"",
          rukh_session_create(environment, model_path("linear"), options, &session, &error));
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
}

static uint64_t statistic(rukh_environment *environment, const char *name) {
    uint64_t value = 0;
    OK(rukh_environment_memory_statistic(environment, 0, name, &value, &error));
    return value;
}

static void with(rukh_environment *environment) {
    uint64_t value, total;
    size_t needed, count = 0;
    char text[4096];
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"inuse\" is not known",
          rukh_environment_memory_statistic(environment, 0, "inuse", &value, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device_id 99 is not there",
          rukh_environment_memory_statistic(environment, 99, "InUse", &value, &error));
    while (rukh_environment_memory_statistic_name(environment, count, text, sizeof text, &needed, NULL) == RUKH_OK)
        statistic(environment, text), count++;
    CHECK(count > 60);
    OK(rukh_environment_memory_info(environment, 0, &value, &total, &error));
    CHECK(value <= total && total > 0);
    CHECK(statistic(environment, "allocated_bytes.all.current") == 0);
    OK(rukh_environment_memory_record_history(environment, 0, 10, &error));
    OK(rukh_environment_memory_snapshot(environment, 0, text, sizeof text, &needed, &error));
    CHECK(strcmp(text, "[]") == 0);
    OK(rukh_environment_memory_reset_peaks(environment, 0, &error));
    OK(rukh_environment_memory_empty_cache(environment, 0, &error));
}

/* The limit of plans of Fourier transforms; python/tests/test_device.py makes some. */
static void fourier_plans(rukh_environment *environment) {
    size_t count = 9, limit = 0;
    OK(rukh_environment_fourier_plans(environment, 0, &count, &limit, &error));
    CHECK(count == 0 && limit == 4096);
    OK(rukh_environment_set_fourier_plan_limit(environment, 0, 7, &error));
    OK(rukh_environment_clear_fourier_plans(environment, 0, &error));
    OK(rukh_environment_fourier_plans(environment, 0, &count, &limit, &error));
    CHECK(count == 0 && limit == 7);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device_id 99 is not there",
          rukh_environment_fourier_plans(environment, 99, &count, &limit, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "count", rukh_environment_fourier_plans(environment, 0, NULL, &limit, &error));
}

/* Tensors on the device as inputs and outputs of a run: y = a + a, z = a * a. */
static void tensors(rukh_environment *environment) {
    enum { COUNT = 1000 };
    static float data[COUNT];
    const int64_t shape[] = {COUNT};
    rukh_session_options *options;
    rukh_session *session;
    rukh_io_binding *binding;
    rukh_value *host, *a, *outputs[2];
    const float *result;
    const void *pointer;
    int32_t on_device;
    uint64_t address;
    size_t i, device;
    const char *names[2];
    for (i = 0; i < COUNT; i++) data[i] = (float)i;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "fallback", "error", &error));
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    rukh_session_options_destroy(options);
    host = floats(data, COUNT);
    OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &a, &error));
    OK(rukh_value_device(a, &on_device, &device, &address, &error));
    CHECK(on_device == 1 && device == 0 && address != 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "in device memory", rukh_value_data(a, &pointer, NULL, &error));
    OK(rukh_value_copy(host, a, &error));
    OK(rukh_io_binding_create(session, &binding, &error));
    for (i = 0; i < 2; i++) {
        OK(rukh_session_input_name(session, i, &names[0], &error));
        OK(rukh_session_output_name(session, i, &names[1], &error));
        OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &outputs[i], &error));
        OK(rukh_io_binding_bind_input(binding, names[0], a, &error));
        OK(rukh_io_binding_bind_output(binding, names[1], outputs[i], &error));
    }
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    for (i = 0; i < 2; i++) {
        size_t k;
        OK(rukh_value_copy(outputs[i], host, &error));
        OK(rukh_value_data(host, &pointer, NULL, &error));
        result = pointer;
        for (k = 0; k < COUNT; k++) CHECK(result[k] == (i == 0 ? 2 * data[k] : data[k] * data[k]));
    }
    /* An output in its input's own memory. */
    OK(rukh_io_binding_bind_output(binding, names[1], a, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_value_copy(a, host, &error));
    CHECK(floats_of(host, COUNT)[7] == 49.0f);
    rukh_io_binding_destroy(binding);
    rukh_session_destroy(session);
    rukh_value_destroy(host);
    rukh_value_destroy(a);
    for (i = 0; i < 2; i++) rukh_value_destroy(outputs[i]);
}

static void count_release(void *data, void *user) {
    (void)data;
    ++*(int *)user;
}

/* A snapshot is as long as the call before said, also when events are recorded; whoever hands memory over with a
   deleter loses it on failure too. */
static void contracts(rukh_environment *environment) {
    enum { ROOM = 1 << 20 };
    const int64_t shape[] = {4};
    static float data[4];
    rukh_value *value;
    size_t needed, again;
    int released = 0;
    char *text = malloc(ROOM);
    CHECK(text != NULL);
    OK(rukh_environment_memory_record_history(environment, 0, 100, &error));
    OK(rukh_environment_memory_snapshot(environment, 0, NULL, 0, &needed, &error));
    CHECK(needed <= ROOM);
    OK(rukh_environment_memory_snapshot(environment, 0, text, needed, &again, &error));
    CHECK(again == needed && strlen(text) + 1 == needed);
    OK(rukh_environment_memory_record_history(environment, 0, 0, &error));
    free(text);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "bytes: 7",
          rukh_value_create_device_tensor_over(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, data, 7, count_release,
                                               &released, &value, &error));
    CHECK(value == NULL && released == 1);
}

/* DLPack shares device memory; what must not be written is copied there. */
static void dlpack(rukh_environment *environment) {
    static float data[] = {1, 2, 3};
    const int64_t shape[] = {3};
    rukh_value *host = floats(data, 3), *device, *other;
    struct DLManagedTensorVersioned *managed;
    struct DLManagedTensor *legacy;
    uint64_t address, there;
    int32_t on_device, kind;
    size_t number;
    OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &device, &error));
    OK(rukh_value_copy(host, device, &error));
    OK(rukh_value_device(device, &on_device, &number, &address, &error));
    OK(rukh_value_to_dlpack_legacy(device, &legacy, &error));
    kind = legacy->tensor.device.device_type;
    CHECK(kind == 10 || kind == 2);
    CHECK(legacy->tensor.device.device_id == 0 && (uint64_t)(uintptr_t)legacy->tensor.data == address);
    OK(rukh_value_from_dlpack_legacy(legacy, &other, &error));
    OK(rukh_value_device(other, &on_device, &number, &there, &error));
    CHECK(on_device == 1 && there == address);
    rukh_value_destroy(other);

    OK(rukh_value_to_dlpack(device, &managed, &error));
    managed->tensor.device.device_type = 7;
    FAILS(RUKH_ERROR_UNSUPPORTED, "device type 7", rukh_value_from_dlpack(managed, &other, &error));
    /* The other GPU platform's. */
    managed->tensor.device.device_type = 12 - kind;
    FAILS(RUKH_ERROR_UNSUPPORTED, "is reached by", rukh_value_from_dlpack(managed, &other, &error));
    managed->tensor.device.device_type = kind;
    managed->tensor.strides[0] = 2;
    FAILS(RUKH_ERROR_UNSUPPORTED, "row-major order", rukh_value_from_dlpack(managed, &other, &error));
    managed->tensor.strides[0] = 1;
    managed->flags = 1;
    OK(rukh_value_from_dlpack(managed, &other, &error));
    OK(rukh_value_device(other, &on_device, &number, &there, &error));
    CHECK(on_device == 1 && there != address);
    rukh_value_destroy(device);
    memset(data, 0, sizeof data);
    OK(rukh_value_copy(other, host, &error));
    CHECK(floats_of(host, 3)[2] == 3.0f);
    rukh_value_destroy(other);
    rukh_value_destroy(host);
}

/* A session of add.onnx on the device alone, with one option of the provider. */
static rukh_session *opened(rukh_environment *environment, const char *key, const char *value, int shared) {
    rukh_session_options *options;
    rukh_session *session;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "fallback", "error", &error));
    OK(rukh_session_options_set(options, "use_env_allocators", shared ? "1" : "0", &error));
    OK(rukh_session_options_add_provider(options, "hip", &key, &value, 1, &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    rukh_session_options_destroy(options);
    return session;
}

/* sum = a + a over many runs, whose results must not depend on how the device is given its work: with graphs,
   with copies apart, queued, in a stream of the run's, in an arena that is shared. */
static void ways(rukh_environment *environment) {
    enum { COUNT = 1000, RUNS = 6 };
    static const struct { const char *key, *value; int shared; } all[] = {
        {"do_copy_in_default_stream", "1", 0}, {"do_copy_in_default_stream", "0", 0},
        {"enable_hip_graph", "1", 0},          {"gpu_mem_limit", "100000", 1},
        {"has_user_compute_stream", "1", 0},
    };
    static float data[COUNT];
    const int64_t shape[] = {COUNT};
    size_t way, i, k;
    for (i = 0; i < COUNT; i++) data[i] = (float)i;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "max_mem", rukh_environment_create_arena(environment, 0, "max=1", &error));
    OK(rukh_environment_create_arena(environment, 0, "max_mem=1048576;arena_extend_strategy=1", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "already", rukh_environment_create_arena(environment, 0, NULL, &error));
    for (way = 0; way < sizeof all / sizeof *all; way++) {
        rukh_session *session = opened(environment, all[way].key, all[way].value, all[way].shared);
        rukh_io_binding *binding;
        rukh_run_options *options;
        rukh_value *input, *output, *host = floats(data, COUNT), *device_input;
        uint64_t event;
        int32_t done;
        OK(rukh_run_options_create(&options, &error));
        OK(rukh_run_options_set(options, "compute_stream", "0", &error));
        OK(rukh_io_binding_create(session, &binding, &error));
        OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &output, &error));
        OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, shape, 1, &device_input, &error));
        for (i = 0; i < RUNS; i++) {
            rukh_completion *completion = NULL;
            const float *result;
            for (k = 0; k < COUNT; k++) data[k] = (float)(k + i);
            input = floats(data, COUNT);
            if (i % 2) OK(rukh_value_copy(input, device_input, &error));
            OK(rukh_io_binding_bind_input(binding, "a", i % 2 ? device_input : input, &error));
            OK(rukh_io_binding_bind_input(binding, "b", i % 2 ? device_input : input, &error));
            OK(rukh_io_binding_bind_output(binding, "sum", output, &error));
            if (i < 4) {
                OK(rukh_io_binding_run_queued(binding, i < 2 ? NULL : options, &completion, &error));
                OK(rukh_completion_event(completion, &event, &error));
                CHECK(event != 0);
                OK(rukh_completion_is_done(completion, &done, &error));
                OK(rukh_completion_wait(completion, &error));
                OK(rukh_completion_is_done(completion, &done, &error));
                CHECK(done == 1);
                rukh_completion_destroy(completion);
            } else {
                OK(rukh_io_binding_bind_output(binding, "sum", host, &error));
                OK(rukh_io_binding_run(binding, NULL, &error));
            }
            if (i < 4) OK(rukh_value_copy(output, host, &error));
            result = floats_of(host, COUNT);
            for (k = 0; k < COUNT; k++) CHECK(result[k] == 2 * data[k]);
            rukh_value_destroy(input);
        }
        rukh_run_options_destroy(options);
        rukh_io_binding_destroy(binding);
        rukh_session_destroy(session);
        rukh_value_destroy(output);
        rukh_value_destroy(device_input);
        rukh_value_destroy(host);
    }
    CHECK(statistic(environment, "Limit") >= 1048576);
}

/* What tuning finds is given as text and taken again; a text that does not hold here is left alone. */
static void tuning(rukh_environment *environment) {
    const float x[] = {1, 2, 3, 4, -1, 0, 1, 0};
    const int64_t shape[] = {2, 4};
    const char *keys[] = {"tunable_op_enable", "tunable_op_tuning_enable"}, *values[] = {"1", "1"};
    const char *names[] = {"x"};
    rukh_session_options *options;
    rukh_session *session;
    rukh_value *input, *output;
    char *text, *again;
    size_t needed, needed_again, taken = 0, results = 0;
    const char *at;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_provider(options, "hip", keys, values, 2, &error));
    OK(rukh_session_create(environment, model_path("linear"), options, &session, &error));
    rukh_session_options_destroy(options);
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, x, sizeof x, &input, &error));
    OK(rukh_session_run(session, NULL, names, (const rukh_value *const *)&input, 1, NULL, 1, &output, &error));
    OK(rukh_session_tuning_results(session, NULL, 0, &needed, &error));
    text = (char *)malloc(needed);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "bytes are too few",
          rukh_session_tuning_results(session, text, 4, NULL, &error));
    OK(rukh_session_tuning_results(session, text, needed, NULL, &error));
    CHECK(strlen(text) + 1 == needed && strncmp(text, "rukh tuning results ", 20) == 0);
    for (at = text; (at = strstr(at, "\nresult ")) != NULL; at++) results++;
    OK(rukh_session_add_tuning_results(session, text, &taken, &error));
    CHECK(taken == results);
    OK(rukh_session_add_tuning_results(session, "", &taken, &error));
    CHECK(taken == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "UTF-8", rukh_session_add_tuning_results(session, "\xff", NULL, &error));
    OK(rukh_session_add_tuning_results(session, text + 1, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "text", rukh_session_add_tuning_results(session, NULL, NULL, &error));
    rukh_value_destroy(output);
    OK(rukh_session_run(session, NULL, names, (const rukh_value *const *)&input, 1, NULL, 1, &output, &error));
    OK(rukh_session_tuning_results(session, NULL, 0, &needed_again, &error));
    again = (char *)malloc(needed_again);
    OK(rukh_session_tuning_results(session, again, needed_again, NULL, &error));
    CHECK(needed == needed_again && strcmp(text, again) == 0);
    free(text);
    free(again);
    rukh_value_destroy(input);
    rukh_value_destroy(output);
    rukh_session_destroy(session);
}

int main(int argc, char **argv) {
    rukh_environment *environment = new_environment("1");
    char reason[1024];
    size_t needed;
    if (argc > 1) model_folder = argv[1];
    OK(rukh_environment_provider_reason(environment, "hip", reason, sizeof reason, &needed, &error));
    if (reason[0] == '\0') {
        with(environment);
        fourier_plans(environment);
        tensors(environment);
        contracts(environment);
        dlpack(environment);
        ways(environment);
        tuning(environment);
    } else {
        without(environment);
        wanted_in_vain();
    }
    rukh_environment_destroy(environment);
    return 0;
}
