/* Sessions: opening, what they tell, running, and errors that say what is wrong. */

#include "check.h"

static rukh_environment *environment;

static rukh_status check_placement(const rukh_placement *placement, void *user) {
    const char *text;
    rukh_device *device;
    rukh_placement_fact which;
    size_t id = 7;
    for (which = RUKH_PLACEMENT_NODE; which <= RUKH_PLACEMENT_REASON; which++) {
        OK(rukh_placement_text(placement, which, &text, &error));
        CHECK(text[0] != '\0');
        if (which == RUKH_PLACEMENT_PROVIDER) CHECK(strcmp(text, "cpu") == 0);
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which: 4", rukh_placement_text(placement, 4, &text, &error));
    OK(rukh_placement_device(placement, &device, &error));
    OK(rukh_device_id(device, &id, &error));
    OK(rukh_device_provider(device, &text, &error));
    CHECK(id == 0 && strcmp(text, "cpu") == 0);
    rukh_device_destroy(device);
    ++*(size_t *)user;
    return RUKH_OK;
}

/* Calls back into the session that it is told of, keeps what it must not keep, and ends it. */
static const rukh_placement *kept_placement;

static rukh_status stop(const rukh_placement *placement, void *user) {
    size_t count = 0;
    OK(rukh_session_for_each_placement((rukh_session *)user, check_placement, &count, &error));
    CHECK(count >= 1);
    kept_placement = placement;
    return RUKH_ERROR_UNSUPPORTED;
}

static void about(void) {
    rukh_session *session = open_model(environment, "linear");
    const char *name, *text, *value;
    char type[64];
    rukh_kind kind;
    rukh_element_type element;
    int64_t dims[4], rank, model_version, ir_version, opset;
    uint64_t bytes;
    size_t count, index, i;

    OK(rukh_session_input_count(session, &count, &error));
    CHECK(count == 1);
    OK(rukh_session_input_name(session, 0, &name, &error));
    CHECK(strcmp(name, "x") == 0);
    OK(rukh_session_input_index(session, "x", &index, &error));
    CHECK(index == 0);
    OK(rukh_session_input_type(session, 0, &kind, &element, &error));
    CHECK(kind == RUKH_KIND_TENSOR && element == RUKH_ELEMENT_FLOAT);
    OK(rukh_session_input_type_text(session, 0, type, sizeof type, NULL, &error));
    CHECK(strcmp(type, "tensor(float)[batch, 4]") == 0);
    OK(rukh_session_input_shape(session, 0, dims, 4, &rank, &error));
    CHECK(rank == 2 && dims[0] == -1 && dims[1] == 4);
    OK(rukh_session_input_dim_name(session, 0, 0, &name, &error));
    CHECK(strcmp(name, "batch") == 0);
    OK(rukh_session_input_dim_name(session, 0, 1, &name, &error));
    CHECK(name == NULL);
    OK(rukh_session_output_count(session, &count, &error));
    OK(rukh_session_output_name(session, 0, &name, &error));
    OK(rukh_session_output_shape(session, 0, dims, 4, &rank, &error));
    CHECK(count == 1 && strcmp(name, "y") == 0 && rank == 2 && dims[1] == 3);
    OK(rukh_session_output_type(session, 0, &kind, &element, &error));
    OK(rukh_session_output_index(session, "y", &index, &error));
    OK(rukh_session_output_dim_name(session, 0, 0, &name, &error));
    OK(rukh_session_output_type_text(session, 0, type, sizeof type, NULL, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "input \"z\" is not there; the model has x",
          rukh_session_input_index(session, "z", &index, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "axis 2 is not there",
          rukh_session_input_dim_name(session, 0, 2, &name, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "output 1", rukh_session_output_name(session, 1, &name, &error));

    OK(rukh_session_model_text(session, RUKH_MODEL_PRODUCER_NAME, &text, &error));
    CHECK(strcmp(text, "make_models") == 0);
    OK(rukh_session_model_text(session, RUKH_MODEL_GRAPH_NAME, &text, &error));
    CHECK(strcmp(text, "linear") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which: 5", rukh_session_model_text(session, 5, &text, &error));
    OK(rukh_session_model_version(session, &model_version, &ir_version, &error));
    CHECK(model_version == 3 && ir_version == 8);
    OK(rukh_session_property_count(session, &count, &error));
    CHECK(count == 2);
    OK(rukh_session_property(session, 0, &text, &value, &error));
    CHECK(strcmp(text, "author") == 0 && strcmp(value, "rukh") == 0);
    OK(rukh_session_opset_count(session, &count, &error));
    OK(rukh_session_opset(session, 0, &text, &opset, &error));
    CHECK(count == 1 && text[0] == '\0' && opset == 17);
    OK(rukh_session_placement_count(session, &count, &error));
    CHECK(count >= 1);
    i = 0;
    OK(rukh_session_for_each_placement(session, check_placement, &i, &error));
    CHECK(i == count);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "callback", rukh_session_for_each_placement(session, NULL, &i, &error));
    FAILS(RUKH_ERROR_CANCELLED, "with status 6", rukh_session_for_each_placement(session, stop, session, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "", rukh_placement_text(kept_placement, RUKH_PLACEMENT_NODE, &text, &error));
    OK(rukh_session_load_counter(session, RUKH_LOAD_MAPPED_BYTES, &bytes, &error));
    CHECK(bytes > 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "which: -1", rukh_session_load_counter(session, -1, &bytes, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"profiling\"", rukh_session_profile(session, NULL, 0, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"tunable_op_enable\"",
          rukh_session_tuning_results(session, NULL, 0, &count, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"tunable_op_enable\"",
          rukh_session_add_tuning_results(session, "", &count, &error));
    rukh_session_destroy(session);
}

static void run(void) {
    const float x[] = {1, 2, 3, 4, -1, 0, 1, 0};
    const int64_t shape[] = {2, 4};
    const char *names[] = {"x"}, *wanted[] = {"y", "y"};
    rukh_session *session = open_model(environment, "linear");
    rukh_run_options *options;
    rukh_value *flat = floats(x, 8), *input, *outputs[2];
    const rukh_value *inputs[1];
    const float *y;
    OK(rukh_value_reshape(flat, shape, 2, &input, &error));
    inputs[0] = input;
    rukh_value_destroy(flat);
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_set(options, "tag", "first", &error));
    OK(rukh_session_run(session, options, names, inputs, 1, wanted, 1, outputs, &error));
    y = floats_of(outputs[0], 6);
    /* x W + b with W = arange(12) / 4 - 1, b = (0.5, -0.5, 1), then relu; by numpy. */
    CHECK(y[0] == 5.5f && y[1] == 7.0f && y[2] == 11.0f && y[3] == 2.0f && y[4] == 1.0f && y[5] == 2.5f);
    rukh_value_destroy(outputs[0]);

    /* By position, and the same output twice. */
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, outputs, &error));
    CHECK(floats_of(outputs[0], 6)[0] == 5.5f);
    rukh_value_destroy(outputs[0]);
    OK(rukh_session_run(session, NULL, names, inputs, 1, wanted, 2, outputs, &error));
    CHECK(floats_of(outputs[1], 6)[5] == 2.5f);
    rukh_value_destroy(outputs[0]);
    rukh_value_destroy(outputs[1]);

    OK(rukh_run_options_cancel(options, &error));
    FAILS(RUKH_ERROR_CANCELLED, "", rukh_session_run(session, options, names, inputs, 1, wanted, 1, outputs, &error));
    CHECK(outputs[0] == NULL);
    OK(rukh_run_options_reset(options, &error));
    OK(rukh_session_run(session, options, names, inputs, 1, wanted, 1, outputs, &error));
    /* Everything may go before the output does. */
    rukh_run_options_destroy(options);
    rukh_session_destroy(session);
    rukh_value_destroy(input);
    CHECK(floats_of(outputs[0], 6)[2] == 11.0f);
    rukh_value_destroy(outputs[0]);
}

static void wrong_runs(void) {
    rukh_session *session = open_model(environment, "add");
    const float data[] = {1, 2, 3};
    const char *both[] = {"a", "b"}, *none[] = {"a", "c"}, *twice[] = {"a", "a"}, *sum[] = {"sum"}, *no[] = {"total"};
    rukh_value *a = floats(data, 3), *b = floats(data, 2), *ints = int64_scalar(1), *output;
    const rukh_value *inputs[2];
    inputs[0] = a;
    inputs[1] = b;
    FAILS(RUKH_ERROR_INVALID_INPUT, "\"b\"",
          rukh_session_run(session, NULL, both, inputs, 2, sum, 1, &output, &error));
    FAILS(RUKH_ERROR_INVALID_INPUT, "\"b\"", rukh_session_run(session, NULL, both, inputs, 1, sum, 1, &output, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"c\"", rukh_session_run(session, NULL, none, inputs, 2, sum, 1, &output, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "twice",
          rukh_session_run(session, NULL, twice, inputs, 2, sum, 1, &output, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"total\" is not there; the model has sum, product",
          rukh_session_run(session, NULL, both, inputs, 2, no, 1, &output, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "3 inputs were asked for",
          rukh_session_run(session, NULL, NULL, inputs, 3, sum, 1, &output, &error));
    inputs[1] = ints;
    FAILS(RUKH_ERROR_INVALID_INPUT, "int64",
          rukh_session_run(session, NULL, both, inputs, 2, sum, 1, &output, &error));
    inputs[1] = NULL;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "input \"b\": NULL",
          rukh_session_run(session, NULL, both, inputs, 2, sum, 1, &output, &error));
    CHECK(output == NULL);
    rukh_value_destroy(a);
    rukh_value_destroy(b);
    rukh_value_destroy(ints);
    rukh_session_destroy(session);
}

static void kinds(void) {
    const int64_t index[] = {5}, one[] = {1}, two[] = {2};
    const char *texts[] = {"hail", "rukh"};
    const float data[] = {0, 3, 0, 4};
    rukh_session *session = open_model(environment, "gather");
    rukh_value *value, *output, *outputs[2], *item, *list;
    const rukh_value *inputs[4];
    const void *elements;
    char text[16];
    size_t bytes, count;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, one, 1, index, 8, &value, &error));
    inputs[0] = value;
    FAILS(RUKH_ERROR_INVALID_DATA, "look_up", rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &output, &error));
    rukh_value_destroy(value);
    rukh_session_destroy(session);

    session = open_model(environment, "nonzero");
    inputs[0] = value = floats(data, 4);
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &output, &error));
    OK(rukh_value_data(output, &elements, &bytes, &error));
    CHECK(bytes == 16 && ((const int64_t *)elements)[0] == 1 && ((const int64_t *)elements)[1] == 3);
    rukh_value_destroy(value);
    rukh_value_destroy(output);
    rukh_session_destroy(session);

    session = open_model(environment, "strings");
    OK(rukh_value_create_strings(two, 1, texts, NULL, 2, &value, &error));
    inputs[0] = value;
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &output, &error));
    OK(rukh_value_string(output, 1, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "rukh") == 0);
    rukh_value_destroy(value);
    rukh_value_destroy(output);
    rukh_session_destroy(session);

    session = open_model(environment, "sequence");
    inputs[0] = value = floats(data, 2);
    inputs[1] = item = floats(data, 4);
    OK(rukh_value_create_sequence(inputs, 2, 0, &list, &error));
    inputs[2] = list;
    inputs[3] = output = int64_scalar(1);
    OK(rukh_session_run(session, NULL, NULL, inputs, 4, NULL, 2, outputs, &error));
    rukh_value_destroy(value);
    rukh_value_destroy(item);
    rukh_value_destroy(list);
    rukh_value_destroy(output);
    OK(rukh_value_item_count(outputs[0], &count, &error));
    CHECK(count == 2 && floats_of(outputs[1], 4)[3] == 4.0f);
    rukh_value_destroy(outputs[0]);
    rukh_value_destroy(outputs[1]);
    rukh_session_destroy(session);
}

static void opening(void) {
    static unsigned char bytes[4096];
    rukh_session_options *options;
    rukh_session *session;
    char *profile;
    const float data[] = {1};
    rukh_value *a = floats(data, 1), *sum;
    const rukh_value *inputs[2];
    int64_t dims[1], rank;
    size_t size, needed;
    FILE *file = fopen(model_path("add"), "rb");
    CHECK(file != NULL);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set_profiling(options, 1, &error));
    OK(rukh_session_options_set_dimension(options, "n", 1, &error));
    OK(rukh_session_create_from_memory(environment, bytes, size, options, &session, &error));
    memset(bytes, 0xff, size);
    OK(rukh_session_input_shape(session, 0, dims, 1, &rank, &error));
    CHECK(dims[0] == 1);
    inputs[0] = inputs[1] = a;
    OK(rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
    CHECK(floats_of(sum, 1)[0] == 2.0f);
    rukh_value_destroy(sum);
    rukh_value_destroy(a);
    OK(rukh_session_profile(session, NULL, 0, &needed, &error));
    profile = (char *)malloc(needed);
    OK(rukh_session_profile(session, profile, needed, NULL, &error));
    CHECK(strchr("[{", profile[0]) != NULL && strlen(profile) + 1 == needed);
    free(profile);
    rukh_session_destroy(session);

    FAILS(RUKH_ERROR_INVALID_MODEL, "", rukh_session_create_from_memory(environment, bytes, size, NULL, &session, &error));
    CHECK(session == NULL);
    FAILS(RUKH_ERROR_INVALID_MODEL, "", rukh_session_create_from_memory(environment, NULL, 0, NULL, &session, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "nowhere", rukh_session_create(environment, model_path("nowhere"), NULL, &session, &error));
    OK(rukh_session_options_set_dimension(options, "unknown", 1, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "dim.unknown",
          rukh_session_create(environment, model_path("add"), options, &session, &error));
    rukh_session_options_destroy(options);
}

/* Sessions on one file share its weights, and one that goes leaves the others as they are. */
static void sharing(void) {
    rukh_session_options *options;
    rukh_session *sessions[4];
    uint64_t mapped, shared;
    size_t i;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "share_weights", "0", &error));
    for (i = 0; i < 3; i++) sessions[i] = open_model(environment, "linear");
    OK(rukh_session_create(environment, model_path("linear"), options, &sessions[3], &error));
    rukh_session_options_destroy(options);
    for (i = 0; i < 4; i++) {
        const int again = i == 1 || i == 2;
        OK(rukh_session_load_counter(sessions[i], RUKH_LOAD_MAPPED_BYTES, &mapped, &error));
        OK(rukh_session_load_counter(sessions[i], RUKH_LOAD_SHARED_BYTES, &shared, &error));
        CHECK((mapped == 0) == again && (shared > 0) == again);
    }
    for (i = 0; i < 4; i++) {
        size_t count;
        rukh_session_destroy(sessions[i]);
        if (i < 3) OK(rukh_session_input_count(sessions[i + 1], &count, &error));
    }
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    about();
    run();
    wrong_runs();
    kinds();
    opening();
    sharing();
    rukh_environment_destroy(environment);
    return 0;
}
