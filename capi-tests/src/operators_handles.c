/* Every function about operators with handles that are none: NULL, of another kind, destroyed, any address. NULL and 0
 * stand in place of all other arguments. */

#include "check.h"

static rukh_error *error;

#define EXPECT(call)                                                                         \
    do {                                                                                     \
        rukh_status status_ = (call);                                                        \
        if (status_ != wanted) {                                                             \
            fprintf(stderr, "%s:%d: %s\n  gave %s: %s\n", __FILE__, __LINE__, #call,         \
                    rukh_status_name(status_), rukh_error_message(error));                   \
            abort();                                                                         \
        }                                                                                    \
        CHECK((status_ == RUKH_OK) == (error == NULL));                                      \
        rukh_error_destroy(error);                                                           \
        error = NULL;                                                                        \
    } while (0)

static void try_operator(rukh_operator *h, rukh_status wanted) {
    EXPECT(rukh_operator_add_type_variable(h, NULL, NULL, 3, &error));
    EXPECT(rukh_operator_add_input(h, NULL, NULL, 0, &error));
    EXPECT(rukh_operator_add_output(h, NULL, NULL, 0, &error));
    EXPECT(rukh_operator_set_shape_input(h, SIZE_MAX, &error));
    EXPECT(rukh_operator_set_kernel(h, NULL, NULL, &error));
    EXPECT(rukh_operator_set_gpu_kernel(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_operator_set_pure(h, 2, &error));
    EXPECT(rukh_operator_set_capturable(h, -1, &error));
    EXPECT(rukh_operator_add_attribute(h, NULL, 0, 0, &error));
    EXPECT(rukh_operator_add_attribute_with_default(h, NULL, 0, NULL, 0, &error));
}

static void try_node_info(rukh_node_info *h, rukh_status wanted) {
    EXPECT(rukh_node_info_name(h, NULL, &error));
    EXPECT(rukh_node_info_version(h, NULL, &error));
    EXPECT(rukh_node_info_input_count(h, NULL, &error));
    EXPECT(rukh_node_info_output_count(h, NULL, &error));
    EXPECT(rukh_node_info_has_input(h, 0, NULL, &error));
    EXPECT(rukh_node_info_has_output(h, 0, NULL, &error));
    EXPECT(rukh_node_info_input_value(h, 0, NULL, &error));
    EXPECT(rukh_node_info_has_attribute(h, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_int(h, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_float(h, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_string(h, NULL, NULL, 0, NULL, &error));
    EXPECT(rukh_node_info_attribute_ints(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_floats(h, NULL, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_string_count(h, NULL, NULL, &error));
    EXPECT(rukh_node_info_attribute_string_at(h, NULL, 0, NULL, 0, NULL, &error));
    EXPECT(rukh_node_info_attribute_tensor(h, NULL, NULL, &error));
    EXPECT(rukh_node_info_set_output_type(h, 0, -5, &error));
    EXPECT(rukh_node_info_set_output_shape(h, 0, NULL, 3, &error));
    EXPECT(rukh_node_info_set_error(h, NULL, &error));
    EXPECT(rukh_node_info_state(h, NULL, &error));
    if (h == NULL || wanted != RUKH_ERROR_INVALID_ARGUMENT) {
        EXPECT(rukh_node_info_input_type(h, 0, NULL, NULL, &error));
        EXPECT(rukh_node_info_input_shape(h, 0, NULL, 0, NULL, &error));
        EXPECT(rukh_node_info_set_output_shape_of(h, 0, 0, &error));
        EXPECT(rukh_node_info_set_output_dim_of(h, 0, 0, 0, 0, &error));
        EXPECT(rukh_node_info_set_state(h, NULL, NULL, &error));
        EXPECT(rukh_node_info_set_scratch(h, 0, &error));
    }
}

static void try_kernel_context(rukh_kernel_context *h, rukh_status wanted) {
    EXPECT(rukh_kernel_context_input_count(h, NULL, &error));
    EXPECT(rukh_kernel_context_output_count(h, NULL, &error));
    EXPECT(rukh_kernel_context_input(h, 0, NULL, &error));
    EXPECT(rukh_kernel_context_output(h, 0, NULL, 3, NULL, &error));
    EXPECT(rukh_kernel_context_set_output(h, 0, NULL, &error));
    EXPECT(rukh_kernel_context_state(h, NULL, &error));
    EXPECT(rukh_kernel_context_cancelled(h, NULL, &error));
    EXPECT(rukh_kernel_context_thread_count(h, NULL, &error));
    EXPECT(rukh_kernel_context_parallel_for(h, 0, NULL, NULL, &error));
    EXPECT(rukh_kernel_context_stream(h, NULL, &error));
    EXPECT(rukh_kernel_context_scratch(h, NULL, NULL, &error));
    EXPECT(rukh_kernel_context_set_error(h, NULL, &error));
}

static void try_registry(rukh_operator_registry *h, rukh_status wanted) {
    EXPECT(rukh_operator_registry_add(h, NULL, &error));
    EXPECT(rukh_operator_registry_set_error(h, NULL, &error));
}

static void try_all(void *h, rukh_status wanted) {
    try_operator(h, wanted);
    try_node_info(h, wanted);
    try_kernel_context(h, wanted);
    try_registry(h, wanted);
    EXPECT(rukh_operator_set_shape_function(h, NULL, &error));
}

/* With living handles, the other arguments are wrong. */
static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    try_node_info(node, RUKH_ERROR_INVALID_ARGUMENT);
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

static rukh_status compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    (void)user;
    try_kernel_context(context, RUKH_ERROR_INVALID_ARGUMENT);
    try_node_info((rukh_node_info *)context, RUKH_ERROR_INVALID_HANDLE);
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    return rukh_kernel_context_set_output(context, 0, x, NULL);
}

int main(int argc, char **argv) {
    rukh_environment *environment = new_environment("1");
    rukh_session_options *options;
    rukh_session *session;
    rukh_operator *operator;
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    const int64_t dims[] = {1, 2};
    long any[64] = {0};
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    try_all(NULL, RUKH_ERROR_INVALID_ARGUMENT);
    try_all(any + 8, RUKH_ERROR_INVALID_HANDLE);
    try_all(environment, RUKH_ERROR_INVALID_HANDLE);
    OK(rukh_session_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_session_options_add_operator(options, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_session_options_load_operators(options, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_environment_add_operator(environment, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_environment_load_operators(environment, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_environment_add_operator(NULL, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_session_options_add_operator(NULL, NULL, &error));

    OK(rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, &error));
    try_operator(operator, RUKH_ERROR_INVALID_ARGUMENT);
    OK(rukh_operator_add_input(operator, "x", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_FLOAT, 0, &error));
    OK(rukh_operator_set_shape_function(operator, shape, &error));
    OK(rukh_operator_set_kernel(operator, NULL, compute, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    try_all(operator, RUKH_ERROR_INVALID_HANDLE);
    OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
    rukh_session_options_destroy(options);
    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, dims, 2, &x, &error));
    OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    return 0;
}
