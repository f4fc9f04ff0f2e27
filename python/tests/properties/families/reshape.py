"""Operators that keep the elements and change their shape."""

import numpy as np

from ..draw import I64, Case, Draw, generator


def data(d: Draw, shape: list[int], variable: str = "T") -> np.ndarray:
    return d.array(d.type(variable), shape)


@generator("Reshape")
def reshape(d: Draw) -> Case:
    shape = d.shape()
    count = int(np.prod(shape))
    target, rest = [], count
    for _ in range(d.integer(0, 3)):
        divisors = [k for k in range(1, rest + 1) if rest % k == 0] or [1]
        target.append(d.pick(divisors))
        rest //= target[-1]
    if rest != 1 or not target and d.chance(0.3):
        target.insert(d.integer(0, len(target)), rest)
    if not shape:
        target = [1] * d.integer(0, 2)
    zeros = d.version >= 14 and d.chance(0.3)
    if not zeros:
        # 0 copies the size of the same axis.
        target = [
            0 if i < len(shape) and t == shape[i] and d.chance(0.3) else t for i, t in enumerate(target)
        ]
    if not count:
        # Of an empty tensor: its own shape, which copies every 0.
        target = list(shape)
    if target and count and d.chance(0.4):
        target[d.integer(0, len(target) - 1)] = -1
    attributes = {"allowzero": int(zeros)} if zeros else {}
    return Case([data(d, shape), np.array(target, I64)], attributes)


@generator("Flatten")
def flatten(d: Draw) -> Case:
    shape = d.shape()
    low = -len(shape) if d.version >= 11 else 0
    axis = d.integer(low, len(shape)) if d.chance(0.8) or not shape else None
    return Case([data(d, shape)], {"axis": axis})


@generator("Squeeze")
def squeeze(d: Draw) -> Case:
    shape = [1 if d.chance(0.4) else size for size in d.shape()]
    ones = [i for i, size in enumerate(shape) if size == 1]
    axes = [ones[i] for i in d.subset(len(ones), 1)] if ones and d.chance(0.7) else None
    if axes and d.version >= 11:
        axes = [a - len(shape) if d.chance(0.4) else a for a in axes]
    x = data(d, shape)
    if d.version >= 13:
        return Case([x, None if axes is None else np.array(axes, I64)])
    return Case([x], {"axes": axes})


@generator("Unsqueeze")
def unsqueeze(d: Draw) -> Case:
    shape = d.shape()
    rank = len(shape) + d.integer(1, 3)
    axes = d.permutation(rank)[: rank - len(shape)]
    if d.version >= 11:
        axes = [a - rank if d.chance(0.4) else a for a in axes]
    x = data(d, shape)
    return Case([x, np.array(axes, I64)]) if d.version >= 13 else Case([x], {"axes": axes})


@generator("Transpose")
def transpose(d: Draw) -> Case:
    shape = d.shape(0, 5)
    return Case([data(d, shape)], {"perm": d.permutation(len(shape)) if shape and d.chance(0.8) else None})


@generator("Expand")
def expand(d: Draw) -> Case:
    full = d.shape()
    return Case([data(d, d.broadcast(full)), np.array(full if d.chance(0.6) else d.broadcast(full), I64)])


@generator("DepthToSpace")
def depth_to_space(d: Draw) -> Case:
    block = d.integer(1, 3)
    shape = [d.size(2), block * block * d.integer(1, 3), d.size(4), d.size(4)]
    attributes = {"blocksize": block}
    if d.version >= 11:
        attributes["mode"] = d.pick([None, "DCR", "CRD"])
    return Case([data(d, shape)], attributes)


@generator("SpaceToDepth")
def space_to_depth(d: Draw) -> Case:
    block = d.integer(1, 3)
    shape = [d.size(2), d.integer(1, 3), block * d.integer(1, 3), block * d.integer(1, 3)]
    return Case([data(d, shape)], {"blocksize": block})


@generator("Shape")
def shape_of(d: Draw) -> Case:
    shape = d.shape()
    attributes = {}
    if d.version >= 15 and d.chance(0.7):
        attributes = {"start": d.integer(-5, 5), "end": d.pick([None, d.integer(-5, 5)])}
    return Case([data(d, shape)], attributes)


@generator("Size")
def size_of(d: Draw) -> Case:
    return Case([data(d, d.shape())])
