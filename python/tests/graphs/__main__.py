"""python -m graphs: random graphs, compared in several processes; failures are reduced and printed."""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import pathlib
import random
import sys
import time

from .work import share

KINDS = ("nodes", "networks")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m graphs", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2000, help="how many of them, for each seed")
    parser.add_argument("--seed", default="1", help='the first seed; "random" draws one')
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, one after another")
    parser.add_argument("--index", type=int, help="this graph alone")
    parser.add_argument("--kind", choices=KINDS, help="this generator alone")
    parser.add_argument("--levels", default="all", help='optimisation levels: "all" or "none,basic,all"')
    parser.add_argument("--provider", choices=("cpu", "hip"), default="cpu")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for reduced failures")
    parser.add_argument("--rejected", action="store_true", help="also print why nodes were drawn again")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(1 << 31) if arguments.seed == "random" else int(arguments.seed)
    indices = [arguments.index] if arguments.index is not None else range(arguments.graphs)
    work = [(first + i, index) for i in range(arguments.seeds) for index in indices]
    begun = time.monotonic()
    totals, failures = collections.Counter(), []
    for outcome, text, counted in share(work, arguments):
        totals[outcome] += 1
        totals.update(counted)
        if outcome in ("failed", "crashed"):
            failures += [text] * (outcome == "failed")
            print(text, flush=True)
    operators = {name[9:]: n for name, n in totals.items() if name.startswith("operator ")}
    nodes = sum(operators.values())
    print(
        f"graphs on {arguments.provider}, levels {arguments.levels}, "
        f"seed {first} and {arguments.seeds - 1} more: {totals['same']} the same, {totals['failed']} differ, "
        f"{totals['unstable']} too sensitive to roundings, {totals['crashed']} crashes of ONNX Runtime; "
        f"{nodes} nodes of {len(operators)} operators; "
        f"{time.monotonic() - begun:.0f} s"
    )
    faults = collections.Counter()
    for name, n in totals.items():
        if "fault of ONNX Runtime: " in name:
            faults[name.split("fault of ONNX Runtime: ")[1]] += n
    for name, n in sorted(faults.items()):
        print(f"    {n} nodes drawn again for a fault of ONNX Runtime: {name}")
    if arguments.rejected:
        print(
            "    operators:",
            ", ".join(f"{n} {name}" for name, n in sorted(operators.items(), key=lambda x: -x[1])),
        )
        for name, n in totals.most_common():
            if name.startswith("rejected "):
                print(f"    {n} {name}")
    return 1 if failures or totals["same"] < 0.9 * len(work) else 0


if __name__ == "__main__":
    sys.exit(main())
