"""Tensors in the memory of a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import byref, c_int32, c_int64, c_size_t, c_uint64
from typing import Any

from ._constants import MEMORY_DEVICE, MEMORY_PINNED
from ._library import Handle, array_of, call, environment, make
from ._types import DTYPE_OF, STRING

# What people call the one kind of device that is not the host.
_NAMES = ("hip", "rocm", "cuda", "gpu")


def number(device_type: Any, device_id: int) -> int | None:
    """The number of a GPU; None for the host. `device_type`: a name, or an `OrtDevice`."""
    if not isinstance(device_type, str):
        device_type, device_id = device_type._name, device_type.device_id()
    name = device_type.lower()
    if name in _NAMES:
        return device_id
    if name != "cpu" or device_id != 0:
        raise ValueError(
            f"device {device_type!r} {device_id} was given; allowed are 'cpu' 0, and "
            f"{', '.join(map(repr, _NAMES))} with the number of a GPU"
        )
    return None


def named(device: int) -> Handle:
    """The GPU of this number."""
    return make("device", "environment_find_device", environment(), b"hip", device)


def pinned(element: int, shape: Sequence[int], device: int) -> Handle:
    """A tensor on the host, of unspecified content, which a GPU copies from and to by itself."""
    dims = array_of(c_int64, shape)
    return make("value", "value_create_tensor_in", named(device), MEMORY_PINNED, element, dims, len(shape))


def tensor(element: int, shape: Sequence[int], device: int) -> Handle:
    """A tensor on a GPU, of unspecified content."""
    if element == STRING:
        raise ValueError("a tensor of strings cannot be in device memory; allowed are numbers and booleans")
    dims = array_of(c_int64, shape)
    return make("value", "value_create_device_tensor", environment(), device, element, dims, len(shape))


def tensor_over(element: int, shape: Sequence[int], device: int, address: int) -> Handle:
    """A tensor over memory of a GPU that the caller keeps alive."""
    dims = array_of(c_int64, shape)
    size = math.prod(shape) * DTYPE_OF[element].itemsize
    return make(
        "value",
        "value_create_device_tensor_over",
        *(environment(), device, element, dims, len(shape), address, size, None, None),
    )


def of(handle: Handle) -> tuple[int, int] | None:
    """The number of the GPU that a tensor is on, and its address there; None for the host."""
    on_device, device, address = c_int32(), c_size_t(), c_uint64()
    call("value_device", handle, byref(on_device), byref(device), byref(address))
    return (device.value, address.value) if on_device.value else None


def memory_kind(handle: Handle) -> str:
    kind = c_int32()
    call("value_memory_kind", handle, byref(kind), None)
    return {MEMORY_DEVICE: "device", MEMORY_PINNED: "pinned"}.get(kind.value, "host")


def copy(source: Handle, target: Handle) -> None:
    """Copies the elements between tensors of one type and shape, wherever they are."""
    call("value_copy", source, target)
