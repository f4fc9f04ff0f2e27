#!/usr/bin/env python3
"""One engine with one model, in a process of its own, for bench.py.

    worker.py ENGINE MODEL FOLDER THREADS PRECISION

FOLDER has inputs.npz; the outputs of the first run are written to outputs.npz there. Prints a line of JSON:
load_ms, first_ms (load and first run), anonymous_mb (anonymous memory that the engine and its model added, after
two runs), peak_mb (most memory ever resident). Then, for every line on standard input, a number of
milliseconds: one run that is not counted, and runs for that long; prints their times in ms as a JSON list.
"""

import json
import pathlib
import sys
import time

import numpy as np


def main():
    engine, model, folder, threads, precision = sys.argv[1:]
    folder = pathlib.Path(folder)
    with np.load(folder / "inputs.npz") as stored:
        feed = {name: stored[name] for name in stored.files}
    before = memory("RssAnon:")
    opening = ENGINES[engine]()
    start = time.perf_counter()
    run = opening(model, int(threads), precision, feed)
    load = time.perf_counter() - start
    outputs = run()
    first = time.perf_counter() - start
    # Copies: what an engine lends may change with the next run.
    np.savez(folder / "outputs.npz", **{f"{i}": np.array(output) for i, output in enumerate(outputs)})
    del outputs
    run()
    figures = {
        "load_ms": load * 1e3,
        "first_ms": first * 1e3,
        "anonymous_mb": memory("RssAnon:") - before,
        "peak_mb": memory("VmHWM:"),
    }
    print(json.dumps(figures), flush=True)
    for line in sys.stdin:
        budget = float(line) / 1e3
        run()
        times, turn = [], time.perf_counter()
        while not times or time.perf_counter() - turn < budget:
            begin = time.perf_counter()
            run()
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps([round(t, 4) for t in times]), flush=True)


def memory(key):
    """A line of /proc/self/status, in MB."""
    status = pathlib.Path("/proc/self/status").read_text()
    return next(float(line.split()[1]) for line in status.splitlines() if line.startswith(key)) / 1e3


# Each imports its engine, and returns what opens a model and returns a function that runs it.


def rukh():
    import rukh

    def opening(model, threads, precision, feed):
        options = rukh.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("precision", precision)
        session = rukh.InferenceSession(model, options, providers=["cpu"])
        return lambda: session.run(None, feed)

    return opening


def onnxruntime():
    import onnxruntime

    def opening(model, threads, precision, feed):
        if precision != "f32":
            raise SystemExit(f"ONNX Runtime's CPU provider has no {precision}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feed)

    return opening


def openvino():
    import openvino

    def opening(model, threads, precision, feed):
        core = openvino.Core()
        options = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": "LATENCY",
        }
        compiled = core.compile_model(model, "CPU", options)
        request = compiled.create_infer_request()
        outputs = range(len(compiled.outputs))

        def run():
            request.infer(feed, share_inputs=True)
            return [request.get_output_tensor(i).data for i in outputs]

        return run

    return opening


ENGINES = {"rukh": rukh, "onnxruntime": onnxruntime, "openvino": openvino}

if __name__ == "__main__":
    main()
