"""A step of a decoder in rukh and in ONNX Runtime, with caches in one buffer that is bound once."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
from model import Shape

Step = Callable[[int], np.ndarray]


def opened(library: Any, path: pathlib.Path, shape: Shape, threads: int, provider: str = "cpu") -> Step:
    """Runs one token with so many before it, and gives the scores. `library`: rukh, on a provider, or onnxruntime."""
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    provider = "CPUExecutionProvider" if library.__name__ == "onnxruntime" else provider
    session = library.InferenceSession(str(path), options, providers=[provider])
    binding = session.io_binding()
    ids, last, total = np.zeros((1, 1), np.int64), np.zeros(1, np.int32), np.zeros((), np.int32)
    counts = {"input_ids": ids, "seqlens_k": last, "total_sequence_length": total}
    logits = np.empty((1, 1, shape.words), shape.dtype)
    kept: list[np.ndarray] = [logits]
    kind = shape.dtype.type
    for name, array in counts.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    binding.bind_output("logits", "cpu", 0, kind, logits.shape, logits.ctypes.data)
    for i in range(shape.layers):
        for part in ("key", "value"):
            cache = np.zeros((1, shape.kv_heads, shape.context, shape.size), shape.dtype)
            kept.append(cache)
            for bind, name in ((binding.bind_input, "past"), (binding.bind_output, "present")):
                bind(f"{name}.{i}.{part}", "cpu", 0, kind, cache.shape, cache.ctypes.data)

    def step(past: int) -> np.ndarray:
        ids[0, 0] = past * 7 % shape.words
        last[0], total[()] = past, past + 1
        session.run_with_iobinding(binding)
        return kept[0]

    return step
