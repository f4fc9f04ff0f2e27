/* Operators that the program defines: each kind of input, output and attribute. */

#include "check.h"

static rukh_operator *new_operator(const char *name, int64_t since) {
    rukh_operator *operator;
    const rukh_element_type floats[] = {RUKH_ELEMENT_FLOAT, RUKH_ELEMENT_DOUBLE};
    OK(rukh_operator_create("test.ops", name, since, NULL, NULL, &operator, &error));
    OK(rukh_operator_add_type_variable(operator, "T", floats, 2, &error));
    return operator;
}

/* Positive(x) -> (kept, count?): no shape function, and an output that may be left out. */

static rukh_status positive_compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x;
    rukh_value *kept, *count;
    const void *from;
    void *to;
    size_t n, i;
    int64_t found = 0, at = 0;
    (void)user;
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_value_element_count(x, &n, &error));
    OK(rukh_value_data(x, &from, NULL, &error));
    for (i = 0; i < n; i++) {
        found += ((const float *)from)[i] > 0;
    }
    OK(rukh_kernel_context_output(context, 0, &found, 1, &kept, &error));
    if (kept != NULL) {
        OK(rukh_value_data_mut(kept, &to, NULL, &error));
        for (i = 0; i < n; i++) {
            if (((const float *)from)[i] > 0) {
                ((float *)to)[at++] = ((const float *)from)[i];
            }
        }
    }
    OK(rukh_kernel_context_output(context, 1, NULL, 0, &count, &error));
    if (count != NULL) {
        OK(rukh_value_data_mut(count, &to, NULL, &error));
        memcpy(to, &found, sizeof found);
    }
    return RUKH_OK;
}

/* Join(first?, words+) -> joined: strings, an input that may be left out, a variadic one. */

static rukh_status join_create(rukh_node_info *node, void *user) {
    char *between = malloc(16);
    size_t count, needed;
    int32_t has;
    (void)user;
    OK(rukh_node_info_input_count(node, &count, &error));
    CHECK(count == 2 || count == 3);
    OK(rukh_node_info_has_input(node, 0, &has, &error));
    CHECK(has == (count == 2));
    if (!has) {
        FAILS(RUKH_ERROR_NOT_FOUND, "left out", rukh_node_info_input_type(node, 0, NULL, NULL, &error));
    }
    OK(rukh_node_info_has_output(node, 0, &has, &error));
    CHECK(has == 1);
    OK(rukh_node_info_attribute_string(node, "between", between, 16, &needed, &error));
    CHECK(needed == strlen(between) + 1);
    OK(rukh_node_info_set_state(node, between, free, &error));
    return RUKH_OK;
}

static rukh_status join_compute(rukh_kernel_context *context, void *user) {
    const rukh_value *values[3];
    rukh_value *joined;
    void *state;
    int64_t shape;
    size_t count, rank, i, k;
    char texts[8][64];
    const char *pointers[8];
    (void)user;
    OK(rukh_kernel_context_state(context, &state, &error));
    OK(rukh_kernel_context_input_count(context, &count, &error));
    for (i = 0; i < count; i++) {
        OK(rukh_kernel_context_input(context, i, &values[i], &error));
    }
    OK(rukh_value_shape(values[1], &shape, 1, &rank, &error));
    CHECK(shape <= 8);
    for (i = 0; i < (size_t)shape; i++) {
        texts[i][0] = 0;
        for (k = 0; k < count; k++) {
            char word[16];
            if (values[k] == NULL) {
                continue;
            }
            OK(rukh_value_string(values[k], k == 0 ? 0 : i, word, sizeof word, NULL, &error));
            if (texts[i][0] != 0) {
                strcat(texts[i], state);
            }
            strcat(texts[i], word);
        }
        pointers[i] = texts[i];
    }
    OK(rukh_value_create_strings(&shape, 1, pointers, NULL, (size_t)shape, &joined, &error));
    OK(rukh_kernel_context_set_output(context, 0, joined, &error));
    rukh_value_destroy(joined);
    return RUKH_OK;
}

/* Repeat(x, times) -> y: the value of an input decides the shape. */

static rukh_status repeat_shape(rukh_node_info *node, void *user) {
    const rukh_value *times;
    const void *data;
    int64_t shape = -1, n;
    int64_t rank;
    (void)user;
    OK(rukh_node_info_input_value(node, 1, &times, &error));
    OK(rukh_node_info_input_shape(node, 0, &n, 1, &rank, &error));
    CHECK(rank == 1);
    if (times != NULL && n >= 0) {
        OK(rukh_value_data(times, &data, NULL, &error));
        shape = n * *(const int64_t *)data;
        if (shape < 0) {
            OK(rukh_node_info_set_error(node, "times: a negative number", &error));
            return RUKH_ERROR_INVALID_INPUT;
        }
    }
    OK(rukh_node_info_set_output_shape(node, 0, &shape, 1, &error));
    return RUKH_OK;
}

static rukh_status repeat_compute(rukh_kernel_context *context, void *user) {
    const rukh_value *x, *times;
    rukh_value *y;
    const void *from, *n;
    void *to;
    size_t bytes, i;
    int64_t shape;
    (void)user;
    OK(rukh_kernel_context_input(context, 0, &x, &error));
    OK(rukh_kernel_context_input(context, 1, &times, &error));
    OK(rukh_value_data(x, &from, &bytes, &error));
    OK(rukh_value_data(times, &n, NULL, &error));
    shape = (int64_t)(bytes / sizeof(float)) * *(const int64_t *)n;
    OK(rukh_kernel_context_output(context, 0, &shape, 1, &y, &error));
    OK(rukh_value_data_mut(y, &to, NULL, &error));
    for (i = 0; i < (size_t) * (const int64_t *)n; i++) {
        memcpy((char *)to + i * bytes, from, bytes);
    }
    return RUKH_OK;
}

/* Attributes(x) -> told: every type of attribute, by the node and by default, in an output of a type of its own. */

static rukh_status attributes_shape(rukh_node_info *node, void *user) {
    const int64_t eight = 8;
    (void)user;
    OK(rukh_node_info_set_output_type(node, 0, RUKH_ELEMENT_FLOAT, &error));
    OK(rukh_node_info_set_output_shape(node, 0, &eight, 1, &error));
    return RUKH_OK;
}

static void release_plain(void *user) {
    free(user);
}

static rukh_status attributes_create(rukh_node_info *node, void *user) {
    float *told = calloc(8, sizeof(float));
    const rukh_value *tensor, *again;
    const float *fs;
    const int64_t *is;
    const void *data;
    char text[8];
    size_t count;
    int64_t i, version;
    int32_t has;
    const char *name;
    (void)user;
    OK(rukh_node_info_set_state(node, told, release_plain, &error));
    OK(rukh_node_info_name(node, &name, &error));
    CHECK(strcmp(name, "attributes_told") == 0);
    OK(rukh_node_info_version(node, &version, &error));
    CHECK(version == 2);
    OK(rukh_node_info_attribute_float(node, "f", &told[0], &error));
    OK(rukh_node_info_attribute_int(node, "i", &i, &error));
    told[1] = (float)i;
    OK(rukh_node_info_attribute_string(node, "s", text, sizeof text, &count, &error));
    told[2] = (float)count;
    OK(rukh_node_info_attribute_floats(node, "fs", &fs, &count, &error));
    told[3] = fs[0] + fs[1] + (float)count;
    OK(rukh_node_info_attribute_ints(node, "is", &is, &count, &error));
    CHECK(count == 3);
    told[4] = (float)(is[0] + is[1] + is[2]);
    OK(rukh_node_info_attribute_string_count(node, "strings", &count, &error));
    OK(rukh_node_info_attribute_string_at(node, "strings", 1, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "bc") == 0);
    told[5] = (float)count;
    OK(rukh_node_info_attribute_tensor(node, "t", &tensor, &error));
    OK(rukh_node_info_attribute_tensor(node, "t", &again, &error));
    CHECK(tensor == again);
    OK(rukh_value_data(tensor, &data, NULL, &error));
    told[6] = *(const float *)data;
    OK(rukh_node_info_has_attribute(node, "none", &has, &error));
    told[7] = (float)has;
    FAILS(RUKH_ERROR_NOT_FOUND, "\"none\" is not there; the node has f, i",
          rukh_node_info_attribute_int(node, "none", &i, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "\"f\" is a float, not an integer",
          rukh_node_info_attribute_int(node, "f", &i, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "can be set in that function alone",
          rukh_node_info_set_output_shape(node, 0, NULL, 0, &error));
    return RUKH_OK;
}

static rukh_status attributes_compute(rukh_kernel_context *context, void *user) {
    const int64_t eight = 8;
    rukh_value *told;
    void *state;
    (void)user;
    OK(rukh_kernel_context_state(context, &state, &error));
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_FLOAT, &eight, 1, state, 8 * sizeof(float), &told, &error));
    OK(rukh_kernel_context_set_output(context, 0, told, &error));
    rukh_value_destroy(told);
    return RUKH_OK;
}

static void add(rukh_session_options *options, rukh_operator *operator) {
    OK(rukh_session_options_add_operator(options, operator, &error));
    rukh_operator_destroy(operator);
}

static void kinds(rukh_environment *environment) {
    rukh_session_options *options;
    rukh_session *session;
    rukh_operator *operator;
    rukh_value *inputs[4], *outputs[7];
    const char *input_names[] = {"x", "words", "first", "times"};
    const char *output_names[] = {"negated", "count", "count_alone", "joined", "joined_first", "repeated", "told"};
    const float x[] = {-1, 2, -3, 4}, negated[] = {-2, -4}, repeated[] = {-1, 2, -3, 4, -1, 2, -3, 4};
    const float told[] = {1.5f, 7, 5, 2.75f, 6, 2, 4, 0};
    const char *words[] = {"ab", "cd"}, *first[] = {">"};
    const int64_t two = 2, ones[] = {1, 2, 3};
    const void *data;
    char text[16];
    size_t i;
    OK(rukh_session_options_create(&options, &error));

    operator = new_operator("Positive", 1);
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "kept", "T", RUKH_ARITY_OPTIONAL, &error));
    OK(rukh_operator_add_output(operator, "count", "int64", RUKH_ARITY_OPTIONAL, &error));
    OK(rukh_operator_set_kernel(operator, NULL, positive_compute, &error));
    add(options, operator);

    operator = new_operator("Join", 1);
    OK(rukh_operator_add_input(operator, "first", "string", RUKH_ARITY_OPTIONAL, &error));
    OK(rukh_operator_add_input(operator, "words", "string", RUKH_ARITY_VARIADIC_SOME, &error));
    OK(rukh_operator_add_output(operator, "joined", "string", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "between", RUKH_ATTRIBUTE_STRING, "+", 1, &error));
    OK(rukh_operator_set_kernel(operator, join_create, join_compute, &error));
    add(options, operator);

    operator = new_operator("Repeat", 2);
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_input(operator, "times", "int64", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "y", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_set_shape_input(operator, 1, &error));
    OK(rukh_operator_set_shape_function(operator, repeat_shape, &error));
    OK(rukh_operator_set_kernel(operator, NULL, repeat_compute, &error));
    add(options, operator);

    operator = new_operator("Attributes", 1);
    OK(rukh_operator_add_input(operator, "x", "T", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_output(operator, "told", "any", RUKH_ARITY_REQUIRED, &error));
    OK(rukh_operator_add_attribute(operator, "f", RUKH_ATTRIBUTE_FLOAT, 1, &error));
    OK(rukh_operator_add_attribute(operator, "i", RUKH_ATTRIBUTE_INT, 1, &error));
    OK(rukh_operator_add_attribute(operator, "s", RUKH_ATTRIBUTE_STRING, 0, &error));
    OK(rukh_operator_add_attribute(operator, "fs", RUKH_ATTRIBUTE_FLOATS, 0, &error));
    OK(rukh_operator_add_attribute_with_default(operator, "is", RUKH_ATTRIBUTE_INTS, ones, 3, &error));
    OK(rukh_operator_add_attribute(operator, "strings", RUKH_ATTRIBUTE_STRINGS, 0, &error));
    OK(rukh_operator_add_attribute(operator, "t", RUKH_ATTRIBUTE_TENSOR, 0, &error));
    OK(rukh_operator_add_attribute(operator, "none", RUKH_ATTRIBUTE_TENSOR, 0, &error));
    OK(rukh_operator_set_shape_function(operator, attributes_shape, &error));
    OK(rukh_operator_set_kernel(operator, attributes_create, attributes_compute, &error));
    add(options, operator);

    OK(rukh_session_create(environment, model_path("operators_kinds"), options, &session, &error));
    rukh_session_options_destroy(options);
    inputs[0] = floats(x, 4);
    OK(rukh_value_create_strings(&two, 1, words, NULL, 2, &inputs[1], &error));
    OK(rukh_value_create_strings(NULL, 0, first, NULL, 1, &inputs[2], &error));
    inputs[3] = int64_scalar(2);
    OK(rukh_session_run(session, NULL, input_names, (const rukh_value *const *)inputs, 4, output_names, 7,
                        outputs, &error));
    CHECK(memcmp(floats_of(outputs[0], 2), negated, sizeof negated) == 0);
    for (i = 1; i < 3; i++) {
        OK(rukh_value_data(outputs[i], &data, NULL, &error));
        CHECK(*(const int64_t *)data == 2);
    }
    OK(rukh_value_string(outputs[3], 1, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "cd-cd") == 0);
    OK(rukh_value_string(outputs[4], 0, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, ">+ab") == 0);
    CHECK(memcmp(floats_of(outputs[5], 8), repeated, sizeof repeated) == 0);
    CHECK(memcmp(floats_of(outputs[6], 8), told, sizeof told) == 0);
    for (i = 0; i < 7; i++) {
        rukh_value_destroy(outputs[i]);
    }
    rukh_value_destroy(inputs[3]);
    inputs[3] = int64_scalar(-1);
    FAILS(RUKH_ERROR_INVALID_INPUT, "node \"repeat_repeated\" (test.ops.Repeat): times: a negative number",
          rukh_session_run(session, NULL, input_names, (const rukh_value *const *)inputs, 4, output_names, 7,
                           outputs, &error));
    for (i = 0; i < 4; i++) {
        rukh_value_destroy(inputs[i]);
    }
    rukh_session_destroy(session);
}

int main(int argc, char **argv) {
    rukh_environment *environment;
    model_folder = argc > 1 ? argv[1] : "capi-tests/models";
    environment = new_environment("2");
    kinds(environment);
    rukh_environment_destroy(environment);
    return 0;
}
