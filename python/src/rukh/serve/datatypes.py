"""Element types: what the Open Inference Protocol calls those of ONNX."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .._types import DTYPE_OF, NAME_OF, STRING, ValueType

BYTES = "BYTES"

# The protocol's name and the NumPy type of an element in memory.
DTYPES: dict[str, np.dtype] = {
    name: np.dtype(dtype)
    for name, dtype in (
        ("BOOL", np.bool_),
        ("UINT8", np.uint8),
        ("UINT16", np.uint16),
        ("UINT32", np.uint32),
        ("UINT64", np.uint64),
        ("INT8", np.int8),
        ("INT16", np.int16),
        ("INT32", np.int32),
        ("INT64", np.int64),
        ("FP16", np.float16),
        ("FP32", np.float32),
        ("FP64", np.float64),
        ("BF16", ml_dtypes.bfloat16),
        (BYTES, np.object_),
    )
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def datatype_of(dtype: np.dtype) -> str:
    """The protocol's name of a NumPy type. Types that the protocol lacks keep ONNX's name, in capitals."""
    if dtype.kind in "OUST":
        return BYTES
    return _NAMES.get(dtype) or dtype.name.upper()


def datatype_of_type(value: ValueType) -> str:
    """As `datatype_of`, for the elements of a declared type."""
    if value.element == STRING:
        return BYTES
    dtype = DTYPE_OF.get(value.element)
    if dtype is None:
        return "UNKNOWN"
    return _NAMES.get(dtype) or NAME_OF[value.element].upper()
