"""Faults of ONNX Runtime that random graphs meet, each with its reason."""

from __future__ import annotations

import numpy as np
import onnx


def runtime_fault(node: onnx.NodeProto, feeds: list[dict]) -> str | None:
    """Why what ONNX Runtime computes of a node cannot be trusted; such nodes are drawn again, and counted."""
    for operators, applies, reason in _FAULTS:
        if any(node.op_type.startswith(name) for name in operators):
            if any(applies(node, [feed.get(name) for name in node.input]) for feed in feeds):
                return reason
    return None


def _attribute(node: onnx.NodeProto, name: str):
    return next((onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name), None)


def _empty(_node: onnx.NodeProto, inputs: list) -> bool:
    return isinstance(inputs[0], np.ndarray) and inputs[0].size == 0


_FAULTS = [
    (("Reduce", "Arg"), _empty, "keeps an axis of no elements where it should be reduced to one"),
]
