"""Products, normalisations, reductions, layouts, recurrent layers: one node each, or the few that a fusion makes one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from graph import MICROSOFT, Case, Graph

Shape = tuple[int, ...]


def named(shape: Shape) -> str:
    return "x".join(map(str, shape))


def simple(op: str, shape: Shape, kind: str = "", positive: bool = False, **attributes: Any) -> Case:
    """An operator of one input."""

    def make(g: Graph) -> str:
        x = g.array(shape)
        return g.node(op, g.given(np.abs(x) if positive else x), **attributes)

    told = " ".join(f"{key} {value}" for key, value in attributes.items())
    return Case(kind or op, f"{op} {named(shape)} {told}".strip(), make)


def products() -> Iterator[Case]:
    for m, k, n in (
        (1, 768, 768), (1, 4096, 4096), (1, 512, 30000), (4, 1024, 4096), (16, 768, 3072), (49, 96, 384),
        (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (197, 384, 1536), (256, 256, 256), (512, 512, 512),
        (1000, 80, 80), (3136, 64, 64), (64, 64, 3136), (33, 77, 101), (1024, 1024, 1024),
    ):  # fmt: skip
        yield weighted(m, k, n)
    for batch, m, k, n in (
        (12, 128, 64, 128), (12, 128, 128, 64), (6, 197, 64, 197), (192, 49, 32, 49), (8, 1, 64, 512), (8, 4, 64, 512),
        (1, 1, 768, 768),
    ):  # fmt: skip
        yield between((batch, m, k), (batch, k, n), False)
        yield between((batch, m, k), (batch, n, k), True)
    yield between((256, 256), (256, 256), False)
    yield Case("Gemm", "32x2048x1000 transB", lambda g: gemm(g, 32, 2048, 1000))
    yield Case("Gemm", "1x2048x1000 transB", lambda g: gemm(g, 1, 2048, 1000))
    for m, k, n in ((1, 768, 3072), (128, 768, 768), (128, 768, 3072), (16, 512, 512)):
        yield Case("MatMulInteger", f"{m}x{k}x{n}", lambda g, m=m, k=k, n=n: integers(g, m, k, n))
    for m, k, n, bits in ((1, 2048, 2048, 4), (1, 4096, 11008, 4), (32, 2048, 2048, 4), (128, 768, 3072, 4)):
        name = f"{m}x{k}x{n} {bits} bits"
        yield Case("MatMulNBits", name, lambda g, m=m, k=k, n=n, bits=bits: few_bits(g, m, k, n, bits))
    yield from generating()
    yield Case("Einsum", "bhid,bhjd->bhij 1x8x100x64", lambda g: einsum(g, "bhid,bhjd->bhij", (1, 8, 100, 64)))


def weighted(m: int, k: int, n: int) -> Case:
    return Case("MatMul", f"{m}x{k}x{n}", lambda g: g.node("MatMul", g.input(m, k), g.weight(k, n, depth=k)))


def between(a: Shape, b: Shape, transposed: bool) -> Case:
    """Neither operand is a constant."""

    def make(g: Graph) -> str:
        right = g.input(*b)
        right = g.transpose(right, *range(len(b) - 2), len(b) - 1, len(b) - 2) if transposed else right
        return g.node("MatMul", g.input(*a), right)

    return Case("MatMul of two inputs", f"{named(a)} {named(b)}{' transposed' if transposed else ''}", make)


def gemm(g: Graph, m: int, k: int, n: int) -> str:
    return g.node("Gemm", g.input(m, k), g.weight(n, k), g.weight(n, depth=4), transB=1)


def integers(g: Graph, m: int, k: int, n: int) -> str:
    a, zero = g.input(m, k, dtype=np.uint8), g.constant(128, np.uint8)
    return g.node("MatMulInteger", a, g.few(k, n), zero, g.constant(0, np.int8))


def generating() -> Iterator[Case]:
    """What generating text token by token takes time for: products of a row, and attention with long caches."""
    for m, k, n, bits, block in (
        (1, 2048, 2048, 4, 32), (1, 2048, 8192, 4, 32), (1, 8192, 2048, 4, 32), (4, 2048, 8192, 4, 32),
        (1, 2048, 8192, 4, 128), (1, 2048, 8192, 8, 32), (1, 2048, 8192, 2, 64), (1, 4096, 14336, 4, 32),
    ):  # fmt: skip
        name = f"{m}x{k}x{n} {bits} bits in blocks of {block}, A in bytes"
        yield Case("MatMulNBits", name, lambda g, a=(m, k, n, bits, block): few_bits(g, *a, 4))
    for m, k, n in ((1, 2048, 2048), (1, 2048, 8192), (1, 8192, 2048), (4, 2048, 8192), (128, 2048, 2048)):
        name = f"{m}x{k}x{n} float16"
        yield Case("MatMul", name, lambda g, m=m, k=k, n=n: halves(g, m, k, n))
    for kind in ("float32", "float16"):
        for heads, kv_heads, size, keys in ((32, 8, 64, 2048), (32, 8, 64, 8192), (32, 8, 128, 2048), (32, 1, 128, 8192)):
            name = f"{heads} heads of {size} share {kv_heads}, {keys} keys {kind}"
            case = (heads, kv_heads, size, keys, np.dtype(kind))
            yield Case("GroupQueryAttention", name, lambda g, case=case: cached(g, *case))
    for bits, scales in ((8, 1), (8, 8 * 64), (4, 8 * 64)):
        name = f"32 heads of 64 share 8, 2048 keys of {bits} bits, {scales} scales"
        yield Case("GroupQueryAttention", name, lambda g, a=(bits, scales): quantized_cache(g, *a))


def halves(g: Graph, m: int, k: int, n: int) -> str:
    weight = g.constant((g.array((k, n)) / np.sqrt(k)).astype(np.float16))
    return g.node("MatMul", g.input(m, k, dtype=np.float16), weight)


def cached(g: Graph, heads: int, kv_heads: int, size: int, keys: int, kind: np.dtype[Any]) -> list[str]:
    """One query; the cache has room for all keys but is not grown in place, as one memory is only bound once here."""
    new = (g.input(1, 1, n * size, dtype=kind) for n in (heads, kv_heads, kv_heads))
    past = (g.input(1, kv_heads, keys, size, dtype=kind) for _ in range(2))
    lengths = g.constant([keys - 1], np.int32), g.constant(keys, np.int32)
    sizes = {"num_heads": heads, "kv_num_heads": kv_heads}
    y = g.node("GroupQueryAttention", *new, *past, *lengths, domain=MICROSOFT, outputs=3, **sizes)
    return [y, f"{y}.1", f"{y}.2"]


def quantized_cache(g: Graph, bits: int, scales: int) -> list[str]:
    """One query, 2048 keys of which all but one are in the caches."""
    new = [g.input(1, 1, n * 64) for n in (32, 8, 8)]
    kept = (g.input(1, 8, 2048, 64 * bits // 8, dtype=np.int8 if bits == 8 else np.uint8) for _ in range(2))
    lengths = g.constant([2047], np.int32), g.constant(2048, np.int32)
    scale = g.constant(np.full(scales, 0.02, np.float32))
    kind = "PER_TENSOR" if scales == 1 else "PER_CHANNEL"
    types = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}
    inputs = [*new, *kept, *lengths, *[""] * 5, scale, scale]
    sizes = {"num_heads": 32, "kv_num_heads": 8}
    y = g.node("GroupQueryAttention", *inputs, domain=MICROSOFT, outputs=3, **sizes, **types)
    return [y, f"{y}.1", f"{y}.2"]


def few_bits(g: Graph, m: int, k: int, n: int, bits: int, block: int = 32, accuracy: int = 0) -> str:
    packed = g.constant(g.array((n, k // block, block * bits // 8), np.uint8))
    scales = g.constant(np.full(n * k // block, 0.01, np.float32))
    sizes = {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": accuracy}
    return g.node("MatMulNBits", g.input(m, k), packed, scales, domain=MICROSOFT, **sizes)


def einsum(g: Graph, equation: str, shape: Shape) -> str:
    return g.node("Einsum", g.input(*shape), g.input(*shape), equation=equation)


def normalisations() -> Iterator[Case]:
    for shape in ((128, 768), (197, 384), (3136, 96), (1, 4096)):
        yield Case("LayerNormalization", named(shape), lambda g, s=shape: g.norm(g.input(*s), s[-1]))
    for shape in ((1, 64, 56, 56), (1, 320, 32, 32)):
        ones = np.ones(shape[1], np.float32)
        yield Case("InstanceNormalization", named(shape), lambda g, s=shape, o=ones: instance(g, s, o))
        yield Case("BatchNormalization", named(shape), lambda g, s=shape, o=ones: batch_norm(g, s, o))
        yield Case("GroupNormalization", named(shape), lambda g, s=shape, o=ones: group_norm(g, s, o))
    for shape in ((128, 128, 12), (12, 128, 128), (1, 30522), (192, 49, 49), (1, 21, 65, 65)):
        for axis in (-1, 1):
            yield simple("Softmax", shape, axis=axis)
    yield simple("LogSoftmax", (128, 5000), kind="Softmax", axis=-1)


def instance(g: Graph, shape: Shape, ones: np.ndarray) -> str:
    return g.node("InstanceNormalization", g.input(*shape), g.constant(ones), g.constant(ones))


def batch_norm(g: Graph, shape: Shape, ones: np.ndarray) -> str:
    return g.node("BatchNormalization", g.input(*shape), *(g.constant(ones) for _ in range(4)))


def group_norm(g: Graph, shape: Shape, ones: np.ndarray) -> str:
    return g.node("GroupNormalization", g.input(*shape), g.constant(ones), g.constant(ones), num_groups=32)


def elementwise() -> Iterator[Case]:
    for op in (
        "Relu", "Sigmoid", "Tanh", "Erf", "Gelu", "Exp", "Sqrt", "HardSwish", "LeakyRelu", "Mish", "Softplus", "Elu", "Selu",
        "Celu", "Log", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Asinh", "Atan", "Softsign", "HardSigmoid", "Shrink", "Sign",
        "Abs", "Neg", "Reciprocal", "Round", "Floor", "ThresholdedRelu",
    ):  # fmt: skip
        yield simple(op, (1, 64, 56, 56), kind="elementwise", positive=op in ("Sqrt", "Log"))
    yield simple("Gelu", (1, 64, 56, 56), kind="elementwise", approximate="tanh")
    for a, b in (((1, 64, 56, 56),) * 2, ((1, 64, 56, 56), (1, 64, 1, 1)), ((128, 768), (768,)), ((1, 64, 56, 1), (1, 1, 1, 56))):
        for op in ("Add", "Mul", "Div"):
            name = f"{op} {named(a)} {named(b)}"
            yield Case("elementwise", name, lambda g, op=op, a=a, b=b: g.node(op, g.input(*a), g.input(*b)))
    yield Case("elementwise", "Clip 1x64x56x56", lambda g: clip(g, (1, 64, 56, 56)))
    yield Case("elementwise", "Where 12x128x128", where)


def clip(g: Graph, shape: Shape) -> str:
    return g.node("Clip", g.input(*shape), g.constant(0, np.float32), g.constant(6, np.float32))


def where(g: Graph) -> str:
    mask = g.given(g.random.random((1, 128, 128)) < 0.5)
    return g.node("Where", mask, g.input(12, 128, 128), g.constant(-1e4, np.float32))


def reductions() -> Iterator[Case]:
    for op in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceL2"):
        for shape, axes in (((1, 64, 56, 56), (2, 3)), ((128, 768), (1,)), ((128, 768), (0,)), ((8, 128, 256), (1,))):
            name = f"{op} {named(shape)} axes {axes}"
            yield Case("reduction", name, lambda g, op=op, s=shape, a=axes: reduce(g, op, s, a))
    for axis in (0, 1):
        yield simple("ArgMax", (256, 1000), kind="reduction", axis=axis, keepdims=0)
    yield Case("reduction", "CumSum 64x1000", lambda g: g.node("CumSum", g.input(64, 1000), g.constant(1, np.int64)))
    yield Case("TopK", "1x8400 of 300", lambda g: top(g, (1, 8400), 300))
    yield Case("TopK", "64x1000 of 5", lambda g: top(g, (64, 1000), 5))


def reduce(g: Graph, op: str, shape: Shape, axes: Shape) -> str:
    return g.node(op, g.input(*shape), g.constant(axes, np.int64))


def top(g: Graph, shape: Shape, count: int) -> list[str]:
    values = g.node("TopK", g.input(*shape), g.constant([count], np.int64), outputs=2)
    return [values, f"{values}.1"]


def layouts() -> Iterator[Case]:
    for shape, perm in (
        ((1, 197, 6, 64), (0, 2, 1, 3)), ((1, 197, 6, 64), (0, 2, 3, 1)), ((1, 64, 56, 56), (0, 2, 3, 1)),
        ((1, 56, 56, 64), (0, 3, 1, 2)), ((1, 2, 58, 28, 28), (0, 2, 1, 3, 4)), ((512, 512), (1, 0)),
        ((1, 8, 7, 8, 7, 96), (0, 1, 3, 2, 4, 5)),
    ):  # fmt: skip
        yield simple("Transpose", shape, perm=perm)
    for shape, perm in (((224, 224, 3), (2, 0, 1)), ((3, 224, 224), (1, 2, 0)), ((12, 7, 7, 64), (0, 3, 1, 2))):
        yield simple("Transpose", shape, perm=perm)
    for kind in (np.uint8, np.float16, np.int64):
        yield Case("Transpose", f"1x64x56x56 of {np.dtype(kind)}", lambda g, kind=kind: channels_last(g, kind))
    for mode, size, more in (
        ("nearest", 2.0, {}), ("linear", 2.0, {}), ("linear", 2.0, {"coordinate_transformation_mode": "align_corners"}),
        ("cubic", 2.0, {}), ("linear", 0.5, {}), ("linear", 1.7, {}),
    ):  # fmt: skip
        for shape in ((1, 64, 28, 28), (1, 21, 65, 65)):
            name = " ".join([mode, named(shape), f"×{size}", *more.values()])
            yield Case("Resize", name, lambda g, a=(shape, mode, size, more): resize(g, *a))
    for axis, shape, count in ((0, (30522, 768), 128), (1, (16, 512, 64), 100), (-1, (512, 512), 100)):
        name = f"Gather axis {axis} {named(shape)} {count}"
        yield Case("Gather", name, lambda g, a=(axis, shape, count): gather(g, *a))
    for shape, axis in (((64, 1000), 1), ((64, 1000), 0), ((4, 300, 64), 1)):
        name = f"GatherElements {named(shape)} axis {axis}"
        yield Case("Gather", name, lambda g, s=shape, a=axis: gather_elements(g, s, a))
    yield Case("Scatter", "ScatterElements 64x1000", lambda g: scatter_elements(g, (64, 1000)))
    yield Case("Gather", "GatherND 64x1000", gather_tuples)
    for axis in (1, -1):
        shapes = ((1, 64, 28, 28), (1, 32, 28, 28)) if axis == 1 else ((1, 64, 28, 28),) * 2
        name = f"Concat axis {axis} {' '.join(map(named, shapes))}"
        yield Case("Concat", name, lambda g, s=shapes, a=axis: g.node("Concat", *(g.input(*x) for x in s), axis=a))
    yield Case("Slice", "every second 1x64x56x56", every_second)
    yield Case("Pad", "1x64x56x56 by 1", lambda g: g.node("Pad", g.input(1, 64, 56, 56), g.constant([0, 0, 1, 1] * 2, np.int64)))
    yield simple("DepthToSpace", (1, 64, 56, 56), blocksize=2)
    yield simple("SpaceToDepth", (1, 3, 224, 224), blocksize=2)


def resize(g: Graph, shape: Shape, mode: str, size: float, more: dict[str, Any]) -> str:
    scales = g.constant([1, 1, size, size], np.float32)
    return g.node("Resize", g.input(*shape), "", scales, mode=mode, **more)


def gather(g: Graph, axis: int, shape: Shape, count: int) -> str:
    return g.node("Gather", g.weight(*shape), g.input(count, dtype=np.int64, below=shape[axis]), axis=axis)


def gather_elements(g: Graph, shape: Shape, axis: int) -> str:
    return g.node("GatherElements", g.input(*shape), g.input(*shape, dtype=np.int64, below=shape[axis]), axis=axis)


def gather_tuples(g: Graph) -> str:
    return g.node("GatherND", g.input(64, 1000), g.input(5000, 1, dtype=np.int64, below=64))


def scatter_elements(g: Graph, shape: Shape) -> str:
    indices = g.input(*shape, dtype=np.int64, below=shape[1])
    return g.node("ScatterElements", g.input(*shape), indices, g.input(*shape), axis=1)


def channels_last(g: Graph, kind: Any) -> str:
    return g.transpose(g.given(g.array((1, 64, 56, 56), kind)), 0, 2, 3, 1)


def every_second(g: Graph) -> str:
    numbers = ([0, 0], [56, 56], [2, 3], [2, 2])
    return g.node("Slice", g.input(1, 64, 56, 56), *(g.constant(x, np.int64) for x in numbers))


def recurrent() -> Iterator[Case]:
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for steps, batch, inputs, hidden, both in ((50, 1, 128, 128, False), (100, 1, 80, 256, True), (30, 8, 256, 512, False)):
            sizes = (steps, batch, inputs, hidden)
            name = f"{named(sizes)}{' both ways' if both else ''}"
            yield Case(op, name, lambda g, a=(op, gates, sizes, both): layer(g, *a))


def layer(g: Graph, op: str, gates: int, sizes: Shape, both: bool) -> str:
    steps, batch, inputs, hidden = sizes
    ways = 2 if both else 1
    weights = (g.weight(ways, gates * hidden, n, depth=n) for n in (inputs, hidden))
    direction = "bidirectional" if both else "forward"
    return g.node(op, g.input(steps, batch, inputs), *weights, hidden_size=hidden, direction=direction)


CASES = [
    *products(), *normalisations(), *elementwise(), *reductions(), *layouts(), *recurrent(),
]  # fmt: skip
