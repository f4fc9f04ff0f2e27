/* After fork: the child is told, does not hang, and may begin anew; the parent notices nothing.
 * With the argument `alone` no other thread is busy meanwhile. */

#define _POSIX_C_SOURCE 200809L

#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static rukh_environment *environment;
static rukh_session *session;
static volatile int stop;

static void run_once(rukh_session *on) {
    const float data[] = {1, 2};
    rukh_value *a = floats(data, 2), *sum;
    const rukh_value *inputs[2];
    inputs[0] = inputs[1] = a;
    OK(rukh_session_run(on, NULL, NULL, inputs, 2, NULL, 1, &sum, &error));
    CHECK(floats_of(sum, 2)[1] == 4);
    rukh_value_destroy(a);
    rukh_value_destroy(sum);
}

static void *keep_busy(void *unused) {
    (void)unused;
    while (!stop) run_once(session);
    return NULL;
}

static void child(rukh_value *value) {
    rukh_environment *anew;
    rukh_session *opened;
    rukh_value *out;
    size_t count;
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_session_input_count(session, &count, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_value_element_count(value, &count, &error));
    FAILS(RUKH_ERROR_FORKED, "fork", rukh_session_run(session, NULL, NULL, NULL, 0, NULL, 1, &out, &error));
    FAILS(RUKH_ERROR_FORKED, "fork",
          rukh_session_create(environment, model_path("add"), NULL, &opened, &error));
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    rukh_value_destroy(value);
    anew = new_environment("2");
    opened = open_model(anew, "add");
    run_once(opened);
    rukh_session_destroy(opened);
    rukh_environment_destroy(anew);
    /* Reached when all went well. A program in place of this one, so that valgrind does not count the
     * memory of threads that the child does not have. */
    execlp("true", "true", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    rukh_value *value = int64_scalar(3);
    size_t i, busy = COUNT_OF(threads);
    int round;
    if (argc > 1) model_folder = argv[1];
    if (argc > 2 && strcmp(argv[2], "alone") == 0) busy = 0;
    environment = new_environment("2");
    session = open_model(environment, "add");
    for (i = 0; i < busy; i++) CHECK(pthread_create(&threads[i], NULL, keep_busy, NULL) == 0);
    for (round = 0; round < 20; round++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child(value);
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    stop = 1;
    for (i = 0; i < busy; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    run_once(session);
    rukh_value_destroy(value);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    return 0;
}
