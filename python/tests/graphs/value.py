"""A value of a graph, which is known for every feed."""

from __future__ import annotations

import dataclasses

import numpy as np

from .evaluate import Reject


@dataclasses.dataclass(eq=False)
class Value:
    """A value of the graph. `arrays`: what it is for each feed; the same object where feeds do not matter."""

    name: str
    arrays: list
    constant: bool = False

    @property
    def dtype(self) -> np.dtype:
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.arrays[0], np.ndarray)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [a.shape for a in self.arrays]

    @property
    def static(self) -> bool:
        return len(set(self.shapes)) == 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, which must not depend on the feed."""
        if not self.static:
            raise Reject("a shape depends on the feed")
        return self.arrays[0].shape

    def dim(self, axis: int) -> int:
        """A size, which must not depend on the feed."""
        if len({a.shape[axis] for a in self.arrays}) != 1:
            raise Reject("a size depends on the feed")
        return self.arrays[0].shape[axis]

    @property
    def largest(self) -> float:
        return max((float(np.max(np.abs(a))) for a in self.arrays if a.size), default=0.0)
