/* Operators that the program defines: what is made once a node, what goes with what, and the
 * places in a model where they stand. */

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the functions saw, by the operators' user pointer. */
typedef struct {
    atomic_int created, destroyed, shapes, computed, released;
} counts;

static void release_counts(void *user) {
    atomic_fetch_add(&((counts *)user)->released, 1);
}

typedef struct {
    float factor;
    counts *seen;
} scale_state;

static void release_scale(void *user) {
    scale_state *state = user;
    atomic_fetch_add(&state->seen->destroyed, 1);
    free(state);
}

static rukh_status scale_shape(rukh_node_info *node, void *user) {
    atomic_fetch_add(&((counts *)user)->shapes, 1);
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

static rukh_status scale_create(rukh_node_info *node, void *user) {
    scale_state *state = malloc(sizeof *state);
    state->seen = user;
    atomic_fetch_add(&state->seen->created, 1);
    OK(rukh_node_info_set_state(node, state, release_scale, &error));
    OK(rukh_node_info_attribute_float(node, "factor", &state->factor, &error));
    return RUKH_OK;
}

typedef struct {
    const float *from;
    float *to;
    float factor;
    rukh_kernel_context *context;
} scale_loop;

static void scale_body(size_t index, void *user) {
    scale_loop *loop = user;
    size_t inputs;
    loop->to[index] = loop->from[index] * loop->factor;
    OK(rukh_kernel_context_input_count(loop->context, &inputs, &error));
    CHECK(inputs == 1);
}

static rukh_status scale_compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x, *again;
    rukh_value *y;
    void *state, *to;
    const void *from;
    int64_t shape[4];
    size_t rank, count, threads;
    scale_loop loop;
    atomic_fetch_add(&((counts *)user)->computed, 1);
    OK(rukh_kernel_context_state(context, &state, &error));
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_kernel_context_input(context, 0, &again, &error));
    CHECK(x == again);
    OK(rukh_value_shape(x, shape, 4, &rank, &error));
    OK(rukh_value_element_count(x, &count, &error));
    OK(rukh_kernel_context_output(context, 0, shape, rank, &y, &error));
    OK(rukh_value_data(x, &from, NULL, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    OK(rukh_kernel_context_thread_count(context, &threads, &error));
    CHECK(threads >= 1);
    loop.from = from;
    loop.to = to;
    loop.factor = ((scale_state *)state)->factor;
    loop.context = context;
    OK(rukh_kernel_context_parallel_for(context, count, scale_body, &loop, &error));
    return RUKH_OK;
}

static rukh_operator *new_operator(const char *name, int64_t since, void *user, rukh_release release) {
    rukh_operator *operator;
    const rukh_element_type floats[] = {RUKH_ELEMENT_FLOAT, RUKH_ELEMENT_DOUBLE};
    OK(rukh_operator_create("test.ops", name, since, user, release, &operator, &error));
    OK(rukh_operator_add_type_variable(operator, "T", floats, 2, &error));
    return operator;
}

static rukh_operator *scale_operator(const char *name, int64_t since, counts *seen) {
    const float one = 1;
    rukh_operator *operator = new_operator(name, since, seen, release_counts);
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "factor", RUKH_ATTRIBUTE_FLOAT, &one, 1, &error));
    OK(rukh_operator_set_shape_function(operator, scale_shape, &error));
    OK(rukh_operator_set_kernel(operator, scale_create, scale_compute, &error));
    return operator;
}

static void add(rukh_session_options *options, rukh_operator *operator) {
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
}

/* The kernel between operators that fuse; what is made once a node, and what goes with what. */
static void neighbours(void) {
    counts seen = {0}, newer = {0};
    rukh_environment *environment = new_environment("2");
    rukh_operator *operator= scale_operator("Scale", 1, &seen), *later = scale_operator("Scale", 3, &newer);
    rukh_session_options *options;
    rukh_session *session;
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    const float data[] = {1, 1, -1, 2};
    const float expected[] = {16, 20, 16, 24};
    const char *levels[] = {"none", "basic", "all"};
    int64_t shape[2] = {2, 2};
    size_t level, run, nodes;
    OK(rukh_environment_add_operator(environment, later, &error));
    rukh_operator_destroy(later);
    FAILS(RUKH_ERROR_INVALID_MODEL, "operator Scale is of domain test.ops, which is not known",
          rukh_session_create(environment, model_path("operators"), NULL, &session, &error));
    OK(rukh_environment_add_operator(environment, operator, &error));
    rukh_operator_destroy(operator);
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, data, sizeof data, &x, &error));
    for (level = 0; level < 3; level++) {
        OK(rukh_session_options_create(&options, &error));
        OK(rukh_session_options_set(options, "optimization", levels[level], &error));
        OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
        rukh_session_options_destroy(options);
        CHECK(atomic_load(&seen.created) == 2 * (int)(level + 1));
        for (run = 0; run < 3; run++) {
            OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
            CHECK(memcmp(floats_of(y, 4), expected, sizeof expected) == 0);
            rukh_value_destroy(y);
        }
        OK(rukh_session_placement_count(session, &nodes, &error));
        CHECK(nodes >= 4);
        rukh_session_destroy(session);
        CHECK(atomic_load(&seen.destroyed) == 2 * (int)(level + 1));
    }
    CHECK(atomic_load(&seen.computed) == 3 * 3 * 2);
    CHECK(atomic_load(&seen.released) == 0);
    rukh_value_destroy(x);
    rukh_environment_destroy(environment);
    CHECK(atomic_load(&seen.released) == 1 && atomic_load(&newer.released) == 1);
    CHECK(atomic_load(&newer.created) == 0);
}

static void nested(void) {
    counts seen = {0}, replaced = {0};
    rukh_environment *environment = new_environment("1");
    rukh_session_options *options;
    rukh_session *session;
    rukh_value *inputs[3], *y;
    const char *names[] = {"x", "cond", "times"}, *out = "y";
    const float x[] = {1, -2};
    uint8_t cond;
    OK(rukh_session_options_create(&options, &error));
    add(options, scale_operator("Scale", 2, &seen));
    add(options, scale_operator("Replaced", 1, &replaced));
    OK(rukh_session_create(environment, model_path("operators_nested"), options, &session, &error));
    rukh_session_options_destroy(options);
    CHECK(atomic_load(&seen.created) == 4 && atomic_load(&replaced.created) == 1);
    inputs[0] = floats(x, 2);
    inputs[2] = int64_scalar(2);
    for (cond = 0; cond < 2; cond++) {
        const float factor = (cond ? 2 : 3) * 100 * -0.5f;
        OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_BOOL, NULL, 0, &cond, 1, &inputs[1], &error));
        OK(rukh_session_run(session, NULL, names, (const rukh_value *const *)inputs, 3, &out, 1, &y, &error));
        CHECK(floats_of(y, 2)[0] == factor && floats_of(y, 2)[1] == -2 * factor);
        rukh_value_destroy(y);
        rukh_value_destroy(inputs[1]);
    }
    CHECK(atomic_load(&seen.computed) == 2 * 4 && atomic_load(&replaced.computed) == 2);
    rukh_value_destroy(inputs[0]);
    rukh_value_destroy(inputs[2]);
    rukh_environment_destroy(environment);
    CHECK(atomic_load(&seen.released) == 0);
    rukh_session_destroy(session);
    CHECK(atomic_load(&seen.released) == 1 && atomic_load(&seen.destroyed) == 4);
}

/* Many runs of one session at once, each with a number of its own. */

typedef struct {
    rukh_session *session;
    int number;
} runner;

static void *run_often(void *argument) {
    const runner *own = argument;
    const int64_t shape[] = {1, 2};
    const float row[] = {(float)own->number, 0};
    const char *in = "x", *out = "y";
    rukh_value *x, *y;
    int i;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, row, sizeof row, &x, &error));
    for (i = 0; i < 50; i++) {
        OK(rukh_session_run(own->session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
        CHECK(floats_of(y, 2)[0] == 2 * (float)own->number + 10);
        rukh_value_destroy(y);
    }
    rukh_value_destroy(x);
    return NULL;
}

static void at_once(void) {
    counts seen = {0};
    rukh_environment *environment = new_environment("2");
    rukh_operator *operator= scale_operator("Scale", 1, &seen);
    rukh_session *session;
    pthread_t threads[4];
    runner runners[4];
    int i;
    OK(rukh_environment_add_operator(environment, operator, &error));
    rukh_operator_destroy(operator);
    session = open_model(environment, "operators");
    for (i = 0; i < 4; i++) {
        runners[i].session = session;
        runners[i].number = i;
        CHECK(pthread_create(&threads[i], NULL, run_often, &runners[i]) == 0);
    }
    for (i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(atomic_load(&seen.created) == 2 && atomic_load(&seen.computed) == 4 * 50 * 2);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    CHECK(atomic_load(&seen.destroyed) == 2 && atomic_load(&seen.released) == 1);
}

int main(int argc, char **argv) {
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    neighbours();
    nested();
    at_once();
    return 0;
}
