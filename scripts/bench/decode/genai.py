"""A step of a decoder in onnxruntime-genai, which runs folders as its model builder writes them.

The folder is of language_models.py: the same sizes, with other random weights, so that scores are not compared.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from model import Shape

WRITER = pathlib.Path(__file__).resolve().parents[1] / "language_models.py"


def save(shape: Shape, folder: pathlib.Path, threads: int) -> None:
    """The folder of such a model, for so many threads."""
    if shape.zeros or shape.tied:
        raise ValueError("language_models.py writes no zero points and no tied words")
    options = {
        "layers": shape.layers, "hidden": shape.width, "intermediate": shape.inner, "heads": shape.heads,
        "kv-heads": shape.kv_heads, "head-size": shape.size, "vocab": shape.words, "context": shape.context,
        "type": shape.kind, "bits": shape.bits, "block-size": shape.block, "accuracy-level": shape.accuracy,
    }  # fmt: skip
    told = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    command = [sys.executable, str(WRITER), str(folder), *told]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"language_models.py: {done.stderr.strip().splitlines()[-1]}")
    path = folder / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["decoder"]["session_options"]["intra_op_num_threads"] = threads
    path.write_text(json.dumps(config))


def opened(folder: pathlib.Path, shape: Shape) -> Callable[[int], np.ndarray]:
    """Runs one token with so many before it, and gives the scores. Tokens that are missing before it are run first."""
    import onnxruntime_genai as genai

    parameters = genai.GeneratorParams(model := genai.Model(str(folder)))
    parameters.set_search_options(max_length=shape.context)
    generator = genai.Generator(model, parameters)
    tokens = (np.arange(shape.context) * 7 % (shape.words - 1)).astype(np.int32)

    def step(past: int) -> np.ndarray:
        there = generator.token_count()
        if there > past:
            generator.rewind_to(past)
        elif there < past:
            generator.append_tokens(tokens[there:past])
        generator.append_tokens(tokens[past : past + 1])
        return generator.get_logits()

    return step
