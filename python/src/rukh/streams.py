"""Streams of GPUs, and copies that are queued in them."""

from __future__ import annotations

from ctypes import byref, c_int32, c_uint64

from . import _device
from ._library import Handle, call, make


class OrtSyncStream:
    """A queue of work for a GPU, for `copy_tensors` and, by its address, for the config entry "compute_stream" of runs."""

    def __init__(self, device_id: int = 0) -> None:
        self._handle = make("stream", "stream_create", _device.named(device_id))
        # Each keeps the tensors of a copy until it is done.
        self._copies: list[Handle] = []

    def get_handle(self) -> int:
        """The address of the runtime's stream (`hipStream_t`, or `CUstream` on the nvidia platform)."""
        address = c_uint64()
        call("stream_address", self._handle, byref(address))
        return address.value

    def wait(self) -> None:
        """Waits until the stream has done all that it was given."""
        call("stream_wait", self._handle)
        self._copies.clear()

    def wait_for(self, other: OrtSyncStream) -> None:
        """Lets what this stream is given from now on begin when all is done that the other was given until now.

        The call itself does not wait.
        """
        done = make("completion", "stream_record", other._handle)
        call("stream_wait_for", self._handle, done)

    def copy(self, source: Handle, target: Handle) -> None:
        """Queues a copy between tensors of one type and shape, and returns without waiting for it."""
        copy = make("completion", "value_copy_queued", source, target, c_uint64(self.get_handle()))
        self._copies = [going for going in self._copies if not _is_done(going)] + [copy]


def _is_done(completion: Handle) -> bool:
    done = c_int32()
    call("completion_is_done", completion, byref(done))
    return bool(done.value)
