"""Puts librukh, and librukh_generate where it is built, into the wheel.

The library is the one that RUKH_LIBRARY names, else what cargo makes of the source around this folder.
Cargo keeps what it built in the repository's target folder, so that building again is quick.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")


class DistributionWithLibrary(Distribution):
    """Has machine code, so that the wheel is one for a platform."""

    def has_ext_modules(self):
        return True


class BuildWithLibrary(build_py):
    """Copies librukh beside the modules; an editable install finds it there as well."""

    def run(self):
        super().run()
        source = (
            ROOT / "python" / "src" / "rukh" if self.editable_mode else pathlib.Path(self.build_lib, "rukh")
        )
        source.mkdir(parents=True, exist_ok=True)
        library = find_library()
        # The one for generating text lies beside it.
        for name, file in (
            ("librukh.so", library),
            ("librukh_generate.so", library.with_name("librukh_generate.so")),
        ):
            target = source / name
            target.unlink(missing_ok=True)
            if name != "librukh.so" and not file.exists():
                print(f"without {name}: it is not beside {library}")
                continue
            shutil.copyfile(file, target)
            # Line tables for backtraces are three quarters of the file.
            if strip := shutil.which("strip"):
                subprocess.run([strip, "--strip-debug", target], check=True)


class PlatformWheel(bdist_wheel):
    """The wheel serves every Python 3, for it has no code that is linked to one."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]

    def egg2dist(self, egginfo_path, distinfo_path):
        """Adds the list of what is linked into the library, where PEP 770 wants it."""
        super().egg2dist(egginfo_path, distinfo_path)
        script = ROOT / "scripts" / "sbom.py"
        if script.exists() and shutil.which(CARGO):
            document = pathlib.Path(distinfo_path, "sboms", "rukh.cdx.json")
            subprocess.run([sys.executable, script, document], check=True)
        else:
            print("without a list of what is linked: it is made by cargo, in rukh's repository")


def find_library() -> pathlib.Path:
    """The shared library to ship."""
    if named := os.environ.get("RUKH_LIBRARY"):
        return pathlib.Path(named)
    if not (ROOT / "Cargo.toml").exists():
        raise SystemExit("the wheel is built in rukh's repository, or with RUKH_LIBRARY set to librukh.so")
    command = [
        CARGO,
        *("build", "--release", "--locked", "--package", "rukh", "--package", "rukh-generate", "--lib"),
        "--message-format=json-render-diagnostics",
    ]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in built.splitlines():
        message = json.loads(line)
        for name in message.get("filenames", []):
            if name.endswith("/librukh.so"):
                return pathlib.Path(name)
    raise SystemExit("cargo built no librukh.so")


setup(
    distclass=DistributionWithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}
)
