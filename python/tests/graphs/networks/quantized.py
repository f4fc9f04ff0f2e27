"""Networks of whole numbers, as quantizers write them: each operator between DequantizeLinear and
QuantizeLinear."""

from __future__ import annotations

import numpy as np
from properties.draw import F32, I64

from ..evaluate import Reject
from ..nodes.products import scale
from ..nodes.quantized import quantize
from ..scope import Scope, Value

_I8 = np.dtype(np.int8)


def around(s: Scope, x: Value, margin: float = 0.0) -> Value:
    """`x` in steps."""
    return s.emit("DequantizeLinear", list(quantize(s, x, s.model.activations, margin)))


def weight(s: Scope, shape: list[int], size: float, axis: int | None = 0) -> tuple[Value, np.ndarray]:
    """Stored weights with a step for all of them or for each of an axis; and the steps."""
    random = s.random
    stored = s.weight(random.array(_I8, shape, -127, 127))
    if axis is None or random.chance(0.4):
        zero = np.int8(0) if random.chance(0.8) else None
        step = np.float32(size / 127)
        return s.emit("DequantizeLinear", [stored, s.weight(step), zero]), step
    count = shape[axis]
    steps = (random.array(F32, [count], 0.5, 1.0) * np.float32(size / 127)).astype(np.float32)
    zeros = np.zeros([count], np.int8) if random.chance(0.8) else None
    return s.emit("DequantizeLinear", [stored, s.weight(steps), zeros], axis=axis), steps


def convolved(s: Scope, x: Value, maps: int, kernel: int, group: int = 1, **attributes) -> Value:
    """A convolution with a bias in the steps of its sums."""
    w, steps = weight(
        s, [maps, x.dim(1) // group, kernel, kernel], scale(x.dim(1) // group * kernel * kernel)
    )
    attributes |= {
        "kernel_shape": [kernel] * 2,
        "pads": [kernel // 2] * 4,
        "group": group if group > 1 else None,
    }
    b = None
    if s.random.chance(0.8):
        node = next((n for n in s.nodes if x.name in n.output and n.op_type == "DequantizeLinear"), None)
        if node is not None:
            sums = (s.model.values[node.input[1]].arrays[0] * steps).astype(np.float32)
            stored = s.random.array(np.dtype(np.int32), [maps], -4000, 4000)
            zero = np.zeros(sums.shape, np.int32) if s.random.chance(0.5) else None
            along = {"axis": 0} if sums.ndim else {}
            b = s.emit("DequantizeLinear", [s.weight(stored), s.weight(sums), zero], **along)
    return s.emit("Conv", [x, w, b], **attributes)


def conv(s: Scope, x: Value) -> Value:
    random, c = s.random, x.dim(1)
    kernel = random.pick([1, 1, 3, 3, 5])
    deep = random.chance(0.3)
    maps = c if deep else random.pick([3, 4, 8, 8, 16, 20])
    y = convolved(s, x, maps, kernel, c if deep else 1, strides=[random.pick([1, 1, 2])] * 2)
    act = random.pick(["", "Relu", "Relu", "Clip", "HardSwish", "SiLU"])
    if act == "Relu":
        y = s.emit("Relu", [y])
    elif act == "Clip":
        y = s.emit("Clip", [y, np.float32(0), np.float32(6)])
    elif act == "HardSwish":
        y = s.emit("Mul", [y, s.emit("HardSigmoid", [y], alpha=1 / 6)])
    elif act == "SiLU":
        y = around(s, y)
        y = s.emit("Mul", [y, around(s, s.emit("Sigmoid", [y]))])
    return around(s, y)


def residual(s: Scope, x: Value) -> Value:
    c = x.dim(1)
    y = around(s, convolved(s, x, c, 3))
    y = s.emit("Add", [y, x] if s.random.chance(0.5) else [x, y])
    if s.random.chance(0.5):
        y = s.emit("Relu", [y])
    return around(s, y)


def pooled(s: Scope, x: Value) -> Value:
    kind = s.random.pick(["MaxPool", "AveragePool"])
    return around(
        s, s.emit(kind, [x], kernel_shape=[3, 3], strides=[s.random.integer(1, 2)] * 2, pads=[1] * 4)
    )


def joined(s: Scope, x: Value) -> Value:
    y = s.emit("Concat", [conv(s, x), x], axis=1) if s.random.chance(0.3) else None
    if y is None:
        side = around(s, s.emit("Sigmoid", [x]))
        y = s.emit("Concat", [x, side], axis=1)
    return around(s, y)


def scaled(s: Scope, x: Value) -> Value:
    """Each channel by a number of the whole image."""
    c = x.dim(1)
    y = around(s, s.emit("GlobalAveragePool", [x]))
    y = convolved(s, y, c, 1)
    return around(s, s.emit("Mul", [x, around(s, s.emit("HardSigmoid", [around(s, y)]))]))


def larger(s: Scope, x: Value) -> Value:
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return around(s, s.emit("Resize", [x, None, np.array([1, 1, 2, 2], np.float32)], **attributes))


def moved(s: Scope, x: Value) -> Value:
    y = s.emit("Transpose", [x], perm=[0, 2, 3, 1])
    y = around(s, y) if s.random.chance(0.6) else y
    k, n = y.dim(3), s.random.pick([4, 8, 12])
    y = around(s, s.emit("MatMul", [y, weight(s, [k, n], scale(k), 1)[0]]))
    y = s.emit("Add", [y, s.weights([n], F32)]) if s.random.chance(0.6) else y
    return around(s, s.emit("Transpose", [y], perm=[0, 3, 1, 2]))


def classes(s: Scope, x: Value) -> Value:
    y = around(s, s.emit("GlobalAveragePool", [x]))
    y = s.emit("Flatten", [y]) if s.random.chance(0.6) else s.emit("Reshape", [y, np.array([0, -1], I64)])
    k, n = x.dim(1), s.random.integer(3, 9)
    if s.random.chance(0.6):
        y = s.emit("Gemm", [y, weight(s, [n, k], scale(k))[0], s.weights([n], F32)], transB=1)
    else:
        y = s.emit("Add", [s.emit("MatMul", [y, weight(s, [k, n], scale(k), 1)[0]]), s.weights([n], F32)])
    # A bias may be rounded to the steps of the sums.
    y = around(s, y, 0.01)
    return s.emit("Softmax", [y], axis=-1) if s.random.chance(0.5) else y


BLOCKS = [conv, conv, conv, residual, residual, pooled, joined, scaled, larger, moved]


def start(s: Scope, x: Value) -> Value:
    if x.dtype != F32 or any(np.prod(d[2:]) > 300 for d in x.shapes):
        raise Reject("too large for steps that roundings do not decide")
    return around(s, x)
