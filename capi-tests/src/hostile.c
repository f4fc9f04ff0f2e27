/* A caller that does everything wrong: each call ends with an error, and the process lives. */

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
}

static void try_environment(rukh_environment *h, rukh_status wanted) {
    rukh_session *session;
    EXPECT(rukh_environment_thread_count(h, NULL, &error));
    EXPECT(rukh_environment_device_count(h, NULL, &error));
    EXPECT(rukh_environment_device(h, 0, NULL, &error));
    EXPECT(rukh_environment_provider_reason(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_session_create(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_session_create(h, NULL, NULL, &session, &error));
    EXPECT(rukh_session_create_from_memory(h, NULL, 0, NULL, NULL, &error));
    EXPECT(rukh_session_create_from_memory(h, NULL, 5, NULL, &session, &error));
}

static void try_device(rukh_device *h, rukh_status wanted) {
    EXPECT(rukh_device_provider(h, NULL, &error));
    EXPECT(rukh_device_name(h, NULL, &error));
    EXPECT(rukh_device_arch(h, NULL, &error));
    EXPECT(rukh_device_memory(h, NULL, &error));
    EXPECT(rukh_device_property_count(h, NULL, &error));
    EXPECT(rukh_device_property(h, 0, NULL, NULL, &error));
}

static void try_session_options(rukh_session_options *h, rukh_status wanted) {
    EXPECT(rukh_session_options_clone(h, NULL, &error));
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
    EXPECT(rukh_session_run_async(h, NULL, NULL, NULL, 0, NULL, 0, NULL, NULL, &error));
    EXPECT(rukh_io_binding_create(h, NULL, &error));
}

static void try_value(rukh_value *h, rukh_status wanted) {
    const rukh_value *list[1];
    rukh_value *out;
    list[0] = h;
    EXPECT(rukh_value_clone(h, NULL, &error));
    EXPECT(rukh_value_reshape(h, NULL, 3, &out, &error));
    EXPECT(rukh_value_kind(h, NULL, &error));
    EXPECT(rukh_value_element_type(h, NULL, &error));
    EXPECT(rukh_value_type_text(h, NULL, 1, NULL, &error));
    EXPECT(rukh_value_shape(h, NULL, 5, NULL, &error));
    EXPECT(rukh_value_element_count(h, NULL, &error));
    EXPECT(rukh_value_data(h, NULL, NULL, &error));
    EXPECT(rukh_value_data_mut(h, NULL, NULL, &error));
    EXPECT(rukh_value_string(h, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_value_set_string(h, 0, NULL, &error));
    EXPECT(rukh_value_item_count(h, NULL, &error));
    EXPECT(rukh_value_item(h, 0, &out, &error));
    EXPECT(rukh_value_map_keys(h, &out, &error));
    EXPECT(rukh_value_to_dlpack(h, NULL, &error));
    EXPECT(rukh_value_to_dlpack_legacy(h, NULL, &error));
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
    EXPECT(rukh_run_options_cancel(h, &error));
    EXPECT(rukh_run_options_reset(h, &error));
}

static void try_binding(rukh_io_binding *h, rukh_status wanted) {
    rukh_value *out;
    EXPECT(rukh_io_binding_bind_input(h, NULL, NULL, &error));
    EXPECT(rukh_io_binding_bind_output(h, NULL, NULL, &error));
    EXPECT(rukh_io_binding_bind_output_allocated(h, NULL, &error));
    EXPECT(rukh_io_binding_clear_inputs(h, &error));
    EXPECT(rukh_io_binding_clear_outputs(h, &error));
    EXPECT(rukh_io_binding_run(h, NULL, &error));
    EXPECT(rukh_io_binding_output(h, NULL, &out, &error));
}

static void try_makers(void) {
    const rukh_status wanted = RUKH_ERROR_INVALID_ARGUMENT;
    const int32_t types[] = {-1, 0, 29, INT32_MIN, INT32_MAX};
    rukh_value *out;
    size_t i;
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

static void try_all(void *h, rukh_status wanted) {
    try_environment_options((rukh_environment_options *)h, wanted);
    try_environment((rukh_environment *)h, wanted);
    try_device((rukh_device *)h, wanted);
    try_session_options((rukh_session_options *)h, wanted);
    try_session((rukh_session *)h, wanted);
    try_value((rukh_value *)h, wanted);
    try_run_options((rukh_run_options *)h, wanted);
    try_binding((rukh_io_binding *)h, wanted);
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
