/* Runs: only what is asked for is computed, a time-out ends one, options go by ONNX Runtime's names too. */

#include "check.h"

static rukh_environment *environment;

/* Of two outputs one refuses its data: who does not ask for it does not meet the error. */
static void asked_for(void) {
    const char *inputs_named[] = {"index", "x"}, *both[] = {"row", "twice"}, *one[] = {"twice"};
    const float numbers[] = {1, 2};
    const int64_t bad[] = {9}, good[] = {1}, count[] = {1};
    rukh_session *session = open_model(environment, "branches");
    rukh_io_binding *binding;
    const rukh_value *inputs[2];
    rukh_value *index, *right, *x = floats(numbers, 2), *outputs[2];
    int round;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, count, 1, bad, sizeof bad, &index, &error));
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, count, 1, good, sizeof good, &right, &error));
    inputs[1] = x;
    for (round = 0; round < 3; round++) {
        inputs[0] = index;
        OK(rukh_session_run(session, NULL, inputs_named, inputs, 2, one, 1, outputs, &error));
        CHECK(floats_of(outputs[0], 2)[1] == 4);
        rukh_value_destroy(outputs[0]);
        FAILS(RUKH_ERROR_INVALID_DATA, "\"look_up\"",
              rukh_session_run(session, NULL, inputs_named, inputs, 2, both, 2, outputs, &error));
        OK(rukh_session_run(session, NULL, inputs_named, inputs, 2, NULL, 0, NULL, &error));
        inputs[0] = right;
        OK(rukh_session_run(session, NULL, inputs_named, inputs, 2, both, 2, outputs, &error));
        CHECK(floats_of(outputs[0], 2)[0] == 3 && floats_of(outputs[1], 2)[1] == 4);
        rukh_value_destroy(outputs[0]);
        rukh_value_destroy(outputs[1]);
    }
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "index", index, &error));
    OK(rukh_io_binding_bind_input(binding, "x", x, &error));
    OK(rukh_io_binding_bind_output_allocated(binding, "twice", &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_bind_output_allocated(binding, "row", &error));
    FAILS(RUKH_ERROR_INVALID_DATA, "\"look_up\"", rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_clear_outputs(binding, &error));
    OK(rukh_io_binding_run(binding, NULL, &error));
    rukh_io_binding_destroy(binding);
    rukh_session_destroy(session);
    rukh_value_destroy(index);
    rukh_value_destroy(right);
    rukh_value_destroy(x);
}

static void time_out(void) {
    rukh_session *session = open_model(environment, "count");
    rukh_run_options *options;
    rukh_value *many = int64_scalar(INT64_MAX), *few = int64_scalar(3), *counted;
    const rukh_value *inputs[1];
    char text[32];
    int round;
    OK(rukh_run_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a number of milliseconds",
          rukh_run_options_set(options, "timeout_ms", "-1", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a number of milliseconds",
          rukh_run_options_set(options, "timeout_ms", "", &error));
    OK(rukh_run_options_set(options, "timeout_ms", "30", &error));
    OK(rukh_run_options_get(options, "timeout_ms", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "30") == 0);
    for (round = 0; round < 2; round++) {
        inputs[0] = many;
        FAILS(RUKH_ERROR_CANCELLED, "its time-out of 30 ms",
              rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &counted, &error));
        CHECK(counted == NULL);
        /* The time of another run is its own. */
        inputs[0] = few;
        OK(rukh_run_options_set(options, "timeout_ms", "60000", &error));
        OK(rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &counted, &error));
        CHECK(floats_of(counted, 1)[0] == 3);
        rukh_value_destroy(counted);
        OK(rukh_run_options_set(options, "timeout_ms", "30", &error));
    }
    /* Who cancels is told from the time. */
    OK(rukh_run_options_set(options, "timeout_ms", "60000", &error));
    OK(rukh_run_options_cancel(options, &error));
    inputs[0] = many;
    FAILS(RUKH_ERROR_CANCELLED, "the run was cancelled",
          rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &counted, &error));
    OK(rukh_run_options_reset(options, &error));
    OK(rukh_run_options_set(options, "timeout_ms", "0", &error));
    inputs[0] = few;
    OK(rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &counted, &error));
    rukh_value_destroy(counted);
    rukh_run_options_destroy(options);
    rukh_session_destroy(session);
    rukh_value_destroy(many);
    rukh_value_destroy(few);
}

static void by_other_names(void) {
    static const struct { const char *theirs, *value, *ours, *told; } all[] = {
        {"session.disable_cpu_ep_fallback", "1", "fallback", "error"},
        {"session.disable_cpu_ep_fallback", "0", "fallback", "cpu"},
        {"session.use_env_allocators", "0", "use_env_allocators", "0"},
        {"session.model_external_initializers_file_folder_path", "/weights", "external_data_folder", "/weights"},
        {"session.model_external_initializers_file_folder_path", "", "external_data_folder", ""},
        {"session.intra_op.allow_spinning", "0", "spinning", "0"},
        {"session.intra_op_thread_affinities", "1;1-2", "thread_affinities", "1;1,2"},
    };
    const float numbers[] = {1, 2, 3, 4};
    const int64_t shape[] = {1, 4};
    rukh_session_options *options;
    rukh_session *session;
    rukh_value *x, *y;
    const rukh_value *inputs[1];
    char text[64];
    size_t i;
    OK(rukh_session_options_create(&options, &error));
    for (i = 0; i < COUNT_OF(all); i++) {
        OK(rukh_session_options_set(options, all[i].theirs, all[i].value, &error));
        OK(rukh_session_options_get(options, all[i].ours, text, sizeof text, NULL, &error));
        CHECK(strcmp(text, all[i].told) == 0);
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed is 0 or 1",
          rukh_session_options_set(options, "session.intra_op.allow_spinning", "2", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "numbered from 1",
          rukh_session_options_set(options, "session.intra_op_thread_affinities", "0", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is not known",
          rukh_session_options_set(options, "session.no_such_entry", "1", &error));
    OK(rukh_session_options_set(options, "intra_op_threads", "2", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is for 2 threads; the session has 1",
          rukh_session_create(environment, model_path("linear"), options, &session, &error));
    OK(rukh_session_options_set(options, "intra_op_threads", "3", &error));
    OK(rukh_session_create(environment, model_path("linear"), options, &session, &error));
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, numbers, sizeof numbers, &x, &error));
    inputs[0] = x;
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &y, &error));
    CHECK(floats_of(y, 3)[2] > 0);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    asked_for();
    time_out();
    by_other_names();
    rukh_environment_destroy(environment);
    return 0;
}
