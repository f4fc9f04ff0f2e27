#!/usr/bin/env python3
"""Runs tinygrad's tests of AMD instructions on this emulator.

usage: hardware_tests.py [--library FILE] TINYGRAD_FOLDER [TEST...]

TINYGRAD_FOLDER is a checkout of https://github.com/tinygrad/tinygrad; nothing of it is copied or changed. Its tests in
test/amd/hw make short programs of instructions and know what real GPUs answer. They run them through one function,
`run_asm`; here it is replaced by one that puts the instructions into a code object and launches that with HIP's functions
of the emulator's library. TEST names a file (`test_vop1`) or a class in it (`test_vop1.TestMov`); all files are run without it.

Needs clang-19 and ld.lld-19 (or what CLANG and LLD name), numpy is not needed. Ends with status 1 if a test fails.
"""

import argparse
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Target and lanes of a wave for each file. The tests for CDNA expect gfx950's floats of 8 bits.
USUAL = ("gfx1100", 32)
TARGETS = {
    "test_cdna_sdwa": ("gfx950", 64),
    "test_cdna_vop3": ("gfx950", 64),
    "test_dpp": ("gfx1100", 64),
    "test_rdna4_permlane_var": ("gfx1201", 32),
}
CODE_BYTES = 32768

TEMPLATE = """
.text
.globl test
.p2align 8
.type test,@function
test:
.fill {words}, 4, 0xbf800000
.rodata
.p2align 6
.amdhsa_kernel test
  .amdhsa_next_free_vgpr 256
  .amdhsa_next_free_sgpr 96
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_group_segment_fixed_size 65536
  .amdhsa_private_segment_fixed_size 65536
  .amdhsa_enable_private_segment 1
  .amdhsa_float_denorm_mode_32 3
  {lines}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.kernels:
  - .name: test
    .symbol: test.kd
    .args:
      - {{ .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global }}
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 65536
    .private_segment_fixed_size: 65536
    .kernarg_segment_align: 8
    .wavefront_size: {lanes}
    .sgpr_count: 96
    .vgpr_count: 256
    .max_flat_workgroup_size: 1024
...
.end_amdgpu_metadata
"""


class Emulator:
    """HIP's functions of the emulator, for one target."""

    def __init__(self, library, target, lanes):
        os.environ["AMDEMU_ARCH"] = target
        self.hip = ctypes.CDLL(str(library))
        self.hip.hipGetErrorName.restype = ctypes.c_char_p
        self.hip.amdemu_last_error.restype = ctypes.c_char_p
        self.target = target
        self.lanes = lanes
        self.template = self.assemble()
        self.code_at = self.template.index(b"\x00\x00\x80\xbf" * (CODE_BYTES // 4))
        # Bytes that a test's program may write; None: four for each lane.
        self.output_bytes = None

    def assemble(self):
        """A code object with room for instructions."""
        is_cdna = self.target.startswith("gfx9")
        lines = ".amdhsa_accum_offset 256" if is_cdna else f".amdhsa_wavefront_size32 {int(self.lanes == 32)}"
        # clang-19 does not know gfx950, whose code objects differ by their name and number only.
        target = "gfx942" if self.target == "gfx950" else self.target
        clang, lld = os.environ.get("CLANG", "clang-19"), os.environ.get("LLD", "ld.lld-19")
        with tempfile.TemporaryDirectory() as folder:
            source, linked = f"{folder}/test.s", f"{folder}/test.co"
            text = TEMPLATE.format(words=CODE_BYTES // 4, target=target, lanes=self.lanes, lines=lines)
            pathlib.Path(source).write_text(text)
            options = ["-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-c", source, "-o", f"{source}.o"]
            subprocess.run([clang, *options], check=True)
            subprocess.run([lld, "-shared", f"{source}.o", "-o", linked], check=True)
            image = pathlib.Path(linked).read_bytes()
        flags = int.from_bytes(image[48:52], "little")
        if target != self.target:
            flags = flags & ~0xFF | 0x4F
        image = image.replace(target.encode(), self.target.encode())
        return image[:48] + flags.to_bytes(4, "little") + image[52:]

    def call(self, name, *arguments):
        error = getattr(self.hip, name)(*arguments)
        if error:
            raise RuntimeError(f"{name}: {self.hip.hipGetErrorName(error).decode()}")

    def run(self, code, grid, block, output):
        """Runs instructions; their only argument is the address of the output."""
        if len(code) > CODE_BYTES:
            raise ValueError(f"{len(code)} bytes of instructions, and there is room for {CODE_BYTES}")
        image = self.template[: self.code_at] + code + self.template[self.code_at + len(code) :]
        module, function, address = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(output)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        count = self.output_bytes or 4 * block[0]
        self.call("hipHostRegister", address, ctypes.c_size_t(count), 0)
        try:
            self.call("hipModuleLoadData", ctypes.byref(module), image)
            self.call("hipModuleGetFunction", ctypes.byref(function), module, b"test")
            self.call("hipModuleLaunchKernel", function, *grid, *block, 0, None, parameters, None)
            self.call("hipDeviceSynchronize")
            self.call("hipModuleUnload", module)
            self.call("hipHostUnregister", address)
        except RuntimeError as error:
            message = self.hip.amdemu_last_error().decode()
            self.hip.amdemu_clear_error()
            self.hip.hipHostUnregister(address)
            raise RuntimeError(f"{error}: {message}") from None


def replace(emulator):
    """Makes the tests use this emulator."""

    def run_asm(lib, lib_sz, gx, gy, gz, lx, ly, lz, args_ptr, *_, **__):
        output = ctypes.c_uint64.from_address(args_ptr).value
        emulator.run(ctypes.string_at(lib, lib_sz), (gx, gy, gz), (lx, ly, lz), output)
        return 0

    theirs = types.ModuleType("test.mockgpu.amd.emu")
    theirs.run_asm = run_asm
    sys.modules[theirs.__name__] = theirs
    from test.amd.hw import helpers

    run_program_emu = helpers.run_program_emu

    def run_program(instructions, n_lanes=1):
        emulator.output_bytes = helpers._out_bytes(n_lanes)
        try:
            return run_program_emu(instructions, n_lanes)
        finally:
            emulator.output_bytes = None

    helpers.run_program_emu = run_program
    # On their emulator these programs load the address of the output by an encoding that names a register for the offset.
    # On hardware it is a part of the program.
    try:
        from test.amd.hw import test_cdna_vop3 as cdna
    except ImportError:
        return

    def run_cdna(instructions, out_reg=2):
        output = (ctypes.c_uint32 * cdna.LANES)()
        address = ctypes.addressof(output)
        emulator.run(cdna._code(instructions, out_reg, address), (1, 1, 1), (cdna.LANES, 1, 1), address)
        return output[0]

    cdna._run_emu = run_cdna


def run_here(arguments):
    """All tests of one target, in this process."""
    sys.path.insert(0, str(arguments.folder))
    os.environ.pop("USE_HW", None)
    target, lanes = arguments.target.split(",")
    replace(Emulator(arguments.library, target, int(lanes)))
    names = [f"test.amd.hw.{name}" for name in arguments.tests]
    result = unittest.TextTestRunner(verbosity=0).run(unittest.defaultTestLoader.loadTestsFromNames(names))
    # A test whose parts fail counts once.
    wrong = len({getattr(test, "test_case", test).id() for test, _ in result.failures + result.errors})
    print(f"result {result.testsRun - len(result.skipped) - wrong} {result.testsRun - len(result.skipped)}")
    return wrong != 0


def run_all(arguments):
    """A process for each target, as the library takes it from the environment."""
    folder = arguments.folder / "test/amd/hw"
    tests = arguments.tests or sorted(path.stem for path in folder.glob("test_*.py"))
    right = count = 0
    targets = {test: TARGETS.get(test.split(".")[0], USUAL) for test in tests}
    for target, lanes in sorted(set(targets.values())):
        chosen = [test for test in tests if targets[test] == (target, lanes)]
        command = [sys.executable, __file__, "--library", str(arguments.library)]
        command += ["--target", f"{target},{lanes}"]
        command += [str(arguments.folder), *chosen]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        found = [line.split()[1:] for line in output.splitlines() if line.startswith("result ")]
        if not found:
            sys.exit(f"{target}: the tests did not come to their end")
        passed, run = map(int, found[0])
        right, count = right + passed, count + run
        print(f"{target}, {lanes} lanes: {passed} of {run} tests pass ({', '.join(chosen)})")
    print(f"{right} of {count} tests pass")
    return right != count


def main():
    parser = argparse.ArgumentParser(description="Runs tinygrad's tests of AMD instructions on this emulator.")
    parser.add_argument("folder", type=pathlib.Path, help="a checkout of tinygrad")
    parser.add_argument("--library", type=pathlib.Path, default=REPOSITORY / "target/debug/libamdhip64.so")
    parser.add_argument("--target", help="run all tests here: a target and its lanes (gfx1100,32)")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    sys.exit(run_here(arguments) if arguments.target else run_all(arguments))


if __name__ == "__main__":
    main()
