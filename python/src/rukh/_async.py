"""Runs on threads of the library, which call back when they have ended."""

from __future__ import annotations

import ctypes
import itertools
import traceback
from collections.abc import Callable
from ctypes import POINTER, c_int32, c_size_t, c_void_p
from typing import Any

from . import _values
from ._library import Handle, addresses, call, error_of_callback

# Callback, the caller's own object, and what must stay alive, of the runs that are under way.
_waiting: dict[int, tuple[Callable[[list[Any], Any, str], None], Any]] = {}
_numbers = itertools.count(1)


def _finish(user: int, status: int, outputs: Any, output_count: int, error: int | None) -> None:
    callback, data = _waiting.pop(user)
    try:
        handles = [Handle("value", outputs[index]) for index in range(output_count)]
        if status:
            callback([], data, str(error_of_callback(status, error)))
        else:
            callback([_values.to_python(handle) for handle in handles], data, "")
    except Exception:
        # Nobody is there to catch it.
        traceback.print_exc()


_Callback = ctypes.CFUNCTYPE(None, c_void_p, c_int32, POINTER(c_void_p), c_size_t, c_void_p)
_finished = _Callback(_finish)

# The library may call it as late as it likes, so that it must never be freed.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_finished))


def start(
    session: Handle,
    options: Handle | None,
    input_names: Any,
    inputs: list[Handle],
    output_names: Any,
    callback: Callable[[list[Any], Any, str], None],
    user_data: Any,
) -> None:
    """Begins a run; `callback` gets the outputs, `user_data` and a text that is empty when all went well."""
    user = next(_numbers)
    _waiting[user] = (callback, user_data)
    try:
        call(
            "session_run_async",
            *(session, options, input_names, addresses(inputs), len(inputs), output_names, len(output_names)),
            *(ctypes.cast(_finished, c_void_p), user),
        )
    except BaseException:
        del _waiting[user]
        raise
