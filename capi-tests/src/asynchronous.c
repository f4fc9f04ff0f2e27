/* Asynchronous runs: callbacks that call back, cancel, and destroy what they run on. */

#include "check.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct run {
    rukh_session *session;
    int left, calls, releases;
    rukh_status status;
    float first;
};

static void wait_for(int *number, int wanted) {
    pthread_mutex_lock(&mutex);
    while (*number < wanted) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void start(struct run *run, const float *data);

/* After each callback has returned. */
static void released(void *user) {
    struct run *run = (struct run *)user;
    pthread_mutex_lock(&mutex);
    run->releases++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void finished(const rukh_completion *completion, void *user) {
    struct run *run = (struct run *)user;
    rukh_error *why = NULL;
    rukh_status status = rukh_completion_wait(completion, &why);
    float first = 0;
    int again, done;
    size_t count;
    OK(rukh_completion_is_done(completion, &done, &error));
    OK(rukh_completion_output_count(completion, &count, &error));
    CHECK(done && count == 1);
    if (status == RUKH_OK) {
        rukh_value *output, *same;
        CHECK(why == NULL);
        OK(rukh_completion_output(completion, 0, &output, &error));
        OK(rukh_completion_output(completion, 0, &same, &error));
        first = floats_of(output, 2)[0];
        CHECK(floats_of(same, 2) == floats_of(output, 2));
        rukh_value_destroy(output);
        rukh_value_destroy(same);
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "output 1", rukh_completion_output(completion, 1, &output, &error));
        CHECK(output == NULL);
    } else {
        rukh_value *output;
        CHECK(rukh_error_code(why) == status);
        FAILS(status, "", rukh_completion_output(completion, 0, &output, &error));
        CHECK(output == NULL);
    }
    rukh_error_destroy(why);
    pthread_mutex_lock(&mutex);
    again = status == RUKH_OK && run->left-- > 1;
    run->status = status;
    run->first = first;
    pthread_mutex_unlock(&mutex);
    if (again) {
        /* The next run, from inside the callback of the last. */
        float data[2];
        data[0] = first;
        data[1] = 0;
        start(run, data);
    } else {
        /* The last one: nobody else destroys the session. */
        rukh_session_destroy(run->session);
    }
    pthread_mutex_lock(&mutex);
    run->calls++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void start(struct run *run, const float *data) {
    const char *names[] = {"a", "b"}, *sum[] = {"sum"};
    rukh_value *a = floats(data, 2);
    const rukh_value *inputs[2];
    inputs[0] = inputs[1] = a;
    OK(rukh_session_start(run->session, NULL, names, inputs, 2, sum, 1, finished, run, released, NULL, &error));
    rukh_value_destroy(a);
}

static void chains(rukh_environment *environment) {
    struct run runs[8];
    const float one[] = {1, 1};
    size_t i;
    memset(runs, 0, sizeof runs);
    for (i = 0; i < COUNT_OF(runs); i++) {
        runs[i].session = open_model(environment, "add");
        runs[i].left = 10;
        start(&runs[i], one);
    }
    for (i = 0; i < COUNT_OF(runs); i++) {
        wait_for(&runs[i].calls, 10);
        wait_for(&runs[i].releases, 10);
        CHECK(runs[i].first == 1024.0f);
    }
}

static void cancelled(rukh_environment *environment) {
    struct run run;
    rukh_run_options *options;
    rukh_value *times = int64_scalar(INT64_C(1) << 60);
    const rukh_value *inputs[1];
    memset(&run, 0, sizeof run);
    inputs[0] = times;
    run.session = open_model(environment, "count");
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_session_start(run.session, options, NULL, inputs, 1, NULL, 1, finished, &run, NULL, NULL, &error));
    OK(rukh_run_options_cancel(options, &error));
    rukh_run_options_destroy(options);
    wait_for(&run.calls, 1);
    CHECK(run.status == RUKH_ERROR_CANCELLED);
    rukh_value_destroy(times);
}

static void refused(rukh_environment *environment) {
    struct run run;
    const float one[] = {1, 1};
    rukh_value *a = floats(one, 2);
    const rukh_value *inputs[1];
    rukh_session *session = open_model(environment, "add");
    rukh_completion *completion;
    memset(&run, 0, sizeof run);
    inputs[0] = a;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "callback",
          rukh_session_start(session, NULL, NULL, inputs, 1, NULL, 1, NULL, &run, released, NULL, &error));
    CHECK(run.releases == 1);
    completion = (rukh_completion *)session;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "9 outputs",
          rukh_session_start(session, NULL, NULL, inputs, 1, NULL, 9, finished, &run, released, &completion, &error));
    CHECK(run.calls == 0 && run.releases == 2 && completion == NULL);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "",
          rukh_session_start((rukh_session *)a, NULL, NULL, inputs, 1, NULL, 1, finished, &run, released, NULL, &error));
    CHECK(run.calls == 0 && run.releases == 3);
    /* What the run itself meets goes to the callback. */
    run.session = session;
    OK(rukh_session_start(session, NULL, NULL, inputs, 1, NULL, 1, finished, &run, NULL, NULL, &error));
    wait_for(&run.calls, 1);
    CHECK(run.status == RUKH_ERROR_INVALID_INPUT);
    rukh_value_destroy(a);
}

/* Completions without a callback: waited for by two threads, destroyed while the run goes on. */
static void *wait_too(void *completion) {
    OK(rukh_completion_wait((rukh_completion *)completion, &error));
    return NULL;
}

static void completions(rukh_environment *environment) {
    const float one[] = {1, 2};
    rukh_value *a = floats(one, 2), *sum, *times = int64_scalar(INT64_C(1) << 60);
    const rukh_value *inputs[2], *forever[1];
    rukh_session *session = open_model(environment, "add"), *endless = open_model(environment, "count");
    rukh_completion *completion;
    rukh_run_options *options;
    pthread_t other;
    uint64_t event = 7;
    int done = 1;
    inputs[0] = inputs[1] = a;
    forever[0] = times;
    OK(rukh_session_start(session, NULL, NULL, inputs, 2, NULL, 2, NULL, NULL, NULL, &completion, &error));
    CHECK(pthread_create(&other, NULL, wait_too, completion) == 0);
    OK(rukh_completion_output(completion, 0, &sum, &error));
    OK(rukh_completion_wait(completion, &error));
    OK(rukh_completion_event(completion, &event, &error));
    CHECK(event == 0 && pthread_join(other, NULL) == 0);
    rukh_completion_destroy(completion);
    rukh_session_destroy(session);
    CHECK(floats_of(sum, 2)[1] == 4);
    rukh_value_destroy(sum);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "destroyed", rukh_completion_wait(completion, &error));

    OK(rukh_run_options_create(&options, &error));
    OK(rukh_session_start(endless, options, NULL, forever, 1, NULL, 1, NULL, NULL, NULL, &completion, &error));
    rukh_session_destroy(endless);
    OK(rukh_completion_is_done(completion, &done, &error));
    CHECK(!done);
    OK(rukh_run_options_cancel(options, &error));
    FAILS(RUKH_ERROR_CANCELLED, "cancelled", rukh_completion_wait(completion, &error));
    FAILS(RUKH_ERROR_CANCELLED, "cancelled", rukh_completion_output(completion, 0, &sum, &error));
    rukh_completion_destroy(completion);
    rukh_run_options_destroy(options);
    rukh_value_destroy(a);
    rukh_value_destroy(times);
}

/* On one thread that is busy, runs wait: those of higher priority go first, then those that came first. */
static int order[6], ended;

static void note_order(const rukh_completion *completion, void *user) {
    OK(rukh_completion_wait(completion, &error));
    pthread_mutex_lock(&mutex);
    order[ended++] = *(int *)user;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void priorities(void) {
    static const char *const names[] = {"low", "normal", "high", "low", "normal", "high"};
    static int numbers[] = {0, 1, 2, 3, 4, 5};
    static const int wanted[] = {2, 5, 1, 4, 0, 3};
    const float one[] = {1, 2};
    rukh_environment *environment = new_environment("1");
    rukh_session *session = open_model(environment, "add"), *endless = open_model(environment, "count");
    rukh_value *a = floats(one, 2), *times = int64_scalar(INT64_C(1) << 60);
    const rukh_value *inputs[2], *forever[1];
    rukh_completion *busy;
    rukh_run_options *options, *blocker;
    char text[16];
    size_t i;
    inputs[0] = inputs[1] = a;
    forever[0] = times;
    OK(rukh_run_options_create(&blocker, &error));
    OK(rukh_session_start(endless, blocker, NULL, forever, 1, NULL, 1, NULL, NULL, NULL, &busy, &error));
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_get(options, "priority", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "normal") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "low, normal and high", rukh_run_options_set(options, "priority", "7", &error));
    for (i = 0; i < COUNT_OF(names); i++) {
        OK(rukh_run_options_set(options, "priority", names[i], &error));
        OK(rukh_session_start(session, options, NULL, inputs, 2, NULL, 1, note_order, &numbers[i], NULL, NULL, &error));
    }
    OK(rukh_run_options_cancel(blocker, &error));
    FAILS(RUKH_ERROR_CANCELLED, "cancelled", rukh_completion_wait(busy, &error));
    wait_for(&ended, 6);
    CHECK(memcmp(order, wanted, sizeof order) == 0);
    rukh_completion_destroy(busy);
    rukh_run_options_destroy(options);
    rukh_run_options_destroy(blocker);
    rukh_value_destroy(a);
    rukh_value_destroy(times);
    rukh_session_destroy(session);
    rukh_session_destroy(endless);
    rukh_environment_destroy(environment);
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("3");
    chains(environment);
    cancelled(environment);
    refused(environment);
    completions(environment);
    priorities();
    rukh_environment_destroy(environment);
    return 0;
}
