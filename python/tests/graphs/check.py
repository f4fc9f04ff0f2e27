"""Runs a model with rukh and judges the outputs."""

from __future__ import annotations

import threading

import numpy as np
import onnx
import onnxruntime
import rukh
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from properties.draw import Random

from .evaluate import options, short
from .generate import Sample

LEVELS = ("none", "basic", "all")
_ORT = {"none": 0, "basic": 1, "all": 99}
# Relative to the element, and to the largest element.
_RELATIVE, _ABSOLUTE = 2e-3, 2e-4
# What is left where numbers of about 1 cancel.
_FLOOR = 1e-6


def session(data: bytes, level: str, provider: str, threads: int = 1, fixed=None) -> rukh.InferenceSession:
    made = rukh.SessionOptions()
    made.graph_optimization_level = _ORT[level]
    made.intra_op_num_threads = threads
    for name, size in (fixed or {}).items():
        made.add_free_dimension_override_by_name(name, size)
    return rukh.InferenceSession(data, made, providers=[provider])


def failure(
    test: Sample, level: str = "all", provider: str = "cpu", ways: Random | None = None
) -> str | None:
    """What is wrong with rukh's outputs. `ways`: chooses more ways to run than one after the other."""
    data = test.model.SerializeToString()
    factor = 10 if _has_half(test.model) else 1
    try:
        fixed = _dimensions(test) if ways is not None and ways.chance(0.1) else {}
        opened = session(data, level, provider, 3 if ways is not None and ways.chance(0.2) else 1, fixed)
        for turn, (feed, expected) in enumerate(zip(test.feeds, test.expected)):
            wrong = _compare(test.outputs, opened.run(test.outputs, feed), expected, factor)
            if wrong:
                return f"feed {turn}: {wrong}"
        if ways is None:
            return None
        feed, expected = test.feeds[0], test.expected[0]
        # On a GPU the second run of a shape is recorded, and the third one replayed.
        for _ in range(2):
            wrong = _compare(test.outputs, opened.run(test.outputs, feed), expected, factor)
            if wrong:
                return f"feed 0 again: {wrong}"
        names = [output.name for output in opened.get_outputs()]
        if names != [output.name for output in test.model.graph.output]:
            return f"outputs are named {names}"
        if ways.chance(0.3):
            wrong = _bound(opened, test, factor)
            if wrong:
                return f"bound: {wrong}"
        if ways.chance(0.3):
            one = ways.integer(0, len(test.outputs) - 1)
            found = opened.run([test.outputs[one]], feed)
            wrong = _compare([test.outputs[one]], found, [expected[one]], factor)
            if wrong:
                return f"alone: {wrong}"
        if ways.chance(0.15):
            return _threads(opened, test, factor)
    except rukh.RukhError as error:
        return f"{type(error).__name__}: {error}"
    return None


def _dimensions(test: Sample) -> dict[str, int]:
    """Named dimensions that are the same for every feed."""
    sizes: dict[str, set[int]] = {}
    for value in test.model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param:
                sizes.setdefault(dim.dim_param, set()).update(f[value.name].shape[axis] for f in test.feeds)
    return {name: found.pop() for name, found in sizes.items() if len(found) == 1}


def _bound(opened: rukh.InferenceSession, test: Sample, factor: float) -> str | None:
    binding = opened.io_binding()
    for turn in (0, -1, 0):
        for name, value in test.feeds[turn].items():
            binding.bind_cpu_input(name, value)
        for name in test.outputs:
            binding.bind_output(name)
        opened.run_with_iobinding(binding)
        wrong = _compare(test.outputs, binding.copy_outputs_to_cpu(), test.expected[turn], factor)
        if wrong:
            return f"feed {turn}: {wrong}"
    return None


def _threads(opened: rukh.InferenceSession, test: Sample, factor: float) -> str | None:
    wrong: list[str] = []

    def work(turn: int) -> None:
        for k in range(turn, turn + 3):
            k %= len(test.feeds)
            try:
                found = opened.run(test.outputs, test.feeds[k])
                difference = _compare(test.outputs, found, test.expected[k], factor)
            except rukh.RukhError as error:
                difference = str(error)
            if difference:
                wrong.append(f"in a thread, feed {k}: {difference}")

    threads = [threading.Thread(target=work, args=(turn,)) for turn in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong[0] if wrong else None


def _has_half(model: onnx.ModelProto) -> bool:
    half = onnx.TensorProto.FLOAT16
    graph = model.graph
    if any(value.type.tensor_type.elem_type == half for value in [*graph.input, *graph.output]):
        return True
    return any(a.name == "to" and a.i == half for node in graph.node for a in node.attribute) or any(
        tensor.data_type == half for tensor in graph.initializer
    )


def _compare(names: list[str], found: list, expected: list, factor: float) -> str | None:
    for name, ours, theirs in zip(names, found, expected):
        wrong = _difference(ours, theirs, factor)
        if wrong:
            return f"output {name}: {wrong}"
    return None


def _difference(ours, theirs, factor: float) -> str | None:
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return "another number of elements in the sequence"
        return next((w for a, b in zip(ours, theirs) if (w := _difference(a, b, factor))), None)
    ours = np.asarray(ours)
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)}, expected {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype.kind != "f":
        close = np.asarray(ours == theirs)
    else:
        a, b = ours.astype(np.float64), theirs.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        bound = factor * (_RELATIVE * np.abs(b) + _ABSOLUTE * (finite.max() if finite.size else 0.0)) + _FLOOR
        with np.errstate(all="ignore"):
            close = (np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b))
    if np.all(close):
        return None
    wrong = np.argwhere(~np.asarray(close))
    first = tuple(int(i) for i in wrong[0])
    ours, theirs = ours[first], theirs[first]
    return f"{len(wrong)} of {close.size} elements differ, at {first}: {ours!r}, expected {theirs!r}"


# --- who is right -------------------------------------------------------------------------------


def judges(test: Sample) -> dict[str, str]:
    """What ONNX Runtime and the standard's reference say of the expected outputs: "" where they agree."""
    said = {}
    data = test.model.SerializeToString()
    factor = 10 if _has_half(test.model) else 1
    try:
        opened = onnxruntime.InferenceSession(data, options(), providers=["CPUExecutionProvider"])
        said["onnxruntime"] = _all(test, opened.run, factor)
    except Exception as error:
        said["onnxruntime"] = short(error)
    try:
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(test.model)
            said["reference"] = _all(test, evaluator.run, factor)
    except Exception as error:
        said["reference"] = short(error)
    return said


def _all(test: Sample, run, factor: float) -> str:
    for feed, expected in zip(test.feeds, test.expected):
        wrong = _compare(test.outputs, run(test.outputs, feed), expected, factor)
        if wrong:
            return wrong
    return ""


def unstable(test: Sample, seed: int) -> bool:
    """Whether numbers that differ as roundings do give outputs that differ noticeably."""
    half = _has_half(test.model)
    random = np.random.default_rng(seed)
    size = 5e-4 if half else 1e-6

    def moved(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f" or array.size == 0:
            return array
        return (array * (1 + size * random.uniform(-1, 1, array.shape))).astype(array.dtype)

    for _ in range(4):
        changed = onnx.ModelProto()
        changed.CopyFrom(test.model)
        for tensor in _tensors(changed.graph):
            if tensor.data_type in (
                onnx.TensorProto.FLOAT,
                onnx.TensorProto.FLOAT16,
                onnx.TensorProto.DOUBLE,
            ):
                array = moved(numpy_helper.to_array(tensor))
                tensor.CopyFrom(numpy_helper.from_array(np.asarray(array), tensor.name))
        try:
            opened = onnxruntime.InferenceSession(
                changed.SerializeToString(), options(), providers=["CPUExecutionProvider"]
            )
            for feed, expected in zip(test.feeds, test.expected):
                found = opened.run(test.outputs, {name: moved(x) for name, x in feed.items()})
                if _compare(test.outputs, found, expected, (10 if half else 1) / 10):
                    return True
        except Exception:
            return False
    return False


def _tensors(graph: onnx.GraphProto):
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from _tensors(attribute.g)
