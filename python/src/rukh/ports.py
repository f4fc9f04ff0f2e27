"""Inputs and outputs of an open session, and texts that go to the library and come from it."""

from __future__ import annotations

from collections.abc import Iterable
from ctypes import byref, c_char_p, c_int64
from typing import Any

from ._library import Handle, array_of, array_type, borrowed, call, count, text
from ._types import plain_text
from .description import NodeArg


def arguments(handle: Handle, side: str) -> list[NodeArg]:
    """The inputs or outputs of a session."""
    found = []
    for index in range(count(f"session_{side}_count", handle)):
        name = borrowed(f"session_{side}_name", handle, index) or ""
        type_text = text(f"session_{side}_type_text", handle, index)
        found.append(NodeArg(name, plain_text(type_text), _shape(handle, side, index)))
    return found


def _shape(handle: Handle, side: str, index: int) -> list[int | str | None]:
    rank = c_int64()
    call(f"session_{side}_shape", handle, index, None, 0, byref(rank))
    dims = array_type(c_int64, max(rank.value, 0))()
    call(f"session_{side}_shape", handle, index, dims, len(dims), None)
    return [
        size if size >= 0 else borrowed(f"session_{side}_dim_name", handle, index, axis)
        for axis, size in enumerate(dims)
    ]


def texts(number: int, name: str, *arguments: Any) -> list[str]:
    """The `number` texts that `rukh_NAME` lends through its last parameters."""
    out = [c_char_p() for _ in range(number)]
    call(name, *arguments, *map(byref, out))
    return [(item.value or b"").decode() for item in out]


def texts_array(names: Iterable[str]) -> Any:
    encoded = [name.encode() for name in names]
    return array_of(c_char_p, encoded)
