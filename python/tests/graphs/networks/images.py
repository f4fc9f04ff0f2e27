"""Blocks of networks for images: N, C, H, W in and out."""

from __future__ import annotations

import numpy as np
from properties.draw import F32, I64

from ..evaluate import Reject
from ..nodes.stable import apart, away
from ..scope import Scope, Value
from .parts import activated, conv, gelu, layer_norm, linear, number


def _act(s: Scope) -> str:
    return s.random.pick(
        [
            "Relu",
            "Relu",
            "Relu6",
            "SiLU",
            "HardSwish",
            "HardSwish by parts",
            "LeakyRelu",
            "Mish",
            "PRelu",
            "Gelu",
        ]
    )


def _width(s: Scope) -> int:
    return s.random.pick([4, 6, 8, 8, 16, 16, 17, 24, 32, 32, 64])


def stem(s: Scope, x: Value) -> Value:
    y = conv(s, x, _width(s), s.random.pick([3, 3, 5, 7]), s.random.pick([1, 2]), act=_act(s))
    if s.random.chance(0.3):
        return s.emit("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    return y


def plain(s: Scope, x: Value) -> Value:
    return conv(s, x, _width(s), s.random.pick([1, 3]), s.random.pick([1, 1, 2]), act=_act(s))


def residual(s: Scope, x: Value) -> Value:
    maps = x.dim(1) if s.random.chance(0.6) else _width(s)
    stride = 1 if maps == x.dim(1) else s.random.pick([1, 2])
    act = _act(s)
    y = conv(s, x, maps, 3, stride, act=act)
    y = conv(s, y, maps, 3)
    short = x if maps == x.dim(1) and stride == 1 else conv(s, x, maps, 1, stride)
    return activated(s, s.emit("Add", [y, short] if s.random.chance(0.5) else [short, y]), act)


def bottleneck(s: Scope, x: Value) -> Value:
    c = x.dim(1)
    y = conv(s, conv(s, x, max(c // 2, 1), 1, act="Relu"), max(c // 2, 1), 3, act="Relu")
    return s.emit("Relu", [s.emit("Add", [conv(s, y, c, 1), x])])


def excite(s: Scope, x: Value) -> Value:
    c = x.dim(1)
    if s.random.chance(0.5):
        y = s.emit("GlobalAveragePool", [x])
    else:
        y = s.axes("ReduceMean", x, [2, 3], since=18, keepdims=1)
    y = conv(s, y, max(c // 4, 1), 1, act="Relu", norm=False)
    y = conv(s, y, c, 1, act=s.random.pick(["Sigmoid", "HardSigmoid"]), norm=False)
    return s.emit("Mul", [x, y] if s.random.chance(0.5) else [y, x])


def inverted(s: Scope, x: Value) -> Value:
    c, act = x.dim(1), _act(s)
    wide = c * s.random.integer(1, 3)
    stride = s.random.pick([1, 1, 2])
    y = conv(s, x, wide, 1, act=act)
    y = conv(s, y, wide, s.random.pick([3, 5]), stride, group=wide, act=act)
    if s.random.chance(0.5):
        y = excite(s, y)
    maps = c if stride == 1 and s.random.chance(0.7) else _width(s)
    y = conv(s, y, maps, 1)
    return s.emit("Add", [x, y]) if maps == c and stride == 1 else y


def fire(s: Scope, x: Value) -> Value:
    y = conv(s, x, 4, 1, act="Relu", norm=False)
    parts = [conv(s, y, 8, 1, act="Relu", norm=False), conv(s, y, 8, 3, act="Relu", norm=False)]
    return s.emit("Concat", parts, axis=1)


def inception(s: Scope, x: Value) -> Value:
    act = _act(s)
    parts = [conv(s, x, s.random.pick([3, 4, 8]), 1, act=act)]
    parts.append(conv(s, conv(s, x, 4, 1, act=act), s.random.pick([5, 8]), 3, act=act))
    pooled = s.emit(
        s.random.pick(["MaxPool", "AveragePool"]), [x], kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1]
    )
    parts.append(conv(s, pooled, 4, 1, act=act))
    return s.emit("Concat", parts, axis=1)


def dense(s: Scope, x: Value) -> Value:
    parts = [x]
    for _ in range(2):
        joined = s.emit("Concat", parts, axis=1)
        parts.append(conv(s, conv(s, joined, 8, 1, act="Relu"), s.random.pick([4, 8]), 3))
    return s.emit("Concat", parts, axis=1)


def shuffle(s: Scope, x: Value) -> Value:
    c = x.dim(1)
    if c % 2:
        raise Reject("an odd number of channels")
    kept, moved = s.emit("Split", [x], 2, axis=1, **({"num_outputs": 2} if s.model.opset >= 18 else {}))
    y = conv(s, moved, c // 2, 1, act="Relu")
    y = conv(s, conv(s, y, c // 2, 3, group=c // 2), c // 2, 1, act="Relu")
    y = s.emit("Concat", [kept, y], axis=1)
    apart_ = s.reshape(y, [[d[0], 2, c // 2, *d[2:]] for d in y.shapes])
    turned = s.emit("Transpose", [apart_], perm=[0, 2, 1, 3, 4])
    return s.reshape(turned, [list(d) for d in y.shapes])


def next_block(s: Scope, x: Value) -> Value:
    """Depthwise, then products with channels last."""
    c = x.dim(1)
    y = conv(s, x, c, s.random.pick([3, 7]), group=c, norm=False)
    y = s.emit("Transpose", [y], perm=[0, 2, 3, 1])
    y = linear(s, gelu(s, linear(s, layer_norm(s, y), 2 * c)), c)
    y = s.emit("Mul", [y, s.weights([c], x.dtype)])
    return s.emit("Add", [x, s.emit("Transpose", [y], perm=[0, 3, 1, 2])])


def pyramid(s: Scope, x: Value) -> Value:
    """Down, up again by Resize or ConvTranspose, and joined with what was there."""
    c = x.dim(1)
    if any(d[2] % 2 or d[3] % 2 for d in x.shapes):
        raise Reject("an odd size")
    down = conv(s, x, _width(s), 3, 2, act="Relu")
    kind = s.random.pick(["nearest", "linear", "sizes", "transpose"])
    if kind == "transpose":
        w = s.weights([down.dim(1), c, 2, 2], x.dtype, 0.3)
        up = s.emit("ConvTranspose", [down, w, s.weights([c], x.dtype)], kernel_shape=[2, 2], strides=[2, 2])
    else:
        mode = {"mode": "linear" if kind == "linear" else "nearest"}
        if kind == "linear":
            mode["coordinate_transformation_mode"] = s.random.pick(["half_pixel", "pytorch_half_pixel"])
        else:
            mode |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        if kind == "sizes":
            tail = s.emit("Slice", [s.emit("Shape", [x]), np.array([2], I64), np.array([4], I64)])
            front = s.emit("Slice", [s.emit("Shape", [down]), np.array([0], I64), np.array([2], I64)])
            sizes = s.emit("Concat", [front, tail], axis=0)
            up = s.emit("Resize", [down, None, None, sizes], **mode)
        else:
            up = s.emit("Resize", [down, None, np.array([1, 1, 2, 2], np.float32)], **mode)
    if s.random.chance(0.5):
        return conv(s, s.emit("Concat", [up, x], axis=1), c, 3, act="Relu")
    return s.emit("Add", [conv(s, up, c, 1), x])


def spatial_pools(s: Scope, x: Value) -> Value:
    y = conv(s, x, 8, 1, act="SiLU")
    parts = [y]
    for _ in range(3):
        parts.append(s.emit("MaxPool", [parts[-1]], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return conv(s, s.emit("Concat", parts, axis=1), x.dim(1), 1, act="SiLU")


def cross_stage(s: Scope, x: Value) -> Value:
    c = x.dim(1)
    y = conv(s, x, 2 * max(c // 2, 1), 1, act="SiLU")
    half = y.dim(1) // 2
    a, b = s.emit("Split", [y, np.array([half, half], I64)], 2, axis=1)
    inner = s.emit("Add", [b, conv(s, conv(s, b, half, 3, act="SiLU"), half, 3, act="SiLU")])
    return conv(s, s.emit("Concat", [a, b, inner], axis=1), c, 1, act="SiLU")


def focus(s: Scope, x: Value) -> Value:
    parts = []
    for row in (0, 1):
        for column in (0, 1):
            y = x
            for axis, start in ((2, row), (3, column)):
                bounds = [np.array([v], I64) for v in (start, np.iinfo(np.int64).max, axis, 2)]
                y = s.emit("Slice", [y, *bounds])
            parts.append(y)
    return conv(s, s.emit("Concat", parts, axis=1), _width(s), 3, act=_act(s))


def separate_norm(s: Scope, x: Value) -> Value:
    """Normalisation and activation before the convolution."""
    c = x.dim(1)
    gain, shift, mean = (s.weights([c], x.dtype) for _ in range(3))
    variance = s.constant(s.random.array(F32, [c], 0.5, 1.5).astype(x.dtype))
    y = s.emit("Relu", [s.emit("BatchNormalization", [x, gain, shift, mean, variance])])
    return s.emit("Add", [x, conv(s, y, c, 3)])


def grouped_norm(s: Scope, x: Value) -> Value:
    """Groups of channels as instances, which are reshaped there and back."""
    c = x.dim(1)
    groups = next(g for g in (4, 3, 2, 1) if c % g == 0)
    y = s.reshape(x, [[d[0], groups, -1] for d in x.shapes])
    ones, zeros = np.ones([groups], x.dtype), np.zeros([groups], x.dtype)
    y = s.emit("InstanceNormalization", [y, s.constant(ones), s.constant(zeros)], epsilon=1e-3)
    y = s.emit("Reshape", [y, s.emit("Shape", [x])])
    y = s.emit("Mul", [y, s.weights([c, 1, 1], x.dtype)])
    y = s.emit("Add", [y, s.weights([c, 1, 1], x.dtype)])
    return conv(s, activated(s, y, s.random.pick(["", "SiLU", "Relu"])), _width(s), 3)


def channel_norm(s: Scope, x: Value) -> Value:
    """Over the channels, where they are not last."""
    c = x.dim(1)
    if c < 3:
        raise Reject("too few channels")
    centred = s.emit("Sub", [x, s.axes("ReduceMean", x, [1], since=18)])
    variance = s.axes("ReduceMean", s.emit("Pow", [centred, number(x, 2)]), [1], since=18)
    root = s.emit("Sqrt", [s.emit("Add", [variance, number(x, 1e-2)])])
    y = s.emit("Div", [centred, root])
    y = s.emit("Mul", [s.weights([c, 1, 1], x.dtype), y])
    return conv(s, s.emit("Add", [y, s.weights([c, 1, 1], x.dtype)]), c, 1, act="Gelu", norm=False)


IMAGES = [
    plain,
    residual,
    residual,
    bottleneck,
    inverted,
    inverted,
    excite,
    fire,
    inception,
    dense,
    shuffle,
    next_block,
]
IMAGES += [pyramid, pyramid, spatial_pools, cross_stage, focus, separate_norm, grouped_norm, channel_norm]


def head(s: Scope, x: Value) -> Value:
    return s.random.pick([classes, classes, boxes, letters])(s, x)


def classes(s: Scope, x: Value) -> Value:
    y = s.emit("GlobalAveragePool", [x])
    y = s.emit("Flatten", [y]) if s.random.chance(0.6) else s.axes("Squeeze", y, [2, 3])
    n = s.random.integer(3, 10)
    y = s.emit("Gemm", [y, s.weights([n, x.dim(1)], x.dtype, 0.5), s.weights([n], x.dtype)], transB=1)
    return s.emit("Softmax", [y], axis=1) if s.random.chance(0.5) else y


def letters(s: Scope, x: Value) -> Value:
    """Columns of the image are steps of a recurrent layer."""
    y = s.axes("ReduceMean", x, [2], since=18, keepdims=0)
    y = s.emit("Transpose", [y], perm=[2, 0, 1])
    hidden, name = s.random.integer(3, 6), s.random.pick(["LSTM", "GRU"])
    gates = {"LSTM": 4, "GRU": 3}[name]
    w = s.weights([2, gates * hidden, x.dim(1)], x.dtype, 0.4)
    r = s.weights([2, gates * hidden, hidden], x.dtype, 0.4)
    b = s.weights([2, 2 * gates * hidden], x.dtype, 0.4)
    y = s.emit(name, [y, w, r, b], 2, hidden_size=hidden, direction="bidirectional")[0]
    y = s.emit("Transpose", [y], perm=[0, 2, 1, 3])
    y = s.emit("Reshape", [y, np.array([0, 0, -1], I64)])
    return s.emit("LogSoftmax", [linear(s, y, 5)], axis=-1)


def boxes(s: Scope, x: Value) -> Value:
    """Places of a grid, their boxes and scores, and which stay."""
    n = 2
    y = conv(s, x, 4 + n, 1, norm=False)
    y = s.emit("Transpose", [s.emit("Reshape", [y, np.array([0, 4 + n, -1], I64)])], perm=[0, 2, 1])
    y = s.emit("Slice", [y, np.array([0], I64), np.array([40], I64), np.array([1], I64)])
    y = s.emit("Sigmoid", [y])
    parts = s.emit("Split", [y, np.array([2, 2, n], I64)], 3, axis=2)
    half = s.emit("Div", [parts[1], number(x, 2)])
    corners = s.emit("Concat", [s.emit("Sub", [parts[0], half]), s.emit("Add", [parts[0], half])], axis=2)
    scores = s.emit("Transpose", [parts[2]], perm=[0, 2, 1])
    if x.dtype != F32:
        corners, scores = s.cast(corners, F32), s.cast(scores, F32)
    apart(scores, 2)
    away(scores, 0.5)
    limits = [np.array([5], I64), np.array([0.513], np.float32), np.array([0.5], np.float32)]
    kept = s.emit("NonMaxSuppression", [corners, scores, *limits])
    index = s.axes(
        "Squeeze", s.emit("Slice", [kept, np.array([2], I64), np.array([3], I64), np.array([1], I64)]), [1]
    )
    first = s.emit("Gather", [corners, np.asarray(0, I64)], axis=0)
    return s.emit("Gather", [first, index], axis=0)
