/* Libraries of operators:
 *
 *   operators_loaded MODELS LIBRARY OLD NAMELESS FAILING
 *
 * The libraries are operator_library.c, in the variants that it names. */

#include "check.h"

int main(int argc, char **argv) {
    rukh_environment *environment = new_environment("1");
    rukh_session_options *options;
    rukh_session *session;
    rukh_value *x, *y;
    const char *in = "x", *out = "y";
    const float row[] = {1, 1}, expected[] = {13, 20};
    const int64_t dims[] = {1, 2};
    int i;
    CHECK(argc == 6);
    model_folder = argv[1];
    OK(rukh_session_options_create(&options, &error));
    FAILS(RUKH_ERROR_NOT_FOUND, "\"/nowhere.so\": it cannot be opened",
          rukh_session_options_load_operators(options, "/nowhere.so", &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "path", rukh_session_options_load_operators(options, NULL, &error));
    FAILS(RUKH_ERROR_UNSUPPORTED, "rukh_operators_abi_version says 2000; this library has",
          rukh_session_options_load_operators(options, argv[3], &error));
    FAILS(RUKH_ERROR_UNSUPPORTED, "it has no symbol \"rukh_register_operators\"",
          rukh_session_options_load_operators(options, argv[4], &error));
    FAILS(RUKH_ERROR_UNSUPPORTED, "rukh_register_operators: the licence has run out",
          rukh_session_options_load_operators(options, argv[5], &error));
    OK(rukh_session_options_load_operators(options, argv[2], &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "test.ops.Scale of version 1 already",
          rukh_session_options_load_operators(options, argv[2], &error));
    OK(rukh_environment_load_operators(environment, argv[2], &error));
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, dims, 2, row, sizeof row, &x, &error));
    for (i = 0; i < 2; i++) {
        OK(rukh_session_create(environment, model_path("operators"), i ? options : NULL, &session, &error));
        OK(rukh_session_run(session, NULL, &in, (const rukh_value *const *)&x, 1, &out, 1, &y, &error));
        CHECK(memcmp(floats_of(y, 2), expected, sizeof expected) == 0);
        rukh_value_destroy(y);
        rukh_session_destroy(session);
    }
    rukh_value_destroy(x);
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
    return 0;
}
