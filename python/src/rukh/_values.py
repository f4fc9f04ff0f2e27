"""Python objects into values of the library and back.

Into: NumPy arrays lie under tensors without a copy when they are C-contiguous, aligned and of native
byte order, and their elements take a byte or more; else a copy does. The array is kept alive until the library is done with it. Back: arrays
over the library's memory, which live as long as the array or any view of it.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int32, c_int64, c_size_t, c_void_p
from typing import Any

import numpy as np

from . import _device, _dlpack
from ._errors import InvalidArgumentError, InvalidInputError
from ._library import Handle, addresses, array_of, array_type, call, count, make, text
from ._reader import elements_of
from ._types import (
    DTYPE_OF,
    KIND_MAP,
    KIND_OPTIONAL,
    KIND_SEQUENCE,
    KIND_TENSOR,
    NAME_OF,
    NARROW_BITS,
    STRING,
    UNKNOWN,
    ValueType,
    element_of,
)

# --- into the library ---------------------------------------------------------------------------


def to_handle(thing: Any, declared: ValueType = UNKNOWN) -> Handle:
    """The value for a Python object. `declared`, when known, is the type that the model wants.

    A dict becomes a map, None an empty optional, a list of arrays a sequence, what offers DLPack (and is
    no NumPy array) a tensor over the same memory, anything else a tensor by way of `np.asarray`.
    """
    handle: Handle | None = getattr(thing, "_rukh_handle", None)
    if declared.kind == KIND_OPTIONAL:
        return _optional(thing, handle, declared.inner or UNKNOWN)
    if handle is not None:
        return handle
    if thing is None:
        return make("value", "value_create_optional", None, declared.element or 1)
    if declared.kind == KIND_MAP or isinstance(thing, dict):
        return _map(thing, declared)
    if declared.kind == KIND_SEQUENCE or (not declared.kind and _is_list_of_values(thing)):
        return _sequence(thing, declared)
    if not isinstance(thing, np.ndarray):
        if hasattr(thing, "__dlpack__") and not isinstance(thing, np.generic):
            return _dlpack.import_tensor(thing)
        # Only what has no type of its own gets the model's: a list, a number, a text.
        dtype = None if isinstance(thing, np.generic) else DTYPE_OF.get(declared.element)
        thing = np.asarray(thing, dtype=dtype)
    return tensor_over(thing)


def tensor_over(array: np.ndarray) -> Handle:
    """A tensor over the memory of an array, or over that of a copy the library can take."""
    element = element_of(array.dtype)
    if element == STRING:
        return _strings(array)
    if not (array.flags.c_contiguous and array.flags.aligned and array.dtype.isnative):
        array = np.array(array, dtype=DTYPE_OF[element], order="C")
    if (mask := NARROW_BITS.get(element)) is not None:
        array = _extended(array, mask)
    return memory_over(element, array.shape, address_of(array), array.nbytes, array)


def address_of(array: np.ndarray) -> int:
    return pointer_to(array).value or 0


def _read_pointer(array: np.ndarray) -> c_void_p:
    return c_void_p.from_address(id(array) + object.__basicsize__)


def _ask_pointer(array: np.ndarray) -> c_void_p:
    return c_void_p(array.ctypes.data)


def _is_first_member() -> bool:
    probe = np.empty(1)
    return sys.implementation.name == "cpython" and _read_pointer(probe).value == probe.ctypes.data


# The address of an array's elements, as an object that must not outlive the array. It is the first member of NumPy's struct
# (`PyArrayObject_fields`, a part of its binary interface); to read it there takes a sixth of the time of asking for it.
pointer_to = _read_pointer if _is_first_member() else _ask_pointer


def _extended(array: np.ndarray, mask: int) -> np.ndarray:
    """Elements narrower than a byte as the library has them, with the sign in the upper bits of the byte;
    NumPy's types leave those bits open."""
    signed = array.dtype.name.startswith("int")
    # `&` gives a number, which owns no memory, for an array of rank 0.
    return array.astype(np.int8) if signed else np.asarray(array.view(np.uint8) & np.uint8(mask))


def memory_over(element: int, shape: Sequence[int], address: int, size: int, owner: object = None) -> Handle:
    """A tensor over `size` bytes at `address`; `owner` is kept alive while they are in use."""
    deleter, user = (None, None) if owner is None else _kept(owner)
    dims = array_of(c_int64, shape)
    return make("value", "value_create_tensor_over", element, dims, len(shape), address, size, deleter, user)


def lent(array: np.ndarray) -> tuple[int, int, Any, int]:
    """The bytes of an array as the library takes them: address, size, and what lets go of the array when they are no
    longer in use."""
    return (address_of(array), array.nbytes, *_kept(array))


def _kept(owner: object) -> tuple[Any, int]:
    return release, keep(owner)


def keep(owner: object) -> int:
    """Keeps what lies under a tensor until the library calls `release` with the number."""
    user = next(_numbers)
    _owners[user] = owner
    return user


# What lies under tensors of the library, until the library says that it is done.
_owners: dict[int, object] = {}
_numbers = itertools.count(1)


def _disown(_data: int, user: int, pop: Any = _owners.pop) -> None:
    pop(user, None)


release = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)(_disown)

# The library may call it as late as it likes, so that it must never be freed.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(release))


def _strings(array: np.ndarray) -> Handle:
    encoded = [_encode(item) for item in array.reshape(-1).tolist()]
    texts = array_of(c_char_p, encoded)
    lengths = array_of(c_size_t, [*map(len, encoded)])
    shape = array_of(c_int64, array.shape)
    return make("value", "value_create_strings", shape, array.ndim, texts, lengths, len(encoded))


def _encode(item: object) -> bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, bytes):
        return item
    raise TypeError(f"a tensor of strings holds {item!r}; allowed are str and bytes (UTF-8)")


def _is_list_of_values(thing: object) -> bool:
    return isinstance(thing, (list, tuple)) and any(
        isinstance(item, (np.ndarray, list, tuple, dict)) or hasattr(item, "_rukh_handle") for item in thing
    )


def _sequence(things: Any, declared: ValueType) -> Handle:
    if not isinstance(things, (list, tuple)):
        raise TypeError(f"a sequence is wanted and {type(things).__name__} was given; allowed are lists")
    items = [to_handle(thing, declared.inner or UNKNOWN) for thing in things]
    return make("value", "value_create_sequence", addresses(items), len(items), declared.element or 1)


def _map(things: Any, declared: ValueType) -> Handle:
    if not isinstance(things, dict):
        raise TypeError(f"a map is wanted and {type(things).__name__} was given; allowed are dicts")
    wanted, named = (str, "std::string") if declared.key == STRING else ((int, np.integer), "int64_t")
    if declared.key and (wrong := [key for key in things if not isinstance(key, wanted)]):
        raise InvalidInputError(
            f"Unexpected key type  {type(wrong[0])}, it cannot be linked to C type {named}: {wrong[0]!r} is a key "
            f"of a map from {NAME_OF[declared.key]}"
        )
    keys = tensor_over(np.array(list(things), dtype=DTYPE_OF.get(declared.key)))
    inner = declared.inner or UNKNOWN
    # Numbers of NumPy's have a type of their own, which in a map gives way to the model's.
    own = (thing.item() if isinstance(thing, np.generic) else thing for thing in things.values())
    items = [to_handle(thing, inner) for thing in own]
    element = declared.element or 1
    return make("value", "value_create_map", keys, addresses(items), len(items), element)


def _optional(thing: Any, handle: Handle | None, inner: ValueType) -> Handle:
    if thing is None:
        return make("value", "value_create_optional", None, inner.element or 1)
    if handle is None:
        handle = to_handle(thing, inner)
    elif kind_of(handle) == KIND_OPTIONAL:
        return handle
    return make("value", "value_create_optional", handle, inner.element or 1)


# --- back from the library ----------------------------------------------------------------------


def to_python(handle: Handle) -> Any:
    """A NumPy array for a tensor, a list for a sequence, a dict for a map; an optional gives what it
    holds, or None."""
    if (elements := elements_of(handle._as_parameter_)) is not None:
        return over(handle, *elements)
    kind = kind_of(handle)
    if kind == KIND_TENSOR:
        return _to_numpy_otherwise(handle)
    items = [
        to_python(make("value", "value_item", handle, index))
        for index in range(count("value_item_count", handle))
    ]
    if kind == KIND_OPTIONAL:
        return items[0] if items else None
    if kind == KIND_MAP:
        keys = to_numpy(make("value", "value_map_keys", handle))
        # A number or a text becomes Python's own, as its key.
        own = [item.item() if isinstance(item, np.ndarray) and item.ndim == 0 else item for item in items]
        return dict(zip(keys.tolist(), own))
    return items


class _Memory:
    """The elements of a value for NumPy, which keeps this object as the base of the array."""

    __slots__ = ("__array_interface__", "_handle")

    def __init__(self, handle: Handle, address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._handle = handle
        self.__array_interface__ = {
            "version": 3,
            # Types from elsewhere than NumPy go as plain bytes.
            "typestr": dtype.str if dtype.isbuiltin == 1 else f"|V{dtype.itemsize}",
            "shape": shape,
            "data": (address, False),
        }


def to_numpy(handle: Handle) -> np.ndarray:
    """An array over the elements of a tensor; of Python strings for a tensor of strings; over a copy of what
    is in device memory."""
    if (elements := elements_of(handle._as_parameter_)) is None:
        return _to_numpy_otherwise(handle)
    return over(handle, *elements)


def _to_numpy_otherwise(handle: Handle) -> np.ndarray:
    shape, element = shape_of(handle), element_type_of(handle)
    dtype = DTYPE_OF[element]
    if dtype == np.object_:
        array = np.empty(shape, dtype)
        array.reshape(-1)[:] = [text("value_string", handle, index) for index in range(array.size)]
        return array
    if _device.of(handle):
        host = make("value", "value_create_tensor", element, array_of(c_int64, shape), len(shape))
        _device.copy(handle, host)
        handle = host
    return over(handle, dtype, shape, *data_of(handle))


def over(
    handle: Handle, dtype: np.dtype[Any], shape: tuple[int, ...], address: int, size: int
) -> np.ndarray:
    """An array over `size` bytes of a tensor, which lives as long."""
    if size == 0:
        return np.empty(shape, dtype)
    array = np.asarray(_Memory(handle, address, shape, dtype))
    return array if dtype.isbuiltin == 1 else array.view(dtype)


def kind_of(handle: Handle) -> int:
    kind = c_int32()
    call("value_kind", handle, byref(kind))
    return kind.value


def element_type_of(handle: Handle) -> int:
    element = c_int32()
    call("value_element_type", handle, byref(element))
    return element.value


# Room for the shapes of most tensors.
_UsualDims = c_int64 * 8


def shape_of(handle: Handle) -> tuple[int, ...]:
    dims, rank = _UsualDims(), c_size_t()
    try:
        call("value_shape", handle, dims, len(dims), byref(rank))
    except InvalidArgumentError:
        if rank.value <= len(dims):
            raise
        dims = array_type(c_int64, rank.value)()
        call("value_shape", handle, dims, len(dims), None)
    return tuple(dims[: rank.value])


def data_of(handle: Handle) -> tuple[int, int]:
    """Address and size in bytes of a tensor's elements."""
    data, size = c_void_p(), c_size_t()
    call("value_data", handle, byref(data), byref(size))
    return data.value or 0, size.value
