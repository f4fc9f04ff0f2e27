/* Operators that are pure: nodes over constants are computed when a model is opened, and only those. */

#include "check.h"

static rukh_environment *environment;
static int created, destroyed, computed;
/* What the functions do wrong. */
static int kernel_fails, create_fails, gives_too_much;

static const float x_data[] = {1, 1, -1, 2};
static const float expected[] = {16, 20, 16, 24};
static const int64_t x_shape[] = {2, 2};

static void release_state(void *user) {
    free(user);
    destroyed++;
}

static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

static rukh_status create(rukh_node_info *node, void *user) {
    float *factor;
    (void)user;
    if (create_fails) {
        OK(rukh_node_info_set_error(node, "the licence has run out", &error));
        return RUKH_ERROR_UNSUPPORTED;
    }
    factor = malloc(sizeof *factor);
    created++;
    OK(rukh_node_info_set_state(node, factor, release_state, &error));
    OK(rukh_node_info_attribute_float(node, "factor", factor, &error));
    return RUKH_OK;
}

static rukh_status compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    rukh_value *y;
    const void *from;
    void *state, *to;
    int64_t dims[4];
    size_t rank, count, i;
    (void)user;
    computed++;
    if (kernel_fails) {
        OK(rukh_kernel_context_set_error(context, "too cold", &error));
        return RUKH_ERROR_NOT_FOUND;
    }
    OK(rukh_kernel_context_state(context, &state, &error));
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_shape(x, dims, 4, &rank, &error));
    OK(rukh_value_element_count(x, &count, &error));
    if (gives_too_much) {
        dims[0] = 1 << 19;
        dims[1] = (int64_t)count;
        rank = 2;
    }
    OK(rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
    OK(rukh_value_data(x, &from, NULL, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    for (i = 0; i < count; i++) ((float *)to)[i] = *(float *)state * ((const float *)from)[i];
    if (gives_too_much) memset((float *)to + count, 0, ((size_t)dims[0] - 1) * count * sizeof(float));
    return RUKH_OK;
}

/* Opens the model, in which one of two nodes has constants alone. */
static rukh_status open_with(int pure, int has_shapes, const char *level, rukh_session **session, rukh_error **error) {
    rukh_session_options *options;
    rukh_operator *operator;
    rukh_status status;
    const float one = 1;
    created = destroyed = computed = 0;
    OK(rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, &error));
    OK(rukh_operator_add_input(operator, "x", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "factor", RUKH_ATTRIBUTE_FLOAT, &one, 1, &error));
    if (has_shapes) OK(rukh_operator_set_shape_function(operator, shape, &error));
    OK(rukh_operator_set_kernel(operator, create, compute, &error));
    if (pure >= 0) OK(rukh_operator_set_pure(operator, pure, &error));
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "optimization", level, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    status = rukh_session_create(environment, model_path("operators"), options, session, error);
    rukh_session_options_destroy(options);
    return status;
}

static rukh_status run(rukh_session *session, rukh_error **error) {
    rukh_value *x, *y = NULL;
    const char *in = "x", *out = "y";
    rukh_status status;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, x_shape, 2, x_data, sizeof x_data, &x, &error));
    status = rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, error);
    if (status == RUKH_OK && !gives_too_much) CHECK(memcmp(floats_of(y, 4), expected, sizeof expected) == 0);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return status;
}

static rukh_status count_own(const rukh_placement *placement, void *user) {
    const char *op;
    OK(rukh_placement_text(placement, RUKH_PLACEMENT_OPERATOR, &op, &error));
    *(int *)user += strcmp(op, "test.ops.Scale") == 0;
    return RUKH_OK;
}

/* How many nodes a session has whose operator is the caller's. */
static int own_nodes(const rukh_session *session) {
    int own = 0;
    OK(rukh_session_for_each_placement(session, count_own, &own, &error));
    return own;
}

/* What is computed ahead: constants alone, of operators that are pure, where the model is optimised. */
static void once(void) {
    static const struct {
        int pure;
        const char *level;
        int ahead;
    } cases[] = {{-1, "all", 0}, {0, "all", 0}, {1, "none", 0}, {1, "basic", 1}, {1, "all", 1}};
    size_t i;
    int has_shapes, runs;
    for (i = 0; i < COUNT_OF(cases); i++) {
        for (has_shapes = 0; has_shapes < 2; has_shapes++) {
            rukh_session *session;
            OK(open_with(cases[i].pure, has_shapes, cases[i].level, &session, &error));
            CHECK(computed == cases[i].ahead);
            CHECK(own_nodes(session) == 2 - cases[i].ahead);
            /* The state of what was computed ahead is gone. */
            CHECK(created == 2 && destroyed == cases[i].ahead);
            for (runs = 0; runs < 3; runs++) OK(run(session, &error));
            if (cases[i].pure == 1 && !cases[i].ahead && has_shapes) {
                /* When the first run was planned: it knows the shape of what is made. */
                CHECK(computed == 1 + 3);
            } else {
                CHECK(computed == cases[i].ahead + 3 * (2 - cases[i].ahead));
            }
            rukh_session_destroy(session);
            CHECK(created == 2 && destroyed == 2);
        }
    }
}

/* As for the standard's operators: what cannot be computed ahead is left for the runs, which tell. */
static void failing(void) {
    rukh_session *session;
    int has_shapes;
    for (has_shapes = 0; has_shapes < 2; has_shapes++) {
        kernel_fails = 1;
        OK(open_with(1, has_shapes, "all", &session, &error));
        CHECK(computed > 0 && own_nodes(session) == 2);
        FAILS(RUKH_ERROR_NOT_FOUND, "(test.ops.Scale): too cold", run(session, &error));
        kernel_fails = 0;
        OK(run(session, &error));
        rukh_session_destroy(session);
        CHECK(created == destroyed);
        create_fails = 1;
        FAILS(RUKH_ERROR_UNSUPPORTED, "(test.ops.Scale): the licence has run out",
              open_with(1, has_shapes, "all", &session, &error));
        create_fails = 0;
        CHECK(created == 0 && computed == 0);
    }
    /* 4 MiB made of 8 bytes: a session keeps the node instead. */
    gives_too_much = 1;
    OK(open_with(1, 0, "all", &session, &error));
    CHECK(computed > 0 && own_nodes(session) == 2);
    gives_too_much = 0;
    OK(run(session, &error));
    rukh_session_destroy(session);
    CHECK(created == destroyed);
}

static void wrong(void) {
    rukh_operator *operator;
    OK(rukh_operator_create("test.ops", "Scale", 1, NULL, NULL, &operator, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "pure: 2 is not allowed; allowed are 0 and 1",
          rukh_operator_set_pure(operator, 2, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "capturable: -1 is not allowed; allowed are 0 and 1",
          rukh_operator_set_capturable(operator, -1, &error));
    rukh_operator_destroy(operator);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_operator_set_pure(operator, 1, &error));
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_operator_set_capturable(operator, 1, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_operator_set_pure(NULL, 1, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_operator_set_capturable(NULL, 1, &error));
}

int main(int argc, char **argv) {
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    once();
    failing();
    wrong();
    rukh_environment_destroy(environment);
    return 0;
}
