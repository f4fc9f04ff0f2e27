"""What the outputs of a case are: by the standard's reference implementation, or by ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from .draw import BF16, F16, F32, F64, Case, Draw, element_of
from .faults import computes_in_single, reference_fault, unstable

# The newest operator set that this version of ONNX Runtime knows.
RUNTIME_OPSET = 26

# It lacks version 22 of these, which only adds a type; nor has the reference implementation any.
_LATEST = {"GlobalLpPool": 21, "MaxRoiPool": 21}
onnxruntime.set_default_logger_severity(4)


class NoReference(Exception):
    """Nobody can say what the outputs are."""


def build(
    draw: Draw,
    case: Case,
    constants: Sequence[int] = (),
    shape_of: Callable[[Sequence[int]], Sequence[int | str] | None] = list,
    opset: int | None = None,
) -> onnx.ModelProto:
    """The model. `constants`: the inputs that become initializers. `shape_of`: what the model says of the
    shape of an input."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(case.inputs)]
    while names and not names[-1]:
        names.pop()
    outputs = [f"y{i}" for i in range(case.outputs)]
    attributes = {name: value for name, value in case.attributes.items() if value is not None}
    node = helper.make_node(draw.operator, names, outputs, **attributes)
    inputs, initializers = [], []
    for i, (name, value) in enumerate(zip(names, case.inputs)):
        if value is None:
            continue
        if i in constants:
            initializers.append(_tensor(name, value))
        else:
            element = element_of(value.dtype)
            inputs.append(helper.make_tensor_value_info(name, element, shape_of(value.shape)))
    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "case", inputs, made, initializers)
    opset = opset or draw.opset
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def infer(draw: Draw, case: Case) -> list[np.dtype]:
    """Checks the case by the standard's own rules; the types of its outputs."""
    constants = [i for i, value in enumerate(case.inputs) if value is not None and value.dtype == np.int64]
    model = build(draw, case, constants)
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {"": draw.opset}
    onnx.checker.check_node(model.graph.node[0], context)
    return [
        helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type) for output in inferred.graph.output
    ]


def compute(draw: Draw, case: Case) -> tuple[list[np.ndarray], str]:
    """The outputs, and who computed them. Half types are computed in float32."""
    if reason := unstable(draw, case):
        raise NoReference(reason)
    wide = case
    if case.widen:
        widened = [
            value.astype(F32) if value is not None and value.dtype in (F16, BF16) else value
            for value in case.inputs
        ]
        wide = Case(widened, case.attributes, case.outputs)
    feed = {f"x{i}": value for i, value in enumerate(wide.inputs) if value is not None}
    reasons = []
    fault = reference_fault(draw, case)
    if fault is None:
        try:
            with np.errstate(all="ignore"):
                found = ReferenceEvaluator(build(draw, wide)).run(None, feed)
            if any(not isinstance(y, (np.ndarray, np.generic)) for y in found):
                raise TypeError("an output is no array")
            who = "reference in float32" if computes_in_single(draw, case) else "reference"
            return [np.asarray(y) for y in found], who
        except Exception as error:  # whatever it fails with, it gave no outputs
            reasons.append(f"reference: {_short(error)}")
    else:
        reasons.append(f"reference: {fault}")
    # It lacks many kernels for float64, and the newest operator sets, which often only add types.
    single = Case([_narrowed(x) for x in wide.inputs], wide.attributes, wide.outputs)
    for attempt, who in ((wide, "onnxruntime"), (single, "onnxruntime in float32")):
        try:
            opset = min(draw.opset, _LATEST.get(draw.operator, RUNTIME_OPSET))
            return _run(build(draw, attempt, opset=opset), attempt), who
        except Exception as error:
            reasons.append(f"{who}: {_short(error)}")
        if not any(x is not None and x.dtype == F64 for x in wide.inputs):
            break
    raise NoReference("; ".join(reasons))


def _narrowed(x: np.ndarray | None) -> np.ndarray | None:
    return x.astype(F32) if x is not None and x.dtype == F64 else x


def _run(model: onnx.ModelProto, case: Case) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), _options(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {f"x{i}": x for i, x in enumerate(case.inputs) if x is not None})


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return options


def _tensor(name: str, value: np.ndarray) -> onnx.TensorProto:
    if value.dtype == object:
        return helper.make_tensor(name, onnx.TensorProto.STRING, value.shape, value.ravel().tolist())
    return numpy_helper.from_array(value, name)


def _short(error: Exception) -> str:
    """The kind of a failure without the case's own numbers and names, so that equal ones count together."""
    text = f"{type(error).__name__}: {error}".split("\n")[0]
    return re.sub(r"\d+", "#", text)[:120]
