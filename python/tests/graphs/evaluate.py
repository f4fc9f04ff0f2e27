"""What nodes compute: by ONNX Runtime without optimisations, by the standard's reference where it fails."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from properties.draw import F16, F32, F64

onnxruntime.set_default_logger_severity(4)


class Reject(Exception):
    """What was about to be added cannot be, or is not worth comparing; something else is drawn."""


def options() -> onnxruntime.SessionOptions:
    made = onnxruntime.SessionOptions()
    made.intra_op_num_threads = made.inter_op_num_threads = 1
    made.enable_mem_pattern = made.enable_cpu_mem_arena = False
    # Its optimisations have faults of their own.
    made.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return made


def type_of(value) -> onnx.TypeProto:
    """The type of an array, or of a list of arrays."""
    if isinstance(value, list):
        return helper.make_sequence_type_proto(type_of(value[0]))
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), None)


def _narrow(value) -> bool:
    """Whether nobody takes such elements from NumPy."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "V"


def model_of(nodes, inputs: dict, outputs, opset: int, functions=()) -> onnx.ModelProto:
    """A model of these nodes. `inputs`: a value for each name they use and do not make."""
    infos = [helper.make_value_info(name, type_of(x)) for name, x in inputs.items() if not _narrow(x)]
    stored = [numpy_helper.from_array(x, name) for name, x in inputs.items() if _narrow(x)]
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", infos, made, stored)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    if functions:
        imports.append(helper.make_opsetid("local", 1))
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


# What the standard's reference implementation computes wrong; see also faults.py of the property tests.
_REFERENCE_FAULTS = {
    "Loop": "stops at once where no condition is given",
    "LRN": "leaves the last channel of a window out",
    "MaxPool": "pads only images of two dimensions",
    "GlobalMaxPool": "gives an output of four dimensions",
    "GlobalLpPool": "gives an output of four dimensions",
    **dict.fromkeys(("RNN", "GRU", "LSTM"), "ignores activations and clip"),
}

# How ONNX Runtime says that it lacks a kernel, or an operator for a type.
_LACKING = ("NOT_IMPLEMENTED", "INVALID_GRAPH", "does not support")


def compute(nodes, feeds: list[dict], outputs, opset: int, functions=()) -> list[list]:
    """The outputs for each of the feeds."""
    model = model_of(nodes, feeds[0], outputs, opset, functions)
    feeds = [{name: x for name, x in feed.items() if not _narrow(x)} for feed in feeds]
    try:
        return _by_runtime(model, feeds)
    except Exception as error:  # whatever it fails with, it gave no outputs
        reason = f"onnxruntime: {short(error)}"
    others = {x.dtype for x in feeds[0].values() if isinstance(x, np.ndarray)} & {F16, F64}
    if len(others) == 1 and ("NOT_IMPLEMENTED" in reason or "does not support double" in reason):
        # It lacks many kernels for float64, and some for float16.
        try:
            return _in_single(nodes, feeds, outputs, opset, functions, others.pop())
        except Exception as error:
            reason = f"onnxruntime in float32: {short(error)}"
    operator = nodes[0].op_type
    if not any(text in reason for text in _LACKING) or nodes[0].domain:
        raise Reject(f"{operator}: {reason}")
    if operator in _REFERENCE_FAULTS:
        raise Reject(f"{operator}: {reason}; reference: {_REFERENCE_FAULTS[operator]}")
    try:
        with np.errstate(all="ignore"):
            found = ReferenceEvaluator(model)
            return [[_array(y) for y in found.run(None, feed)] for feed in feeds]
    except Exception as error:
        raise Reject(f"{operator}: {reason}; reference: {short(error)}") from None


def _by_runtime(model: onnx.ModelProto, feeds: list[dict]) -> list[list]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
    )
    return [session.run(None, feed) for feed in feeds]


def _in_single(nodes, feeds: list[dict], outputs, opset: int, functions, wide) -> list[list]:
    def to(dtype, other, x):
        return x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype == other else x

    if len(nodes) > 1 or any(a.type == onnx.AttributeProto.GRAPH for a in nodes[0].attribute) or functions:
        raise Reject("only a node alone can be computed in float32")
    narrow = [{name: to(F32, wide, x) for name, x in feed.items()} for feed in feeds]
    found = _by_runtime(model_of(nodes, narrow[0], outputs, opset), narrow)
    return [[to(wide, F32, y) for y in results] for results in found]


def _array(y):
    if isinstance(y, list):
        return [np.asarray(item) for item in y]
    if y is None:
        raise Reject("an output is none")
    return np.asarray(y)


def short(error: Exception) -> str:
    """The kind of a failure without numbers and names, so that equal ones count together."""
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    return re.sub(r"\d+", "#", text)[:160]


def free_names(graph: onnx.GraphProto) -> set[str]:
    """What a body uses of the graphs around it."""
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    used = {value.name for value in graph.output}
    for node in graph.node:
        used |= used_names(node)
        made |= set(node.output)
    return used - made - {""}


def used_names(node: onnx.NodeProto) -> set[str]:
    """What a node and its bodies use."""
    used = set(node.input) - {""}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            used |= free_names(attribute.g)
    return used


def needed(nodes: list[onnx.NodeProto], outputs: list[str]) -> list[onnx.NodeProto]:
    """The nodes that these outputs come from."""
    wanted, kept = set(outputs), []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= used_names(node)
            kept.append(node)
    return kept[::-1]
