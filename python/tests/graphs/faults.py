"""Faults of ONNX Runtime that random graphs meet, each with its reason."""

from __future__ import annotations

from .generate import Test


def fault_of_runtime(test: Test, said: dict[str, str]) -> str | None:
    """Why what ONNX Runtime computed of a reduced graph cannot be trusted."""
    operators = {node.op_type for node in test.model.graph.node} - {"Constant"}
    for operator, applies, reason in _FAULTS:
        if operator in operators and applies(test, said):
            return f"{operator}: {reason}"
    return None


_FAULTS: list = []
