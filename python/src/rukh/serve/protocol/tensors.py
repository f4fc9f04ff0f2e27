"""The elements of a tensor: lists of JSON, and the bytes of the protocol's binary extension."""

from __future__ import annotations

import itertools
import reprlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..datatypes import BYTES, DTYPES
from ..errors import RequestError


def of_list(where: str, datatype: str, shape: Sequence[int], data: Any) -> np.ndarray:
    """The tensor of a list, flat or nested, whose elements fit the type without a loss of whole numbers."""
    dtype = dtype_of(where, datatype)
    if not isinstance(data, list):
        raise RequestError(f"{where} has data of type {type(data).__name__}; allowed is a list")
    items, types = _flattened(where, data)
    _check_types(where, datatype, dtype, items, types)
    if datatype == BYTES:
        return _shaped(where, shape, np.array(items, dtype=np.object_))
    if dtype.kind in "iu":
        return _shaped(where, shape, _whole(where, datatype, dtype, items))
    if dtype.kind == "b":
        return _shaped(where, shape, np.array(items, dtype))
    try:
        numbers = np.array(items, dtype=np.float64)
    except OverflowError as error:
        raise RequestError(f"{where} has a whole number that is too large for {datatype}") from error
    with np.errstate(over="ignore"):
        return _shaped(where, shape, numbers.astype(dtype))


def of_bytes(where: str, datatype: str, shape: Sequence[int], data: memoryview) -> np.ndarray:
    """The tensor over the bytes of its elements, little-endian, row by row."""
    dtype = dtype_of(where, datatype)
    if datatype == BYTES:
        return _shaped(where, shape, np.array(_split(where, data), dtype=np.object_))
    if len(data) % dtype.itemsize:
        raise RequestError(
            f"{where} has {len(data)} bytes, no multiple of the {dtype.itemsize} of {datatype}"
        )
    if datatype == "BOOL" and len(data) and np.frombuffer(data, np.uint8).max() > 1:
        raise RequestError(f"{where} has a byte above 1; allowed for BOOL are 0 and 1")
    return _shaped(where, shape, np.frombuffer(data, dtype))


def to_list(array: np.ndarray) -> list[Any]:
    """The elements as JSON has them, flat."""
    if array.dtype.kind not in "OUSTbiuf":
        array = array.astype(np.float32)
    return [str(item) for item in array.ravel()] if array.dtype.kind in "OUST" else array.ravel().tolist()


def to_bytes(array: np.ndarray) -> bytes:
    """The elements as the binary extension has them."""
    if array.dtype.kind not in "OUST":
        return np.ascontiguousarray(array).tobytes()
    texts = [str(item).encode() for item in array.ravel()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def dtype_of(where: str, datatype: Any) -> np.dtype:
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise RequestError(f"{where} has the datatype {datatype!r}; allowed are {', '.join(DTYPES)}")
    return DTYPES[datatype]


def _flattened(where: str, data: list[Any]) -> tuple[list[Any], set[type]]:
    """The elements of a list, flat or nested, and their types. NumPy would make texts of all elements where one is, each
    of the size of the longest, so it is not asked before all are known to be of one kind."""
    while list in (types := set(map(type, data))):
        if len(types) > 1 or len(set(map(len, data))) > 1:
            raise RequestError(
                f"{where} has data that is nested unevenly; allowed are lists nested evenly or flat"
            )
        data = list(itertools.chain.from_iterable(data))
    return data, types


def _check_types(where: str, datatype: str, dtype: np.dtype, items: list[Any], types: set[type]) -> None:
    allowed, wanted = {
        "O": ({str}, "texts"),
        "b": ({bool}, "true and false"),
        "i": ({int}, "whole numbers"),
        "u": ({int}, "whole numbers"),
    }.get(dtype.kind, ({int, float}, "numbers"))
    if not types <= allowed:
        wrong = next(item for item in items if type(item) not in allowed)
        raise RequestError(
            f"{where} has an element {reprlib.repr(wrong)}; allowed for {datatype} are {wanted}"
        )


def _whole(where: str, datatype: str, dtype: np.dtype, items: list[int]) -> np.ndarray:
    limits = np.iinfo(dtype)
    try:
        found: Any = np.array(items, np.uint64 if datatype == "UINT64" else np.int64)
    except OverflowError:
        # It takes numbers of any size to say which one is the wrong one.
        found = np.array(items, np.object_)
    for value in (found.min(), found.max()) if len(items) else ():
        if not limits.min <= value <= limits.max:
            raise RequestError(
                f"{where} has {value}; allowed for {datatype} are {limits.min} to {limits.max}"
            )
    return found.astype(dtype, copy=False)


def _split(where: str, data: memoryview) -> list[str]:
    """Texts, each behind its length in 4 bytes."""
    texts = []
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise RequestError(f"{where} ends within the length of a text, at byte {at} of {len(data)}")
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        if length > len(data) - at:
            raise RequestError(
                f"{where} has a text of {length} bytes at byte {at}; there are {len(data) - at} more"
            )
        try:
            texts.append(str(data[at : at + length], "utf-8"))
        except UnicodeDecodeError as error:
            raise RequestError(f"{where} has a text that is no UTF-8, at byte {at}") from error
        at += length
    return texts


def _shaped(where: str, shape: Sequence[int], array: np.ndarray) -> np.ndarray:
    needed = 1
    for size in shape:
        needed *= size
    if array.size != needed:
        raise RequestError(f"{where} has {array.size} elements; its shape {list(shape)} needs {needed}")
    try:
        return array.reshape(tuple(shape))
    except ValueError as error:
        raise RequestError(f"{where} has the shape {list(shape)}, which no array can have") from error
