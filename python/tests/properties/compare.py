"""Whether outputs are the expected ones."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .draw import STRING, is_integer

# (relative to the element, relative to the largest element) for each type; every other type must be equal.
# Half types: a rounding of a number that was computed in float32; two neighbours differ by 2^-10 and 2^-7.
TOLERANCES = {
    np.dtype(np.float64): (1e-9, 1e-11),
    np.dtype(np.float32): (2e-5, 2e-6),
    np.dtype(np.complex64): (1e-4, 1e-5),
    np.dtype(np.complex128): (1e-9, 1e-11),
    np.dtype(np.float16): (2e-3, 1e-4),
    np.dtype(ml_dtypes.bfloat16): (1.6e-2, 1e-3),
}
# The smallest numbers that are told from 0 where sums cancel.
_FLOOR = {np.dtype(np.float16): 2e-7}


def difference(
    found: np.ndarray, expected: np.ndarray, dtype: np.dtype, tolerance: float, steps: int, single: bool
) -> str | None:
    """What is wrong with an output that should be `expected`, in type `dtype`. `single`: `expected` was
    computed in float32."""
    if found.dtype != dtype:
        return f"type {found.dtype}, expected {dtype}"
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if dtype == STRING:
        # The reference fills arrays of strings with the number 0 where the empty string is meant.
        wanted = [str(b) if isinstance(b, str) else "" for b in expected.ravel()]
        equal = np.asarray([str(a) == b for a, b in zip(found.ravel(), wanted)], bool)
        return _report(equal.reshape(found.shape), found, expected)
    with np.errstate(all="ignore"):
        expected = expected.astype(dtype)
    if dtype in TOLERANCES:
        return _report(_close(found, expected, dtype, tolerance, single), found, expected)
    if is_integer(dtype) and steps:
        close = np.abs(found.astype(np.int64) - expected.astype(np.int64)) <= steps
        return _report(close, found, expected)
    if dtype == np.bool_ or is_integer(dtype):
        return _report(found == expected, found, expected)
    # Small floats: the same bits, or both no number.
    same = found.view(np.uint8) == expected.view(np.uint8)
    nan = np.isnan(found.astype(np.float32)) & np.isnan(expected.astype(np.float32))
    return _report(same | nan, found, expected)


def _close(
    found: np.ndarray, expected: np.ndarray, dtype: np.dtype, factor: float, single: bool
) -> np.ndarray:
    wide = np.complex128 if dtype.kind == "c" else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    relative, absolute = TOLERANCES[np.dtype(np.float32) if single and dtype == np.float64 else dtype]
    finite = np.abs(b[np.isfinite(b)])
    largest = finite.max() if finite.size else 0.0
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= factor * (relative * np.abs(b) + absolute * largest) + _FLOOR.get(
            dtype, 1e-30
        )
    return close | (a == b) | (np.isnan(a) & np.isnan(b))


def _report(equal: np.ndarray, found: np.ndarray, expected: np.ndarray) -> str | None:
    if np.all(equal):
        return None
    wrong = np.argwhere(~np.asarray(equal))
    first = tuple(int(i) for i in wrong[0])
    return (
        f"{len(wrong)} of {found.size} elements differ, the first at {first}: "
        f"{found[first]!r}, expected {expected[first]!r}"
    )
