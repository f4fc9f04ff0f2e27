"""What is wrong with the inputs and outputs of a run, in words that programs for ONNX Runtime look for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from . import _values
from ._errors import InvalidInputError, UnknownNameError
from ._library import Handle, text
from .description import NodeArg

_INVALID = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : "
_PLEASE = "Please fix either the inputs/outputs or the model."


def check_inputs(given: Sequence[str], known: Collection[str], required: frozenset[str]) -> None:
    if not required.issubset(given):
        missing = [name for name in known if name in required and name not in given]
        raise InvalidInputError(f"Required inputs ({missing}) are missing from input feed ({list(given)}).")
    for name in given:
        if name not in known:
            raise UnknownNameError(
                f"{_INVALID}Invalid input name: {name}; the model has {', '.join(known) or 'none'}"
            )


def check_outputs(wanted: Iterable[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            raise UnknownNameError(f"{_INVALID}Invalid output name:{name}; the model has {', '.join(known)}")


def explained(
    error: InvalidInputError, inputs: Iterable[NodeArg], feed: Mapping[str, Handle]
) -> InvalidInputError:
    """The error with what ONNX Runtime says in its place."""
    for argument in inputs:
        if (handle := feed.get(argument.name)) is None:
            continue
        kind = text("value_type_text", handle)
        if kind != argument.type:
            said = f"Unexpected input data type. Actual: ({kind}) , expected: ({argument.type})"
            return InvalidInputError(f"{_INVALID}{said}: {error}")
        if not kind.startswith("tensor("):
            continue
        shape = _values.shape_of(handle)
        if len(shape) != len(argument.shape):
            said = (
                f"Invalid rank for input: {argument.name} Got: {len(shape)} Expected: {len(argument.shape)}"
            )
            return InvalidInputError(f"{_INVALID}{said} {_PLEASE}: {error}")
        wrong = [
            f" index: {axis} Got: {size} Expected: {wanted}\n"
            for axis, (size, wanted) in enumerate(zip(shape, argument.shape))
            if isinstance(wanted, int) and size != wanted
        ]
        if wrong:
            said = f"Got invalid dimensions for input: {argument.name} for the following indices\n"
            return InvalidInputError(f"{_INVALID}{said}{''.join(wrong)} {_PLEASE}: {error}")
    return error
