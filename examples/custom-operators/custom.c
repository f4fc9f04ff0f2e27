/* Runs a model with two operators that the program defines:
 *
 *     custom MODEL
 *
 * CustomOpOne(a, b) is scale * (a + b), with an attribute; CustomOpTwo(x) rounds floats to int32. */

#include <math.h>
#include <rukh/rukh.h>
#include <stdio.h>
#include <stdlib.h>

static void check(rukh_status status, rukh_error *const *error) {
    if (status != RUKH_OK) {
        fprintf(stderr, "%s: %s\n", rukh_status_name(status), rukh_error_message(*error));
        rukh_error_destroy(*error);
        exit(1);
    }
}

/* Both give an output of the shape of their first input. */
static rukh_status same_shape(rukh_node_info *node, void *user) {
    (void)user;
    return rukh_node_info_set_output_shape_of(node, 0, 0, NULL);
}

/* What a node of CustomOpOne keeps: its attribute. */
static rukh_status one_create(rukh_node_info *node, void *user) {
    float *scale = malloc(sizeof *scale);
    rukh_status status;
    (void)user;
    if (scale == NULL) return RUKH_ERROR_OUT_OF_MEMORY;
    status = rukh_node_info_set_state(node, scale, free, NULL);
    if (status != RUKH_OK) {
        free(scale);
        return status;
    }
    return rukh_node_info_attribute_float(node, "scale", scale, NULL);
}

/* The elements of an input, and of an output of its shape. */
static rukh_status elements(rukh_kernel_context *context, size_t input, const float **from, void **to, size_t *count) {
    const rukh_value *x = NULL;
    rukh_value *y = NULL;
    const void *data = NULL;
    int64_t shape[8];
    size_t rank = 0;
    if (rukh_kernel_context_input(context, input, &x, NULL) != RUKH_OK ||
        rukh_value_shape(x, shape, 8, &rank, NULL) != RUKH_OK ||
        rukh_value_element_count(x, count, NULL) != RUKH_OK || rukh_value_data(x, &data, NULL, NULL) != RUKH_OK ||
        rukh_kernel_context_output(context, 0, shape, rank, &y, NULL) != RUKH_OK) {
        const char *reason = "inputs must be tensors of one shape, of rank 8 at most";
        rukh_status told = rukh_kernel_context_set_error(context, reason, NULL);
        return told == RUKH_OK ? RUKH_ERROR_INVALID_INPUT : told;
    }
    *from = data;
    return rukh_value_data_mut(y, to, NULL, NULL);
}

static rukh_status one_compute(rukh_kernel_context *context, void *user) {
    const float *a, *b;
    void *to, *scale;
    size_t count, i;
    rukh_status status = elements(context, 0, &a, &to, &count);
    (void)user;
    if (status == RUKH_OK) status = elements(context, 1, &b, &to, &count);
    if (status == RUKH_OK) status = rukh_kernel_context_state(context, &scale, NULL);
    for (i = 0; status == RUKH_OK && i < count; i++) ((float *)to)[i] = *(float *)scale * (a[i] + b[i]);
    return status;
}

/* Large tensors are worth several threads: each rounds a part. */
typedef struct {
    const float *from;
    int32_t *to;
    size_t count;
} rounding;

enum { PART = 4096 };

static void round_part(size_t part, void *user) {
    const rounding *all = user;
    size_t i, end = (part + 1) * PART < all->count ? (part + 1) * PART : all->count;
    for (i = part * PART; i < end; i++) all->to[i] = (int32_t)lroundf(all->from[i]);
}

static rukh_status two_compute(rukh_kernel_context *context, void *user) {
    rounding all;
    void *to;
    rukh_status status = elements(context, 0, &all.from, &to, &all.count);
    (void)user;
    if (status != RUKH_OK) return status;
    all.to = to;
    return rukh_kernel_context_parallel_for(context, (all.count + PART - 1) / PART, round_part, &all, NULL);
}

static void add_operators(rukh_session_options *options) {
    rukh_error *error = NULL;
    rukh_operator *one = NULL, *two = NULL;
    const float scale = 1;
    check(rukh_operator_create("test.customop", "CustomOpOne", 1, NULL, NULL, &one, &error), &error);
    check(rukh_operator_add_input(one, "a", "float", RUKH_ARITY_REQUIRED, &error), &error);
    check(rukh_operator_add_input(one, "b", "float", RUKH_ARITY_REQUIRED, &error), &error);
    check(rukh_operator_add_output(one, "sum", "float", RUKH_ARITY_REQUIRED, &error), &error);
    check(rukh_operator_add_attribute_with_default(one, "scale", RUKH_ATTRIBUTE_FLOAT, &scale, 1, &error), &error);
    check(rukh_operator_set_shape_function(one, same_shape, &error), &error);
    check(rukh_operator_set_kernel(one, one_create, one_compute, &error), &error);
    check(rukh_session_options_add_operator(options, one, &error), &error);
    rukh_operator_destroy(one);

    check(rukh_operator_create("test.customop", "CustomOpTwo", 1, NULL, NULL, &two, &error), &error);
    check(rukh_operator_add_input(two, "x", "float", RUKH_ARITY_REQUIRED, &error), &error);
    check(rukh_operator_add_output(two, "y", "int32", RUKH_ARITY_REQUIRED, &error), &error);
    check(rukh_operator_set_shape_function(two, same_shape, &error), &error);
    check(rukh_operator_set_kernel(two, NULL, two_compute, &error), &error);
    check(rukh_session_options_add_operator(options, two, &error), &error);
    rukh_operator_destroy(two);
}

int main(int argc, char **argv) {
    rukh_error *error = NULL;
    rukh_environment *environment = NULL;
    rukh_session_options *options = NULL;
    rukh_session *session = NULL;
    rukh_value *inputs[2] = {NULL, NULL}, *y = NULL;
    const char *input_names[] = {"a", "b"}, *output_name = "y";
    const int64_t shape[] = {3, 5};
    float data[2][15];
    const void *result = NULL;
    size_t i;
    for (i = 0; i < 15; i++) {
        data[0][i] = (float)i + 1;
        data[1][i] = 0.3f * (float)i;
    }
    check(rukh_environment_create(NULL, &environment, &error), &error);
    check(rukh_session_options_create(&options, &error), &error);
    add_operators(options);
    check(rukh_session_create(environment, argc > 1 ? argv[1] : "custom.onnx", options, &session, &error), &error);
    rukh_session_options_destroy(options);
    for (i = 0; i < 2; i++) {
        check(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, data[i], sizeof data[i], &inputs[i], &error),
              &error);
    }
    check(rukh_session_run(session, NULL, input_names, (const rukh_value *const *)inputs, 2, &output_name, 1, &y,
                           &error),
          &error);
    check(rukh_value_data(y, &result, NULL, &error), &error);
    for (i = 0; i < 15; i++) {
        int32_t wanted = (int32_t)lroundf(2 * (data[0][i] + data[1][i]));
        printf("%d%c", (int)((const int32_t *)result)[i], i % 5 == 4 ? '\n' : ' ');
        if (((const int32_t *)result)[i] != wanted) return 1;
    }
    rukh_value_destroy(y);
    rukh_value_destroy(inputs[0]);
    rukh_value_destroy(inputs[1]);
    rukh_session_destroy(session);
    rukh_environment_destroy(environment);
    return 0;
}
