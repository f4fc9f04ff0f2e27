/* Tensors: made, laid over memory, read, shared, reshaped. */

#include "check.h"

static int deleted;

static void delete_memory(void *data, void *user) {
    CHECK(user == &deleted);
    deleted++;
    free(data);
}

static void owned(void) {
    const int64_t shape[] = {2, 3};
    int64_t dims[4];
    size_t rank = 0, bytes = 0, count = 0, needed = 0;
    void *data;
    char text[32];
    rukh_value *value, *flat;
    rukh_kind kind;
    rukh_element_type element;
    const int64_t six[] = {6}, five[] = {5};

    OK(rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, shape, 2, &value, &error));
    OK(rukh_value_kind(value, &kind, &error));
    OK(rukh_value_element_type(value, &element, &error));
    CHECK(kind == RUKH_KIND_TENSOR && element == RUKH_ELEMENT_FLOAT);
    OK(rukh_value_shape(value, NULL, 0, &rank, &error));
    CHECK(rank == 2);
    OK(rukh_value_shape(value, dims, 4, NULL, &error));
    CHECK(dims[0] == 2 && dims[1] == 3);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "the rank is 2", rukh_value_shape(value, dims, 1, NULL, &error));
    OK(rukh_value_element_count(value, &count, &error));
    OK(rukh_value_data_mut(value, &data, &bytes, &error));
    CHECK(count == 6 && bytes == 24 && ((float *)data)[5] == 0.0f);
    CHECK((uintptr_t)data % 64 == 0);
    ((float *)data)[4] = 7.0f;

    OK(rukh_value_type_text(value, NULL, 0, &needed, &error));
    CHECK(needed == sizeof "tensor(float)");
    OK(rukh_value_type_text(value, text, sizeof text, NULL, &error));
    CHECK(strcmp(text, "tensor(float)") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "3 bytes are too few; the text needs 14",
          rukh_value_type_text(value, text, 3, &needed, &error));
    CHECK(text[0] == '\0');

    OK(rukh_value_reshape(value, six, 1, &flat, &error));
    rukh_value_destroy(value);
    CHECK(floats_of(flat, 6)[4] == 7.0f);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "has not the 6 elements",
          rukh_value_reshape(flat, five, 1, &value, &error));
    CHECK(value == NULL);
    rukh_value_destroy(flat);
}

static void over_memory(void) {
    const int64_t shape[] = {4}, bad[] = {-1};
    float *memory = (float *)malloc(4 * sizeof(float));
    const void *data;
    rukh_value *value, *other;
    memory[3] = 3.5f;
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, shape, 1, memory, 16, delete_memory, &deleted,
                                     &value, &error));
    OK(rukh_value_clone(value, &other, &error));
    OK(rukh_value_data(value, &data, NULL, &error));
    CHECK(data == memory);
    rukh_value_destroy(value);
    CHECK(deleted == 0);
    CHECK(floats_of(other, 4)[3] == 3.5f);
    rukh_value_destroy(other);
    CHECK(deleted == 1);

    /* The memory is released also when no tensor can be made of it. */
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "takes 16",
          rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, shape, 1, malloc(8), 8, delete_memory, &deleted,
                                        &value, &error));
    CHECK(deleted == 2 && value == NULL);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "dimension 0 is -1",
          rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, bad, 1, malloc(8), 8, delete_memory, &deleted,
                                        &value, &error));
    CHECK(deleted == 3);
    memory = (float *)malloc(32);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "not aligned",
          rukh_value_create_tensor_over(RUKH_ELEMENT_FLOAT, shape, 1, (char *)memory + 1, 16, NULL, NULL,
                                        &value, &error));
    free(memory);
}

static void every_type(void) {
    static const size_t sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8,
                                   8, 16, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int64_t shape[] = {3};
    int32_t type;
    for (type = 1; type <= 26; type++) {
        rukh_value *value;
        size_t bytes = 99;
        const void *data;
        OK(rukh_value_create_tensor(type, shape, 1, &value, &error));
        if (type != RUKH_ELEMENT_STRING) {
            OK(rukh_value_data(value, &data, &bytes, &error));
            CHECK(bytes == 3 * sizes[type]);
        } else {
            FAILS(RUKH_ERROR_INVALID_ARGUMENT, "rukh_value_string", rukh_value_data(value, &data, &bytes, &error));
        }
        rukh_value_destroy(value);
    }
}

static void edges(void) {
    const int64_t none[] = {0, 7}, huge[] = {INT64_MAX, 2}, large[] = {INT64_C(1) << 50};
    rukh_value *value;
    const void *data;
    size_t bytes;
    OK(rukh_value_create_tensor(RUKH_ELEMENT_INT64, none, 2, &value, &error));
    OK(rukh_value_data(value, &data, &bytes, &error));
    CHECK(bytes == 0 && data != NULL);
    rukh_value_destroy(value);
    OK(rukh_value_create_tensor_copy(RUKH_ELEMENT_INT64, none, 2, NULL, 0, &value, &error));
    rukh_value_destroy(value);
    OK(rukh_value_create_tensor_over(RUKH_ELEMENT_INT64, none, 2, NULL, 0, NULL, NULL, &value, &error));
    rukh_value_destroy(value);
    value = int64_scalar(5);
    OK(rukh_value_data(value, &data, &bytes, &error));
    CHECK(bytes == 8 && *(const int64_t *)data == 5);
    rukh_value_destroy(value);
    FAILS(RUKH_ERROR_OUT_OF_MEMORY, "", rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, huge, 2, &value, &error));
    FAILS(RUKH_ERROR_OUT_OF_MEMORY, "bytes were asked for",
          rukh_value_create_tensor(RUKH_ELEMENT_FLOAT, large, 1, &value, &error));
}

static void strings(void) {
    const int64_t shape[] = {2, 1};
    const char *texts[] = {"one", "two"};
    const char *with_nul[] = {"a\0b", "\xff"};
    const size_t lengths[] = {3, 1};
    rukh_value *value, *other;
    char text[16];
    size_t needed;
    OK(rukh_value_create_strings(shape, 2, texts, NULL, 2, &value, &error));
    OK(rukh_value_clone(value, &other, &error));
    OK(rukh_value_set_string(value, 1, "zwei \xe2\x82\xac", &error));
    OK(rukh_value_string(value, 1, text, sizeof text, &needed, &error));
    CHECK(strcmp(text, "zwei \xe2\x82\xac") == 0 && needed == 9);
    OK(rukh_value_string(other, 1, text, sizeof text, &needed, &error));
    CHECK(strcmp(text, "two") == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "element 2 is not there; allowed are 0 to 1",
          rukh_value_string(value, 2, text, sizeof text, NULL, &error));
    rukh_value_destroy(value);
    rukh_value_destroy(other);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "byte 0 of element 1 is not UTF-8",
          rukh_value_create_strings(shape, 2, with_nul, lengths, 2, &value, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "count: 1",
          rukh_value_create_strings(shape, 2, texts, NULL, 1, &value, &error));
    OK(rukh_value_create_strings(NULL, 0, with_nul, lengths, 1, &value, &error));
    OK(rukh_value_string(value, 0, text, sizeof text, &needed, &error));
    CHECK(needed == 4 && memcmp(text, "a\0b", 4) == 0);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a tensor of strings is needed",
          (rukh_value_destroy(value), value = int64_scalar(1), rukh_value_string(value, 0, NULL, 0, NULL, &error)));
    rukh_value_destroy(value);
}

int main(void) {
    owned();
    over_memory();
    every_type();
    edges();
    strings();
    return 0;
}
