#!/usr/bin/env python3
"""Write build/kernels.md: what AMD's compiler made of each kernel, read from the machine code.

    kernel_table.py [--cache target/rukh-kernels] [--targets gfx90a,gfx1100] [--out build/kernels.md]

`make kernel-table` builds the kernels for every target before. The newest image of each family is read. Prints a
summary, which docs/kernels.md shows. Needs llvm-readelf and llvm-objdump (Debian's llvm-19).
"""

import argparse
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = "gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1150,gfx1151,gfx1200,gfx1201"
FACTS = ["vgpr_count", "agpr_count", "sgpr_count", "group_segment_fixed_size", "vgpr_spill_count", "sgpr_spill_count"]
# The widest load from memory that a kernel has, by the ends of the instructions' names.
WIDTHS = {"b128": 16, "x4": 16, "b96": 12, "x3": 12, "b64": 8, "x2": 8, "b32": 4, "dword": 4}

HEAD = "| kernel | VGPRs | SGPRs | LDS | spills | load | matrix |\n|---|---|---|---|---|---|---|\n"
INTRODUCTION = """# Kernels as AMD's compiler made them

Written by `scripts/docs/kernel_table.py` from the code objects inside the library. VGPRs (AGPRs behind a +), SGPRs,
bytes of LDS, spilled registers (VGPR/SGPR), the widest load from memory in bytes, and how many matrix instructions
(MFMA, WMMA) the code has.

"""
SUMMARY = """| target | kernels | with loads of 16 bytes | with matrix instructions | that spill VGPRs | that spill \
SGPRs | largest LDS, bytes |
|---|---|---|---|---|---|---|
"""


@dataclass
class Kernel:
    name: str
    vgprs: int
    agprs: int
    sgprs: int
    lds: int
    vgpr_spills: int
    sgpr_spills: int
    load: int
    matrix: int

    def row(self):
        registers = f"{self.vgprs}+{self.agprs}" if self.agprs else f"{self.vgprs}"
        spills = f"{self.vgpr_spills}/{self.sgpr_spills}" if self.vgpr_spills or self.sgpr_spills else ""
        numbers = [self.lds or "", spills, self.load or "", self.matrix or ""]
        return f"| {self.name} | {registers} | {self.sgprs} | {' | '.join(map(str, numbers))} |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, default=ROOT / "target/rukh-kernels")
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/kernels.md")
    arguments = parser.parse_args()
    # Targets for which the compiler made the same share a table.
    tables = {}
    for target, found in read(arguments.cache, arguments.targets.split(",")).items():
        tables.setdefault("".join(kernel.row() for kernel in found), []).append((target, found))
    if not tables:
        print(f"{arguments.cache} has no image for {arguments.targets}; build the library first", file=sys.stderr)
        return 1
    lines, sections = {}, ""
    for rows, alike in tables.items():
        names = ", ".join(target for target, _ in alike)
        sections += f"\n## {names}\n\n{HEAD}{rows}"
        lines.setdefault(" | ".join(map(str, counts(alike[0][1]))), []).append(names)
    summary = SUMMARY + "".join(f"| {', '.join(names)} | {line} |\n" for line, names in lines.items())
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(INTRODUCTION + summary + sections)
    print(summary, end="")
    return 0


def counts(found):
    """A target's line of the summary."""
    yield len(found)
    yield sum(kernel.load == 16 for kernel in found)
    yield sum(kernel.matrix > 0 for kernel in found)
    yield sum(kernel.vgpr_spills > 0 for kernel in found)
    yield sum(kernel.sgpr_spills > 0 for kernel in found)
    yield max(kernel.lds for kernel in found)


def read(cache, targets):
    """The kernels of each target that has any, by the newest image of each family."""
    families = {file.stem for file in (ROOT / "kernels").glob("*.hip")}
    newest = {}
    for image in sorted(cache.glob("*-gfx*.image"), key=lambda file: file.stat().st_mtime):
        family, target, _ = image.stem.rsplit("-", 2)
        if target in targets and family in families:
            newest[target, family] = image
    found = {}
    for (target, family), image in sorted(newest.items(), key=lambda item: (targets.index(item[0][0]), item[0][1])):
        found.setdefault(target, []).extend(kernels(family, image))
    return found


def kernels(family, image):
    """The kernels of one image."""
    notes = tool("llvm-readelf-19", "--notes", image)
    code = tool("llvm-objdump-19", "-d", "--no-show-raw-insn", "--no-leading-addr", image)
    bodies = dict(re.findall(r"^<(\w+)>:\n(.*?)(?=^<|\Z)", code, re.S | re.M))
    for entry in notes.split("  - .a")[1:]:
        fact = dict(re.findall(r"\.(\w+): +(\S+)", ".a" + entry))
        instructions = re.findall(r"^\s+(\w+)", bodies.get(fact["name"], ""), re.M)
        loads = [width(i) for i in instructions if i.startswith(("global_load", "buffer_load", "flat_load"))]
        matrix = sum(i.startswith(("v_mfma", "v_wmma")) for i in instructions)
        numbers = [int(fact.get(name, 0)) for name in FACTS]
        yield Kernel(f"{family}: {fact['name']}", *numbers, max(loads, default=0), matrix)


def width(instruction):
    return next((bytes_ for end, bytes_ in WIDTHS.items() if instruction.endswith(end)), 2)


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
