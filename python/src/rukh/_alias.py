"""Lets the package go under another name: `sys.modules["onnxruntime"] = rukh`.

A program may then import `onnxruntime.capi.onnxruntime_pybind11_state`. Python would make a second copy of
that module; the finder here gives it the one that is there. ONNX Runtime's tools (quantization, transformers and
the like) are Python files around its interface; where onnxruntime is installed, they are taken from there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# Parts of the package onnxruntime that need nothing of its library but the interface.
_TOOLS = ("datasets", "quantization", "tools", "transformers")

# Finder and loader have the methods of `importlib.abc`, whose import takes long.
_PACKAGE = __name__.partition(".")[0]


class _Alias:
    """Puts the module `real` in place of the one that is being imported."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.real)


class _Finder:
    """Finds NAME.x where NAME is this package, or a part of it, under another name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, tail = fullname.rpartition(".")
        if not parent or (module := sys.modules.get(parent)) is None:
            return None
        name = getattr(module, "__name__", parent)
        if name == parent or name.partition(".")[0] != _PACKAGE:
            return None
        real = f"{name}.{tail}"
        try:
            found = importlib.util.find_spec(real)
        except ModuleNotFoundError:
            found = None
        if found is not None:
            return ModuleSpec(fullname, _Alias(real), origin=found.origin)  # type: ignore[arg-type]
        if parent == "onnxruntime" and tail in _TOOLS:
            installed = PathFinder.find_spec(parent)
            if installed is not None and installed.submodule_search_locations:
                return PathFinder.find_spec(fullname, installed.submodule_search_locations)
        return None


def tool(name: str) -> ModuleType:
    """A tool of ONNX Runtime's, for `from onnxruntime import quantization`."""
    if name in _TOOLS and sys.modules.get("onnxruntime") is sys.modules[_PACKAGE]:
        return importlib.import_module(f"onnxruntime.{name}")
    raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")


def install() -> None:
    """Once for a process, and before the finder of files."""
    if not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
