#!/usr/bin/env python3
"""Take measurements into docs/performance/cpu.json and gpu.json from the Markdown that the benchmarks print.

    measurements.py FILE…            each table whose head is that of a table there replaces its rows
    measurements.py --check FILE…    changes nothing, and ends with 1 when the rows differ

FILE is build/bench/results.md, or what scripts/bench_gpu.py, scripts/bench/sessions.py or
scripts/models/compare_providers.py printed. Run scripts/docs/charts.py afterwards. docs/performance/tables.md has
the same tables, so that checking it tests this script.
"""

import argparse
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/performance"
NAMES = ("cpu", "gpu")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    found = {}
    for file in arguments.files:
        found.update(markdown_tables(file.read_text()))
    taken, different = 0, []
    for name in NAMES:
        path = FOLDER / f"{name}.json"
        data = json.loads(path.read_text())
        for table in data["tables"]:
            rows = found.get(tuple(column["name"] for column in table["columns"]))
            if rows is not None:
                taken += 1
                table["rows"] = rows
        if as_text(data) != path.read_text():
            different.append(path.name)
            if not arguments.check:
                path.write_text(as_text(data))
    print(f"{taken} tables; other rows in: {', '.join(different) or 'none'}")
    return 1 if taken == 0 or (arguments.check and different) else 0


def markdown_tables(text):
    """Rows of each table, by its head."""
    tables = {}
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in block.splitlines())
        tables[tuple(head)] = [[row[0], *map(value, row[1:])] for row in rows]
    return tables


def value(cell):
    """A number, a list of numbers, a text, or None for an empty cell."""
    if cell in ("", "–"):
        return None
    for separator in (" / ", ", "):
        if re.fullmatch(r"[\d.–]+(?:" + separator + r"[\d.–]+)+", cell):
            return [value(part) for part in cell.split(separator)]
    if re.fullmatch(r"-?\d+", cell):
        return int(cell)
    try:
        return float(cell)
    except ValueError:
        return cell


def as_text(data):
    """JSON with a line for each column and row."""

    def dump(item):
        return json.dumps(item, ensure_ascii=False)

    tables = []
    for table in data["tables"]:
        lines = [f"      {dump(key)}: {dump(table[key])}" for key in ("name", "title", "about")]
        for key in ("columns", "rows"):
            items = ",\n".join(f"        {dump(item)}" for item in table[key])
            lines.append(f"      {dump(key)}: [\n{items}\n      ]")
        tables.append("    {\n" + ",\n".join(lines) + "\n    }")
    return f'{{\n  "about": {dump(data["about"])},\n  "tables": [\n' + ",\n".join(tables) + "\n  ]\n}\n"


if __name__ == "__main__":
    sys.exit(main())
