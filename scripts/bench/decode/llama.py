"""A step of a decoder in llama.cpp: the same weights as a GGUF file, run by its Python package's C functions.

Weights of 4 bits are llama.cpp's Q4_0, those of 8 bits its Q8_0, in the same blocks of 32 with the same scales, which
both have in float16. Its caches are float16, as it has them unless told otherwise.

Needs gguf and llama-cpp-python. The latter's wheels are built for any processor; `CMAKE_ARGS=-DGGML_NATIVE=ON pip
install --no-binary llama-cpp-python llama-cpp-python` builds llama.cpp for this one.
"""

from __future__ import annotations

import ctypes
import pathlib
from collections.abc import Callable

import numpy as np
from model import Decoder, Shape

PARTS = {
    "q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up",
    "down": "ffn_down",
}  # fmt: skip
# The most tokens of one call of llama.cpp.
BATCH = 512


def fits(shape: Shape) -> None:
    """Says of a shape that llama.cpp has no type for."""
    if shape.bits not in (0, 4, 8) or shape.bits and (shape.block != 32 or shape.zeros):
        raise ValueError("its types of 4 and 8 bits have blocks of 32 without zero points")


def save(decoder: Decoder, path: pathlib.Path) -> None:
    """The decoder as a GGUF file."""
    import gguf

    shape = decoder.shape
    fits(shape)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.size)
    writer.add_rope_freq_base(1e4)
    writer.add_vocab_size(shape.words)
    writer.add_tokenizer_model("no_vocab")

    def add(name: str, weight: str, heads: int = 0) -> None:
        array, kind = blocks(decoder, weight)
        # llama.cpp rotates neighbours, GroupQueryAttention a head's halves.
        if heads:
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        name += ".weight"
        writer.add_tensor(name, np.ascontiguousarray(array), raw_dtype=gguf.GGMLQuantizationType[kind])

    add("token_embd", "words")
    for i in range(shape.layers):
        add(f"blk.{i}.attn_norm", f"l{i}.norm")
        add(f"blk.{i}.ffn_norm", f"l{i}.norm2")
        for part, name in PARTS.items():
            add(f"blk.{i}.{name}", f"l{i}.{part}", {"q": shape.heads, "k": shape.kv_heads}.get(part, 0))
    add("output_norm", "norm")
    if not shape.tied:
        add("output", "logits")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def blocks(decoder: Decoder, name: str) -> tuple[np.ndarray, str]:
    """A weight by rows of outputs, and the name of its type."""
    array, scales = decoder.constants[f"{name}.weight"], decoder.constants.get(f"{name}.scales")
    if array.ndim == 1:
        return array.astype(np.float32), "F32"
    if scales is None:
        kind = decoder.shape.kind.upper()
        array = array if name == "words" else array.T
        return (array.view(np.uint16) if kind == "BF16" else array), kind
    numbers = array.reshape(array.shape[0], -1, array.shape[-1])
    if decoder.shape.bits == 4:
        # A byte has neighbours; in Q4_0 it has two numbers 16 apart.
        each = np.stack([numbers & 15, numbers >> 4], -1).reshape(*numbers.shape[:2], 32)
        kind, numbers = "Q4_0", each[..., :16] | each[..., 16:] << 4
    else:
        kind, numbers = "Q8_0", numbers ^ 128
    scales = scales.astype(np.float16).reshape(*numbers.shape[:2], 1).view(np.uint8)
    return np.concatenate([scales, numbers], -1).reshape(array.shape[0], -1), kind


def opened(path: pathlib.Path, shape: Shape, threads: int) -> Callable[[int], np.ndarray]:
    """Runs one token with so many before it, and gives the scores. Tokens that are missing before it are run first."""
    import llama_cpp as llama

    quiet = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(quiet, None)
    model = llama.llama_model_load_from_file(str(path).encode(), llama.llama_model_default_params())
    if not model:
        raise ValueError("it cannot read the model")
    parameters = llama.llama_context_default_params()
    parameters.n_ctx, parameters.n_batch, parameters.n_ubatch = shape.context, BATCH, BATCH
    parameters.n_threads = parameters.n_threads_batch = threads
    context = llama.llama_init_from_model(model, parameters)
    if not context:
        raise ValueError("it has no memory for the caches")
    memory = llama.llama_get_memory(context)
    tokens = (ctypes.c_int32 * shape.context)(*(i * 7 % shape.words for i in range(shape.context)))
    there = 0

    def run(first: int, count: int) -> None:
        at = ctypes.cast(ctypes.byref(tokens, 4 * first), ctypes.POINTER(ctypes.c_int32))
        if llama.llama_decode(context, llama.llama_batch_get_one(at, count)):
            raise ValueError(f"it does not run {count} tokens after {first}")

    def step(past: int) -> np.ndarray:
        nonlocal there
        if there > past:
            llama.llama_memory_seq_rm(memory, 0, past, -1)
            there = past
        while there < past:
            count = min(past - there, BATCH)
            run(there, count)
            there += count
        run(past, 1)
        there = past + 1
        return np.ctypeslib.as_array(llama.llama_get_logits(context), (shape.words,))

    # The callback is called as long as the library is there.
    step.kept = quiet  # type: ignore[attr-defined]
    return step
