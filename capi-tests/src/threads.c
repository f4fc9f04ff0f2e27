/* Eight threads run one session at once, and make and destroy handles meanwhile. */

#include "check.h"

#include <pthread.h>

enum { THREADS = 8, RUNS = 200 };

static rukh_session *session;

static void *work(void *argument) {
    const float number = (float)*(int *)argument;
    int i;
    for (i = 0; i < RUNS; i++) {
        /* A size of its own for each thread and round, so that plans are made and dropped as well. */
        const int64_t count = 1 + (i + (int)number) % 40;
        float data[40];
        rukh_value *a, *outputs[2];
        const rukh_value *inputs[2];
        int64_t k;
        for (k = 0; k < count; k++) data[k] = number + (float)k;
        a = floats(data, count);
        inputs[0] = inputs[1] = a;
        OK(rukh_session_run(session, NULL, NULL, inputs, 2, NULL, 2, outputs, &error));
        rukh_value_destroy(a);
        for (k = 0; k < count; k++) {
            CHECK(floats_of(outputs[0], (size_t)count)[k] == 2 * data[k]);
            CHECK(floats_of(outputs[1], (size_t)count)[k] == data[k] * data[k]);
        }
        rukh_value_destroy(outputs[0]);
        rukh_value_destroy(outputs[1]);
    }
    return NULL;
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    pthread_t threads[THREADS];
    int numbers[THREADS], i;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    session = open_model(environment, "add");
    rukh_environment_destroy(environment);
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    rukh_session_destroy(session);
    return 0;
}
