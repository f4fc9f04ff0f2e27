"""Inputs made up for runs that only show whether a model runs, and whether its rows are apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._errors import RukhError
from .._types import DTYPE_OF, parse_type
from .batches import Execute
from .datatypes import BYTES
from .errors import OptionError
from .signature import Port, Signature


def make_sample(signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """An input for each that must be given: those of `given`, else zeros, with 1 for sizes that requests choose."""
    known = {port.name: port for port in (*signature.inputs, *signature.overridable)}
    for name in given:
        if name not in known:
            raise OptionError(
                f'sample has the input "{name}", which model "{signature.model}" does not have; '
                f"it has {', '.join(known) or 'none'}"
            )
    sample = {name: _array(known[name], value) for name, value in given.items()}
    for port in signature.inputs:
        if port.name in sample or not port.required:
            continue
        if not port.tensor:
            raise OptionError(
                f'input "{port.name}" of model "{signature.model}" has the type {port.type}, for which no value is '
                f"made up: give one by sample"
            )
        sizes = [size if isinstance(size, int) else 1 for size in port.shape]
        sample[port.name] = np.full(sizes, "" if port.datatype == BYTES else 0, _dtype(port))
    signature.check(sample, None)
    return sample


def rows_are_apart(signature: Signature, execute: Execute, sample: Mapping[str, Any]) -> bool:
    """Whether a row's outputs are the same with another row beside it.

    True where the model cannot run what is made up for the other row: then nothing was seen to speak against it.
    """
    names = [port.name for port in signature.outputs]
    random = np.random.default_rng(1)
    # Zeros would hide much: floats of both rows are drawn.
    mine = {name: _drawn(_first_row(value), random) for name, value in sample.items()}
    other = {name: _varied(value, random) for name, value in mine.items()}
    try:
        alone = [execute(names, row) for row in (mine, other)]
        together = execute(names, {name: np.concatenate([mine[name], other[name]]) for name in mine})
    except RukhError:
        return True
    return all(map(_are_rows, *alone, together))


def _are_rows(first: Any, second: Any, joined: Any) -> bool:
    """Whether an output of two rows is that of the one over that of the other."""
    shapes = [np.shape(output) for output in (first, second, joined)]
    if any(not shape for shape in shapes) or shapes[2][0] != shapes[0][0] + shapes[1][0]:
        return False
    if not shapes[0][1:] == shapes[1][1:] == shapes[2][1:]:
        return False
    return _same(np.concatenate([first, second]), np.asarray(joined))


def _same(apart: np.ndarray, joined: np.ndarray) -> bool:
    if apart.dtype.kind in "OUSTbiu":
        return bool(np.array_equal(apart, joined))
    tolerance = 1e-4 if apart.dtype.itemsize >= 4 else 2e-2
    if apart.dtype.kind != "c":
        apart, joined = apart.astype(np.float64), joined.astype(np.float64)
    scale = np.nanmax(np.abs(apart), initial=0.0, where=np.isfinite(apart))
    return bool(np.allclose(apart, joined, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _first_row(value: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(value[:1])


def _varied(value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Another row of the kind: floats are drawn, small whole numbers become others."""
    if value.dtype.kind == "b":
        return ~value
    if value.dtype.kind in "iu":
        return np.where(value == 0, 1, 0).astype(value.dtype)
    if value.dtype.kind in "OUST":
        return value
    return _drawn(value, random)


def _drawn(value: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Floats drawn anew, of another size each time; other values as they are."""
    if value.dtype.kind in "biuOUST":
        return value
    # bfloat16 and the like are of no kind "f" in NumPy.
    return (random.standard_normal(value.shape) * random.uniform(0.5, 5)).astype(value.dtype)


def _array(port: Port, value: Any) -> Any:
    return np.asarray(value, dtype=_dtype(port)) if port.tensor else value


def _dtype(port: Port) -> np.dtype:
    return DTYPE_OF.get(parse_type(port.type).element, np.dtype(np.float32))
