/* Versions, options, environments, devices: what is set can be read, what is read can be set. */

#include "check.h"

#include <stdint.h>

static void versions(void) {
    CHECK(rukh_abi_version() == RUKH_ABI_VERSION);
    CHECK(rukh_version() >= 1000);
    CHECK(strchr(rukh_version_string(), '.') != NULL);
    CHECK(strcmp(rukh_status_name(RUKH_ERROR_FORKED), "RUKH_ERROR_FORKED") == 0);
    CHECK(strcmp(rukh_status_name(-7), "unknown") == 0);
    CHECK(rukh_error_code(NULL) == RUKH_OK && rukh_error_message(NULL)[0] == '\0');
}

static void session_options(void) {
    rukh_session_options *options, *copy;
    char key[64], value[64];
    size_t count;
    size_t i;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_set(options, "load", "read", &error));
    OK(rukh_session_options_set_optimization(options, RUKH_OPTIMIZATION_BASIC, &error));
    OK(rukh_session_options_set_fallback(options, RUKH_FALLBACK_ERROR, &error));
    OK(rukh_session_options_set_profiling(options, 1, &error));
    OK(rukh_session_options_set_threads(options, 2, &error));
    OK(rukh_session_options_set_dimension(options, "batch", 4, &error));

    OK(rukh_session_options_create(&copy, &error));
    for (i = 0; rukh_session_options_key(options, i, key, sizeof key, NULL, NULL) == RUKH_OK; i++) {
        OK(rukh_session_options_get(options, key, value, sizeof value, NULL, &error));
        OK(rukh_session_options_set(copy, key, value, &error));
    }
    CHECK(i == 22);
    rukh_session_options_destroy(options);
    OK(rukh_session_options_get(copy, "load", value, sizeof value, NULL, &error));
    CHECK(strcmp(value, "read") == 0);
    OK(rukh_session_options_get(copy, "dim.batch", value, sizeof value, NULL, &error));
    CHECK(strcmp(value, "4") == 0);
    OK(rukh_session_options_clone(copy, &options, &error));
    OK(rukh_session_options_set_load(copy, RUKH_LOAD_MAP, &error));
    OK(rukh_session_options_get(options, "load", value, sizeof value, NULL, &error));
    CHECK(strcmp(value, "read") == 0);
    rukh_session_options_destroy(copy);

    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed is map or read",
          rukh_session_options_set(options, "load", "mmap", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"lod\" is not known; known are",
          rukh_session_options_set(options, "lod", "map", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "load: 7 is not known", rukh_session_options_set_load(options, 7, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "-1", rukh_session_options_set_fallback(options, -1, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "2 is not known", rukh_session_options_set_profiling(options, 2, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "1024", rukh_session_options_set_threads(options, 5000, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "-3", rukh_session_options_set_dimension(options, "n", -3, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "needs a name", rukh_session_options_set_dimension(options, "", 3, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"nope\" is not set",
          rukh_session_options_get(options, "nope", value, sizeof value, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "byte 1 of the text is not UTF-8",
          rukh_session_options_set(options, "a\xff", "", &error));
    OK(rukh_session_options_provider_count(options, &count, &error));
    CHECK(count == 0);
    rukh_session_options_destroy(options);
}

static void providers(void) {
    const char *keys[] = {"device_id"}, *values[] = {"0"};
    const char *twice[] = {"device_id", "device_id"}, *zeros[] = {"0", "0"};
    rukh_session_options *options;
    char text[64];
    size_t count;
    OK(rukh_session_options_create(&options, &error));
    OK(rukh_session_options_add_provider(options, "ROCMExecutionProvider", keys, values, 1, &error));
    OK(rukh_session_options_add_provider(options, "cpu", NULL, NULL, 0, &error));
    OK(rukh_session_options_provider_count(options, &count, &error));
    CHECK(count == 2);
    OK(rukh_session_options_provider_name(options, 0, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "hip") == 0);
    /* Every option is told, those that were not given with their defaults. */
    OK(rukh_session_options_provider_key(options, 0, 0, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "arena_extend_strategy") == 0);
    OK(rukh_session_options_provider_get(options, 0, text, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "kNextPowerOfTwo") == 0);
    OK(rukh_session_options_provider_get(options, 0, "device_id", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "0") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "provider 2 is not there",
          rukh_session_options_provider_name(options, 2, text, sizeof text, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "provider option 0 is not there",
          rukh_session_options_provider_key(options, 1, 0, text, sizeof text, NULL, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"CUDAExecutionProvider\" is not known; known are cpu",
          rukh_session_options_add_provider(options, "CUDAExecutionProvider", NULL, NULL, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "was added before",
          rukh_session_options_add_provider(options, "cpu", NULL, NULL, 0, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "given twice",
          rukh_session_options_add_provider(options, "hip", twice, zeros, 2, &error));
    rukh_session_options_destroy(options);
}

struct log {
    int messages, releases;
};

static void write_log(const rukh_log_record *record, void *user) {
    rukh_log_level level;
    const char *text;
    rukh_log_text which;
    /* A log callback may call the library. */
    OK(rukh_log_record_level(record, &level, &error));
    CHECK(level >= RUKH_LOG_DEBUG && level <= RUKH_LOG_ERROR);
    for (which = RUKH_LOG_TEXT_MESSAGE; which <= RUKH_LOG_TEXT_LOCATION; which++) {
        OK(rukh_log_record_text(record, which, &text, &error));
        CHECK(text != NULL);
    }
    ((struct log *)user)->messages++;
}

static void release_log(void *user) {
    ((struct log *)user)->releases++;
}

static void environments(void) {
    struct log first = {0, 0}, second = {0, 0};
    rukh_environment_options *options;
    rukh_environment *environment;
    rukh_session *session;
    char text[32];
    size_t threads;
    OK(rukh_environment_options_create(&options, &error));
    OK(rukh_environment_options_set(options, "threads", "3", &error));
    OK(rukh_environment_options_get(options, "threads", text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "3") == 0);
    OK(rukh_environment_options_key(options, 0, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "log_level") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "allowed is 0",
          rukh_environment_options_set(options, "threads", "many", &error));
    OK(rukh_environment_options_set_log_callback(options, RUKH_LOG_ERROR, write_log, &first, release_log, &error));
    OK(rukh_environment_options_set_log_callback(options, RUKH_LOG_DEBUG, write_log, &second, release_log, &error));
    CHECK(first.releases == 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "level: 9",
          rukh_environment_options_set_log_callback(options, 9, write_log, &first, release_log, &error));
    CHECK(first.releases == 2);
    OK(rukh_environment_create(options, &environment, &error));
    rukh_environment_options_destroy(options);
    OK(rukh_environment_thread_count(environment, &threads, &error));
    CHECK(threads == 3);
    session = open_model(environment, "linear");
    CHECK(second.messages > 0);
    rukh_environment_destroy(environment);
    CHECK(second.releases == 0);
    rukh_session_destroy(session);
    CHECK(second.releases == 1 && first.messages == 0);
}

static void devices(void) {
    rukh_environment *environment = new_environment("1");
    rukh_device *device;
    const char *provider, *name, *arch, *key, *value;
    char text[2048];
    uint64_t memory;
    size_t count, properties, i, needed;
    OK(rukh_environment_device_count(environment, &count, &error));
    CHECK(count >= 1);
    OK(rukh_environment_device(environment, count - 1, &device, &error));
    rukh_environment_destroy(environment);
    OK(rukh_device_provider(device, &provider, &error));
    OK(rukh_device_name(device, &name, &error));
    OK(rukh_device_arch(device, &arch, &error));
    OK(rukh_device_memory(device, &memory, &error));
    CHECK(strcmp(provider, "cpu") == 0 && name[0] && arch[0] && memory > 0);
    OK(rukh_device_property_count(device, &properties, &error));
    for (i = 0; i < properties; i++) {
        OK(rukh_device_property(device, i, &key, &value, &error));
    }
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "is not there", rukh_device_property(device, i, &key, &value, &error));
    rukh_device_destroy(device);

    environment = new_environment("1");
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "device", rukh_environment_device(environment, count, &device, &error));
    OK(rukh_provider_count(&count, &error));
    for (i = 0; i < count; i++) {
        OK(rukh_provider_name(i, text, sizeof text, NULL, &error));
        OK(rukh_environment_provider_reason(environment, text, text, sizeof text, &needed, &error));
    }
    OK(rukh_environment_provider_reason(environment, "CPUExecutionProvider", text, sizeof text, &needed, &error));
    CHECK(needed == 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "not known",
          rukh_environment_provider_reason(environment, "tpu", text, sizeof text, &needed, &error));
    rukh_environment_destroy(environment);
}

/* What a report about a defect tells is one JSON object. */
static void report(void) {
    char text[8192];
    size_t needed;
    OK(rukh_report(NULL, 0, &needed, &error));
    CHECK(needed <= sizeof text);
    OK(rukh_report(text, sizeof text, &needed, &error));
    CHECK(text[0] == '{' && text[needed - 2] == '}');
    CHECK(strstr(text, "\"kernel_targets\":[") != NULL && strstr(text, "\"platform\":\"nvidia\"") != NULL);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "too few", rukh_report(text, 5, &needed, &error));
}

int main(int argc, char **argv) {
    if (argc > 1) model_folder = argv[1];
    versions();
    session_options();
    providers();
    environments();
    devices();
    report();
    return 0;
}
