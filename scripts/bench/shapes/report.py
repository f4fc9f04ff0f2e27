"""Tables and a picture of a sweep."""

from __future__ import annotations

import math
from typing import Any
from xml.sax.saxutils import escape

Found = dict[str, Any]
NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO"}
# Largest difference from the other engine's outputs: by precision, and of what is rounded to bytes.
LIMITS = {"f32": 1e-3, "bf16": 5e-2}
BYTES = 2e-2
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 900, 460, 60, 50, 46
COLOURS = ("#1f5fa8", "#c9a24b", "#8a8f98", "#8fb4dc", "#b0413e", "#3f8f5f")


def geometric_mean(numbers: list[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def wrong(found: Found, precision: str) -> bool:
    limit = BYTES if found["kind"].startswith("QLinear") else LIMITS[precision]
    return not found.get("difference", 0.0) <= limit


def configuration(run: Found) -> str:
    return f"{run['isa']}, {run['threads']} thread{'s' if run['threads'] > 1 else ''}, {run['precision']}"


def kinds(run: Found) -> dict[str, list[Found]]:
    """The cases that were timed, by kind."""
    found: dict[str, list[Found]] = {}
    for case in run["cases"]:
        if "ratio" in case:
            found.setdefault(case["kind"], []).append(case)
    return found


def table(runs: list[Found], worst: int) -> str:
    """Markdown: for each configuration its kinds, the slowest first, its worst cases, and what failed."""
    lines: list[str] = []
    for run in runs:
        by_kind = kinds(run)
        every = [case for cases in by_kind.values() for case in cases]
        peer = NAMES[run["peer"]]
        lines += [f"## {configuration(run)}", ""]
        if every:
            mean = geometric_mean([case["ratio"] for case in every])
            lines += [f"{len(every)} cases, rukh's speed over {peer}'s, geometric mean: {mean:.2f}", ""]
            lines += ["| kind | cases | mean | least | slowest case |", "|---|---|---|---|---|"]
            rows = [(geometric_mean([case["ratio"] for case in cases]), kind) for kind, cases in by_kind.items()]
            for mean, kind in sorted(rows):
                least = min(by_kind[kind], key=lambda case: case["ratio"])
                told = f"{least['ratio']:.2f} | {least['case']}"
                lines.append(f"| {kind} | {len(by_kind[kind])} | {mean:.2f} | {told} |")
            lines += ["", f"| slowest | speed | rukh, µs | {peer}, µs |", "|---|---|---|---|"]
            for case in sorted(every, key=lambda case: case["ratio"])[:worst]:
                times = f"{min(case['rukh']):.1f} | {min(case[run['peer']]):.1f}"
                lines.append(f"| {case['kind']}: {case['case']} | {case['ratio']:.2f} | {times} |")
            lines.append("")
        for case in run["cases"]:
            if "error" in case:
                lines.append(f"* {case['kind']}: {case['case']} was not run: {case['error']}")
            elif wrong(case, run["precision"]):
                lines.append(f"* {case['kind']}: {case['case']}: outputs differ by {case['difference']:.1e}")
        lines.append("")
    return "\n".join(lines)


def picture(runs: list[Found]) -> str:
    """Points: a case's work over its ratio, both on logarithmic scales; a colour for each configuration."""
    every = [case for run in runs for cases in kinds(run).values() for case in cases]
    if not every:
        return ""
    low, high = (f(math.log10(max(case["work"], 1)) for case in every) for f in (min, max))
    least = min(-1.0, math.floor(min(math.log2(case["ratio"]) for case in every)))
    most = max(1.0, math.ceil(max(math.log2(case["ratio"]) for case in every)))
    low, high = math.floor(low), max(math.ceil(high), math.floor(low) + 1)

    def at(work: float, ratio: float) -> tuple[float, float]:
        x = LEFT + (work - low) / (high - low) * (WIDTH - LEFT - 20)
        return x, TOP + (most - ratio) / (most - least) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    title = f"Speed of rukh over {NAMES[runs[0]['peer']]}'s: single nodes and blocks"
    parts.append(text(LEFT, 20, title, 'font-size="14"'))
    for ratio in range(int(least), int(most) + 1):
        y = at(low, ratio)[1]
        colour = "#c0392b" if ratio == 0 else "#ddd"
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - 20}" stroke="{colour}"/>')
        parts.append(text(LEFT - 6, y + 4, f"{2.0**ratio:g}", 'text-anchor="end"'))
    for work in range(low, high + 1):
        x = at(work, least)[0]
        parts.append(text(x, HEIGHT - BOTTOM + 18, f"10^{work}", 'text-anchor="middle"'))
    told = "multiplications and additions, or elements read and written where there are more"
    parts.append(text((WIDTH + LEFT) / 2, HEIGHT - 8, told, 'text-anchor="middle"'))
    x = float(LEFT)
    for run, colour in zip(runs, COLOURS * len(runs), strict=False):
        parts += [f'<circle cx="{x:.0f}" cy="34" r="4" fill="{colour}"/>', text(x + 8, 38, configuration(run))]
        x += 30 + 7 * len(configuration(run))
        for kind, cases in kinds(run).items():
            for case in cases:
                cx, cy = at(math.log10(max(case["work"], 1)), math.log2(case["ratio"]))
                title = escape(f"{kind}: {case['case']}: {case['ratio']:.2f}")
                shape = f'cx="{cx:.1f}" cy="{cy:.1f}" r="3" fill="{colour}" fill-opacity="0.6"'
                parts.append(f"<circle {shape}><title>{title}</title></circle>")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12" fill="#222">'
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def text(x: float, y: float, told: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{escape(told)}</text>'
