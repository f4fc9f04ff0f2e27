"""What runs hand to the library: names, values and an error in the memory of C, made once and used again.

A small model runs in a microsecond. Names, arrays and objects of ctypes that are made anew for each run take many times
that, and so does a handle for each value: plain NumPy arrays get by without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ctypes import byref, c_size_t, c_void_p, sizeof
from typing import Any

import numpy as np

from . import _plain, _values
from ._bound_run import BoundRun
from ._errors import RukhError
from ._library import Handle, array_type, error_of, prepared
from ._reader import Reader
from ._types import KIND_TENSOR, KIND_UNDEFINED, ValueType
from .ports import texts_array
from .run_options import RunOptions

_run = prepared("session_run")

# Up to so many bytes a copy takes less time than Python's part in lending memory.
_COPIED = 64 << 10

# Arrays of more bytes gain nothing by a binding that stays: NumPy's new memory takes longer than the library's.
_BOUND = 1 << 20


class Call:
    """Room for the inputs and outputs of a run of these names. It serves one run at a time: `fill`, `run`, `arrays` or
    `handles`, and `empty` whatever happens. `binds`: whether runs that are alike may go by a binding that
    stays; `bind_alike` makes it, and `run_bound` runs by it."""

    __slots__ = (
        "_arguments",
        "_bound",
        "_error",
        "_held",
        "_inputs",
        "_like",
        "_made",
        "_names",
        "_outputs",
        "_reader",
        "_session",
        "_slots",
        "_types",
    )

    def __init__(
        self,
        session: Handle,
        inputs: Sequence[str],
        outputs: Sequence[str],
        types: Sequence[ValueType],
        binds: bool,
    ) -> None:
        self._session = session
        self._types = types
        # None where no binding stays.
        self._names = (inputs, outputs) if binds and len(set(outputs)) == len(outputs) else None
        # Types and shapes of the last run.
        self._like: list[Any] = []
        self._bound: BoundRun | None = None
        self._inputs = array_type(c_void_p, len(inputs))()
        self._outputs = array_type(c_void_p, len(outputs))()
        self._reader = Reader(keeps_gil=True)
        # None when only a handle of its own will do for some input.
        tensors = all(declared.kind in (KIND_TENSOR, KIND_UNDEFINED) for declared in types)
        self._slots = [_Input(self._inputs, index) for index in range(len(inputs))] if tensors else None
        # Slots that have a value, which is to be destroyed, and handles in place of them.
        self._made = 0
        self._held: list[Handle] = []
        self._error = c_void_p()
        self._arguments: tuple[Any, ...] = (
            c_void_p.from_param(session._as_parameter_),
            None,  # options
            byref(texts_array(inputs)),
            byref(self._inputs),
            c_size_t.from_param(len(inputs)),
            byref(texts_array(outputs)),
            c_size_t.from_param(len(outputs)),
            byref(self._outputs),
            byref(self._error),
        )

    def run_bound(self, things: Iterable[Any], options: RunOptions | None) -> list[Any] | None:
        """What the outputs are in Python, if the inputs are like those that a binding is there for, and the run succeeds."""
        if self._bound is None:
            return None
        try:
            return self._bound.run(things, options)
        except RukhError:
            # Also where outputs depend on more than the shapes of inputs. Errors come again.
            self._bound = self._names = None
            return None

    def bind_alike(self, things: Iterable[Any], outputs: list[Any]) -> None:
        """Makes a binding for runs like the last two, if these were alike; here are the last one's inputs and outputs."""
        if self._names is None:
            return
        self._bound = None
        arrays = [*things, *outputs]
        for array in arrays:
            if type(array) is not np.ndarray or array.nbytes > _BOUND or array.dtype not in _plain.ELEMENTS:
                return
        like, self._like = self._like, [(array.dtype, array.shape) for array in arrays]
        if like == self._like:
            names = self._names[0]
            inputs, found = dict(zip(names, arrays)), dict(zip(self._names[1], arrays[len(names) :]))
            self._bound = BoundRun(self._session, inputs, found, _COPIED)

    def fill(self, things: Iterable[Any]) -> None:
        """Takes the inputs, in the order of the names: what `_values.to_handle` takes."""
        if self._slots is not None:
            for slot, thing in zip(self._slots, things, strict=True):
                if not slot.take(thing):
                    break
                self._made += 1
            else:
                return
            self.empty()
        self.hold(
            [_values.to_handle(thing, declared) for thing, declared in zip(things, self._types, strict=True)]
        )

    def hold(self, handles: list[Handle]) -> None:
        """As `fill`, with values."""
        self._held = handles
        for index, handle in enumerate(handles):
            self._inputs[index] = handle._as_parameter_

    def held(self) -> list[Handle]:
        """The values of the inputs, which stay when the call is emptied."""
        if not self._held:
            self._held = [Handle("value", address) for address in self._inputs[: self._made]]
            self._made = 0
        return self._held

    def run(self, options: RunOptions | None) -> None:
        arguments = self._arguments
        if options is not None:
            arguments = (arguments[0], c_void_p(options._handle._as_parameter_), *arguments[2:])
        status = _run(*arguments)
        if status:
            raise error_of(status, self._error)

    def arrays(self) -> list[Any]:
        """What the outputs are in Python. They can be had once."""
        found: list[Any] = []
        reader = self._reader
        try:
            for index, value in enumerate(self._outputs):
                elements = reader.read(value)
                if elements is None:
                    array = _values.to_python(self._handle(index, value))
                elif elements[3] > _COPIED:
                    array = _values.over(self._handle(index, value), *elements)
                else:
                    array = reader.copy(*elements[:2])
                    _plain.destroy(reader.value)
                found.append(array)
        except BaseException:
            for value in self._outputs[len(found) :]:
                _plain.destroy(c_void_p(value))
            raise
        return found

    def handles(self) -> list[Handle]:
        """The outputs. They can be had once."""
        return [self._handle(index, value) for index, value in enumerate(self._outputs)]

    def _handle(self, index: int, value: int) -> Handle:
        handle = Handle("value", value)
        self._outputs[index] = None
        return handle

    def empty(self) -> None:
        """Lets the inputs go."""
        if self._made:
            assert self._slots is not None
            for slot in self._slots[: self._made]:
                _plain.destroy(slot.value)
            self._made = 0
        if self._held:
            self._held = []


class _Input:
    """The place of an input, for tensors with the elements of NumPy arrays. What depends on their type and shape is kept
    for the next one."""

    __slots__ = ("_dtype", "_layout", "_out", "_shape", "_size", "value")

    def __init__(self, inputs: Any, index: int) -> None:
        self.value = c_void_p.from_buffer(inputs, index * sizeof(c_void_p))
        self._out = byref(self.value)
        self._dtype: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] = ()

    def take(self, thing: Any) -> bool:
        """Makes a value, which the caller destroys; False for what needs another way."""
        if type(thing) is not np.ndarray:
            return False
        if (thing.dtype is not self._dtype or thing.shape != self._shape) and not self._fit(thing):
            return False
        flags = thing.flags
        if not flags.c_contiguous:
            return False
        element, dims, rank, size = self._layout
        elements = _values.pointer_to(thing)
        if self._size <= _COPIED:
            status = _plain.create_copy(element, dims, rank, elements, size, self._out, None)
        elif flags.aligned:
            owner = c_void_p(_values.keep(thing))
            status = _plain.create_over(
                element, dims, rank, elements, size, _values.release, owner, self._out, None
            )
        else:
            return False
        return not status

    def _fit(self, array: np.ndarray) -> bool:
        if array.dtype not in _plain.ELEMENTS:
            return False
        self._dtype, self._shape, self._size = array.dtype, array.shape, array.nbytes
        self._layout = _plain.layout(array)
        return True
