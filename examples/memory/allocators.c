/*
 * Memory that sessions share. Inputs and outputs lie in blocks of a pool of the program's own, and come back to it when
 * nothing uses them; on a GPU two sessions take their memory from one arena of the environment.
 *
 *     allocators [MODEL]
 *
 * ONNX Runtime calls this CreateAndRegisterAllocator and session.use_env_allocators.
 */
#include "check.h"

#include <stdatomic.h>

#define SAMPLES 4
#define BLOCKS 3
#define ALIGNMENT 64

/* A block has room for the samples; the state of each may be changed by any thread. */
typedef struct {
    _Alignas(ALIGNMENT) float numbers[SAMPLES];
    atomic_int used;
} block;

static block pool[BLOCKS];

/* The library uses a block no longer. Called by the thread that lets go of it last. */
static void give_back(void *data, void *user) {
    (void)data;
    atomic_store(&((block *)user)->used, 0);
}

/* A tensor over a free block. */
static rukh_value *take(void) {
    const int64_t shape[1] = {SAMPLES};
    rukh_error *error = NULL;
    rukh_value *value = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        int unused = 0;
        if (atomic_compare_exchange_strong(&pool[i].used, &unused, 1)) {
            check(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, shape, 1, pool[i].numbers, sizeof pool[i].numbers,
                                                give_back, &pool[i], &value, &error), &error);
            return value;
        }
    }
    fprintf(stderr, "all %d blocks are in use\n", BLOCKS);
    exit(2);
}

static int blocks_in_use(void) {
    int used = 0;
    for (int i = 0; i < BLOCKS; i++) {
        used += atomic_load(&pool[i].used);
    }
    return used;
}

static void fill(rukh_value *value, float number) {
    rukh_error *error = NULL;
    void *data = NULL;
    size_t bytes = 0;
    check(rukh_value_data_mut(value, &data, &bytes, &error), &error);
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        ((float *)data)[i] = number;
    }
}

/* The state after one step from 0 with samples that are all `number`; inputs and output lie in blocks. */
static float step(const rukh_session *session, float number) {
    rukh_error *error = NULL;
    rukh_io_binding *binding = NULL;
    rukh_value *sample = take(), *average = take(), *next = take();
    const void *data = NULL;
    size_t bytes = 0;
    fill(sample, number);
    fill(average, 0);
    check(rukh_io_binding_create(session, &binding, &error), &error);
    check(rukh_io_binding_bind_input(binding, "sample", sample, &error), &error);
    check(rukh_io_binding_bind_input(binding, "average", average, &error), &error);
    check(rukh_io_binding_bind_output(binding, "next", next, &error), &error);
    check(rukh_io_binding_run(binding, NULL, &error), &error);
    check(rukh_value_data(next, &data, &bytes, &error), &error);
    const float result = *(const float *)data;
    rukh_io_binding_destroy(binding);
    rukh_value_destroy(sample);
    rukh_value_destroy(average);
    rukh_value_destroy(next);
    return result;
}

int main(int argc, char **argv) {
    const char *model = argc > 1 ? argv[1] : "average.onnx";
    rukh_error *error = NULL;
    rukh_environment *environment = NULL;
    rukh_session_options *options = NULL;
    rukh_session *sessions[2] = {NULL, NULL};
    rukh_device *gpu = NULL;
    int wrong = 0;

    check(rukh_environment_create(NULL, &environment, &error), &error);
    check(rukh_session_options_create(&options, &error), &error);

    if (rukh_environment_find_device(environment, "hip", 0, &gpu, NULL) == RUKH_OK) {
        /* One arena for the first GPU, of 64 MB at most, for all sessions that ask for it. */
        check(rukh_environment_create_arena(environment, 0, "max_mem=67108864", &error), &error);
        check(rukh_session_options_set(options, "use_env_allocators", "1", &error), &error);
        check(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error), &error);
    } else {
        printf("no GPU: the sessions run on the CPU\n");
    }

    for (int i = 0; i < 2; i++) {
        check(rukh_session_create(environment, model, options, &sessions[i], &error), &error);
        const float result = step(sessions[i], 10.0f * (float)(i + 1));
        printf("session %d: %g, blocks in use: %d\n", i, result, blocks_in_use());
        wrong += result != 5.0f * (float)(i + 1) || blocks_in_use() != 0;
        if (gpu != NULL) {
            uint64_t reserved = 0;
            check(rukh_environment_memory_statistic(environment, 0, "reserved_bytes.all.current", &reserved, &error),
                  &error);
            printf("the arena holds %llu bytes\n", (unsigned long long)reserved);
        }
    }

    rukh_device_destroy(gpu);
    rukh_session_destroy(sessions[0]);
    rukh_session_destroy(sessions[1]);
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
    return wrong != 0;
}
