"""Convolutions and poolings of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from graph import Case, Graph


def conv(kind: str, image: str, channels: int, outputs: int, kernel: Any = 3, **more: Any) -> Case:
    """`image`: sizes after the channels; a batch before them as in `8*28x28`."""
    batch, _, size = image.rpartition("*")
    sizes = [int(n) for n in size.split("x")]
    kernel = (kernel,) * len(sizes) if isinstance(kernel, int) else kernel

    def make(g: Graph) -> str:
        return g.conv(g.input(int(batch or 1), channels, *sizes), channels, outputs, kernel, **more)

    told = " ".join(f"{key} {value}" for key, value in more.items())
    return Case(kind, f"{image} {channels}→{outputs} k{'x'.join(map(str, kernel))} {told}".strip(), make)


def square() -> Iterator[Case]:
    """3 × 3, stride 1."""
    sizes = {16: (112, 55, 28), 32: (55, 28, 13), 64: (56, 27, 13, 7), 128: (56, 28, 13), 256: (28, 14, 13, 7)}
    for channels, images in sizes.items():
        for n in images:
            yield conv("conv 3×3", f"{n}x{n}", channels, channels)
    for channels, outputs, n in ((16, 64, 55), (48, 192, 27), (96, 128, 35), (160, 320, 7), (512, 512, 7)):
        yield conv("conv 3×3", f"{n}x{n}", channels, outputs)
    yield conv("conv 3×3", "8*28x28", 128, 128)


def others() -> Iterator[Case]:
    for n, channels, outputs, dilation in (
        (33, 256, 256, 2), (28, 64, 64, 2), (28, 128, 128, 4), (33, 512, 256, 6), (33, 320, 256, 12), (65, 32, 32, 2),
    ):  # fmt: skip
        yield conv("conv dilated", f"{n}x{n}", channels, outputs, dilation=dilation)
    for n, channels, group, stride in (
        (56, 128, 32, 1), (28, 256, 32, 1), (14, 512, 32, 1), (28, 512, 32, 2), (28, 240, 3, 1), (27, 96, 2, 1),
        (56, 48, 2, 1), (28, 232, 2, 1), (14, 64, 8, 1),
    ):  # fmt: skip
        yield conv("conv grouped", f"{n}x{n}", channels, channels, group=group, stride=stride)
    yield conv("conv grouped 1×1", "28x28", 240, 240, 1, group=3)
    yield conv("conv grouped 1×1", "14x14", 480, 480, 1, group=4)
    for n, channels, outputs in ((112, 32, 64), (56, 64, 128), (28, 128, 256), (14, 256, 512), (55, 64, 64)):
        yield conv("conv stride 2", f"{n}x{n}", channels, outputs, stride=2)
    for n, channels, outputs in ((56, 64, 128), (28, 256, 512), (14, 512, 1024)):
        yield conv("conv 1×1 stride 2", f"{n}x{n}", channels, outputs, 1, stride=2)
    for n, channels, outputs in (
        (112, 16, 64), (56, 24, 144), (56, 64, 256), (55, 64, 16), (28, 40, 240), (28, 512, 128), (14, 512, 112),
        (14, 256, 1024), (13, 384, 64), (7, 2048, 512), (7, 960, 160), (1, 1280, 1000),
    ):  # fmt: skip
        yield conv("conv 1×1", f"{n}x{n}", channels, outputs, 1)
    yield conv("conv 1×1", "8*14x14", 256, 1024, 1)
    for image, channels, outputs, kernel, stride in (
        ("224x224", 3, 64, 7, 2), ("224x224", 3, 32, 3, 2), ("224x224", 3, 64, 3, 1), ("224x224", 3, 96, 4, 4),
        ("227x227", 3, 64, 3, 2), ("640x640", 3, 16, 3, 2), ("28x28", 1, 32, 5, 1),
    ):  # fmt: skip
        yield conv("conv first layer", image, channels, outputs, kernel, stride=stride)
    for kernel, n, channels, outputs in (((1, 7), 17, 192, 192), ((7, 1), 17, 128, 192), ((5, 5), 35, 48, 64)):
        yield conv("conv odd kernel", f"{n}x{n}", channels, outputs, kernel)
    for n, channels, kernel, stride in (
        (112, 32, 3, 1), (56, 144, 3, 1), (56, 144, 3, 2), (28, 240, 5, 1), (28, 192, 3, 1), (14, 480, 5, 2),
        (14, 672, 5, 1), (13, 512, 3, 1), (7, 960, 5, 1), (56, 96, 7, 1), (14, 384, 7, 1), (28, 116, 3, 1),
    ):  # fmt: skip
        yield conv("conv depthwise", f"{n}x{n}", channels, channels, kernel, stride=stride, group=channels)
    yield conv("conv depthwise", "33x33", 256, 256, group=256, dilation=2)
    for n, channels, outputs, kernel, stride in (
        (3000, 80, 384, 3, 1), (3000, 384, 384, 3, 2), (16000, 1, 64, 10, 5), (1024, 64, 64, 9, 1), (200, 256, 512, 1, 1),
    ):  # fmt: skip
        yield conv("conv 1-D", str(n), channels, outputs, kernel, stride=stride)
    yield conv("conv 1-D", "500", 256, 256, 31, group=256)
    for image, channels, outputs, kernel, stride in (
        ("8x56x56", 16, 32, 3, 1), ("16x28x28", 64, 64, 3, 1), ("16x112x112", 3, 24, (3, 5, 5), 2),
        ("8x28x28", 64, 128, 1, 1),
    ):  # fmt: skip
        yield conv("conv 3-D", image, channels, outputs, kernel, stride=stride)
    for n, channels, outputs, kernel, stride in ((14, 256, 128, 2, 2), (28, 64, 64, 4, 2), (28, 128, 21, 3, 2)):
        yield transposed(n, channels, outputs, kernel, stride)


def transposed(n: int, channels: int, outputs: int, kernel: int, stride: int) -> Case:
    def make(g: Graph) -> str:
        weight = g.weight(channels, outputs, kernel, kernel, depth=channels)
        return g.node("ConvTranspose", g.input(1, channels, n, n), weight, strides=[stride] * 2)

    return Case("conv transposed", f"{n}x{n} {channels}→{outputs} k{kernel} stride {stride}", make)


def pool(kind: str, shape: tuple[int, ...], kernel: int, stride: int, pad: int, **more: Any) -> Case:
    axes = len(shape) - 2

    def make(g: Graph) -> str:
        window = {"kernel_shape": [kernel] * axes, "strides": [stride] * axes, "pads": [pad] * 2 * axes}
        return g.node(kind, g.input(*shape), **window, **more)

    told = " ".join(f"{key} {value}" for key, value in more.items())
    return Case(kind, f"{'x'.join(map(str, shape))} k{kernel} stride {stride} pad {pad} {told}".strip(), make)


def pools() -> Iterator[Case]:
    for n, channels in ((28, 192), (14, 512), (13, 256), (56, 64), (112, 16)):
        yield pool("MaxPool", (1, channels, n, n), 3, 1, 1)
    yield pool("MaxPool", (1, 256, 20, 20), 5, 1, 2)
    yield pool("MaxPool", (1, 512, 13, 13), 13, 1, 6)
    yield pool("MaxPool", (1, 64, 112, 112), 3, 2, 1)
    yield pool("MaxPool", (1, 64, 55, 55), 3, 2, 0, ceil_mode=1)
    yield pool("MaxPool", (1, 64, 224, 224), 2, 2, 0)
    yield pool("MaxPool", (1, 480, 14, 14), 3, 2, 0, ceil_mode=1)
    yield pool("MaxPool", (1, 64, 8, 28, 28), 2, 2, 0)
    yield pool("MaxPool", (1, 64, 1000), 3, 2, 1)
    yield pool("AveragePool", (1, 192, 35, 35), 3, 1, 1)
    yield pool("AveragePool", (1, 192, 35, 35), 3, 1, 1, count_include_pad=1)
    yield pool("AveragePool", (1, 256, 56, 56), 2, 2, 0)
    yield pool("AveragePool", (1, 256, 27, 27), 3, 2, 1, ceil_mode=1)
    yield pool("AveragePool", (1, 1024, 7, 7), 7, 1, 0)
    yield Case("GlobalAveragePool", "1x960x7x7", lambda g: g.node("GlobalAveragePool", g.input(1, 960, 7, 7)))
    yield Case("GlobalAveragePool", "1x64x56x56", lambda g: g.node("GlobalAveragePool", g.input(1, 64, 56, 56)))
    yield Case("GlobalMaxPool", "1x512x14x14", lambda g: g.node("GlobalMaxPool", g.input(1, 512, 14, 14)))


def quantized() -> Iterator[Case]:
    for n, channels, outputs, kernel, stride, group in (
        (56, 64, 64, 3, 1, 1), (28, 128, 128, 3, 1, 1), (14, 256, 256, 3, 1, 1), (28, 256, 512, 1, 1, 1),
        (14, 1024, 256, 1, 1, 1), (112, 32, 32, 3, 1, 32), (28, 192, 192, 3, 1, 192), (224, 3, 64, 7, 2, 1),
    ):  # fmt: skip
        yield qlinear(n, channels, outputs, kernel, stride, group)


def qlinear(n: int, channels: int, outputs: int, kernel: int, stride: int, group: int) -> Case:
    def make(g: Graph) -> str:
        x = g.input(1, channels, n, n, dtype=np.uint8)
        weight = g.few(outputs, channels // group, kernel, kernel)
        scale, zero = g.constant(0.02, np.float32), g.constant(128, np.uint8)
        of_weight = g.constant(np.full(outputs, 0.002), np.float32), g.constant(np.zeros(outputs), np.int8)
        bias = g.constant(g.array((outputs,), np.int32, 2000))
        window = {"pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
        return g.node("QLinearConv", x, scale, zero, weight, *of_weight, scale, zero, bias, **window)

    told = f"{n}x{n} {channels}→{outputs} k{kernel}"
    return Case("QLinearConv", f"{told} stride {stride} group {group}", make)


CASES = [*square(), *others(), *pools(), *quantized()]
