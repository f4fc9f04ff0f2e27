"""Fourier transforms."""

import numpy as np

from ..draw import F32, F64, I64, Case, Draw, generator


@generator("DFT")
def dft(d: Draw) -> Case:
    dtype = d.type("T1", [F32, F64])
    signal = [d.integer(1, 3), *(d.integer(1, 9) for _ in range(d.integer(1, 2)))]
    complex_ = d.chance(0.5)
    x = d.array(dtype, [*signal, 2 if complex_ else 1])
    rank = len(signal) + 1
    axis = d.integer(1, rank - 2)
    inverse = d.chance(0.4)
    onesided = d.chance(0.4) and not complex_ and not inverse
    attributes = {"inverse": int(inverse), "onesided": int(onesided)}
    length = np.array(d.integer(1, 10), d.type("T2")) if d.chance(0.4) else None
    if d.version >= 20:
        written = axis - rank if d.chance(0.4) else axis
        return Case([x, length, np.array(written, I64)], attributes, tolerance=20)
    return Case([x, length], {**attributes, "axis": axis}, tolerance=20)


@generator("STFT")
def stft(d: Draw) -> Case:
    dtype = d.type("T1", [F32, F64])
    frame, step = d.integer(2, 8), d.integer(1, 4)
    length = frame + d.integer(0, 12)
    onesided = d.pick([None, 0, 1])
    complex_ = onesided == 0 and d.chance(0.5)
    x = d.array(dtype, [d.integer(1, 2), length, 2 if complex_ else 1])
    window = d.array(dtype, [frame], 0, 1) if d.chance(0.6) else None
    size = np.array(frame, d.type("T2")) if window is None or d.chance(0.5) else None
    hop = np.array(step, size.dtype if size is not None else d.type("T2"))
    return Case([x, hop, window, size], {"onesided": onesided}, tolerance=20)
