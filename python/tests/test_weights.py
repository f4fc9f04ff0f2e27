"""Weights that are not in the model's file: tensors, files and models in memory, beside ONNX Runtime."""

import gc
import weakref

import numpy as np
import onnxruntime
import pytest
import rukh
from models import model
from onnx import TensorProto, numpy_helper

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)
X = np.array([[1, 2]], np.float32)


def external(location="weights.bin"):
    """x W, where W is in a file."""
    tensor = numpy_helper.from_array(WEIGHT, "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    return model([("MatMul", ["x", "w"], ["y"])], [tensor], x=["n", 2], y=["n", 3])


def results(options_of, data):
    """What both packages make of a model with the same calls."""
    found = []
    for package in (rukh, onnxruntime):
        options = package.SessionOptions()
        options_of(package, options)
        session = package.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        found.append(session.run(None, {"x": X})[0].tolist())
    return found


def test_initializers_come_from_memory():
    other = 10 * WEIGHT

    def add(package, options):
        options.add_external_initializers(["w"], [package.OrtValue.ortvalue_from_numpy(other)])

    assert results(add, external()) == [(X @ other).tolist()] * 2
    options = rukh.SessionOptions()
    options.add_initializer("w", other)
    data = model(
        [("MatMul", ["x", "w"], ["y"])], [numpy_helper.from_array(WEIGHT, "w")], x=["n", 2], y=["n", 3]
    )
    assert rukh.InferenceSession(data, options).run(None, {"x": X})[0].tolist() == (X @ other).tolist()
    options.add_initializer("v", other)
    with pytest.raises(rukh.RukhError, match='initializer "v" was given'):
        rukh.InferenceSession(data, options)
    with pytest.raises(ValueError, match="2 names"):
        options.add_external_initializers(["a", "b"], [other])
    options = rukh.SessionOptions()
    options.add_initializer("w", other.T.copy())
    with pytest.raises(ValueError, match=r"given as float\[3, 2\]; the model has float\[2, 3\]"):
        rukh.InferenceSession(data, options)


def test_files_come_from_memory_and_from_a_folder(tmp_path):
    content = WEIGHT.tobytes()

    def add(_, options):
        options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [len(content)])

    assert results(add, external()) == [(X @ WEIGHT).tolist()] * 2
    (tmp_path / "weights.bin").write_bytes(content)
    options = rukh.SessionOptions()
    options.add_session_config_entry("external_data_folder", str(tmp_path))
    session = rukh.InferenceSession(external(), options)
    assert session.run(None, {"x": X})[0].tolist() == (X @ WEIGHT).tolist()
    with pytest.raises(ValueError, match="size 99"):
        options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [99])
    with pytest.raises(ValueError, match="1 files"):
        options.add_external_initializers_from_files_in_memory(["weights.bin"], [], [])


def test_memory_is_kept_as_long_as_it_is_used():
    array = 3 * WEIGHT
    kept = weakref.ref(array)
    options = rukh.SessionOptions()
    options.add_initializer("w", array)
    session = rukh.InferenceSession(external(), options)
    del array, options
    gc.collect()
    assert kept() is not None
    assert session.run(None, {"x": X})[0].tolist() == (3 * X @ WEIGHT).tolist()
    del session
    gc.collect()
    assert kept() is None
