"""Operators that look elements up."""

import numpy as np

from ..draw import I64, Case, Draw, generator


@generator("Gather")
def gather(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.chance(0.8) else None
    size = shape[axis or 0]
    indices = d.shape(0, 3) if size else [0]
    low = -size if d.version >= 11 else 0
    index = d.index(low, max(size - 1, low), indices, d.type("Tind"))
    return Case([d.array(d.type(), shape), index], {"axis": axis})


@generator("GatherElements")
def gather_elements(d: Draw) -> Case:
    shape = d.shape(1, zero=0)
    axis = d.axis(len(shape)) if d.chance(0.8) else None
    where = (axis or 0) % len(shape)
    indices = [d.size(6) if i == where else d.integer(1, size) for i, size in enumerate(shape)]
    index = d.index(-shape[where], shape[where] - 1, indices, d.type("Tind"))
    return Case([d.array(d.type(), shape), index], {"axis": axis})


@generator("GatherND")
def gather_nd(d: Draw) -> Case:
    shape = d.shape(1, zero=0)
    rank = len(shape)
    batch = d.integer(0, rank - 1) if d.version >= 12 and d.chance(0.5) else 0
    depth = d.integer(1, rank - batch)
    lead = [*shape[:batch], *d.shape(0, 2)]
    columns = [d.index(-shape[batch + i], shape[batch + i] - 1, lead) for i in range(depth)]
    attributes = {"batch_dims": batch} if d.version >= 12 and (batch or d.chance(0.3)) else {}
    return Case([d.array(d.type(), shape), np.stack(columns, -1)], attributes)


@generator("Compress")
def compress(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11) if d.chance(0.7) else None
    size = int(np.prod(shape)) if axis is None else shape[axis]
    condition = d.array(np.dtype(bool), [d.integer(min(1, size), size)])
    return Case([d.array(d.type(), shape), condition], {"axis": axis})


@generator("OneHot")
def one_hot(d: Draw) -> Case:
    kinds = [np.dtype(t) for t in (np.int32, np.int64, np.uint8, np.float32)]
    index_type, depth_type = d.type("T1", kinds), d.type("T2", kinds[:3])
    shape = d.shape(1, 3)
    depth = d.integer(1, 6)
    axis = d.integer(-len(shape) - 1, len(shape)) if d.chance(0.7) else None
    # Indices out of range are allowed: they set nothing.
    low, high = (-depth - 2, depth + 2) if index_type.kind != "u" and d.version >= 11 else (0, depth + 2)
    indices = d.array(index_type, shape, low, high)
    if index_type.kind not in "iu":
        indices = indices.astype(np.float32).round().astype(index_type)
    values = d.array(d.type("T3"), [2])
    return Case([indices, np.array(depth if d.chance(0.5) else [depth], depth_type), values], {"axis": axis})


@generator("TensorScatter")
def tensor_scatter(d: Draw) -> Case:
    shape = d.shape(3, 4, zero=0)
    axis = d.pick([None, *range(1, len(shape)), -1, -2])
    where = (-2 if axis is None else axis) % len(shape)
    update = list(shape)
    update[where] = d.integer(1, shape[where])
    mode = d.pick([None, "linear", "circular"])
    high = shape[where] - (1 if mode == "circular" else update[where])
    start = d.index(0, high, [shape[0]], I64) if d.chance(0.8) else None
    dtype = d.type("T")
    return Case([d.array(dtype, shape), d.array(dtype, update), start], {"axis": axis, "mode": mode})
