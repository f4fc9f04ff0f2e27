/* The functions as a table: which programs it serves, and a session that is run by nothing else. With LOADED the
 * program is not linked to the library; it loads the file that its second argument names. */

#include <rukh/rukh_table.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LOADED
#include <dlfcn.h>
#endif

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: not met: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

#define PLACE(member) ((offsetof(rukh_table, member) - sizeof(size_t)) / sizeof(void (*)(void)))

typedef const rukh_table *(*give)(uint32_t version);

static const rukh_table *rukh;

static void run(const char *folder) {
    const float x[] = {1, 2, 3, 4};
    const int64_t shape[] = {1, 4};
    const char *names[] = {"x"};
    char path[4096];
    rukh_environment *environment = NULL;
    rukh_session *session = NULL;
    rukh_value *input = NULL, *output = NULL;
    const rukh_value *inputs[1];
    rukh_error *error = NULL;
    const void *data;
    size_t bytes = 0;

    CHECK(rukh->environment_create(NULL, &environment, &error) == RUKH_OK);
    CHECK(snprintf(path, sizeof path, "%s/none.onnx", folder) > 0);
    CHECK(rukh->session_create(environment, path, NULL, &session, &error) == RUKH_ERROR_NOT_FOUND && session == NULL);
    CHECK(strstr(rukh->error_message(error), "none.onnx") != NULL);
    rukh->error_destroy(error);
    CHECK(snprintf(path, sizeof path, "%s/linear.onnx", folder) > 0);
    CHECK(rukh->session_create(environment, path, NULL, &session, &error) == RUKH_OK);
    CHECK(rukh->value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, x, sizeof x, &input, &error) == RUKH_OK);
    inputs[0] = input;
    CHECK(rukh->session_run(session, NULL, names, inputs, 1, NULL, 1, &output, &error) == RUKH_OK);
    CHECK(rukh->value_data(output, &data, &bytes, &error) == RUKH_OK && bytes == 3 * sizeof(float));
    CHECK(((const float *)data)[0] == 5.5f && ((const float *)data)[2] == 11.0f);
    rukh->value_destroy(output);
    rukh->value_destroy(input);
    rukh->session_destroy(session);
    rukh->environment_destroy(environment);
}

int main(int argc, char **argv) {
    give api;
#ifdef LOADED
    void *library;
    CHECK(argc == 3);
    library = dlopen(argv[2], RTLD_NOW);
    CHECK(library != NULL);
    *(void **)&api = dlsym(library, "rukh_api");
    CHECK(api != NULL);
#else
    CHECK(argc >= 2);
    api = rukh_api;
#endif
    rukh = api(RUKH_ABI_VERSION);
    CHECK(rukh != NULL && rukh->abi_version() == RUKH_ABI_VERSION);
    CHECK(sizeof *rukh == sizeof(size_t) + rukh->count * sizeof(void (*)(void)));
    CHECK(api(RUKH_ABI_VERSION - 1) == rukh);
    CHECK(api(RUKH_ABI_VERSION + 1) == NULL && api(RUKH_ABI_VERSION + 1000) == NULL && api(0) == NULL);
    /* Where the first headers put them; they never move. */
    CHECK(PLACE(version) == 0 && PLACE(environment_create) == 14 && PLACE(kernel_context_set_error) == 230);
    run(argv[1]);
    return 0;
}
