"""Decoders like Llama's with random weights, of any size, as exporters of language models write them.

GroupQueryAttention rotates, and has past and present in one buffer; the caller binds both to the same memory and
counts `seqlens_k` and `total_sequence_length` on.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

MICROSOFT = "com.microsoft"
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
FLOATS = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


@dataclass(frozen=True)
class Shape:
    """What a decoder is made of. `bits` 0: the weights of products are of the type of everything else."""

    layers: int = 16
    width: int = 2048
    heads: int = 32
    kv_heads: int = 8
    inner: int = 8192
    words: int = 32000
    context: int = 2048
    kind: str = "f32"
    bits: int = 0
    block: int = 32
    zeros: bool = False
    accuracy: int = 0
    tied: bool = False

    @property
    def size(self) -> int:
        return self.width // self.heads

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(helper.tensor_dtype_to_np_dtype(FLOATS[self.kind]))

    def cache_bytes(self, past: int) -> int:
        """What a step reads of the caches."""
        return 2 * self.layers * self.kv_heads * self.size * past * self.dtype.itemsize


class Decoder:
    """The graph of one step: token ids in, scores of the next tokens and caches out."""

    def __init__(self, shape: Shape, seed: int = 1) -> None:
        self.shape, self.random = shape, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs, self.outputs = self._ports()
        self._make()

    def _ports(self) -> tuple[list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
        s, kind = self.shape, FLOATS[self.shape.kind]
        value = helper.make_tensor_value_info
        inputs = [
            value("input_ids", TensorProto.INT64, ["batch", "rows"]),
            value("seqlens_k", TensorProto.INT32, ["batch"]),
            value("total_sequence_length", TensorProto.INT32, []),
        ]
        outputs = [value("logits", kind, ["batch", "rows", s.words])]
        cache = ["batch", s.kv_heads, "context", s.size]
        for i in range(s.layers):
            for part in ("key", "value"):
                inputs.append(value(f"past.{i}.{part}", kind, cache))
                outputs.append(value(f"present.{i}.{part}", kind, cache))
        return inputs, outputs

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants[name] = array
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str] | str, domain: str = "", **attributes: Any) -> str:
        names = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(helper.make_node(op, inputs, names, names[0], domain=domain, **attributes))
        return names[0]

    def floats(self, name: str, *shape: int, scale: float = 1.0) -> str:
        array = self.random.standard_normal(shape, np.float32) * np.float32(scale)
        return self.constant(name, array.astype(self.shape.dtype))

    def product(self, x: str, k: int, n: int, name: str) -> str:
        s = self.shape
        if not s.bits:
            weight = self.floats(f"{name}.weight", k, n, scale=k**-0.5)
            return self.node("MatMul", [x, weight], name)
        blocks = -(-k // s.block)
        packed = self.random.integers(0, 256, (n, blocks, s.block * s.bits // 8), np.uint8)
        # Uniform numbers of `bits` bits have this standard deviation.
        spread = 2**s.bits * 12**-0.5
        # Scales of real models come from weights of 16 bits, or are kept as such.
        scales = (self.random.uniform(0.5, 1.5, n * blocks) / (spread * k**0.5)).astype(np.float16)
        inputs = [x, self.constant(f"{name}.weight", packed), self.constant(f"{name}.scales", scales.astype(s.dtype))]
        if s.zeros:
            packed_zeros = self.random.integers(0, 256, n * -(-blocks * s.bits // 8), np.uint8)
            inputs.append(self.constant(f"{name}.zeros", packed_zeros))
        sizes = {"K": k, "N": n, "bits": s.bits, "block_size": s.block, "accuracy_level": s.accuracy}
        return self.node("MatMulNBits", inputs, name, MICROSOFT, **sizes)

    def norm(self, x: str, name: str) -> str:
        weight = self.constant(f"{name}.weight", np.ones(self.shape.width, self.shape.dtype))
        return self.node("SimplifiedLayerNormalization", [x, weight], name, axis=-1, epsilon=1e-5)

    def skip_norm(self, x: str, y: str, name: str) -> tuple[str, str]:
        """The sum of both, normalised, and the sum."""
        weight = self.constant(f"{name}.weight", np.ones(self.shape.width, self.shape.dtype))
        outputs = [name, "", "", f"{name}.sum"]
        self.node("SkipSimplifiedLayerNormalization", [x, y, weight], outputs, MICROSOFT, epsilon=1e-5)
        return name, f"{name}.sum"

    def attention(self, x: str, i: int) -> str:
        s = self.shape
        kv = s.kv_heads * s.size
        q, k, v = (self.product(x, s.width, n, f"l{i}.{name}") for name, n in (("q", s.width), ("k", kv), ("v", kv)))
        inputs = [q, k, v, f"past.{i}.key", f"past.{i}.value", "seqlens_k", "total_sequence_length", "cos", "sin"]
        outputs = [f"l{i}.attention", f"present.{i}.key", f"present.{i}.value"]
        heads = {"num_heads": s.heads, "kv_num_heads": s.kv_heads, "do_rotary": 1}
        y = self.node("GroupQueryAttention", inputs, outputs, MICROSOFT, **heads)
        return self.product(y, s.width, s.width, f"l{i}.o")

    def gated(self, x: str, i: int) -> str:
        s = self.shape
        gate, up = (self.product(x, s.width, s.inner, f"l{i}.{name}") for name in ("gate", "up"))
        act = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"l{i}.sigmoid")], f"l{i}.silu")
        return self.product(self.node("Mul", [act, up], f"l{i}.gated"), s.inner, s.width, f"l{i}.down")

    def _make(self) -> None:
        s = self.shape
        angles = np.outer(np.arange(s.context), 1e4 ** -(np.arange(s.size // 2) / (s.size // 2)))
        self.constant("cos", np.cos(angles).astype(s.dtype))
        self.constant("sin", np.sin(angles).astype(s.dtype))
        scale = s.width**-0.5 if s.tied else 1.0
        x = self.node("Gather", [self.floats("words.weight", s.words, s.width, scale=scale), "input_ids"], "words")
        normed = self.norm(x, "l0.norm")
        for i in range(s.layers):
            normed, x = self.skip_norm(x, self.attention(normed, i), f"l{i}.norm2")
            after = f"l{i + 1}.norm" if i + 1 < s.layers else "norm"
            normed, x = self.skip_norm(x, self.gated(normed, i), after)
        if s.tied:
            turned = self.node("Transpose", ["words.weight"], "head.weight", perm=[1, 0])
            self.node("MatMul", [normed, turned], "logits")
        else:
            self.product(normed, s.width, s.words, "logits")

    def save(self, path: pathlib.Path) -> None:
        """The model, its weights in a file beside it."""
        data = path.with_name(path.name + ".data")
        initializers = []
        with data.open("wb") as out:
            for name, array in self.constants.items():
                out.write(bytes(-out.tell() % 4096))
                tensor = TensorProto(name=name, dims=array.shape)
                tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
                tensor.data_location = TensorProto.EXTERNAL
                place = {"location": data.name, "offset": out.tell(), "length": array.nbytes}
                for key, told in place.items():
                    tensor.external_data.add(key=key, value=str(told))
                out.write(array.tobytes())
                initializers.append(tensor)
        graph = helper.make_graph(self.nodes, "decoder", self.inputs, self.outputs, initializers)
        path.write_bytes(helper.make_model(graph, opset_imports=OPSETS, ir_version=10).SerializeToString())

    def weight_bytes(self) -> int:
        """What a step reads of the constants at least: scales have 16 bits, whatever type they are stored as."""
        left = ("cos", "sin") if self.shape.tied else ("words.weight", "cos", "sin")
        read = {name: a for name, a in self.constants.items() if name not in left}
        return sum(2 * a.size if name.endswith(".scales") else a.nbytes for name, a in read.items())
