/* DLPack in and out. */

#include "check.h"
#include "dlpack.h"

static int deleted;

static void count_deletion(struct DLManagedTensorVersioned *self) {
    CHECK(self->manager == &deleted);
    deleted++;
}

static void count_legacy_deletion(struct DLManagedTensor *self) {
    CHECK(self->manager == &deleted);
    deleted++;
}

static struct DLManagedTensorVersioned managed(float *data, int64_t *shape, int64_t *strides, int32_t ndim) {
    struct DLManagedTensorVersioned m;
    memset(&m, 0, sizeof m);
    m.version.major = 1;
    m.manager = &deleted;
    m.deleter = count_deletion;
    m.tensor.data = data;
    m.tensor.device.device_type = 1;
    m.tensor.ndim = ndim;
    m.tensor.dtype.code = 2;
    m.tensor.dtype.bits = 32;
    m.tensor.dtype.lanes = 1;
    m.tensor.shape = shape;
    m.tensor.strides = strides;
    return m;
}

static void out(void) {
    const float data[] = {1, 2, 3};
    rukh_value *value = floats(data, 3), *text;
    struct DLManagedTensorVersioned *versioned;
    struct DLManagedTensor *legacy;
    const void *elements;
    OK(rukh_value_data(value, &elements, NULL, &error));
    OK(rukh_value_to_dlpack(value, &versioned, &error));
    OK(rukh_value_to_dlpack_legacy(value, &legacy, &error));
    rukh_value_destroy(value);
    CHECK(versioned->version.major == 1 && versioned->flags == 0);
    CHECK(versioned->tensor.data == elements && legacy->tensor.data == elements);
    CHECK(versioned->tensor.ndim == 1 && versioned->tensor.shape[0] == 3 && versioned->tensor.strides[0] == 1);
    CHECK(versioned->tensor.dtype.code == 2 && versioned->tensor.dtype.bits == 32);
    CHECK(versioned->tensor.device.device_type == 1 && versioned->tensor.byte_offset == 0);
    versioned->deleter(versioned);
    CHECK(((float *)legacy->tensor.data)[2] == 3.0f);

    /* And back: the elements are the same memory. */
    OK(rukh_value_from_dlpack_legacy(legacy, &value, &error));
    CHECK(floats_of(value, 3) == elements);
    rukh_value_destroy(value);

    OK(rukh_value_create_tensor(RUKH_ELEMENT_STRING, NULL, 0, &text, &error));
    FAILS(RUKH_ERROR_UNSUPPORTED, "string", rukh_value_to_dlpack(text, &versioned, &error));
    CHECK(versioned == NULL);
    rukh_value_destroy(text);
    OK(rukh_value_create_sequence(NULL, 0, RUKH_ELEMENT_FLOAT, &text, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "a tensor is needed", rukh_value_to_dlpack(text, &versioned, &error));
    rukh_value_destroy(text);
}

static void in(void) {
    float data[] = {0, 1, 2, 3, 4, 5};
    int64_t shape[] = {2, 3}, row_major[] = {3, 1}, column_major[] = {1, 2}, dims[2];
    struct DLManagedTensorVersioned m = managed(data, shape, row_major, 2);
    struct DLManagedTensor legacy;
    rukh_value *value;
    const float *read;

    OK(rukh_value_from_dlpack(&m, &value, &error));
    CHECK(floats_of(value, 6) == data && deleted == 0);
    rukh_value_destroy(value);
    CHECK(deleted == 1);

    /* Other strides, and memory that must not be written, are copied. */
    m = managed(data, shape, column_major, 2);
    OK(rukh_value_from_dlpack(&m, &value, &error));
    CHECK(deleted == 2);
    read = floats_of(value, 6);
    CHECK(read != data && read[0] == 0 && read[1] == 2 && read[2] == 4 && read[3] == 1 && read[5] == 5);
    OK(rukh_value_shape(value, dims, 2, NULL, &error));
    CHECK(dims[0] == 2 && dims[1] == 3);
    rukh_value_destroy(value);
    m = managed(data, shape, NULL, 2);
    m.flags = 1;
    OK(rukh_value_from_dlpack(&m, &value, &error));
    CHECK(deleted == 3 && floats_of(value, 6) != data);
    rukh_value_destroy(value);

    m = managed(data, shape + 1, NULL, 1);
    m.tensor.byte_offset = 8;
    OK(rukh_value_from_dlpack(&m, &value, &error));
    CHECK(floats_of(value, 3) == data + 2);
    rukh_value_destroy(value);
    CHECK(deleted == 4);

    memset(&legacy, 0, sizeof legacy);
    legacy.tensor = managed(data, shape, NULL, 2).tensor;
    legacy.manager = &deleted;
    legacy.deleter = count_legacy_deletion;
    OK(rukh_value_from_dlpack_legacy(&legacy, &value, &error));
    CHECK(floats_of(value, 6) == data);
    rukh_value_destroy(value);
    CHECK(deleted == 5);
}

static void refused(void) {
    float data[] = {0};
    int64_t shape[] = {1}, negative[] = {-1}, huge[] = {INT64_MAX};
    rukh_value *value;
    struct DLManagedTensorVersioned m = managed(data, shape, NULL, 1);
    deleted = 0;
    m.version.major = 2;
    FAILS(RUKH_ERROR_UNSUPPORTED, "version 2.0", rukh_value_from_dlpack(&m, &value, &error));
    CHECK(value == NULL);
    m = managed(data, shape, NULL, 1);
    m.tensor.device.device_type = 7;
    FAILS(RUKH_ERROR_UNSUPPORTED, "device type 7", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(data, shape, NULL, 1);
    m.tensor.dtype.lanes = 4;
    FAILS(RUKH_ERROR_UNSUPPORTED, "4 lanes", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(data, negative, NULL, 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "dimension 0 is -1", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(data, huge, NULL, 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "larger than memory", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(NULL, shape, NULL, 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "data is NULL", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(data, NULL, NULL, 1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_value_from_dlpack(&m, &value, &error));
    m = managed(data, NULL, NULL, -1);
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "ndim is -1", rukh_value_from_dlpack(&m, &value, &error));
    FAILS(RUKH_ERROR_INVALID_ARGUMENT, "NULL", rukh_value_from_dlpack(NULL, &value, &error));
    /* What was refused stays the caller's. */
    CHECK(deleted == 0);
}

int main(void) {
    out();
    in();
    refused();
    return 0;
}
