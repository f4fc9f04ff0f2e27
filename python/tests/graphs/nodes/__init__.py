"""Nodes that continue a graph: each function adds one operator, or a few that belong together."""

from __future__ import annotations

from collections.abc import Callable

from ..scope import Scope

EMITTERS: dict[str, tuple[Callable[[Scope], object], float]] = {}


def emitter(weight: float = 1.0):
    """Registers a function that adds nodes to a scope. `weight`: how often, beside the others."""

    def register(function):
        EMITTERS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = (function, weight)
        return function

    return register
