"""Results in a JSON file that grows from run to run, and a table of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

Results = dict[str, Any]


def load(path: Path) -> Results:
    return json.loads(path.read_text()) if path.exists() else {"machine": {}, "cases": {}}


def add(path: Path, machine: dict[str, str], case: str, engines: dict[str, Any]) -> Results:
    """Writes a case's engines over those that the file has of it, and keeps the others."""
    results = load(path)
    results["machine"].update(machine)
    results["cases"].setdefault(case, {}).update(engines)
    whole = path.with_suffix(".tmp")
    whole.write_text(json.dumps(results, indent=1) + "\n")
    whole.replace(path)
    return results


def geometric_mean(numbers: list[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def table(results: Results, baseline: str) -> str:
    """Markdown: a row a case and engine, then the geometric means of the speed over the baseline's."""
    lines = [", ".join(f"{key} {value}" for key, value in results["machine"].items()), ""]
    lines += [
        f"| case | engine | latency, ms | runs a second | speed over {baseline} | difference | launches |",
        "|---|---|---|---|---|---|---|",
    ]
    speeds: dict[str, list[tuple[float, float]]] = {}
    for case, engines in results["cases"].items():
        base = engines.get(baseline, {})
        for engine, found in engines.items():
            if "error" in found:
                lines.append(f"| {case} | {engine} | {found['error']} | | | | |")
                continue
            speed = ""
            if "latency_ms" in base:
                ratios = base["latency_ms"] / found["latency_ms"], found["throughput"] / base["throughput"]
                speeds.setdefault(engine, []).append(ratios)
                speed = f"{ratios[0]:.2f}"
            lines.append(
                f"| {case} | {engine} | {found['latency_ms']:.3f} | {found['throughput']:.1f} | {speed} |"
                f" {found['difference']:.1e} | {found.get('launches', '')} |"
            )
    if speeds:
        lines += ["", f"| engine | cases | latency over {baseline} | throughput over {baseline} |", "|---|---|---|---|"]
        for engine, ratios in speeds.items():
            means = [geometric_mean(list(column)) for column in zip(*ratios, strict=True)]
            lines.append(f"| {engine} | {len(ratios)} | {means[0]:.2f} | {means[1]:.2f} |")
    return "\n".join(lines)
