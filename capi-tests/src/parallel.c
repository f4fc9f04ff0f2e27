/* Loops of the library on threads of the program's: by every kind of function that a program may give, also wrong ones. */

#define _POSIX_C_SOURCE 199309L

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { THREADS = 4, NUMBERS = 300000 };

typedef void (*manner)(size_t count, rukh_parallel_body body, void *argument);

/* What the function does, and what it and its release saw. */
typedef struct {
    manner run;
    atomic_int loops, released;
} threads;

typedef struct {
    rukh_parallel_body body;
    void *argument;
    size_t index;
} call;

static void *call_body(void *given) {
    const call *c = given;
    c->body(c->index, c->argument);
    return NULL;
}

/* A thread for each call. */
static void at_once(size_t count, rukh_parallel_body body, void *argument) {
    pthread_t started[THREADS];
    call calls[THREADS];
    size_t i;
    for (i = 0; i < count; i++) {
        calls[i].body = body;
        calls[i].argument = argument;
        calls[i].index = i;
        CHECK(pthread_create(&started[i], NULL, call_body, &calls[i]) == 0);
    }
    for (i = 0; i < count; i++) CHECK(pthread_join(started[i], NULL) == 0);
}

static void one_by_one(size_t count, rukh_parallel_body body, void *argument) {
    while (count-- > 0) body(count, argument);
}

static void slowly(size_t count, rukh_parallel_body body, void *argument) {
    const struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
    at_once(count, body, argument);
    nanosleep(&pause, NULL);
}

static void only_the_first(size_t count, rukh_parallel_body body, void *argument) {
    (void)count;
    body(0, argument);
}

static void twice(size_t count, rukh_parallel_body body, void *argument) {
    at_once(count, body, argument);
    one_by_one(count, body, argument);
}

static void never(size_t count, rukh_parallel_body body, void *argument) {
    (void)count;
    (void)body;
    (void)argument;
}

/* Calls the library before and after. */
static void with_calls(size_t count, rukh_parallel_body body, void *argument) {
    const float number = 1;
    rukh_value *value = floats(&number, 1);
    at_once(count, body, argument);
    rukh_value_destroy(value);
}

static void run_loop(size_t count, rukh_parallel_body body, void *argument, void *user) {
    threads *mine = user;
    CHECK(count >= 1 && count <= THREADS && body != NULL);
    atomic_fetch_add(&mine->loops, 1);
    mine->run(count, body, argument);
}

static void release_threads(void *user) {
    atomic_fetch_add(&((threads *)user)->released, 1);
}

static rukh_environment *environment_on(threads *mine) {
    rukh_environment_options *options;
    rukh_environment *environment;
    OK(rukh_environment_options_create(&options, &error));
    OK(rukh_environment_options_set_parallel_for(options, run_loop, THREADS, mine, release_threads, &error));
    OK(rukh_environment_create(options, &environment, &error));
    rukh_environment_options_destroy(options);
    return environment;
}

/* Sums and products of as many numbers as several threads are worth. */
static void compute(rukh_session *session) {
    float *data = malloc(NUMBERS * sizeof *data);
    const float *sum, *product;
    rukh_value *a, *outputs[2];
    const rukh_value *inputs[2];
    int i;
    for (i = 0; i < NUMBERS; i++) data[i] = (float)(i % 1000);
    a = floats(data, NUMBERS);
    inputs[0] = inputs[1] = a;
    OK(rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 2, outputs, &error));
    sum = floats_of(outputs[0], NUMBERS);
    product = floats_of(outputs[1], NUMBERS);
    for (i = 0; i < NUMBERS; i++) CHECK(sum[i] == 2 * data[i] && product[i] == data[i] * data[i]);
    rukh_value_destroy(a);
    rukh_value_destroy(outputs[0]);
    rukh_value_destroy(outputs[1]);
    free(data);
}

static void manners(void) {
    const manner all[] = {at_once, one_by_one, slowly, only_the_first, twice, never, with_calls};
    size_t i, count;
    for (i = 0; i < COUNT_OF(all); i++) {
        threads mine = {all[i], 0, 0};
        rukh_environment *environment = environment_on(&mine);
        rukh_session *session = open_model(environment, "add");
        OK(rukh_environment_thread_count(environment, &count, &error));
        CHECK(count == THREADS);
        compute(session);
        CHECK(mine.loops > 0);
        rukh_environment_destroy(environment);
        CHECK(mine.released == 0);
        compute(session);
        rukh_session_destroy(session);
        CHECK(mine.released == 1);
    }
}

static void *computes(void *session) {
    int i;
    for (i = 0; i < 5; i++) compute(session);
    return NULL;
}

static void several_runs_at_once(void) {
    threads mine = {at_once, 0, 0};
    rukh_environment *environment = environment_on(&mine);
    rukh_session *session = open_model(environment, "add");
    pthread_t started[3];
    int i;
    for (i = 0; i < 3; i++) CHECK(pthread_create(&started[i], NULL, computes, session) == 0);
    for (i = 0; i < 3; i++) CHECK(pthread_join(started[i], NULL) == 0);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    CHECK(mine.released == 1);
}

/* A session that has threads of its own does not use the program's. */
static void own_threads(void) {
    threads mine = {never, 0, 0};
    rukh_environment *environment = environment_on(&mine);
    rukh_session_options *options;
    rukh_session *session;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "intra_op_threads", "2", &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    compute(session);
    CHECK(mine.loops == 0);
    rukh_session_options_destroy(options);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    CHECK(mine.released == 1);
}

static void options_of_it(void) {
    threads first = {never, 0, 0}, second = {never, 0, 0};
    rukh_environment_options *options;
    OK(rukh_environment_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "threads: 0 is not allowed; allowed is 1 to 1024",
          rukh_environment_options_set_parallel_for(options, run_loop, 0, &first, release_threads, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "threads: 1025",
          rukh_environment_options_set_parallel_for(options, run_loop, 1025, &first, release_threads, &error));
    CHECK(first.released == 2);
    OK(rukh_environment_options_set_parallel_for(options, run_loop, 2, &first, release_threads, &error));
    OK(rukh_environment_options_set_parallel_for(options, run_loop, 2, &second, release_threads, &error));
    CHECK(first.released == 3 && second.released == 0);
    /* The library's own again; what comes with no function is not kept. */
    OK(rukh_environment_options_set_parallel_for(options, NULL, 0, &first, release_threads, &error));
    CHECK(first.released == 4 && second.released == 1);
    rukh_environment_options_destroy(options);
    CHECK(first.released == 4 && second.released == 1);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    options_of_it();
    manners();
    several_runs_at_once();
    own_threads();
    return 0;
}
