"""Runs of arrays of the same types and shapes again and again, by a binding: small arrays are copied from and to arrays that
stay bound, and a run makes no value of the library's for them; under large ones a run makes a value, and what it is takes no
asking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ctypes import byref, c_char_p, c_void_p
from typing import Any

import numpy as np

from . import _plain, _values
from ._library import Handle, call, error_of, make, prepared
from .run_options import RunOptions

_run = prepared("io_binding_run")
# No other thread knows the binding.
_binders = {side: prepared(f"io_binding_bind_{side}", keeps_gil=True) for side in ("input", "output")}

# Bytes between places where an output may begin: those of a cache line, as of the library's own memory.
_ALIGNMENT = 64


class BoundRun:
    """A binding of a session for inputs and outputs of these types and shapes, of which those of at most `limit` bytes are
    copied. It serves one run at a time."""

    __slots__ = ("_arguments", "_binding", "_error", "_inputs", "_outputs")

    def __init__(
        self,
        session: Handle,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, np.ndarray],
        limit: int,
    ) -> None:
        self._binding = make("io_binding", "io_binding_create", session)

        def place(side: str, name: str, like: np.ndarray) -> tuple[np.ndarray | None, _Lender | None]:
            if like.nbytes > limit:
                return None, _Lender(self._binding, side, name, like)
            array = np.empty(like.shape, like.dtype)
            call(f"io_binding_bind_{side}", self._binding, name.encode(), _values.tensor_over(array))
            return array, None

        self._inputs = [
            (*place("input", name, like), like.dtype, like.shape) for name, like in inputs.items()
        ]
        self._outputs = [place("output", *output) for output in outputs.items()]
        self._error = c_void_p()
        self._arguments: tuple[Any, ...] = (
            c_void_p.from_param(self._binding._as_parameter_),
            None,  # options
            byref(self._error),
        )

    def run(self, things: Iterable[Any], options: RunOptions | None) -> list[Any] | None:
        """The outputs for these inputs; None when one is no array of its type and shape that can be read where it lies.
        Raises what the run does, which may be about outputs that have other shapes now."""
        for (array, lender, dtype, shape), thing in zip(self._inputs, things, strict=True):
            if type(thing) is not np.ndarray or thing.dtype is not dtype or thing.shape != shape:
                return None
            if array is not None:
                array[...] = thing
            elif lender is not None and not lender.lend(thing):
                return None
        outputs = [array if lender is None else lender.new() for array, lender in self._outputs]
        arguments = self._arguments
        if options is not None:
            arguments = (arguments[0], c_void_p(options._handle._as_parameter_), arguments[2])
        status = _run(*arguments)
        if status:
            raise error_of(status, self._error)
        return [
            output if own is None else own.copy()
            for output, (own, _) in zip(outputs, self._outputs, strict=True)
        ]


class _Lender:
    """Binds memory of arrays of one type and shape. The binding reads or writes it during the next run alone, for which who
    runs keeps the array."""

    __slots__ = ("_bind", "_binding", "_dtype", "_layout", "_name", "_out", "_shape", "_size", "_value")

    def __init__(self, binding: Handle, side: str, name: str, like: np.ndarray) -> None:
        self._bind, self._name = _binders[side], c_char_p(name.encode())
        self._binding = c_void_p.from_param(binding._as_parameter_)
        self._dtype, self._shape, self._size = like.dtype, like.shape, like.nbytes
        self._layout = _plain.layout(like)
        self._value = c_void_p()
        self._out = byref(self._value)

    def lend(self, array: np.ndarray) -> bool:
        """Binds an array of this type and shape; False when the library cannot use it where it lies."""
        flags = array.flags
        if not (flags.c_contiguous and flags.aligned):
            return False
        element, dims, rank, size = self._layout
        elements = _values.pointer_to(array)
        status = _plain.create_over(element, dims, rank, elements, size, None, None, self._out, None)
        if status:
            return False
        status = self._bind(self._binding, self._name, self._value, None)
        _plain.destroy(self._value)
        return not status

    def new(self) -> np.ndarray:
        """Binds memory that nothing else uses, and gives it."""
        memory = np.empty(self._size + _ALIGNMENT, np.uint8)
        begin = -(_values.pointer_to(memory).value or 0) % _ALIGNMENT
        array: np.ndarray = np.ndarray(self._shape, self._dtype, memory, begin)
        if not self.lend(array):
            raise MemoryError(f"an output of {self._size} bytes cannot be bound")
        return array
