"""Normalisations."""

import numpy as np

from ..draw import F32, FLOATS, Case, Draw, generator


def _epsilon(d: Draw) -> float | None:
    return d.pick([None, 1e-3, 1e-6])


def _image(d: Draw, channels: int) -> list[int]:
    return [d.integer(1, 3), channels, *(d.integer(1, 5) for _ in range(d.integer(1, 3)))]


def _coarse(x: np.ndarray) -> np.ndarray:
    """Multiples of 1/4: equal, or so far apart that the references, which compute in float32 and take the
    square of the mean off the mean of the squares, keep their digits."""
    return (np.round(x.astype(np.float64) * 4) / 4).astype(x.dtype)


@generator("BatchNormalization")
def batch(d: Draw) -> Case:
    dtype = d.type("T", FLOATS)
    channels = d.integer(1, 4)
    shape = _image(d, channels) if d.chance(0.8) else [d.integer(1, 3), channels]
    scale_type = d.type("T1", [dtype]) if d.version >= 15 else dtype
    mean_type = d.type("T2", [dtype]) if d.version >= 14 else dtype
    inputs = [
        d.array(dtype, shape),
        d.array(scale_type, [channels]),
        d.array(scale_type, [channels]),
        d.array(mean_type, [channels]),
        d.array(mean_type, [channels], 0.1, 3),
    ]
    attributes = {"epsilon": _epsilon(d), "momentum": d.pick([None, 0.5])}
    if d.version >= 14 and d.chance(0.4):
        return Case(inputs, {**attributes, "training_mode": 1}, 3, tolerance=20)
    return Case(inputs, attributes, tolerance=4)


@generator("InstanceNormalization")
def instance(d: Draw) -> Case:
    dtype, channels = d.type("T", FLOATS), d.integer(1, 4)
    inputs = [d.array(dtype, _image(d, channels)), d.array(dtype, [channels]), d.array(dtype, [channels])]
    return Case(inputs, {"epsilon": _epsilon(d)}, tolerance=20)


@generator("GroupNormalization")
def group(d: Draw) -> Case:
    dtype, groups = d.type("T", FLOATS), d.integer(1, 3)
    channels = groups * d.integer(1, 3)
    # Version 18 has a scale for each group.
    count = channels if d.version >= 21 else groups
    x = _coarse(d.array(dtype, _image(d, channels)))
    inputs = [x, d.array(dtype, [count]), d.array(dtype, [count])]
    return Case(inputs, {"epsilon": _epsilon(d), "num_groups": groups}, tolerance=20)


@generator("LayerNormalization")
def layer(d: Draw) -> Case:
    dtype, shape = d.type("T", FLOATS), d.shape(1, 4, 8, zero=0)
    axis = d.axis(len(shape)) if d.chance(0.7) else None
    normal = shape[-1 if axis is None else axis :]
    inputs = [
        d.array(dtype, shape),
        d.array(dtype, normal),
        d.array(dtype, normal) if d.chance(0.5) else None,
    ]
    return Case(inputs, {"axis": axis, "epsilon": _epsilon(d)}, d.pick([1, 1, 3]), tolerance=50)


@generator("RMSNormalization")
def rms(d: Draw) -> Case:
    dtype, shape = d.type("T", FLOATS), d.shape(1, 4, 8, zero=0)
    axis = d.axis(len(shape)) if d.chance(0.7) else None
    normal = shape[-1 if axis is None else axis :]
    # The scale has the input's type here: the output has the scale's.
    return Case(
        [d.array(dtype, shape), d.array(dtype, normal)], {"axis": axis, "epsilon": _epsilon(d)}, tolerance=4
    )


@generator("LRN")
def lrn(d: Draw) -> Case:
    shape = [d.integer(1, 2), d.integer(1, 8), *(d.integer(1, 4) for _ in range(2))]
    attributes = {"size": d.pick([1, 3, 5, 2])}
    if d.chance(0.6):
        attributes.update(alpha=d.number(0.001, 0.5), beta=d.number(0.2, 1), bias=d.number(0.5, 2))
    return Case([d.array(d.type("T", FLOATS), shape)], attributes, tolerance=4)


@generator("MeanVarianceNormalization")
def mean_variance(d: Draw) -> Case:
    shape = [d.integer(1, 3), d.integer(1, 3), d.integer(2, 4), d.integer(2, 4)]
    axes = sorted(d.subset(4, 1)) if d.chance(0.6) else None
    # The standard's shape inference refuses the other types: the operator's function has constants of float.
    x = _coarse(d.array(F32, shape))
    axes = axes or [0, 2, 3]  # without axes its function is not one that shape inference reads
    if axes and int(np.prod([shape[a] for a in axes])) < 2:
        axes = [2, 3]
    return Case([x], {"axes": axes}, tolerance=50)
