"""Memory that another API exported, as tensors of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int64
from typing import Any

from . import _constants, _device
from ._library import Handle, array_of, make
from ._types import element_of
from .value import Value

_KINDS = {
    "opaque_fd": _constants.EXTERNAL_OPAQUE_FD,
    "dma_buf": _constants.EXTERNAL_DMA_BUF,
    "win32": _constants.EXTERNAL_WIN32,
}


class ExternalMemory:
    """Memory that another API, such as Vulkan, or another process exported, imported for a GPU.

    `handle` is a file descriptor, which belongs to the GPU's runtime when this succeeds, or on Windows a `HANDLE` as a
    number; `size` is what the whole memory has in bytes. It is given back when nothing uses it any more.
    """

    def __init__(self, handle: int, size: int, kind: str = "opaque_fd", device_id: int = 0) -> None:
        if kind not in _KINDS:
            raise ValueError(f"kind is {kind!r}; allowed are {', '.join(map(repr, _KINDS))}")
        device = _device.named(device_id)
        self._handle: Handle = make(
            "external_memory", "external_memory_import", device, _KINDS[kind], handle, size, None, None
        )

    def tensor(self, element_type: Any, shape: Sequence[int], offset: int = 0) -> Value:
        """A tensor over a part of the memory that begins `offset` bytes in; it keeps the memory."""
        dims = array_of(c_int64, shape)
        element = element_of(element_type)
        return Value(make("value", "external_memory_tensor", self._handle, offset, element, dims, len(shape)))
