#!/usr/bin/env python3
"""Times kernels on this emulator, interpreted and translated.

usage: bench.py [--rounds N] [--target TARGET] LIBRARY...

LIBRARY is `build/emulator/libamdhip64.so`, or several of them to compare. Each kernel runs in a process of its own, the
libraries and both ways in turns; printed is the least processor time of all rounds, which other work on the machine
changes little. Needs clang-19 (or what CLANG names).
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SOURCE = r"""
#define KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void
#define LOCAL(axis) ((int)__builtin_amdgcn_workitem_id_##axis())
#define GROUP(axis) ((int)__builtin_amdgcn_workgroup_id_##axis())
#define SHARED static __attribute__((shared))
#define BARRIER __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); __builtin_amdgcn_s_barrier()
typedef float float4 __attribute__((ext_vector_type(4)));

KERNEL(256) add(const float *a, const float *b, float *c, int n) {
  int i = GROUP(x) * 256 + LOCAL(x);
  if (i < n) c[i] = a[i] + b[i];
}
KERNEL(256) silu(const float *a, const float *b, float *c, int n) {
  int i = GROUP(x) * 256 + LOCAL(x);
  if (i < n) c[i] = a[i] / (1.0f + __builtin_amdgcn_exp2f(-1.44269504f * a[i]));
}
KERNEL(256) sum(const float *a, const float *b, float *c, int n) {
  SHARED float s[256];
  int t = LOCAL(x), i = GROUP(x) * 256 + t;
  s[t] = i < n ? a[i] : 0;
  BARRIER;
  for (int k = 128; k > 0; k >>= 1) { if (t < k) s[t] += s[t + k]; BARRIER; }
  if (t == 0) c[GROUP(x)] = s[0];
}
KERNEL(256) product(const float *a, const float *b, float *c, int n) {
  SHARED float as[16][68], bs[16][68];
  int t = LOCAL(x), tx = t & 15, ty = t >> 4, groups = n / 64;
  int bm = GROUP(x) / groups * 64, bn = GROUP(x) % groups * 64;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int e = t; e < 1024; e += 256) {
      as[e & 15][e >> 4] = a[(bm + (e >> 4)) * n + k0 + (e & 15)];
      bs[e >> 6][e & 63] = b[(k0 + (e >> 6)) * n + bn + (e & 63)];
    }
    BARRIER;
    for (int k = 0; k < 16; k++) {
      float4 av = *(float4 *)&as[k][ty * 4], bv = *(float4 *)&bs[k][tx * 4];
      for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) acc[i][j] += av[i] * bv[j];
    }
    BARRIER;
  }
  for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) c[(bm + ty * 4 + i) * n + bn + tx * 4 + j] = acc[i][j];
}
"""
ELEMENTS = 1 << 22
SIDE = 512
# Name: workgroups, the last argument, launches in a row, and what is done in one of them with its unit.
KERNELS = {
    "add": (ELEMENTS // 256, ELEMENTS, 1, (ELEMENTS / 1e6, "million items")),
    "silu": (ELEMENTS // 256, ELEMENTS, 1, (ELEMENTS / 1e6, "million items")),
    "sum": (ELEMENTS // 256, ELEMENTS, 1, (ELEMENTS / 1e6, "million items")),
    "product": ((SIDE // 64) ** 2, SIDE, 1, (2 * SIDE**3 / 1e9, "GFLOP")),
    "add of one workgroup": (1, 256, 2000, (1e-3, "thousand launches")),
}


def compiled(target, folder):
    source, output = folder / "bench.hip", folder / f"{target}.co"
    source.write_text(SOURCE)
    clang = os.environ.get("CLANG", "clang-19")
    options = ["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O3"]
    subprocess.run([clang, *options, f"--offload-arch={target}", source, "-o", output], check=True)
    return output


def measure(library, code, name):
    """Seconds of processor time of a launch, the least of some."""
    hip = ctypes.CDLL(library)

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
    for _ in range(4):
        begin = time.process_time()
        for _ in range(launches):
            call("hipModuleLaunchKernel", function, workgroups, 1, 1, 256, 1, 1, 0, None, pointers, None)
        call("hipDeviceSynchronize")
        best = min(best, (time.process_time() - begin) / launches)
    print(best)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", default="gfx1100")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("library", nargs="+")
    options = parser.parse_args()
    if options.one:
        return measure(options.library[0], *options.one)
    ways = [(library, count) for library in options.library for count in (0, 100)]
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        code = compiled(options.target, pathlib.Path(folder))
        for name in list(KERNELS) * options.rounds:
            for library, count in ways:
                environment = os.environ | {"AMDEMU_ARCH": options.target, "AMDEMU_TRANSLATE": str(count)}
                command = [sys.executable, __file__, library, "--one", str(code), name]
                ran = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
                key = (name, library, count)
                best[key] = min(best.get(key, float("inf")), float(ran.stdout))
    for name, (_, _, _, (work, unit)) in KERNELS.items():
        print(f"{name}, {unit} a second of processor time")
        for library, count in ways:
            seconds = best[name, library, count]
            way = "translated" if count else "interpreted"
            ratio = best[name, library, 0] / seconds
            print(f"  {library} {way}: {work / seconds:.4g} ({ratio:.1f} times)")
    return None


if __name__ == "__main__":
    main()
