#!/usr/bin/env python3
"""Time single nodes of many shapes, and the building blocks of common networks, beside another engine on the CPU.

    sweep.py [--isa avx2,native] [--threads 1,2] [--precision f32] [--rounds N] [--turn MS] [--worst N]
             [--peer onnxruntime|openvino] [--onnxruntime FOLDER] [--out DIR] [PART_OF_A_NAME…]
    sweep.py --list        the names
    sweep.py --dry-run     a few small cases with short turns, to see that everything is there

For each level of vector instructions and number of threads a process (shapes/turns.py) opens both engines on one
case after the other and lets them take turns; outputs are compared. The level limits rukh alone (RUKH_CPU_ISA): on a
processor with more than AVX2 the other engine uses more, unless --onnxruntime names a folder with a build of its
package that does not. `bf16` is rukh's precision and OpenVINO's; ONNX Runtime computes in f32.

Prints Markdown (kinds by their mean, the worst cases, what failed), and writes it to DIR/sweep.md, all times to
DIR/sweep.json, and a picture of points (work over ratio) to DIR/sweep.svg. Ends with 1 when outputs differ.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent / "shapes"
sys.path.insert(0, str(HERE))

import report  # noqa: E402

# One of each kind of definition, all small.
SMALL = ["conv 3×3: 13x13 32", "MaxPool: 1x512x13", "MatMul: 49x96", "block: shuffle: 7x464"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isa", type=names, default=["avx2", "native"], help="levels of RUKH_CPU_ISA")
    parser.add_argument("--threads", type=names, default=["1", "2"])
    parser.add_argument("--precision", type=names, default=["f32"], help="f32,bf16")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each engine (default 7)")
    parser.add_argument("--turn", type=float, default=20, help="milliseconds of a turn (default 20)")
    parser.add_argument("--worst", type=int, default=25, help="cases in the table of the worst (default 25)")
    parser.add_argument("--peer", choices=report.NAMES, default="onnxruntime", help="the other engine")
    parser.add_argument("--onnxruntime", type=pathlib.Path, help="a folder that has another build of its package")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/sweep"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("parts", nargs="*", help="parts of names, as in 'conv dilated' or 'block:'")
    arguments = parser.parse_args()
    if arguments.list:
        import turns

        print("\n".join(f"{case.kind}: {case.name}" for case in turns.wanted(turns.CASES, arguments.parts)))
        return 0
    if arguments.dry_run:
        arguments.isa, arguments.threads, arguments.rounds, arguments.turn = ["avx2"], ["1"], 2, 2
        arguments.parts = SMALL
    runs = [
        sweep(isa, int(threads), precision, arguments)
        for precision in arguments.precision
        for isa in arguments.isa
        for threads in arguments.threads
    ]
    text = report.table(runs, arguments.worst)
    print(text)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "sweep.md").write_text(text)
    (arguments.out / "sweep.svg").write_text(report.picture(runs))
    facts = {"machine": platform.processor() or platform.machine(), "load": os.getloadavg(), "runs": runs}
    (arguments.out / "sweep.json").write_text(json.dumps(facts, indent=1) + "\n")
    return any(report.wrong(case, run["precision"]) for run in runs for case in run["cases"])


def sweep(isa: str, threads: int, precision: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All cases of one configuration."""
    command = [sys.executable, HERE / "turns.py", threads, precision, arguments.rounds, arguments.turn]
    folders = [arguments.onnxruntime.resolve()] if arguments.onnxruntime else []
    path = os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"RUKH_CPU_ISA": isa, "PYTHONPATH": path}
    facts = {"isa": isa, "threads": threads, "precision": precision, "peer": arguments.peer}
    run: dict[str, Any] = facts | {"cases": []}
    words = [*map(str, command), arguments.peer, *arguments.parts]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            case = json.loads(line)
            run["cases"].append(case)
            told = f"{case['ratio']:.2f}" if "ratio" in case else case["error"]
            print(f"{report.configuration(run)}: {case['kind']}: {case['case']}: {told}", file=sys.stderr, flush=True)
    if process.returncode or not run["cases"]:
        sys.exit(f"{report.configuration(run)}: {len(run['cases'])} cases, then ended with {process.returncode}")
    return run


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


if __name__ == "__main__":
    sys.exit(main())
