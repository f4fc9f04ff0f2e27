/* Asynchronous runs: callbacks that call back, cancel, and destroy what they run on. */

#include "check.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct run {
    rukh_session *session;
    int left, calls;
    rukh_status status;
    float first;
};

static void wait_for(int *number, int wanted) {
    pthread_mutex_lock(&mutex);
    while (*number < wanted) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void start(struct run *run, const float *data);

static void finished(void *user, rukh_status status, rukh_value *const *outputs, size_t count, rukh_error *error) {
    struct run *run = (struct run *)user;
    float first = 0;
    int again;
    size_t i;
    if (status == RUKH_OK) {
        CHECK(count == 1 && error == NULL);
        first = floats_of(outputs[0], 2)[0];
    } else {
        CHECK(outputs == NULL && count == 0 && rukh_error_code(error) == status);
    }
    for (i = 0; i < count; i++) rukh_value_destroy(outputs[i]);
    rukh_error_destroy(error);
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
    OK(rukh_session_run_async(run->session, NULL, names, inputs, 2, sum, 1, finished, run, &error));
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
    OK(rukh_session_run_async(run.session, options, NULL, inputs, 1, NULL, 1, finished, &run, &error));
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
    memset(&run, 0, sizeof run);
    inputs[0] = a;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "callback",
          rukh_session_run_async(session, NULL, NULL, inputs, 1, NULL, 1, NULL, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "9 outputs",
          rukh_session_run_async(session, NULL, NULL, inputs, 1, NULL, 9, finished, &run, &error));
    CHECK(run.calls == 0);
    /* What the run itself meets goes to the callback. */
    run.session = session;
    OK(rukh_session_run_async(session, NULL, NULL, inputs, 1, NULL, 1, finished, &run, &error));
    wait_for(&run.calls, 1);
    CHECK(run.status == RUKH_ERROR_INVALID_INPUT);
    rukh_value_destroy(a);
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("3");
    chains(environment);
    cancelled(environment);
    refused(environment);
    rukh_environment_destroy(environment);
    return 0;
}
