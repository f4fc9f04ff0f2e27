/* Models and weights in memory of the caller's: shared, released once, refused with a reason. */

#include "check.h"

enum { SIDE = 16, COUNT = SIDE * SIDE };

static rukh_environment *environment;

static void count_release(void *data, void *user) {
    (void)data;
    ++*(int *)user;
}

/* A file of the models' folder, which the caller frees. */
static void *content_of(const char *name, size_t *size) {
    char path[4096];
    FILE *file;
    void *data;
    long length;
    snprintf(path, sizeof path, "%s/%s", model_folder, name);
    file = fopen(path, "rb");
    CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
    length = ftell(file);
    CHECK(length > 0 && fseek(file, 0, SEEK_SET) == 0);
    data = malloc((size_t)length);
    CHECK(data != NULL && fread(data, 1, (size_t)length, file) == (size_t)length);
    fclose(file);
    *size = (size_t)length;
    return data;
}

static rukh_session_options *new_options(void) {
    rukh_session_options *options;
    OK(rukh_session_options_create(&options, &error));
    return options;
}

/* The first output for an input of ones: the sum of W's first column, and 1. */
static float result_of(const rukh_session *session) {
    static float ones[SIDE];
    const int64_t shape[] = {1, SIDE};
    rukh_value *x, *y;
    const rukh_value *inputs[1];
    const void *data;
    float first;
    int i;
    for (i = 0; i < SIDE; i++) ones[i] = 1;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, ones, sizeof ones, &x, &error));
    inputs[0] = x;
    OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &y, &error));
    OK(rukh_value_data(y, &data, NULL, &error));
    first = *(const float *)data;
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return first;
}

static uint64_t counter_of(const rukh_session *session, rukh_load_counter which) {
    uint64_t bytes;
    OK(rukh_session_load_counter(session, which, &bytes, &error));
    return bytes;
}

static rukh_value *matrix(float *data, int *released) {
    const int64_t shape[] = {SIDE, SIDE};
    rukh_value *value;
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, shape, 2, data, COUNT * sizeof *data, count_release, released,
                                     &value, &error));
    return value;
}

/* Tensors in place of weights whose file is not there, and of one that is. */
static void initializers(void) {
    static float weight[COUNT], bias[SIDE];
    const int64_t line[] = {SIDE};
    rukh_session_options *options = new_options();
    rukh_session *session, *other, *apart;
    rukh_value *w, *b, *texts;
    int released = 0, i;
    for (i = 0; i < COUNT; i++) weight[i] = 0.5f;
    for (i = 0; i < SIDE; i++) bias[i] = 100;
    FAILS(RUKH_ERROR_NOT_FOUND, "external.bin",
          rukh_session_create(environment, model_path("external"), NULL, &session, &error));
    w = matrix(weight, &released);
    OK(rukh_session_options_add_initializer(options, "w", w, &error));
    rukh_value_destroy(w);
    OK(rukh_session_create(environment, model_path("external"), options, &session, &error));
    CHECK(result_of(session) == 9);

    /* The same memory is shared, other memory of the same content is not. */
    OK(rukh_session_create(environment, model_path("external"), options, &other, &error));
    CHECK(result_of(other) == 9);
    CHECK(counter_of(session, RUKH_LOAD_SHARED_BYTES) == 0 && counter_of(other, RUKH_LOAD_SHARED_BYTES) > 0);
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, line, 1, bias, sizeof bias, &b, &error));
    OK(rukh_session_options_add_initializer(options, "b", b, &error));
    rukh_value_destroy(b);
    OK(rukh_session_create(environment, model_path("external"), options, &apart, &error));
    CHECK(result_of(apart) == 108 && counter_of(apart, RUKH_LOAD_SHARED_BYTES) == 0);
    CHECK(result_of(session) == 9 && result_of(other) == 9);

    /* Another tensor of the name replaces it for sessions to come. */
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, line, 1, &b, &error));
    OK(rukh_session_options_add_initializer(options, "b", b, &error));
    rukh_value_destroy(b);
    rukh_session_destroy(apart);
    OK(rukh_session_create(environment, model_path("external"), options, &apart, &error));
    CHECK(result_of(apart) == 8);
    rukh_session_options_destroy(options);
    rukh_session_destroy(session);
    CHECK(released == 0);
    CHECK(result_of(other) == 9);
    rukh_session_destroy(other);
    rukh_session_destroy(apart);
    CHECK(released == 1);

    /* What does not fit. */
    options = new_options();
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_session_options_add_initializer(options, "w", NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "name: NULL", rukh_session_options_add_initializer(options, NULL, NULL, &error));
    w = matrix(weight, &released);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "not empty", rukh_session_options_add_initializer(options, "", w, &error));
    OK(rukh_session_options_add_initializer(options, "w", w, &error));
    OK(rukh_session_options_add_initializer(options, "b", w, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "initializer \"b\" was given as float[16, 16]; the model has float[16]",
          rukh_session_create(environment, model_path("external"), options, &session, &error));
    rukh_session_options_destroy(options);
    options = new_options();
    OK(rukh_session_options_add_initializer(options, "w", w, &error));
    OK(rukh_session_options_add_initializer(options, "v", w, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "initializer \"v\" was given",
          rukh_session_create(environment, model_path("external"), options, &session, &error));
    CHECK(session == NULL);
    OK(rukh_value_create_tensor(RUKH_ELEMENT_STRING, line, 1, &texts, &error));
    OK(rukh_session_options_add_initializer(options, "b", texts, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "given as string[16]",
          rukh_session_create(environment, model_path("external"), options, &session, &error));
    rukh_value_destroy(texts);
    rukh_session_options_destroy(options);
    CHECK(released == 1);
    rukh_value_destroy(w);
    CHECK(released == 2);
}

/* The bytes of a file of weights, and a folder of them. */
static void files(void) {
    size_t size, model_size;
    void *data = content_of("weights/external.bin", &size), *model = content_of("external.onnx", &model_size);
    rukh_session_options *options = new_options(), *copy;
    rukh_session *session, *other;
    char folder[4096], text[4096];
    int released = 0;
    OK(rukh_session_options_add_external_file(options, "./external.bin", data, size, count_release, &released, &error));
    OK(rukh_session_options_clone(options, &copy, &error));
    rukh_session_options_destroy(options);
    OK(rukh_session_create(environment, model_path("external"), copy, &session, &error));
    OK(rukh_session_create(environment, model_path("external"), copy, &other, &error));
    CHECK(result_of(session) == 1921 && result_of(other) == 1921);
    CHECK(counter_of(other, RUKH_LOAD_SHARED_BYTES) > 0);
    rukh_session_destroy(other);
    OK(rukh_session_create_from_memory(environment, model, model_size, copy, &other, &error));
    CHECK(result_of(other) == 1921 && counter_of(other, RUKH_LOAD_SHARED_BYTES) == 0);
    rukh_session_destroy(other);
    /* What replaces it releases it, once the sessions are gone. */
    OK(rukh_session_options_add_external_file(copy, "./external.bin", data, size - 4, NULL, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_MODEL, "which has 1020",
          rukh_session_create(environment, model_path("external"), copy, &other, &error));
    CHECK(released == 0);
    rukh_session_destroy(session);
    CHECK(released == 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "not empty",
          rukh_session_options_add_external_file(copy, "", data, size, count_release, &released, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "location: NULL",
          rukh_session_options_add_external_file(copy, NULL, data, size, count_release, &released, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "data: NULL",
          rukh_session_options_add_external_file(copy, "a", NULL, size, count_release, &released, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL",
          rukh_session_options_add_external_file(NULL, "a", data, size, count_release, &released, &error));
    CHECK(released == 5);
    OK(rukh_session_options_add_external_file(copy, "unused", NULL, 0, count_release, &released, &error));
    rukh_session_options_destroy(copy);
    CHECK(released == 6);

    options = new_options();
    snprintf(folder, sizeof folder, "%s/weights", model_folder);
    OK(rukh_session_options_set(options, "external_data_folder", folder, &error));
    OK(rukh_session_options_get(options, "external_data_folder", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, folder) == 0);
    OK(rukh_session_create(environment, model_path("external"), options, &session, &error));
    OK(rukh_session_create_from_memory(environment, model, model_size, options, &other, &error));
    CHECK(result_of(session) == 1921 && result_of(other) == 1921);
    rukh_session_destroy(session);
    rukh_session_destroy(other);
    OK(rukh_session_options_set(options, "external_data_folder", "", &error));
    FAILS(RUKH_ERROR_UNSUPPORTED, "rukh_session_options_add_external_file",
          rukh_session_create_from_memory(environment, model, model_size, options, &session, &error));
    rukh_session_options_destroy(options);
    free(data);
    free(model);
}

/* A model in memory, without a copy. */
static void buffers(void) {
    size_t size;
    void *model = content_of("linear.onnx", &size);
    char nonsense[] = "this is no model";
    rukh_session_options *options = new_options();
    rukh_session *session, *other, *apart;
    int released = 0;
    OK(rukh_session_create_from_buffer(environment, model, size, count_release, &released, NULL, &session, &error));
    OK(rukh_session_create_from_buffer(environment, model, size, count_release, &released, NULL, &other, &error));
    CHECK(counter_of(session, RUKH_LOAD_READ_BYTES) == 0 && counter_of(session, RUKH_LOAD_MAPPED_BYTES) == 0);
    /* Both have the first one's bytes; those of the second are released at once. */
    CHECK(released == 1);
    OK(rukh_session_options_set(options, "share_weights", "0", &error));
    OK(rukh_session_create_from_buffer(environment, model, size, NULL, NULL, options, &apart, &error));
    rukh_session_options_destroy(options);
    rukh_session_destroy(session);
    CHECK(released == 1);
    rukh_session_destroy(other);
    CHECK(released == 2);
    rukh_session_destroy(apart);

    FAILS(RUKH_ERROR_INVALID_MODEL, "is a text file",
          rukh_session_create_from_buffer(environment, nonsense, sizeof nonsense - 1, count_release, &released, NULL,
                                          &session, &error));
    FAILS(RUKH_ERROR_INVALID_MODEL, "is empty",
          rukh_session_create_from_buffer(environment, NULL, 0, count_release, &released, NULL, &session, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "data: NULL",
          rukh_session_create_from_buffer(environment, NULL, 5, count_release, &released, NULL, &session, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL",
          rukh_session_create_from_buffer(NULL, model, size, count_release, &released, NULL, &session, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "out: NULL",
          rukh_session_create_from_buffer(environment, model, size, count_release, &released, NULL, NULL, &error));
    CHECK(session == NULL && released == 7);
    free(model);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("1");
    initializers();
    files();
    buffers();
    rukh_environment_destroy(environment);
    return 0;
}
