"""Operators that sample images."""

import numpy as np

from ..draw import F32, F64, FLOATS, I64, PLAIN, Case, Draw, generator


@generator("Resize")
def resize(d: Draw) -> Case:
    variable = "T" if d.version < 11 else "T1"
    mode = d.pick(["nearest", "linear", "cubic"] if d.version >= 11 else ["nearest", "linear"])
    dtype = d.type(variable, PLAIN if mode == "nearest" else [F32, F64])
    rank = 4 if mode == "cubic" else d.integer(1, 4) if mode == "nearest" else d.pick([2, 3, 4])
    shape = [d.integer(1, 6) for _ in range(rank)]
    moved = list(range(rank))
    if mode != "nearest" and rank > 2:
        moved = moved[2:]
    scales = [d.pick([1.0, 2.0, 0.5, 1.5, 0.6, 3.0]) if i in moved else 1.0 for i in range(rank)]
    # Every size stays at least 1.
    scales = [s if int(n * s) >= 1 else 1.0 for n, s in zip(shape, scales)]
    x = d.array(dtype, shape)
    if d.version < 11:
        return Case([x, np.array(scales, np.float32)], {"mode": mode})
    attributes = {"mode": mode}
    transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", None]
    if d.version >= 19:
        transforms.append("half_pixel_symmetric")
    attributes["coordinate_transformation_mode"] = d.pick(transforms)
    if mode == "nearest":
        attributes["nearest_mode"] = d.pick(
            [None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
        )
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.pick([None, -0.5])
        attributes["exclude_outside"] = d.pick([None, 0, 1])
    if d.version >= 18 and mode != "nearest":
        attributes["antialias"] = d.pick([None, 0, 1])
        if attributes["antialias"] and mode == "cubic":
            attributes["exclude_outside"] = d.pick([None, 1])
    sizes = None
    if d.chance(0.4):
        sizes = np.array([d.integer(1, 8) if i in moved else n for i, n in enumerate(shape)], I64)
    factors = None if sizes is not None else np.array(scales, np.float32)
    roi = None
    if d.version == 11:
        # Before version 13 both inputs must be there; an empty one stands for none.
        roi = np.zeros([0], dtype if dtype in (F32, F64) else F32)
        factors = np.zeros([0], np.float32) if factors is None else factors
    if d.version >= 18 and d.chance(0.3) and len(moved) < rank:
        attributes["axes"] = moved
        factors = factors[moved] if factors is not None else None
        sizes = sizes[moved] if sizes is not None else None
    if d.version >= 18 and sizes is not None:
        attributes["keep_aspect_ratio_policy"] = d.pick([None, "stretch", "not_larger", "not_smaller"])
        if attributes["keep_aspect_ratio_policy"] not in (None, "stretch"):
            attributes["axes"] = moved
            sizes = sizes if len(sizes) == len(moved) else sizes[moved]
    return Case([x, roi, factors, sizes], attributes, tolerance=20)


@generator("GridSample")
def grid_sample(d: Draw) -> Case:
    dtype = d.type("T1", FLOATS)
    spatial = d.pick([2, 2, 3]) if d.version >= 20 else 2
    modes = ["linear", "nearest", "cubic"] if d.version >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = d.pick(modes if spatial == 2 else modes[:2])
    batch = d.integer(1, 2)
    x = d.array(dtype, [batch, d.integer(1, 2), *(d.integer(2, 5) for _ in range(spatial))])
    grid = d.array(dtype, [batch, *(d.integer(1, 4) for _ in range(spatial)), spatial], -1.3, 1.3)
    attributes = {
        "mode": mode,
        "padding_mode": d.pick([None, "zeros", "border", "reflection"]),
        "align_corners": d.pick([None, 0, 1]),
    }
    # Half types are for the values: a coordinate rounded to one is another place.
    return Case([x, grid], attributes, tolerance=50)
