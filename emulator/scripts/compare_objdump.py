#!/usr/bin/env python3
"""Compares `amdemu disassemble` with llvm-objdump, instruction by instruction.

usage: compare_objdump.py AMDEMU FILE...

Files that are not code objects for AMD GPUs are left out. Prints the differences and, at the end, their number.
"""

import os
import re
import subprocess
import sys

OBJDUMP = os.environ.get("LLVM_OBJDUMP", "llvm-objdump-19")
LINE = re.compile(r"\s+(.*?)\s*// ([0-9A-F]{12}): ((?:[0-9A-F]{8} ?)+)")
AMDGPU = 224


def is_code_object(path):
    with open(path, "rb") as file:
        header = file.read(20)
    return header[:4] == b"\x7fELF" and int.from_bytes(header[18:20], "little") == AMDGPU


def expected(path):
    """Address, size and text of each instruction that llvm-objdump prints."""
    output = subprocess.run([OBJDUMP, "-d", path], capture_output=True, text=True, check=True).stdout
    for line in output.splitlines():
        found = LINE.match(line)
        if found:
            text, address, words = found.groups()
            yield address, 4 * len(words.split()), " ".join(text.split())


def actual(amdemu, path):
    output = subprocess.run([amdemu, "disassemble", path], capture_output=True, text=True, check=True).stdout
    lines = {}
    for line in output.splitlines():
        address, size, text = line.split(maxsplit=2)
        lines[address] = (int(size), " ".join(text.split()))
    return lines


def main():
    amdemu, *paths = sys.argv[1:]
    files = instructions = differences = 0
    for path in filter(is_code_object, paths):
        files += 1
        lines = actual(amdemu, path)
        for address, size, text in expected(path):
            instructions += 1
            if lines.get(address) != (size, text):
                differences += 1
                print(f"{os.path.basename(path)} {address}: {size} {text!r}, here {lines.get(address)}")
    print(f"{files} code objects, {instructions} instructions, {differences} differences")
    sys.exit(differences != 0)


if __name__ == "__main__":
    main()
