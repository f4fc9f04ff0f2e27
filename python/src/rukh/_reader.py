"""Reads what tensors are and where their elements lie, by objects of ctypes that are made once."""

from __future__ import annotations

import functools
from ctypes import byref, c_int32, c_int64, c_size_t, c_void_p, py_object, pythonapi
from typing import Any

import numpy as np

from ._library import array_type, prepared
from ._types import DTYPE_OF

# Room for the shapes of most tensors.
_RANK = 8

_prepared = functools.cache(prepared)

# A function object of our own: `ctypes.pythonapi` is shared by everything in the process.
_bytearray_of = pythonapi["PyByteArray_FromStringAndSize"]
_bytearray_of.restype = py_object

# NumPy's type, shape, address, and size in bytes of a tensor's elements, which lie in memory of the host.
Elements = tuple[np.dtype[Any], tuple[int, ...], int, int]


class Reader:
    """Reads one value at a time. `keeps_gil`: for values that no other thread knows."""

    __slots__ = (
        "_address",
        "_ask",
        "_data",
        "_dims",
        "_element",
        "_rank",
        "_shape",
        "_size",
        "_type",
        "value",
    )

    def __init__(self, keeps_gil: bool = False) -> None:
        names = ("value_data", "value_shape", "value_element_type")
        self._ask = [_prepared(name, keeps_gil=keeps_gil) for name in names]
        self.value, self._address, self._size = c_void_p(), c_void_p(), c_size_t()
        self._dims, self._rank, self._element = array_type(c_int64, _RANK)(), c_size_t(), c_int32()
        self._data = (self.value, byref(self._address), byref(self._size), None)
        self._shape = (self.value, byref(self._dims), c_size_t.from_param(_RANK), byref(self._rank), None)
        self._type = (self.value, byref(self._element), None)

    def read(self, value: int) -> Elements | None:
        """None for strings, what lies in a device's memory, more than 8 dimensions, and what is no tensor."""
        data, shape, element_type = self._ask
        self.value.value = value
        if data(*self._data) or shape(*self._shape) or element_type(*self._type):
            return None
        dims = tuple(self._dims[: self._rank.value])
        return DTYPE_OF[self._element.value], dims, self._address.value or 0, self._size.value

    def copy(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
        """An array with a copy of the elements that were read last, which have this type and shape."""
        # No collector has to look at a `bytearray`, and to let it go takes nothing of Python.
        return np.ndarray(shape, dtype, _bytearray_of(self._address, self._size))


# Those that nobody uses at present.
_free: list[Reader] = []


def elements_of(value: int) -> Elements | None:
    """As `Reader.read`."""
    reader = _taken()
    found = reader.read(value)
    _free.append(reader)
    return found


def copy_of(value: int) -> np.ndarray | None:
    """An array with a copy of the elements; None as for `Reader.read`."""
    reader = _taken()
    found = reader.read(value)
    array = None if found is None else reader.copy(*found[:2])
    _free.append(reader)
    return array


def _taken() -> Reader:
    try:
        return _free.pop()
    except IndexError:
        return Reader()
