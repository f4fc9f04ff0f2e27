"""What a served model takes and gives, and whether a request fits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import KIND_TENSOR, parse_type
from .datatypes import datatype_of, datatype_of_type
from .errors import OptionError, RequestError

if TYPE_CHECKING:
    from ..description import NodeArg
    from ..session import Session

Shape = tuple["int | str | None", ...]


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    type: str  # as the ONNX standard writes it
    datatype: str  # of the elements, as the Open Inference Protocol writes it
    shape: Shape  # a text names a size that requests choose; None has no name
    tensor: bool  # not a sequence, a map or an optional
    required: bool = True

    def described(self) -> dict[str, Any]:
        """As the protocol's metadata has it: -1 for a size that requests choose."""
        sizes = [size if isinstance(size, int) else -1 for size in self.shape]
        return {"name": self.name, "datatype": self.datatype, "shape": sizes}


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a model, and whether requests are joined along their first dimensions."""

    model: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    overridable: tuple[Port, ...] = ()  # initializers that a request may give another value
    batches: bool = False
    text: bool = False  # the model generates text, and has no tensors

    @classmethod
    def of(cls, model: str, session: Session, batching: bool | None) -> Signature:
        """What an open session tells. `batching`: None lets the shapes decide."""
        inputs = tuple(_port(port) for port in session.get_inputs())
        outputs = tuple(_port(port) for port in session.get_outputs())
        overridable = tuple(_port(port, required=False) for port in session.get_overridable_initializers())
        batches = _batches(model, inputs, outputs, batching)
        return cls(model, inputs, outputs, overridable, batches)

    def check(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None) -> None:
        """Refuses, by a RequestError, what the model does not take."""
        if self.text:
            raise RequestError(
                f'model "{self.model}" generates text: use generate or generate_stream, not infer'
            )
        known = {port.name: port for port in (*self.inputs, *self.overridable)}
        for name, value in inputs.items():
            if name not in known:
                raise RequestError(f'model "{self.model}" has no input "{name}"; it has {_listed(known)}')
            self._check_input(known[name], value)
        missing = [port.name for port in self.inputs if port.required and port.name not in inputs]
        if missing:
            raise RequestError(
                f'model "{self.model}" also needs the input {_listed(missing)}; given are {_listed(inputs)}'
            )
        self._check_outputs(outputs)
        if self.batches:
            self._check_rows(inputs)

    def is_joinable(self, inputs: Mapping[str, Any]) -> bool:
        """Whether a request may share a run with others: initializers of its own it cannot share."""
        return self.batches and not any(port.name in inputs for port in self.overridable)

    def _check_input(self, port: Port, value: Any) -> None:
        if not port.tensor:
            # Sequences and the like come by a handle alone; the library checks them.
            return
        where = f'input "{port.name}" of model "{self.model}"'
        if not isinstance(value, (np.ndarray, np.generic)):
            raise RequestError(f"{where} is a {type(value).__name__}; allowed are NumPy arrays")
        given = datatype_of(value.dtype)
        if given != port.datatype:
            raise RequestError(f"{where} has elements of type {given}; the model takes {port.datatype}")
        if len(value.shape) != len(port.shape):
            raise RequestError(
                f"{where} has the shape {list(value.shape)}, of rank {len(value.shape)}; "
                f"the model takes {_written(port.shape)}, of rank {len(port.shape)}"
            )
        for axis, (size, wanted) in enumerate(zip(value.shape, port.shape)):
            if isinstance(wanted, int) and size != wanted:
                raise RequestError(
                    f"{where} has the shape {list(value.shape)}, with {size} in dimension {axis}; "
                    f"the model takes {_written(port.shape)}"
                )

    def _check_outputs(self, outputs: Sequence[str] | None) -> None:
        names = [port.name for port in self.outputs]
        for name in outputs or ():
            if name not in names:
                raise RequestError(f'model "{self.model}" has no output "{name}"; it has {_listed(names)}')

    def _check_rows(self, inputs: Mapping[str, Any]) -> None:
        """The first dimensions are one dimension, along which requests are joined."""
        rows = {port.name: np.shape(inputs[port.name])[0] for port in self.inputs}
        if len(set(rows.values())) > 1:
            raise RequestError(
                f'the inputs of model "{self.model}" have the first dimensions {rows}; they must be equal, as '
                "requests are joined along them"
            )


def _port(port: NodeArg, required: bool = True) -> Port:
    kind = parse_type(port.type)
    is_tensor = kind.kind == KIND_TENSOR and not port.type.startswith("sparse")
    optional = port.type.startswith("optional")
    return Port(
        port.name, port.type, datatype_of_type(kind), tuple(port.shape), is_tensor, required and not optional
    )


def _batches(model: str, inputs: Sequence[Port], outputs: Sequence[Port], wanted: bool | None) -> bool:
    """Whether all first dimensions are one that requests choose."""
    if wanted is False:
        return False
    ports = [*inputs, *outputs]
    reason = ""
    for port in ports:
        if not port.tensor or not port.shape or isinstance(port.shape[0], int):
            reason = f'"{port.name}" has the type {port.type} and the shape {_written(port.shape)}'
            break
    names = {port.shape[0] for port in ports if port.shape}
    if not reason and (len(names) != 1 or None in names):
        reason = f"their names are {', '.join(map(repr, sorted(names, key=str)))}"
        # Whoever asks for batching answers for dimensions without a name.
        if wanted and all(name is None or isinstance(name, str) for name in names):
            reason = ""
    if not inputs or not outputs:
        reason = "it has no inputs or no outputs"
    if reason and wanted:
        raise OptionError(
            f'batching is True for model "{model}", but not every input and output has a first dimension that '
            f"requests choose: {reason}. Allowed are None and False"
        )
    return not reason


def _written(shape: Shape) -> str:
    return "[" + ", ".join("?" if size is None else str(size) for size in shape) + "]"


def _listed(names: Any) -> str:
    return ", ".join(f'"{name}"' for name in names) or "none"
