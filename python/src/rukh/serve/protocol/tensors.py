"""The elements of a tensor: lists of JSON, and the bytes of the protocol's binary extension."""

from __future__ import annotations

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
    if datatype == BYTES:
        array = np.array(_texts(where, data), dtype=np.object_)
    else:
        try:
            found = np.asarray(data)
        except (ValueError, OverflowError) as error:
            raise RequestError(
                f"{where} has data that is no list of numbers, nested evenly or flat"
            ) from error
        if datatype == "UINT64" and found.dtype.kind == "f":
            # NumPy takes whole numbers of which some are above those of int64 for floats.
            found = _whole(data, found)
        array = _converted(where, datatype, dtype, found)
    return _shaped(where, shape, array)


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


def _converted(where: str, datatype: str, dtype: np.dtype, found: np.ndarray) -> np.ndarray:
    if found.size == 0:
        return np.empty(0, dtype)
    kinds = {"B": "b", "U": "iu", "I": "iu"}.get(datatype[0], "iuf")
    if datatype == "BF16":
        kinds = "iuf"
    if found.dtype.kind not in kinds:
        wanted = {"b": "true and false", "iu": "whole numbers", "iuf": "numbers"}[kinds]
        raise RequestError(f"{where} has data that does not fit {datatype}; allowed are {wanted}")
    if kinds == "iu":
        limits = np.iinfo(dtype)
        for value in (int(found.min()), int(found.max())):
            if not limits.min <= value <= limits.max:
                raise RequestError(
                    f"{where} has {value}; allowed for {datatype} are {limits.min} to {limits.max}"
                )
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def _whole(data: list[Any], found: np.ndarray) -> np.ndarray:
    """The elements as uint64 when all of them are such; else what was found."""
    items = np.array(data, dtype=np.object_).ravel().tolist()
    if all(type(item) is int and 0 <= item < 1 << 64 for item in items):
        return np.array(items, dtype=np.uint64)
    return found


def _texts(where: str, data: list[Any]) -> list[str]:
    """The texts of a list, flat or nested."""
    flat: list[str] = []
    pending = [iter(data)]
    while pending:
        item = next(pending[-1], pending)
        if item is pending:
            pending.pop()
        elif isinstance(item, list):
            pending.append(iter(item))
        elif isinstance(item, str):
            flat.append(item)
        else:
            raise RequestError(f"{where} has an element {item!r}; allowed for BYTES are texts")
    return flat


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
