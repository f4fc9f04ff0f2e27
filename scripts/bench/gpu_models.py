#!/usr/bin/env python3
"""Time whole models on a GPU beside PyTorch: NVIDIA's and AMD's, with the same script.

    gpu_models.py [--cases PART,…] [--engines NAME,…] [--rounds N] [--seconds S] [--out results.json]
    gpu_models.py --dry-run       a small model on the CPU, to see that everything is there

Models have weights from a seed, are computed in half precision, and have inputs and outputs in device memory. Each
is exported on the spot, in the folder --models. Engines take turns: in each round every engine has its calls, each
waited for (latency) and then queued (throughput). Outputs are compared with those of torch in f32. An engine is a
process of its own. Torch's compiler takes minutes for some models: --out keeps what is there of other cases and
engines, so that they can be run one after the other; without cases to run (--cases none) it prints the table.

Engines: torch (eager), compile (reduce-overhead), compile-max (max-autotune; not by default), rukh, rukh-tuned
(kernels measured when the model is opened), rukh-own (without the platform's libraries of products).

Needs torch, torchvision, transformers, onnx and onnxscript, and rukh's Python package.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "gpu"
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import results  # noqa: E402
import torch  # noqa: E402

ENGINES = ["torch", "compile", "compile-max", "rukh", "rukh-tuned", "rukh-own"]
DEFAULT = [engine for engine in ENGINES if engine != "compile-max"]


class Worker:
    """A process with one engine on one case."""

    def __init__(self, case: str, engine: str, kind: str, device: str, folder: Path) -> None:
        command = [sys.executable, str(HERE / "worker.py"), case, engine, kind, device, str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.error: str | None = None
        self.latencies: list[float] = []
        self.throughputs: list[float] = []
        self.found: dict[str, Any] = {}

    def wait(self) -> None:
        """Until it is ready."""
        self.read()

    def read(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            self.error = f"ended with {self.process.wait()}"
            return None
        return json.loads(line)

    def ask(self, command: str) -> Any:
        if self.error:
            return None
        assert self.process.stdin
        try:
            print(command, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass
        return self.read()

    def round(self, seconds: float) -> None:
        self.latencies += self.ask(f"latency {seconds}") or []
        if rate := self.ask(f"throughput {seconds}"):
            self.throughputs.append(rate)

    def result(self) -> dict[str, Any]:
        found = self.ask("facts")
        assert self.process.stdin
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait()
        if self.error:
            return {"error": self.error}
        latency, rate = statistics.median(self.latencies), statistics.median(self.throughputs)
        return {"latency_ms": latency, "throughput": rate, "calls": len(self.latencies), **found}


def time_case(case: cases.Case, arguments: argparse.Namespace, kind: str, device: str) -> dict[str, Any]:
    # Once, before several processes want it.
    cases.export(case, getattr(torch, kind), device, arguments.models)
    workers: dict[str, Worker] = {}
    # They get ready side by side, but for one that measures kernels meanwhile.
    for engine in sorted(arguments.engines, key=lambda engine: engine != "rukh-tuned"):
        print(f"{case.name}: {engine} starts", file=sys.stderr, flush=True)
        workers[engine] = Worker(case.name, engine, kind, device, arguments.models)
        if engine == "rukh-tuned":
            workers[engine].wait()
    for engine, worker in workers.items():
        if engine != "rukh-tuned":
            worker.wait()
    for _ in range(arguments.rounds):
        for worker in workers.values():
            worker.round(arguments.seconds)
    return {engine: worker.result() for engine, worker in workers.items()}


def machine(device: str) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device != "cpu" else platform.processor() or platform.machine()
    facts = {"device": name, "torch": torch.__version__}
    if device != "cpu":
        facts |= {"hip": torch.version.hip} if torch.version.hip else {"cuda": torch.version.cuda or ""}
    return facts


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=names, default=[], help="parts of names, as in 'bert' or 'resnet50 b8'")
    parser.add_argument("--engines", type=names, default=DEFAULT, help=",".join(ENGINES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement in a round")
    parser.add_argument("--out", type=Path, default=Path("gpu-models.json"))
    parser.add_argument("--models", type=Path, default=Path("gpu-models"), help="the folder of exported models")
    parser.add_argument("--baseline", default="compile", help="the engine that others are compared with")
    parser.add_argument("--dry-run", action="store_true")
    arguments = parser.parse_args()
    if unknown := set(arguments.engines) - set(ENGINES):
        parser.error(f"engines {', '.join(sorted(unknown))} are not known; known are {', '.join(ENGINES)}")
    wanted, kind, device = cases.CASES, "float16", "cuda"
    if arguments.dry_run:
        wanted, kind, device = [cases.TINY], "float32", "cpu"
        arguments.engines = [engine for engine in arguments.engines if engine in ("torch", "rukh")]
        arguments.baseline = "torch"
    elif not torch.cuda.is_available():
        parser.error("torch sees no GPU here; --dry-run needs none")
    if arguments.cases:
        wanted = [case for case in wanted if any(part in case.name for part in arguments.cases)]
    failed = False
    for case in wanted:
        found = time_case(case, arguments, kind, device)
        failed |= any("error" in engine for engine in found.values())
        results.add(arguments.out, machine(device), case.name, found)
    print(results.table(results.load(arguments.out), arguments.baseline))
    return failed


if __name__ == "__main__":
    sys.exit(main())
