"""Elementwise operators of several inputs, which broadcast."""

import numpy as np

from ..draw import BF16, F16, F32, F64, FLOATS, Case, Draw, generator, is_integer


def pair(d: Draw) -> tuple[list[int], list[int]]:
    """Two shapes that broadcast to a third."""
    shape = d.shape()
    first, second = d.broadcast(shape), shape if d.chance(0.5) else d.broadcast(shape)
    return (first, second) if d.chance(0.5) else (second, first)


@generator("Add", "Sub", "Mul", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def arithmetic(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    draw = d.whole if is_integer(dtype) and d.chance(0.3) else d.array
    return Case([draw(dtype, a), draw(dtype, b)])


@generator("Equal", "And", "Or", "Xor")
def logic(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    bounds = (0, 2) if is_integer(dtype) else ()
    return Case([d.array(dtype, a, *bounds), d.array(dtype, b, *bounds)])


@generator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def bits(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    return Case([d.whole(dtype, a), d.whole(dtype, b)])


@generator("BitShift")
def shift(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    # Shifting by as many bits as there are, or more, is left open.
    amounts = d.array(dtype, b, 0, dtype.itemsize * 8 - 1)
    return Case([d.whole(dtype, a), amounts], {"direction": d.pick(["LEFT", "RIGHT"])})


@generator("Div")
def divide(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    return Case([d.array(dtype, a), _no_zeros(d, dtype, b)])


@generator("Mod")
def remainder(d: Draw) -> Case:
    dtype, (a, b) = d.type(), pair(d)
    fmod = 1 if not is_integer(dtype) else d.integer(0, 1)
    x, y = d.array(dtype, a), _no_zeros(d, dtype, b)
    if not is_integer(dtype):
        # Quotients near a whole number would make the result jump.
        x, y = (np.asarray(v.astype(F32) * 8).round().astype(dtype) for v in (x, y))
        y = np.where(y == 0, dtype.type(3), y)
    return Case([x, y], {"fmod": fmod if fmod or d.chance(0.5) else None})


@generator("Pow")
def power(d: Draw) -> Case:
    base, (a, b) = d.type("T"), pair(d)
    exponent = d.type("T1") if d.version >= 12 else base
    if is_integer(exponent):
        y = d.array(exponent, b, 0, 3)
    else:
        y = d.array(exponent, b, 0, 3)
        if is_integer(base):
            y = y.astype(F32).round().astype(exponent)
    x = d.array(base, a, 0, 5) if not is_integer(exponent) else d.array(base, a, -5, 5)
    return Case([x, y], tolerance=4)


@generator("PRelu")
def prelu(d: Draw) -> Case:
    dtype, shape = d.type(), d.shape()
    return Case([d.array(dtype, shape), d.array(dtype, d.broadcast(shape))])


@generator("Where")
def where(d: Draw) -> Case:
    dtype, shape = d.type(), d.shape()
    shapes = [d.broadcast(shape) for _ in range(3)]
    if d.chance(0.5):
        shapes[d.integer(0, 2)] = shape
    condition, x, y = shapes
    return Case([d.array(np.dtype(bool), condition), d.array(dtype, x), d.array(dtype, y)])


@generator("Sum", "Mean", "Max", "Min")
def variadic(d: Draw) -> Case:
    dtype, shape = d.type(), d.shape()
    shapes = [d.broadcast(shape) if d.chance(0.6) else shape for _ in range(d.integer(1, 5))]
    inputs = [d.array(dtype, s) for s in shapes]
    if d.operator in ("Max", "Min") and dtype in (F32, F64, F16, BF16) and d.chance(0.2):
        inputs = [np.asarray(np.where(d.rng.random(x.shape) < 0.1, dtype.type(np.nan), x)) for x in inputs]
    return Case(inputs)


@generator("SwiGLU")
def swiglu(d: Draw) -> Case:
    dtype, shape = d.type("T", FLOATS), d.shape()
    alpha = d.number(0.2, 2) if d.chance(0.6) else None
    return Case([d.array(dtype, shape), d.array(dtype, shape)], {"alpha": alpha})


def _no_zeros(d: Draw, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    values = d.array(dtype, shape)
    return np.asarray(np.where(values == 0, dtype.type(1), values))
