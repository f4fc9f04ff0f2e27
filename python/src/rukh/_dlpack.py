"""DLPack: tensors shared with other libraries, in its versioned layout and the one before 1.0."""

from __future__ import annotations

import ctypes
from ctypes import (
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

from . import _device
from ._library import Handle, call, make

CPU_DEVICE = (1, 0)

_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("dtype_code", c_uint8),
        ("dtype_bits", c_uint8),
        ("dtype_lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _DLManagedTensor(ctypes.Structure):
    _fields_ = [("dl_tensor", _DLTensor), ("manager_ctx", c_void_p), ("deleter", _DELETER)]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_ctx", c_void_p),
        ("deleter", _DELETER),
        ("flags", c_uint64),
        ("dl_tensor", _DLTensor),
    ]


# The names of capsules are part of the protocol. A capsule keeps the address of its name, not a copy.
_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"
_USED = {_LEGACY: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_LAYOUTS = {_LEGACY: _DLManagedTensor, _VERSIONED: _DLManagedTensorVersioned}
_NAMES = {name: c_char_p(name) for name in (*_USED, *_USED.values())}

_python = ctypes.PyDLL(None)


def _declare(name: str, result: Any, *parameters: Any) -> Any:
    # An object of its own: `ctypes.pythonapi` is shared by everything in the process.
    return ctypes.PYFUNCTYPE(result, *parameters)((name, _python))


# Capsules go by address, because the destructor gets one that has no references any more.
_capsule_new = _declare("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
_capsule_is_valid = _declare("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
_capsule_pointer = _declare("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
_capsule_rename = _declare("PyCapsule_SetName", c_int, c_void_p, c_char_p)


def _release_untaken(capsule: int) -> None:
    """Releases the tensor of a capsule that nobody took; who takes one renames it."""
    for name, layout in _LAYOUTS.items():
        if _capsule_is_valid(capsule, _NAMES[name]):
            address = _capsule_pointer(capsule, _NAMES[name])
            layout.from_address(address).deleter(address)


_destroy_capsule = ctypes.PYFUNCTYPE(None, c_void_p)(_release_untaken)

# Capsules may outlive this module.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_destroy_capsule))


def export_tensor(handle: Handle, max_version: tuple[int, int] | None) -> Any:
    """A capsule with the tensor, in the newest layout that the receiver says it knows."""
    versioned = max_version is not None and max_version[0] >= 1
    managed = c_void_p()
    function = "value_to_dlpack" if versioned else "value_to_dlpack_legacy"
    call(function, handle, byref(managed))
    name = _NAMES[_VERSIONED if versioned else _LEGACY]
    return _capsule_new(managed, name, ctypes.cast(_destroy_capsule, c_void_p))


def device_of(handle: Handle) -> tuple[int, int]:
    """DLPack's numbers for where a tensor's elements are: the kind of device, and which."""
    device = _device.of(handle)
    if device is None:
        return CPU_DEVICE
    managed = ctypes.POINTER(_DLManagedTensor)()
    call("value_to_dlpack_legacy", handle, byref(managed))
    found = managed.contents.dl_tensor
    result = (found.device_type, found.device_id)
    managed.contents.deleter(ctypes.cast(managed, c_void_p))
    return result


def import_tensor(thing: Any) -> Handle:
    """A value over the memory of an object that offers `__dlpack__`, or of a capsule."""
    capsule = thing
    if hasattr(thing, "__dlpack__"):
        try:
            capsule = thing.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = thing.__dlpack__()
    address = id(capsule)
    for name in (_VERSIONED, _LEGACY):
        if _capsule_is_valid(address, _NAMES[name]):
            function = "value_from_dlpack" if name == _VERSIONED else "value_from_dlpack_legacy"
            handle = make("value", function, _capsule_pointer(address, _NAMES[name]))
            _capsule_rename(address, _NAMES[_USED[name]])
            return handle
    raise TypeError(
        f"{type(thing).__name__} offers no DLPack tensor; allowed are objects with __dlpack__ and "
        f"capsules that nobody has taken"
    )


def element_of_capsule(capsule: Any) -> tuple[int, int]:
    """DLPack's kind of elements (0: signed, 1: unsigned, 2: float, 6: bool) and their bits, of a capsule that
    nobody has taken."""
    address = id(capsule)
    for name, layout in _LAYOUTS.items():
        if _capsule_is_valid(address, _NAMES[name]):
            tensor = layout.from_address(_capsule_pointer(address, _NAMES[name])).dl_tensor
            return tensor.dtype_code, tensor.dtype_bits
    raise TypeError(f"{type(capsule).__name__} is no capsule of DLPack that nobody has taken")
