"""Parts that blocks share, in the ways exporters write them."""

from __future__ import annotations

import numpy as np
from properties.draw import F32

from ..evaluate import Reject
from ..nodes.products import scale
from ..nodes.quantized import decided, quantize
from ..scope import Scope, Value


def number(x: Value, value: float) -> np.ndarray:
    return np.asarray(value, x.dtype)


def activated(s: Scope, x: Value, name: str | None = None) -> Value:
    name = name or s.random.pick(
        [
            "Relu",
            "Relu",
            "Relu6",
            "SiLU",
            "HardSwish",
            "HardSwish by parts",
            "Mish",
            "LeakyRelu",
            "PRelu",
            "Gelu",
            "Sigmoid",
            "",
        ]
    )
    if name == "Relu6":
        return s.emit("Clip", [x, number(x, 0), number(x, 6)])
    if name == "SiLU":
        gate = s.emit("Sigmoid", [x])
        return s.emit("Mul", [x, gate] if s.random.chance(0.7) else [gate, x])
    if name == "HardSwish":
        return s.emit("Mul", [x, s.emit("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])
    if name == "HardSwish by parts":
        gate = s.emit("Clip", [s.emit("Add", [x, number(x, 3)]), number(x, 0), number(x, 6)])
        return s.emit("Div", [s.emit("Mul", [x, gate]), number(x, 6)])
    if name == "Mish":
        return s.emit("Mul", [x, s.emit("Tanh", [s.emit("Softplus", [x])])])
    if name == "PRelu":
        slopes = [x.dim(1), *[1] * (x.rank - 2)] if x.rank > 1 else [1]
        return s.emit("PRelu", [x, s.weights(slopes, x.dtype, 0.3)])
    if name == "Gelu":
        return gelu(s, x)
    return s.emit(name, [x]) if name else x


def gelu(s: Scope, x: Value) -> Value:
    kind = s.random.pick(["erf", "erf", "erf half first", "tanh", "sigmoid", "op"])
    if kind == "op" and s.model.opset >= 20:
        return s.emit("Gelu", [x], approximate=s.random.pick([None, "tanh"]))
    if kind == "tanh":
        cubic = s.emit("Mul", [s.emit("Pow", [x, number(x, 3)]), number(x, 0.044715)])
        inner = s.emit("Mul", [s.emit("Add", [x, cubic]), number(x, 0.7978845608)])
        gate = s.emit("Add", [s.emit("Tanh", [inner]), number(x, 1)])
        return s.emit("Mul", [s.emit("Mul", [x, number(x, 0.5)]), gate])
    if kind == "sigmoid":
        return s.emit("Mul", [x, s.emit("Sigmoid", [s.emit("Mul", [x, number(x, 1.702)])])])
    erf = s.emit("Erf", [s.emit("Div", [x, number(x, np.sqrt(2.0))])])
    gate = s.emit("Add", [erf, number(x, 1)])
    if kind == "erf half first":
        return s.emit("Mul", [s.emit("Mul", [x, number(x, 0.5)]), gate])
    return s.emit("Mul", [s.emit("Mul", [x, gate]), number(x, 0.5)])


def conv(
    s: Scope,
    x: Value,
    maps: int,
    kernel: int = 1,
    stride: int = 1,
    group: int = 1,
    act: str | None = "",
    norm: bool | None = None,
) -> Value:
    """A convolution with its normalisation and activation; now and then quantized."""
    random, channels = s.random, x.dim(1)
    spatial = x.rank - 2
    per = channels // group
    attributes: dict = {
        "kernel_shape": [kernel] * spatial,
        "strides": [stride] * spatial,
        "pads": [kernel // 2] * 2 * spatial,
    }
    if group > 1:
        attributes["group"] = group
    norm = random.chance(0.4) if norm is None else norm
    shape = [maps, per, *[kernel] * spatial]
    size = scale(per * kernel**spatial)
    bias = None if norm and random.chance(0.8) else s.weights([maps], x.dtype, 0.5)
    if x.dtype == F32 and not s.model.halves and random.chance(0.12):
        # A bias may be rounded to the steps of the sums, and decide the steps of what follows.
        bias, norm = None, False
        step = np.full([maps], size / 127, np.float32) * random.array(F32, [maps], 0.8, 1.2)
        stored = s.weight(random.array(np.dtype(np.int8), shape, -127, 127))
        w = s.emit("DequantizeLinear", [stored, s.weight(step), np.zeros([maps], np.int8)], axis=0)
        x = s.emit("DequantizeLinear", list(quantize(s, x)))
    else:
        w = s.weights(shape, x.dtype, size)
    y = s.emit("Conv", [x, w, bias], **attributes)
    if norm:
        gain, mean = s.weights([maps], x.dtype, 1.0), s.weights([maps], x.dtype, 0.5)
        shift = s.weights([maps], x.dtype, 0.5)
        variance = s.constant(random.array(F32, [maps], 0.5, 1.5).astype(x.dtype))
        y = s.emit("BatchNormalization", [y, gain, shift, mean, variance], epsilon=1e-3)
    return s.tame(activated(s, y, act) if act != "" else y, 8)


def linear(s: Scope, x: Value, n: int, bias: bool = True) -> Value:
    """A product with a weight, as MatMul, MatMul with a transposed weight, or Gemm between reshapes."""
    random, k = s.random, x.dim(-1)
    size = scale(k)
    kind = random.pick(["matmul", "matmul", "transposed", "gemm", "quantized", "dynamic"])
    if kind == "gemm" and x.rank > 1:
        flat = s.reshape(x, [[int(np.prod(d[:-1])), k] for d in x.shapes])
        w = s.weights([n, k], x.dtype, size)
        y = s.emit("Gemm", [flat, w, s.weights([n], x.dtype) if bias else None], transB=1)
        return s.reshape(y, [[*d[:-1], n] for d in x.shapes])
    if kind == "dynamic" and x.dtype == F32 and x.rank > 1:
        return _dynamic(s, x, n, bias)
    if kind == "transposed":
        w = s.emit("Transpose", [s.weights([n, k], x.dtype, size)], perm=[1, 0])
    elif kind == "quantized" and x.dtype == F32:
        stored = s.weight(random.array(np.dtype(np.int8), [k, n], -127, 127))
        w = s.emit("DequantizeLinear", [stored, np.float32(size / 127), np.int8(0)])
        if random.chance(0.6):
            x = s.emit("DequantizeLinear", list(quantize(s, x)))
    else:
        w = s.weights([k, n], x.dtype, size)
    y = s.emit("MatMul", [x, w])
    if bias:
        b = s.weights([n], x.dtype)
        y = s.emit("Add", [b, y] if random.chance(0.4) else [y, b])
    return y


def _dynamic(s: Scope, x: Value, n: int, bias: bool) -> Value:
    """The values in steps that each run chooses."""
    k = x.dim(-1)
    for a in x.arrays:
        low, high = min(float(a.min()), 0.0), max(float(a.max()), 0.0)
        step = (high - low) / 255
        middle = abs(abs(low / step) % 1 - 0.5) if step else 0.0
        if middle < 1e-2 or not decided(a, step):
            raise Reject("an element is near a step")
    y, step, zero = s.emit("DynamicQuantizeLinear", [x], 3)
    stored = s.weight(s.random.array(np.dtype(np.int8), [k, n], -127, 127))
    size = np.full([n], scale(k) / 127, np.float32) if s.random.chance(0.5) else np.float32(scale(k) / 127)
    y = s.cast(s.emit("MatMulInteger", [y, stored, zero]), F32)
    y = s.emit("Mul", [y, s.emit("Mul", [step, size])])
    return s.emit("Add", [y, s.weights([n], F32)]) if bias else y


def layer_norm(s: Scope, x: Value) -> Value:
    """Over the last axis; as one operator or as its parts."""
    n, random = x.dim(-1), s.random
    for a in x.arrays:
        if a.size and np.std(a.astype(np.float64), axis=-1).min() < 0.05:
            x = s.emit("Add", [x, s.constant(random.array(x.dtype, [n]))])
            break
    gain, bias = s.weights([n], x.dtype), s.weights([n], x.dtype, 0.5)
    kind = random.pick(["op", "parts", "parts", "rms", "rms op"])
    if kind == "rms op" and s.model.opset >= 23:
        return s.emit("RMSNormalization", [x, gain], epsilon=1e-3)
    if kind in ("rms", "rms op"):
        square = s.emit("Pow", [x, number(x, 2)]) if random.chance(0.6) else s.emit("Mul", [x, x])
        mean = s.axes("ReduceMean", square, [-1], since=18)
        root = s.emit("Sqrt", [s.emit("Add", [mean, number(x, 1e-3)])])
        if random.chance(0.5):
            y = s.emit("Mul", [x, s.emit("Reciprocal", [root])])
        else:
            y = s.emit("Div", [x, root])
        return s.emit("Mul", [gain, y] if random.chance(0.5) else [y, gain])
    if kind == "op" and s.model.opset >= 17:
        return s.emit("LayerNormalization", [x, gain, bias], axis=-1, epsilon=random.pick([None, 1e-3]))
    centred = s.emit("Sub", [x, s.axes("ReduceMean", x, [-1], since=18)])
    square = (
        s.emit("Pow", [centred, number(x, 2)]) if random.chance(0.7) else s.emit("Mul", [centred, centred])
    )
    variance = s.axes("ReduceMean", square, [-1], since=18)
    root = s.emit("Sqrt", [s.emit("Add", [variance, number(x, 1e-3)])])
    return s.emit("Add", [s.emit("Mul", [s.emit("Div", [centred, root]), gain]), bias])
