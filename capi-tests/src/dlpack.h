/* DLPack's structs, declared after the standard's text, as another library would. */

#ifndef DLPACK_H
#define DLPACK_H

#include <stdint.h>

typedef struct {
    uint32_t major, minor;
} Version;
typedef struct {
    int32_t device_type, device_id;
} Device;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DataType;
typedef struct {
    void *data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;
struct DLManagedTensor {
    Tensor tensor;
    void *manager;
    void (*deleter)(struct DLManagedTensor *self);
};
struct DLManagedTensorVersioned {
    Version version;
    void *manager;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    Tensor tensor;
};

#endif
