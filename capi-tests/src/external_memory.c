/* Memory that another API exported: computed on where it lies, given back once, and refused where it cannot be had.
 *
 * A memfd stands for the exported memory, which the emulated GPU maps. On a real GPU the driver refuses it; then this says so.
 */

#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "check.h"

#include <limits.h>

static rukh_environment *environment;
static int releases;

static void count_release(void *user) {
    CHECK(user == &releases);
    releases++;
}

static rukh_device *device(const char *provider) {
    rukh_device *found;
    OK(rukh_environment_find_device(environment, provider, 0, &found, &error));
    return found;
}

static void refused(rukh_device *cpu, rukh_device *gpu) {
    rukh_external_memory *memory = (rukh_external_memory *)cpu;
    int before = releases;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "the device given is the CPU",
          rukh_external_memory_import(cpu, RUKH_EXTERNAL_OPAQUE_FD, 0, 64, count_release, &releases, &memory, &error));
    CHECK(memory == NULL && releases == before + 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device",
          rukh_external_memory_import(NULL, RUKH_EXTERNAL_OPAQUE_FD, 0, 64, count_release, &releases, &memory, &error));
    CHECK(releases == before + 2);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "",
          rukh_external_memory_import((rukh_device *)environment, 0, 0, 64, NULL, NULL, &memory, &error));
    rukh_external_memory_destroy(NULL);
    rukh_external_memory_destroy((rukh_external_memory *)environment);
    if (gpu == NULL) return;
    before = releases;
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "kind: 3",
          rukh_external_memory_import(gpu, 3, 0, 64, count_release, &releases, &memory, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "kind: -1",
          rukh_external_memory_import(gpu, -1, 0, 64, count_release, &releases, &memory, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "out",
          rukh_external_memory_import(gpu, 0, 0, 64, count_release, &releases, NULL, &error));
    CHECK(releases == before + 3);
#if defined(__linux__)
    FAILS(RUKH_ERROR_UNSUPPORTED, "kind: 2",
          rukh_external_memory_import(gpu, RUKH_EXTERNAL_WIN32, 0, 64, NULL, NULL, &memory, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "handle: -1",
          rukh_external_memory_import(gpu, RUKH_EXTERNAL_OPAQUE_FD, -1, 64, NULL, NULL, &memory, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "handle: 4294967296",
          rukh_external_memory_import(gpu, RUKH_EXTERNAL_DMA_BUF, INT64_C(1) << 32, 64, NULL, NULL, &memory, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "bytes: 0",
          rukh_external_memory_import(gpu, RUKH_EXTERNAL_DMA_BUF, 0, 0, NULL, NULL, &memory, &error));
    {
        rukh_error *why;
        rukh_status status = rukh_external_memory_import(gpu, RUKH_EXTERNAL_OPAQUE_FD, INT_MAX, 64, NULL, NULL, &memory, &why);
        CHECK(status == RUKH_ERROR_DEVICE || status == RUKH_ERROR_UNSUPPORTED);
        CHECK(memory == NULL && strstr(rukh_error_message(why), "import memory") != NULL);
        rukh_error_destroy(why);
    }
#endif
}

#if defined(__linux__)
enum { BYTES = 4096, COUNT = 8 };

/* Computes sum = a + a from one part of the memory into another, and sees it from outside. */
static int shared(rukh_device *gpu, rukh_external_handle kind) {
    int fd = memfd_create("exported", 0), before = releases;
    float *seen;
    rukh_external_memory *memory;
    rukh_value *a, *sum, *tensor;
    rukh_session_options *options;
    rukh_session *session;
    rukh_io_binding *binding;
    const int64_t count = COUNT;
    rukh_error *why = NULL;
    rukh_status status;
    size_t i;
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    seen = (float *)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(seen != MAP_FAILED);
    status = rukh_external_memory_import(gpu, kind, fd, BYTES, count_release, &releases, &memory, &why);
    if (status != RUKH_OK) {
        printf("skipped: the driver takes no memfd: %s\n", rukh_error_message(why));
        CHECK(releases == before + 1 && (status == RUKH_ERROR_DEVICE || status == RUKH_ERROR_UNSUPPORTED));
        CHECK(getenv("AMDEMU_ARCH") == NULL); /* the emulated one does */
        rukh_error_destroy(why);
        munmap(seen, BYTES);
        close(fd);
        return 0;
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "offset: 32 bytes from 4068",
          rukh_external_memory_tensor(memory, BYTES - 28, RUKH_ELEMENT_FLOAT, &count, 1, &tensor, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "offset",
          rukh_external_memory_tensor(memory, SIZE_MAX - 3, RUKH_ELEMENT_FLOAT, &count, 1, &tensor, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "multiple of 4",
          rukh_external_memory_tensor(memory, 2, RUKH_ELEMENT_FLOAT, &count, 1, &tensor, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "strings",
          rukh_external_memory_tensor(memory, 0, RUKH_ELEMENT_STRING, &count, 1, &tensor, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "out",
          rukh_external_memory_tensor(memory, 0, RUKH_ELEMENT_FLOAT, &count, 1, NULL, &error));
    CHECK(tensor == NULL);
    OK(rukh_external_memory_tensor(memory, 64, RUKH_ELEMENT_FLOAT, &count, 1, &a, &error));
    OK(rukh_external_memory_tensor(memory, BYTES - 32, RUKH_ELEMENT_FLOAT, &count, 1, &sum, &error));
    /* Tensors keep the memory. */
    rukh_external_memory_destroy(memory);
    FAILS(RUKH_ERROR_INVALID_HANDLE, "",
          rukh_external_memory_tensor(memory, 0, RUKH_ELEMENT_FLOAT, &count, 1, &tensor, &error));
    CHECK(releases == before);

    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error));
    OK(rukh_session_create(environment, model_path("add"), options, &session, &error));
    rukh_session_options_destroy(options);
    OK(rukh_io_binding_create(session, &binding, &error));
    OK(rukh_io_binding_bind_input(binding, "a", a, &error));
    OK(rukh_io_binding_bind_input(binding, "b", a, &error));
    OK(rukh_io_binding_bind_output(binding, "sum", sum, &error));
    rukh_value_destroy(sum);
    rukh_value_destroy(a);
    for (i = 0; i < COUNT; i++) seen[16 + i] = (float)i;
    OK(rukh_io_binding_run(binding, NULL, &error));
    for (i = 0; i < COUNT; i++) CHECK(seen[BYTES / 4 - COUNT + i] == 2 * (float)i);
    CHECK(releases == before);
    rukh_io_binding_destroy(binding);
    rukh_session_destroy(session);
    CHECK(releases == before + 1);
    munmap(seen, BYTES);
    return 1;
}
#endif

int main(int argc, char **argv) {
    char reason[1024];
    rukh_device *cpu, *gpu = NULL;
    if (argc > 1) model_folder = argv[1];
    environment = new_environment("2");
    cpu = device("cpu");
    OK(rukh_environment_provider_reason(environment, "hip", reason, sizeof reason, NULL, &error));
    if (reason[0] == '\0') gpu = device("hip");
    refused(cpu, gpu);
#if defined(__linux__)
    if (gpu != NULL && shared(gpu, RUKH_EXTERNAL_OPAQUE_FD)) shared(gpu, RUKH_EXTERNAL_DMA_BUF);
#endif
    rukh_device_destroy(gpu);
    rukh_device_destroy(cpu);
    rukh_environment_destroy(environment);
    return 0;
}
