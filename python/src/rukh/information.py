"""What programs ask about the library and the machine."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

from ._library import count, environment, text
from ._library import version as _version
from ._providers import CPU, get_available_providers
from .devices import get_devices

# The library's own version.
RUKH_VERSION = _version()

# The version of ONNX Runtime whose names and behaviour these are, for programs that compare it.
ORT_VERSION = "1.32.0"


def get_version_string() -> str:
    """As `__version__`: the version of ONNX Runtime whose interface this is."""
    return ORT_VERSION


def get_build_info() -> str:
    """For people."""
    return f"ORT Build Info: rukh={RUKH_VERSION}, interface={ORT_VERSION}, build type=Release"


def thread_count() -> int:
    """Threads that compute for one run of sessions without threads of their own, the calling one included."""
    return count("environment_thread_count", environment())


def report() -> dict[str, Any]:
    """What a report about a defect needs: versions, devices, libraries that were tried, environment variables."""
    told: dict[str, Any] = json.loads(text("report"))
    return told


def get_device() -> str:
    """ "GPU" where one can run models, else "CPU"."""
    return "GPU" if get_available_providers() != [CPU] else "CPU"


def has_collective_ops() -> bool:
    return False


def enable_telemetry_events() -> None:
    """Nothing is ever sent."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent."""


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Nothing to load: a GPU's runtime is opened when it is first used."""


def set_seed(seed: int) -> None:
    """Operators that draw random numbers without an attribute `seed` draw others in every run."""
    warnings.warn(
        f"set_seed({seed}) has no effect: random operators without an attribute `seed` draw other numbers in every run",
        stacklevel=2,
    )


def print_debug_info() -> None:
    """Prints versions, providers and devices."""
    # Slow to import, and needed nowhere else.
    import platform
    from importlib.metadata import PackageNotFoundError, distribution

    print(f"rukh version: {RUKH_VERSION} (interface of onnxruntime {ORT_VERSION})")
    print("platform:", platform.platform())
    print("\nPython package, version and location:")
    for name in ("rukh", "onnxruntime", "numpy", "ml_dtypes"):
        try:
            found = distribution(name)
            print(f"{name}=={found.version} at {found.locate_file('')}")
        except PackageNotFoundError:
            print(f"{name} not installed")
    print(f"\nEnvironment variable:\nLD_LIBRARY_PATH={os.environ.get('LD_LIBRARY_PATH', '(unset)')}")
    print("\nProviders:", ", ".join(get_available_providers()))
    print("\nDevices:")
    for device in get_devices():
        print(f"{device.provider} {device.device_id}: {device.name} ({device.arch})")
