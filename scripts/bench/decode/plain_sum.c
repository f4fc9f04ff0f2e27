/* How fast threads read memory: the sum of a block of numbers, each thread a part of its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Sums that do not wait for each other, wider than any vector. */
enum { LANES = 64, MOST_THREADS = 256 };

struct part {
    const int64_t *numbers;
    size_t count;
    int64_t sum;
};

static void *add(void *given)
{
    struct part *part = given;
    int64_t sums[LANES] = {0};
    for (size_t i = 0; i + LANES <= part->count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            sums[lane] += part->numbers[i + lane];
    for (int lane = 0; lane < LANES; lane++)
        part->sum += sums[lane];
    return NULL;
}

/* Memory of so many bytes in pages as large as the system gives, and written once; NULL where there is none. */
void *sum_block(size_t bytes)
{
    const size_t large = (size_t)2 << 20;
    size_t whole = (bytes + large - 1) / large * large;
    void *block = aligned_alloc(large, whole);
    if (block == NULL)
        return NULL;
    madvise(block, whole, MADV_HUGEPAGE);
    memset(block, 1, whole);
    return block;
}

/* Seconds for reading the block once; negative where the threads cannot be started. */
double sum_seconds(const void *block, size_t bytes, int threads)
{
    struct part parts[MOST_THREADS] = {0};
    pthread_t others[MOST_THREADS];
    if (threads < 1 || threads > MOST_THREADS)
        return -1.0;
    size_t each = bytes / sizeof(int64_t) / threads;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    int started = 1, failed = 0;
    for (int i = 0; i < threads; i++) {
        parts[i].numbers = (const int64_t *)block + i * each;
        parts[i].count = each;
    }
    while (started < threads && !failed) {
        failed = pthread_create(&others[started], NULL, add, &parts[started]);
        started += !failed;
    }
    add(&parts[0]);
    volatile int64_t total = parts[0].sum;
    for (int i = 1; i < started; i++) {
        pthread_join(others[i], NULL);
        total += parts[i].sum;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (failed)
        return -1.0;
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}
