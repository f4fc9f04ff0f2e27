"""Which device a replica's model runs on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import ray

from .errors import OptionError
from .options import Served

# The GPUs that a process sees, in the order in which it numbers them from 0 on.
_VISIBLE = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def device_options(served: Served) -> dict[str, str]:
    """The provider's options for this process, with the GPU that Ray reserved for it."""
    options: dict[str, Any] = dict(served.provider_options)
    if served.provider != "cpu" and "device_id" not in options:
        options["device_id"] = str(_number(reserved_gpu(), os.environ))
    return {key: str(value) for key, value in options.items()}


def reserved_gpu() -> str | None:
    """The GPU that Ray reserved for this process, as Ray calls it: a number of the machine's, or its unique name."""
    found = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    return str(found[0]) if found else None


def _number(reserved: str | None, environment: Mapping[str, str]) -> int:
    """How this process numbers a GPU. Ray shows a process the reserved ones alone, unless it is told to leave that be
    (RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES and the like): then it sees all that the machine's Ray was given."""
    visible = {name: environment[name].split(",") for name in _VISIBLE if environment.get(name)}
    if reserved is None:
        return 0
    for gpus in visible.values():
        if reserved in gpus:
            return gpus.index(reserved)
    if not visible and reserved.isdecimal():
        return int(reserved)
    shown = " and ".join(f"{name} is {','.join(gpus)}" for name, gpus in visible.items())
    raise OptionError(
        f"Ray reserved the GPU {reserved} for this replica, and {shown or ' and '.join(_VISIBLE) + ' are not set'}, so its "
        f'number is not known. Let Ray set these variables, or give provider_options a "device_id"'
    )
