"""IO bindings: inputs and outputs that stay in place from run to run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _device, _values
from ._library import Handle, call, make
from ._types import DTYPE_OF, UNKNOWN, ValueType, element_of
from .options import RunOptions
from .value import Value


class IOBinding:
    """What runs of one session read and write. Made by `InferenceSession.io_binding`.

    With all outputs bound to memory a run allocates nothing once it has seen the shapes. A binding
    serves one run at a time; a session may have many.
    """

    def __init__(
        self, session: Handle, input_types: Mapping[str, ValueType], output_order: Sequence[str]
    ) -> None:
        self._handle = make("io_binding", "io_binding_create", session)
        self._input_types = input_types
        self._output_order = output_order
        self._bound_outputs: set[str] = set()

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array (or what else `run` takes) to an input. A C-contiguous array is shared: what is
        written into it later is what later runs read."""
        handle = _values.to_handle(arr_on_cpu, self._input_types.get(name, UNKNOWN))
        self._bind("input", name, handle)

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        """Binds memory of the host ("cpu") or of a GPU ("hip") by its address, which must stay valid while it
        is bound."""
        device = _device.number(device_type, device_id)
        self._bind("input", name, _memory(element_type, shape, device, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: Value) -> None:
        self._bind("input", name, ortvalue._rukh_handle)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to memory by its address, which must stay valid while it is bound, or, without
        an address, to memory of the library's: on the host ("cpu") allocated at each run, on a GPU ("hip")
        once, here, for which the shape is needed."""
        device = _device.number(device_type, device_id)
        if buffer_ptr is not None or device is not None:
            if element_type is None or shape is None:
                what = "an address" if buffer_ptr is not None else "a GPU"
                raise ValueError(f"output {name!r} is bound to {what}; element_type and shape are needed")
            self._bind("output", name, _memory(element_type, shape, device, buffer_ptr))
        else:
            call("io_binding_bind_output_allocated", self._handle, name.encode())
            self._bound_outputs.add(name)

    def bind_cpu_output(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an array to an output: runs write there."""
        if not (arr_on_cpu.flags.c_contiguous and arr_on_cpu.flags.writeable):
            raise ValueError(f"output {name!r} is bound to an array that is not C-contiguous and writeable")
        self._bind("output", name, _values.tensor_over(arr_on_cpu))

    def bind_ortvalue_output(self, name: str, ortvalue: Value) -> None:
        self._bind("output", name, ortvalue._rukh_handle)

    def get_outputs(self) -> list[Value]:
        """The values of the bound outputs after a run, in the model's order."""
        return [
            Value(make("value", "io_binding_output", self._handle, name.encode()))
            for name in self._output_order
            if name in self._bound_outputs
        ]

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs, which later runs do not change."""
        return [_copied(value.to_python()) for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        call("io_binding_clear_inputs", self._handle)

    def clear_binding_outputs(self) -> None:
        call("io_binding_clear_outputs", self._handle)
        self._bound_outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: a run ends when its outputs are there."""

    def synchronize_outputs(self) -> None:
        """As `synchronize_inputs`."""

    def _bind(self, side: str, name: str, handle: Handle) -> None:
        call(f"io_binding_bind_{side}", self._handle, name.encode(), handle)
        if side == "output":
            self._bound_outputs.add(name)

    def _run(self, run_options: RunOptions | None) -> None:
        options = None if run_options is None else run_options._handle
        call("io_binding_run", self._handle, options)


def _memory(element_type: Any, shape: Sequence[int], device: int | None, address: int | None) -> Handle:
    element = element_of(element_type)
    if device is not None:
        if address is None:
            return _device.tensor(element, shape, device)
        return _device.tensor_over(element, shape, device, address)
    assert address is not None
    size = math.prod(shape) * DTYPE_OF[element].itemsize
    return _values.memory_over(element, shape, address, size)


def _copied(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        return thing.copy()
    if isinstance(thing, list):
        return [_copied(item) for item in thing]
    if isinstance(thing, dict):
        return {key: _copied(item) for key, item in thing.items()}
    return thing
