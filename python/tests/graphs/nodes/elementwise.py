"""Operators of one, two or any number of elements."""

import numpy as np
from onnx import helper
from properties.draw import F16, F32, F64, I64

from ..evaluate import Reject
from ..scope import Scope, Value
from . import emitter
from .stable import away, away_from_integers, differ

_SMOOTH = [
    "Relu",
    "Sigmoid",
    "Tanh",
    "Abs",
    "Neg",
    "Erf",
    "Softplus",
    "Softsign",
    "Sin",
    "Cos",
    "Atan",
    "Identity",
]
_WITH_ALPHA = ["LeakyRelu", "Elu", "Celu"]
_NEWER = {"HardSwish": 14, "Mish": 18, "Gelu": 20, "Swish": 24}


@emitter(4)
def smooth(s: Scope):
    x = s.pick("f")
    newer = [name for name, since in _NEWER.items() if since <= s.model.opset]
    name = s.random.pick([*_SMOOTH, *newer, "HardSigmoid", "Selu", "Dropout"])
    if name == "Gelu":
        return s.emit(name, [x], approximate=s.random.pick([None, "tanh"]))
    if name == "HardSigmoid":
        return s.emit(name, [x], alpha=s.random.pick([None, 1 / 6]))
    return s.emit(name, [x])


@emitter(1)
def with_alpha(s: Scope):
    alpha = s.random.pick([None, 0.1, 0.5])
    return s.emit(s.random.pick(_WITH_ALPHA), [s.pick("f")], alpha=alpha)


@emitter(1)
def guarded(s: Scope):
    """Functions that are steep near 0, of numbers that are not there."""
    x = s.tame(s.pick("f"), 3)
    name = s.random.pick(["Sqrt", "Log", "Reciprocal", "Exp", "Sqrt"])
    if name == "Exp":
        return s.emit("Exp", [x])
    positive = s.emit("Mul", [x, x]) if s.random.chance(0.5) else s.emit("Abs", [x])
    return s.emit(name, [s.emit("Add", [positive, np.asarray(s.random.pick([0.5, 1.0]), x.dtype)])])


@emitter(1)
def stepped(s: Scope):
    x = s.pick("f")
    name = s.random.pick(["Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink"])
    if name == "Sign":
        return s.emit(name, [away(x, 0)])
    if name == "ThresholdedRelu":
        return s.emit(name, [away(x, 0.25)], alpha=0.25)
    if name == "Shrink":
        return s.emit(name, [away(x, -0.5, 0.5)], lambd=0.5, bias=s.random.pick([None, 0.25]))
    return s.emit(name, [away_from_integers(x, 0.5 if name == "Round" else 0.0)])


@emitter(1)
def clip(s: Scope):
    x = s.pick("f" if s.random.chance(0.8) else "i")
    low = np.asarray(s.random.pick([-1, 0]), x.dtype) if s.random.chance(0.8) else None
    high = np.asarray(s.random.pick([1, 6]), x.dtype) if s.random.chance(0.8) else None
    return s.emit("Clip", [x, low, high])


def partner(s: Scope, x: Value) -> Value:
    """What broadcasts with `x`: another value or a weight."""
    random = s.random

    def fits(v: Value) -> bool:
        if v.dtype != x.dtype:
            return False
        try:
            return all(
                np.broadcast_shapes(a, b) and np.prod(np.broadcast_shapes(a, b)) <= 1500
                for a, b in zip(v.shapes, x.shapes)
            )
        except ValueError:
            return False

    if random.chance(0.6):
        found = [v for v in s.visible() if fits(v)]
        if found:
            return random.pick(found)
    shape = [d[0] if len(set(d)) == 1 and not random.chance(0.3) else 1 for d in zip(*x.shapes)]
    shape = shape[random.integer(0, len(shape)) if random.chance(0.4) else 0 :]
    if x.dtype.kind == "f":
        return s.weights(shape, x.dtype)
    low = 0 if x.dtype.kind == "u" else -5
    return s.weight(random.array(x.dtype, shape, low, 5))


@emitter(6)
def binary(s: Scope):
    x = s.pick("f" if s.random.chance(0.85) else "i")
    y = partner(s, x)
    name = s.random.pick(["Add", "Add", "Mul", "Mul", "Sub", "Min", "Max", "Div", "PRelu", "Pow"])
    if name in ("Mul", "Div") and x.dtype.kind == "f":
        x, y = s.tame(x), s.tame(y)
    if name == "PRelu":
        shape = [d[0] if len(set(d)) == 1 else 1 for d in zip(*x.shapes)]
        keep = s.random.integer(0, len(shape))
        if x.dtype.kind != "f":
            raise Reject("PRelu of whole numbers")
        return s.emit("PRelu", [x, s.weights([1] * keep + shape[keep:], x.dtype)])
    if name == "Pow":
        if x.dtype.kind != "f":
            raise Reject("Pow of whole numbers")
        x = s.tame(x, 3)
        power = s.random.pick([2.0, 3.0, 0.5, -1.0, 1.0])
        if power in (0.5, -1.0):
            x = s.emit("Add", [s.emit("Abs", [x]), np.asarray(1, x.dtype)])
        return s.emit("Pow", [x, np.asarray(power, x.dtype)])
    if name == "Div":
        if x.dtype.kind != "f":
            y = s.constant(np.asarray(s.random.pick([2, 3, 7]), x.dtype))
        elif y.constant or s.random.chance(0.5):
            y = s.emit("Add", [s.emit("Abs", [y]), np.asarray(1, x.dtype)])
        else:
            y = s.emit("Exp", [s.emit("Tanh", [y])])
    if s.random.chance(0.3) and name != "Div":
        x, y = y, x
    return s.emit(name, [x, y])


@emitter(1)
def variadic(s: Scope):
    x = s.tame(s.pick("f"))
    others = [partner(s, x) for _ in range(s.random.integer(0, 3))]
    return s.emit(s.random.pick(["Sum", "Mean", "Max", "Min"]), [x, *others])


@emitter(2)
def compare(s: Scope):
    x = s.pick("f" if s.random.chance(0.7) else "i")
    y = partner(s, x)
    name = s.random.pick(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"])
    if x.dtype.kind == "f":
        differ(_wide(x, y), y)
    return s.emit(name, [x, y])


def _wide(x: Value, y: Value) -> Value:
    """`x` with the shape of both, for a comparison by hand."""
    return Value(
        "", [np.broadcast_to(a, np.broadcast_shapes(a.shape, b.shape)) for a, b in zip(x.arrays, y.arrays)]
    )


@emitter(2)
def where(s: Scope):
    x = s.pick("f" if s.random.chance(0.7) else "i")
    y = partner(s, x)
    shapes = [np.broadcast_shapes(a, b) for a, b in zip(x.shapes, y.shapes)]

    def fits(v: Value) -> bool:
        try:
            return all(np.prod(np.broadcast_shapes(a, b)) <= 1500 for a, b in zip(v.shapes, shapes))
        except ValueError:
            return False

    found = [v for v in s.visible() if v.dtype == np.bool_ and fits(v)]
    if found and s.random.chance(0.7):
        condition = s.random.pick(found)
    else:
        sizes = [d[0] if len(set(d)) == 1 else 1 for d in zip(*shapes)]
        condition = s.weight(s.random.array(np.dtype(np.bool_), sizes[s.random.integer(0, len(sizes)) :]))
    return s.emit("Where", [condition, x, y])


@emitter(1)
def logic(s: Scope):
    x = s.pick("b")
    if s.random.chance(0.3):
        return s.emit("Not", [x])
    shape = [d[0] if len(set(d)) == 1 else 1 for d in zip(*x.shapes)]
    y = s.weight(s.random.array(np.dtype(np.bool_), shape))
    return s.emit(s.random.pick(["And", "Or", "Xor", "Equal"]), [x, y])


@emitter(2)
def cast(s: Scope):
    x = s.pick("fiub")
    target = s.random.pick(
        [F32, F32, F16, F64, I64, np.dtype(np.int32), np.dtype(np.bool_), np.dtype(np.uint8)]
    )
    if x.dtype.kind == "f" and target.kind == "b":
        away(x, 0)
    elif x.dtype.kind == "f" and target.kind in "iu":
        if target.kind == "u":
            x = s.emit("Abs", [x])
        away_from_integers(x)
        if x.largest > 100:
            raise Reject("too large for the type")
    elif target.kind == "u" and any(a.size and (a.min() < 0 or a.max() > 255) for a in x.arrays):
        raise Reject("too large for the type")
    y = s.cast(x, target)
    if target != s.model.main and s.random.chance(0.7):
        return s.cast(y, s.model.main)
    return y


@emitter(0.7)
def cast_like(s: Scope):
    if s.model.opset < 15:
        raise Reject("CastLike")
    return s.emit(
        "CastLike", [s.pick("fiub", accept=lambda v: v.largest < 100 and v.dtype.kind != "f"), s.pick("f")]
    )


@emitter(0.7)
def integers(s: Scope):
    """From floats to whole numbers, bits and back."""
    x = away_from_integers(s.tame(s.pick("f"), 20))
    y = s.cast(x, s.random.pick([I64, np.dtype(np.int32)]))
    if s.random.chance(0.5):
        y = s.emit("Mod", [y, np.asarray(s.random.integer(2, 5), y.dtype)])
    elif s.model.opset >= 18:
        y = s.emit(s.random.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [y, np.asarray(5, y.dtype)])
    return (
        s.emit("Cast", [y], to=helper.np_dtype_to_tensor_dtype(s.model.main)) if s.random.chance(0.6) else y
    )
