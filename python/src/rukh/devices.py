"""Devices and their memory, under the names they have in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, c_char_p, c_uint64
from typing import Any, NamedTuple

from . import _providers
from ._errors import UnsupportedError
from ._library import Handle, borrowed, call, count, environment, make
from ._library import version as _library_version
from .enums import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from .streams import OrtSyncStream

# The kinds of devices, by the names that programs use, with ONNX Runtime's numbers.
_TYPES = {
    "cpu": 0,
    "gpu": 1,
    "cuda": 1,
    "hip": 1,
    "rocm": 1,
    "webgpu": 1,
    "fpga": 2,
    "npu": 3,
    "cann": 3,
    "dml": 4,
}
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "hip": OrtDeviceVendorId.AMD,
    "rocm": OrtDeviceVendorId.AMD,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}


class Device(NamedTuple):
    """A device that can run models."""

    provider: str  # "ROCMExecutionProvider" or another of ONNX Runtime's names
    device_id: int  # among the devices of its provider
    name: str  # as its maker gives it
    arch: str  # whose machine code it runs: "x86_64", "gfx942"
    memory: int  # in bytes, used or not; 0 when it is not known
    properties: dict[str, str]


def get_devices() -> list[Device]:
    """The devices of this machine that can run models. The CPU is one, and the last."""
    found: list[Device] = []
    for index in range(count("environment_device_count", environment())):
        handle = make("device", "environment_device", environment(), index)
        name = _providers.public_name(borrowed("device_provider", handle) or "")
        memory = c_uint64()
        call("device_memory", handle, byref(memory))
        found.append(
            Device(
                name,
                sum(device.provider == name for device in found),
                borrowed("device_name", handle) or "",
                borrowed("device_arch", handle) or "",
                memory.value,
                dict(_property(handle, i) for i in range(count("device_property_count", handle))),
            )
        )
    return found


def _property(handle: Handle, index: int) -> tuple[str, str]:
    key, value = c_char_p(), c_char_p()
    call("device_property", handle, index, byref(key), byref(value))
    return (key.value or b"").decode(), (value.value or b"").decode()


class OrtDevice:
    """A kind of device with a number: `OrtDevice.make("cpu", 0)`."""

    def __init__(self, device_type: Any, mem_type: int = 0, vendor_id: int = 0, device_id: int | None = None):
        self._numbers: tuple[int, int, int, int]
        if isinstance(device_type, OrtDevice):
            device_type, mem_type, vendor_id, device_id = device_type._numbers
        elif device_id is None:
            # ONNX Runtime's form with three numbers leaves the maker out.
            vendor_id, device_id = 0, vendor_id
        self._numbers = (int(device_type), int(mem_type), int(vendor_id), int(device_id))

    @staticmethod
    def make(ort_device_name: str, device_id: int = 0, vendor_id: int = -1) -> OrtDevice:
        name = ort_device_name.lower()
        if name not in _TYPES:
            raise ValueError(
                f"Unsupported device type: {ort_device_name}; allowed are {', '.join(map(repr, _TYPES))}"
            )
        vendor = _VENDORS.get(name, OrtDeviceVendorId.NONE) if vendor_id < 0 else vendor_id
        return OrtDevice(_TYPES[name], 0, vendor, device_id)

    def device_type(self) -> int:
        return self._numbers[0]

    def device_mem_type(self) -> int:
        return self._numbers[1]

    mem_type = device_mem_type

    def device_vendor_id(self) -> int:
        return self._numbers[2]

    vendor_id = device_vendor_id

    def device_id(self) -> int:
        return self._numbers[3]

    def _get_c_device(self) -> OrtDevice:
        return self

    @property
    def _name(self) -> str:
        return next(name for name, number in _TYPES.items() if number == self._numbers[0])

    @staticmethod
    def cpu() -> int:
        return _TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        return _TYPES["cuda"]

    @staticmethod
    def gpu() -> int:
        return _TYPES["gpu"]

    @staticmethod
    def webgpu() -> int:
        return _TYPES["webgpu"]

    @staticmethod
    def fpga() -> int:
        return _TYPES["fpga"]

    @staticmethod
    def npu() -> int:
        return _TYPES["npu"]

    @staticmethod
    def cann() -> int:
        return _TYPES["cann"]

    @staticmethod
    def dml() -> int:
        return _TYPES["dml"]

    @staticmethod
    def default_memory() -> int:
        return 0


class OrtMemoryInfo:
    """Memory of a device, for `create_and_register_allocator` and `OrtValue`."""

    def __init__(
        self,
        name: str,
        allocator_type: OrtAllocatorType,
        device_id: int,
        mem_type: OrtMemType,
    ) -> None:
        self.name = name
        self.allocator_type = OrtAllocatorType(allocator_type)
        self.device_id = device_id
        self.mem_type = OrtMemType(mem_type)
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0
        self._kind = (
            OrtMemoryInfoDeviceType.CPU if name.lower().startswith("cpu") else OrtMemoryInfoDeviceType.GPU
        )

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        info = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        info.device_mem_type = OrtDeviceMemoryType(device_mem_type)
        info.device_vendor_id = vendor_id
        info._kind = OrtMemoryInfoDeviceType(device_type)
        return info


class OrtArenaCfg:
    """How an arena of device memory works; -1 stands for the default."""

    _KEYS = (
        "max_mem",
        "arena_extend_strategy",
        "initial_chunk_size_bytes",
        "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes",
        "max_power_of_two_extend_bytes",
    )

    def __init__(self, *numbers: Any) -> None:
        if len(numbers) == 1 and isinstance(numbers[0], Mapping):
            given = dict(numbers[0])
        elif len(numbers) == 4:
            given = dict(zip(self._KEYS, numbers))
        else:
            raise TypeError(f"OrtArenaCfg takes a dict or four numbers; {len(numbers)} values were given")
        if unknown := [key for key in given if key not in self._KEYS]:
            raise ValueError(f"Invalid OrtArenaCfg option: {unknown[0]}; allowed are {', '.join(self._KEYS)}")
        for key in self._KEYS:
            setattr(self, key, int(given.get(key, -1 if key != "max_mem" else 0)))

    def _text(self) -> bytes:
        values = ((key, getattr(self, key)) for key in self._KEYS)
        return ";".join(f"{key}={value}" for key, value in values if value > 0).encode()


def create_and_register_allocator(mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None) -> None:
    """Makes an arena for a GPU that sessions with the entry "session.use_env_allocators" share. Memory of the
    CPU needs none: nothing is done."""
    if mem_info._kind != OrtMemoryInfoDeviceType.CPU:
        config = None if arena_cfg is None else arena_cfg._text()
        call("environment_create_arena", environment(), mem_info.device_id, config)


def create_and_register_allocator_v2(
    provider_type: str,
    mem_info: OrtMemoryInfo,
    options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None,
) -> None:
    """As `create_and_register_allocator`."""
    create_and_register_allocator(mem_info, arena_cfg)


class OrtHardwareDevice(NamedTuple):
    """A device of the machine."""

    type: OrtHardwareDeviceType
    vendor_id: int
    vendor: str
    device_id: int
    metadata: dict[str, str]


class OrtEpDevice(NamedTuple):
    """A provider together with a device that it can use."""

    ep_name: str
    ep_vendor: str
    ep_metadata: dict[str, str]
    ep_options: dict[str, str]
    device: OrtHardwareDevice

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo:
        cpu = self.device.type == OrtHardwareDeviceType.CPU
        number = int(self.ep_options.get("device_id", 0))
        return OrtMemoryInfo.create_v2(
            "Cpu" if cpu else "Hip",
            OrtMemoryInfoDeviceType.CPU if cpu else OrtMemoryInfoDeviceType.GPU,
            self.device.vendor_id,
            number,
            memory_type,
            0,
            OrtAllocatorType.ORT_DEVICE_ALLOCATOR,
        )

    def create_sync_stream(self) -> OrtSyncStream:
        """A stream of the GPU."""
        if self.device.type == OrtHardwareDeviceType.CPU:
            raise UnsupportedError(f"{self.ep_name} {self.device.device_id}: a CPU has no streams; GPUs have")
        return OrtSyncStream(self.device.device_id)


def get_ep_devices() -> list[OrtEpDevice]:
    """Each device that can run models, with its provider."""
    found = []
    for device in get_devices():
        cpu = device.provider == _providers.CPU
        options = {} if cpu else {"device_id": str(device.device_id)}
        vendor = _vendor_of(device)
        hardware = OrtHardwareDevice(
            OrtHardwareDeviceType.CPU if cpu else OrtHardwareDeviceType.GPU,
            int(vendor),
            "" if vendor == OrtDeviceVendorId.NONE else vendor.name,
            device.device_id,
            {"name": device.name, "arch": device.arch, **device.properties},
        )
        found.append(OrtEpDevice(device.provider, "rukh", {"version": _library_version()}, options, hardware))
    return found


def get_hardware_devices() -> list[OrtHardwareDevice]:
    return [device.device for device in get_ep_devices()]


def _vendor_of(device: Device) -> OrtDeviceVendorId:
    if device.provider != _providers.CPU:
        return OrtDeviceVendorId.AMD if device.arch.startswith("gfx") else OrtDeviceVendorId.NVIDIA
    name = device.name.upper()
    return next((v for v in OrtDeviceVendorId if v.name in name and v), OrtDeviceVendorId.NONE)
