"""Quantized values, weights and products."""

import numpy as np
from properties.draw import F32

from ..evaluate import Reject
from ..scope import Scope, Value
from . import emitter
from .products import image
from .stable import away_from_integers

_TYPES = (np.dtype(np.uint8), np.dtype(np.int8))


def _step(x: Value) -> np.float32:
    return np.float32(max(x.largest, 0.1) / 120)


def quantize(s: Scope, x: Value, dtype=None, margin: float = 0.0) -> tuple[Value, Value, Value]:
    """`x` in steps that no roundings decide, the step and the zero point. `margin`: how far from the middle
    between two steps at least, in steps."""
    if s.model.halves:
        raise Reject("roundings of float16 decide")
    if x.dtype != F32:
        x = s.cast(x, F32)
    dtype = np.dtype(dtype or s.random.pick(_TYPES))
    for _ in range(5):
        step = np.float32(_step(x) * s.random.number(1.0, 1.3))
        if all(decided(a, float(step), margin) for a in x.arrays):
            break
    else:
        raise Reject("an element is near a step")
    zero = np.asarray(128 if dtype == np.uint8 else s.random.integer(-3, 3), dtype)
    scale, point = s.weight(np.asarray(step)), s.weight(zero)
    return s.emit("QuantizeLinear", [x, scale, point]), scale, point


def decided(a: np.ndarray, step: float, margin: float = 0.0) -> bool:
    """Whether no element is as near to the middle between two steps as sums in another order are."""
    scaled = a.astype(np.float64) / step - 0.5
    least = max(margin, 3e-6 * np.abs(a).max(initial=0) / step, 3e-6)
    return a.size == 0 or np.abs(scaled - np.round(scaled)).min() > least


def _finish(s: Scope, y: Value) -> Value:
    return s.cast(y, s.model.main) if s.model.main != y.dtype else y


@emitter(2)
def around(s: Scope):
    """There and back."""
    y = s.emit("DequantizeLinear", list(quantize(s, s.tame(s.pick("f")))))
    return _finish(s, y)


@emitter(0.7)
def dynamic(s: Scope):
    x = s.pick("f", accept=lambda v: v.dtype == F32)
    for a in x.arrays:
        low, high = min(float(a.min()), 0.0), max(float(a.max()), 0.0)
        step = (high - low) / 255
        if step == 0 or abs(low / step - np.floor(low / step) - 0.5) < 1e-3:
            raise Reject("an element is near a step")
        away_from_integers(Value("", [a]), 0.5, step)
    y, scale, zero = s.emit("DynamicQuantizeLinear", [x], 3)
    if x.rank >= 2 and s.random.chance(0.6):
        k = x.dim(-1)
        w = s.weight(s.random.array(np.dtype(np.int8), [k, s.random.integer(1, 6)], -60, 60))
        product = s.cast(s.emit("MatMulInteger", [y, w, zero]), F32)
        return s.emit("Mul", [product, s.emit("Mul", [scale, np.float32(0.01)])])
    return s.emit("DequantizeLinear", [y, scale, zero])


@emitter(1.5)
def conv(s: Scope):
    """A convolution between DequantizeLinear and QuantizeLinear, in whole numbers, or as one operator."""
    random = s.random
    x, scale, zero = quantize(s, image(s, 4))
    channels, maps = x.dim(1), random.integer(1, 6)
    kernel = random.pick([[1, 1], [3, 3]])
    pads = [k // 2 for k in kernel] * 2
    group = channels if random.chance(0.3) else 1
    maps = maps if group == 1 else channels
    stored = s.weight(random.array(np.dtype(np.int8), [maps, channels // group, *kernel], -100, 100))
    w_step = s.weight(random.array(F32, [maps], 0.002, 0.01) if random.chance(0.5) else np.float32(0.006))
    attributes = {"pads": pads, "group": group if group > 1 else None}
    if random.chance(0.3):
        return s.cast(s.emit("ConvInteger", [x, stored, zero], **attributes), F32)
    zeros = s.constant(np.zeros(w_step.shape, np.int8))
    per_map = {"axis": 0} if w_step.rank else {}
    w = s.emit("DequantizeLinear", [stored, w_step, zeros], **per_map)
    y = s.emit("Conv", [s.emit("DequantizeLinear", [x, scale, zero]), w], **attributes)
    if random.chance(0.4):
        y = s.emit("Relu", [y])
    q, y_scale, y_zero = quantize(s, y)
    if random.chance(0.3) and x.dtype == q.dtype:
        q = s.emit("QLinearConv", [x, scale, zero, stored, w_step, zeros, y_scale, y_zero], **attributes)
    return _finish(s, s.emit("DequantizeLinear", [q, y_scale, y_zero]))


@emitter(1.5)
def matmul(s: Scope):
    random = s.random
    x, scale, zero = quantize(s, s.tame(s.pick("f", 2, 3)))
    k, n = x.dim(-1), random.integer(1, 6)
    if k > 64:
        raise Reject("too wide")
    stored = s.weight(random.array(np.dtype(np.int8), [k, n], -100, 100))
    w_step, w_zero = s.weight(np.float32(0.006)), s.constant(np.int8(0))
    if random.chance(0.3):
        return s.cast(s.emit("MatMulInteger", [x, stored, zero, w_zero]), F32)
    w = s.emit("DequantizeLinear", [stored, w_step, w_zero])
    y = s.emit("MatMul", [s.emit("DequantizeLinear", [x, scale, zero]), w])
    q, y_scale, y_zero = quantize(s, y)
    if random.chance(0.3) and x.dtype == q.dtype:
        q = s.emit("QLinearMatMul", [x, scale, zero, stored, w_step, w_zero, y_scale, y_zero])
    return _finish(s, s.emit("DequantizeLinear", [q, y_scale, y_zero]))
