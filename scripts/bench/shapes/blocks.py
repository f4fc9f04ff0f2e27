"""The building blocks of common networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from graph import Case, Graph


def block(kind: str, make: Callable[..., Any], *sizes: int) -> Case:
    return Case(f"block: {kind}", "x".join(map(str, sizes)), lambda g: make(g, *sizes))


def residual(g: Graph, n: int, channels: int) -> str:
    x = g.relu(g.input(1, channels, n, n))
    y = g.relu(g.conv(x, channels, channels))
    return g.relu(g.add(g.conv(y, channels, channels), x))


def bottleneck(g: Graph, n: int, channels: int, group: int = 1) -> str:
    x = g.relu(g.input(1, 4 * channels, n, n))
    y = g.relu(g.conv(x, 4 * channels, channels, 1))
    y = g.relu(g.conv(y, channels, channels, group=group))
    return g.relu(g.add(g.conv(y, channels, 4 * channels, 1), x))


def inverted(g: Graph, n: int, channels: int, expansion: int, kernel: int) -> str:
    """With squeeze and excitation, as of EfficientNet."""
    x, inner = g.input(1, channels, n, n), channels * expansion
    y = g.silu(g.conv(x, channels, inner, 1))
    y = g.silu(g.conv(y, inner, inner, kernel, group=inner))
    s = g.silu(g.conv(g.node("GlobalAveragePool", y), inner, channels // 4, 1))
    y = g.node("Mul", y, g.node("Sigmoid", g.conv(s, channels // 4, inner, 1)))
    return g.add(g.conv(y, inner, channels, 1), x)


def mobile(g: Graph, n: int, channels: int) -> str:
    """Depthwise, pointwise, as of MobileNet 1."""
    y = g.relu(g.conv(g.input(1, channels, n, n), channels, channels, group=channels))
    return g.relu(g.conv(y, channels, channels, 1))


def fire(g: Graph, n: int, channels: int, squeezed: int, expanded: int) -> str:
    s = g.relu(g.conv(g.input(1, channels, n, n), channels, squeezed, 1))
    wide = (g.relu(g.conv(s, squeezed, expanded, kernel)) for kernel in (1, 3))
    return g.node("Concat", *wide, axis=1)


def inception(g: Graph, n: int, channels: int) -> str:
    x, c = g.relu(g.input(1, channels, n, n)), channels // 4
    a = g.relu(g.conv(x, channels, c, 1))
    b = g.relu(g.conv(g.relu(g.conv(x, channels, c, 1)), c, 2 * c))
    d = g.relu(g.conv(g.relu(g.conv(x, channels, c // 4, 1)), c // 4, c, 5))
    pooled = g.node("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1])
    return g.node("Concat", a, b, d, g.relu(g.conv(pooled, channels, c // 2, 1)), axis=1)


def dense(g: Graph, n: int, channels: int, growth: int, layers: int) -> str:
    x = g.input(1, channels, n, n)
    for _ in range(layers):
        scale, zero = g.constant(np.ones(channels, np.float32)), g.constant(np.zeros(channels, np.float32))
        y = g.relu(g.node("BatchNormalization", x, scale, zero, zero, scale))
        y = g.conv(g.relu(g.conv(y, channels, 4 * growth, 1)), 4 * growth, growth)
        x, channels = g.node("Concat", x, y, axis=1), channels + growth
    return x


def shuffle(g: Graph, n: int, channels: int) -> str:
    half = channels // 2
    a = g.node("Split", g.relu(g.input(1, channels, n, n)), outputs=2, axis=1, num_outputs=2)
    b = g.relu(g.conv(f"{a}.1", half, half, 1))
    b = g.relu(g.conv(g.conv(b, half, half, group=half), half, half, 1))
    joined = g.reshape(g.node("Concat", a, b, axis=1), 1, 2, half, n, n)
    return g.reshape(g.transpose(joined, 0, 2, 1, 3, 4), 1, channels, n, n)


def dilated(g: Graph, n: int, channels: int, outputs: int) -> str:
    """Atrous spatial pyramid pooling, as of DeepLab."""
    x = g.input(1, channels, n, n)
    ways = [g.relu(g.conv(x, channels, outputs, 1))]
    ways += [g.relu(g.conv(x, channels, outputs, dilation=rate)) for rate in (6, 12, 18)]
    pooled = g.relu(g.conv(g.node("GlobalAveragePool", x), channels, outputs, 1))
    ways.append(g.node("Expand", pooled, g.constant([1, outputs, n, n], np.int64)))
    return g.relu(g.conv(g.node("Concat", *ways, axis=1), 5 * outputs, outputs, 1))


def pyramid(g: Graph, n: int, channels: int) -> list[str]:
    """A feature pyramid: three levels, from the coarsest up."""
    upper, made = "", []
    for level, inputs in ((2, 8 * channels), (1, 4 * channels), (0, 2 * channels)):
        x = g.conv(g.input(1, inputs, n >> level, n >> level), inputs, channels, 1)
        if upper:
            scales = g.constant([1, 1, 2, 2], np.float32)
            x = g.add(x, g.node("Resize", upper, "", scales, mode="nearest"))
        upper = x
        made.append(g.conv(x, channels, channels))
    return made


def path_aggregation(g: Graph, n: int, channels: int) -> str:
    """A stage of a YOLO: two ways, bottlenecks with SiLU, concatenated."""
    x, half = g.silu(g.conv(g.input(1, channels, n, n), channels, channels, 1)), channels // 2
    first = g.node("Split", x, outputs=2, axis=1, num_outputs=2)
    parts = [first, f"{first}.1"]
    for _ in range(2):
        y = g.silu(g.conv(g.silu(g.conv(parts[-1], half, half)), half, half))
        parts.append(g.add(parts[-1], y))
    return g.silu(g.conv(g.node("Concat", *parts, axis=1), 4 * half, channels, 1))


def window(g: Graph, n: int, size: int, heads: int) -> str:
    """Windows of 7 × 7, as of Swin, and what follows."""
    side = n // 7
    x = g.input(1, n * n, size)
    y = g.reshape(g.norm(x, size), 1, side, 7, side, 7, size)
    y = g.reshape(g.transpose(y, 0, 1, 3, 2, 4, 5), side * side, 49, size)
    y = g.reshape(g.attention(y, 49, size, heads, side * side), 1, side, side, 7, 7, size)
    x = g.add(x, g.reshape(g.transpose(y, 0, 1, 3, 2, 4, 5), 1, n * n, size))
    return g.add(x, feed_forward(g, g.norm(x, size), size, 4 * size))


def mixer(g: Graph, rows: int, size: int) -> str:
    x = g.input(1, rows, size)
    y = feed_forward(g, g.transpose(g.norm(x, size), 0, 2, 1), rows, size // 2)
    x = g.add(x, g.transpose(y, 0, 2, 1))
    return g.add(x, feed_forward(g, g.norm(x, size), size, 4 * size))


def feed_forward(g: Graph, x: str, size: int, inner: int) -> str:
    return g.linear(g.gelu(g.linear(x, size, inner)), inner, size)


def encoder(g: Graph, rows: int, size: int, heads: int) -> str:
    """Normalised after each part, as of BERT."""
    x = g.input(1, rows, size)
    x = g.norm(g.add(x, g.attention(x, rows, size, heads)), size)
    return g.norm(g.add(x, feed_forward(g, x, size, 4 * size)), size)


def decoder(g: Graph, past: int, size: int, heads: int) -> list[str]:
    """One token, with what came before it in memory; normalised before each part, as of GPT-2."""
    each = size // heads
    x, keys, values = g.input(1, 1, size), g.input(1, heads, past, each), g.input(1, heads, past, each)
    y = g.norm(x, size)
    q, k, v = (g.transpose(g.reshape(g.linear(y, size, size), 1, 1, heads, each), 0, 2, 1, 3) for _ in range(3))
    k, v = g.node("Concat", keys, k, axis=2), g.node("Concat", values, v, axis=2)
    scores = g.node("Mul", g.node("MatMul", q, g.transpose(k, 0, 1, 3, 2)), g.constant(each**-0.5, np.float32))
    mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
    x = g.add(x, g.linear(g.reshape(g.transpose(mixed, 0, 2, 1, 3), 1, 1, size), size, size))
    return [g.add(x, feed_forward(g, g.norm(x, size), size, 4 * size)), k, v]


def head(g: Graph, n: int, channels: int, classes: int) -> list[str]:
    """Boxes and scores of a detector at one level, and which boxes remain."""
    x, count = g.input(1, channels, n, n), n * n
    boxes, scores = (g.conv(g.relu(g.conv(x, channels, channels)), channels, m) for m in (4, classes))
    boxes = g.node("Sigmoid", g.transpose(g.reshape(boxes, 1, 4, count), 0, 2, 1))
    scores = g.reshape(g.node("Sigmoid", scores), 1, classes, count)
    limits = g.constant([20], np.int64), g.constant([0.5], np.float32), g.constant([0.6], np.float32)
    return [scores, g.node("NonMaxSuppression", boxes, scores, *limits)]


def convnext(g: Graph, n: int, channels: int) -> str:
    x = g.input(1, channels, n, n)
    y = g.transpose(g.conv(x, channels, channels, 7, group=channels), 0, 2, 3, 1)
    y = feed_forward(g, g.norm(y, channels), channels, 4 * channels)
    return g.add(g.transpose(y, 0, 3, 1, 2), x)


def cases() -> Iterator[Case]:
    for kind, make, many in (
        ("residual", residual, ((56, 64), (28, 128), (14, 256), (7, 512), (55, 32))),
        ("bottleneck", bottleneck, ((56, 64), (28, 128), (14, 256), (7, 512))),
        ("bottleneck in groups", bottleneck, ((56, 128, 32), (28, 256, 32), (14, 512, 32))),
        ("inverted residual", inverted, ((56, 24, 6, 3), (28, 40, 6, 5), (14, 112, 6, 5), (7, 192, 6, 5))),
        ("depthwise and pointwise", mobile, ((112, 64), (28, 256), (14, 512), (7, 1024))),
        ("fire", fire, ((55, 96, 16, 64), (27, 256, 32, 128), (13, 512, 64, 256))),
        ("inception", inception, ((28, 256), (14, 512), (7, 832))),
        ("dense", dense, ((56, 64, 32, 3), (28, 128, 32, 3), (14, 256, 32, 3))),
        ("shuffle", shuffle, ((28, 116), (14, 232), (7, 464))),
        ("dilated head", dilated, ((33, 320, 128), (17, 512, 64))),
        ("feature pyramid", pyramid, ((40, 64), (56, 128))),
        ("two ways", path_aggregation, ((40, 64), (20, 128), (80, 32))),
        ("Swin window", window, ((56, 96, 3), (28, 192, 6), (14, 384, 12))),
        ("mixer", mixer, ((196, 256), (49, 512))),
        ("encoder layer", encoder, ((128, 384, 12), (128, 768, 12), (197, 192, 3), (16, 256, 4))),
        ("decoder layer", decoder, ((127, 768, 12), (511, 512, 8))),
        ("detection head", head, ((20, 128, 20), (40, 64, 20))),
        ("ConvNeXt", convnext, ((56, 96), (14, 384))),
    ):
        for sizes in many:
            yield block(kind, make, *sizes)


CASES = list(cases())
