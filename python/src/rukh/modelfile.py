"""What the library does not tell of a model file: a look at the protobuf's outline.

Only the fields below are read; weights are stepped over.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Numbers of fields in onnx.proto.
_MODEL_GRAPH, _MODEL_PROPERTY = 7, 14
_PROPERTY_KEY, _PROPERTY_VALUE = 1, 2
_GRAPH_DOC, _GRAPH_INPUT, _VALUE_TYPE = 10, 11, 2
_TYPE_TENSOR, _TENSOR_SHAPE, _SHAPE_DIM = 1, 2, 1
_DIM_VALUE, _DIM_PARAM, _DIM_DENOTATION = 1, 2, 3


class _Dim(NamedTuple):
    size: int | None
    name: str
    denotation: str


class Outline(NamedTuple):
    """What is of interest in a model file."""

    graph_description: str
    denoted: dict[str, list[str]]  # names of symbolic dimensions of the inputs, by denotation
    symbols: list[str]  # names of symbolic dimensions of the inputs
    properties: dict[str, str]  # what the model's maker added


def read(source: str | bytes | os.PathLike[str]) -> Outline:
    """The outline of a model file or of its bytes; an empty one for what cannot be read."""
    try:
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                return _outline(mapped)
        return _outline(source)
    except (IndexError, OSError, UnicodeDecodeError, ValueError):
        # The library says what is wrong with a model.
        return Outline("", {}, [], {})


def _outline(data: Any) -> Outline:
    description = ""
    inputs: list[list[_Dim]] = []
    properties: dict[str, str] = {}
    for number, value in _fields(data, 0, len(data)):
        if number == _MODEL_PROPERTY:
            key = _text(data, _first(data, value, _PROPERTY_KEY))
            properties[key] = _text(data, _first(data, value, _PROPERTY_VALUE))
        if number != _MODEL_GRAPH:
            continue
        for field, part in _fields(data, *value):
            if field == _GRAPH_DOC:
                description = _text(data, part)
            elif field == _GRAPH_INPUT:
                inputs.append(_dims(data, part))
    denoted: dict[str, list[str]] = {}
    for dims in inputs:
        for dim in dims:
            if dim.denotation and dim.name:
                denoted.setdefault(dim.denotation, []).append(dim.name)
    symbols = [dim.name for dims in inputs for dim in dims if dim.name and dim.size is None]
    return Outline(description, denoted, symbols, properties)


def _dims(data: Any, span: tuple[int, int]) -> list[_Dim]:
    """The dimensions that a graph's input declares."""
    shape = _first(data, _first(data, _first(data, span, _VALUE_TYPE), _TYPE_TENSOR), _TENSOR_SHAPE)
    return [_dim(data, part) for number, part in _fields(data, *shape) if number == _SHAPE_DIM]


def _dim(data: Any, span: tuple[int, int]) -> _Dim:
    size, name, denotation = None, "", ""
    for number, value in _fields(data, *span):
        if number == _DIM_VALUE:
            size = value
        elif number == _DIM_PARAM:
            name = _text(data, value)
        elif number == _DIM_DENOTATION:
            denotation = _text(data, value)
    return _Dim(size, name, denotation)


def _first(data: Any, span: tuple[int, int], wanted: int) -> tuple[int, int]:
    """Where the first field of a number is; nowhere when it is not there."""
    return next((value for number, value in _fields(data, *span) if number == wanted), (0, 0))


def _text(data: Any, span: tuple[int, int]) -> str:
    return bytes(data[span[0] : span[1]]).decode()


def _fields(data: Any, position: int, end: int) -> Iterator[tuple[int, Any]]:
    """The fields of a message: a number for a varint, beginning and end for bytes."""
    while position < end:
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield number, value
        elif wire == _BYTES:
            size, position = _varint(data, position)
            if position + size > end:
                raise ValueError("a field goes beyond its message")
            yield number, (position, position + size)
            position += size
        elif wire in (_FIXED64, _FIXED32):
            position += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: Any, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
