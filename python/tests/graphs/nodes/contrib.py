"""Operators of ONNX Runtime's own domain, which its optimiser and its quantizer write."""

import ml_dtypes
import numpy as np
from properties.draw import F32

from ..evaluate import Reject
from ..scope import Scope
from . import emitter
from .products import scale
from .quantized import quantize
from .reductions import varied

DOMAIN = "com.microsoft"


def _tokens(s: Scope):
    x = s.tame(s.pick("f", 2, 3, lambda v: v.dtype == F32 and len({d[-1] for d in v.shapes}) == 1), 3)
    if not 0 < x.dim(-1) <= 64:
        raise Reject("too wide, or of no width")
    return x, x.dim(-1)


@emitter(1)
def gelu(s: Scope):
    x, n = _tokens(s)
    name = s.random.pick(["Gelu", "FastGelu", "QuickGelu", "BiasGelu", "FastGelu with bias"])
    if name == "QuickGelu":
        return s.emit(name, [x], domain=DOMAIN, alpha=1.702)
    biased = name in ("BiasGelu", "FastGelu with bias")
    return s.emit(name.split(" ")[0], [x, s.weights([n], F32) if biased else None], domain=DOMAIN)


@emitter(1)
def skip_normal(s: Scope):
    x, n = _tokens(s)
    if x.rank != 3:
        raise Reject("three dimensions")
    y = s.emit("Tanh", [x])
    varied(y)
    gain, shift = s.weights([n], F32), s.weights([n], F32)
    bias = s.weights([n], F32) if s.random.chance(0.5) else None
    if s.random.chance(0.5):
        return s.emit("SkipLayerNormalization", [x, y, gain, shift, bias], domain=DOMAIN, epsilon=1e-3)
    return s.emit("SkipSimplifiedLayerNormalization", [x, y, gain, bias], domain=DOMAIN, epsilon=1e-3)


@emitter(1)
def fused_product(s: Scope):
    x, k = _tokens(s)
    n = s.random.integer(1, 8)
    across = s.random.pick([None, 1])
    w = s.weights([n, k] if across else [k, n], F32, scale(k))
    return s.emit("FusedMatMul", [x, w], domain=DOMAIN, transB=across, alpha=s.random.pick([None, 0.5]))


@emitter(1)
def attention(s: Scope):
    x, k = _tokens(s)
    heads = next(h for h in (3, 2, 1) if k % h == 0)
    if x.rank != 3:
        raise Reject("three dimensions")
    q, key, v = (s.emit("MatMul", [x, s.weights([k, k], F32, scale(k))]) for _ in range(3))
    bias = s.weights([3 * k], F32) if s.random.chance(0.4) else None
    return s.emit("MultiHeadAttention", [q, key, v, bias], domain=DOMAIN, num_heads=heads)


@emitter(1)
def few_bits(s: Scope):
    """A product with a weight of four bits."""
    x, k = _tokens(s)
    n, block = s.random.integer(1, 9), s.random.pick([16, 32])
    blocks = -(-k // block)
    stored = s.random.array(np.dtype(np.uint8), [n, blocks, block // 2], 0, 255)
    steps = s.random.array(F32, [n, blocks], 0.01, 0.04)
    zeros = (
        s.random.array(np.dtype(np.uint8), [n, (blocks + 1) // 2], 0, 255) if s.random.chance(0.4) else None
    )
    inputs = [x, s.constant(stored), s.constant(steps), None if zeros is None else s.constant(zeros)]
    return s.emit("MatMulNBits", inputs, domain=DOMAIN, K=k, N=n, bits=4, block_size=block)


@emitter(1)
def whole(s: Scope):
    """Elementwise operators on quantized values."""
    x = s.tame(s.pick("f", 1, 4, lambda v: v.dtype == F32))
    kind = s.random.pick(["QLinearAdd", "QLinearMul", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearConcat"])
    q, step, zero = quantize(s, x)
    if kind in ("QLinearAdd", "QLinearMul"):
        y = s.emit("Tanh", [s.emit("DequantizeLinear", [q, step, zero])])
        r, other, other_zero = quantize(s, y, q.dtype)
        exact = [
            x_ + y_ if kind == "QLinearAdd" else x_ * y_
            for x_, y_ in zip(_back(q, step, zero), _back(r, other, other_zero))
        ]
        size, point = _output(s, exact, q.dtype)
        made = s.emit(kind, [q, step, zero, r, other, other_zero, size, point], domain=DOMAIN)
    elif kind == "QLinearConcat":
        exact = _back(q, step, zero)
        size, point = _output(s, exact, q.dtype)
        made = s.emit(kind, [size, point, q, step, zero, q, step, zero], domain=DOMAIN, axis=0)
    else:
        back = _back(q, step, zero)
        exact = [
            1 / (1 + np.exp(-b)) if kind == "QLinearSigmoid" else np.where(b < 0, b * 0.1, b) for b in back
        ]
        size, point = _output(s, exact, q.dtype)
        attributes = {"alpha": 0.1} if kind == "QLinearLeakyRelu" else {}
        made = s.emit(kind, [q, step, zero, size, point], domain=DOMAIN, **attributes)
    return s.emit("DequantizeLinear", [made, size, point])


def _back(q, step, zero) -> list[np.ndarray]:
    return [
        (a.astype(np.float64) - float(z)) * float(t) for a, t, z in zip(q.arrays, step.arrays, zero.arrays)
    ]


def _output(s: Scope, exact: list[np.ndarray], dtype):
    """A step of the output that leaves no element halfway between two."""
    largest = max((np.abs(a).max(initial=0.0) for a in exact), default=1.0)
    for _ in range(8):
        step = np.float32(max(largest, 0.1) / s.random.number(50, 110))
        scaled = [a / float(step) - 0.5 for a in exact]
        if all(a.size == 0 or np.abs(a - np.round(a)).min() > 2e-3 for a in scaled):
            return s.constant(step), s.constant(np.asarray(128 if dtype == np.uint8 else 0, dtype))
    raise Reject("an element is near a step")


@emitter(0.7)
def blocked(s: Scope):
    """A weight of four bits behind DequantizeLinear, with a step for each block."""
    x, k = _tokens(s)
    if s.model.opset < 21:
        raise Reject("blocks")
    n, block = s.random.integer(1, 8), s.random.pick([2, 4, 16])
    stored = s.random.array(np.dtype(np.int64), [k, n], -8, 7).astype(ml_dtypes.int4)
    steps = s.random.array(F32, [-(-k // block), n], 0.02, 0.1)
    w = s.emit("DequantizeLinear", [s.constant(stored), s.constant(steps)], axis=0, block_size=block)
    return s.emit("MatMul", [x, w])
