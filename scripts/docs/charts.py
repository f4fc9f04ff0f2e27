#!/usr/bin/env python3
"""Write the tables and charts of docs/performance from the measurements that are checked in.

    charts.py            writes docs/performance/tables.md and docs/performance/*.svg
    charts.py --check    compares them with the files, and ends with 1 when they differ

The measurements are docs/performance/cpu.json and gpu.json: a list of tables, each with columns (a name and
the format of its numbers) and rows. A cell is a number, a text, null, or a list of numbers.
"""

import argparse
import json
import pathlib
import statistics
import sys
from xml.sax.saxutils import escape

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/performance"
TITLES = {"cpu": "On the CPU", "gpu": "On an NVIDIA GPU"}
# rukh has the strong colour; of its ways, the first has the lightest one.
BLUE, PALE, GREY, SAND = "#1f5fa8", "#8fb4dc", "#8a8f98", "#c9a24b"
ROW, GAP, BARS, RIGHT = 13, 8, 500, 50


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    data = {name: json.loads((FOLDER / f"{name}.json").read_text()) for name in TITLES}
    different = []
    for name, text in files(data).items():
        path = FOLDER / name
        if check and not (path.exists() and path.read_text() == text):
            different.append(name)
        elif not check:
            path.write_text(text)
    if different:
        print(f"scripts/docs/charts.py makes these otherwise; run it again: {', '.join(different)}")
    return 1 if different else 0


def files(data):
    """Name and text of each file."""
    cpu, gpu = ({table["name"]: table for table in data[name]["tables"]} for name in TITLES)
    on_cpu = "2 cores of Zen 5"
    return {
        "tables.md": tables(data),
        "cpu-f32.svg": ratios(cpu["ratios"], "", f"Speed of rukh over that of its peers, f32, {on_cpu}"),
        "cpu-bf16.svg": ratios(cpu["ratios"], "bf16", f"Speed of rukh over OpenVINO's, bfloat16, {on_cpu}"),
        "cpu-int8.svg": ratios(cpu["ratios"], "int8", f"Speed of rukh over that of its peers, 8 bits, {on_cpu}"),
        "gpu-models.svg": beside_torch(gpu["torch"]),
        "gpu-kernels.svg": memory_bound(gpu["kernels"]),
        "gpu-products.svg": products(gpu["products"]),
    }


# --- tables --------------------------------------------------------------------------------------


def tables(data):
    lines = [
        "# Measurements",
        "",
        "<!-- Made by scripts/docs/charts.py from cpu.json and gpu.json; a test compares. -->",
        "",
        "All figures behind [Performance](../performance.md).",
    ]
    for name, title in TITLES.items():
        lines += ["", f"## {title}", "", data[name]["about"]]
        for table in data[name]["tables"]:
            lines += ["", f"### {table['title']}", "", table["about"], "", *markdown(table)]
    return "\n".join(lines) + "\n"


def markdown(table):
    names = [column["name"] for column in table["columns"]]
    yield f"| {' | '.join(names)} |"
    yield "|---" * len(names) + "|"
    for row in table["rows"]:
        yield f"| {' | '.join(map(cell, row, table['columns']))} |"


def cell(value, column):
    spec = column["format"]
    if isinstance(value, list):
        separator = " / " if "d" not in spec else ", "
        return separator.join("–" if item is None else cell(item, column) for item in value)
    if value is None or isinstance(value, str):
        return value or ""
    if spec == "ms":
        return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    # A mean below a column of whole numbers.
    return format(value, ".2f" if spec == "d" and isinstance(value, float) else spec)


# --- charts --------------------------------------------------------------------------------------


def ratios(table, precision, title):
    """Rows of one precision: rukh over each peer."""
    peers = ["to ONNX Runtime", "to OpenVINO"][1 if precision == "bf16" else 0 :]
    columns = [column["name"] for column in table["columns"]]
    groups = []
    for row in table["rows"]:
        name, _, tail = row[0].rpartition(":")
        kind = tail if tail in ("bf16", "int8") and name else ""
        is_mean = row[0].startswith("geometric mean")
        if is_mean and row[0].endswith(precision or "f32"):
            groups.append(("geometric mean", [row[columns.index(peer)] for peer in peers]))
        elif not is_mean and kind == precision:
            label = name if kind else row[0].replace(":8", ", batch 8")
            groups.append((label.replace(":", ", "), [row[columns.index(peer)] for peer in peers]))
    series = [(peer.replace("to ", "over "), color) for peer, color in zip(peers, (BLUE, PALE), strict=False)]
    return chart(title, series, groups, reference=(1, "as fast"))


def beside_torch(table):
    """Speed of calls that are waited for and of queued ones, with torch.compile's as 1."""
    groups = []
    for model, batch, sequence, torch, rukh, _, _, torch_rate, rukh_rate, _ in table["rows"]:
        label = f"{model}, batch {batch}" + (f", {sequence} tokens" if sequence else "")
        groups.append((label, [torch / rukh, rukh_rate / torch_rate]))
    ways = zip(*(values for _, values in groups), strict=True)
    groups.append(("geometric mean", [statistics.geometric_mean(way) for way in ways]))
    series = [("each call waited for", BLUE), ("calls queued", SAND)]
    title = "Speed of rukh over that of torch.compile (reduce-overhead), f16, one H200"
    return chart(title, series, groups, reference=(1, "as fast"))


def memory_bound(table):
    """Rates over that of a copy on the device; PyTorch's follows from the times."""
    groups = [(name, [share, share * us / torch]) for name, _, us, _, share, torch in table["rows"]]
    title = "Kernels bound by memory: rate over that of a copy, one H200"
    return chart(title, [("rukh", BLUE), ("PyTorch", GREY)], groups, reference=(1, "a copy"))


def products(table):
    groups = [(name, [own, torch]) for name, _, own, torch, _ in table["rows"]]
    title = "Products and attention: TFLOP/s, one H200"
    return chart(title, [("rukh", BLUE), ("PyTorch", GREY)], groups, digits=0)


def chart(title, series, groups, reference=None, digits=2):
    """Horizontal bars: `series` are names and colours, `groups` labels with a value of each series."""
    left = 20 + round(6.8 * max(len(label) for label, _ in groups))
    largest = max(value for _, values in groups for value in values if value is not None)
    scale = BARS / max(largest, reference[0] if reference else 0)
    bars, texts, y = [], [], 62
    for label, values in groups:
        middle = y + ROW * len(values) / 2 + 4
        bold = {"font-weight": "bold"} if label == "geometric mean" else {}
        texts.append(text(left - 8, middle, label, **{"text-anchor": "end"}, **bold))
        for (_, color), value in zip(series, values, strict=True):
            width = (value or 0) * scale
            bars.append(bar(left, y, width, ROW - 2, color))
            told = "does not run it" if value is None else f"{value:.{digits}f}"
            texts.append(text(left + width + 4, y + 10, told, **{"font-size": 10}))
            y += ROW
        y += GAP
    if reference:
        x, red = left + reference[0] * scale, "#c0392b"
        bars.append(f'<path d="M{x:.1f} 56V{y - 4}" stroke="{red}" stroke-dasharray="4 3"/>')
        texts.append(text(x, y + 10, reference[1], **{"text-anchor": "middle", "fill": red}))
    key, x = [text(12, 20, title, **{"font-size": 14, "font-weight": "bold"})], left
    for name, color in series:
        key += [bar(x, 34, 12, 12, color), text(x + 17, 44, name)]
        x += 40 + 7 * len(name)
    width, height = left + BARS + RIGHT, y + 22
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    font = 'font-family="sans-serif" font-size="12" fill="#222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>'
    return "\n".join([head, bar(0, 0, width, height, "#fff"), *key, *bars, *texts, "</svg>"]) + "\n"


def bar(x, y, width, height, color):
    return f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" fill="{color}"/>'


def text(x, y, told, **attributes):
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.0f}"{more}>{escape(told)}</text>'


if __name__ == "__main__":
    sys.exit(main())
