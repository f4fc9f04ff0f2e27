"""Which device a replica's model runs on."""

from __future__ import annotations

import os
from typing import Any

import ray

from .options import Served

# With one of these Ray leaves it to the program to keep to its devices; else it shows it no others.
_NOT_SET = (
    "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_ROCR_VISIBLE_DEVICES",
    "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
)


def device_options(served: Served) -> dict[str, str]:
    """The provider's options for this process, with the GPU that Ray reserved for it."""
    options: dict[str, Any] = dict(served.provider_options)
    if served.provider != "cpu" and "device_id" not in options:
        options["device_id"] = str(_reserved() if any(_is_set(name) for name in _NOT_SET) else 0)
    return {key: str(value) for key, value in options.items()}


def _reserved() -> int:
    found = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
    return int(found[0]) if found and str(found[0]).isdecimal() else 0


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true")
