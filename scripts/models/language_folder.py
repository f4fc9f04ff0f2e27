"""Writes a language model as a folder that onnxruntime-genai's model builder would write: genai_config.json,
model.onnx and model.onnx.data.

The graph is that of a Llama: RMS norms with the residual added in the same node, attention with rotary positions and
key and value caches, and a gated unit. Weights come one after the other from a function of the caller's and go
straight to the file, so that a model may be larger than memory.

Needs onnx and numpy, not torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

TYPES = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# bf16 as its bits: NumPy has no such type.
ELEMENTS = {
    TensorProto.FLOAT: np.dtype(np.float32),
    TensorProto.FLOAT16: np.dtype(np.float16),
    TensorProto.BFLOAT16: np.dtype(np.uint16),
    TensorProto.UINT8: np.dtype(np.uint8),
    TensorProto.INT8: np.dtype(np.int8),
}
# Where a tensor starts in the file, so that it can be mapped.
ALIGNMENT = 4096


@dataclass
class Shape:
    """The dimensions of a model and the types of its weights."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocab: int
    context: int = 2048
    type: str = "f16"
    # 0: products with weights of `type`; else bits of the weights of MatMulNBits.
    bits: int = 0
    block: int = 32
    # What MatMulNBits may round its activations to; 4 is 8 bits.
    accuracy: int = 0
    # "group": GroupQueryAttention, present and past in one buffer; "multi": MultiHeadAttention, whose present is
    # past and the new keys, and which has as many heads of keys as of queries.
    attention: str = "group"
    # 0: caches of `type`; else the bits of what GroupQueryAttention keeps, and what that is multiplied with.
    cache_bits: int = 0
    cache_scale: float = 0.05
    theta: float = 10000.0
    epsilon: float = 1e-5
    bos: int = 1
    eos: int | list[int] = 2
    # Keys of "search" in genai_config.json that differ from the defaults.
    search: dict[str, Any] = field(default_factory=dict)


def cache_row(shape: Shape) -> tuple[int, int]:
    """The type of caches, and the elements of a row of a head."""
    if shape.cache_bits == 4:
        return TensorProto.UINT8, shape.head_size // 2
    return TensorProto.INT8 if shape.cache_bits else TYPES[shape.type], shape.head_size


# The elements of a tensor of this name, dimensions and type of ONNX, in pieces.
Weights = Callable[[str, list[int], int], Iterable[np.ndarray]]


def write(folder: Path, shape: Shape, weights: Weights) -> int:
    """Write the folder and return the bytes of the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "model.onnx.data", "wb") as data:
        graph = Graph(shape, weights, data)
        graph.build()
        size = data.tell()
    onnx.save(graph.model(), folder / "model.onnx")
    config = json.dumps(configuration(shape), indent=4)
    (folder / "genai_config.json").write_text(config + "\n", encoding="utf-8")
    return size


def configuration(shape: Shape) -> dict[str, Any]:
    """What genai_config.json holds."""
    inputs = {"input_ids": "input_ids", "attention_mask": "attention_mask"}
    if shape.attention == "multi":
        inputs["position_ids"] = "position_ids"
    inputs |= {"past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"}
    outputs = {
        "logits": "logits",
        "present_key_names": "present.%d.key",
        "present_value_names": "present.%d.value",
    }
    search = {
        "do_sample": False,
        "max_length": shape.context,
        "min_length": 0,
        "num_beams": 1,
        "num_return_sequences": 1,
        "past_present_share_buffer": shape.attention == "group",
        "repetition_penalty": 1.0,
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
    }
    return {
        "model": {
            "bos_token_id": shape.bos,
            "context_length": shape.context,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": "model.onnx",
                "head_size": shape.head_size,
                "hidden_size": shape.hidden,
                "inputs": inputs,
                "outputs": outputs,
                "num_attention_heads": shape.heads,
                "num_hidden_layers": shape.layers,
                "num_key_value_heads": shape.kv_heads,
            },
            "eos_token_id": shape.eos,
            "pad_token_id": shape.eos if isinstance(shape.eos, int) else shape.eos[0],
            "type": "llama",
            "vocab_size": shape.vocab,
        },
        "search": search | shape.search,
    }


class Graph:
    """The nodes of a model, and its weights on their way to the file."""

    def __init__(self, shape: Shape, weights: Weights, data: Any) -> None:
        self.shape, self.weights, self.data = shape, weights, data
        self.type = TYPES[shape.type]
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def build(self) -> None:
        shape = self.shape
        if shape.attention == "multi" and shape.kv_heads != shape.heads:
            raise ValueError("MultiHeadAttention has as many heads of keys as of queries")
        if shape.attention == "multi" and shape.cache_bits:
            raise ValueError("MultiHeadAttention has caches of numbers")
        self.input("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        self.input("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])
        if shape.attention == "multi":
            self.input("position_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
        else:
            self.lengths()
        self.tables()
        table = self.weight("model.embed_tokens.weight", [shape.vocab, shape.hidden])
        rows = self.node("Gather", [table, "input_ids"], "/model/embed_tokens/Gather")
        # The sum of what came before a block, and that sum normed.
        rows, normed = self.norm("model.layers.0.input_layernorm", rows, None)
        for layer in range(shape.layers):
            attended = self.attention(layer, normed)
            name = f"model.layers.{layer}.post_attention_layernorm"
            rows, normed = self.norm(name, rows, attended)
            unit = self.gated_unit(layer, normed)
            last = layer + 1 == shape.layers
            following = "final_norm_layernorm" if last else "input_layernorm"
            name = f"model.layers.{layer + 1}.{following}"
            rows, normed = self.norm(name, rows, unit, last)
        self.product("lm_head", normed, shape.hidden, shape.vocab, "logits")
        self.output("logits", self.type, ["batch_size", "sequence_length", shape.vocab])

    def attention(self, layer: int, x: str) -> str:
        """Attention behind its projections, and the projection of its result."""
        shape, at = self.shape, f"model.layers.{layer}.attn"
        wide, narrow = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
        q = self.product(f"{at}.q_proj", x, shape.hidden, wide)
        k = self.product(f"{at}.k_proj", x, shape.hidden, narrow)
        v = self.product(f"{at}.v_proj", x, shape.hidden, narrow)
        past, present = [], []
        for kind in ("key", "value"):
            past.append(f"past_key_values.{layer}.{kind}")
            present.append(f"present.{layer}.{kind}")
            kind, columns = cache_row(shape)
            dims = ["batch_size", shape.kv_heads, "past_sequence_length", columns]
            self.input(past[-1], kind, dims)
            self.output(present[-1], kind, dims[:2] + ["total_sequence_length"] + dims[3:])
        result = f"/{at}/output_0"
        scale = shape.head_size**-0.5
        if shape.attention == "group":
            inputs = [q, k, v, *past, "seqlens_k", "total_length", "cos_cache", "sin_cache"]
            quantized = {}
            if shape.cache_bits:
                inputs += ["", "", "", "cache_scale", "cache_scale"]
                quantized = {"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR", "kv_cache_bit_width": shape.cache_bits}
            self.nodes.append(
                helper.make_node(
                    "GroupQueryAttention",
                    inputs,
                    [result, *present],
                    f"/{at}/GroupQueryAttention",
                    domain="com.microsoft",
                    num_heads=shape.heads,
                    kv_num_heads=shape.kv_heads,
                    scale=scale,
                    do_rotary=1,
                    rotary_interleaved=0,
                    **quantized,
                )
            )
        else:
            q, k = (
                self.node(
                    "RotaryEmbedding",
                    [part, "position_ids", "cos_cache", "sin_cache"],
                    f"/{at}/{letter}_rotary/RotaryEmbedding",
                    domain="com.microsoft",
                    num_heads=shape.heads,
                    interleaved=0,
                )
                for letter, part in (("q", q), ("k", k))
            )
            self.nodes.append(
                helper.make_node(
                    "MultiHeadAttention",
                    [q, k, v, "", "attention_mask_i32", "", *past],
                    [result, *present],
                    f"/{at}/MultiHeadAttention",
                    domain="com.microsoft",
                    num_heads=shape.heads,
                    scale=scale,
                    unidirectional=1,
                )
            )
        return self.product(f"{at}.o_proj", result, wide, shape.hidden)

    def gated_unit(self, layer: int, x: str) -> str:
        shape, at = self.shape, f"model.layers.{layer}.mlp"
        gate = self.product(f"{at}.gate_proj", x, shape.hidden, shape.intermediate)
        up = self.product(f"{at}.up_proj", x, shape.hidden, shape.intermediate)
        sigmoid = self.node("Sigmoid", [gate], f"/{at}/act_fn/Sigmoid")
        active = self.node("Mul", [gate, sigmoid], f"/{at}/act_fn/Mul")
        both = self.node("Mul", [active, up], f"/{at}/Mul")
        return self.product(f"{at}.down_proj", both, shape.intermediate, shape.hidden)

    def norm(self, name: str, rows: str, added: str | None, last: bool = False) -> tuple[str, str]:
        """The sum of both and its norm; of `rows` alone where nothing is added."""
        weight = self.weight(f"{name}.weight", [self.shape.hidden])
        epsilon = {"epsilon": self.shape.epsilon}
        if added is None:
            normed = self.node("SimplifiedLayerNormalization", [rows, weight], f"/{name}", axis=-1, **epsilon)
            return rows, normed
        outputs = [f"/{name}/output_0"] + ([] if last else ["", "", f"/{name}/output_3"])
        self.nodes.append(
            helper.make_node(
                "SkipSimplifiedLayerNormalization",
                [rows, added, weight],
                outputs,
                f"/{name}/SkipLayerNorm",
                domain="com.microsoft",
                **epsilon,
            )
        )
        return outputs[-1], outputs[0]

    def product(self, name: str, x: str, k: int, n: int, output: str = "") -> str:
        """x, of k columns, times a weight of n."""
        bits, block = self.shape.bits, self.shape.block
        title = f"/{name.replace('.', '/')}/MatMul"
        if not bits:
            weight = self.weight(f"{name}.MatMul.weight", [k, n])
            return self.node("MatMul", [x, weight], title, output)
        blocks = -(-k // block)
        weight = f"{name}.MatMul.weight"
        packed = self.weight(f"{weight}_Q{bits}", [n, blocks, block * bits // 8], TensorProto.UINT8)
        scales = self.weight(f"{weight}_scales", [n, blocks])
        sizes = {"K": k, "N": n, "bits": bits, "block_size": block}
        if self.shape.accuracy:
            sizes["accuracy_level"] = self.shape.accuracy
        return self.node(
            "MatMulNBits", [x, packed, scales], title + "NBits", output, domain="com.microsoft", **sizes
        )

    def lengths(self) -> None:
        """The index of each sample's last key, and the longest total length."""
        at = "/model/attn_mask_reformat"
        one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
        index = helper.make_tensor("index", TensorProto.INT64, [], [1])
        self.initializers += [one, index]
        counts = self.node("ReduceSum", ["attention_mask", "one"], f"{at}/ReduceSum", keepdims=0)
        last = self.node("Sub", [counts, "one"], f"{at}/Sub")
        self.node("Cast", [last], f"{at}/seqlens_k/Cast", "seqlens_k", to=TensorProto.INT32)
        dims = self.node("Shape", ["attention_mask"], f"{at}/Shape")
        total = self.node("Gather", [dims, "index"], f"{at}/Gather", axis=0)
        self.node("Cast", [total], f"{at}/total_seq_len/Cast", "total_length", to=TensorProto.INT32)

    def tables(self) -> None:
        """Cosines and sines of the angles by which pairs of each position are rotated."""
        shape = self.shape
        half = shape.head_size // 2
        frequencies = shape.theta ** -(np.arange(half, dtype=np.float64) * 2 / shape.head_size)
        angles = np.arange(shape.context, dtype=np.float64)[:, None] * frequencies
        for name, table in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles))):
            self.store(name, [shape.context, half], self.type, [encoded(table, self.type)])
        if shape.cache_bits:
            scale = [np.array([shape.cache_scale], np.float32)]
            self.store("cache_scale", [1], TensorProto.FLOAT, scale)
        if shape.attention == "multi":
            self.node("Cast", ["attention_mask"], "/mask/Cast", "attention_mask_i32", to=TensorProto.INT32)

    def weight(self, name: str, dims: list[int], type: int | None = None) -> str:
        type = self.type if type is None else type
        return self.store(name, dims, type, self.weights(name, dims, type))

    def store(self, name: str, dims: list[int], type: int, pieces: Iterable[np.ndarray]) -> str:
        """Append a tensor to the file."""
        self.data.write(b"\0" * (-self.data.tell() % ALIGNMENT))
        start = self.data.tell()
        for piece in pieces:
            self.data.write(memoryview(np.ascontiguousarray(piece)).cast("B"))
        length = self.data.tell() - start
        expected = int(np.prod(dims)) * ELEMENTS[type].itemsize
        if length != expected:
            raise ValueError(f"{name}: {length} bytes were given, {expected} make {dims}")
        tensor = TensorProto(name=name, data_type=type, dims=dims, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "model.onnx.data"), ("offset", start), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers.append(tensor)
        return name

    def node(
        self, kind: str, inputs: list[str], title: str, output: str = "", domain: str = "", **attributes: Any
    ) -> str:
        """Append a node of one output and return its name."""
        output = output or f"{title}/output_0"
        self.nodes.append(helper.make_node(kind, inputs, [output], title, domain=domain, **attributes))
        return output

    def input(self, name: str, type: int, dims: list[Any]) -> None:
        self.inputs.append(helper.make_tensor_value_info(name, type, dims))

    def output(self, name: str, type: int, dims: list[Any]) -> None:
        self.outputs.append(helper.make_tensor_value_info(name, type, dims))

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "main_graph", self.inputs, self.outputs, self.initializers)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="rukh")


def encoded(values: np.ndarray, type: int) -> np.ndarray:
    """Values as elements of a type of ONNX; bf16 rounded to nearest, as bits."""
    if type != TensorProto.BFLOAT16:
        return values.astype(ELEMENTS[type])
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
