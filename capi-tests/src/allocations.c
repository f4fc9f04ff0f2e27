/* A run with bound outputs allocates nothing once it has seen the shapes, on no thread. The program has a
 * malloc of its own that counts; the library's calls come here as well. (glibc only.) */

#include "check.h"

#include <errno.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static int counting;
static int count;

static void note(void) {
    if (__atomic_load_n(&counting, __ATOMIC_RELAXED)) __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size) {
    note();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    note();
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    note();
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    note();
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size) {
    note();
    return __libc_memalign(alignment, size);
}

static void bound_runs(rukh_environment *environment) {
    static float x[64 * 4], y[64 * 3];
    const int64_t in[] = {64, 4}, out[] = {64, 3};
    rukh_session *session = open_model(environment, "linear");
    rukh_io_binding *binding;
    rukh_run_options *options;
    rukh_value *vx, *vy;
    int i, round;
    for (i = 0; i < 64 * 4; i++) x[i] = (float)(i % 5);
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, in, 2, x, sizeof x, NULL, NULL, &vx, &error));
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, out, 2, y, sizeof y, NULL, NULL, &vy, &error));
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_set(options, "tag", "counted", &error));
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "x", vx, &error));
    OK(rukh_io_binding_bind_output(binding, "y", vy, &error));
    for (i = 0; i < 3; i++) OK(rukh_io_binding_run(binding, NULL, &error));

    /* A thread of the pool that comes late makes its buffers then: one of three rounds must be without. */
    for (round = 0; round < 3; round++) {
        __atomic_store_n(&count, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&counting, 1, __ATOMIC_RELAXED);
        for (i = 0; i < 100; i++) {
            y[0] = -1;
            OK(rukh_io_binding_run(binding, i % 2 == 0 ? NULL : options, &error));
            CHECK(y[0] >= 0);
        }
        __atomic_store_n(&counting, 0, __ATOMIC_RELAXED);
        if (count == 0) break;
    }
    if (count != 0) {
        fprintf(stderr, "100 bound runs allocated %d times\n", count);
        abort();
    }

    rukh_io_binding_destroy(binding);
    rukh_run_options_destroy(options);
    rukh_value_destroy(vx);
    rukh_value_destroy(vy);
    rukh_session_destroy(session);
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    void *probe;
    if (argc > 1) model_folder = argv[1];
    counting = 1;
    probe = malloc(1);
    CHECK(count == 1 && probe != NULL);
    free(probe);
    counting = count = 0;
    environment = new_environment("2");
    bound_runs(environment);
    rukh_environment_destroy(environment);
    return 0;
}
