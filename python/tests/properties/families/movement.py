"""Operators that copy elements to other places: cutting, joining, padding, repeating."""

import numpy as np

from ..draw import F32, F64, FLOATS, I64, PLAIN, Case, Draw, generator
from .reshape import data


@generator("Concat")
def concat(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11)
    dtype = d.type()
    inputs = []
    for _ in range(d.integer(1, 4)):
        shape[axis] = d.size()
        inputs.append(d.array(dtype, shape))
    return Case(inputs, {"axis": axis})


@generator("Split")
def split(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11) if d.chance(0.8) else None
    where = 0 if axis is None else axis
    parts = d.integer(1, 4)
    if d.chance(0.6):
        sizes = [d.size(3) for _ in range(parts)]
        shape[where] = sum(sizes)
    else:
        sizes = None
        shape[where] = parts * d.size(3)
    attributes = {"axis": axis}
    if sizes is None and d.version >= 18:
        attributes["num_outputs"] = parts
        if shape[where] and d.chance(0.5):
            # The last part may be smaller.
            chunk = shape[where] // parts
            shape[where] -= d.integer(0, chunk - 1)
    x = data(d, shape)
    if d.version >= 13:
        return Case([x, None if sizes is None else np.array(sizes, I64)], attributes, parts)
    return Case([x], {**attributes, "split": sizes}, parts)


@generator("Slice")
def slice_(d: Draw) -> Case:
    shape = d.shape(1)
    rank = len(shape)
    axes = d.subset(rank, 1) if d.chance(0.7) else list(range(d.integer(1, rank)))
    named = axes if axes != list(range(len(axes))) or d.chance(0.5) else None
    far = [np.iinfo(np.int32).max, np.iinfo(np.int64).max]
    starts = [d.integer(-shape[a] - 2, shape[a] + 1) for a in axes]
    ends = [d.pick(far) if d.chance(0.2) else d.integer(-shape[a] - 2, shape[a] + 2) for a in axes]
    if d.version < 10:
        return Case([data(d, shape)], {"starts": starts, "ends": ends, "axes": named})
    steps = None
    if d.chance(0.6):
        steps = [d.pick([1, 2, 3, -1, -2]) for _ in axes]
        for i, step in enumerate(steps):
            if step < 0 and d.chance(0.5):
                starts[i], ends[i] = shape[axes[i]], -far[0]
    if named is not None:
        named = [a - rank if d.chance(0.3) else a for a in named]
    kind = d.type("Tind")
    if kind != I64:
        ends = [max(min(e, far[0]), -far[0]) for e in ends]
    if named is None and steps is not None:
        named = list(axes)
    extra = [None if v is None else np.array(v, kind) for v in (named, steps)]
    return Case([data(d, shape), np.array(starts, kind), np.array(ends, kind), *extra])


@generator("Pad")
def pad(d: Draw) -> Case:
    modes = ["constant", "constant", "reflect", "edge"] + ["wrap"] * (d.version >= 19)
    mode = d.pick(modes)
    shape = d.shape(1) if mode == "constant" else d.shape(1, zero=0)
    rank = len(shape)
    axes = d.subset(rank, 1) if d.version >= 18 and d.chance(0.4) else list(range(rank))
    limits = [4 if mode != "reflect" else shape[a] - 1 for a in axes]
    pads = [d.integer(0, limit) for limit in limits * 2]
    if mode == "constant" and d.chance(0.4):
        # Negative pads crop; something may be left or not.
        for i, a in enumerate(axes):
            cut = d.integer(0, shape[a])
            pads[i] = -d.integer(0, cut)
            pads[i + len(axes)] = -(cut + pads[i])
    dtype = d.type("T", None if d.version >= 13 else FLOATS)
    x = d.array(dtype, shape)
    attributes = {"mode": d.pick([None, mode]) if mode == "constant" else mode}
    if d.version < 11:
        value = d.number(-2, 2) if d.chance(0.5) else None
        return Case([x], {**attributes, "pads": pads, "value": value})
    # float8e8m0 has no zero to pad with.
    given = d.chance(0.5) or "e8m0" in str(dtype)
    value = d.array(dtype, []) if given and mode == "constant" else None
    inputs = [x, np.array(pads, I64), value]
    if len(axes) < rank or d.version >= 18 and axes != list(range(rank)):
        named = [a - rank if d.chance(0.3) else a for a in axes]
        inputs.append(np.array(named, d.type("Tind")))
    return Case(inputs, attributes)


@generator("Tile")
def tile(d: Draw) -> Case:
    shape = d.shape(0, 4, 4)
    return Case([data(d, shape), np.array([d.size(3) for _ in shape], I64)])


@generator("CenterCropPad")
def center_crop_pad(d: Draw) -> Case:
    shape = d.shape(1, 4, zero=0)
    axes = d.axes(len(shape), 1) if d.chance(0.6) else None
    target = [d.integer(1, 7) for _ in (axes if axes is not None else shape)]
    return Case([data(d, shape), np.array(target, d.type("Tind"))], {"axes": axes})


@generator("Trilu")
def trilu(d: Draw) -> Case:
    shape = d.shape(2, 4)
    k = np.array(d.integer(-6, 6), I64) if d.chance(0.7) else None
    return Case([data(d, shape), k], {"upper": d.pick([None, 0, 1])})


@generator("ReverseSequence")
def reverse_sequence(d: Draw) -> Case:
    shape = d.shape(2, 4, zero=0)
    batch = d.integer(0, 1)
    attributes = {"batch_axis": batch, "time_axis": 1 - batch} if batch == 0 or d.chance(0.5) else {}
    batch = attributes.get("batch_axis", 1)
    return Case([data(d, shape), d.index(1, shape[1 - batch], [shape[batch]])], attributes)


@generator("Upsample")
def upsample(d: Draw) -> Case:
    dtype = d.type("T", PLAIN)
    mode = d.pick([None, "nearest", "linear"]) if dtype in (F32, F64) else None
    rank = 4 if mode == "linear" else d.integer(1, 4)
    shape = [d.integer(1, 4) for _ in range(rank)]
    scales = [d.pick([1.0, 2.0, 1.5, 3.0]) for _ in shape]
    if mode == "linear":
        scales[:2] = [1.0, 1.0]
    return Case([d.array(dtype, shape), np.array(scales, np.float32)], {"mode": mode})
