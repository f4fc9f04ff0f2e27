#!/usr/bin/env python3
"""Time decode steps of decoders like Llama's on the CPU, in rukh, ONNX Runtime and, where it is there, llama.cpp.

    decode.py [--layers N] [--width N] [--kind f32] [--bits 4] [--threads 2] [--past 512] [--rounds 9] …

The models have random weights (model.py). Engines take turns; of each the fastest turn counts, as other work on the
machine only makes turns longer. The scores of the first tokens are compared. `bytes` is what a step reads of weights,
and the last column what that is a second, over what as many threads read in a plain sum over as many bytes.

llama.cpp is optional: `--llama-bench PROGRAM` names its program, and `--gguf FILE` a model of the same shape (say, made
by its convert_hf_to_gguf.py and llama-quantize as Q4_0). Without them the table says so.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import fields
from typing import Any

import numpy as np
from engines import Step, opened
from model import Decoder, Shape

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
    parser.add_argument("--llama-bench", type=pathlib.Path)
    parser.add_argument("--gguf", type=pathlib.Path)
    parser.add_argument("--engines", default="rukh,onnxruntime")
    parser.add_argument("--provider", choices=("cpu", "hip"), default="cpu", help="rukh's; ONNX Runtime has the CPU")
    arguments = parser.parse_args()
    shape = Shape(**{name: getattr(arguments, name) for name in CHOICES})
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "decoder.onnx"
        decoder = Decoder(shape)
        decoder.save(path)
        size = decoder.weight_bytes()
        decoder.constants.clear()
        found = measure(path, shape, size, arguments)
    print(json.dumps(found, indent=1))
    return found.get("difference", 0) > 0.1


def measure(path: pathlib.Path, shape: Shape, size: int, arguments: argparse.Namespace) -> dict[str, Any]:
    steps: dict[str, Step] = {}
    found: dict[str, Any] = {"bytes": size, "load": os.getloadavg()[0]}
    for name in arguments.engines.split(","):
        try:
            library = __import__(name)
            steps[name] = opened(library, path, shape, arguments.threads, arguments.provider)
            steps[name](0)
        except Exception as error:  # noqa: BLE001 - what an engine cannot run is told
            steps.pop(name, None)
            found[name] = str(error).splitlines()[0][:200]
    scores = [[step(past).astype(np.float32).copy() for past in range(4)] for step in steps.values()]
    if len(scores) > 1:
        found["difference"] = difference(*scores[:2])
    times: dict[str, list[float]] = {name: [] for name in steps}
    sums: list[float] = []
    block = np.ones(min(size, 1 << 30) // 8, np.int64)
    for i in range(arguments.rounds):
        for name in list(steps) if i % 2 == 0 else list(steps)[::-1]:
            # What the other left running (threads that wait for work by turning round) comes to rest.
            time.sleep(0.05)
            times[name] += turn(steps[name], arguments.past, arguments.steps)
        sums.append(plain_sum(block, arguments.threads))
    rate = block.nbytes / min(sums)
    found["sum_gb_s"] = round(rate / 1e9, 1)
    for name, each in times.items():
        best = min(each)
        told = {"tokens_s": 1 / best, "median_tokens_s": 1 / statistics.median(each), "of_sum": size / best / rate}
        found[name] = {key: round(value, 3) for key, value in told.items()}
    found["llama.cpp"] = llama(arguments)
    return found


def turn(step: Step, past: int, count: int) -> list[float]:
    """Times of tokens."""
    times = []
    for at in range(past, past + count):
        begin = time.perf_counter()
        step(at)
        times.append(time.perf_counter() - begin)
    return times


def plain_sum(block: np.ndarray, threads: int) -> float:
    parts = np.array_split(block, threads)
    workers = [threading.Thread(target=part.sum) for part in parts[1:]]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    parts[0].sum()
    for worker in workers:
        worker.join()
    return time.perf_counter() - begin


def difference(a: list[np.ndarray], b: list[np.ndarray]) -> float:
    """The root of the mean square of the differences, over that of `b`."""
    x, y = np.concatenate(a).astype(np.float64), np.concatenate(b).astype(np.float64)
    return round(float(np.sqrt(np.mean((x - y) ** 2)) / np.sqrt(np.mean(y**2))), 6)


def llama(arguments: argparse.Namespace) -> Any:
    if not (arguments.llama_bench and arguments.gguf):
        return "missing: --llama-bench and --gguf name its program and a model"
    command = [
        arguments.llama_bench, "-m", arguments.gguf, "-p", 0, "-n", arguments.steps, "-t", arguments.threads,
        "-r", arguments.rounds, "-d", arguments.past, "-o", "json",
    ]  # fmt: skip
    told = json.loads(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout)
    return {"tokens_s": max(told[0]["samples_ts"])}


if __name__ == "__main__":
    raise SystemExit(main())
