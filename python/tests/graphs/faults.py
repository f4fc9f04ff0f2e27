"""Faults of ONNX Runtime that random graphs meet, each with its reason."""

from __future__ import annotations

from pathlib import Path

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


def _no_products(node: onnx.NodeProto, inputs: list) -> bool:
    return inputs[0].size == 0 and len(inputs) > 2


def _volume(_node: onnx.NodeProto, inputs: list) -> bool:
    return inputs[2].size > 2


def _to_one(node: onnx.NodeProto, inputs: list) -> bool:
    # Whether "length_resized" of the standard is a whole number: the reference implementation says no.
    if _attribute(node, "coordinate_transformation_mode") not in (
        b"pytorch_half_pixel",
        b"half_pixel_symmetric",
        b"align_corners",
    ):
        return False
    if len(inputs) < 3 or inputs[2] is None or inputs[2].size == 0:
        return False
    scales = inputs[2]
    axes = _attribute(node, "axes") or range(inputs[0].ndim)
    lengths = [inputs[0].shape[axis] * scale for axis, scale in zip(axes, scales)]
    return any(abs(length - round(length)) > 1e-6 for length in lengths)


def _writes_over(node: onnx.NodeProto, _inputs: list) -> bool:
    return _attribute(node, "training_mode") == 1 and len(set(node.input)) < len(node.input)


def _to_the_end_backwards(_node: onnx.NodeProto, inputs: list) -> bool:
    if len(inputs) < 5 or inputs[4] is None:
        return False
    ends, steps = np.ravel(inputs[2]), np.ravel(inputs[4])
    return bool(np.any((steps < 0) & (ends >= np.iinfo(np.int32).max)))


def _misfits(node: onnx.NodeProto, inputs: list) -> bool:
    # Of a tensor without elements ONNX Runtime counts the length along the axis, and copies nothing.
    axis, tensors = _attribute(node, "axis"), [x for x in inputs if isinstance(x, np.ndarray)]
    return any(x.size == 0 and x.shape[axis] != 0 for x in tensors) and any(x.size for x in tensors)


def _no_depth(_node: onnx.NodeProto, inputs: list) -> bool:
    return inputs[0].size == 0 and inputs[1].size == 0


def _one_query(node: onnx.NodeProto, inputs: list) -> bool:
    # A single query stands for the newest position there, not for the first after the past.
    if _attribute(node, "is_causal") != 1 or len(inputs) < 5 or inputs[4] is None or inputs[0].ndim != 4:
        return False
    return inputs[0].shape[2] == 1 and inputs[1].shape[2] > 1


def _keeps_length(node: onnx.NodeProto, inputs: list) -> bool:
    if _attribute(node, "antialias") != 1 or len(inputs) < 3 or inputs[2] is None:
        return False
    axes = _attribute(node, "axes") or range(inputs[0].ndim)
    lengths = [(inputs[0].shape[axis], float(scale)) for axis, scale in zip(axes, inputs[2])]
    return any(scale != 1 and int(length * scale) == length for length, scale in lengths)


def _vector_neural_instructions() -> bool:
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


_HAS_VNNI = _vector_neural_instructions()


def _saturates(node: onnx.NodeProto, inputs: list) -> bool:
    # Two neighbouring products are added in 16 bits there.
    types = {x.dtype for x in inputs if isinstance(x, np.ndarray)}
    unsigned = np.dtype(np.uint8) in types or node.op_type.startswith("Dynamic")
    return not _HAS_VNNI and np.dtype(np.int8) in types and unsigned


_FAULTS = [
    (
        ("MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger", "DynamicQuantizeMatMul", "QGemm", "QAttention"),
        _saturates,
        "saturates sums of unsigned and signed bytes on processors without VNNI",
    ),
    (("Attention",), _one_query, "lets a single query with a past see the keys after it"),
    (("Resize",), _keeps_length, "leaves an axis as it is whose length antialiasing does not change"),
    (("BatchNormalization",), _writes_over, "writes the running mean over an input that is read again"),
    (("Slice",), _to_the_end_backwards, "takes the largest end as the smallest where steps are negative"),
    (("Concat",), _misfits, "leaves room for tensors without elements that do not fit, and does not fill it"),
    (("MatMul",), _no_depth, "does not broadcast the batch of products without elements"),
    (("Gemm",), _no_products, "forgets beta where sums have no elements"),
    (
        ("MultiHeadAttention", "InstanceNormalization", "Einsum"),
        _empty,
        "crashes where there are no elements",
    ),
    (("QLinearMatMul",), _empty, "leaves the output as it finds it where sums have no elements"),
    (("RNN", "GRU", "LSTM"), _empty, "gives zeros after no steps, not the state at the start"),
    (("Col2Im",), _volume, "mixes up steps of three dimensions"),
    (
        ("Resize",),
        _to_one,
        "takes the length of a resized axis as a whole number, the reference as a fraction",
    ),
    (("Reduce", "Arg"), _empty, "keeps an axis of no elements where it should be reduced to one"),
]
