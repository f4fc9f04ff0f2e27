#!/usr/bin/env python3
"""Write docs/kernels.md: what AMD's compiler made of each kernel, read from the machine code.

    kernel_table.py [--cache target/rukh-kernels] [--targets gfx90a,gfx1100]

Build the library first (`RUKH_GPU_TARGETS=all cargo build` for every target): its newest image of each family
is read. Needs llvm-readelf and llvm-objdump (Debian's llvm-19).
"""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGETS = "gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1150,gfx1151,gfx1200,gfx1201"
FACTS = ["vgpr_count", "agpr_count", "sgpr_count", "group_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"]
# The widest load from memory that a kernel has, by the ends of the instructions' names.
WIDTHS = {"b128": 16, "x4": 16, "b96": 12, "x3": 12, "b64": 8, "x2": 8, "b32": 4, "dword": 4}

INTRODUCTION = """# Kernels as AMD's compiler made them

Written by `scripts/kernel_table.py` from the code objects inside the library; the speed evidence that needs no
card. VGPRs (AGPRs behind a +), SGPRs, bytes of LDS, spilled registers (VGPR/SGPR), the widest load from memory
in bytes, and how many matrix instructions (MFMA, WMMA) the code has.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "target/rukh-kernels")
    parser.add_argument("--targets", default=TARGETS)
    arguments = parser.parse_args()
    newest = {}
    for image in sorted(arguments.cache.glob("*-gfx*.image"), key=lambda file: file.stat().st_mtime):
        family, target, _ = image.stem.rsplit("-", 2)
        newest[target, family] = image
    families = {file.stem for file in (ROOT / "kernels").glob("*.hip")}
    # Targets for which the compiler made the same share a table.
    tables = {}
    for target in arguments.targets.split(","):
        rows = [
            row
            for (of, family), image in sorted(newest.items())
            if of == target and family in families
            for row in kernels(family, image)
        ]
        if rows:
            tables.setdefault("".join(rows), []).append(target)
    head = "| kernel | VGPRs | SGPRs | LDS | spills | load | matrix |\n|---|---|---|---|---|---|---|\n"
    sections = [f"\n## {', '.join(targets)}\n\n{head}{rows}" for rows, targets in tables.items()]
    (ROOT / "docs/kernels.md").write_text(INTRODUCTION + "".join(sections))


def kernels(family, image):
    """The rows of one image."""
    notes = tool("llvm-readelf-19", "--notes", image)
    code = tool("llvm-objdump-19", "-d", "--no-show-raw-insn", "--no-leading-addr", image)
    bodies = dict(re.findall(r"^<(\w+)>:\n(.*?)(?=^<|\Z)", code, re.S | re.M))
    for entry in notes.split("  - .a")[1:]:
        fact = dict(re.findall(r"\.(\w+): +(\S+)", ".a" + entry))
        vgprs, agprs, sgprs, lds, *spills = (int(fact.get(name, 0)) for name in FACTS)
        instructions = re.findall(r"^\s+(\w+)", bodies.get(fact["name"], ""), re.M)
        loads = [width(i) for i in instructions if i.startswith(("global_load", "buffer_load", "flat_load"))]
        matrix = sum(i.startswith(("v_mfma", "v_wmma")) for i in instructions)
        registers = f"{vgprs}+{agprs}" if agprs else f"{vgprs}"
        spilled = "/".join(map(str, spills)) if any(spills) else ""
        yield (
            f"| {family}: {fact['name']} | {registers} | {sgprs} | {lds or ''} | {spilled} |"
            f" {max(loads, default='')} | {matrix or ''} |\n"
        )


def width(instruction):
    return next((bytes_ for end, bytes_ in WIDTHS.items() if instruction.endswith(end)), 2)


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
