/* Operators on a GPU whose work may be captured: their kernels are recorded with the others, and replayed without
 * being called. Arguments as for operators_gpu. */

#include "operators_gpu.h"

static rukh_environment *environment;
static runtime hip;

enum { BUFFERS = 3 };

/* What the models make of a row. */
static void between(const float *x, float *y) {
    const float a = 2 * (x[0] + 2 * x[1]), b = 2 * (-x[0] + 0.5f * x[1]);
    y[0] = (a > 0 ? a : 0) + 10;
    y[1] = (b > 0 ? b : 0) + 20;
}

static void edges(const float *x, float *y) {
    y[0] = x[0] > 0 ? 10 * x[0] : 0;
    y[1] = x[1] > 0 ? 10 * x[1] : 0;
}

static const struct {
    const char *name;
    void (*expected)(const float *x, float *y);
} models[] = {{"operators", between}, {"operators_edges", edges}};

static rukh_session *open_with(const char *model, int capturable) {
    rukh_operator *operator= scale(&hip);
    rukh_session_options *options;
    rukh_session *session;
    created = destroyed = prepared = computed = 0;
    if (capturable) OK(rukh_operator_set_capturable(operator, 1, &error));
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    OK(rukh_session_options_set(options, "fallback", "error", &error));
    OK(rukh_session_create(environment, model_path(model), options, &session, &error));
    rukh_session_options_destroy(options);
    CHECK(created == 2);
    return session;
}

static void close_session(rukh_session *session) {
    rukh_session_destroy(session);
    CHECK(created == destroyed);
}

/* Runs on rows of data that differ each time. */
static void run(rukh_session *session, size_t model, int64_t rows) {
    static float number;
    const char *in = "x", *out = "y";
    int64_t dims[2], i;
    rukh_value *x, *y;
    void *data;
    const float *found;
    dims[0] = rows;
    dims[1] = 2;
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, dims, 2, &x, &error));
    OK(rukh_value_data_mut(x, &data, NULL, &error));
    for (i = 0; i < 2 * rows; i++) ((float *)data)[i] = (float)(i % 5) - number;
    number = number > 4 ? -3 : number + 1;
    OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
    found = floats_of(y, (size_t)rows * 2);
    for (i = 0; i < rows; i++) {
        float expected[2];
        models[model].expected((const float *)data + 2 * i, expected);
        CHECK(found[2 * i] == expected[0] && found[2 * i + 1] == expected[1]);
    }
    rukh_value_destroy(x);
    rukh_value_destroy(y);
}

/* How often the kernels are called. */
static void calls(size_t model) {
    rukh_session *session = open_with(models[model].name, 1);
    int i;
    for (i = 0; i < 6; i++) run(session, model, 1);
    /* In the first run, and when the second was recorded. */
    CHECK(computed == 4 && prepared == 2);
    for (i = 0; i < 6; i++) run(session, model, 100);
    CHECK(computed == 8 && prepared == 4);
    /* The larger run took other memory, and what was recorded for the smaller one went. */
    for (i = 0; i < 3; i++) run(session, model, 1);
    CHECK(computed == 12);
    for (i = 0; i < 6; i++) run(session, model, i % 2 ? 1 : 100);
    CHECK(computed == 12);
    close_session(session);
    /* Who does not say it is called in each run. */
    session = open_with(models[model].name, 0);
    for (i = 0; i < 6; i++) run(session, model, 1);
    CHECK(computed == 12);
    close_session(session);
}

/* A kernel that says that its work may be captured, where it may not. */
static void false_promises(size_t model) {
    rukh_session *session = open_with(models[model].name, 1);
    int i;
    also = WAIT_FOR_THE_STREAM;
    for (i = 0; i < 6; i++) run(session, model, 1);
    /* Recording failed once. */
    CHECK(computed > 12 && computed <= 14);
    also = NOTHING_ELSE;
    close_session(session);
    session = open_with(models[model].name, 1);
    also = FAIL_THE_THIRD_TIME;
    for (i = 0; i < 6; i++) run(session, model, 1);
    CHECK(computed == 13);
    also = NOTHING_ELSE;
    close_session(session);
}

static rukh_value *on_device(void) {
    const int64_t dims[] = {1, 2};
    rukh_value *made;
    OK(rukh_value_create_device_tensor(environment, 0, RUKH_ELEMENT_FLOAT, dims, 2, &made, &error));
    return made;
}

static void set(rukh_value *tensor, float first, float second) {
    const int64_t dims[] = {1, 2};
    float data[2];
    rukh_value *host;
    data[0] = first;
    data[1] = second;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, dims, 2, data, sizeof data, &host, &error));
    OK(rukh_value_copy(host, tensor, &error));
    rukh_value_destroy(host);
}

static void check(const rukh_value *tensor, size_t model, float first, float second) {
    const int64_t dims[] = {1, 2};
    float x[2], expected[2];
    const float *found;
    rukh_value *host;
    x[0] = first;
    x[1] = second;
    models[model].expected(x, expected);
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, dims, 2, &host, &error));
    OK(rukh_value_copy(tensor, host, &error));
    found = floats_of(host, 2);
    CHECK(found[0] == expected[0] && found[1] == expected[1]);
    rukh_value_destroy(host);
}

/* Buffers of the caller's that change from run to run: what was recorded holds the addresses of others. */
static void moving(size_t model) {
    rukh_session *session = open_with(models[model].name, 1);
    rukh_value *x[BUFFERS], *y[BUFFERS];
    rukh_io_binding *binding;
    size_t i;
    OK(rukh_io_binding_create(session, &binding, &error));
    for (i = 0; i < BUFFERS; i++) {
        x[i] = on_device();
        y[i] = on_device();
    }
    for (i = 0; i < 30; i++) {
        /* The same, in turns, then in another order. */
        const size_t from = i < 4 ? 0 : i % BUFFERS, to = i < 4 ? 0 : (i < 18 ? i : i / 2) % BUFFERS;
        const float first = (float)(i % 7) - 2, second = (float)i;
        set(x[from], first, second);
        set(y[to], -1, -1);
        OK(rukh_io_binding_bind_input(binding, "x", x[from], &error));
        OK(rukh_io_binding_bind_output(binding, "y", y[to], &error));
        OK(rukh_io_binding_run(binding, NULL, &error));
        check(y[to], model, first, second);
        if (i == 3) CHECK(computed == 4);
    }
    CHECK(computed < 60);
    rukh_io_binding_destroy(binding);
    for (i = 0; i < BUFFERS; i++) {
        rukh_value_destroy(x[i]);
        rukh_value_destroy(y[i]);
    }
    close_session(session);
}

/* The caller captures the stream of a run itself. */
static void by_the_caller(size_t model, int capturable) {
    rukh_session *session = open_with(models[model].name, capturable);
    rukh_value *x = on_device(), *y = on_device();
    rukh_io_binding *binding;
    rukh_run_options *options;
    rukh_device *device;
    rukh_stream *stream;
    void *raw, *graph = NULL, *exec;
    uint64_t address;
    char number[32];
    int i, before;
    OK(rukh_environment_find_device(environment, "hip", 0, &device, &error));
    OK(rukh_stream_create(device, &stream, &error));
    OK(rukh_stream_address(stream, &address, &error));
    raw = (void *)(uintptr_t)address;
    snprintf(number, sizeof number, "%llu", (unsigned long long)address);
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_set(options, "compute_stream", number, &error));
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "x", x, &error));
    OK(rukh_io_binding_bind_output(binding, "y", y, &error));
    set(x, 1, 3);
    OK(rukh_io_binding_run(binding, options, &error));
    OK(rukh_stream_wait(stream, &error));
    check(y, model, 1, 3);
    before = computed;
    CHECK(hip.capture_begin(raw, 1) == 0);
    if (capturable) {
        OK(rukh_io_binding_run(binding, options, &error));
    } else {
        FAILS(RUKH_ERROR_INVALID_INPUT, "the operator does not say that its work may be; rukh_operator_set_capturable",
              rukh_io_binding_run(binding, options, &error));
    }
    CHECK(hip.capture_end(raw, &graph) == 0);
    CHECK(computed == before + (capturable ? 2 : 0));
    if (capturable) {
        CHECK(hip.graph_instantiate(&exec, graph, 0) == 0);
        for (i = 0; i < 3; i++) {
            set(x, 2, (float)i);
            set(y, -1, -1);
            CHECK(hip.graph_launch(exec, raw) == 0);
            OK(rukh_stream_wait(stream, &error));
            check(y, model, 2, (float)i);
        }
        CHECK(computed == before + 2);
        CHECK(hip.graph_exec_destroy(exec) == 0);
    }
    if (graph != NULL) CHECK(hip.graph_destroy(graph) == 0);
    set(x, 1, 3);
    OK(rukh_io_binding_run(binding, options, &error));
    OK(rukh_stream_wait(stream, &error));
    check(y, model, 1, 3);
    rukh_io_binding_destroy(binding);
    rukh_run_options_destroy(options);
    rukh_stream_destroy(stream);
    rukh_device_destroy(device);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    close_session(session);
}

int main(int argc, char **argv) {
    size_t model;
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    if (!has_device(environment, argc)) {
        rukh_environment_destroy(environment);
        return 0;
    }
    hip = load_runtime(argv[2]);
    for (model = 0; model < COUNT_OF(models); model++) {
        calls(model);
        false_promises(model);
        moving(model);
        by_the_caller(model, 1);
        by_the_caller(model, 0);
    }
    rukh_environment_destroy(environment);
    free(hip.code);
    return 0;
}
