/* Operators and fork: the functions of the child's own handles are called there, those of the parent's handles never;
 * and a kernel may fork. With the argument `alone` no other thread is busy meanwhile. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static rukh_environment *environment;
static rukh_session *session;
static rukh_session_options *options;
static rukh_operator *operator;
static volatile int stop;
static int user, own_user;

static const float x_data[] = {1, 1, -1, 2};
static const float expected[] = {16, 20, 16, 24};
static const int64_t x_shape[] = {2, 2};

/* In which process a function may be called that has this pointer. */
static pid_t parent;

static void check_process(const void *pointer) {
    CHECK((pointer == &user) == (getpid() == parent));
}

static void release(void *pointer) {
    check_process(pointer);
}

static void release_state(void *pointer) {
    check_process(*(void **)pointer);
    free(pointer);
}

static rukh_status shape(rukh_node_info *node, void *pointer) {
    check_process(pointer);
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

typedef struct {
    void *user;
    float factor;
} state;

static rukh_status create(rukh_node_info *node, void *pointer) {
    state *own = malloc(sizeof *own);
    check_process(pointer);
    own->user = pointer;
    OK(rukh_node_info_set_state(node, own, release_state, &error));
    OK(rukh_node_info_attribute_float(node, "factor", &own->factor, &error));
    return RUKH_OK;
}

static void child(void);

/* Waits for a child that must have ended well. */
static void ended_well(pid_t pid) {
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A program in place of this one, so that valgrind does not count the memory of threads that the child does not have. */
static void end_child(void) {
    execlp("true", "true", (char *)NULL);
    _exit(1);
}

static int forks_in_kernel;

static rukh_status compute(rukh_kernel_context *context, void *pointer) {
    const rukh_value *x;
    rukh_value *y;
    const void *from;
    void *own, *to;
    int64_t dims[4];
    size_t rank, count, i;
    check_process(pointer);
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    if (forks_in_kernel && getpid() == parent) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            FAILS(RUKH_ERROR_FORKED, "fork", rukh_kernel_context_input_count(context, &count, &error));
            FAILS(RUKH_ERROR_FORKED, "fork", rukh_kernel_context_output(context, 0, NULL, 0, &y, &error));
            FAILS(RUKH_ERROR_FORKED, "fork", rukh_value_element_count(x, &count, &error));
            child();
        }
        ended_well(pid);
    }
    OK(rukh_kernel_context_state(context, &own, &error));
    OK(rukh_value_shape(x, dims, 4, &rank, &error));
    OK(rukh_value_element_count(x, &count, &error));
    OK(rukh_kernel_context_output(context, 0, dims, rank, &y, &error));
    OK(rukh_value_data(x, &from, NULL, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    for (i = 0; i < count; i++) ((float *)to)[i] = ((state *)own)->factor * ((const float *)from)[i];
    return RUKH_OK;
}

static rukh_operator *scale(void *pointer) {
    const float one = 1;
    rukh_operator *made;
    OK(rukh_operator_create("test.ops", "Scale", 1, pointer, release, &made, &error));
    OK(rukh_operator_add_input(made, "x", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(made, "y", "float", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(made, "factor", RUKH_ATTRIBUTE_FLOAT, &one, 1, &error));
    OK(rukh_operator_set_shape_function(made, shape, &error));
    OK(rukh_operator_set_kernel(made, create, compute, &error));
    return made;
}

static void run(rukh_session *on) {
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, x_shape, 2, x_data, sizeof x_data, &x, &error));
    OK(rukh_session_run(on, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
    CHECK(memcmp(floats_of(y, 4), expected, sizeof expected) == 0);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
}

/* Opens a session of the child's own. */
static void child(void) {
    rukh_environment *own_environment;
    rukh_session_options *own_options;
    rukh_operator *own_operator;
    rukh_session *own_session;
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_operator_add_input(operator, "z", "float", 0, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_operator_set_pure(operator, 1, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_session_options_add_operator(options, operator, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_environment_add_operator(environment, operator, &error));
    FAILS(RUKH_ERROR_FORKED, "fork",
          rukh_session_create(environment, model_path("operators"), options, &own_session, &error));
    /* Nothing is released: it is the parent's. */
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
    rukh_operator_destroy(operator);
    rukh_environment_destroy(environment);
    own_environment = new_environment("2");
    own_operator = scale(&own_user);
    OK(rukh_session_options_create(&own_options, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_session_options_add_operator(own_options, operator, &error));
    OK(rukh_session_options_add_operator(own_options, own_operator, &error));
    rukh_operator_destroy(own_operator);
    OK(rukh_session_create(own_environment, model_path("operators"), own_options, &own_session, &error));
    rukh_session_options_destroy(own_options);
    run(own_session);
    rukh_session_destroy(own_session);
    rukh_environment_destroy(own_environment);
    end_child();
}

static void *keep_busy(void *unused) {
    (void)unused;
    while (!stop) run(session);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    size_t i, busy = COUNT_OF(threads);
    int round, exits = 1;
    if (argc > 1) model_folder = argv[1];
    if (argc > 2 && strcmp(argv[2], "alone") == 0) busy = exits = 0;
    parent = getpid();
    environment = new_environment("2");
    operator = scale(&user);
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_operator(options, operator, &error));
    OK(rukh_session_create(environment, model_path("operators"), options, &session, &error));
    for (i = 0; i < busy; i++) CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (round = 0; round < 20; round++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            /* One that only ends, with what the C library does at the end; checkers of memory would do more. */
            if (exits && round % 2 == 0) exit(0);
            child();
        }
        ended_well(pid);
    }
    stop = 1;
    for (i = 0; i < busy; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    forks_in_kernel = 1;
    run(session);
    forks_in_kernel = 0;
    run(session);
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
    rukh_operator_destroy(operator);
    rukh_environment_destroy(environment);
    return 0;
}
