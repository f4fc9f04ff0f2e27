/* Opening models that somebody cancels. */

#include "system.h"

#include "check.h"

#include <pthread.h>
#include <stdatomic.h>

enum { OPENINGS = 300 };

static atomic_int done;

/* Called while a model is opened, when all of it was compiled. */
static void cancel_from_the_log(const rukh_log_record *record, void *user) {
    const char *message;
    OK(rukh_log_record_text(record, RUKH_LOG_TEXT_MESSAGE, &message, &error));
    if (user != NULL && strncmp(message, "opened model", 12) == 0) {
        OK(rukh_session_options_cancel(*(rukh_session_options **)user, &error));
    }
}

static void cancelled_meanwhile(void) {
    rukh_environment_options *environment_options;
    rukh_environment *environment;
    rukh_session_options *options, *copy;
    rukh_session *session;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_environment_options_create(&environment_options, &error));
    OK(rukh_environment_options_set_log_callback(environment_options, RUKH_LOG_INFO, cancel_from_the_log, &options, NULL,
                                                 &error));
    OK(rukh_environment_create(environment_options, &environment, &error));
    rukh_environment_options_destroy(environment_options);
    FAILS(RUKH_ERROR_CANCELLED, "opening the model was cancelled",
          rukh_session_create(environment, model_path("linear"), options, &session, &error));
    CHECK(session == NULL);
    /* The copy is not cancelled; the log cancels the other. */
    OK(rukh_session_options_clone(options, &copy, &error));
    OK(rukh_session_create(environment, model_path("linear"), copy, &session, &error));
    rukh_session_destroy(session);
    rukh_session_options_destroy(copy);
    rukh_environment_destroy(environment);
    rukh_session_options_destroy(options);
}

static void cancelled_before(void) {
    rukh_environment *environment = new_environment("1");
    rukh_session_options *options;
    rukh_session *session;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_cancel(options, &error));
    FAILS(RUKH_ERROR_CANCELLED, "opening the model was cancelled",
          rukh_session_create(environment, model_path("linear"), options, &session, &error));
    FAILS(RUKH_ERROR_CANCELLED, "compiling was cancelled after 0 of",
          rukh_compile_model(environment, model_path("linear"), options, NULL, "cancelled.rukh", &error));
    OK(rukh_session_options_reset(options, &error));
    OK(rukh_session_create(environment, model_path("linear"), options, &session, &error));
    /* It is open: nothing ends it any more. */
    OK(rukh_session_options_cancel(options, &error));
    {
        const float x[] = {1, 2, 3, 4};
        const int64_t shape[] = {1, 4};
        rukh_value *input, *output;
        const rukh_value *inputs[1];
        OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, x, sizeof x, &input, &error));
        inputs[0] = input;
        OK(rukh_session_run(session, NULL, NULL, inputs, 1, NULL, 1, &output, &error));
        CHECK(floats_of(output, 3)[0] == 5.5f);
        rukh_value_destroy(input);
        rukh_value_destroy(output);
    }
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
}

static void *cancels(void *options) {
    while (!atomic_load(&done)) {
        OK(rukh_session_options_cancel(options, &error));
        OK(rukh_session_options_reset(options, &error));
        /* Some openings end in between; under valgrind, which runs one thread at a time, the others get their turn. */
        wait_milliseconds(1);
    }
    return NULL;
}

static void cancelled_at_any_time(void) {
    rukh_environment *environment = new_environment("2");
    rukh_session_options *options;
    pthread_t thread;
    int i, opened = 0;
    OK(rukh_session_options_create(&options, &error));
    CHECK(pthread_create(&thread, NULL, cancels, options) == 0);
    for (i = 0; i < OPENINGS; i++) {
        rukh_error *error = NULL;
        rukh_session *session = NULL;
        const rukh_status status = rukh_session_create(environment, model_path("linear"), options, &session, &error);
        CHECK((status == RUKH_OK) == (session != NULL));
        CHECK(status == RUKH_OK || status == RUKH_ERROR_CANCELLED);
        opened += status == RUKH_OK;
        rukh_session_destroy(session);
        rukh_error_destroy(error);
    }
    atomic_store(&done, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("%d of %d opened\n", opened, OPENINGS);
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    cancelled_before();
    cancelled_meanwhile();
    cancelled_at_any_time();
    return 0;
}
