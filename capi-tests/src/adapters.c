/* Adapters: made, saved and read; in runs and in sessions; and files of which nothing is right. */

#define _POSIX_C_SOURCE 200809L

#include "adapters.h"

#include <unistd.h>

static rukh_environment *environment;
static char folder[64] = "/tmp/rukh-adapters-XXXXXX";
static int released;

/* A file of the folder. */
static const char *temporary(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void count_release(void *data, void *user) {
    (void)data;
    ++*(int *)user;
}

/* What was saved is read, as a file and as bytes, and outlives its handle. */
static void files(void) {
    const char *path = temporary("a.onnx_adapter");
    rukh_session *session = open_model(environment, "adapted");
    rukh_adapter *made = new_lora(0.5f, 2), *opened, *lent;
    rukh_run_options *options;
    rukh_value *value;
    char name[16], bytes[2048];
    size_t count, needed, size;
    int64_t shape[2];
    int32_t format, own, model;
    FILE *file;
    OK(rukh_adapter_save(made, path, &error));
    OK(rukh_adapter_open(path, &opened, &error));
    OK(rukh_adapter_versions(opened, &format, &own, &model, &error));
    CHECK(format == 1 && own == 3 && model == -7);
    OK(rukh_adapter_versions(opened, NULL, NULL, NULL, &error));
    OK(rukh_adapter_parameter_count(opened, &count, &error));
    CHECK(count == 2);
    OK(rukh_adapter_parameter_name(opened, 1, name, sizeof name, &needed, &error));
    CHECK(strcmp(name, "lora_b") == 0 && needed == 7);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "too few", rukh_adapter_parameter_name(opened, 1, name, 3, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "parameter 2 is not there; allowed are 0 to 1",
          rukh_adapter_parameter_name(opened, 2, name, sizeof name, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "parameter 2 is not there",
          rukh_adapter_parameter_value(opened, 2, &value, &error));
    CHECK(value == NULL);
    OK(rukh_adapter_parameter_value(opened, 0, &value, &error));
    OK(rukh_value_shape(value, shape, 2, NULL, &error));
    CHECK(shape[0] == WIDTH && shape[1] == 2 && floats_of(value, WIDTH * 2)[7] == 0.5f);

    file = fopen(path, "rb");
    CHECK(file != NULL);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(size > 0 && size < sizeof bytes);
    released = 0;
    OK(rukh_adapter_open_from_buffer(bytes, size, count_release, &released, &lent, &error));
    options = with(opened, NULL);
    CHECK(added(session, options) == 4);
    rukh_run_options_destroy(options);
    /* The file may go: it is mapped. So may the adapter: the value and the options have it. */
    CHECK(remove(path) == 0);
    CHECK(floats_of(value, WIDTH * 2)[0] == 0.5f);
    rukh_value_destroy(value);
    options = with(lent, made);
    CHECK(released == 0 && added(session, options) == 4);
    rukh_session_destroy(session);
    rukh_run_options_destroy(options);
    CHECK(released == 1);
    FAILS(RUKH_ERROR_NOT_FOUND, path, rukh_adapter_open(path, &opened, &error));
    FAILS(RUKH_ERROR_IO, "is not a file", rukh_adapter_open(model_folder, &opened, &error));
    FAILS(RUKH_ERROR_INVALID_MODEL, "is no adapter", rukh_adapter_open(model_path("add"), &opened, &error));
    CHECK(opened == NULL);
}

/* Of two adapters the last one counts, and what the run is given before both. */
static void several(void) {
    rukh_session *session = open_model(environment, "adapted");
    rukh_run_options *options = with(new_lora(1, 1), new_bias(100));
    const char *const names[] = {"x", "b"};
    const float zeros[] = {0, 0, 0};
    const rukh_value *inputs[2];
    rukh_value *x = filled(1, 1, WIDTH), *b = floats(zeros, 3), *y;
    rukh_adapter *adapter = new_lora(2, 3);
    rukh_io_binding *binding;
    CHECK(added(session, options) == 104);
    OK(rukh_run_options_add_adapter(options, adapter, &error));
    OK(rukh_run_options_add_adapter(options, adapter, &error));
    CHECK(added(session, options) == 124);
    CHECK(added(session, NULL) == 0);
    inputs[0] = x;
    inputs[1] = b;
    OK(rukh_session_run(session, options, names, inputs, 2, NULL, 1, &y, &error));
    CHECK(floats_of(y, 3)[2] == 26 + 24);
    rukh_value_destroy(y);

    /* The same with a binding, which keeps what is bound. */
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "x", x, &error));
    OK(rukh_io_binding_bind_output_allocated(binding, "y", &error));
    OK(rukh_io_binding_run(binding, options, &error));
    OK(rukh_io_binding_output(binding, "y", &y, &error));
    CHECK(floats_of(y, 3)[0] == 18 + 124);
    rukh_value_destroy(y);
    OK(rukh_io_binding_bind_input(binding, "b", b, &error));
    OK(rukh_io_binding_run(binding, options, &error));
    OK(rukh_io_binding_output(binding, "y", &y, &error));
    CHECK(floats_of(y, 3)[0] == 18 + 24);
    rukh_value_destroy(y);
    OK(rukh_io_binding_run(binding, NULL, &error));
    OK(rukh_io_binding_output(binding, "y", &y, &error));
    CHECK(floats_of(y, 3)[0] == 18);
    rukh_value_destroy(y);
    rukh_io_binding_destroy(binding);
    rukh_run_options_destroy(options);

    /* An input that has no value of its own. */
    options = with(new_adapter("x", filled(2, 2, WIDTH)), NULL);
    OK(rukh_session_run(session, options, NULL, NULL, 0, NULL, 1, &y, &error));
    CHECK(floats_of(y, 6)[3] == 36);
    rukh_value_destroy(y);
    rukh_run_options_destroy(options);
    rukh_adapter_destroy(adapter);
    rukh_value_destroy(x);
    rukh_value_destroy(b);
    rukh_session_destroy(session);
}

static void runs_that_fail(void) {
    const float four[] = {1, 2, 3, 4};
    rukh_session *session = open_model(environment, "adapted"), *plain = open_model(environment, "add");
    rukh_value *x = filled(1, 1, WIDTH), *y, *texts;
    const rukh_value *inputs[1];
    const char *const b = "b";
    const char *const twice[] = {"b", "b"};
    const rukh_value *pair[2];
    rukh_adapter *adapter;
    rukh_run_options *options;
    const struct {
        rukh_adapter *one, *other;
        const rukh_session *session;
        rukh_status status;
        const char *part;
    } table[] = {
        {new_adapter("c", filled(1, 1, 1)), NULL, session, RUKH_ERROR_NOT_FOUND,
         "parameter \"c\" is no input of the model"},
        {new_adapter("w", filled(1, WIDTH, HEIGHT)), NULL, session, RUKH_ERROR_NOT_FOUND,
         "(it has 3: \"lora_a\", \"lora_b\", \"b\")"},
        {new_bias(1), new_adapter("y", filled(1, 1, 1)), session, RUKH_ERROR_NOT_FOUND, "parameter \"y\""},
        {new_bias(1), NULL, plain, RUKH_ERROR_INVALID_INPUT, "input \"a\" is missing"},
        {new_lora(1, 1), NULL, plain, RUKH_ERROR_NOT_FOUND, "(it has none)"},
        {new_adapter("b", int64_scalar(1)), NULL, session, RUKH_ERROR_INVALID_INPUT,
         "the adapter made of values: input \"b\" is tensor(int64); the model needs tensor(float)"},
        {new_adapter("b", floats(four, 4)), NULL, session, RUKH_ERROR_INVALID_INPUT, "dimension 0 is 4; the model needs 3"},
        {new_adapter("lora_a", floats(four, 4)), NULL, session, RUKH_ERROR_INVALID_INPUT, "the model needs rank 2"},
        {new_lora(1, 2), new_adapter("lora_b", filled(1, 3, HEIGHT)), session, RUKH_ERROR_INVALID_INPUT,
         "both must be equal"},
    };
    size_t i;
    inputs[0] = x;
    for (i = 0; i < COUNT_OF(table); i++) {
        options = with(table[i].one, table[i].other);
        FAILS(table[i].status, table[i].part,
              rukh_session_run(table[i].session, options, NULL, inputs, table[i].session == session, NULL, 1, &y, &error));
        CHECK(y == NULL);
        rukh_run_options_destroy(options);
    }
    CHECK(added(session, NULL) == 0);
    pair[0] = pair[1] = x;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"b\" is there twice",
          rukh_adapter_create(twice, pair, 2, 0, 0, &adapter, &error));
    pair[1] = NULL;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "parameter \"b\": NULL",
          rukh_adapter_create(twice, pair + 1, 1, 0, 0, &adapter, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "values: NULL", rukh_adapter_create(&b, NULL, 1, 0, 0, &adapter, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "names: NULL", rukh_adapter_create(NULL, pair, 1, 0, 0, &adapter, &error));
    OK(rukh_value_create_tensor(RUKH_ELEMENT_STRING, NULL, 0, &texts, &error));
    pair[0] = texts;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "parameter \"b\" is tensor(string)",
          rukh_adapter_create(&b, pair, 1, 0, 0, &adapter, &error));
    CHECK(adapter == NULL);
    rukh_value_destroy(texts);
    adapter = new_bias(1);
    FAILS(RUKH_ERROR_IO, "cannot write", rukh_adapter_save(adapter, "no/such/folder/a", &error));
    rukh_adapter_destroy(adapter);
    rukh_value_destroy(x);
    rukh_session_destroy(session);
    rukh_session_destroy(plain);
}

/* Tensors in place of initializers, from the session's beginning. */
static void sessions(void) {
    rukh_session_options *options;
    rukh_session *session, *other;
    rukh_adapter *adapter = new_lora(1, 5), *next = new_lora(2, 2);
    rukh_run_options *run = with(new_lora(3, 3), NULL);
    const struct {
        rukh_adapter *adapter;
        rukh_status status;
        const char *part;
    } table[] = {
        {new_adapter("c", filled(1, 1, 1)), RUKH_ERROR_NOT_FOUND, "no initializer \"c\" in its main graph"},
        {new_adapter("x", filled(1, 1, WIDTH)), RUKH_ERROR_NOT_FOUND, "give the adapter to runs"},
        {new_adapter("b", filled(1, 1, 3)), RUKH_ERROR_INVALID_ARGUMENT, "parameter \"b\" is float[1, 3]; the model has"},
        {new_adapter("b", int64_scalar(1)), RUKH_ERROR_INVALID_ARGUMENT, "parameter \"b\" is int64[]; the model has"},
        {new_adapter("w", filled(1, WIDTH, 4)), RUKH_ERROR_INVALID_ARGUMENT, "parameter \"w\" is float[4, 4]"},
    };
    uint64_t shared;
    size_t i;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_adapter(options, adapter, &error));
    OK(rukh_session_create(environment, model_path("adapted"), options, &session, &error));
    OK(rukh_session_create(environment, model_path("adapted"), options, &other, &error));
    OK(rukh_session_load_counter(other, RUKH_LOAD_SHARED_BYTES, &shared, &error));
    CHECK(shared > 0);
    rukh_session_destroy(other);
    OK(rukh_session_options_add_adapter(options, next, &error));
    OK(rukh_session_create(environment, model_path("adapted"), options, &other, &error));
    rukh_session_options_destroy(options);
    rukh_adapter_destroy(adapter);
    rukh_adapter_destroy(next);
    CHECK(added(session, NULL) == 20 && added(other, NULL) == 16);
    /* A run may still say otherwise. */
    CHECK(added(session, run) == 36 && added(session, NULL) == 20);
    rukh_session_destroy(session);
    rukh_session_destroy(other);
    rukh_run_options_destroy(run);
    for (i = 0; i < COUNT_OF(table); i++) {
        OK(rukh_session_options_create(&options, &error));
        OK(rukh_session_options_add_adapter(options, table[i].adapter, &error));
        rukh_adapter_destroy(table[i].adapter);
        FAILS(table[i].status, table[i].part,
              rukh_session_create(environment, model_path("adapted"), options, &session, &error));
        CHECK(session == NULL);
        rukh_session_options_destroy(options);
    }
    /* Weights that are no inputs, too. */
    adapter = new_adapter("w", filled(2, WIDTH, HEIGHT));
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_adapter(options, adapter, &error));
    OK(rukh_session_create(environment, model_path("adapted"), options, &session, &error));
    {
        rukh_value *x = filled(1, 1, WIDTH), *y;
        const rukh_value *inputs[1];
        inputs[0] = x;
        OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &y, &error));
        CHECK(floats_of(y, 3)[1] == 8);
        rukh_value_destroy(x);
        rukh_value_destroy(y);
    }
    rukh_session_options_destroy(options);
    rukh_adapter_destroy(adapter);
    rukh_session_destroy(session);
}

/* Bytes cut short at every place and changed at every place: an error, or an adapter that can be used. */
static void hostile_bytes(void) {
    const char *path = temporary("b.onnx_adapter");
    rukh_session *session = open_model(environment, "adapted");
    rukh_value *x = filled(1, 1, WIDTH);
    unsigned char bytes[2048], changed[2048];
    rukh_adapter *adapter = new_lora(1, 1);
    size_t size, at, refused = 0, read = 0;
    int kind;
    FILE *file;
    OK(rukh_adapter_save(adapter, path, &error));
    rukh_adapter_destroy(adapter);
    file = fopen(path, "rb");
    CHECK(file != NULL);
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    CHECK(remove(path) == 0 && size < sizeof bytes);
    released = 0;
    for (at = 0; at < size; at++) {
        /* In memory of its own, so that one byte too far is noticed. */
        unsigned char *cut = (unsigned char *)malloc(at > 0 ? at : 1);
        memcpy(cut, bytes, at);
        FAILS(RUKH_ERROR_INVALID_MODEL, "the adapter in memory: ",
              rukh_adapter_open_from_buffer(cut, at, count_release, &released, &adapter, &error));
        free(cut);
    }
    CHECK((size_t)released == size);
    for (at = 0; at < size; at++) {
        for (kind = 0; kind < 4; kind++) {
            const unsigned char with_what[] = {0, 0xff, 0x80, 1};
            rukh_run_options *options;
            rukh_status status;
            const rukh_value *inputs[1];
            rukh_value *y;
            memcpy(changed, bytes, size);
            changed[at] ^= with_what[kind];
            if (kind == 0) changed[at] = 0;
            status = rukh_adapter_open_from_buffer(changed, size, NULL, NULL, &adapter, NULL);
            CHECK(status == RUKH_OK || status == RUKH_ERROR_INVALID_MODEL || status == RUKH_ERROR_UNSUPPORTED);
            CHECK((status == RUKH_OK) == (adapter != NULL));
            if (status != RUKH_OK) {
                refused++;
                continue;
            }
            read++;
            /* Whether it suits the model or not. */
            options = with(adapter, NULL);
            inputs[0] = x;
            if (rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &y, NULL) == RUKH_OK) rukh_value_destroy(y);
            rukh_run_options_destroy(options);
        }
    }
    CHECK(refused > size && read > size / 2);
    CHECK(added(session, NULL) == 0);
    rukh_value_destroy(x);
    rukh_session_destroy(session);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    CHECK(mkdtemp(folder) != NULL);
    environment = new_environment("1");
    files();
    several();
    runs_that_fail();
    sessions();
    hostile_bytes();
    CHECK(rmdir(folder) == 0);
    rukh_environment_destroy(environment);
    return 0;
}
