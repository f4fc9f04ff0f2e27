"""Elementwise operators of one input, and conversions."""

import numpy as np

from ..draw import BF16, F16, F32, F64, FLOATS, STRING, Case, Draw, element_of, generator, is_integer

_DOMAINS = {
    "Acos": (-1, 1),
    "Acosh": (1, 20),
    "Asin": (-1, 1),
    "Atanh": (-0.95, 0.95),
    "Log": (0.001, 50),
    "Sqrt": (0, 50),
    "Tan": (-1.4, 1.4),
    "Reciprocal": (0.05, 4),
}


@generator(
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor"),
    *("HardSwish", "IsNaN", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin"),
    *("Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Not", "BitwiseNot", "Identity"),
)
def plain(d: Draw) -> Case:
    variable = {"IsNaN": "T1", "Identity": "T" if d.version < 14 else "V"}.get(d.operator, "T")
    dtype = d.type(variable)
    return Case([_values(d, dtype)])


@generator("Celu", "Elu", "LeakyRelu", "ThresholdedRelu", "Swish")
def alpha(d: Draw) -> Case:
    value = d.number(0.1, 2) if d.chance(0.7) else None
    return Case([_values(d, d.type())], {"alpha": value})


@generator("Selu")
def selu(d: Draw) -> Case:
    attributes = {"alpha": d.number(0.5, 2), "gamma": d.number(0.5, 2)} if d.chance(0.6) else {}
    return Case([_values(d, d.type())], attributes)


@generator("HardSigmoid")
def hard_sigmoid(d: Draw) -> Case:
    attributes = {"alpha": d.number(0.05, 1), "beta": d.number(-1, 1)} if d.chance(0.6) else {}
    return Case([_values(d, d.type())], attributes)


@generator("Gelu")
def gelu(d: Draw) -> Case:
    # Further below 0 the reference's function of float32 cancels.
    x = d.array(d.type(), d.shape(), -2.5, 6)
    return Case([x], {"approximate": d.pick([None, "none", "tanh"])}, tolerance=20)


@generator("Shrink")
def shrink(d: Draw) -> Case:
    attributes = {"bias": d.number(0, 2), "lambd": d.number(0, 2)} if d.chance(0.7) else {}
    return Case([_values(d, d.type("T", FLOATS))], attributes)


@generator("IsInf")
def is_inf(d: Draw) -> Case:
    attributes = {"detect_negative": d.integer(0, 1), "detect_positive": d.integer(0, 1)}
    return Case([_values(d, d.type("T1"))], attributes if d.chance(0.7) else {})


@generator("Clip")
def clip(d: Draw) -> Case:
    dtype = d.type()
    x = d.array(dtype, d.shape())
    low, high = (None if d.chance(0.3) else d.array(dtype, [], -2, 4) for _ in range(2))
    if d.version >= 11:
        return Case([x, low, high])
    return Case(
        [x], {"min": None if low is None else float(low), "max": None if high is None else float(high)}
    )


@generator("Dropout")
def dropout(d: Draw) -> Case:
    x, ratio = d.array(d.type(), d.shape()), d.number(0, 0.9)
    outputs = d.integer(1, 2)
    # Before version 12 the standard does not say what the mask is where nothing is dropped; ONNX Runtime gives zeros.
    unspecified = (1,) if d.version < 12 else ()
    if d.version < 12:
        return Case([x], {"ratio": ratio}, outputs, unspecified=unspecified)
    training = np.asarray(d.chance(0.3))
    ratio = 0.0 if training else ratio
    return Case([x, np.asarray(ratio, d.type("T1")), training], {"seed": 3}, outputs)


@generator("Cast")
def cast(d: Draw) -> Case:
    source, target = d.type("T1"), d.type("T2")
    if STRING in (source, target):
        # How numbers are written is left to implementations, beyond what int64 and float leave open.
        pair = [STRING, d.pick([np.dtype(np.int64), np.dtype(np.int32), F32])]
        source, target = pair if d.chance(0.7) else [pair[1], STRING] if pair[1] != F32 else [STRING, STRING]
    return Case([_convertible(d, source, target)], {"to": element_of(target), **_rounding(d, target)})


@generator("CastLike")
def cast_like(d: Draw) -> Case:
    source, target = d.type("T1"), d.type("T2")
    while STRING in (source, target):
        source, target = d.type("T1"), d.type("T2")
    like = d.array(target, d.shape())
    return Case([_convertible(d, source, target), like], _rounding(d, target))


def _rounding(d: Draw, target: np.dtype) -> dict:
    return {"saturate": d.integer(0, 1)} if d.version >= 19 and "float8" in str(target) else {}


def _convertible(d: Draw, source: np.dtype, target: np.dtype) -> np.ndarray:
    """Values that the target type has, in whole numbers; what becomes of others is left open."""
    shape = d.shape()
    if source == STRING:
        numbers = d.integer(0, 1) and [str(i) for i in d.index(-50, 50, shape).ravel()]
        if target == F32:
            numbers = numbers or [str(d.number(-3, 3)) for _ in range(int(np.prod(shape)))]
        else:
            numbers = numbers or [str(i) for i in d.index(0, 9, shape).ravel()]
        return np.array(numbers, dtype=object).reshape(shape)
    integer = is_integer(target) or target == STRING
    if is_integer(source) and not integer:
        return d.array(source, shape)
    if integer and is_integer(source) and target != STRING:
        if _bits(target) >= 8:
            return d.whole(source, shape)
        return d.array(source, shape, 0, 1)
    if integer:
        low = 0 if str(target).startswith("u") else -2
        high = 1 if "2" == str(target)[-1] else 6
        return d.array(source, shape, low, high)
    return d.array(source, shape, -40, 40) if source.kind != "c" else d.array(source, shape)


def _bits(dtype: np.dtype) -> int:
    return 4 if str(dtype).endswith("int4") else 2 if str(dtype).endswith("int2") else dtype.itemsize * 8


def _values(d: Draw, dtype: np.dtype) -> np.ndarray:
    if d.operator in _DOMAINS:
        return d.array(dtype, d.shape(), *_DOMAINS[d.operator])
    if is_integer(dtype) and d.operator not in ("Relu", "Sign"):
        return d.whole(dtype, d.shape())
    values = d.array(dtype, d.shape())
    if dtype in (F32, F64, F16, BF16):
        values = (values * dtype.type(2)).astype(dtype)
        if d.operator in (
            "IsNaN",
            "IsInf",
            "Relu",
            "Neg",
            "Abs",
            "Identity",
            "Sigmoid",
            "Tanh",
            "Exp",
            "Erf",
        ):
            spoiled = d.rng.random(values.shape) < 0.2
            specials = np.asarray(d.rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], values.shape))
            values = np.where(spoiled, specials.astype(dtype), values)
    return np.asarray(values)
