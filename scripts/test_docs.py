#!/usr/bin/env python3
"""Compile and run the code that the documentation shows.

    test_docs.py PREFIX COMMAND PYTHON   PREFIX: an installed rukh; COMMAND: the `rukh` program; PYTHON: an
                                         interpreter with NumPy and ml_dtypes

Every fenced block of README.md, CONTRIBUTING.md and the pages below docs/ in one of these languages is tested,
in a folder that holds the files of the digits example and the custom operators':

  c, cpp   a whole program (it has `main`) is compiled without warnings, linked and run; a fragment is
           compiled as the body of a function whose parameters are one handle of each kind
  cmake    configured and built, with the page's first whole C program as main.c, else the digits example
  sh       run, line after line; the first failure ends it
  python   run with the package of this tree over the installed library

A block that follows the comment <!-- not tested: REASON --> is left out, and counted. So is one that follows
<!-- quoted from: PATH -->, which tests/docs.rs compares with the file.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LANGUAGES = ("c", "cpp", "cmake", "sh", "python")
BLOCK = re.compile(
    r"(<!-- (?:not tested|quoted from): [^>]*-->\s*)?^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)

# What a fragment of C may use without declaring it. It shows calls without what is done when they fail.
FRAGMENT = """#define RUKH_MUST_CHECK
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rukh/rukh.h>
void fragment(rukh_environment_options *environment_options, rukh_environment *environment,
              rukh_session_options *options, rukh_session *session, rukh_run_options *run_options,
              rukh_value *value, rukh_io_binding *binding, rukh_error *error);
void fragment(rukh_environment_options *environment_options, rukh_environment *environment,
              rukh_session_options *options, rukh_session *session, rukh_run_options *run_options,
              rukh_value *value, rukh_io_binding *binding, rukh_error *error) {
    (void)environment_options; (void)environment; (void)options; (void)session; (void)run_options;
    (void)value; (void)binding; (void)error;
%s
}
"""
FRAGMENT_CPP = """#define RUKH_MUST_CHECK
#include <iostream>
#include <string>
#include <utility>
#include <vector>
#include <rukh/rukh.hpp>
void fragment(rukh::Environment &environment, rukh::Session &session);
void fragment(rukh::Environment &environment, rukh::Session &session) {
    (void)environment; (void)session;
%s
}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("command", type=pathlib.Path)
    parser.add_argument("python", type=pathlib.Path)
    arguments = parser.parse_args()
    tested, left_out, failed = 0, 0, []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        program = None
        for match in BLOCK.finditer(text):
            comment, language, code = match.groups()
            if language not in LANGUAGES:
                continue
            if comment:
                left_out += 1
                continue
            where = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start(2)) + 1}"
            if language == "c" and "int main(" in code:
                program = program or code
            output = test(language, code, program, arguments)
            tested += 1
            if output is not None:
                failed.append(where)
                print(f"FAILED {where} ({language})\n{output}")
    print(f"{tested - len(failed)} of {tested} code examples work, {left_out} not tested")
    return 1 if failed or not tested else 0


def test(language, code, program, arguments):
    """None when the block works, else what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        custom = (ROOT / "examples/custom-operators").glob("custom.*")
        for file in [*(ROOT / "examples/digits").iterdir(), *custom]:
            if file.is_file():
                shutil.copy(file, folder)
        (folder / "bin").mkdir()
        (folder / "bin/rukh").symlink_to(arguments.command.resolve())
        env = environment(arguments.prefix.resolve(), folder)
        for step in steps(language, code, program, folder, arguments):
            done = subprocess.run(step, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode != 0:
                return f"{' '.join(step)}: exit code {done.returncode}\n" + done.stdout.decode(errors="replace")
    return None


def environment(prefix, folder):
    """Programs, pkg-config and CMake find the installed library."""
    env = dict(os.environ)
    env["PATH"] = f"{folder}/bin:{env['PATH']}"
    env["PKG_CONFIG_PATH"] = f"{prefix}/lib/pkgconfig"
    env["CMAKE_PREFIX_PATH"] = str(prefix)
    env["LD_LIBRARY_PATH"] = f"{prefix}/lib"
    env["PREFIX"] = str(prefix)
    env["RUKH_LIBRARY"] = f"{prefix}/lib/librukh.so"
    env["PYTHONPATH"] = str(ROOT / "python/src")
    return env


def steps(language, code, program, folder, arguments):
    """The commands that test a block, whose files lie in `folder`."""
    prefix = arguments.prefix.resolve()
    if language == "python":
        (folder / "block.py").write_text(code)
        return [[str(arguments.python.absolute()), "block.py"]]
    if language == "sh":
        (folder / "block.sh").write_text(code)
        return [["sh", "-eux", "block.sh"]]
    if language == "cmake":
        (folder / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.16)\nproject(page LANGUAGES C CXX)\n{code}"
        )
        (folder / "main.c").write_text(program or (folder / "digits.c").read_text())
        return [["cmake", "-B", "build"], ["cmake", "--build", "build"]]
    whole = "int main(" in code
    suffix, compiler, standard = (".c", "cc", "c99") if language == "c" else (".cpp", "c++", "c++17")
    (folder / f"block{suffix}").write_text(code if whole else (FRAGMENT if suffix == ".c" else FRAGMENT_CPP) % code)
    compile_it = [
        *(compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{prefix}/include"),
        *("-o", "block", f"block{suffix}"),
    ]
    if not whole:
        return [[*compile_it, "-c"]]
    return [[*compile_it, f"-L{prefix}/lib", "-lrukh"], ["./block"]]


if __name__ == "__main__":
    sys.exit(main())
