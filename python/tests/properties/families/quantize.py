"""Quantization."""

import numpy as np

from ..draw import BF16, DTYPE_NAMED, F16, F32, Case, Draw, element_of, generator, is_integer

_NARROW = [DTYPE_NAMED[f"tensor({n})"] for n in ("uint8", "int8", "uint16", "int16", "uint4", "int4")]
_SMALL = [d for name, d in DTYPE_NAMED.items() if "float8e4" in name or "float8e5" in name]
_SCALES = (F32, F32, F16, BF16)


def _layout(d: Draw) -> tuple[list[int], list[int], dict]:
    """Shapes of the tensor and of its scale, and the attributes that say how they belong together."""
    shape = d.shape(0, 4)
    per_axis = d.version >= 13 and shape and d.chance(0.5)
    if not per_axis:
        return shape, [], {}
    axis = d.axis(len(shape))
    attributes = {"axis": axis}
    if d.version >= 21 and d.chance(0.4):
        shape = [max(size, 1) for size in shape]
        block = d.integer(1, 3)
        scale = list(shape)
        # All blocks but the last are whole.
        scale[axis] = -(-shape[axis] // block)
        return shape, scale, {**attributes, "block_size": block}
    return shape, [shape[axis]], attributes


@generator("QuantizeLinear")
def quantize(d: Draw) -> Case:
    shape, scale_shape, attributes = _layout(d)
    x_type = d.type("T1", [*_SCALES, np.dtype(np.int32)])
    if d.version >= 23:
        scale_type = d.type("T2", _SCALES)
        if x_type == np.int32:
            x_type = F32
    else:
        scale_type = F32 if x_type == np.int32 or d.version < 19 else x_type
    if x_type == np.int32 and d.version >= 19:
        scale_type = x_type = F32
    variable = "T3" if d.version >= 23 else "T2"
    y_type = d.type(variable, [*_NARROW, *_SMALL])
    zero = d.whole(y_type, scale_shape) if is_integer(y_type) else np.zeros(scale_shape, y_type)
    if d.chance(0.3):
        zero, y_type = None, np.dtype(np.uint8)
        if d.version >= 21 and d.chance(0.5):
            y_type = d.type(variable, _NARROW)
            attributes["output_dtype"] = element_of(y_type)
    if "float8" in str(y_type):
        attributes["saturate"] = d.pick([None, 0, 1])
    x = d.array(x_type, shape, -60, 60)
    scale = d.array(scale_type, scale_shape, 0.05, 1)
    return Case([x, scale, zero], attributes, steps=1, widen=False)


@generator("DequantizeLinear")
def dequantize(d: Draw) -> Case:
    shape, scale_shape, attributes = _layout(d)
    x_type = d.type("T1" if d.version >= 19 else "T", [*_NARROW, *_SMALL, np.dtype(np.int32)])
    scale_type = d.type("T2", _SCALES) if d.version >= 19 else F32
    if is_integer(x_type):
        x = d.array(x_type, shape, -100, 100) if x_type == np.int32 else d.whole(x_type, shape)
        zero = d.whole(x_type, scale_shape) if x_type != np.int32 else np.zeros(scale_shape, x_type)
    else:
        x, zero = d.array(x_type, shape, -60, 60), np.zeros(scale_shape, x_type)
    zero = zero if d.chance(0.7) else None
    if d.version >= 23 and d.chance(0.4):
        attributes["output_dtype"] = element_of(d.type("T3", _SCALES))
    return Case([x, d.array(scale_type, scale_shape, 0.05, 1), zero], attributes)


@generator("DynamicQuantizeLinear")
def dynamic_quantize(d: Draw) -> Case:
    shape = d.shape(zero=0)
    low = d.pick([-5, 0.5, -9])
    x = d.array(F32, shape, low, d.pick([low + 4, 8]))
    return Case([x], {}, 3, steps=1)
