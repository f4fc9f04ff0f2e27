#!/usr/bin/env python3
"""Write language models of any size with random weights, to time generating text without downloading one.

    language_models.py FOLDER [--preset tiny|1b|8b] [--type f16|f32|bf16] [--bits 0|2|4|8] [--block-size 32]
                       [--context 2048] [--layers N] [--hidden N] [--intermediate N] [--heads N] [--kv-heads N]
                       [--head-size N] [--vocab N] [--attention group|multi] [--cache-bits 0|4|8]
                       [--accuracy-level N] [--seed N]

A folder is like those of onnxruntime-genai's model builder: genai_config.json, model.onnx, model.onnx.data, and a
tokenizer that has a token for each byte. The presets have the shapes of Llama 3's models with 1 and 8 billion
weights; other options change single numbers of them. Weights are pieces of a block of random numbers, so that the
disk sets the time: the model need not fit into memory.

Needs onnx and numpy.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "models"))

from language_folder import ELEMENTS, Shape, encoded, write  # noqa: E402

PRESETS = {
    "tiny": Shape(layers=2, hidden=64, intermediate=160, heads=4, kv_heads=2, head_size=16, vocab=320),
    "1b": Shape(layers=16, hidden=2048, intermediate=8192, heads=32, kv_heads=8, head_size=64, vocab=128256),
    "8b": Shape(layers=32, hidden=4096, intermediate=14336, heads=32, kv_heads=8, head_size=128, vocab=128256),
}
# Elements of a block of random numbers; an odd number, so that rows of a weight do not repeat.
POOL = (1 << 22) + 1
# The standard deviation of weights, as models are initialised.
DEVIATION = 0.02


def main() -> None:
    arguments = parse()
    shape = PRESETS[arguments.preset]
    for name in ("layers", "hidden", "intermediate", "heads", "kv_heads", "head_size", "vocab", "context"):
        if getattr(arguments, name) is not None:
            setattr(shape, name, getattr(arguments, name))
    shape.type, shape.bits, shape.block = arguments.type, arguments.bits, arguments.block_size
    shape.attention, shape.theta = arguments.attention, 500000.0
    shape.cache_bits = arguments.cache_bits
    # Keys and values are sums of `hidden` products with weights, of rows of mean square 1.
    shape.cache_scale = 4 * DEVIATION * shape.hidden**0.5 / 2 ** max(shape.cache_bits - 1, 0)
    # What the model builder writes for CPUs: activations of products with packed weights may have 8 bits.
    default = 4 if arguments.type == "f32" else 0
    shape.accuracy = default if arguments.accuracy_level is None else arguments.accuracy_level
    # Bytes are tokens 0 to 255, and no stop token comes by chance soon.
    shape.bos, shape.eos = 0, shape.vocab - 1
    start = time.monotonic()
    size = write(arguments.folder, shape, Random(arguments.seed, shape.bits))
    write_tokenizer(arguments.folder)
    print(f"{arguments.folder}: {size / 1e6:.0f} MB of weights in {time.monotonic() - start:.1f} s")


class Random:
    """Weights as pieces of blocks of random numbers, from random places."""

    def __init__(self, seed: int, bits: int) -> None:
        self.random = np.random.default_rng(seed)
        self.bits = bits
        # A value of n bits is at most half of 2^n from zero.
        self.step = DEVIATION * 3**0.5 / 2 ** max(bits - 1, 0)
        self.pools: dict[tuple[str, int], np.ndarray] = {}

    def __call__(self, name: str, dims: list[int], type: int) -> Iterator[np.ndarray]:
        if name.endswith("norm.weight"):
            yield encoded(1 + 0.1 * self.random.standard_normal(dims), type)
            return
        pool = self.pool("scales" if name.endswith("_scales") else "weights", type)
        left = int(np.prod(dims))
        while left:
            start = int(self.random.integers(POOL))
            piece = pool[start : start + left]
            left -= piece.size
            yield piece

    def pool(self, kind: str, type: int) -> np.ndarray:
        if (kind, type) not in self.pools:
            if type == TensorProto.UINT8:
                made = self.packed()
            elif kind == "scales":
                made = encoded(self.step * self.random.uniform(0.6, 1.4, POOL), type)
            else:
                made = encoded(DEVIATION * self.random.standard_normal(POOL, np.float32), type)
            self.pools[kind, type] = made
        return self.pools[kind, type]

    def packed(self) -> np.ndarray:
        """Bytes of numbers from 1 to 2^n - 1, so that their mean is 0. With another mean activations grow from layer to
        layer, beyond f16 for some tokens."""
        made = np.zeros(POOL, np.uint8)
        for shift in range(0, 8, self.bits):
            made |= (self.random.integers(1, 1 << self.bits, POOL) << shift).astype(np.uint8)
        return made


def write_tokenizer(folder: Path) -> None:
    """A tokenizer without merges: one token a byte, with the names that byte-level BPE gives bytes."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in printable)
    names = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "vocab": {names[byte]: byte for byte in range(256)}, "merges": []},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--type", choices=["f16", "f32", "bf16"], default="f16")
    parser.add_argument("--bits", type=int, choices=[0, 2, 4, 8], default=0)
    parser.add_argument("--block-size", type=int, default=32)
    parser.add_argument("--attention", choices=["group", "multi"], default="group")
    parser.add_argument("--cache-bits", type=int, choices=[0, 4, 8], default=0, help="0: caches of --type")
    parser.add_argument("--accuracy-level", type=int)
    parser.add_argument("--seed", type=int, default=1)
    for name in ("layers", "hidden", "intermediate", "heads", "kv-heads", "head-size", "vocab", "context"):
        parser.add_argument(f"--{name}", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    main()
