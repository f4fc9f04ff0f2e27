"""Pools."""

import numpy as np

from ..draw import FLOATS, Case, Draw, generator, is_integer
from .convolution import sizes, window


@generator("MaxPool", "AveragePool", "LpPool")
def pool(d: Draw) -> Case:
    dtype = d.type("T")
    spatial, kernel = sizes(d, d.pick([1, 2, 2, 3]))
    dilated = d.version >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[d.operator]
    attributes = {"kernel_shape": kernel, **window(d, spatial, kernel, dilated)}
    if attributes.get("auto_pad", "").startswith("SAME"):
        # How much SAME pads for a dilated window, the standard's rules and its references disagree on.
        attributes.pop("dilations", None)
    if "pads" in attributes:
        attributes["pads"] = [d.integer(0, (k - 1) // 2) for k in kernel * 2]
    if (
        d.version >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[d.operator]
        and "auto_pad" not in attributes
    ):
        attributes["ceil_mode"] = d.pick([None, 0, 1])
    outputs = 1
    if d.operator == "AveragePool":
        attributes["count_include_pad"] = d.pick([None, 0, 1])
    if d.operator == "LpPool":
        attributes["p"] = d.pick([None, 1, 2, 3])
    if d.operator == "MaxPool" and d.version >= 8:
        outputs = d.integer(1, 2)
        attributes["storage_order"] = d.pick([None, 0, 1])
    shape = [d.integer(1, 2), d.integer(1, 3), *spatial]
    # Equal elements would leave the index of the largest open.
    narrow = is_integer(dtype) and dtype.itemsize == 1
    x = d.distinct(dtype, shape) if d.operator == "MaxPool" and not narrow else d.array(dtype, shape)
    return Case([x], attributes, 1 if narrow else outputs, tolerance=4)


@generator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(d: Draw) -> Case:
    shape = [d.integer(1, 3), d.integer(1, 3), *(d.integer(1, 5) for _ in range(d.integer(1, 3)))]
    attributes = {"p": d.pick([None, 1, 2, 3])} if d.operator == "GlobalLpPool" else {}
    return Case([d.array(d.type("T"), shape)], attributes, tolerance=4)


@generator("MaxUnpool")
def max_unpool(d: Draw) -> Case:
    dtype = d.type("T1", FLOATS)
    rank = d.integer(1, 2)
    kernel = [d.integer(2, 3) for _ in range(rank)]
    spatial = [d.integer(1, 4) for _ in range(rank)]
    shape = [d.integer(1, 2), d.integer(1, 2), *spatial]
    full = [(n - 1) * k + k for n, k in zip(spatial, kernel)]
    plane = int(np.prod(full))
    # Indices count through the whole tensor; each is used once.
    count, planes = int(np.prod(spatial)), shape[0] * shape[1]
    indices = np.concatenate([np.sort(d.rng.permutation(plane)[:count]) + p * plane for p in range(planes)])
    output = np.array([*shape[:2], *full]) if d.chance(0.3) else None
    attributes = {"kernel_shape": kernel, "strides": kernel}
    return Case([d.array(dtype, shape), indices.reshape(shape).astype(np.int64), output], attributes)


def _boxes(d: Draw, dtype: np.dtype, count: int, extent: float) -> np.ndarray:
    starts = d.rng.uniform(0, extent / 2, [count, 2])
    return np.concatenate([starts, starts + d.rng.uniform(0.5, extent / 2, [count, 2])], 1).astype(dtype)


@generator("RoiAlign")
def roi_align(d: Draw) -> Case:
    dtype = d.type("T1", FLOATS[:3])
    batch, count = d.integer(1, 2), d.integer(1, 4)
    x = d.array(dtype, [batch, d.integer(1, 3), d.integer(3, 8), d.integer(3, 8)])
    attributes = {
        "mode": d.pick([None, "avg", "max"]),
        "output_height": d.integer(1, 4),
        "output_width": d.integer(1, 4),
        "sampling_ratio": d.integer(0, 3),
        "spatial_scale": d.pick([None, 0.5, 1.0, 2.0]),
    }
    if d.version >= 16:
        attributes["coordinate_transformation_mode"] = d.pick([None, "half_pixel", "output_half_pixel"])
    batches = d.index(0, batch - 1, [count])
    return Case([x, _boxes(d, dtype, count, 8), batches], attributes, tolerance=10)


@generator("MaxRoiPool")
def max_roi_pool(d: Draw) -> Case:
    dtype = d.type("T", FLOATS[:3])
    batch, count = d.integer(1, 2), d.integer(1, 4)
    x = d.array(dtype, [batch, d.integer(1, 2), d.integer(4, 8), d.integer(4, 8)])
    boxes = np.concatenate([d.index(0, batch - 1, [count, 1]), _boxes(d, dtype, count, 6).round()], 1)
    attributes = {"pooled_shape": [d.integer(1, 3), d.integer(1, 3)], "spatial_scale": d.pick([None, 0.5])}
    return Case([x, boxes.astype(dtype)], attributes)
