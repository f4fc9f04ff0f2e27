#!/usr/bin/env python3
"""Writes what is linked into librukh as a CycloneDX document (a software bill of materials, SBOM).

    scripts/sbom.py [--target TRIPLE] [FILE]

The list is cargo's own (`cargo tree`): normal dependencies, without what only builds or tests, for the platform
of this machine or for TRIPLE. Checksums are those of Cargo.lock. The same source gives the same text.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def document(target: str | None = None) -> dict:
    """The CycloneDX document."""
    rows = linked(target)
    checksums = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    }
    components: dict[str, dict] = {}
    needs: dict[str, set[str]] = {}
    above: list[str] = []
    for depth, name, version, licence, repository in rows:
        reference = f"pkg:cargo/{name}@{version}"
        # The text before a package says how deep it stands; what it stands below needs it.
        above = [*above[:depth], reference]
        needs.setdefault(reference, set())
        if depth > 0:
            needs[above[depth - 1]].add(reference)
        component = {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "purl": reference,
        }
        if licence:
            # Crates of old write "MIT/Apache-2.0", which SPDX writes "MIT OR Apache-2.0".
            component["licenses"] = [{"expression": licence.replace("/", " OR ")}]
        if checksum := checksums.get((name, version)):
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if repository:
            component["externalReferences"] = [{"type": "vcs", "url": repository}]
        components[reference] = component
    root = next(iter(components))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": components.pop(root)},
        "components": [components[reference] for reference in sorted(components)],
        "dependencies": [
            {"ref": reference, "dependsOn": sorted(needs[reference])} for reference in sorted(needs)
        ],
    }


def linked(target: str | None) -> list[tuple[int, str, str, str, str]]:
    """Depth, name, version, licence and repository of each package as it stands in the tree, rukh first."""
    command = [
        os.environ.get("CARGO", "cargo"),
        *("tree", "--locked", "--package", "rukh", "--edges", "normal,no-proc-macro", "--no-dedupe"),
        *("--prefix", "depth", "--format", "|{p}|{l}|{r}", "--charset", "ascii"),
        *(("--target", target) if target else ()),
    ]
    text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = []
    for line in text.splitlines():
        depth, package, licence, repository = line.split("|")
        # "name v1.2.3 (/where/it/is)"
        name, version = package.split()[:2]
        rows.append((int(depth), name, version.removeprefix("v"), licence, repository))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Writes what is linked into librukh as a CycloneDX document."
    )
    parser.add_argument("--target", help="the platform; default: this machine's")
    parser.add_argument("file", nargs="?", help="where to; default: standard output")
    arguments = parser.parse_args()
    text = json.dumps(document(arguments.target), indent=2) + "\n"
    if arguments.file:
        path = pathlib.Path(arguments.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
