"""Statistics and snapshots of the memory of GPUs."""

from __future__ import annotations

import json
from ctypes import byref, c_size_t, c_uint64
from typing import Any

from ._library import call, environment, keys, text


def memory_stats(device_id: int = 0) -> dict[str, int]:
    """What sessions do with a device's memory, by PyTorch's names ("allocated_bytes.all.current") and ONNX
    Runtime's ("InUse"), summed over all sessions; sizes in bytes."""
    stats = {}
    for name in keys("environment_memory_statistic_name", environment()):
        value = c_uint64()
        call("environment_memory_statistic", environment(), device_id, name.encode(), byref(value))
        stats[name] = value.value
    return stats


def memory_summary(device_id: int = 0) -> str:
    """What sessions do with a device's memory as a table: allocated, active, requested and reserved, by pool, now and
    at its peak, as PyTorch's function of that name has it."""
    return text("environment_memory_summary", environment(), device_id)


def memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total bytes of a device's memory; other processes count."""
    free, total = c_uint64(), c_uint64()
    call("environment_memory_info", environment(), device_id, byref(free), byref(total))
    return free.value, total.value


def reset_peak_memory_stats(device_id: int = 0) -> None:
    """Lets the peaks start again from what is there now."""
    call("environment_memory_reset_peaks", environment(), device_id)


def empty_cache(device_id: int = 0) -> None:
    """Gives memory that no session uses back to the device's runtime."""
    call("environment_memory_empty_cache", environment(), device_id)


def record_memory_history(events: int, device_id: int = 0) -> None:
    """Lets each open session keep its last `events` events for `memory_snapshot`; 0 for none."""
    call("environment_memory_record_history", environment(), device_id, events)


def memory_snapshot(device_id: int = 0) -> list[dict[str, Any]]:
    """What a device's memory holds: for each session "segments" with their "blocks", and "device_traces"
    with the recorded events, by PyTorch's names."""
    snapshot: list[dict[str, Any]] = json.loads(text("environment_memory_snapshot", environment(), device_id))
    return snapshot


class FourierPlanCache:
    """The plans of Fourier transforms (DFT, STFT) that are kept for a GPU, as PyTorch's `cufft_plan_cache` has it."""

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id

    def _numbers(self) -> tuple[int, int]:
        count, limit = c_size_t(), c_size_t()
        call("environment_fourier_plans", environment(), self.device_id, byref(count), byref(limit))
        return count.value, limit.value

    @property
    def size(self) -> int:
        """How many are kept."""
        return self._numbers()[0]

    @property
    def max_size(self) -> int:
        """How many may be kept; may be set. The ones that were not used for longest go."""
        return self._numbers()[1]

    @max_size.setter
    def max_size(self, limit: int) -> None:
        if limit < 0:
            raise ValueError(f"max_size is {limit}; allowed is 0 and more")
        call("environment_set_fourier_plan_limit", environment(), self.device_id, limit)

    def clear(self) -> None:
        """Lets all go that no session needs."""
        call("environment_clear_fourier_plans", environment(), self.device_id)
