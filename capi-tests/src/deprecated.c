/* What is deprecated works as it did, until the series ends. */

#define RUKH_DEPRECATED(note)

#include "check.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ended, messages, releases;

static void hear(void *user, rukh_log_level level, const char *message) {
    CHECK(level <= RUKH_LOG_ERROR && message[0] != '\0');
    ++*(int *)user;
}

static void release(void *user) {
    ++*(int *)user;
}

static void finished(void *user, rukh_status status, rukh_value *const *outputs, size_t count, rukh_error *error) {
    size_t i;
    if (status == RUKH_OK) {
        CHECK(count == 1 && error == NULL && floats_of(outputs[0], 2)[1] == 4);
    } else {
        CHECK(outputs == NULL && count == 0 && rukh_error_code(error) == status);
    }
    for (i = 0; i < count; i++) rukh_value_destroy(outputs[i]);
    rukh_error_destroy(error);
    pthread_mutex_lock(&mutex);
    *(rukh_status *)user = status;
    ended++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for(int wanted) {
    pthread_mutex_lock(&mutex);
    while (ended < wanted) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv) {
    const float data[] = {1, 2};
    rukh_environment_options *options;
    rukh_environment *environment;
    rukh_session *session;
    rukh_value *a = floats(data, 2);
    const rukh_value *inputs[2];
    const char *node, *operator_name, *provider, *reason;
    static rukh_status status = RUKH_ERROR_INTERNAL;
    size_t count, i;
    if (argc > 1) model_folder = argv[1];
    inputs[0] = inputs[1] = a;
    OK(rukh_environment_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "level: 9",
          rukh_environment_options_set_log(options, 9, hear, &releases, release, &error));
    CHECK(releases == 1);
    OK(rukh_environment_options_set_log(options, RUKH_LOG_INFO, hear, &messages, NULL, &error));
    OK(rukh_environment_create(options, &environment, &error));
    rukh_environment_options_destroy(options);
    session = open_model(environment, "add");
    CHECK(messages == 1);
    OK(rukh_session_placement_count(session, &count, &error));
    for (i = 0; i < count; i++) {
        OK(rukh_session_placement(session, i, &node, &operator_name, &provider, &reason, &error));
        CHECK(operator_name[0] != '\0' && strcmp(provider, "cpu") == 0);
    }
    OK(rukh_session_placement(session, 0, NULL, NULL, NULL, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "node", rukh_session_placement(session, count, &node, NULL, NULL, NULL, &error));

    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "callback",
          rukh_session_run_async(session, NULL, NULL, inputs, 2, NULL, 1, NULL, NULL, &error));
    OK(rukh_session_run_async(session, NULL, NULL, inputs, 2, NULL, 1, finished, &status, &error));
    wait_for(1);
    CHECK(status == RUKH_OK);
    OK(rukh_session_run_async(session, NULL, NULL, inputs, 1, NULL, 1, finished, &status, &error));
    wait_for(2);
    CHECK(status == RUKH_ERROR_INVALID_INPUT);
    rukh_value_destroy(a);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    return 0;
}
