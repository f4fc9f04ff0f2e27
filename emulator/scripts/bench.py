#!/usr/bin/env python3
"""Times kernels on this emulator, interpreted and translated.

usage: bench.py [--rounds N] [--target TARGET] [--translated-alone] LIBRARY...

LIBRARY is `build/emulator/libamdhip64.so`, which `make emulator` builds, or `target/release/libamdhip64.so`;
or several of them to compare: each is compared with the first. Each kernel runs in a process of its own, the
libraries and both ways in turns; printed is the least processor time of all rounds, which other work on the
machine changes little. Needs clang-19 (or what CLANG names).
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).with_name("bench.hip")
ELEMENTS = 1 << 22
SIDE = 512
FLOATS = (2 * SIDE**3 / 1e9, "GFLOP")
ITEMS = (ELEMENTS / 1e6, "million items")
# Name: workgroups, the last argument, launches in a row, and what is done in one of them with its unit.
KERNELS = {
    "product_64": ((SIDE // 64) ** 2, SIDE, 1, FLOATS),
    "product_16": ((SIDE // 16) ** 2, SIDE, 1, FLOATS),
    "add": (ELEMENTS // 256, ELEMENTS, 1, ITEMS),
    "gelu": (ELEMENTS // 256, ELEMENTS, 1, ITEMS),
    "exponential": (ELEMENTS // 256, ELEMENTS, 1, ITEMS),
    "sum": (ELEMENTS // 256, ELEMENTS, 1, ITEMS),
    "add of one workgroup": (1, 256, 2000, (1e-3, "thousand launches")),
    "add of 64 workgroups": (64, 256 * 64, 200, (1e-3, "thousand launches")),
}


def compiled(target, folder):
    output = folder / f"{target}.co"
    clang = os.environ.get("CLANG", "clang-19")
    options = ["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O3"]
    subprocess.run([clang, *options, f"--offload-arch={target}", SOURCE, "-o", output], check=True)
    return output


def measure(library, code, name):
    """Prints the milliseconds of processor time of a launch, the least of six tries."""
    hip = ctypes.CDLL(os.path.abspath(library))

    def call(function, *arguments):
        error = getattr(hip, function)(*arguments)
        if error:
            sys.exit(f"{function} failed: {error}")

    def memory(values):
        place = ctypes.c_void_p()
        size = ctypes.c_size_t(4 * len(values))
        call("hipMalloc", ctypes.byref(place), size)
        call("hipMemcpy", place, values, size, 1)
        return place

    values = (ctypes.c_float * ELEMENTS)(*(i % 97 / 97 for i in range(ELEMENTS)))
    workgroups, last, launches, _ = KERNELS[name]
    arguments = [memory(values), memory(values), memory(values), ctypes.c_int(last)]
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(it) for it in arguments))
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("hipModuleLoadData", ctypes.byref(module), pathlib.Path(code).read_bytes())
    call("hipModuleGetFunction", ctypes.byref(function), module, name.split()[0].encode())
    best = float("inf")
    for _ in range(6):
        begin = time.process_time()
        for _ in range(launches):
            call("hipModuleLaunchKernel", function, workgroups, 1, 1, 256, 1, 1, 0, None, pointers, None)
        call("hipDeviceSynchronize")
        best = min(best, (time.process_time() - begin) / launches)
    print(1e3 * best)


def measure_all(options, ways):
    """The milliseconds of each kernel and each way."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        code = compiled(options.target, pathlib.Path(folder))
        for name in list(KERNELS) * options.rounds:
            for way in ways:
                library, count = way
                environment = os.environ | {"AMDEMU_ARCH": options.target, "AMDEMU_TRANSLATE": str(count)}
                command = [sys.executable, __file__, library, "--one", str(code), name]
                ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                best[name, way] = min(best.get((name, way), float("inf")), float(ran.stdout))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", default="gfx1100")
    parser.add_argument("--translated-alone", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("library", nargs="+")
    options = parser.parse_args()
    if options.one:
        return measure(options.library[0], *options.one)
    counts = [100] if options.translated_alone else [0, 100]
    ways = [(library, count) for library in options.library for count in counts]
    best = measure_all(options, ways)
    ratios = {way: [best[name, ways[0]] / best[name, way] for name in KERNELS] for way in ways}
    for name, (_, _, _, (work, unit)) in KERNELS.items():
        print(name)
        for way in ways:
            time_of_launch = best[name, way]
            ratio = best[name, ways[0]] / time_of_launch
            rate = f"{1e3 * work / time_of_launch:.4g} {unit} a second"
            print(f"  {label(way)}: {time_of_launch:.4g} ms of processor time, {rate}, {ratio:.1f} times as fast")
    for way in ways:
        print(f"{label(way)}: {statistics.geometric_mean(ratios[way]):.1f} times as fast in the geometric mean")
    return None


def label(way):
    library, count = way
    return f"{library} {'translated' if count else 'interpreted'}"


if __name__ == "__main__":
    main()
