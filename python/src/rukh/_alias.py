"""Lets the package go under another name: `sys.modules["onnxruntime"] = rukh`.

A program may then import `onnxruntime.capi.onnxruntime_pybind11_state`. Python would make a second copy of
that module; the finder here gives it the one that is there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_PACKAGE = __name__.partition(".")[0]


class _Alias(Loader):
    """Puts the module `real` in place of the one that is being imported."""

    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self.real)


class _Finder(MetaPathFinder):
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
        return None if found is None else ModuleSpec(fullname, _Alias(real), origin=found.origin)


def install() -> None:
    """Once for a process, and before the finder of files."""
    if not any(type(finder).__qualname__ == _Finder.__qualname__ and type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
