#!/usr/bin/env python3
"""Time rukh beside other engines on whole models, in turns, on the CPU.

    bench.py --models DIR [--quantized DIR] [--engines rukh,onnxruntime,openvino,rten] [--threads N]
             [--rounds N] [--turn MS] [--rten PROGRAM] [--out DIR] [ROW…]

A row is a model and a sample of its inputs in one precision: `resnet50`, `resnet50:8` (batch 8), `resnet50:bf16`,
`resnet50:qdq:int8`; without names all that DIR has. Every engine is a process (worker.py, benches/rten); they take
turns, in another order each round, with the same number of threads. The outputs are compared with torch's, those
in few bits also with how far the peers' are from them. The bound is what the row's multiplications and additions
would take at the speed of a large matrix product on this machine (of f32; of bf16 twice, of 8 bits four times
that), or its weights at the speed of reading memory, whichever is longer.

Prints Markdown, and writes it with all times to DIR/results.md and DIR/results.json. Ends with 1 when an output is
wrong. What an engine cannot run is told with its reason.
"""

import argparse
import json
import math
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy as np

import cost

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino", "rten")
# The root of the mean square of the outputs' differences from torch's, over that of torch's. Deep models with
# random weights carry roundings on to every output: with few bits that much more than the best peer is allowed.
LIMITS = {"f32": 1e-3, "bf16": 5e-2, "int8": 5e-2}
SHARES = {"f32": 0, "bf16": 1.25, "int8": 1.25}
# How many multiplications an instruction does, over those of f32.
FACTORS = {"f32": 1, "bf16": 2, "int8": 4}


@dataclass
class Row:
    name: str
    model: pathlib.Path
    sample: pathlib.Path
    precision: str

    def engines(self, wanted):
        """Those that have this precision."""
        lacking = {"bf16": ("onnxruntime", "rten")}.get(self.precision, ())
        return [engine for engine in wanted if engine not in lacking]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--quantized", type=pathlib.Path)
    parser.add_argument("--engines", default="rukh,onnxruntime,openvino,rten")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--starts", type=int, default=3, help="starts of each engine, at batch 1 in f32 (default 3)")
    parser.add_argument("--turn", type=float, default=400, help="milliseconds of a turn (default 400)")
    parser.add_argument("--rten", type=pathlib.Path, default=HERE.parents[1] / "benches/rten/target/release/bench-rten")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_args()
    rows = find_rows(arguments)
    machine = cost.machine()
    print(f"{arguments.threads} threads; a product {machine.gflops:.0f} GFLOP/s, memory {machine.gbytes:.0f} GB/s\n")
    results = []
    for row in rows:
        result = measure(row, arguments)
        result["bound_ms"] = cost.bound(row.model, inputs(row.sample), machine, FACTORS[row.precision])
        results.append(result)
        print(latency_line(result), flush=True)
    text = "\n".join([*latency_table(results), "", *ratio_table(results), "", *start_table(results)])
    print("\n" + text)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.md").write_text(text + "\n")
    (arguments.out / "results.json").write_text(json.dumps({"machine": machine.__dict__, "rows": results}, indent=1))
    return any(engine.get("wrong") for result in results for engine in result["engines"].values())


def find_rows(arguments):
    rows = []
    for model in sorted(arguments.models.glob("*/model.onnx")):
        name, folder = model.parent.name, model.parent
        rows.append(Row(name, model, folder / "sample.npz", "f32"))
        if (folder / "sample_b8.npz").exists():
            rows.append(Row(f"{name}:8", model, folder / "sample_b8.npz", "f32"))
        rows.append(Row(f"{name}:bf16", model, folder / "sample.npz", "bf16"))
    for model in sorted(arguments.quantized.glob("*/*.onnx") if arguments.quantized else []):
        sample = arguments.models / model.parent.name / "sample.npz"
        rows.append(Row(f"{model.parent.name}:{model.stem}:int8", model, sample, "int8"))
    if not arguments.rows:
        return rows
    unknown = set(arguments.rows) - {row.name for row in rows}
    if unknown:
        sys.exit(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in rows)}")
    return [row for row in rows if row.name in arguments.rows]


def inputs(sample):
    with np.load(sample) as stored:
        return {key[3:]: stored[key] for key in stored.files if key.startswith("in:")}


def references(row):
    """Torch's outputs, in order."""
    with np.load(row.sample) as stored:
        return [stored[key] for key in stored.files if key.startswith("out:")]


def measure(row, arguments):
    """All engines on one row: {"row", "engines": {name: figures}}."""
    workers, engines, starts = {}, {}, {}
    files = list(filter(pathlib.Path.is_file, row.model.parent.iterdir()))
    # None of the engines shall be the one that waits for memory, or reads the file from disk.
    touch_memory(3 * sum(path.stat().st_size for path in files))
    for path in files:
        path.read_bytes()
    with tempfile.TemporaryDirectory() as scratch:
        names = row.engines(arguments.engines.split(","))
        # In another order each time, for what is left of the differences that one start makes for the next.
        for i in range(arguments.starts if ":" not in row.name else 1):
            for worker in workers.values():
                worker.close()
            for engine in rotated(names, i):
                folder = pathlib.Path(scratch) / engine
                folder.mkdir(exist_ok=True)
                worker = Worker(engine, row, folder, arguments)
                engines[engine] = worker.figures
                if not worker.error:
                    workers[engine] = worker
                    starts.setdefault(engine, []).append(worker.figures)
        for engine, figures in starts.items():
            for key in ("load_ms", "first_ms"):
                engines[engine][key] = statistics.median(start[key] for start in figures)
        compare(row, workers)
        order = list(workers)
        for i in range(arguments.rounds):
            for engine in rotated(order, i):
                workers[engine].turn(arguments.turn)
        for worker in workers.values():
            worker.close()
    return {"row": row.name, "engines": engines}


def touch_memory(size):
    """Has a virtual machine's host give memory that starts take: 450 MB took 43 ms so, and 355 without.

    At most half of what is free.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE
    np.empty(min(size, free // 2), np.uint8)[:: mmap.PAGESIZE] = 1


def rotated(names, i):
    return names[i % len(names) :] + names[: i % len(names)]


class Worker:
    """An engine's process."""

    def __init__(self, engine, row, folder, arguments):
        self.engine, self.folder = engine, folder
        feed = inputs(row.sample)
        if engine == "rten":
            write_raw(folder, feed)
            command = [arguments.rten, row.model, folder, arguments.threads]
        else:
            np.savez(folder / "inputs.npz", **feed)
            precision = "f32" if row.precision == "int8" else row.precision
            command = [sys.executable, HERE / "worker.py", engine, row.model, folder, arguments.threads, precision]
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        line = self.process.stdout.readline()
        self.error = not line
        if self.error:
            self.process.wait()
            lines = (folder / "log").read_text().strip().splitlines() or [f"ended with {self.process.returncode}"]
            self.figures = {"error": lines[-1][:200]}
            return
        self.figures = json.loads(line) | {"times": []}

    def turn(self, milliseconds):
        # What the engine before left running (threads that wait for work by turning round) comes to rest.
        time.sleep(0.05)
        self.process.stdin.write(f"{milliseconds}\n")
        self.process.stdin.flush()
        self.figures["times"].append(json.loads(self.process.stdout.readline()))

    def outputs(self):
        if self.engine == "rten":
            return read_raw(self.folder)
        with np.load(self.folder / "outputs.npz") as stored:
            return [stored[f"{i}"] for i in range(len(stored.files))]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def write_raw(folder, feed):
    lines = []
    for i, (name, array) in enumerate(feed.items()):
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        array.tofile(folder / f"input{i}.bin")
        kind = "f32" if array.dtype == np.float32 else "i32"
        lines.append(f"{kind} {'x'.join(map(str, array.shape))} input{i}.bin {name}\n")
    (folder / "inputs.txt").write_text("".join(lines))


def read_raw(folder):
    arrays = []
    for line in (folder / "outputs.txt").read_text().splitlines():
        _, dims, file = line.split(" ")
        shape = [int(d) for d in dims.split("x") if d]
        arrays.append(np.fromfile(folder / file, np.float32).reshape(shape))
    return arrays


def compare(row, workers):
    expected = references(row)
    for worker in workers.values():
        worker.figures["difference"] = distance(worker.outputs(), expected)
    peers = [worker.figures["difference"] for name, worker in workers.items() if name != "rukh"]
    limit = max(LIMITS[row.precision], SHARES[row.precision] * min(peers, default=0))
    for worker in workers.values():
        worker.figures["wrong"] = not worker.figures["difference"] <= limit


def distance(outputs, expected):
    """The largest over the outputs."""

    def of(y, r):
        if y.shape != r.shape:
            return math.inf
        y, r = y.astype(np.float64), r.astype(np.float64)
        return float(np.sqrt(np.mean((y - r) ** 2)) / max(np.sqrt(np.mean(r**2)), 1e-30)) if r.size else 0.0

    return max(of(y, r) for y, r in zip(outputs, expected, strict=True))


# --- tables --------------------------------------------------------------------------------------


def median(figures):
    return statistics.median(t for turn in figures["times"] for t in turn)


def best(figures):
    return min(t for turn in figures["times"] for t in turn)


def ratio(result, peer):
    """How many times as fast as the peer rukh is: the median over the rounds of the turns' medians."""
    own, other = (result["engines"].get(engine, {}).get("times") for engine in ("rukh", peer))
    if not own or not other:
        return None
    return statistics.median(statistics.median(b) / statistics.median(a) for a, b in zip(own, other, strict=True))


def latency_line(result):
    cells = []
    for figures in (result["engines"].get(engine) for engine in ("rukh", *PEERS)):
        if not figures:
            cells.append("")
        elif "error" in figures:
            cells.append("fails")
        else:
            wrong = " WRONG" if figures.get("wrong") else ""
            cells.append(f"{median(figures):.2f} / {best(figures):.2f}{wrong}")
    return f"| {result['row']} | {result['bound_ms']:.2f} | {' | '.join(cells)} |"


def latency_table(results):
    return [
        "| row | bound, ms | rukh, median / best ms | ONNX Runtime | OpenVINO | rten |",
        "|---|---|---|---|---|---|",
        *map(latency_line, results),
    ]


def ratio_table(results):
    lines = ["| row | to ONNX Runtime | to OpenVINO | to rten | of the bound |", "|---|---|---|---|---|"]
    groups = {"f32": [], "bf16": [], "int8": []}
    for result in results:
        ratios = [ratio(result, peer) for peer in PEERS]
        own = result["engines"].get("rukh", {})
        share = f"{result['bound_ms'] / best(own):.2f}" if own.get("times") else ""
        lines.append(f"| {result['row']} | {' | '.join(f'{r:.2f}' if r else '' for r in ratios)} | {share} |")
        tail = result["row"].rpartition(":")[2]
        # Means over models at batch 1.
        if tail != "8":
            groups[tail if tail in groups else "f32"].append(ratios)
    for name, members in groups.items():
        if members:
            means = [geometric_mean([r for r in column if r]) for column in zip(*members, strict=True)]
            lines.append(f"| geometric mean, {name} | {' | '.join(f'{m:.2f}' if m else '' for m in means)} | |")
    return lines


def start_table(results):
    lines = [
        "| row | load, ms: rukh, ONNX Runtime, OpenVINO, rten | first output, ms | anonymous memory, MB | peak, MB |",
        "|---|---|---|---|---|",
    ]
    starts = []
    for result in results:
        engines = [result["engines"].get(engine, {}) for engine in ("rukh", *PEERS)]
        if len(engines[0]) > 1 and engines[1].get("first_ms"):
            starts.append(engines[1]["first_ms"] / engines[0]["first_ms"])
        cells = [
            ", ".join(f"{e[key]:.0f}" if key in e else "–" for e in engines)
            for key in ("load_ms", "first_ms", "anonymous_mb", "peak_mb")
        ]
        lines.append(f"| {result['row']} | {' | '.join(cells)} |")
    if starts:
        lines.append(f"| ONNX Runtime's over rukh's, geometric mean | | {geometric_mean(starts):.2f} | | |")
    return lines


def geometric_mean(numbers):
    return math.exp(statistics.fmean(map(math.log, numbers))) if numbers else None


if __name__ == "__main__":
    sys.exit(main())
