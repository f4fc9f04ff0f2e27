/* Threads run one session with adapters of their own, which come and go. */

#include "adapters.h"

#include <pthread.h>

enum { THREADS = 8, RUNS = 60 };

static rukh_session *session;
static rukh_adapter *shared;

static void *work(void *argument) {
    const int number = *(int *)argument;
    rukh_run_options *own = with(new_lora((float)number, 1 + number % 3), NULL), *both, *common;
    int i;
    OK(rukh_run_options_create(&common, &error));
    OK(rukh_run_options_add_adapter(common, shared, &error));
    for (i = 0; i < RUNS; i++) {
        CHECK(added(session, own) == (float)(4 * number * (1 + number % 3)));
        CHECK(added(session, common) == 1000);
        both = with(new_lora((float)i, 2), new_bias((float)number));
        CHECK(added(session, both) == (float)(8 * i + number));
        rukh_run_options_destroy(both);
        CHECK(added(session, NULL) == 0);
    }
    rukh_run_options_destroy(own);
    rukh_run_options_destroy(common);
    return NULL;
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    pthread_t threads[THREADS];
    int numbers[THREADS], i;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    session = open_model(environment, "adapted");
    rukh_environment_destroy(environment);
    shared = new_bias(1000);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    rukh_adapter_destroy(shared);
    rukh_session_destroy(session);
    return 0;
}
