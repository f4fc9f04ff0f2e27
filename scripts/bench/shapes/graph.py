"""Small models: nodes with random weights and inputs, the same for the same name."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 21
MICROSOFT = "com.microsoft"


class Graph:
    """Grows by a node at a time; a value is known by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.feed: dict[str, np.ndarray] = {}

    def input(self, *shape: int, dtype: Any = np.float32, below: int = 0) -> str:
        """Random numbers: of integers those below a limit, or all."""
        return self.given(self.array(shape, dtype, below))

    def given(self, array: np.ndarray) -> str:
        name = f"x{len(self.inputs)}"
        self.feed[name] = array
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, array.shape))
        return name

    def array(self, shape: tuple[int, ...], dtype: Any = np.float32, below: int = 0) -> np.ndarray:
        dtype = np.dtype(dtype)
        if dtype.kind in "iu":
            least = 0 if below else np.iinfo(dtype).min
            return self.random.integers(least, below or np.iinfo(dtype).max, shape, dtype, endpoint=not below)
        return self.random.standard_normal(shape).astype(dtype)

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def weight(self, *shape: int, depth: int = 0) -> str:
        """Numbers that keep the size of what they are multiplied with, for sums of `depth` products."""
        return self.constant(self.array(shape) / np.sqrt(depth or np.prod(shape[1:]), dtype=np.float32))

    def few(self, *shape: int) -> str:
        """Weights of 8 bits that use 7: sums of two products with bytes fit 16 bits, where ONNX Runtime saturates
        on processors with AVX2 alone."""
        return self.constant(self.random.integers(-64, 64, shape, np.int8))

    def node(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> str:
        """The first output's name; others have `.1`, `.2` … after it."""
        name = f"n{len(self.nodes)}"
        names = [name, *(f"{name}.{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return name

    # --- what blocks consist of ------------------------------------------------------------------

    def conv(
        self, x: str, channels: int, outputs: int, kernel: Any = 3, stride: int = 1, dilation: int = 1, group: int = 1
    ) -> str:
        """Padded so that a stride of 1 keeps the size; with a bias."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else tuple(kernel)
        pads = [dilation * (k - 1) // 2 for k in kernel] * 2
        weight, bias = self.weight(outputs, channels // group, *kernel), self.weight(outputs, depth=4)
        axes = len(kernel)
        attributes = {"strides": [stride] * axes, "dilations": [dilation] * axes, "pads": pads, "group": group}
        return self.node("Conv", x, weight, bias, **attributes)

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def silu(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def add(self, a: str, b: str) -> str:
        return self.node("Add", a, b)

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        product = self.node("MatMul", x, self.weight(inputs, outputs, depth=inputs))
        return self.add(product, self.weight(outputs, depth=4))

    def norm(self, x: str, size: int) -> str:
        scale, bias = self.constant(np.ones(size, np.float32)), self.weight(size, depth=4)
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        return self.node("Gelu", x)

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.constant(shape, np.int64))

    def transpose(self, x: str, *perm: int) -> str:
        return self.node("Transpose", x, perm=perm)

    def attention(self, x: str, rows: int, size: int, heads: int, batch: int = 1) -> str:
        """Self-attention as exporters write it: products, a softmax, transposes between."""
        each = size // heads

        def heads_of(perm: tuple[int, ...]) -> str:
            return self.transpose(self.reshape(self.linear(x, size, size), batch, rows, heads, each), *perm)

        q, k, v = heads_of((0, 2, 1, 3)), heads_of((0, 2, 3, 1)), heads_of((0, 2, 1, 3))
        scores = self.node("Mul", self.node("MatMul", q, k), self.constant(each**-0.5, np.float32))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        return self.linear(self.reshape(self.transpose(mixed, 0, 2, 1, 3), batch, rows, size), size, size)

    # --- the model -------------------------------------------------------------------------------

    def model(self, outputs: list[str]) -> bytes:
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, results, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@dataclass(frozen=True)
class Case:
    """What is timed: one node, or a block of them. `make` adds them to a graph and returns the outputs."""

    kind: str
    name: str
    make: Callable[[Graph], str | list[str]]

    def build(self) -> tuple[bytes, dict[str, np.ndarray]]:
        graph = Graph(f"{self.kind} {self.name}")
        made = self.make(graph)
        return graph.model([made] if isinstance(made, str) else made), graph.feed
