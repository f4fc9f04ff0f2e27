/*
 * A loop whose state stays where it is: the output of one step is the input of the next, in the memory of a GPU where
 * there is one, so that a step copies one number to the host.
 *
 *     binding [MODEL]
 *
 * ONNX Runtime calls this I/O binding.
 */
#include "check.h"

#define SAMPLES 4

static rukh_value *floats(const float *numbers) {
    const int64_t shape[1] = {SAMPLES};
    rukh_error *error = NULL;
    rukh_value *value = NULL;
    check(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 1, numbers, SAMPLES * sizeof(float), &value, &error),
          &error);
    return value;
}

static float number(const rukh_value *value) {
    rukh_error *error = NULL;
    const void *data = NULL;
    size_t bytes = 0;
    check(rukh_value_data(value, &data, &bytes, &error), &error);
    return *(const float *)data;
}

int main(int argc, char **argv) {
    const char *model = argc > 1 ? argv[1] : "average.onnx";
    const float zeros[SAMPLES] = {0}, numbers[SAMPLES] = {1, -2, 8, 4};
    rukh_error *error = NULL;
    rukh_environment *environment = NULL;
    rukh_session_options *options = NULL;
    rukh_session *session = NULL;
    rukh_device *device = NULL;
    rukh_io_binding *binding = NULL;
    rukh_value *sample = floats(numbers), *average = floats(zeros);
    const char *provider = NULL;
    float change = 0;

    check(rukh_environment_create(NULL, &environment, &error), &error);
    check(rukh_session_options_create(&options, &error), &error);
    /* On a GPU where there is one, else on the CPU. */
    check(rukh_session_options_add_provider(options, "hip", NULL, NULL, 0, &error), &error);
    check(rukh_session_options_add_provider(options, "cpu", NULL, NULL, 0, &error), &error);
    check(rukh_session_create(environment, model, options, &session, &error), &error);
    check(rukh_session_device(session, &device, &error), &error);
    check(rukh_device_provider(device, &provider, &error), &error);
    check(rukh_io_binding_create(session, &binding, &error), &error);

    check(rukh_io_binding_bind_input(binding, "sample", sample, &error), &error);
    /* The state: made anew by each step, in the memory of the device that runs the session. */
    check(rukh_io_binding_bind_output_allocated_in(binding, "next", device, RUKH_MEMORY_DEVICE, &error), &error);
    /* What the program reads: on the host. */
    check(rukh_io_binding_bind_output_allocated(binding, "change", &error), &error);

    for (int step = 0; step < 8; step++) {
        rukh_value *output = NULL;
        check(rukh_io_binding_bind_input(binding, "average", average, &error), &error);
        check(rukh_io_binding_run(binding, NULL, &error), &error);
        check(rukh_io_binding_output(binding, "change", &output, &error), &error);
        change = number(output);
        printf("%s, step %d: largest change %g\n", provider, step, change);
        rukh_value_destroy(output);
        rukh_value_destroy(average);
        check(rukh_io_binding_output(binding, "next", &average, &error), &error);
    }

    rukh_value_destroy(average);
    rukh_value_destroy(sample);
    rukh_io_binding_destroy(binding);
    rukh_device_destroy(device);
    rukh_session_destroy(session);
    rukh_session_options_destroy(options);
    rukh_environment_destroy(environment);
    /* Each step halves what is left of 8. */
    return change != 8.0f / 256.0f;
}
