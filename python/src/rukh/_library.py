"""Finds librukh and calls its functions, which `_functions` lists.

Functions are called through `ctypes.CDLL`, which releases the GIL for the time of every call: while a
model runs, or is opened, other Python threads go on. Only calls that are done sooner than the GIL is released keep
it (`prepared`).
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterable, Sequence
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

from ._constants import ERROR_UNSUPPORTED
from ._errors import RukhError, error_for
from ._functions import ABI_VERSION, FUNCTIONS, HANDLE_KINDS, OTHERS, SINCE

# Parameters in a letter each. Every `*` but that of a NUL-terminated text is a plain address, for which
# ctypes takes arrays, `byref(…)`, integers and None.
_LETTERS = {
    "p": c_void_p,
    "s": c_char_p,
    "z": c_size_t,
    "i": c_int32,
    "w": c_uint32,
    "l": c_int64,
    "u": c_uint64,
}


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


def _check_version(found: int) -> None:
    """The rule of rukh.h: the same major and minor version. A function that is newer fails when it is called."""
    if found // 1000 != ABI_VERSION // 1000:
        raise ImportError(
            f"librukh has binary interface {_dotted(found)}; this package needs one of the series "
            f"{_dotted(ABI_VERSION).rpartition('.')[0]}"
        )


def _dotted(number: int) -> str:
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def _declare(library: Any, name: str, result: str, letters: str) -> Any:
    """The function `rukh_NAME`, or one that says that this library does not have it."""
    try:
        function = getattr(library, "rukh_" + name)
    except AttributeError:
        return _missing(library, name)
    function.restype = _LETTERS[result] if result else None
    function.argtypes = [_LETTERS[letter] for letter in letters]
    return function


def _missing(library: Any, name: str) -> Any:
    def refuse(*_arguments: Any) -> None:
        since = SINCE.get(name)
        cause = f"came with binary interface {since}" if since else "belongs to every librukh of this series"
        raise error_for(
            ERROR_UNSUPPORTED,
            f"rukh_{name} {cause}; {library._name} does not have it: use a newer librukh",
        )

    return refuse


_library = _load()
_functions = {name: _declare(_library, name, "i", letters + "p") for name, letters in FUNCTIONS.items()}
_others = {name: _declare(_library, name, result, letters) for name, (result, letters) in OTHERS.items()}
_check_version(_others["abi_version"]())


def version() -> str:
    """The version of the library."""
    text: bytes = _others["version_string"]()
    return text.decode()


def error_of(status: int, error: c_void_p) -> RukhError:
    """The exception for what a call returned; ends the error object."""
    message = (_others["error_message"](error) or b"").decode("utf-8", "replace")
    _others["error_destroy"](error)
    return error_for(status, message)


def call(name: str, *arguments: Any) -> None:
    """Calls `rukh_NAME` with the arguments and an error; raises what it reports."""
    error = c_void_p()
    status = _functions[name](*arguments, byref(error))
    if status:
        raise error_of(status, error)


def prepared(name: str, *, keeps_gil: bool = False) -> Any:
    """The function `rukh_NAME` for arguments that are objects of ctypes already, or None, and so need no conversion; it
    returns the status. An `int` must not be given: it would go as one of 32 bits.

    `keeps_gil`: for calls that neither wait nor take long.
    """
    library = ctypes.PyDLL(_library._name, handle=_library._handle) if keeps_gil else _library
    try:
        # By index it is an object of its own, which does not share the types of the parameters.
        function = library["rukh_" + name]
    except AttributeError:
        return _missing(_library, name)
    function.restype = c_int32 if name in FUNCTIONS else None
    return function


@functools.lru_cache(maxsize=256)
def array_type(item: Any, length: int) -> Any:
    """The type of C arrays. It is kept: ctypes makes one anew each time, which takes long and leaves garbage."""
    return item * length


def array_of(item: Any, items: Sequence[Any]) -> Any:
    """A C array with these items."""
    return array_type(item, len(items))(*items)


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
        failure = error_of(status, error)
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
    return array_of(c_void_p, found)


_destroyers = {kind: _others[f"{kind}_destroy"] for kind in HANDLE_KINDS}


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


# Handles do not survive a fork; the child makes an environment of its own.
os.register_at_fork(after_in_child=forget_environment)
