#!/usr/bin/env python3
"""Writes what bindings declare of the C API, from abi/rukh-api.json.

    python3 scripts/bindings/write.py          writes the files
    python3 scripts/bindings/write.py --check  names those that differ, and fails if there are any
"""

import argparse
import sys

import python
from description import ROOT, Description

WRITERS = (python,)


def wanted() -> dict[str, str]:
    """The text of every generated file, by its path in the repository."""
    api = Description()
    return {path: text for writer in WRITERS for path, text in writer.files(api).items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    different = []
    for path, text in wanted().items():
        file = ROOT / path
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        different.append(path)
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    for path in different:
        print(f"{path} is not what abi/rukh-api.json says" if check else f"written: {path}")
    if check and different:
        print("run scripts/bindings/write.py", file=sys.stderr)
    return int(check and bool(different))


if __name__ == "__main__":
    sys.exit(main())
