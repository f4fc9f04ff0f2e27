#!/usr/bin/env python3
"""Time decode steps of decoders like Llama's on the CPU, in rukh, ONNX Runtime, llama.cpp and onnxruntime-genai.

    decode.py [--layers N] [--width N] [--kind f32] [--bits 4] [--threads 2] [--past 512] [--rounds 9] …

The models have random weights (model.py). Engines take turns; of each the fastest turn counts, as other work on the
machine only makes turns longer. `bytes` is what a step reads at least, weights and caches; `gb_s` is that a second, and
`of_sum` that over what as many threads read in a plain sum over as many bytes (plain_sum.c).

The scores of the first tokens are compared: `difference` is that of the first two engines, and in an engine's own entry
that to the first. llama.cpp has the same weights (llama.py), onnxruntime-genai other random ones (genai.py). What is not
installed, or cannot run the shape, has its reason instead of times.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import statistics
import tempfile
import time
from dataclasses import fields
from typing import Any

import genai
import llama
import numpy as np
from engines import Step, opened
from model import Decoder, Shape
from plain_sum import PlainSum

# What an engine needs that is not named as it is.
PACKAGES = {"llama.cpp": ["gguf", "llama_cpp"], "onnxruntime-genai": ["onnxruntime_genai"]}
CHOICES = {field.name: field.type for field in fields(Shape)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in fields(Shape):
        if isinstance(field.default, bool):
            parser.add_argument(f"--{field.name}", action="store_true")
        else:
            parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--past", type=int, default=512, help="tokens before the first that is timed")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each engine")
    parser.add_argument("--steps", type=int, default=8, help="tokens of a turn")
    parser.add_argument("--engines", default="rukh,onnxruntime,llama.cpp,onnxruntime-genai")
    parser.add_argument("--provider", choices=("cpu", "hip"), default="cpu", help="rukh's; ONNX Runtime has the CPU")
    arguments = parser.parse_args()
    shape = Shape(**{name: getattr(arguments, name) for name in CHOICES})
    with tempfile.TemporaryDirectory() as folder:
        found = measure(shape, pathlib.Path(folder), arguments)
    print(json.dumps(found, indent=1))
    return found.get("difference", 0) > 0.1


def measure(shape: Shape, folder: pathlib.Path, arguments: argparse.Namespace) -> dict[str, Any]:
    decoder = Decoder(shape)
    size = decoder.weight_bytes() + shape.cache_bytes(arguments.past)
    found: dict[str, Any] = {"bytes": size, "threads": arguments.threads, "load": os.getloadavg()[0]}
    steps: dict[str, Step] = {}
    for name in arguments.engines.split(","):
        try:
            steps[name] = engine(name, decoder, folder, arguments)
            steps[name](0)
        except ImportError as error:
            found[name] = f"missing: {error}"
        except Exception as error:  # noqa: BLE001 - what an engine cannot run is told
            steps.pop(name, None)
            found[name] = str(error).splitlines()[0][:200]
    decoder.constants.clear()
    differences = compared(steps)
    if len(differences) > 1:
        found["difference"] = list(differences.values())[1]
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        # What some engines need to be there before it is run untimed.
        turn(step, arguments.past, 1)
    plain, rate = PlainSum(folder, size), 0.0
    plain.rate(arguments.threads)
    for i in range(arguments.rounds):
        for name in list(steps) if i % 2 == 0 else list(steps)[::-1]:
            # What the other left running (threads that wait for work by turning round) comes to rest.
            time.sleep(0.05)
            times[name] += turn(steps[name], arguments.past, arguments.steps)
        time.sleep(0.05)
        rate = max(rate, *(plain.rate(arguments.threads) for _ in range(arguments.steps)))
    found["sum_gb_s"] = round(rate / 1e9, 1)
    for name, each in times.items():
        best = min(each)
        told = {"tokens_s": 1 / best, "median_tokens_s": 1 / statistics.median(each), "ms": best * 1e3}
        told |= {"gb_s": size / best / 1e9, "of_sum": size / best / rate}
        found[name] = {key: round(value, 3) for key, value in told.items()}
        if name in differences:
            found[name]["difference"] = differences[name]
    return found


def engine(name: str, decoder: Decoder, folder: pathlib.Path, arguments: argparse.Namespace) -> Step:
    """An engine's step, its model written first."""
    shape, threads = decoder.shape, arguments.threads
    for package in PACKAGES.get(name, [name]):
        # Before a model is written for it.
        importlib.import_module(package)
    if name == "llama.cpp":
        path = folder / "decoder.gguf"
        llama.save(decoder, path)
        return llama.opened(path, shape, threads)
    if name == "onnxruntime-genai":
        genai.save(shape, folder / "genai", threads)
        return genai.opened(folder / "genai", shape)
    library = importlib.import_module(name)
    path = folder / "decoder.onnx"
    if not path.exists():
        decoder.save(path)
    return opened(library, path, shape, threads, arguments.provider)


def compared(steps: dict[str, Step]) -> dict[str, float]:
    """How far the scores of the first tokens are from those of the first engine, of engines with the same weights."""
    scores = {
        name: [step(past).astype(np.float32).ravel().copy() for past in range(4)]
        for name, step in steps.items()
        if name != "onnxruntime-genai"
    }
    return {name: difference(next(iter(scores.values())), each) for name, each in scores.items()}


def turn(step: Step, past: int, count: int) -> list[float]:
    """Times of tokens."""
    times = []
    for at in range(past, past + count):
        begin = time.perf_counter()
        step(at)
        times.append(time.perf_counter() - begin)
    return times


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """The root of the mean square of the differences, over that of `b`."""
    x, y = np.concatenate(a).astype(np.float64), np.concatenate(b).astype(np.float64)
    return round(float(np.sqrt(np.mean((x - y) ** 2)) / np.sqrt(np.mean(y**2))), 6)


if __name__ == "__main__":
    raise SystemExit(main())
