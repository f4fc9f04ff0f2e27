"""Runs on threads of the library, which call back when they have ended."""

from __future__ import annotations

import ctypes
import itertools
import traceback
from collections.abc import Callable
from ctypes import c_void_p
from typing import Any

from . import _values
from ._library import Handle, addresses, call, count, make

# Callback, the caller's own object, and what must stay alive, of the runs that are under way.
_waiting: dict[int, tuple[Callable[[list[Any], Any, str], None], Any]] = {}
_numbers = itertools.count(1)


def _finish(completion: int, user: int) -> None:
    callback, data = _waiting.pop(user)
    try:
        try:
            call("completion_wait", completion)
            made = [
                make("value", "completion_output", completion, index)
                for index in range(count("completion_output_count", completion))
            ]
        except Exception as error:
            callback([], data, str(error))
        else:
            callback([_values.to_python(handle) for handle in made], data, "")
    except Exception:
        # Nobody is there to catch it.
        traceback.print_exc()


_Callback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
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
            "session_start",
            *(session, options, input_names, addresses(inputs), len(inputs), output_names, len(output_names)),
            *(ctypes.cast(_finished, c_void_p), user, None, None),
        )
    except BaseException:
        del _waiting[user]
        raise
