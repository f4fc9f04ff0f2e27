"""Tensors whose elements are the same in NumPy and in the library, made of arrays without a handle each."""

from __future__ import annotations

from ctypes import byref, c_int32, c_int64, c_size_t
from typing import Any

import numpy as np

from ._library import array_of, prepared
from ._types import ELEMENT_OF, NARROW_BITS, STRING

# These are given values that no other thread knows.
create_copy = prepared("value_create_tensor_copy", keeps_gil=True)
create_over = prepared("value_create_tensor_over", keeps_gil=True)
destroy = prepared("value_destroy", keeps_gil=True)

# By NumPy's type.
ELEMENTS = {
    dtype: element
    for dtype, element in ELEMENT_OF.items()
    if element != STRING and element not in NARROW_BITS
}


def layout(array: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Element type, dimensions, rank, and size in bytes, as the functions above take them. The type must be in `ELEMENTS`."""
    dims = byref(array_of(c_int64, array.shape))
    element = c_int32.from_param(ELEMENTS[array.dtype])
    return element, dims, c_size_t.from_param(array.ndim), c_size_t.from_param(array.nbytes)
