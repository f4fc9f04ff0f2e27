"""Operators whose outputs' sizes depend on values."""

import numpy as np

from ..draw import STRING, Case, Draw, generator, is_integer


@generator("NonZero")
def non_zero(d: Draw) -> Case:
    dtype = d.type()
    bounds = (-1, 1) if is_integer(dtype) else ()
    return Case([d.array(dtype, d.shape(), *bounds)])


@generator("Unique")
def unique(d: Draw) -> Case:
    dtype = d.type()
    # Of empty tensors of strings the reference fails, and ONNX Runtime ends the process.
    shape = d.shape(1, zero=0 if dtype == STRING else 0.04)
    axis = d.axis(len(shape)) if d.chance(0.5) else None
    x = d.array(dtype, shape, 0, 3) if dtype.kind in "iu" else d.array(dtype, shape)
    if dtype.kind == "f" or dtype.kind == "V":
        x = x.astype(np.float32).round().astype(dtype) + dtype.type(0)
    order = d.pick([None, 0, 1])
    if x.size == 0 and order == 0:
        order = 1  # ONNX Runtime, which judges what is not sorted, ends the process at empty tensors
    return Case([x], {"axis": axis, "sorted": order}, d.integer(1, 4))
