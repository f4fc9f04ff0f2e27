"""Nodes and blocks of the sweep (scripts/bench/shapes) whose inputs have another shape in each run, beside ONNX Runtime.

What a run prepares for its shapes must neither serve nor disturb those of the next. Each model runs with its own shape,
with others, and with its own again; once with its constants in it, once with all of them as inputs of unknown shape,
where nothing could be prepared when the session was made. Each output is asked for by its name.
"""

import random
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import rukh
from onnx.helper import make_tensor_value_info

onnxruntime = pytest.importorskip("onnxruntime")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts/bench/shapes"))

import blocks  # noqa: E402
import convolutions  # noqa: E402
import nodes  # noqa: E402

CASES = [*convolutions.CASES, *nodes.CASES, *blocks.CASES]
# A multiplication or so of these takes a second where weights are not packed before.
LARGE = ("30522", "11008", "14336", "30000", "640x640", "16000", "16x112x112", "8192")
KINDS = sorted({case.kind for case in CASES})
# float16 and sums of many terms: errors are of the largest magnitude of an output.
TOLERANCE = {np.dtype(np.float16): 5e-3, np.dtype(np.float32): 1e-4}


def session(package, data, name):
    options = package.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return package.InferenceSession(data, options, providers=[name])


def with_unknown_shapes(data, constants_as_inputs):
    """The model with no shape told; its constants as inputs, and their values."""
    model = onnx.load_from_string(data)
    feed = {}
    if constants_as_inputs:
        for tensor in model.graph.initializer:
            feed[tensor.name] = onnx.numpy_helper.to_array(tensor)
            model.graph.input.append(make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        del model.graph.initializer[:]
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"{value.name}_{axis}"
    return model.SerializeToString(), feed


def other(feed, sizes):
    """The inputs with every size of `sizes` replaced, in all of them alike."""

    def resized(array):
        for axis, size in enumerate(array.shape):
            if size in sizes:
                array = np.take(array, np.arange(sizes[size]) % size, axis)
        return np.ascontiguousarray(array)

    return {name: resized(array) for name, array in feed.items()}


def shapes(feed, rng):
    """Sizes to replace: up to three of them, by smaller and larger ones; the model may not take them."""
    found = sorted({size for array in feed.values() for size in array.shape})
    for size in rng.sample(found, min(3, len(found))):
        for change in rng.sample((-7, -3, -1, 1, 2, 5), 2):
            if 0 < size + change < 2 * size + 4:
                yield {size: size + change}


def outcome(session, feed, output=None):
    try:
        return session.run([output] if output else None, feed)
    except Exception as error:  # noqa: BLE001 - what a package refuses, the other must refuse
        return str(error)


def compare(found, wanted, what):
    if isinstance(wanted, str):
        assert isinstance(found, str), f"{what}: ONNX Runtime refuses it: {wanted}"
        return False
    assert not isinstance(found, str), f"{what}: {found}"
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), f"{what}: output {i}"
        if b.dtype.kind == "f":
            # There an engine may round A to bytes, and the other not.
            limit = 1e-2 if "A in bytes" in what else TOLERANCE[b.dtype]
            a, b = a.astype(np.float64), b.astype(np.float64)
            largest = max(1.0, np.abs(b).max(initial=0.0))
            np.testing.assert_allclose(a, b, rtol=0, atol=limit * largest, err_msg=f"{what}: output {i}")
        else:
            # Roundings of halves may differ.
            assert np.abs(a.astype(np.int64) - b).max(initial=0) <= 1, f"{what}: output {i}"
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_change(kind):
    for case in CASES:
        if case.kind == kind and not any(large in case.name for large in LARGE):
            check(case)


def check(case):
    data, feed = case.build()
    rng = random.Random(case.name)
    changes = [{}, *shapes(feed, rng), {}]
    for as_inputs in (False, True):
        unknown, constants = with_unknown_shapes(data, as_inputs)
        if as_inputs and not constants:
            continue
        ours, theirs = session(rukh, unknown, "cpu"), session(onnxruntime, unknown, "CPUExecutionProvider")
        names = [y.name for y in theirs.get_outputs()]
        taken = 0
        for change in changes:
            given = other(feed, change) | constants
            what = f"{case.kind}: {case.name}{' with constants as inputs' if as_inputs else ''}, {change}"
            wanted = outcome(theirs, given)
            taken += compare(outcome(ours, given), wanted, what)
            if len(names) > 1 and not isinstance(wanted, str):
                for name, y in zip(names, wanted, strict=True):
                    compare(outcome(ours, given, name), [y], f"{what}, {name} alone")
        assert taken >= 2, case.name
