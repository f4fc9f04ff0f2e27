/* The memory of devices, with a device and without one. */

#include "check.h"

#include <string.h>

/* Without a device every function says so, and why. */
static void without(rukh_environment *environment) {
    const char *part = "no HIP device";
    uint64_t value;
    size_t needed;
    char text[64];
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_statistic(environment, 0, "InUse", &value, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_info(environment, 0, &value, &value, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_reset_peaks(environment, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_empty_cache(environment, 0, &error));
    FAILS(RUKH_ERROR_DEVICE, part, rukh_environment_memory_record_history(environment, 0, 10, &error));
    FAILS(RUKH_ERROR_DEVICE, part,
          rukh_environment_memory_snapshot(environment, 0, text, sizeof text, &needed, &error));
}

static uint64_t statistic(rukh_environment *environment, const char *name) {
    uint64_t value = 0;
    OK(rukh_environment_memory_statistic(environment, 0, name, &value, &error));
    return value;
}

static void with(rukh_environment *environment) {
    uint64_t value, total;
    size_t needed, count = 0;
    char text[4096];
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"inuse\" is not known",
          rukh_environment_memory_statistic(environment, 0, "inuse", &value, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device_id 99 is not there",
          rukh_environment_memory_statistic(environment, 99, "InUse", &value, &error));
    while (rukh_environment_memory_statistic_name(environment, count, text, sizeof text, &needed, NULL) == RUKH_OK)
        statistic(environment, text), count++;
    CHECK(count > 60);
    OK(rukh_environment_memory_info(environment, 0, &value, &total, &error));
    CHECK(value <= total && total > 0);
    CHECK(statistic(environment, "allocated_bytes.all.current") == 0);
    OK(rukh_environment_memory_record_history(environment, 0, 10, &error));
    OK(rukh_environment_memory_snapshot(environment, 0, text, sizeof text, &needed, &error));
    CHECK(strcmp(text, "[]") == 0);
    OK(rukh_environment_memory_reset_peaks(environment, 0, &error));
    OK(rukh_environment_memory_empty_cache(environment, 0, &error));
}

/* The options of the hip provider, which are checked before there is a device. */
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

int main(void) {
    rukh_environment *environment = new_environment("1");
    char reason[1024];
    size_t needed;
    OK(rukh_environment_provider_reason(environment, "hip", reason, sizeof reason, &needed, &error));
    if (reason[0] == '\0') {
        with(environment);
    } else {
        without(environment);
    }
    options();
    rukh_environment_destroy(environment);
    return 0;
}
