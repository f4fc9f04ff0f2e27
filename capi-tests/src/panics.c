/* A defect inside the library (ordered by a reserved option) ends a call and its session, nothing else. */

#include "check.h"

#include <pthread.h>

static int logged;
static rukh_session *to_call_back;

static void write_log(const rukh_log_record *record, void *user) {
    const char *message, *category, *name;
    rukh_log_level level;
    size_t count;
    CHECK(user == &logged);
    OK(rukh_log_record_level(record, &level, &error));
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_MESSAGE, &message, &error));
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_CATEGORY, &category, &error));
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_SESSION, &name, &error));
    CHECK(strcmp(name, "add.onnx") == 0);
    if (level < RUKH_LOG_ERROR) return;
    CHECK(strstr(message, "a panic was ordered") != NULL && strcmp(category, "defect") == 0);
    /* By now the session says that it is poisoned, to whoever asks. */
    FAILS(RUKH_ERROR_POISONED, "destroy", rukh_session_input_count(to_call_back, &count, &error));
    logged++;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int finished;

static void on_finished(const rukh_completion *completion, void *user) {
    CHECK(user == NULL);
    FAILS(RUKH_ERROR_INTERNAL, "a panic was ordered", rukh_completion_wait(completion, &error));
    pthread_mutex_lock(&mutex);
    finished = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv) {
    static const char *const places[] = {"caller", "worker"};
    const float data[] = {1, 2};
    rukh_environment_options *environment_options;
    rukh_environment *environment;
    rukh_session *healthy;
    rukh_value *a = floats(data, 2), *sum;
    const rukh_value *inputs[2];
    size_t i, count;
    if (argc > 1) model_folder = argv[1];
    inputs[0] = inputs[1] = a;
    OK(rukh_environment_options_create(&environment_options, &error));
    OK(rukh_environment_options_set(environment_options, "threads", "2", &error));
    OK(rukh_environment_options_set_log_callback(environment_options, RUKH_LOG_INFO, write_log, &logged, NULL,
                                                 &error));
    OK(rukh_environment_create(environment_options, &environment, &error));
    rukh_environment_options_destroy(environment_options);
    healthy = open_model(environment, "add");

    for (i = 0; i < COUNT_OF(places); i++) {
        rukh_session_options *options;
        rukh_session *session;
        rukh_io_binding *binding;
        OK(rukh_session_options_create(&options, &error));
        OK(rukh_session_options_set(options, "rukh.test.panic", places[i], &error));
        OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
        to_call_back = session;
        OK(rukh_io_binding_create(session, &binding, &error));
        OK(rukh_session_input_count(session, &count, &error));
        FAILS(RUKH_ERROR_INTERNAL, "a panic was ordered",
              rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
        CHECK(sum == NULL && logged == 3 * (int)i + 1);
        FAILS(RUKH_ERROR_POISONED, "rukh_session",
              rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
        FAILS(RUKH_ERROR_POISONED, "rukh_session", rukh_io_binding_run(binding, NULL, &error));
        rukh_io_binding_destroy(binding);
        rukh_session_destroy(session);

        /* In a bound run. */
        OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
        to_call_back = session;
        OK(rukh_io_binding_create(session, &binding, &error));
        FAILS(RUKH_ERROR_INTERNAL, "a panic was ordered", rukh_io_binding_run(binding, NULL, &error));
        FAILS(RUKH_ERROR_POISONED, "rukh_session", rukh_session_input_count(session, &count, &error));
        rukh_io_binding_destroy(binding);
        rukh_session_destroy(session);

        /* In the background. */
        OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
        to_call_back = session;
        finished = 0;
        OK(rukh_session_start(session, NULL, NULL, inputs, 2, NULL, 1, on_finished, NULL, NULL, NULL, &error));
        pthread_mutex_lock(&mutex);
        while (!finished) pthread_cond_wait(&changed, &mutex);
        pthread_mutex_unlock(&mutex);
        FAILS(RUKH_ERROR_POISONED, "rukh_session", rukh_session_input_count(session, &count, &error));
        rukh_session_destroy(session);
        rukh_session_options_destroy(options);

        /* Others live, also in the same environment. */
        OK(rukh_session_run(healthy, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
        CHECK(floats_of(sum, 2)[1] == 4);
        rukh_value_destroy(sum);
    }
    CHECK(logged == 6);
    rukh_value_destroy(a);
    rukh_session_destroy(healthy);
    rukh_environment_destroy(environment);
    return 0;
}
