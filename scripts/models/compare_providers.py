#!/usr/bin/env python3
"""Compare the hip provider with the cpu provider on whole models, in f32 and in half precision.

    compare_providers.py [--precision f32,f16] [--runs N] FOLDER…

Each FOLDER holds model.onnx and inputs.npz, as `seeded.py` makes them. For every precision the largest
difference of any output from the cpu provider's floats, over that output's largest magnitude, must stay below
LIMITS; that of the cpu provider in the same precision is shown beside it. Also told: the time from opening the
model to its first output on the device, and the median of N runs after it. Prints Markdown; ends with 1 when
a limit is passed.
"""

import argparse
import pathlib
import statistics
import sys
import time

import numpy as np
import rukh

LIMITS = {"f32": 1e-3, "f16": 5e-2, "bf16": 2e-1}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precision", default="f32,f16")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    print("| model | precision | difference | cpu's | first output, s | run, ms | |\n|---|---|---|---|---|---|---|")
    failed = False
    for folder in arguments.folders:
        feed = dict(np.load(folder / "inputs.npz"))
        reference = run(folder, feed, ["cpu"], "f32", 0)[0]
        for precision in arguments.precision.split(","):
            outputs, first, later = run(folder, feed, ["hip", "cpu"], precision, arguments.runs)
            own = run(folder, feed, ["cpu"], precision, 0)[0] if precision != "f32" else reference
            difference, cpus = worst(outputs, reference), worst(own, reference)
            # Half precision may lose as much as it loses on the CPU.
            wrong = not difference <= max(LIMITS[precision], 2 * cpus)
            failed |= wrong
            print(
                f"| {folder.name} | {precision} | {difference:.1e} | {cpus:.1e} | {first:.2f} | {later:.2f} |"
                f" {'WRONG' if wrong else ''} |",
                flush=True,
            )
    return failed


def run(folder, feed, providers, precision, runs):
    """The outputs, the seconds to the first of them, the median of further runs in ms."""
    options = rukh.SessionOptions()
    options.add_session_config_entry("precision", precision)
    start = time.perf_counter()
    session = rukh.InferenceSession(folder / "model.onnx", options, providers=providers)
    outputs = session.run(None, feed)
    first = time.perf_counter() - start
    times = [0.0]
    for i in range(runs):
        begin = time.perf_counter()
        session.run(None, feed)
        times[i:] = [time.perf_counter() - begin]
    return outputs, first, statistics.median(times) * 1e3


def worst(outputs, reference):
    """The largest difference over the largest magnitude, of all outputs; NaN when any is."""
    differences = [
        np.abs(a.astype(np.float64) - b).max() / max(np.abs(b.astype(np.float64)).max(), 1e-30)
        for a, b in zip(outputs, reference, strict=True)
        if b.dtype.kind == "f" and b.size
    ]
    return float(np.max(differences)) if differences else 0.0


if __name__ == "__main__":
    sys.exit(main())
