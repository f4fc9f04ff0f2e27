"""The optimised model as a file: read by the standard's checker, by ONNX Runtime and by the library."""

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
import rukh
from models import info, model
from onnx import TensorProto, helper, numpy_helper

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


def saved(data, path, level=rukh.GraphOptimizationLevel.ORT_ENABLE_BASIC, **entries):
    """The saved model, after what it computes was compared."""
    options = rukh.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(path)
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    session = rukh.InferenceSession(data, options)
    feed = {argument.name: X for argument in session.get_inputs()}
    # Its own optimiser would quantize activations.
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    wanted = onnxruntime.InferenceSession(data, plain).run(None, feed)
    onnx.checker.check_model(str(path), full_check=True)
    for read in (
        session,
        rukh.InferenceSession(str(path)),
        onnxruntime.InferenceSession(str(path), plain),
    ):
        for got, want in zip(read.run(None, feed), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
    return onnx.load(str(path))


def folded():
    """A shape that is computed, constants, an identity, and weights of four bits."""
    four_bits = np.array([[1, -8], [7, 3], [0, 1], [-1, 2]], ml_dtypes.int4)
    nodes = [
        ("Identity", ["x"], ["same"]),
        ("Shape", ["w"], ["shape"]),
        ("Reshape", ["v", "shape"], ["reshaped"]),
        ("Add", ["w", "reshaped"], ["sum"]),
        ("MatMul", ["same", "sum"], ["product"]),
        ("DequantizeLinear", ["q", "scale"], ["few_bits"]),
        ("MatMul", ["same", "few_bits"], ["narrow"]),
        helper.make_node("Softmax", ["product"], ["y"], axis=-1),
        ("Relu", ["narrow"], ["z"]),
    ]
    w = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
    initializers = [
        numpy_helper.from_array(w, "w"),
        numpy_helper.from_array(w.reshape(-1), "v"),
        numpy_helper.from_array(four_bits, "q"),
        numpy_helper.from_array(np.float32(0.5), "scale"),
    ]
    return model(nodes, initializers, x=["n", 4], y=["n", 3], z=["n", 2])


@pytest.mark.parametrize("level", rukh.GraphOptimizationLevel.__members__.values())
def test_levels(level, tmp_path):
    found = saved(folded(), tmp_path / "saved.onnx", level)
    operators = [node.op_type for node in found.graph.node]
    if level == rukh.GraphOptimizationLevel.ORT_DISABLE_ALL:
        assert operators.count("Reshape") == 1 and len(operators) == 9
    else:
        assert not {"Reshape", "Shape", "Identity", "Add"} & set(operators)
    assert found.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def branching():
    """An If whose branches use values from outside."""
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["doubled", "one"], [name])], name, [], [info(name, ["n", 4])]
        )
        for name, operator in (("then", "Add"), ("else", "Sub"))
    }
    zero = helper.make_node("Constant", [], ["zero"], value=helper.make_tensor("", TensorProto.FLOAT, [], [0.0]))
    nodes = [
        zero,
        ("Add", ["x", "x"], ["doubled"]),
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        ("Greater", ["total", "zero"], ["positive"]),
        helper.make_node(
            "If", ["positive"], ["y"], then_branch=branches["then"], else_branch=branches["else"]
        ),
    ]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    return model(nodes, [one], x=["n", 4], y=["n", 4])


def test_bodies_keep_what_they_capture(tmp_path):
    saved(branching(), tmp_path / "saved.onnx")


def test_weights_may_lie_in_a_file_of_their_own(tmp_path):
    path = tmp_path / "saved.onnx"
    w = np.arange(4 * 300, dtype=np.float32).reshape(4, 300) / 1000
    data = model(
        [("MatMul", ["x", "w"], ["p"]), ("Add", ["p", "b"], ["y"])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(w[0], "b")],
        x=["n", 4],
        y=["n", 300],
    )
    inside = saved(data, path)
    assert not (tmp_path / "saved.onnx.data").exists() and len(inside.graph.initializer) == 2
    saved(data, path, optimized_model_external_data="1")
    assert (tmp_path / "saved.onnx.data").stat().st_size >= 5 * 1200 and path.stat().st_size < 1000
    # In place of itself, while it is mapped.
    again = saved(str(path), path, optimized_model_external_data="1")
    assert {node.op_type for node in again.graph.node} == {"MatMul", "Add"}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["saved.onnx", "saved.onnx.data"]


def test_that_file_has_the_name_that_is_wanted(tmp_path):
    path = tmp_path / "saved.onnx"
    entry = "session.optimized_model_external_initializers_{}".format
    saved(folded(), path, **{entry("file_name"): "weights.bin", entry("min_size_in_bytes"): "40"})
    found = onnx.load(str(path), load_external_data=False).graph.initializer
    places = {weight.name: {e.key: e.value for e in weight.external_data} for weight in found}
    # The factors' floats: 4 × 3 are 48 bytes, 4 × 2 are 32.
    assert sorted(place.get("length", "inside") for place in places.values()) == ["48", "inside"]
    assert {place["location"] for place in places.values() if place} == {"weights.bin"}
    assert (tmp_path / "weights.bin").stat().st_size == 48
    # Nothing is large enough: no file is left.
    path.unlink()
    (tmp_path / "weights.bin").unlink()
    saved(folded(), path, **{entry("file_name"): "weights.bin", entry("min_size_in_bytes"): "1000"})
    assert [file.name for file in tmp_path.iterdir()] == ["saved.onnx"]


def test_dimensions_that_options_fix_are_fixed(tmp_path):
    found = saved(folded(), tmp_path / "saved.onnx", **{"dim.n": "2"})
    assert found.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_what_cannot_be_saved_is_told(tmp_path):
    options = rukh.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "no" / "folder.onnx")
    with pytest.raises(rukh.RukhError, match=r'cannot write .*folder\.onnx"'):
        rukh.InferenceSession(folded(), options)
    for name in ("a/weights.bin", "..", "/"):
        with pytest.raises(rukh.RukhError, match="the name of a file without a folder"):
            options.add_session_config_entry("optimized_model_external_data_file", name)
    options.optimized_model_filepath = str(tmp_path / "saved.onnx")
    options.add_session_config_entry("optimized_model_external_data_file", "saved.onnx")
    with pytest.raises(rukh.RukhError, match="cannot go into a file of the same name"):
        rukh.InferenceSession(folded(), options)
