/* What the tests of adapters share. The model "adapted" is y = x W + x A B + b, where A, of any rank, B and b are inputs
 * that have values, all zeros; for an input of ones x W is 18, 22, 26. */

#ifndef ADAPTERS_H
#define ADAPTERS_H

#include "check.h"

enum { WIDTH = 4, HEIGHT = 3, MOST = 64 };

/* A tensor whose elements all are `number`. */
CHECK_UNUSED static rukh_value *filled(float number, int64_t rows, int64_t columns) {
    const int64_t shape[] = {rows, columns};
    float data[MOST];
    rukh_value *value;
    int64_t i;
    CHECK(rows * columns <= MOST);
    for (i = 0; i < rows * columns; i++) data[i] = number;
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, shape, 2, data, (size_t)i * sizeof *data, &value, &error));
    return value;
}

/* An adapter of this rank, which adds 4 * rank * number to each element of y. */
CHECK_UNUSED static rukh_adapter *new_lora(float number, int64_t rank) {
    const char *const names[] = {"lora_a", "lora_b"};
    rukh_value *a = filled(number, WIDTH, rank), *b = filled(1, rank, HEIGHT);
    const rukh_value *values[2];
    rukh_adapter *adapter;
    values[0] = a;
    values[1] = b;
    OK(rukh_adapter_create(names, values, 2, 3, -7, &adapter, &error));
    rukh_value_destroy(a);
    rukh_value_destroy(b);
    return adapter;
}

/* An adapter of one tensor. */
CHECK_UNUSED static rukh_adapter *new_adapter(const char *name, rukh_value *value) {
    const char *names[1];
    const rukh_value *values[1];
    rukh_adapter *adapter;
    names[0] = name;
    values[0] = value;
    OK(rukh_adapter_create(names, values, 1, 0, 0, &adapter, &error));
    rukh_value_destroy(value);
    return adapter;
}

CHECK_UNUSED static rukh_adapter *new_bias(float number) {
    const float data[] = {number, number, number};
    return new_adapter("b", floats(data, HEIGHT));
}

/* Options for runs with these adapters, which are destroyed. */
CHECK_UNUSED static rukh_run_options *with(rukh_adapter *one, rukh_adapter *other) {
    rukh_run_options *options;
    OK(rukh_run_options_create(&options, &error));
    OK(rukh_run_options_add_adapter(options, one, &error));
    if (other != NULL) OK(rukh_run_options_add_adapter(options, other, &error));
    rukh_adapter_destroy(one);
    rukh_adapter_destroy(other);
    return options;
}

/* What a run for an input of ones adds to the 18 of the first element; the others must agree. */
CHECK_UNUSED static float added(const rukh_session *session, const rukh_run_options *options) {
    rukh_value *x = filled(1, 1, WIDTH), *y;
    const rukh_value *inputs[1];
    const float *found;
    float first;
    inputs[0] = x;
    OK(rukh_session_run(session, options, NULL, inputs, 1, NULL, 1, &y, &error));
    found = floats_of(y, HEIGHT);
    first = found[0] - 18;
    CHECK(found[1] - 22 == first && found[2] - 26 == first);
    rukh_value_destroy(x);
    rukh_value_destroy(y);
    return first;
}

#endif
