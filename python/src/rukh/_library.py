"""Finds librukh and declares its functions.

Functions are called through `ctypes.CDLL`, which releases the GIL for the time of every call: while a
model runs, or is opened, other Python threads go on.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any

from ._errors import RukhError, error_for

# The binary interface that the declarations below were written for.
_ABI_VERSION = 1001

# Parameters in a letter each. Every `*` but that of a NUL-terminated text is a plain address, for which
# ctypes takes arrays, `byref(…)`, integers and None.
_LETTERS = {"p": c_void_p, "s": c_char_p, "z": c_size_t, "i": c_int32, "l": c_int64}

# Functions that return a status. Their last parameter, `rukh_error **error`, is left out here.
SIGNATURES = {
    "environment_options_create": "p",
    "environment_options_set": "pss",
    "environment_options_set_log": "pippp",
    "environment_create": "pp",
    "environment_thread_count": "pp",
    "environment_device_count": "pp",
    "environment_device": "pzp",
    "environment_find_device": "pszp",
    "device_id": "pp",
    "device_provider": "pp",
    "device_name": "pp",
    "device_arch": "pp",
    "device_memory": "pp",
    "device_property_count": "pp",
    "device_property": "pzpp",
    "environment_create_arena": "pzs",
    "environment_memory_statistic": "pzsp",
    "environment_memory_statistic_name": "pzpzp",
    "environment_memory_info": "pzpp",
    "environment_memory_reset_peaks": "pz",
    "environment_memory_empty_cache": "pz",
    "environment_memory_record_history": "pzz",
    "environment_memory_snapshot": "pzpzp",
    "environment_provider_reason": "pspzp",
    "provider_count": "p",
    "provider_name": "zpzp",
    "operator_create": "sslppp",
    "operator_add_type_variable": "pspz",
    "operator_add_input": "pssi",
    "operator_add_output": "pssi",
    "operator_add_attribute": "psii",
    "operator_add_attribute_with_default": "psipz",
    "operator_set_shape_function": "pp",
    "operator_set_kernel": "ppp",
    "node_info_input_count": "pp",
    "node_info_has_input": "pzp",
    "node_info_input_shape": "pzpzp",
    "node_info_attribute_int": "psp",
    "node_info_attribute_float": "psp",
    "node_info_attribute_string": "pspzp",
    "node_info_attribute_ints": "pspp",
    "node_info_attribute_floats": "pspp",
    "node_info_attribute_string_count": "psp",
    "node_info_attribute_string_at": "pszpzp",
    "node_info_attribute_tensor": "psp",
    "node_info_set_output_shape": "pzpz",
    "node_info_set_state": "ppp",
    "node_info_set_error": "ps",
    "kernel_context_input_count": "pp",
    "kernel_context_output_count": "pp",
    "kernel_context_input": "pzp",
    "kernel_context_set_output": "pzp",
    "kernel_context_state": "pp",
    "kernel_context_set_error": "ps",
    "session_options_add_operator": "pp",
    "session_options_load_operators": "ps",
    "session_options_create": "p",
    "session_options_set": "pss",
    "session_options_get": "pspzp",
    "session_options_key": "pzpzp",
    "session_options_add_provider": "psppz",
    "session_options_provider_count": "pp",
    "session_options_provider_name": "pzpzp",
    "session_options_provider_key": "pzzpzp",
    "session_options_provider_get": "pzspzp",
    "session_create": "pspp",
    "session_create_from_memory": "ppzpp",
    "session_create_from_buffer": "ppzpppp",
    "session_device": "pp",
    "session_options_add_initializer": "psp",
    "session_options_add_external_file": "pspzpp",
    "session_input_count": "pp",
    "session_input_name": "pzp",
    "session_input_type_text": "pzpzp",
    "session_input_shape": "pzpzp",
    "session_input_dim_name": "pzzp",
    "session_overridable_count": "pp",
    "session_overridable_name": "pzp",
    "session_overridable_type_text": "pzpzp",
    "session_overridable_shape": "pzpzp",
    "session_overridable_dim_name": "pzzp",
    "session_output_count": "pp",
    "session_output_name": "pzp",
    "session_output_type_text": "pzpzp",
    "session_output_shape": "pzpzp",
    "session_output_dim_name": "pzzp",
    "session_model_text": "pip",
    "session_model_version": "ppp",
    "session_property_count": "pp",
    "session_property": "pzpp",
    "session_placement_count": "pp",
    "session_placement": "pzpppp",
    "session_profile": "ppzp",
    "session_load_counter": "pip",
    "session_opset_count": "pp",
    "session_opset": "pzpp",
    "session_tuning_results": "ppzp",
    "session_add_tuning_results": "psp",
    "session_run": "ppppzpzp",
    "session_run_async": "ppppzpzpp",
    "run_options_create": "p",
    "run_options_key": "pzpzp",
    "run_options_set": "pss",
    "run_options_get": "pspzp",
    "run_options_cancel": "p",
    "run_options_reset": "p",
    "io_binding_create": "pp",
    "io_binding_bind_input": "psp",
    "io_binding_bind_output": "psp",
    "io_binding_bind_output_allocated": "ps",
    "io_binding_bind_output_allocated_in": "pspi",
    "io_binding_clear_inputs": "p",
    "io_binding_clear_outputs": "p",
    "io_binding_run": "pp",
    "io_binding_output": "psp",
    "io_binding_run_queued": "ppp",
    "completion_is_done": "pp",
    "completion_wait": "p",
    "completion_event": "pp",
    "value_create_tensor": "ipzp",
    "value_create_tensor_copy": "ipzpzp",
    "value_create_tensor_over": "ipzpzppp",
    "value_create_device_tensor": "pzipzp",
    "value_create_device_tensor_over": "pzipzpzppp",
    "value_create_tensor_in": "piipzp",
    "value_memory_kind": "ppp",
    "value_copy": "pp",
    "value_copy_queued": "pplp",
    "stream_create": "pp",
    "stream_address": "pp",
    "stream_wait": "p",
    "value_device": "pppp",
    "value_kind": "pp",
    "value_element_type": "pp",
    "value_type_text": "ppzp",
    "value_shape": "ppzp",
    "value_data": "ppp",
    "value_create_strings": "pzppzp",
    "value_string": "pzpzp",
    "value_create_sequence": "pzip",
    "value_create_map": "ppzip",
    "value_create_optional": "pip",
    "value_item_count": "pp",
    "value_item": "pzp",
    "value_map_keys": "pp",
    "value_to_dlpack": "pp",
    "value_to_dlpack_legacy": "pp",
    "value_from_dlpack": "pp",
    "value_from_dlpack_legacy": "pp",
}

# The kinds of handles; each has a function `rukh_KIND_destroy`.
HANDLE_KINDS = (
    "environment_options",
    "environment",
    "device",
    "session_options",
    "session",
    "run_options",
    "io_binding",
    "completion",
    "stream",
    "operator",
    "value",
)


def _load() -> ctypes.CDLL:
    """The library named by RUKH_LIBRARY, else the one in this package, else one the system finds."""
    packaged = os.path.join(os.path.dirname(__file__), "librukh.so")
    candidates = [packaged] if os.path.exists(packaged) else ["librukh.so.0.1", "librukh.so"]
    if named := os.environ.get("RUKH_LIBRARY"):
        candidates = [named]
    failures = []
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            failures.append(str(error))
    raise ImportError("librukh cannot be loaded (set RUKH_LIBRARY to its path): " + "; ".join(failures))


def _check_version(library: ctypes.CDLL) -> None:
    """The rule of rukh.h: the same major and minor version, and no smaller patch."""
    library.rukh_abi_version.restype = c_uint32
    found = library.rukh_abi_version()
    if found // 1000 != _ABI_VERSION // 1000 or found < _ABI_VERSION:
        raise ImportError(
            f"librukh has binary interface {found}; this package needs {_ABI_VERSION} or a later "
            f"one of the same minor version"
        )


_library = _load()
_check_version(_library)

_library.rukh_version_string.restype = c_char_p
_library.rukh_error_message.restype = c_char_p
_library.rukh_error_message.argtypes = [c_void_p]
_library.rukh_error_destroy.restype = None
_library.rukh_error_destroy.argtypes = [c_void_p]


def version() -> str:
    """The version of the library."""
    text: bytes = _library.rukh_version_string()
    return text.decode()


def _error_of(status: int, error: c_void_p) -> RukhError:
    """The exception for what a call returned; ends the error object."""
    message = (_library.rukh_error_message(error) or b"").decode("utf-8", "replace")
    _library.rukh_error_destroy(error)
    return error_for(status, message)


def _declare(name: str, letters: str) -> Any:
    function = getattr(_library, "rukh_" + name)
    function.restype = c_int32
    function.argtypes = [_LETTERS[letter] for letter in letters] + [c_void_p]
    return function


_functions = {name: _declare(name, letters) for name, letters in SIGNATURES.items()}


def call(name: str, *arguments: Any) -> None:
    """Calls `rukh_NAME` with the arguments and an error; raises what it reports."""
    error = c_void_p()
    status = _functions[name](*arguments, byref(error))
    if status:
        raise _error_of(status, error)


def text(name: str, *arguments: Any) -> str:
    """The text that `rukh_NAME` builds (its parameters `buf`, `cap`, `needed` come last)."""
    function = _functions[name]
    capacity = 256
    while True:
        buffer = ctypes.create_string_buffer(capacity)
        needed, error = c_size_t(), c_void_p()
        status = function(*arguments, buffer, capacity, byref(needed), byref(error))
        if status == 0:
            return buffer.raw[: needed.value - 1].decode()
        failure = _error_of(status, error)
        if needed.value <= capacity:
            raise failure
        capacity = needed.value


def borrowed(name: str, *arguments: Any) -> str | None:
    """The text that `rukh_NAME` lends through its last parameter, copied; None for NULL."""
    out = c_char_p()
    call(name, *arguments, byref(out))
    return None if out.value is None else out.value.decode()


def count(name: str, *arguments: Any) -> int:
    """The number that `rukh_NAME` writes through its last parameter, a `size_t *`."""
    out = c_size_t()
    call(name, *arguments, byref(out))
    return out.value


class Handle:
    """An object of the library, destroyed when nothing in Python uses it any more.

    Calls take the handle itself, not its address, so that it lives until they return.
    """

    __slots__ = ("__weakref__", "_as_parameter_", "_destroy")

    def __init__(self, kind: str, address: int) -> None:
        self._as_parameter_ = address
        self._destroy = _destroyers[kind]

    def __del__(self) -> None:
        self._destroy(self._as_parameter_)


def addresses(handles: Iterable[Handle]) -> Any:
    """A C array of handles; the caller keeps them alive while it is used."""
    found = [handle._as_parameter_ for handle in handles]
    return (c_void_p * len(found))(*found)


def _destroyer(kind: str) -> Any:
    function = getattr(_library, f"rukh_{kind}_destroy")
    function.restype = None
    function.argtypes = [c_void_p]
    return function


_destroyers = {kind: _destroyer(kind) for kind in HANDLE_KINDS}


def make(kind: str, name: str, *arguments: Any) -> Handle:
    """The handle that `rukh_NAME` makes; its parameter `out` comes last."""
    out = c_void_p()
    call(name, *arguments, byref(out))
    assert out.value is not None
    return Handle(kind, out.value)


def keys(name: str, *arguments: Any) -> list[str]:
    """The names that `rukh_NAME` lists by index; it refuses the first index that is not there."""
    found: list[str] = []
    while True:
        try:
            found.append(text(name, *arguments, len(found)))
        except ValueError:
            return found


_environment: Handle | None = None

# What makes the options of the environment; the module `logs` sets it.
environment_options: Any = lambda: None


def environment() -> Handle:
    """The environment that all sessions of this process share."""
    global _environment
    if _environment is None:
        _environment = make("environment", "environment_create", environment_options())
    return _environment


def forget_environment() -> None:
    """Lets the next session make an environment of its own."""
    global _environment
    _environment = None


def error_of_callback(status: int, error: int | None) -> RukhError:
    """The exception for what a callback was given; ends the error object."""
    return _error_of(status, c_void_p(error))


# Handles do not survive a fork; the child makes an environment of its own.
os.register_at_fork(after_in_child=forget_environment)
