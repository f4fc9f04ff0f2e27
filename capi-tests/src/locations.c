/* Outputs, tensors and copies where a device handle says, with a GPU and without one. */

#include "check.h"

static rukh_environment *environment;

static rukh_device *device_named(const char *provider) {
    rukh_device *device;
    OK(rukh_environment_find_device(environment, provider, 0, &device, &error));
    return device;
}

static rukh_memory_kind kind_of(const rukh_value *value) {
    rukh_memory_kind kind;
    size_t device = 99;
    OK(rukh_value_memory_kind(value, &kind, &device, &error));
    CHECK(device == 0);
    return kind;
}

/* The elements of a tensor of `count` floats, wherever it is. */
static const float *read(const rukh_value *value, int64_t count) {
    static float data[64];
    const int64_t shape[] = {count};
    rukh_value *host;
    CHECK(count <= 64);
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, shape, 1, &host, &error));
    OK(rukh_value_copy(value, host, &error));
    memcpy(data, floats_of(host, (size_t)count), (size_t)count * sizeof *data);
    rukh_value_destroy(host);
    return data;
}

/* What holds on every machine: the CPU is a device, too. */
static void on_the_cpu(void) {
    const float ones[] = {1, 1};
    const int64_t two[] = {2};
    rukh_device *cpu = device_named("CPUExecutionProvider"), *device;
    rukh_session *session = open_model(environment, "add"), *strings = open_model(environment, "strings");
    rukh_value *a = floats(ones, 2), *value, *texts, *outputs[1];
    const rukh_value *inputs[2];
    rukh_io_binding *binding;
    rukh_run_options *options;
    rukh_completion *completion;
    rukh_stream *stream;
    rukh_memory_kind kind;
    const char *provider, *name;
    char text[32];
    int32_t done;
    size_t id = 99;
    OK(rukh_device_id(cpu, &id, &error));
    CHECK(id == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"tpu\" is not known",
          rukh_environment_find_device(environment, "tpu", 0, &device, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "the CPU is one device",
          rukh_environment_find_device(environment, "cpu", 1, &device, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL is not allowed",
          rukh_environment_find_device(environment, NULL, 0, &device, &error));
    OK(rukh_session_device(session, &device, &error));
    OK(rukh_device_provider(device, &provider, &error));
    CHECK(strcmp(provider, "cpu") == 0);
    rukh_device_destroy(device);

    OK(rukh_value_create_tensor_in(cpu, RUKH_MEMORY_DEVICE, RUKH_ELEMENT_FLOAT, two, 1, &value, &error));
    CHECK(kind_of(value) == RUKH_MEMORY_HOST && floats_of(value, 2)[1] == 0);
    OK(rukh_value_create_tensor_in(cpu, RUKH_MEMORY_HOST, RUKH_ELEMENT_STRING, two, 1, &texts, &error));
    CHECK(kind_of(texts) == RUKH_MEMORY_HOST);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "pinned for a GPU",
          rukh_value_create_tensor_in(cpu, RUKH_MEMORY_PINNED, RUKH_ELEMENT_FLOAT, two, 1, &outputs[0], &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "kind: 3",
          rukh_value_create_tensor_in(cpu, 3, RUKH_ELEMENT_FLOAT, two, 1, &outputs[0], &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "element type 77",
          rukh_value_create_tensor_in(cpu, RUKH_MEMORY_HOST, 77, two, 1, &outputs[0], &error));
    CHECK(outputs[0] == NULL);

    /* Between tensors of the host a queued copy is done at once. */
    OK(rukh_value_copy_queued(a, value, 0, &completion, &error));
    CHECK(floats_of(value, 2)[1] == 1);
    OK(rukh_completion_is_done(completion, &done, &error));
    OK(rukh_completion_wait(completion, &error));
    CHECK(done == 1);
    rukh_completion_destroy(completion);
    OK(rukh_value_copy_queued(a, value, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "must be equal", rukh_value_copy_queued(a, texts, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "strings", rukh_value_copy_queued(texts, texts, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_value_copy_queued(a, NULL, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "no streams", rukh_stream_create(cpu, &stream, &error));
    CHECK(stream == NULL);
    rukh_stream_destroy(NULL);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "a rukh_stream is needed", rukh_stream_wait((rukh_stream *)a, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "a rukh_stream is needed", rukh_stream_wait_for((rukh_stream *)a, NULL, &error));

    /* An output that is wanted in the memory of the CPU. */
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "a", a, &error));
    OK(rukh_io_binding_bind_input(binding, "b", a, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "sum", cpu, RUKH_MEMORY_DEVICE, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"total\"",
          rukh_io_binding_bind_output_allocated_in(binding, "total", cpu, RUKH_MEMORY_DEVICE, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "pinned for a GPU",
          rukh_io_binding_bind_output_allocated_in(binding, "sum", cpu, RUKH_MEMORY_PINNED, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "a rukh_device is needed",
          rukh_io_binding_bind_output_allocated_in(binding, "sum", (rukh_device *)a, RUKH_MEMORY_DEVICE, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_output(binding, "sum", &outputs[0], &error));
    CHECK(floats_of(outputs[0], 2)[0] == 2);
    rukh_value_destroy(outputs[0]);
    rukh_io_binding_destroy(binding);

    /* No GPU runs this session: its outputs come to the host, whatever the option says. */
    OK(rukh_run_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed are host, device and pinned",
          rukh_run_options_set(options, "output_memory", "gpu", &error));
    inputs[0] = inputs[1] = a;
    for (name = "device"; name != NULL; name = strcmp(name, "device") == 0 ? "pinned" : NULL) {
        OK(rukh_run_options_set(options, "output_memory", name, &error));
        OK(rukh_run_options_get(options, "output_memory", text, sizeof text, NULL, &error));
        CHECK(strcmp(text, name) == 0);
        OK(rukh_session_run(session, options, NULL, inputs, 2, NULL, 1, outputs, &error));
        CHECK(kind_of(outputs[0]) == RUKH_MEMORY_HOST && floats_of(outputs[0], 2)[0] == 2);
        rukh_value_destroy(outputs[0]);
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL is not allowed", rukh_value_memory_kind(a, NULL, NULL, &error));
    OK(rukh_value_memory_kind(a, &kind, NULL, &error));
    rukh_run_options_destroy(options);
    rukh_session_destroy(session);
    rukh_session_destroy(strings);
    rukh_value_destroy(a);
    rukh_value_destroy(value);
    rukh_value_destroy(texts);
    rukh_device_destroy(cpu);
}

static rukh_session *opened(const char *model, int graphs) {
    const char *key = "enable_hip_graph", *value = graphs ? "1" : "0";
    rukh_session_options *options;
    rukh_session *session;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_provider(options, "hip", &key, &value, 1, &error));
    OK(rukh_session_options_add_provider(options, "cpu", NULL, NULL, 0, &error));
    OK(rukh_session_create(environment, model_path(model), options, &session, &error));
    rukh_session_options_destroy(options);
    return session;
}

/* A cache that grows on the GPU from run to run, and a value whose shape only the run knows. */
static void growing(rukh_device *gpu, int graphs) {
    const float first[] = {1, 0, 2};
    rukh_session *session = opened("grow", graphs);
    rukh_value *past = floats(first, 1), *new_ones = floats(first, 3), *present, *twice;
    rukh_io_binding *binding;
    const float *data;
    int64_t length = 1;
    int step, repeat;
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "new", new_ones, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "present", gpu, RUKH_MEMORY_DEVICE, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "twice", gpu, RUKH_MEMORY_DEVICE, &error));
    for (step = 0; step < 5; step++) {
        OK(rukh_io_binding_bind_input(binding, "past", past, &error));
        /* The same shapes again are replayed; each run's output is memory of its own. */
        for (repeat = 0; repeat < 3; repeat++) {
            OK(rukh_io_binding_run(binding, NULL, &error));
            OK(rukh_io_binding_output(binding, "present", &present, &error));
            CHECK(kind_of(present) == RUKH_MEMORY_DEVICE);
            data = read(present, length + 3);
            CHECK(data[0] == 1 && data[length] == 1 && data[length + 1] == 0 && data[length + 2] == 2);
            if (repeat < 2) rukh_value_destroy(present);
        }
        rukh_value_destroy(past);
        past = present;
        length += 3;
        OK(rukh_io_binding_output(binding, "twice", &twice, &error));
        CHECK(kind_of(twice) == RUKH_MEMORY_DEVICE);
        {
            const int64_t flat[] = {2};
            rukh_value *reshaped;
            OK(rukh_value_reshape(twice, flat, 1, &reshaped, &error));
            CHECK(read(reshaped, 2)[1] == 4);
            rukh_value_destroy(reshaped);
        }
        rukh_value_destroy(twice);
    }
    rukh_io_binding_destroy(binding);
    rukh_session_destroy(session);
    /* An output outlives its session. */
    CHECK(read(past, length)[length - 1] == 2);
    rukh_value_destroy(past);
    rukh_value_destroy(new_ones);
}

/* The option of a run, a session on the CPU whose outputs are wanted on the GPU, and what cannot be there. */
static void wherever(rukh_device *gpu) {
    static const struct { const char *name; rukh_memory_kind kind; } all[] = {
        {"host", RUKH_MEMORY_HOST}, {"device", RUKH_MEMORY_DEVICE}, {"pinned", RUKH_MEMORY_PINNED}};
    const float ones[] = {1, 2, 3};
    rukh_session *session = opened("add", 1), *on_cpu = open_model(environment, "add");
    rukh_value *a = floats(ones, 3), *outputs[2];
    const rukh_value *inputs[2];
    rukh_run_options *options;
    rukh_io_binding *binding;
    rukh_device *used;
    const char *provider;
    size_t i;
    int run;
    inputs[0] = inputs[1] = a;
    OK(rukh_session_device(session, &used, &error));
    OK(rukh_device_provider(used, &provider, &error));
    CHECK(strcmp(provider, "hip") == 0);
    rukh_device_destroy(used);
    OK(rukh_run_options_create(&options, &error));
    for (i = 0; i < COUNT_OF(all); i++) {
        OK(rukh_run_options_set(options, "output_memory", all[i].name, &error));
        for (run = 0; run < 3; run++) {
            OK(rukh_session_run(session, options, NULL, inputs, 2, NULL, 2, outputs, &error));
            CHECK(kind_of(outputs[0]) == all[i].kind && kind_of(outputs[1]) == all[i].kind);
            CHECK(read(outputs[0], 3)[2] == 6 && read(outputs[1], 3)[2] == 9);
            if (all[i].kind == RUKH_MEMORY_PINNED) CHECK(floats_of(outputs[1], 3)[0] == 1);
            rukh_value_destroy(outputs[0]);
            rukh_value_destroy(outputs[1]);
        }
    }
    rukh_run_options_destroy(options);
    OK(rukh_io_binding_create(on_cpu, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "a", a, &error));
    OK(rukh_io_binding_bind_input(binding, "b", a, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "sum", gpu, RUKH_MEMORY_DEVICE, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "product", gpu, RUKH_MEMORY_PINNED, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_output(binding, "sum", &outputs[0], &error));
    OK(rukh_io_binding_output(binding, "product", &outputs[1], &error));
    CHECK(kind_of(outputs[0]) == RUKH_MEMORY_DEVICE && read(outputs[0], 3)[2] == 6);
    CHECK(kind_of(outputs[1]) == RUKH_MEMORY_PINNED && read(outputs[1], 3)[2] == 9);
    rukh_io_binding_destroy(binding);
    rukh_value_destroy(outputs[0]);
    rukh_value_destroy(outputs[1]);
    rukh_value_destroy(a);
    rukh_session_destroy(session);
    rukh_session_destroy(on_cpu);
}

/* Copies, a queued run and its output, all in one stream of the library's. */
static void in_a_stream(rukh_device *gpu) {
    enum { COUNT = 64 };
    const int64_t shape[] = {COUNT};
    rukh_session *session = opened("add", 1);
    rukh_value *pinned, *a, *sum, *back;
    rukh_io_binding *binding;
    rukh_run_options *options;
    rukh_completion *copied, *ran;
    rukh_stream *stream;
    uint64_t address, event;
    void *data;
    char text[32];
    int step, i;
    OK(rukh_stream_create(gpu, &stream, &error));
    OK(rukh_stream_address(stream, &address, &error));
    CHECK(address != 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL is not allowed", rukh_stream_address(stream, NULL, &error));
    OK(rukh_run_options_create(&options, &error));
    snprintf(text, sizeof text, "%llu", (unsigned long long)address);
    OK(rukh_run_options_set(options, "compute_stream", text, &error));
    OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_PINNED, RUKH_ELEMENT_FLOAT, shape, 1, &pinned, &error));
    OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_PINNED, RUKH_ELEMENT_FLOAT, shape, 1, &back, &error));
    OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_DEVICE, RUKH_ELEMENT_FLOAT, shape, 1, &a, &error));
    CHECK(kind_of(pinned) == RUKH_MEMORY_PINNED && kind_of(a) == RUKH_MEMORY_DEVICE);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "strings cannot be",
          rukh_value_create_tensor_in(gpu, RUKH_MEMORY_DEVICE, RUKH_ELEMENT_STRING, shape, 1, &sum, &error));
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "a", a, &error));
    OK(rukh_io_binding_bind_input(binding, "b", a, &error));
    OK(rukh_io_binding_bind_output_allocated_in(binding, "sum", gpu, RUKH_MEMORY_DEVICE, &error));
    for (step = 0; step < 4; step++) {
        OK(rukh_value_data_mut(pinned, &data, NULL, &error));
        for (i = 0; i < COUNT; i++) ((float *)data)[i] = (float)(i + step);
        OK(rukh_value_copy_queued(pinned, a, address, step % 2 ? NULL : &copied, &error));
        OK(rukh_io_binding_run_queued(binding, options, &ran, &error));
        OK(rukh_io_binding_output(binding, "sum", &sum, &error));
        CHECK(kind_of(sum) == RUKH_MEMORY_DEVICE);
        OK(rukh_value_copy_queued(sum, back, address, NULL, &error));
        OK(rukh_stream_wait(stream, &error));
        CHECK(floats_of(back, COUNT)[7] == (float)(2 * (7 + step)));
        if (step % 2 == 0) {
            OK(rukh_completion_event(copied, &event, &error));
            CHECK(event != 0);
            OK(rukh_completion_wait(copied, &error));
            rukh_completion_destroy(copied);
        }
        OK(rukh_completion_wait(ran, &error));
        rukh_completion_destroy(ran);
        rukh_value_destroy(sum);
    }
    rukh_run_options_destroy(options);
    rukh_io_binding_destroy(binding);
    rukh_session_destroy(session);
    rukh_value_destroy(pinned);
    rukh_value_destroy(back);
    rukh_value_destroy(a);
    rukh_stream_destroy(stream);
}

/* Work in one stream that waits for work in another, and a host that waits for either. */
static void in_two_streams(rukh_device *gpu) {
    enum { COUNT = 4096, STEPS = 6 };
    const int64_t shape[] = {COUNT};
    rukh_value *pinned[STEPS], *first, *second, *back[STEPS];
    rukh_stream *one, *other;
    rukh_completion *written, *read_back, *copied;
    uint64_t addresses[2];
    void *data;
    int32_t done = 0;
    int step, i;
    OK(rukh_stream_create(gpu, &one, &error));
    OK(rukh_stream_create(gpu, &other, &error));
    OK(rukh_stream_address(one, &addresses[0], &error));
    OK(rukh_stream_address(other, &addresses[1], &error));
    OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_DEVICE, RUKH_ELEMENT_FLOAT, shape, 1, &first, &error));
    OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_DEVICE, RUKH_ELEMENT_FLOAT, shape, 1, &second, &error));
    /* Nothing was given to the stream yet. */
    OK(rukh_stream_record(one, &written, &error));
    OK(rukh_completion_wait(written, &error));
    OK(rukh_completion_is_done(written, &done, &error));
    CHECK(done == 1);
    OK(rukh_stream_wait_for(other, written, &error));
    rukh_completion_destroy(written);
    read_back = NULL;
    for (step = 0; step < STEPS; step++) {
        OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_PINNED, RUKH_ELEMENT_FLOAT, shape, 1, &pinned[step], &error));
        OK(rukh_value_create_tensor_in(gpu, RUKH_MEMORY_PINNED, RUKH_ELEMENT_FLOAT, shape, 1, &back[step], &error));
        OK(rukh_value_data_mut(pinned[step], &data, NULL, &error));
        for (i = 0; i < COUNT; i++) ((float *)data)[i] = (float)(i + step);
        if (read_back != NULL) {
            /* What is read in the other stream is not overwritten before. */
            OK(rukh_stream_wait_for(one, read_back, &error));
            rukh_completion_destroy(read_back);
        }
        OK(rukh_value_copy_queued(pinned[step], first, addresses[0], NULL, &error));
        OK(rukh_stream_record(one, &written, &error));
        OK(rukh_stream_wait_for(other, written, &error));
        rukh_completion_destroy(written);
        OK(rukh_value_copy_queued(first, second, addresses[1], NULL, &error));
        OK(rukh_value_copy_queued(second, back[step], addresses[1], &copied, &error));
        /* A copy is as good as a mark; a stream may wait for itself. */
        OK(rukh_stream_wait_for(one, copied, &error));
        OK(rukh_stream_wait_for(other, copied, &error));
        rukh_completion_destroy(copied);
        OK(rukh_stream_record(other, &read_back, &error));
    }
    OK(rukh_completion_wait(read_back, &error));
    for (step = 0; step < STEPS; step++) {
        CHECK(floats_of(back[step], COUNT)[COUNT - 1] == (float)(COUNT - 1 + step));
        rukh_value_destroy(pinned[step]);
        rukh_value_destroy(back[step]);
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL is not allowed", rukh_stream_record(one, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_stream_wait_for(one, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "a rukh_completion is needed",
          rukh_stream_wait_for(one, (rukh_completion *)one, &error));
    /* A mark may outlive its stream. */
    rukh_stream_destroy(other);
    OK(rukh_stream_wait_for(one, read_back, &error));
    rukh_completion_destroy(read_back);
    rukh_stream_destroy(one);
    rukh_value_destroy(first);
    rukh_value_destroy(second);
}

int main(int argc, char **argv) {
    char reason[1024];
    rukh_device *gpu;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    on_the_cpu();
    OK(rukh_environment_provider_reason(environment, "hip", reason, sizeof reason, NULL, &error));
    if (reason[0] == '\0') {
        gpu = device_named("hip");
        growing(gpu, 0);
        growing(gpu, 1);
        wherever(gpu);
        in_a_stream(gpu);
        in_two_streams(gpu);
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device_id 99 is not there",
              rukh_environment_find_device(environment, "hip", 99, &gpu, &error));
    } else {
        FAILS(RUKH_ERROR_DEVICE, "no HIP device", rukh_environment_find_device(environment, "hip", 0, &gpu, &error));
    }
    rukh_environment_destroy(environment);
    return 0;
}
