/* Options of devices that are checked before there is a device. */

#include "check.h"

#include <string.h>

/* The options of the hip provider. */
static void options(void) {
    rukh_session_options *options;
    const char *keys[] = {"device_id", "arena_extend_strategy"};
    const char *values[] = {"0", "kSameAsRequested"};
    const char *wrong[] = {"0", "kDouble"};
    char text[64];
    size_t needed;
    OK(rukh_session_options_create(&options, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "kDouble",
          rukh_session_options_add_provider(options, "ROCMExecutionProvider", keys, wrong, 2, &error));
    OK(rukh_session_options_add_provider(options, "ROCMExecutionProvider", keys, values, 2, &error));
    OK(rukh_session_options_provider_get(options, 0, "arena_extend_strategy", text, sizeof text, &needed, &error));
    CHECK(strcmp(text, "kSameAsRequested") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "both functions",
          rukh_session_options_set_external_allocator(options, NULL, NULL, NULL, NULL, &error));
    rukh_session_options_destroy(options);
}

static void *no_memory(size_t bytes, void *user) {
    (void)bytes;
    (void)user;
    return NULL;
}

static void no_release(void *address, void *user) {
    (void)address;
    (void)user;
}

/* What cannot be used together is refused however it is given. */
static void one_source_of_memory(rukh_environment *environment) {
    const char *stream[] = {"user_compute_stream"}, *address[] = {"4096"};
    const char *functions[] = {"gpu_external_alloc", "gpu_external_free"}, *addresses[] = {"4096", "8192"};
    rukh_session_options *options;
    rukh_session *session;
    int both;
    for (both = 0; both < 2; both++) {
        OK(rukh_session_options_create(&options, &error));
        OK(rukh_session_options_set_external_allocator(options, no_memory, no_release, NULL, NULL, &error));
        OK(rukh_session_options_add_provider(options, "hip", both ? functions : stream, both ? addresses : address,
                                             both ? 2 : 1, &error));
        FAILS(RUKH_ERROR_INVALID_ARGUMENT, "cannot be used together; give one of them",
              rukh_session_create(environment, model_path("linear"), options, &session, &error));
        rukh_session_options_destroy(options);
    }
}

int main(int argc, char **argv) {
    rukh_environment *environment = new_environment("1");
    if (argc > 1) model_folder = argv[1];
    options();
    one_source_of_memory(environment);
    rukh_environment_destroy(environment);
    return 0;
}
