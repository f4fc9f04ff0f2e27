"""One engine on one case, in a process of its own: reads a command a line, answers with a line of JSON.

    latency SECONDS      milliseconds of calls that are each waited for
    throughput SECONDS   runs a second when calls are queued
    facts                the largest difference from torch in f32 over the largest output, and what the engine tells
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import cases
import numpy as np
import torch

WARM_UP = 5
# Queued calls between two looks at the clock.
QUEUED = 16
LIBRARIES = ("RUKH_HIPBLASLT_LIBRARY", "RUKH_ROCBLAS_LIBRARY", "RUKH_CUBLASLT_LIBRARY")


class Engine(Protocol):
    def call(self) -> None: ...
    def queue(self) -> None: ...
    def wait(self) -> None: ...
    def output(self) -> torch.Tensor: ...
    def facts(self) -> dict[str, Any]: ...


class Torch:
    """PyTorch, eager or compiled in a mode."""

    def __init__(self, case: cases.Case, dtype: torch.dtype, device: str, mode: str | None) -> None:
        self.device = device
        self.given = case.input(dtype).to(device)
        module = case.module(dtype).to(device)
        self.run: Callable[..., torch.Tensor] = torch.compile(module, mode=mode) if mode else module

    def queue(self) -> None:
        with torch.inference_mode():
            self.run(self.given)

    def wait(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()

    def call(self) -> None:
        self.queue()
        self.wait()

    def output(self) -> torch.Tensor:
        with torch.inference_mode():
            return self.run(self.given)

    def facts(self) -> dict[str, Any]:
        return {}


class Rukh:
    """rukh, with inputs and outputs in torch's memory."""

    def __init__(self, model: Path, case: cases.Case, dtype: torch.dtype, device: str, tuned: bool) -> None:
        import rukh

        self.rukh, self.model, self.device = rukh, model, device
        tuning = {"tunable_op_enable": "1", "tunable_op_tuning_enable": "1"} if tuned else {}
        self.providers: list[Any] = ["cpu"] if device == "cpu" else [("hip", tuning), "cpu"]
        self.session = rukh.InferenceSession(str(model), providers=self.providers)
        self.given = case.input(dtype).to(device)
        shape = np.load(model.parent / "reference.npz")["output"].shape
        self.result = torch.empty(shape, dtype=dtype, device=device)
        self.binding = self.bind(self.session)
        self.options = rukh.RunOptions()
        if device != "cpu":
            self.stream = torch.cuda.Stream()
            self.options.add_run_config_entry("compute_stream", str(self.stream.cuda_stream))

    def bind(self, session: Any) -> Any:
        binding = session.io_binding()
        # Memory of torch's is there when torch has done its work.
        self.wait()
        for bind, name, tensor in (
            (binding.bind_input, "input", self.given),
            (binding.bind_output, "output", self.result),
        ):
            element = np.dtype(str(tensor.dtype).removeprefix("torch."))
            place = "cpu" if self.device == "cpu" else "hip"
            bind(name, place, 0, element, tuple(tensor.shape), tensor.data_ptr())
        return binding

    def call(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def queue(self) -> None:
        # In one stream, as torch's calls are.
        self.session.run_with_iobinding(self.binding, self.options)

    def wait(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()

    def output(self) -> torch.Tensor:
        self.call()
        return self.result

    def facts(self) -> dict[str, Any]:
        """GPU launches of a run, from the profile of one."""
        if self.device == "cpu":
            return {}
        options = self.rukh.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(self.model.parent / "profile_")
        session = self.rukh.InferenceSession(str(self.model), options, providers=self.providers)
        session.run_with_iobinding(self.bind(session))
        path = Path(session.end_profiling())
        events = json.loads(path.read_text())
        path.unlink()
        return {"launches": sum(event.get("args", {}).get("launches", 0) for event in events)}


def make(engine: str, case: cases.Case, dtype: torch.dtype, device: str, folder: Path) -> Engine:
    modes = {"torch": None, "compile": "reduce-overhead", "compile-max": "max-autotune"}
    if engine in modes:
        return Torch(case, dtype, device, modes[engine])
    if engine == "rukh-own":
        # Before the library looks for them; a variable set to nothing keeps a library away.
        os.environ.update(dict.fromkeys(LIBRARIES, ""))
    model = cases.export(case, dtype, device, folder)
    return Rukh(model, case, dtype, device, engine == "rukh-tuned")


def difference(engine: Engine, reference: np.ndarray) -> float:
    got = engine.output().float().cpu().numpy().astype(np.float64)
    return float(np.abs(got - reference).max() / max(np.abs(reference).max(), 1e-30))


def latency(engine: Engine, seconds: float) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        begin = time.perf_counter()
        engine.call()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def throughput(engine: Engine, seconds: float) -> float:
    engine.wait()
    begin = time.perf_counter()
    runs = 0
    while runs == 0 or time.perf_counter() - begin < seconds:
        for _ in range(QUEUED):
            engine.queue()
        runs += QUEUED
        engine.wait()
    return runs / (time.perf_counter() - begin)


def main() -> int:
    name, engine_name, kind, device, folder = sys.argv[1:]
    # Answers go to what was stdout; whatever else is printed must not mix with them.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    case, dtype = cases.find(name), getattr(torch, kind)
    engine = make(engine_name, case, dtype, device, Path(folder))
    for _ in range(WARM_UP):
        engine.call()
    model = cases.export(case, dtype, device, Path(folder))
    reference = np.load(model.parent / "reference.npz")["output"].astype(np.float64)
    print(json.dumps("ready"), file=answers)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "latency":
            answer: Any = latency(engine, float(arguments[0]))
        elif command == "throughput":
            answer = throughput(engine, float(arguments[0]))
        else:
            answer = {"difference": difference(engine, reference), **engine.facts()}
        print(json.dumps(answer), file=answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
