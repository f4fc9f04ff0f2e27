"""Operators that fold or scan along axes."""

import numpy as np

from ..draw import FLOATS, I64, Case, Draw, generator, is_integer

_SUMS = ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceProd")


@generator(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def reduce(d: Draw) -> Case:
    dtype = d.type("T")
    # Neither the mean of no integers is a number, nor the logarithm of their sum.
    zero = (
        0 if is_integer(dtype) and d.operator in ("ReduceMean", "ReduceLogSum", "ReduceLogSumExp") else 0.04
    )
    shape = d.shape(zero=zero)
    if d.operator in ("ReduceLogSum",):
        x = d.array(dtype, shape, 1, 9)
    elif d.operator == "ReduceProd":
        x = d.array(dtype, shape, -3, 3)
    elif d.operator == "ReduceLogSumExp" and is_integer(dtype):
        x = d.array(dtype, shape, 0, 9)
    else:
        x = d.array(dtype, shape)
    attributes = {"keepdims": d.pick([None, 0, 1])}
    axes = d.axes(len(shape), 1) if shape and d.chance(0.8) else None
    inputs = [x]
    if d.version >= 18 or d.operator == "ReduceSum" and d.version >= 13:
        inputs.append(None if axes is None else np.array(axes if d.chance(0.9) else [], I64))
        attributes["noop_with_empty_axes"] = d.pick([None, 0, 1])
    else:
        attributes["axes"] = axes if d.version >= 11 or axes is None else [a % len(shape) for a in axes]
    return Case(inputs, attributes, tolerance=4)


@generator("ArgMax", "ArgMin")
def arg(d: Draw) -> Case:
    dtype = d.type("T")
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11)
    shape[axis] = max(shape[axis], 1)
    if not d.chance(0.8):
        axis, shape[0] = None, max(shape[0], 1)
    attributes = {"axis": axis, "keepdims": d.pick([None, 0, 1])}
    if d.version >= 12:
        attributes["select_last_index"] = d.pick([None, 0, 1])
    x = d.array(dtype, shape, 0, 3) if is_integer(dtype) else d.array(dtype, shape)
    return Case([x], attributes)


@generator("CumSum", "CumProd")
def cumulate(d: Draw) -> Case:
    dtype = d.type("T")
    shape = d.shape(1)
    axis = np.array(d.axis(len(shape)), d.type("T2"))
    attributes = {"exclusive": d.pick([None, 0, 1]), "reverse": d.pick([None, 0, 1])}
    x = d.array(dtype, shape, -2, 2) if d.operator == "CumProd" else d.array(dtype, shape)
    return Case([x, axis], attributes, tolerance=4)


@generator("Softmax", "LogSoftmax", "Hardmax")
def softmax(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11) if d.chance(0.8) else None
    if axis is None and d.version < 13 and len(shape) < 2:
        axis = 0
    dtype = d.type("T")
    x = d.distinct(dtype, shape) if d.operator == "Hardmax" and d.chance(0.5) else d.array(dtype, shape)
    return Case([x], {"axis": axis}, tolerance=2)


@generator("TopK")
def top_k(d: Draw) -> Case:
    dtype = d.type("T")
    shape = d.shape(1)
    axis = d.axis(len(shape), d.version >= 11) if d.chance(0.8) else None
    where = -1 if axis is None else axis
    shape[where] = max(shape[where], 1)
    k = d.integer(0 if d.version >= 11 else 1, shape[where])
    attributes = {"axis": axis}
    if d.version >= 11:
        attributes["largest"] = d.pick([None, 0, 1])
        attributes["sorted"] = d.pick([None, 1])
    values = d.distinct(dtype, shape) if np.prod(shape) < 200 else d.array(dtype, shape)
    if d.version < 10:
        return Case([values], {**attributes, "k": k}, outputs=2)
    return Case([values, np.array([k], I64)], attributes, outputs=2)


@generator("LpNormalization")
def lp_normalization(d: Draw) -> Case:
    shape = d.shape(1)
    axis = d.axis(len(shape)) if d.chance(0.8) else None
    return Case([d.array(d.type("T"), shape)], {"axis": axis, "p": d.pick([None, 1, 2])})


@generator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    classes = d.integer(1, 5)
    shape = [d.integer(1, 4), classes, *(d.integer(1, 4) for _ in range(d.integer(0, 2)))]
    if d.operator == "NegativeLogLikelihoodLoss":
        target = np.dtype(d.pick([np.int32, np.int64]))
    else:
        target = np.dtype(d.pick([np.int32, np.int64]))
    labels = d.index(0, classes - 1, [shape[0], *shape[2:]], target)
    weight = d.array(dtype, [classes], 0.1, 2) if d.chance(0.5) else None
    attributes = {"reduction": d.pick([None, "none", "sum", "mean"])}
    ignored = d.integer(0, classes - 1)
    if d.chance(0.3) and not np.all(labels == ignored):
        attributes["ignore_index"] = ignored
    outputs = d.integer(1, 2) if d.operator == "SoftmaxCrossEntropyLoss" else 1
    # Of one sign, where they are summed as they are: the reference sums in the type itself.
    scores = (
        d.array(dtype, shape, 0.1, 3) if d.operator == "NegativeLogLikelihoodLoss" else d.array(dtype, shape)
    )
    return Case([scores, labels, weight], attributes, outputs, tolerance=2)
