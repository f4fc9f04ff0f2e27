"""IO bindings: inputs and outputs that stay in place from run to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from ctypes import byref, c_int32, c_uint64
from typing import Any, Protocol

import numpy as np

from . import _device, _values
from ._errors import InvalidArgumentError
from ._constants import MEMORY_DEVICE
from ._library import Handle, call, make
from ._reader import copy_of
from ._types import DTYPE_OF, UNKNOWN, ValueType, element_of
from .description import NodeArg
from .run_options import RunOptions
from .value import OrtValueVector, Value


class Bindable(Protocol):
    """What a binding asks of its session."""

    _handle: Handle
    _input_types: dict[str, ValueType]

    def get_outputs(self) -> list[NodeArg]: ...

    def _has_rank(self, output: str) -> bool: ...


class IOBinding:
    """What runs of one session read and write. Made by `InferenceSession.io_binding`.

    With all outputs bound to memory a run allocates nothing once it has seen the shapes. A binding
    serves one run at a time; a session may have many.
    """

    def __init__(self, session: Bindable) -> None:
        self._session = session
        self._handle = make("io_binding", "io_binding_create", session._handle)
        self._input_types = session._input_types
        # In the order of binding.
        self._bound_outputs: dict[str, None] = {}

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
        an address, to memory of the library's, on the host ("cpu") or on a GPU ("hip"), where the output then stays:
        on a GPU allocated once, here, when the shape is given or known, else at each run."""
        device = _device.number(device_type, device_id)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError(
                f"output {name!r} is bound to an address: `element_type` and `shape` are to be provided if "
                f"pre-allocated memory is provided"
            )
        if device is not None and buffer_ptr is None and (element_type is None or shape is None):
            element_type, shape = self._declared(name)
        if element_type is not None and shape is not None and (buffer_ptr is not None or device is not None):
            self._bind("output", name, _memory(element_type, shape, device, buffer_ptr))
        else:
            if device is None:
                call("io_binding_bind_output_allocated", self._handle, name.encode())
            else:
                gpu, where = _device.named(device), MEMORY_DEVICE
                call("io_binding_bind_output_allocated_in", self._handle, name.encode(), gpu, where)
            self._bound_outputs[name] = None

    def bind_cpu_output(self, name: str, arr_on_cpu: np.ndarray) -> None:
        """Binds an array to an output: runs write there."""
        if not (arr_on_cpu.flags.c_contiguous and arr_on_cpu.flags.writeable):
            raise InvalidArgumentError(
                f"output {name!r} is bound to an array that is not C-contiguous and writeable"
            )
        self._bind("output", name, _values.tensor_over(arr_on_cpu))

    def bind_ortvalue_output(self, name: str, ortvalue: Value) -> None:
        self._bind("output", name, ortvalue._rukh_handle)

    def get_outputs(self) -> list[Value]:
        """The values of the bound outputs after a run, in the order they were bound in."""
        return [
            Value(make("value", "io_binding_output", self._handle, name.encode()))
            for name in self._bound_outputs
        ]

    def get_outputs_as_ortvaluevector(self) -> OrtValueVector:
        return OrtValueVector(self.get_outputs())

    def _declared(self, name: str) -> tuple[int | None, list[int] | None]:
        """Element type and shape of an output when the model tells them."""
        for argument in self._session.get_outputs():
            if argument.name == name and argument.type.startswith("tensor("):
                sizes = [size for size in argument.shape if isinstance(size, int)]
                if len(sizes) == len(argument.shape) and self._session._has_rank(name):
                    return element_of(argument.type[len("tensor(") : -1]), sizes
        return None, None

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs, which later runs do not change."""
        values = (
            make("value", "io_binding_output", self._handle, name.encode()) for name in self._bound_outputs
        )
        return [_copy_of(value) for value in values]

    def clear_binding_inputs(self) -> None:
        call("io_binding_clear_inputs", self._handle)

    def clear_binding_outputs(self) -> None:
        call("io_binding_clear_outputs", self._handle)
        self._bound_outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: a run ends when its outputs are there."""

    def synchronize_outputs(self) -> None:
        """As `synchronize_inputs`."""

    def run_queued(self, run_options: RunOptions | None = None) -> Completion:
        """Queues a run of what is bound and returns without waiting for the GPU, when all inputs and outputs
        are in its memory; they must not be written until the run is done."""
        options = None if run_options is None else run_options._handle
        return Completion(make("completion", "io_binding_run_queued", self._handle, options))

    def _bind(self, side: str, name: str, handle: Handle) -> None:
        call(f"io_binding_bind_{side}", self._handle, name.encode(), handle)
        if side == "output":
            self._bound_outputs[name] = None

    def _run(self, run_options: RunOptions | None) -> None:
        options = None if run_options is None else run_options._handle
        call("io_binding_run", self._handle, options)


class Completion:
    """A run that `IOBinding.run_queued` left to a GPU. When this object goes, the run is waited for."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def is_done(self) -> bool:
        """Whether the run is done; does not wait."""
        done = c_int32()
        call("completion_is_done", self._handle, byref(done))
        return bool(done.value)

    def wait(self) -> None:
        """Waits until the run is done, and raises what was wrong with the data."""
        call("completion_wait", self._handle)

    def event(self) -> int:
        """The event (`hipEvent_t`) behind the run's work, as a number; 0 when nothing was left queued."""
        event = c_uint64()
        call("completion_event", self._handle, byref(event))
        return event.value


def _memory(element_type: Any, shape: Sequence[int], device: int | None, address: int | None) -> Handle:
    element = element_of(element_type)
    if device is not None:
        if address is None:
            return _device.tensor(element, shape, device)
        return _device.tensor_over(element, shape, device, address)
    assert address is not None
    size = math.prod(shape) * DTYPE_OF[element].itemsize
    return _values.memory_over(element, shape, address, size)


def _copy_of(value: Handle) -> Any:
    array = copy_of(value._as_parameter_)
    return _copied(_values.to_python(value)) if array is None else array


def _copied(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        return thing.copy()
    if isinstance(thing, list):
        return [_copied(item) for item in thing]
    if isinstance(thing, dict):
        return {key: _copied(item) for key, item in thing.items()}
    return thing
