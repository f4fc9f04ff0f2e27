"""How long threads take to read as many bytes as a step does: a bound that no program beats (plain_sum.c)."""

from __future__ import annotations

import ctypes
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).with_name("plain_sum.c")
# A sum is this many bytes at most: a block beyond all caches is read as fast as a longer one.
MOST = 1 << 30


class PlainSum:
    """A block of memory, and a function that reads it. Needs a compiler named `cc`."""

    def __init__(self, folder: pathlib.Path, size: int) -> None:
        path = folder / "plain_sum.so"
        command = ["cc", "-O3", "-march=native", "-shared", "-fPIC", "-pthread", "-o", str(path), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        library = ctypes.CDLL(str(path))
        library.sum_block.restype = ctypes.c_void_p
        library.sum_seconds.restype = ctypes.c_double
        self.size = min(size, MOST)
        self.block = ctypes.c_void_p(library.sum_block(ctypes.c_size_t(self.size)))
        if not self.block:
            raise MemoryError(f"{self.size} bytes for the plain sum")
        self.read = library.sum_seconds

    def rate(self, threads: int) -> float:
        """Bytes a second of one reading."""
        return self.size / self.read(self.block, ctypes.c_size_t(self.size), ctypes.c_int(threads))
