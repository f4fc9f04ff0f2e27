/* Definitions of operators that are wrong, clash or go early, and nodes that do not fit their operator: each ends with
 * an error that says what. */

#include "check.h"

static rukh_environment *environment;
static int released;

static void count_release(void *user) {
    (void)user;
    released++;
}

static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

/* Gives the input as the output. */
static rukh_status compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    (void)user;
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    return rukh_kernel_context_set_output(context, 0, x, NULL);
}

static const char *x_name = "x", *y_name = "y";
static const float x_data[] = {1, 1, -1, 2};
static const int64_t x_shape[] = {2, 2};

static rukh_value *new_x(void) {
    rukh_value *x;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, x_shape, 2, x_data, sizeof x_data, &x, &error));
    return x;
}

static rukh_status run(rukh_session *session, rukh_run_options *options, rukh_error **error) {
    rukh_value *x = new_x(), *y = NULL;
    rukh_status status =
        rukh_session_run(session, options, &x_name, (const rukh_value *const *)&x, 1, &y_name, 1, &y, error);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return status;
}

static rukh_operator *scale(rukh_node_callback shape_function) {
    rukh_operator *operator;
    OK(rukh_operator_create("test.ops", "Scale", 1, NULL, count_release, &operator, &error));
    OK(rukh_operator_add_type_variable(operator, "T", NULL, 0, &error));
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_FLOAT, 0, &error));
    OK(rukh_operator_set_shape_function(operator, shape_function, &error));
    OK(rukh_operator_set_kernel(operator, NULL, compute, &error));
    return operator;
}

/* Opens the model with an operator; destroys the operator. */
static rukh_status open_with(rukh_operator *operator, rukh_session **session, rukh_error **error) {
    rukh_session_options *options;
    rukh_status status;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    status = rukh_session_create(environment, model_path("operators"), options, session, error);
    rukh_session_options_destroy(options);
    return status;
}

static void wrong_definitions(void) {
    rukh_operator *operator, *other;
    rukh_session_options *options;
    rukh_session *session;
    const rukh_element_type unknown = 99;
    const float one = 1;
    int before;
    OK(rukh_session_options_create(&options, &error));
    before = released;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "name", rukh_operator_create("d", "", 1, NULL, count_release, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "since: 0", rukh_operator_create("d", "A", 0, NULL, count_release, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "domain: NULL", rukh_operator_create(NULL, "A", 1, NULL, count_release, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "out", rukh_operator_create("d", "A", 1, NULL, count_release, NULL, &error));
    CHECK(operator== NULL && released == before + 4);

    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "the standard has an operator of this name",
          rukh_operator_create("", "Relu", 1, NULL, NULL, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "in domain \"ai.onnx\"",
          rukh_operator_create("ai.onnx", "If", 1, NULL, NULL, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "in domain \"ai.onnx.ml\"",
          rukh_operator_create("ai.onnx.ml", "Scaler", 1, NULL, NULL, &operator, &error));

    OK(rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "it has no outputs", rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "neither a type variable nor",
          rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "99", rukh_operator_add_type_variable(operator, "T", &unknown, 1, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"float\"", rukh_operator_add_type_variable(operator, "float", NULL, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed", rukh_operator_add_type_variable(operator, "T", NULL, 2, &error));
    OK(rukh_operator_add_type_variable(operator, "T", NULL, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"T\"", rukh_operator_add_type_variable(operator, "T", NULL, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "arity: 7", rukh_operator_add_input(operator, "x", "T", 7, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "name: NULL", rukh_operator_add_input(operator, NULL, "T", 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "input 0 is not there", rukh_operator_set_shape_input(operator, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "attribute type 5", rukh_operator_add_attribute(operator, "a", 5, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "required: 2", rukh_operator_add_attribute(operator, "a", 1, 2, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "count: 2",
          rukh_operator_add_attribute_with_default(operator, "a", RUKH_ATTRIBUTE_FLOAT, &one, 2, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "data",
          rukh_operator_add_attribute_with_default(operator, "a", RUKH_ATTRIBUTE_INTS, NULL, 2, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL",
          rukh_operator_add_attribute_with_default(operator, "a", RUKH_ATTRIBUTE_TENSOR, NULL, 1, &error));
    OK(rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_INT, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"factor\"", rukh_operator_add_attribute(operator, "factor", 1, 0, &error));
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_VARIADIC, &error));
    OK(rukh_operator_add_input(operator, "z", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "T", RUKH_ARITY_REQUIRED, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "it has no kernel", rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "compute: NULL", rukh_operator_set_kernel(operator, NULL, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "compute: NULL", rukh_operator_set_gpu_kernel(operator, NULL, NULL, NULL, &error));
    OK(rukh_operator_set_kernel(operator, NULL, compute, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"x\" is variadic and not the last",
          rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);

    /* Added twice; a clash of names; freed before the options. */
    before = released;
    operator = scale(shape);
    other = scale(shape);
    OK(rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "test.ops.Scale of version 1 already",
          rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "test.ops.Scale of version 1 already",
          rukh_session_options_add_operator(options, other, &error));
    rukh_operator_destroy(operator);
    rukh_operator_destroy(operator);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "rukh_operator is needed; a rukh_session_options",
          rukh_session_options_add_operator(options, (rukh_operator *)options, &error));
    rukh_operator_destroy(other);
    CHECK(released == before + 1);
    OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
    rukh_session_options_destroy(options);
    OK(run(session, NULL, &error));
    CHECK(released == before + 1);
    rukh_session_destroy(session);
    CHECK(released == before + 2);
}

/* What models do wrong: number and types of inputs, attributes. */
static void wrong_nodes(void) {
    static const struct {
        const char *type;
        rukh_attribute_type attribute;
        int ports;
        const char *part;
    } cases[] = {
        {"int64", RUKH_ATTRIBUTE_FLOAT, 1, "\"scale_scaled\" (test.ops.Scale): input 0 (x): its type is tensor(float); allowed is tensor(int64)"},
        {"T", RUKH_ATTRIBUTE_FLOAT, 1, "input 0 (x): its type is tensor(float); allowed are double"},
        {"float", RUKH_ATTRIBUTE_INT, 1, "attribute \"factor\": it must be an integer"},
        {"float", 0, 1, "attribute \"factor\": the operator has no such attribute; it has none"},
        {"float", RUKH_ATTRIBUTE_FLOAT, 2, "input 1 (x): it is required"},
        {"float", RUKH_ATTRIBUTE_FLOAT, 0, "takes at most 0 inputs, the node has 1"},
        {"float", -RUKH_ATTRIBUTE_INT, 1, "\"missing\": it is required, and missing"},
    };
    const rukh_element_type only = RUKH_ELEMENT_DOUBLE;
    size_t i;
    int port;
    for (i = 0; i < COUNT_OF(cases); i++) {
        rukh_operator *operator;
        rukh_session *session;
        OK(rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, &error));
        OK(rukh_operator_add_type_variable(operator, "T", &only, 1, &error));
        for (port = 0; port < cases[i].ports; port++) {
            OK(rukh_operator_add_input(operator, "x", cases[i].type, RUKH_ARITY_REQUIRED, &error));
        }
        OK(rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, &error));
        if (cases[i].attribute > 0) {
            OK(rukh_operator_add_attribute(operator, "factor", cases[i].attribute, 0, &error));
        } else if (cases[i].attribute < 0) {
            OK(rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_FLOAT, 0, &error));
            OK(rukh_operator_add_attribute(operator, "missing", -cases[i].attribute, 1, &error));
        }
        OK(rukh_operator_set_kernel(operator, NULL, compute, &error));
        FAILS(RUKH_ERROR_INVALID_MODEL, cases[i].part, open_with(operator, &session, &error));
    }
}

int main(int argc, char **argv) {
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    wrong_definitions();
    wrong_nodes();
    rukh_environment_destroy(environment);
    return 0;
}
