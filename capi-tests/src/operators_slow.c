/* Operators whose functions take their time: meanwhile others open and run models, runs are cancelled, and what the
 * functions work for is destroyed. */

#include "system.h"

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

static rukh_environment *environment;
static atomic_int created, destroyed, released, inside, shut;

/* What the kernel that comes first does. */
typedef enum {
    AT_ONCE,
    /* Waits until the gate is opened. */
    AT_THE_GATE,
    /* Waits until its run is cancelled, says so, or does not. */
    UNTIL_CANCELLED,
    UNTIL_CANCELLED_AND_WELL,
    /* Destroys its session and its environment. */
    DESTROYS,
    /* Each element takes its time. */
    SLOW_LOOP,
} manner;

static atomic_int next;
static rukh_session *to_destroy;
static rukh_environment *environment_to_destroy;

static const float x_data[] = {1, 1, -1, 2};
static const float expected[] = {16, 20, 16, 24};
static const int64_t x_shape[] = {2, 2};
static const char *x_name = "x", *y_name = "y";

static void wait_for(const atomic_int *number, int wanted) {
    while (atomic_load(number) < wanted) wait_milliseconds(1);
}

static void at_the_gate(void) {
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&shut)) wait_milliseconds(1);
}

static void release_state(void *user) {
    free(user);
    atomic_fetch_add(&destroyed, 1);
}

static void release_user(void *user) {
    (void)user;
    atomic_fetch_add(&released, 1);
}

static rukh_status shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

static rukh_status create(rukh_node_info *node, void *user) {
    float *factor = malloc(sizeof *factor);
    atomic_fetch_add(&created, 1);
    OK(rukh_node_info_set_state(node, factor, release_state, &error));
    OK(rukh_node_info_attribute_float(node, "factor", factor, &error));
    /* Functions of the opening may be slow, too. */
    if (user != NULL) at_the_gate();
    return RUKH_OK;
}

typedef struct {
    const float *from;
    float *to, factor;
    manner manner;
} loop;

static void body(size_t index, void *user) {
    const loop *own = user;
    if (own->manner == SLOW_LOOP) wait_milliseconds(20);
    own->to[index] = own->factor * own->from[index];
}

static rukh_status compute(rukh_kernel_context *context, void *user) {
    const manner manner = atomic_exchange(&next, AT_ONCE);
    const rukh_value *x;
    rukh_value *y;
    const void *from;
    void *state, *to;
    int64_t dims[4];
    size_t rank, count;
    int32_t cancelled = 0;
    loop own;
    (void)user;
    OK(rukh_kernel_context_state(context, &state, &error));
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_shape(x, dims, 4, &rank, &error));
    OK(rukh_value_element_count(x, &count, &error));
    switch (manner) {
    case AT_THE_GATE:
        at_the_gate();
        break;
    case UNTIL_CANCELLED:
    case UNTIL_CANCELLED_AND_WELL:
        OK(rukh_kernel_context_cancelled(context, &cancelled, &error));
        CHECK(cancelled == 0);
        atomic_fetch_add(&inside, 1);
        while (!cancelled) {
            wait_milliseconds(1);
            OK(rukh_kernel_context_cancelled(context, &cancelled, &error));
        }
        if (manner == UNTIL_CANCELLED) return RUKH_ERROR_CANCELLED;
        break;
    case DESTROYS:
        rukh_session_destroy(to_destroy);
        rukh_environment_destroy(environment_to_destroy);
        FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_session_input_count(to_destroy, &count, &error));
        OK(rukh_value_element_count(x, &count, &error));
        CHECK(atomic_load(&destroyed) == 0 && atomic_load(&released) == 0);
        break;
    default:
        break;
    }
    OK(rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
    OK(rukh_value_data(x, &from, NULL, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    own.from = from;
    own.to = to;
    own.factor = *(const float *)state;
    own.manner = manner;
    return rukh_kernel_context_parallel_for(context, count, body, &own, NULL);
}

/* Options with the operator; `slow`: its function that makes a node's state waits at the gate. */
static rukh_session_options *options_with(int slow) {
    static int user;
    const float one = 1;
    rukh_operator *operator;
    rukh_session_options *options;
    OK(rukh_operator_create("test.ops", "Scale", 1, slow ? &user : NULL, release_user, &operator, &error));
    OK(rukh_operator_add_input(operator, "x", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "factor", RUKH_ATTRIBUTE_FLOAT, &one, 1, &error));
    OK(rukh_operator_set_shape_function(operator, shape, &error));
    OK(rukh_operator_set_kernel(operator, create, compute, &error));
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
    return options;
}

static rukh_session *open_in(rukh_environment *where) {
    rukh_session_options *options = options_with(0);
    rukh_session *session;
    atomic_store(&created, 0);
    atomic_store(&destroyed, 0);
    atomic_store(&released, 0);
    atomic_store(&inside, 0);
    OK(rukh_session_create(where, model_path("operators"), options, &session, &error));
    rukh_session_options_destroy(options);
    CHECK(atomic_load(&created) == 2);
    return session;
}

static void all_gone(void) {
    CHECK(atomic_load(&destroyed) == atomic_load(&created) && atomic_load(&released) == 1);
}

/* A run in a thread of its own. */
typedef struct {
    rukh_session *session;
    rukh_run_options *options;
    rukh_status status;
    pthread_t thread;
} runner;

static rukh_status run(rukh_session *session, rukh_run_options *options) {
    rukh_value *x, *y = NULL;
    rukh_status status;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, x_shape, 2, x_data, sizeof x_data, &x, &error));
    status = rukh_session_run(session, options, &x_name, (const rukh_value *const *)&x, 1, &y_name, 1, &y, NULL);
    CHECK((status == RUKH_OK) == (y != NULL));
    if (y != NULL) CHECK(memcmp(floats_of(y, 4), expected, sizeof expected) == 0);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return status;
}

static void *run_it(void *argument) {
    runner *own = argument;
    own->status = run(own->session, own->options);
    return NULL;
}

/* Starts a run whose first kernel goes about it in this manner. */
static void start(runner *own, rukh_session *session, rukh_run_options *options, manner manner) {
    own->session = session;
    own->options = options;
    atomic_store(&next, manner);
    CHECK(pthread_create(&own->thread, NULL, run_it, own) == 0);
}

static void end(runner *own, rukh_status status) {
    CHECK(pthread_join(own->thread, NULL) == 0);
    CHECK(own->status == status);
}

static void add_once(rukh_session *session) {
    const float data[] = {1, 2};
    rukh_value *a = floats(data, 2), *sum;
    const rukh_value *inputs[2];
    inputs[0] = inputs[1] = a;
    OK(rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
    CHECK(floats_of(sum, 2)[1] == 4);
    rukh_value_destroy(a);
    rukh_value_destroy(sum);
}

/* Nobody else waits for a kernel that waits. */
static void beside_others(void) {
    rukh_session *session = open_in(environment), *add;
    runner slow, loops;
    int i;
    atomic_store(&shut, 1);
    start(&slow, session, NULL, AT_THE_GATE);
    wait_for(&inside, 1);
    for (i = 0; i < 20; i++) {
        /* The same session, one that is open, and one that is opened now. */
        CHECK(run(session, NULL) == RUKH_OK);
        add = open_model(environment, "add");
        add_once(add);
        rukh_session_destroy(add);
    }
    atomic_store(&shut, 0);
    end(&slow, RUKH_OK);
    /* A loop that keeps the threads of all sessions busy: others go on, if only later. */
    add = open_model(environment, "add");
    start(&loops, session, NULL, SLOW_LOOP);
    for (i = 0; i < 20; i++) {
        CHECK(run(session, NULL) == RUKH_OK);
        add_once(add);
    }
    end(&loops, RUKH_OK);
    rukh_session_destroy(add);
    rukh_session_destroy(session);
    all_gone();
}

static void cancelled(void) {
    static const manner manners[] = {UNTIL_CANCELLED, UNTIL_CANCELLED_AND_WELL};
    rukh_session *session = open_in(environment);
    size_t i;
    for (i = 0; i < COUNT_OF(manners); i++) {
        rukh_run_options *options;
        runner slow;
        OK(rukh_run_options_create(&options, &error));
        atomic_store(&inside, 0);
        start(&slow, session, options, manners[i]);
        wait_for(&inside, 1);
        /* The others are not cancelled. */
        CHECK(run(session, NULL) == RUKH_OK);
        OK(rukh_run_options_cancel(options, &error));
        end(&slow, RUKH_ERROR_CANCELLED);
        rukh_run_options_destroy(options);
        /* The time of a run ends it as well. */
        OK(rukh_run_options_create(&options, &error));
        OK(rukh_run_options_set(options, "timeout_ms", "30", &error));
        atomic_store(&next, manners[i]);
        CHECK(run(session, options) == RUKH_ERROR_CANCELLED);
        rukh_run_options_destroy(options);
        CHECK(run(session, NULL) == RUKH_OK);
    }
    rukh_session_destroy(session);
    all_gone();
}

/* Destroyed while a kernel works for it: it stays until the run is over. */
static void destroyed_meanwhile(void) {
    rukh_environment *own = new_environment("2");
    rukh_session *session = open_in(own);
    runner slow;
    size_t count;
    int i;
    atomic_store(&shut, 1);
    start(&slow, session, NULL, AT_THE_GATE);
    wait_for(&inside, 1);
    rukh_session_destroy(session);
    rukh_environment_destroy(own);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_session_input_count(session, &count, &error));
    CHECK(atomic_load(&destroyed) == 0 && atomic_load(&released) == 0);
    atomic_store(&shut, 0);
    end(&slow, RUKH_OK);
    all_gone();
    /* By the kernel itself. */
    for (i = 0; i < 2; i++) {
        own = new_environment("2");
        session = open_in(own);
        to_destroy = session;
        environment_to_destroy = own;
        atomic_store(&next, DESTROYS);
        CHECK(run(session, NULL) == RUKH_OK);
        all_gone();
    }
}

static atomic_int called;

static void finished(const rukh_completion *completion, void *user) {
    rukh_value *y;
    CHECK(user == &called);
    OK(rukh_completion_wait(completion, NULL));
    OK(rukh_completion_output(completion, 0, &y, NULL));
    CHECK(memcmp(floats_of(y, 4), expected, sizeof expected) == 0);
    rukh_value_destroy(y);
    atomic_fetch_add(&called, 1);
}

/* A run in the background, of which nothing but the run is left. */
static void in_the_background(void) {
    rukh_environment *own = new_environment("2");
    rukh_session *session = open_in(own);
    rukh_value *x;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, x_shape, 2, x_data, sizeof x_data, &x, &error));
    atomic_store(&shut, 1);
    atomic_store(&next, AT_THE_GATE);
    OK(rukh_session_start(session, NULL, &x_name, (const rukh_value *const *)&x, 1, &y_name, 1, finished, &called, NULL, NULL,
                          &error));
    rukh_value_destroy(x);
    wait_for(&inside, 1);
    rukh_session_destroy(session);
    rukh_environment_destroy(own);
    CHECK(atomic_load(&destroyed) == 0 && atomic_load(&called) == 0);
    atomic_store(&shut, 0);
    wait_for(&called, 1);
    /* The thread of the run lets go of the session behind the callback. */
    wait_for(&released, 1);
    all_gone();
}

typedef struct {
    rukh_session_options *options;
    rukh_session *session;
    rukh_status status;
} opener;

static void *open_it(void *argument) {
    opener *own = argument;
    own->status = rukh_session_create(environment, model_path("operators"), own->options, &own->session, NULL);
    return NULL;
}

/* A model that is slow to open: others open and run theirs, and it may be given up. */
static void while_opening(void) {
    int cancel;
    for (cancel = 0; cancel < 2; cancel++) {
        rukh_session *other = open_in(environment), *add;
        opener own = {options_with(1), NULL, RUKH_OK};
        pthread_t thread;
        atomic_store(&shut, 1);
        CHECK(pthread_create(&thread, NULL, open_it, &own) == 0);
        wait_for(&inside, 1);
        add = open_model(environment, "add");
        add_once(add);
        rukh_session_destroy(add);
        CHECK(run(other, NULL) == RUKH_OK);
        if (cancel) OK(rukh_session_options_cancel(own.options, &error));
        atomic_store(&shut, 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(own.status == (cancel ? RUKH_ERROR_CANCELLED : RUKH_OK));
        if (!cancel) CHECK(run(own.session, NULL) == RUKH_OK);
        rukh_session_destroy(own.session);
        rukh_session_options_destroy(own.options);
        rukh_session_destroy(other);
        CHECK(atomic_load(&destroyed) == atomic_load(&created) && atomic_load(&released) == 2);
    }
}

int main(int argc, char **argv) {
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    beside_others();
    cancelled();
    destroyed_meanwhile();
    in_the_background();
    while_opening();
    rukh_environment_destroy(environment);
    return 0;
}
