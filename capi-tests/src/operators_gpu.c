/* An operator that launches a kernel of its own on a GPU:
 *
 *   operators_gpu MODELS CODE
 *
 * CODE is kernels/scale.hip compiled for the device; RUKH_HIP_LIBRARY names the runtime (libamdhip64.so or amdhip64.dll without
 * it).
 * Without a device, or without CODE, the test says so and ends. */

#include "operators_gpu.h"
#include "placements.h"

static void run(rukh_session *session, int64_t rows, const float *row, const float *expected) {
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    int64_t dims[2], i;
    const float *found;
    void *data;
    dims[0] = rows;
    dims[1] = 2;
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, dims, 2, &x, &error));
    OK(rukh_value_data_mut(x, &data, NULL, &error));
    for (i = 0; i < rows; i++) memcpy((float *)data + 2 * i, row, 2 * sizeof(float));
    OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
    found = floats_of(y, (size_t)rows * 2);
    for (i = 0; i < 2 * rows; i++) CHECK(found[i] == expected[i % 2]);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
}

int main(int argc, char **argv) {
    rukh_environment *environment = new_environment("2");
    rukh_session_options *options;
    rukh_session *session;
    rukh_operator *operator;
    rukh_error *failure = NULL;
    rukh_value *x, *y;
    const float row[] = {1, 3}, expected[] = {24, 21};
    const int64_t dims[] = {1, 2};
    const char *in = "x", *out = "y";
    runtime hip;
    struct placements placements;
    size_t i;
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    if (!has_device(environment, argc)) {
        rukh_environment_destroy(environment);
        return 0;
    }
    hip = load_runtime(argv[2]);

    operator = scale(&hip);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    FAILS(RUKH_ERROR_UNSUPPORTED, "operator test.ops.Scale has a kernel for GPUs alone",
          rukh_session_create(environment, model_path("operators"), options, &session, &error));
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    OK(rukh_session_options_set(options, "fallback", "error", &error));
    OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
    rukh_session_options_destroy(options);
    CHECK(created == 2);
    placements = placements_of(session);
    CHECK(placements.nodes > 0 && placements.on_gpu == placements.nodes);
    for (i = 0; i < 4; i++) run(session, 1, row, expected);
    CHECK(prepared == 2 && computed == 8);
    for (i = 0; i < 4; i++) run(session, 100, row, expected);
    CHECK(prepared == 4 && computed == 16);

    also = FAIL;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, dims, 2, row, sizeof row, &x, &error));
    CHECK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &failure) == RUKH_ERROR_DEVICE);
    CHECK(strstr(rukh_error_message(failure), "(test.ops.Scale): the fan is broken") != NULL);
    rukh_error_destroy(failure);
    rukh_value_destroy(x);
    also = NOTHING_ELSE;
    run(session, 3, row, expected);

    rukh_session_destroy(session);
    CHECK(destroyed == 2);
    rukh_environment_destroy(environment);
    free(hip.code);
    return 0;
}
