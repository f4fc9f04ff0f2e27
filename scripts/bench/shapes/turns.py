"""Times cases in rukh and in another engine, for sweep.py: a process of its own, since the variable that limits vector
instructions is read once.

    turns.py THREADS PRECISION ROUNDS MILLISECONDS PEER [PART_OF_A_NAME…]

Prints a line of JSON for each case: its work, the times of both in turns, and how far the outputs are apart.
"""

from __future__ import annotations

import json
import math
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import blocks
import convolutions
import nodes
import numpy as np
import rukh
from graph import Case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cost  # noqa: E402

CASES = [*convolutions.CASES, *nodes.CASES, *blocks.CASES]
Run = Callable[[], None]


def main() -> None:
    threads, rounds, milliseconds = int(sys.argv[1]), int(sys.argv[3]), float(sys.argv[4])
    engines = ("rukh", sys.argv[5])
    for case in wanted(CASES, sys.argv[6:]):
        found = measure(case, engines, threads, sys.argv[2], rounds, milliseconds / 1e3)
        print(json.dumps(found), flush=True)


def wanted(cases: list[Case], parts: list[str]) -> list[Case]:
    return [case for case in cases if not parts or any(part in f"{case.kind}: {case.name}" for part in parts)]


def measure(
    case: Case, engines: tuple[str, str], threads: int, precision: str, rounds: int, seconds: float
) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": case.kind, "case": case.name}
    model, feed = case.build()
    try:
        runs, results = zip(*(opened(engine, model, feed, threads, precision) for engine in engines), strict=True)
    except Exception as error:  # noqa: BLE001 - what an engine cannot run is told
        return found | {"error": str(error).splitlines()[0][:200]}
    found["work"] = max(cost.flops(model, feed), sum(x.size for x in (*feed.values(), *results[0])))
    found["difference"] = max(difference(*pair) for pair in zip(*results, strict=True))
    times: list[list[float]] = [[], []]
    for i in range(rounds):
        for engine in (0, 1) if i % 2 == 0 else (1, 0):
            if threads > 1:
                # What the other left running (threads that wait for work by turning round) comes to rest.
                time.sleep(0.02)
            times[engine].append(turn(runs[engine], seconds))
    for engine, each in zip(engines, times, strict=True):
        found[engine] = [round(t * 1e6, 2) for t in each]
    # Of the shortest: other work on the machine only makes turns longer.
    found["ratio"] = round(min(times[1]) / min(times[0]), 4)
    _KEPT.clear()
    return found


def opened(
    engine: str, model: bytes, feed: dict[str, np.ndarray], threads: int, precision: str
) -> tuple[Run, list[np.ndarray]]:
    """A run into memory that is bound once, so that of the time little is the package's own; and the outputs."""
    if engine == "openvino":
        return opened_by_openvino(model, feed, threads, precision)
    library, providers = rukh, ["cpu"]
    if engine == "onnxruntime":
        import onnxruntime

        library, providers = onnxruntime, ["CPUExecutionProvider"]
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    if engine == "rukh":
        options.add_session_config_entry("precision", precision)
    session = library.InferenceSession(model, options, providers=providers)
    outputs = [np.array(y, copy=True) for y in session.run(None, feed)]
    binding = session.io_binding()
    for name, x in feed.items():
        binding.bind_cpu_input(name, x)
    for told, y in zip(session.get_outputs(), outputs, strict=True):
        if all(isinstance(n, int) for n in told.shape):
            room = np.empty_like(y)
            _KEPT.append(room)
            binding.bind_output(told.name, "cpu", 0, y.dtype, y.shape, room.ctypes.data)
        else:
            binding.bind_output(told.name, "cpu")
    return lambda: session.run_with_iobinding(binding), outputs


def opened_by_openvino(
    model: bytes, feed: dict[str, np.ndarray], threads: int, precision: str
) -> tuple[Run, list[np.ndarray]]:
    import openvino

    options = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
        "PERFORMANCE_HINT": "LATENCY",
    }
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(model, b""), "CPU", options)
    request = compiled.create_infer_request()
    for name, x in feed.items():
        request.set_tensor(name, openvino.Tensor(x, shared_memory=True))

    def run() -> None:
        request.start_async()
        request.wait()

    run()
    return run, [np.array(request.get_output_tensor(i).data) for i in range(len(compiled.outputs))]


# Memory that a binding writes to and does not hold.
_KEPT: list[np.ndarray] = []


def turn(run: Run, seconds: float) -> float:
    """The shortest of as many runs as fit, after one that brings memory back into the caches."""
    run()
    best, end = math.inf, time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now > end:
            return best


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The root of the mean square of the differences, over that of `b`."""
    if a.shape != b.shape:
        return math.inf
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(np.sqrt(np.mean((a - b) ** 2)) / max(np.sqrt(np.mean(b**2)), 1e-30)) if a.size else 0.0


if __name__ == "__main__":
    main()
