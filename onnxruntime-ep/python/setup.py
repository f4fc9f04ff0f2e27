"""Puts librukh and its plugin for ONNX Runtime into the wheel.

The plugin is the one that RUKH_ONNXRUNTIME_EP names; librukh lies beside it. `make onnxruntime-ep` builds both.
"""

import os
import pathlib
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = pathlib.Path(
    os.environ.get("RUKH_ONNXRUNTIME_EP", ROOT / "build" / "prefix" / "lib" / "librukh_onnxruntime_ep.so")
)


class DistributionWithLibrary(Distribution):
    """Has machine code, so that the wheel is one for a platform."""

    def has_ext_modules(self):
        return True


class BuildWithLibrary(build_py):
    """Copies the libraries beside the module, under the names by which they look for each other."""

    def run(self):
        super().run()
        target = pathlib.Path(self.build_lib, "onnxruntime_ep_rukh")
        target.mkdir(parents=True, exist_ok=True)
        for file in (PLUGIN, PLUGIN.with_name("librukh.so.0.1")):
            if not file.exists():
                raise SystemExit(
                    f"{file} is missing; `make onnxruntime-ep` builds it, RUKH_ONNXRUNTIME_EP names another"
                )
            copy = target / file.name
            copy.unlink(missing_ok=True)
            shutil.copyfile(file, copy)
            if strip := shutil.which("strip"):
                subprocess.run([strip, "--strip-debug", copy], check=True)


class PlatformWheel(bdist_wheel):
    """Is the same for every Python 3."""

    def get_tag(self):
        _python, _abi, platform = super().get_tag()
        return "py3", "none", platform


setup(
    distclass=DistributionWithLibrary, cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}
)
