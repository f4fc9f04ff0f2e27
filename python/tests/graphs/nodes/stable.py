"""Whether a step of a function is far enough from every element that roundings do not decide."""

import numpy as np

from ..evaluate import Reject
from ..scope import Value

_MARGIN = {"e": 2e-2, "f": 1e-4, "d": 1e-4}


def margin(x: Value) -> float:
    return _MARGIN.get(x.dtype.char, 0.0) * max(1.0, x.largest)


def away(x: Value, *steps: float) -> Value:
    """`x`, no element of which is near one of the steps."""
    for a in x.arrays:
        for step in steps:
            if a.size and np.abs(a.astype(np.float64) - step).min() < margin(x):
                raise Reject("an element is near a step")
    return x


def away_from_integers(x: Value, offset: float = 0.0, divide: float = 1.0) -> Value:
    for a in x.arrays:
        scaled = a.astype(np.float64) / divide - offset
        if a.size and np.abs(scaled - np.round(scaled)).min() < margin(x) / divide:
            raise Reject("an element is near a step")
    return x


def apart(x: Value, axis: int | None = None) -> Value:
    """`x`, in which no two elements along an axis are nearly equal."""
    for a in x.arrays:
        ordered = np.sort(a.astype(np.float64), axis=axis)
        gaps = np.diff(ordered, axis=-1 if axis is None else axis)
        least = margin(x) if x.dtype.kind == "f" else 0.5
        if gaps.size and gaps.min() < least:
            raise Reject("two elements are nearly equal")
    return x


def differ(a: Value, b: Value) -> None:
    """No element of `a` nearly equals the one of `b`."""
    if a.dtype.kind != "f":
        return
    for x, y in zip(a.arrays, b.arrays):
        gap = np.abs(x.astype(np.float64) - y.astype(np.float64))
        if gap.size and gap.min() < margin(a):
            raise Reject("two elements are nearly equal")
