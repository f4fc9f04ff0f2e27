"""Operators that make tensors out of little."""

import numpy as np
from onnx import numpy_helper

from ..draw import FLOATS, I64, Case, Draw, element_of, generator, is_integer


@generator("ConstantOfShape")
def constant_of_shape(d: Draw) -> Case:
    dtype = d.type("T2")
    value = numpy_helper.from_array(d.array(dtype, [1]), "value") if d.chance(0.8) else None
    return Case([np.array(d.shape(), I64)], {"value": value})


@generator("EyeLike")
def eye_like(d: Draw) -> Case:
    shape = [d.size(), d.size()]
    dtype = d.type("T2")
    attributes = {"k": d.integer(-3, 3) if d.chance(0.7) else None}
    attributes["dtype"] = element_of(dtype) if d.chance(0.6) else None
    return Case([d.array(d.type("T1"), shape)], attributes)


@generator("Range")
def range_(d: Draw) -> Case:
    dtype = d.type("T")
    steps = [-3, -1, 1, 2] if is_integer(dtype) else [-0.5, 0.25, 1, 2]
    start, delta = d.integer(-9, 9), d.pick(steps)
    limit = start + d.integer(-8, 20)
    return Case([np.array(v, dtype) for v in (start, limit, delta)])


@generator("HannWindow", "HammingWindow", "BlackmanWindow")
def window(d: Draw) -> Case:
    attributes = {"periodic": d.pick([None, 0, 1]), "output_datatype": d.pick([None, 1, 11])}
    return Case([np.array(d.integer(3, 20), d.type("T1"))], attributes, tolerance=20)


@generator("MelWeightMatrix")
def mel(d: Draw) -> Case:
    kind = d.type("T1")
    low = d.number(0, 100)
    values = [d.integer(2, 10), d.pick([16, 32, 64]), 8000]
    inputs = [np.array(v, kind) for v in values]
    edges = [np.array(v, np.float32) for v in (low, low + d.number(500, 3000))]
    return Case([*inputs, *edges], {"output_datatype": d.pick([None, 1, 11])})


@generator("AffineGrid")
def affine_grid(d: Draw) -> Case:
    spatial = d.integer(2, 3)
    batch = d.integer(1, 2)
    theta = d.array(d.type("T1", FLOATS), [batch, spatial, spatial + 1])
    size = [batch, d.integer(1, 3), *(d.integer(2, 5) for _ in range(spatial))]
    return Case([theta, np.array(size, I64)], {"align_corners": d.pick([None, 0, 1])}, tolerance=10)
