#!/usr/bin/env python3
"""Hold the emulator's model of cost to an NVIDIA GPU: the same formula, fed with Nsight Compute's counters.

    nsight.py collect [--cases NAME,…] --out FOLDER     a file of counters for each case of gpu_models.py; needs ncu
    nsight.py compare FOLDER                            predicted beside measured times, for each kernel

The formula is that of emulator/docs/prediction.md: a launch's cost, and the longest of the times for which each part
of the card would be busy. What the emulator has for AMD's cards and counters do not tell is left out: how long a
workgroup takes alone. So launches that wait more than they work are predicted too short, and the table says by how much.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASES = "resnet50 b8,bert_base b32,gpt2 b1,convnext_tiny b1"
SUMS = (
    "gpu__time_duration smsp__issue_active smsp__inst_executed_pipe_alu smsp__inst_executed_pipe_xu "
    "sm__pipe_tensor_cycles_active l1tex__data_pipe_lsu_wavefronts l1tex__data_pipe_lsu_wavefronts_mem_shared "
    "lts__t_bytes dram__bytes_read dram__bytes_write"
).split()


@dataclass
class Card:
    """What the H100 and H200 can do: NVIDIA's data sheets, and what Nsight Compute says of the device. An L2 slice
    gives 64 bytes a clock (white paper of the A100, whose L2 is built alike)."""

    units: int
    clock: float  # MHz, the highest
    l2_width: int  # bytes of a clock
    memory: float  # GB/s
    memory_reached: float = 0.9  # the part that a copy reaches: 3.0 of 3.35 TB/s on an H100
    launch: float = 2.0  # µs, assumed: the shortest kernel that was seen took 2.9

    @classmethod
    def of(cls, row: dict[str, str]) -> Card:
        def fact(name: str) -> float:
            return number(row[f"device__attribute_{name}"])

        # Two transfers a clock, of so many bits.
        memory = 2 * fact("max_mem_frequency_khz") * fact("global_memory_bus_width") / 8 / 1e6
        clock = fact("max_gpu_frequency_khz") / 1e3
        return cls(int(fact("multiprocessor_count")), clock, int(fact("l2s_count")) * 64, memory)


@dataclass
class Kernel:
    calls: int = 0
    measured: float = 0.0
    predicted: float = 0.0
    bounds: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def number(text: str) -> float:
    return float(text.replace(",", "") or 0)


def predict(row: dict[str, str], card: Card) -> tuple[float, str]:
    """The time of a launch in µs, and what limits it."""

    def total(name: str) -> float:
        return number(row[f"{name}.sum"])

    workgroups = number(row["launch__grid_size"])
    waves = workgroups * math.ceil(number(row["launch__block_size"]) / 32)
    # The busiest unit has whole workgroups, and each of its four schedulers whole waves.
    of_unit = math.ceil(workgroups / card.units) / workgroups
    of_scheduler = math.ceil(round(of_unit * waves) / 4) / waves
    # Units of integers take a wave's instruction in two clocks, those of special functions in eight.
    vector = max(
        total("smsp__issue_active"),
        2 * total("smsp__inst_executed_pipe_alu"),
        8 * total("smsp__inst_executed_pipe_xu"),
    )
    times = {
        "matrix": total("sm__pipe_tensor_cycles_active") * of_unit / card.clock,
        "vector": vector * of_scheduler / card.clock,
        "LDS": total("l1tex__data_pipe_lsu_wavefronts_mem_shared") * of_unit / card.clock,
        "near cache": total("l1tex__data_pipe_lsu_wavefronts") * of_unit / card.clock,
        "L2": total("lts__t_bytes") / (card.l2_width * card.clock),
        "memory": (total("dram__bytes_read") + total("dram__bytes_write")) / (card.memory * card.memory_reached) / 1e3,
    }
    bound = max(times, key=lambda name: times[name])
    return card.launch + times[bound], bound


def launches(file: Path) -> list[dict[str, str]]:
    lines = [line for line in file.read_text().splitlines() if line.startswith('"')]
    # Behind the names comes a row of units.
    return list(csv.DictReader(lines))[1:]


def compare(folder: Path) -> None:
    kernels: dict[str, Kernel] = defaultdict(Kernel)
    groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
    files = sorted(folder.glob("*.csv"))
    if not files:
        sys.exit(f"{folder}: no counters (*.csv); nsight.py collect --out {folder} makes some")
    for file in files:
        for row in launches(file):
            predicted, bound = predict(row, Card.of(row))
            measured = number(row["gpu__time_duration.sum"]) / 1e3
            kernel = kernels[row["Kernel Name"]]
            kernel.calls += 1
            kernel.measured += measured
            kernel.predicted += predicted
            kernel.bounds[bound] += predicted
            group = "below 10 us" if measured < 10 else "10 to 40 us" if measured < 40 else "above 40 us"
            groups[group].append((measured, predicted))
    print("| kernel | launches | measured us | predicted us | predicted / measured | bound |\n|---|---|---|---|---|---|")
    for name, k in sorted(kernels.items(), key=lambda item: -item[1].measured):
        bound = max(k.bounds, key=lambda part: k.bounds[part])
        ratio = k.predicted / k.measured
        print(f"| `{name}` | {k.calls} | {k.measured:.1f} | {k.predicted:.1f} | {ratio:.2f} | {bound} |")
    print("\n| launches | number | mean error | worst | predicted / measured |\n|---|---|---|---|---|")
    groups["all"] = [pair for pairs in groups.values() for pair in pairs]
    for group in ("below 10 us", "10 to 40 us", "above 40 us", "all"):
        if pairs := groups[group]:
            errors = [abs(predicted / measured - 1) for measured, predicted in pairs]
            ratio = sum(p for _, p in pairs) / sum(m for m, _ in pairs)
            mean = sum(errors) / len(errors)
            print(f"| {group} | {len(pairs)} | {mean:.0%} | {max(errors):.0%} | {ratio:.2f} |")


def collect(names: list[str], out: Path, models: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    metrics = ",".join([f"{name}.sum" for name in SUMS] + ["launch__grid_size", "launch__block_size"])
    for name in names:
        file = out / f"{name.replace(' ', '_')}.csv"
        worker = [sys.executable, __file__, "run", name, "--models", str(models)]
        subprocess.run(worker, check=True)  # exports the model, which needs no profiler
        profiler = ["ncu", "--clock-control", "none", "--profile-from-start", "off", "--csv", "--page", "raw"]
        profiler += ["--print-units", "base", "--metrics", metrics, "--log-file", str(file), *worker]
        subprocess.run(profiler, check=True)
        print(f"{name}: {len(launches(file))} launches in {file}")


def run(name: str, models: Path) -> None:
    """One run of a case on the GPU, after two others, with a profiler's attention."""
    sys.path.insert(0, str(HERE / "gpu"))
    import cases
    import torch

    import rukh

    case = cases.find(name)
    path = cases.export(case, torch.float16, "cuda", models)
    # A recorded graph would be one launch to the profiler.
    providers: list[Any] = [("hip", {"enable_hip_graph": "0"}), "cpu"]
    session = rukh.InferenceSession(str(path), providers=providers)
    given = {"input": case.input(torch.float16).numpy()}
    for _ in range(2):
        session.run(None, given)
    torch.cuda.cudart().cudaProfilerStart()
    session.run(None, given)
    torch.cuda.cudart().cudaProfilerStop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("--cases", default=CASES)
    collecting.add_argument("--out", type=Path, required=True)
    running = commands.add_parser("run", help="what collect runs under the profiler")
    running.add_argument("case")
    for command in (collecting, running):
        command.add_argument("--models", type=Path, default=Path("build/gpu-models"))
    commands.add_parser("compare").add_argument("folder", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "collect":
        collect(arguments.cases.split(","), arguments.out, arguments.models)
    elif arguments.command == "run":
        run(arguments.case, arguments.models)
    else:
        compare(arguments.folder)


if __name__ == "__main__":
    main()
