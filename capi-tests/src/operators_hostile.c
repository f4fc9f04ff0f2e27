/* Operators whose functions do everything wrong: each call ends with an error that says what, and the
 * process lives. */

#include "check.h"

#include <stdatomic.h>

static rukh_environment *environment;
static atomic_int released;

static void count_release(void *user) {
    (void)user;
    atomic_fetch_add(&released, 1);
}

/* What a function of the operator is to do wrong. */
typedef enum {
    NOTHING,
    FAIL_WITHOUT_TEXT,
    FAIL_UNKNOWN_STATUS,
    TEXT_AND_OK,
    NO_OUTPUT,
    WRONG_SHAPE,
    WRONG_TYPE,
    NO_SUCH_OUTPUT,
    KEEP_INPUT,
    RUN_AGAIN,
    DESTROY_BORROWED,
    CANCELLED,
    TWO_STATES,
    SHAPE_LIES,
    SHAPE_WRONG_TYPE,
    SHAPE_SETS_STATE,
    CREATE_FAILS,
} wrong;

static wrong what;
static rukh_session *running;
static int depth, planned;
static rukh_value *kept;
static rukh_kernel_context *last_context;
static rukh_node_info *last_node;
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

static rukh_status shape(rukh_node_info *node, void *user) {
    const int64_t lie[] = {7};
    (void)user;
    last_node = node;
    switch (what) {
    case SHAPE_LIES:
        return rukh_node_info_set_output_shape(node, 0, lie, 1, NULL);
    case SHAPE_WRONG_TYPE:
        return rukh_node_info_set_output_type(node, 0, RUKH_ELEMENT_INT64, NULL);
    case SHAPE_SETS_STATE:
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "can be set in that function alone",
              rukh_node_info_set_state(node, NULL, count_release, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "can be set in that function alone",
              rukh_node_info_set_scratch(node, 5, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "output 9 is not there",
              rukh_node_info_set_output_shape_of(node, 9, 0, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "input 9 is not there",
              rukh_node_info_set_output_shape_of(node, 0, 9, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "dimension 0 of output 0 is -2",
              rukh_node_info_set_output_shape(node, 0, (const int64_t[]){-2}, 1, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "has no shape yet",
              rukh_node_info_set_output_dim_of(node, 0, 0, 0, 0, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_node_info_set_error(node, NULL, &error));
        return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
    case FAIL_WITHOUT_TEXT:
        return RUKH_ERROR_UNSUPPORTED;
    default:
        return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
    }
}

static rukh_status create(rukh_node_info *node, void *user) {
    (void)user;
    if (what == TWO_STATES) {
        OK(rukh_node_info_set_state(node, NULL, count_release, &error));
        OK(rukh_node_info_set_state(node, NULL, count_release, &error));
    }
    if (what == CREATE_FAILS) {
        OK(rukh_node_info_set_state(node, NULL, count_release, &error));
        OK(rukh_node_info_set_error(node, "the licence has run out", &error));
    }
    return RUKH_OK;
}

static rukh_status compute(rukh_kernel_context *context, void *user) {
    const int64_t four = 4;
    const rukh_value *x;
    rukh_value *y, *other;
    const void *from;
    void *to;
    size_t rank, bytes;
    int64_t dims[4];
    (void)user;
    last_context = context;
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_shape(x, dims, 4, &rank, &error));
    switch (what) {
    case FAIL_WITHOUT_TEXT:
        return RUKH_ERROR_NOT_FOUND;
    case FAIL_UNKNOWN_STATUS:
        return 4711;
    case TEXT_AND_OK:
        OK(rukh_kernel_context_set_error(context, "the first", &error));
        OK(rukh_kernel_context_set_error(context, "too cold", &error));
        break;
    case NO_OUTPUT:
        return RUKH_OK;
    case WRONG_SHAPE:
        return rukh_kernel_context_output(context, 0, &four, 1, &y, NULL);
    case WRONG_TYPE:
        OK(rukh_value_create_tensor(RUKH_ELEMENT_DOUBLE, dims, rank, &y, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "was given; allowed is", rukh_kernel_context_set_output(context, 0, y, &error));
        rukh_value_destroy(y);
        if (planned) {
            OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, &four, 1, &y, &error));
            FAILS(RUKH_ERROR_INVALID_ARGUMENT, "was given; allowed is",
                  rukh_kernel_context_set_output(context, 0, y, &error));
            rukh_value_destroy(y);
        }
        FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_kernel_context_set_output(context, 0, y, &error));
        break;
    case SHAPE_LIES:
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "was asked for; the shape function said [7]",
              rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
        return RUKH_ERROR_INVALID_DATA;
    case NO_SUCH_OUTPUT:
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "output 5 is not there", rukh_kernel_context_output(context, 5, dims, rank, &y, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "input 5 is not there", rukh_kernel_context_input(context, 5, &x, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "body", rukh_kernel_context_parallel_for(context, 3, NULL, NULL, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "runs on the CPU", rukh_kernel_context_stream(context, &to, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "runs on the CPU", rukh_kernel_context_scratch(context, &to, NULL, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "shape", rukh_kernel_context_output(context, 0, NULL, 2, &y, &error));
        break;
    case KEEP_INPUT:
        OK(rukh_value_clone(x, &kept, &error));
        break;
    case RUN_AGAIN:
        if (depth < 3) {
            depth++;
            OK(run(running, NULL, &error));
            depth--;
        }
        break;
    case CANCELLED: {
        int32_t cancelled;
        OK(rukh_kernel_context_cancelled(context, &cancelled, &error));
        CHECK(cancelled == 0);
        OK(rukh_run_options_cancel(user, &error));
        OK(rukh_kernel_context_cancelled(context, &cancelled, &error));
        CHECK(cancelled == 1);
        break;
    }
    default:
        break;
    }
    OK(rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
    OK(rukh_kernel_context_output(context, 0, dims, rank, &other, &error));
    CHECK(y == other);
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_data(x, &from, &bytes, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    memcpy(to, from, bytes);
    if (what == DESTROY_BORROWED) {
        rukh_value_destroy(y);
    }
    return RUKH_OK;
}

static rukh_operator *scale(void *user, rukh_node_callback shape_function) {
    rukh_operator *operator;
    OK(rukh_operator_create("test.ops", "Scale", 1, user, count_release, &operator, &error));
    OK(rukh_operator_add_type_variable(operator, "T", NULL, 0, &error));
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute(operator, "factor", RUKH_ATTRIBUTE_FLOAT, 0, &error));
    OK(rukh_operator_set_shape_function(operator, shape_function, &error));
    OK(rukh_operator_set_kernel(operator, create, compute, &error));
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

static void wrong_kernels(rukh_node_callback shape_function) {
    static const struct {
        wrong what;
        rukh_status status;
        const char *part;
    } cases[] = {
        {NOTHING, RUKH_OK, ""},
        {FAIL_UNKNOWN_STATUS, RUKH_ERROR_INVALID_DATA, "(test.ops.Scale): the operator's kernel failed with status 4711"},
        {TEXT_AND_OK, RUKH_ERROR_INVALID_DATA, "\"scale_scaled\" (test.ops.Scale): too cold"},
        {NO_OUTPUT, RUKH_ERROR_INVALID_DATA, "returned without making output 0"},
        {WRONG_TYPE, RUKH_OK, ""},
        {NO_SUCH_OUTPUT, RUKH_OK, ""},
        {RUN_AGAIN, RUKH_OK, ""},
        {DESTROY_BORROWED, RUKH_OK, ""},
        {TWO_STATES, RUKH_OK, ""},
    };
    size_t i;
    planned = shape_function != NULL;
    for (i = 0; i < COUNT_OF(cases); i++) {
        rukh_session *session;
        rukh_error *failure = NULL;
        rukh_status status;
        int before = atomic_load(&released);
        what = cases[i].what;
        OK(open_with(scale(NULL, shape_function), &session, &error));
        /* One of two states of each of two nodes. */
        CHECK(atomic_load(&released) == before + (what == TWO_STATES ? 2 : 0));
        running = session;
        status = run(session, NULL, &failure);
        if (status != cases[i].status || strstr(rukh_error_message(failure), cases[i].part) == NULL) {
            fprintf(stderr, "case %d: %s: %s\n", (int)what, rukh_status_name(status), rukh_error_message(failure));
            abort();
        }
        rukh_error_destroy(failure);
        FAILS(RUKH_ERROR_INVALID_HANDLE, "", rukh_kernel_context_set_error(last_context, "too late", &error));
        what = NOTHING;
        OK(run(session, NULL, &error));
        rukh_session_destroy(session);
        CHECK(atomic_load(&released) == before + (cases[i].what == TWO_STATES ? 5 : 1));
    }
}

static void planned_kernels(void) {
    rukh_session *session;
    what = FAIL_WITHOUT_TEXT;
    FAILS(RUKH_ERROR_UNSUPPORTED, "the operator's shape function failed with status 6 and without a text",
          open_with(scale(NULL, shape), &session, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "", rukh_node_info_set_error(last_node, "too late", &error));
    what = SHAPE_WRONG_TYPE;
    FAILS(RUKH_ERROR_INVALID_DATA, "output 0 (y): the shape function says tensor(int64); the signature says tensor(float)",
          open_with(scale(NULL, shape), &session, &error));
    what = SHAPE_LIES;
    OK(open_with(scale(NULL, shape), &session, &error));
    FAILS(RUKH_ERROR_INVALID_DATA, "status 8 and without a text", run(session, NULL, &error));
    rukh_session_destroy(session);
    what = SHAPE_SETS_STATE;
    OK(open_with(scale(NULL, shape), &session, &error));
    OK(run(session, NULL, &error));
    what = WRONG_SHAPE;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "the operator's kernel failed", run(session, NULL, &error));
    what = KEEP_INPUT;
    FAILS(RUKH_ERROR_INVALID_DATA, "kept a value", run(session, NULL, &error));
    rukh_value_destroy(kept);
    rukh_session_destroy(session);
    what = CREATE_FAILS;
    FAILS(RUKH_ERROR_INVALID_DATA, "the licence has run out", open_with(scale(NULL, shape), &session, &error));
}

static void cancelled(void) {
    rukh_run_options *options;
    rukh_session *session;
    OK(rukh_run_options_create(&options, &error));
    what = CANCELLED;
    OK(open_with(scale(options, shape), &session, &error));
    FAILS(RUKH_ERROR_CANCELLED, "cancelled", run(session, options, &error));
    rukh_session_destroy(session);
    rukh_run_options_destroy(options);
}

int main(int argc, char **argv) {
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    wrong_kernels(shape);
    wrong_kernels(NULL);
    planned_kernels();
    cancelled();
    rukh_environment_destroy(environment);
    return 0;
}
