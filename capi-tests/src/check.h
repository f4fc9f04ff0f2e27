/* What the tests of the C API share. A test is a program: it exits with 0 when all is well, and else
 * says on stderr which line was not met. Models lie in the folder given as the first argument. */

#ifndef CHECK_H
#define CHECK_H

#include <rukh/rukh.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
#define CHECK_UNUSED __attribute__((unused))
#else
#define CHECK_UNUSED
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not met: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

/* A call that must succeed; it passes `&error`. */
#define OK(call)                                                                             \
    do {                                                                                     \
        rukh_error *error = NULL;                                                            \
        if ((call) != RUKH_OK) {                                                             \
            fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call,                \
                    rukh_status_name(rukh_error_code(error)), rukh_error_message(error));    \
            abort();                                                                         \
        }                                                                                    \
        CHECK(error == NULL);                                                                \
    } while (0)

/* A call that must fail with `code` and a message that contains `part`; it passes `&error`. */
#define FAILS(code, part, call)                                                              \
    do {                                                                                     \
        rukh_error *error = NULL;                                                            \
        rukh_status status_ = (call);                                                        \
        if (status_ != (code) || strstr(rukh_error_message(error), part) == NULL) {          \
            fprintf(stderr, "%s:%d: %s\n  gave %s: %s\n", __FILE__, __LINE__, #call,         \
                    rukh_status_name(status_), rukh_error_message(error));                   \
            abort();                                                                         \
        }                                                                                    \
        CHECK(rukh_error_code(error) == (code));                                             \
        rukh_error_destroy(error);                                                           \
    } while (0)

CHECK_UNUSED static const char *model_folder = ".";

CHECK_UNUSED static const char *model_path(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.onnx", model_folder, name);
    return path;
}

CHECK_UNUSED static rukh_environment *new_environment(const char *threads) {
    rukh_environment_options *options;
    rukh_environment *environment;
    OK(rukh_environment_options_create(&options, &error));
    OK(rukh_environment_options_set(options, "threads", threads, &error));
    OK(rukh_environment_create(options, &environment, &error));
    rukh_environment_options_destroy(options);
    return environment;
}

CHECK_UNUSED static rukh_session *open_model(rukh_environment *environment, const char *name) {
    rukh_session *session;
    OK(rukh_session_create(environment, model_path(name), NULL, &session, &error));
    return session;
}

CHECK_UNUSED static rukh_value *floats(const float *data, int64_t count) {
    rukh_value *value;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, &count, 1, data, (size_t)count * sizeof(float),
                                     &value, &error));
    return value;
}

CHECK_UNUSED static rukh_value *int64_scalar(int64_t number) {
    rukh_value *value;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, NULL, 0, &number, sizeof number, &value, &error));
    return value;
}

CHECK_UNUSED static const float *floats_of(const rukh_value *value, size_t count) {
    const void *data;
    size_t bytes;
    OK(rukh_value_data(value, &data, &bytes, &error));
    CHECK(bytes == count * sizeof(float));
    return (const float *)data;
}

#endif
