"""Reductions, normalisations, softmax, choices of elements, and outputs whose size depends on values."""

import numpy as np
from properties.draw import F16, F32, I64

from ..evaluate import Reject
from ..scope import Scope, Value
from . import emitter
from .products import batch_norm, image
from .stable import apart, away

_SINCE = {"ReduceSum": 13}


@emitter(3)
def reduce(s: Scope):
    random = s.random
    name = random.pick(
        [
            "ReduceMean",
            "ReduceSum",
            "ReduceMax",
            "ReduceMin",
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSumExp",
            "ReduceSumSquare",
        ]
    )
    x = s.tame(s.pick("f", 1), 2)
    if name == "ReduceL2":
        x = s.emit("Add", [s.emit("Abs", [x]), np.asarray(0.5, x.dtype)])
    axes = [random.axis(x.rank)] if random.chance(0.6) else sorted(random.subset(x.rank, 1))
    return s.axes(
        name,
        x,
        axes if random.chance(0.9) else None,
        since=_SINCE.get(name, 18),
        keepdims=random.pick([None, 0, 1]),
    )


@emitter(2)
def softmax(s: Scope):
    x = s.tame(s.pick("f", 1), 10)
    return s.emit(s.random.pick(["Softmax", "Softmax", "LogSoftmax"]), [x], axis=s.random.axis(x.rank))


@emitter(1)
def cumulative(s: Scope):
    x = s.tame(s.pick("f", 1), 2)
    attributes = {"exclusive": s.random.pick([None, 1]), "reverse": s.random.pick([None, 1])}
    return s.emit("CumSum", [x, np.asarray(s.random.axis(x.rank), I64)], **attributes)


@emitter(1)
def arg(s: Scope):
    x = s.pick("f", 1, 4)
    axis = s.random.axis(x.rank)
    apart(x, axis)
    y = s.emit(s.random.pick(["ArgMax", "ArgMin"]), [x], axis=axis, keepdims=s.random.pick([None, 0]))
    return s.cast(y, s.model.main) if s.random.chance(0.4) else y


@emitter(1)
def top(s: Scope):
    x = s.pick("f", 1, 4)
    axis = s.random.axis(x.rank)
    apart(x, axis)
    k = s.random.integer(1, min(d[axis] for d in x.shapes))
    return s.emit("TopK", [x, np.array([k], I64)], 2, axis=axis, largest=s.random.pick([None, 0]))


@emitter(3)
def normal(s: Scope):
    random = s.random
    kind = random.pick(["batch", "layer", "layer", "instance", "group", "rms", "lrn", "l2"])
    if kind == "batch":
        x = s.tame(s.pick("f", 2, 4, lambda v: len({d[1] for d in v.shapes}) == 1 and v.shapes[0][1] <= 32))
        return batch_norm(s, x)
    if kind == "layer" and s.model.opset >= 17:
        x = varied(s.pick("f", 2, 4))
        n = x.dim(-1)
        bias = s.weights([n], x.dtype) if random.chance(0.7) else None
        return s.emit("LayerNormalization", [x, s.weights([n], x.dtype), bias], axis=-1)
    if kind == "rms" and s.model.opset >= 23:
        x = s.pick("f", 2, 4)
        return s.emit("RMSNormalization", [x, s.weights([x.dim(-1)], x.dtype)], epsilon=1e-3)
    if kind == "instance":
        x = image(s)
        varied(x, tuple(range(2, x.rank)))
        c = x.dim(1)
        return s.emit("InstanceNormalization", [x, s.weights([c], x.dtype), s.weights([c], x.dtype)])
    if kind == "group" and s.model.opset >= 21:
        x = image(s)
        varied(x, tuple(range(2, x.rank)))
        c = x.dim(1)
        groups = next(g for g in (3, 2, 1) if c % g == 0)
        inputs = [x, s.weights([c], x.dtype), s.weights([c], x.dtype)]
        return s.emit("GroupNormalization", inputs, num_groups=groups)
    if kind == "lrn":
        x = image(s, 4)
        return s.emit("LRN", [x], size=3)
    x = s.pick("f", 1, 4)
    return s.emit(
        "LpNormalization",
        [s.emit("Add", [s.emit("Abs", [x]), np.asarray(1, x.dtype)])],
        axis=s.random.axis(x.rank),
    )


def varied(x: Value, axes=(-1,)) -> Value:
    """`x`, whose elements along the axes differ enough to be divided by how they do."""
    for a in x.arrays:
        if a.size and np.std(a.astype(np.float64), axis=axes).min() < 0.05:
            raise Reject("elements hardly differ")
    return x


@emitter(1)
def selected(s: Scope):
    """Outputs whose size depends on values."""
    random = s.random
    kind = random.pick(["nonzero", "compress", "unique", "gathered"])
    if kind == "unique":
        x = s.pick("f", 1, 3)
        apart(Value("", [a.reshape(-1) for a in x.arrays]))
        y = s.emit("Unique", [x], random.integer(1, 4), sorted=random.pick([None, 1]))
        return y
    x = s.pick("f", 1, 3)
    away(x, 0)
    mask = s.emit("Greater", [x, np.asarray(0, x.dtype)])
    if not all(a.any() for a in mask.arrays):
        raise Reject("nothing is selected")
    if kind == "compress":
        flat = s.emit("Reshape", [mask, np.array([-1], I64)])
        return s.emit("Compress", [x, flat])
    where = s.emit("NonZero", [mask])
    if kind == "nonzero":
        return where
    return s.emit("GatherND", [x, s.emit("Transpose", [where], perm=[1, 0])])


@emitter(0.6)
def suppressed(s: Scope):
    """Boxes of the graph's numbers, their scores, and which of them stay."""
    random = s.random
    boxes, classes = random.integer(3, 8), random.integer(1, 3)
    corner = s.emit(
        "Sigmoid", [s.fit(s.pick("f", accept=lambda v: v.dtype in (F32, F16)), [1, boxes, 2], F32)]
    )
    size = s.constant(random.array(F32, [1, boxes, 2], 0.2, 0.6))
    both = s.emit("Concat", [corner, s.emit("Add", [corner, size])], axis=2)
    scores = s.fit(s.pick("f"), [1, classes, boxes], F32)
    apart(scores, 2)
    scores = s.emit("Sigmoid", [scores])
    away(scores, 0.4)
    y = s.emit(
        "NonMaxSuppression", [both, scores, np.array([3], I64), np.array([0.47], F32), np.array([0.4], F32)]
    )
    if random.chance(0.6):
        index = s.emit("Gather", [y, np.asarray(2, I64)], axis=1)
        kept = s.emit("Gather", [both, index], axis=1)
        return s.cast(kept, s.model.main) if s.model.main != F32 else kept
    return y
