/* A caller that does everything wrong: each call ends with an error, and the process lives. */

/* What is deprecated stays as safe as the rest. */
#define RUKH_DEPRECATED(note)

#include "check.h"

#include "hostile_calls.h"

static void try_all(void *h, rukh_status wanted) {
    try_environment_options((rukh_environment_options *)h, wanted);
    try_environment((rukh_environment *)h, wanted);
    try_device((rukh_device *)h, wanted);
    try_session_options((rukh_session_options *)h, wanted);
    try_session((rukh_session *)h, wanted);
    try_value((rukh_value *)h, wanted);
    try_run_options((rukh_run_options *)h, wanted);
    try_binding((rukh_io_binding *)h, wanted);
    try_adapter((rukh_adapter *)h, wanted);
    try_stream((rukh_stream *)h, wanted);
    try_completion((rukh_completion *)h, wanted);
    try_external_memory((rukh_external_memory *)h, wanted);
    try_log_record((rukh_log_record *)h, wanted);
    try_placement((rukh_placement *)h, wanted);
}

static void destroy_all(void *h) {
    rukh_environment_options_destroy((rukh_environment_options *)h);
    rukh_environment_destroy((rukh_environment *)h);
    rukh_device_destroy((rukh_device *)h);
    rukh_session_options_destroy((rukh_session_options *)h);
    rukh_session_destroy((rukh_session *)h);
    rukh_value_destroy((rukh_value *)h);
    rukh_run_options_destroy((rukh_run_options *)h);
    rukh_io_binding_destroy((rukh_io_binding *)h);
    rukh_adapter_destroy((rukh_adapter *)h);
    rukh_stream_destroy((rukh_stream *)h);
    rukh_completion_destroy((rukh_completion *)h);
    rukh_external_memory_destroy((rukh_external_memory *)h);
    rukh_error_destroy((rukh_error *)h);
}

/* One live handle of each kind. */
struct zoo {
    rukh_environment_options *environment_options;
    rukh_environment *environment;
    rukh_device *device;
    rukh_session_options *session_options;
    rukh_session *session;
    rukh_value *value;
    rukh_run_options *run_options;
    rukh_io_binding *binding;
    rukh_adapter *adapter;
    rukh_completion *completion;
};

static struct zoo new_zoo(void) {
    struct zoo z;
    OK(rukh_environment_options_create(&z.environment_options, &error));
    z.environment = new_environment("2");
    OK(rukh_environment_device(z.environment, 0, &z.device, &error));
    OK(rukh_session_options_create(&z.session_options, &error));
    z.session = open_model(z.environment, "add");
    z.value = int64_scalar(1);
    OK(rukh_run_options_create(&z.run_options, &error));
    OK(rukh_io_binding_create(z.session, &z.binding, &error));
    OK(rukh_adapter_create(NULL, NULL, 0, 1, 2, &z.adapter, &error));
    OK(rukh_session_start(z.session, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, NULL, &z.completion, &error));
    return z;
}

static void use_after_destroy(void) {
    struct zoo z = new_zoo();
    rukh_error *made = NULL;
    int i;
    CHECK(rukh_value_clone(NULL, &z.value, &made) != RUKH_OK && z.value == NULL && made != NULL);
    z.value = int64_scalar(1);
    /* Of the wrong kind: an error, and not destroyed by the wrong function. */
    try_all(made, RUKH_ERROR_INVALID_HANDLE);
    CHECK(rukh_error_code((rukh_error *)z.value) == RUKH_ERROR_INVALID_HANDLE);
    rukh_session_destroy((rukh_session *)z.value);
    rukh_error_destroy((rukh_error *)z.value);
    try_environment((rukh_environment *)z.value, RUKH_ERROR_INVALID_HANDLE);
    try_session((rukh_session *)z.value, RUKH_ERROR_INVALID_HANDLE);
    try_value((rukh_value *)z.session, RUKH_ERROR_INVALID_HANDLE);
    try_binding((rukh_io_binding *)z.session, RUKH_ERROR_INVALID_HANDLE);
    CHECK(floats_of != NULL);
    {
        size_t count;
        OK(rukh_value_element_count(z.value, &count, &error));
    }
    /* Of the right kind, with nothing else right. */
    try_environment_options(z.environment_options, ANY);
    try_environment(z.environment, ANY);
    try_device(z.device, ANY);
    try_session_options(z.session_options, ANY);
    try_session(z.session, ANY);
    try_value(z.value, ANY);
    try_run_options(z.run_options, ANY);
    try_binding(z.binding, ANY);
    try_adapter(z.adapter, ANY);
    try_completion(z.completion, ANY);
    /* Destroyed, twice, and used; also after many others have come and gone. */
    for (i = 0; i < 2; i++) {
        destroy_all(z.environment_options);
        destroy_all(z.environment);
        destroy_all(z.device);
        destroy_all(z.session_options);
        destroy_all(z.session);
        destroy_all(z.value);
        destroy_all(z.run_options);
        destroy_all(z.binding);
        destroy_all(z.adapter);
        destroy_all(z.completion);
        destroy_all(made);
    }
    for (i = 0; i < 20000; i++) rukh_value_destroy(int64_scalar(i));
    try_all(z.environment_options, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.environment, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.device, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.session_options, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.session, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.value, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.run_options, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.binding, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.adapter, RUKH_ERROR_INVALID_HANDLE);
    try_all(z.completion, RUKH_ERROR_INVALID_HANDLE);
    CHECK(rukh_error_code(made) == RUKH_ERROR_INVALID_HANDLE);
    CHECK(rukh_error_message(made)[0] != '\0');
}

/* What never was a handle: memory of the caller, and addresses that are no memory. */
static void no_handles(void) {
    static char bytes[256];
    char *memory = (char *)malloc(256);
    struct zoo z = new_zoo();
    void *pointers[6];
    size_t i;
    memset(memory, 0x5a, 256);
    pointers[0] = bytes + 64;
    pointers[1] = memory;
    pointers[2] = (void *)(uintptr_t)1;
    pointers[3] = (void *)(UINTPTR_MAX - 63);
    /* Inside the library's own table, but of another generation. */
    pointers[4] = (char *)z.value + 1;
    pointers[5] = (char *)z.session + 63;
    for (i = 0; i < COUNT_OF(pointers); i++) {
        try_all(pointers[i], RUKH_ERROR_INVALID_HANDLE);
        destroy_all(pointers[i]);
    }
    free(memory);
    try_all(NULL, RUKH_ERROR_INVALID_ARGUMENT);
    destroy_all(NULL);
    rukh_environment_options_destroy(z.environment_options);
    rukh_environment_destroy(z.environment);
    rukh_device_destroy(z.device);
    rukh_session_options_destroy(z.session_options);
    rukh_session_destroy(z.session);
    rukh_value_destroy(z.value);
    rukh_run_options_destroy(z.run_options);
    rukh_io_binding_destroy(z.binding);
    rukh_adapter_destroy(z.adapter);
    rukh_completion_destroy(z.completion);
}

/* Handles that depend on each other, destroyed in every order; each of the others works meanwhile. */
static void any_order(void) {
    int order, place;
    for (order = 0; order < 120; order++) {
        const float data[] = {1, 2};
        rukh_environment *environment = new_environment("1");
        rukh_session *session = open_model(environment, "add");
        rukh_value *a = floats(data, 2);
        const rukh_value *inputs[2];
        rukh_value *outputs[2];
        rukh_io_binding *binding;
        int left[5] = {0, 1, 2, 3, 4}, rest = order, count = 5;
        inputs[0] = inputs[1] = a;
        OK(rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 2, outputs, &error));
        OK(rukh_io_binding_create(session, &binding, &error));
        OK(rukh_io_binding_bind_input(binding, "a", a, &error));
        OK(rukh_io_binding_bind_input(binding, "b", outputs[0], &error));
        OK(rukh_io_binding_bind_output_allocated(binding, "sum", &error));
        rukh_value_destroy(outputs[1]);
        while (count > 0) {
            int pick = rest % count, what = left[pick];
            rest /= count;
            for (place = pick; place + 1 < count; place++) left[place] = left[place + 1];
            count--;
            if (what == 0) rukh_environment_destroy(environment);
            if (what == 1) rukh_session_destroy(session);
            if (what == 2) rukh_value_destroy(a);
            if (what == 3) rukh_value_destroy(outputs[0]);
            if (what == 4) rukh_io_binding_destroy(binding);
            for (place = 0; place < count; place++) {
                if (left[place] == 1) {
                    FAILS(RUKH_ERROR_INVALID_INPUT, "\"a\" is missing",
                          rukh_session_run(session, NULL, NULL, NULL, 0, NULL, 0, NULL, &error));
                }
                if (left[place] == 3) CHECK(floats_of(outputs[0], 2)[1] == 4);
                if (left[place] == 4) OK(rukh_io_binding_run(binding, NULL, &error));
            }
        }
    }
}

static int called;

static void deleter_that_calls_back(void *data, void *user) {
    rukh_value *value = int64_scalar(*(int64_t *)data);
    rukh_value_destroy(value);
    /* The handle whose end this is. */
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed before",
          rukh_value_clone(*(rukh_value **)user, &value, &error));
    rukh_value_destroy(*(rukh_value **)user);
    called++;
}

static void callbacks(void) {
    static int64_t data = 5;
    static rukh_value *value;
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_INT64, NULL, 0, &data, 8, deleter_that_calls_back, &value, &value,
                                     &error));
    rukh_value_destroy(value);
    CHECK(called == 1);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    try_makers();
    use_after_destroy();
    no_handles();
    any_order();
    callbacks();
    return 0;
}
