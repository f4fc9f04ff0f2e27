"""Runs a program that imports onnxruntime, as it is, with rukh in its place.

    python -m rukh.as_onnxruntime SCRIPT [ARGUMENT ...]
    python -m rukh.as_onnxruntime -m MODULE [ARGUMENT ...]

The program sees its own name and arguments. Other Python processes that it starts have their own onnxruntime.
"""

from __future__ import annotations

import os
import runpy
import sys

import rukh


def main(arguments: list[str]) -> int:
    is_module = arguments[:1] == ["-m"]
    program = arguments[1:] if is_module else arguments
    if not program or (not is_module and program[0].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    sys.modules["onnxruntime"] = rukh
    sys.argv = program
    if is_module:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(program[0]):
        print(f"no file {program[0]!r}; name a script, or a module behind -m", file=sys.stderr)
        return 2
    # As Python does for a script.
    sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
    runpy.run_path(os.path.abspath(program[0]), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
