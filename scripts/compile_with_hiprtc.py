#!/usr/bin/env python3
"""Compile every kernel with the HIP runtime's own compiler (hipRTC), which needs no GPU.

    compile_with_hiprtc.py [--library FILE] [--targets gfx90a,gfx1030] [FAMILY…]

Debian's libamdhip64-5 has hipRTC 5.2, which knows these two targets. Kernels of the families named hopper_…
are NVIDIA's alone. Ends with 1 and the compiler's words when a kernel does not compile.
"""

import argparse
import ctypes
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parent.parent / "kernels"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="libamdhip64.so.5")
    parser.add_argument("--targets", default="gfx90a,gfx1030")
    parser.add_argument("families", nargs="*")
    arguments = parser.parse_args()
    rtc = ctypes.CDLL(arguments.library)
    headers = sorted((KERNELS / "include").glob("rukh/*.h"))
    files = [KERNELS / f"{name}.hip" for name in arguments.families]
    files = files or [f for f in sorted(KERNELS.glob("*.hip")) if not f.name.startswith(("hopper_", "mma_"))]
    failed = 0
    for target in arguments.targets.split(","):
        for file in files:
            words = compiled(rtc, file, headers, target)
            failed += words is not None
            print(f"{target} {file.stem}: {'compiles' if words is None else words}", flush=True)
    return failed > 0


def compiled(rtc, file, headers, target):
    """`None`, or what the compiler says against the file."""
    names = [f"rukh/{h.name}".encode() for h in headers]
    sources = [h.read_bytes() for h in headers]
    texts = ctypes.c_char_p * len(headers)
    program = ctypes.c_void_p()
    name = file.name.encode()
    created = rtc.hiprtcCreateProgram(
        ctypes.byref(program), file.read_bytes(), name, len(headers), texts(*sources), texts(*names)
    )
    if created:
        return f"hiprtcCreateProgram: {created}"
    flags = (ctypes.c_char_p * 3)(f"--offload-arch={target}".encode(), b"-O3", b"-std=c++17")
    result = rtc.hiprtcCompileProgram(program, 3, flags)
    size = ctypes.c_size_t()
    rtc.hiprtcGetCodeSize(program, ctypes.byref(size))
    words = None
    if result or not size.value:
        rtc.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        rtc.hiprtcGetProgramLog(program, log)
        words = f"error {result}\n{log.value.decode(errors='replace')}"
    rtc.hiprtcDestroyProgram(ctypes.byref(program))
    return words


if __name__ == "__main__":
    sys.exit(main())
