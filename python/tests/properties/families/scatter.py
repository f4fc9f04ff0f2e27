"""Operators that write elements to places that an input names."""

import numpy as np

from ..draw import STRING, Case, Draw, generator


def _reduction(d: Draw, dtype: np.dtype, since: int) -> str | None:
    if d.version < since or dtype == STRING or dtype == bool or dtype.kind == "c":
        return None
    return d.pick([None, "none", "add", "mul"] + ["max", "min"] * (d.version >= 18))


@generator("Scatter", "ScatterElements")
def scatter_elements(d: Draw) -> Case:
    dtype, shape = d.type("T"), d.shape(1, zero=0)
    axis = d.axis(len(shape), d.version >= 11) if d.chance(0.8) else None
    where = (axis or 0) % len(shape)
    reduction = _reduction(d, dtype, 16)
    indices = [d.integer(0, size) if d.chance(0.1) else d.integer(1, size) for size in shape]
    # Without a reduction each place may be written once: the lines along the axis get different indices.
    lines = [d.permutation(shape[where])[: indices[where]] for _ in range(int(np.prod(indices)) or 1)]
    rest = [size for i, size in enumerate(indices) if i != where]
    index = np.array(lines)[: int(np.prod(rest))].reshape([*rest, indices[where]])
    index = np.moveaxis(index, -1, where)
    if d.version >= 11:
        index = index - shape[where] * (d.rng.random(index.shape) < 0.3)
    if reduction in ("add", "mul", "max", "min"):
        index = d.index(-shape[where], shape[where] - 1, indices)
    updates = d.array(dtype, indices)
    inputs = [d.array(dtype, shape), np.asarray(index).astype(d.type("Tind")), updates]
    return Case(inputs, {"axis": axis, "reduction": reduction}, tolerance=4)


@generator("ScatterND")
def scatter_nd(d: Draw) -> Case:
    dtype, shape = d.type("T"), d.shape(1, zero=0)
    reduction = _reduction(d, dtype, 16)
    depth = d.integer(1, len(shape))
    places = int(np.prod(shape[:depth]))
    lead = [d.integer(0, 3)] if d.chance(0.5) else [d.integer(1, 2), d.integer(1, 3)]
    count = int(np.prod(lead))
    if reduction in ("add", "mul", "max", "min"):
        flat = d.index(0, places - 1, [count])
    else:
        lead = [min(count, places)]
        flat = np.array(d.permutation(places)[: lead[0]], np.int64)
    index = np.stack(np.unravel_index(flat, shape[:depth]), -1).reshape([*lead, depth])
    index = index - np.array(shape[:depth]) * (d.rng.random(index.shape) < 0.3) if d.version >= 11 else index
    updates = d.array(dtype, [*lead, *shape[depth:]])
    inputs = [d.array(dtype, shape), index.astype(np.int64), updates]
    return Case(inputs, {"reduction": reduction}, tolerance=4)
