/*
 * Weights that are not in the model's file: the program has them in its memory. The library reads them where they lie,
 * sessions share them, and the program is told when nothing uses them any more.
 *
 *     initializers [MODEL]
 *
 * ONNX Runtime calls this AddInitializer and AddExternalInitializersFromFilesInMemory.
 */
#include "check.h"

/* All of the file "weights.bin" that linear.onnx names, three features by two scores. There is no such file. */
static float weights[6] = {1, 2, 3, 4, 5, 6};
static float bias[2] = {100, 200};

/* The library uses the memory no longer; a program would free it here. */
static void unused(void *data, void *user) {
    (void)data;
    printf("nothing uses the %s any more\n", (const char *)user);
}

int main(int argc, char **argv) {
    const char *model = argc > 1 ? argv[1] : "linear.onnx";
    const int64_t bias_shape[1] = {2};
    const float features[3] = {1, 0, -1};
    const int64_t features_shape[2] = {1, 3};
    rukh_error *error = NULL;
    rukh_environment *environment = NULL;
    rukh_session_options *options = NULL;
    rukh_session *sessions[2] = {NULL, NULL};
    rukh_value *value = NULL, *input = NULL;
    int wrong = 0;

    check(rukh_environment_create(NULL, &environment, &error), &error);
    check(rukh_session_options_create(&options, &error), &error);

    /* A file of external data, by the name that the model has for it. */
    check(rukh_session_options_add_external_file(options, "weights.bin", weights, sizeof weights, unused, "weights",
                                                 &error), &error);
    /* One initializer, in place of the zeros in the file. The tensor is only a view of the program's memory. */
    check(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, bias_shape, 1, bias, sizeof bias, unused, "bias", &value,
                                        &error), &error);
    check(rukh_session_options_add_initializer(options, "bias", value, &error), &error);
    rukh_value_destroy(value);

    /* Both sessions read the same memory. */
    check(rukh_session_create(environment, model, options, &sessions[0], &error), &error);
    check(rukh_session_create(environment, model, options, &sessions[1], &error), &error);
    rukh_session_options_destroy(options);

    check(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, features_shape, 2, features, sizeof features, &input,
                                        &error), &error);
    for (int i = 0; i < 2; i++) {
        const rukh_value *inputs[1] = {input};
        rukh_value *scores = NULL;
        const void *data = NULL;
        size_t bytes = 0;
        check(rukh_session_run(sessions[i], NULL, NULL, inputs, 1, NULL, 1, &scores, &error), &error);
        check(rukh_value_data(scores, &data, &bytes, &error), &error);
        const float *numbers = data;
        printf("scores of session %d: %g %g\n", i, numbers[0], numbers[1]);
        /* 1 * 1 + 0 * 3 - 1 * 5 + 100, 1 * 2 + 0 * 4 - 1 * 6 + 200 */
        wrong += numbers[0] != 96 || numbers[1] != 196;
        rukh_value_destroy(scores);
    }
    rukh_value_destroy(input);
    rukh_session_destroy(sessions[0]);
    rukh_session_destroy(sessions[1]);
    rukh_environment_destroy(environment);
    return wrong != 0;
}
