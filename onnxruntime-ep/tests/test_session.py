"""Sessions of stock onnxruntime whose nodes rukh runs."""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

VERSION = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2])


def close(found, expected, **tolerance):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **({"rtol": 1e-4, "atol": 1e-5} | tolerance))


def test_a_whole_model_is_one_part(plugin, digits):
    file, images, expected = digits
    session = plugin.session(file)
    assert set(plugin.assigned(session)) == {plugin.name}
    assert plugin.name in session.get_providers()
    for count in (1, 5, 3, 5):
        name = session.get_inputs()[0].name
        close(session.run(None, {name: images[:count]}), [scores[:count] for scores in expected])


def model_of(nodes, inputs, outputs, initializers=(), opset=21, name="graph"):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def f32(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def reference(model, inputs):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, inputs
    )


def test_dynamic_shapes_and_shape_arithmetic(plugin):
    """Outputs whose shapes follow from names, from formulas over them, and from data."""
    weights = numpy_helper.from_array(np.random.default_rng(2).random((8, 4), dtype=np.float32), "w")
    flat = numpy_helper.from_array(np.array([-1], np.int64), "flat")
    model = model_of(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Concat", ["y", "y"], ["twice"], axis=0),
            helper.make_node("Reshape", ["y", "flat"], ["row"]),
            helper.make_node("Relu", ["y"], ["positive"]),
            helper.make_node("NonZero", ["positive"], ["places"]),
        ],
        [f32("x", ["batch", 8])],
        [
            f32("twice", None),
            f32("row", None),
            helper.make_tensor_value_info("places", TensorProto.INT64, None),
        ],
        [weights, flat],
    )
    session = plugin.session(model)
    assert set(plugin.assigned(session)) == {plugin.name}
    for batch in (1, 4, 0, 7, 4):
        inputs = {"x": np.random.default_rng(batch).standard_normal((batch, 8)).astype(np.float32)}
        close(session.run(None, inputs), reference(model, inputs))


def control_flow():
    """An If with branches that use an outer value, around a Loop."""
    one = numpy_helper.from_array(np.array(1.5, np.float32), "one")
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["state", "one"], ["scaled"]),
            helper.make_node("Add", ["scaled", "x"], ["next"]),
            helper.make_node("Identity", ["going"], ["on"]),
            helper.make_node("Identity", ["next"], ["each"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            f32("state", ["n"]),
        ],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), f32("next", ["n"]), f32("each", ["n"])],
    )
    yes = helper.make_graph(
        [helper.make_node("Loop", ["steps", "", "x"], ["last", "all"], body=body)],
        "yes",
        [],
        [f32("last", ["n"]), f32("all", [None, "n"])],
        [numpy_helper.from_array(np.array(3, np.int64), "steps")],
    )
    no = helper.make_graph(
        [
            helper.make_node("Neg", ["x"], ["minus"]),
            helper.make_node("Unsqueeze", ["x", "axes"], ["rows"]),
        ],
        "no",
        [],
        [f32("minus", ["n"]), f32("rows", [None, "n"])],
        [numpy_helper.from_array(np.array([0], np.int64), "axes")],
    )
    return model_of(
        [
            helper.make_node("If", ["which"], ["a", "b"], then_branch=yes, else_branch=no),
            helper.make_node("Sqrt", ["a"], ["c"]),
        ],
        [f32("x", ["n"]), helper.make_tensor_value_info("which", TensorProto.BOOL, [])],
        [f32("c", ["n"]), f32("b", [None, "n"])],
        [one],
    )


def test_control_flow_is_taken_as_a_whole(plugin):
    model = control_flow()
    # Older ones do not hand a part what only bodies of its nodes use.
    whole = VERSION >= (1, 27)
    session = plugin.session(model, strict=whole)
    assert set(plugin.assigned(session)) == (
        {plugin.name} if whole else {plugin.name, "CPUExecutionProvider"}
    )
    for which in (True, False):
        inputs = {"x": -np.ones(4, np.float32), "which": np.array(which)}
        close(session.run(None, inputs), reference(model, inputs))


def test_what_rukh_does_not_run_stays_with_onnxruntime(plugin):
    """An operator of ONNX Runtime's own in the middle: two parts, and no cycle."""
    model = model_of(
        [
            helper.make_node("Sqrt", ["x"], ["a"]),
            helper.make_node("CDist", ["a", "a"], ["b"], domain="com.microsoft", metric="euclidean"),
            helper.make_node("Mul", ["a", "b"], ["c"]),
            helper.make_node("MatMul", ["c", "a"], ["d"]),
        ],
        [f32("x", [4, 4])],
        [f32("d", [4, 4])],
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(Exception, match="CPU EP"):
        plugin.session(model)
    session = plugin.session(model, strict=False)
    assert plugin.assigned(session) == {
        plugin.name: ["Sqrt", "Mul", "MatMul"],
        "CPUExecutionProvider": ["CDist"],
    }
    inputs = {
        "x": np.random.default_rng(3).random((4, 4), dtype=np.float32) + 4 * np.eye(4, dtype=np.float32)
    }
    close(session.run(None, inputs), reference(model, inputs), rtol=1e-3)


def test_what_the_gpu_does_not_run_may_be_refused(gpu):
    """A determinant, for which there is no kernel for GPUs: rukh runs it on the CPU unless it is told not to."""
    model = model_of(
        [helper.make_node("Sqrt", ["x"], ["a"]), helper.make_node("Det", ["a"], ["b"])],
        [f32("x", [2, 3, 3])],
        [f32("b", [2])],
    )
    inputs = {"x": np.random.default_rng(4).random((2, 3, 3), dtype=np.float32)}
    session = gpu.session(model)
    assert gpu.assigned(session) == {gpu.name: ["Sqrt", "Det"]}
    close(session.run(None, inputs), reference(model, inputs))
    with pytest.raises(Exception, match="CPU EP"):
        gpu.session(model, {"fallback": "error"})
    session = gpu.session(model, {"fallback": "error"}, strict=False)
    assert gpu.assigned(session) == {gpu.name: ["Sqrt"], "CPUExecutionProvider": ["Det"]}
    close(session.run(None, inputs), reference(model, inputs))
    with pytest.raises(Exception, match="fallback.*cpu or error"):
        gpu.session(model, {"fallback": "never"})


GROWTH = """
import ctypes, gc, sys
sys.path.insert(0, sys.argv[1])
from conftest import Plugin

def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(open("/proc/self/statm").read().split()[1]) * 4096

plugin = Plugin("cpu")
before = resident()
session = plugin.session(sys.argv[2])
print(resident() - before)
"""


def test_weights_are_in_memory_once(tmp_path):
    """ONNX Runtime lets them go: what the process keeps is what rukh keeps."""
    weight = np.random.default_rng(4).random((4096, 4096), dtype=np.float32)
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [f32("x", ["n", 4096])],
        [f32("y", ["n", 4096])],
        [numpy_helper.from_array(weight, "w")],
    )
    file = tmp_path / "large.onnx"
    file.write_bytes(model.SerializeToString())
    here = pathlib.Path(__file__).parent
    ran = subprocess.run(
        [sys.executable, "-c", GROWTH, here, file], capture_output=True, text=True, timeout=120, check=True
    )
    assert int(ran.stdout) < 1.5 * weight.nbytes, f"{ran.stdout} bytes for a weight of {weight.nbytes}"


def test_weights_that_are_inputs_may_be_given(plugin):
    model = model_of(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        [f32("x", ["n"]), f32("w", [1])],
        [f32("y", ["n"])],
        [numpy_helper.from_array(np.array([2], np.float32), "w")],
    )
    session = plugin.session(model)
    x = np.arange(3, dtype=np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [0, 2, 4]
    assert session.run(None, {"x": x, "w": np.array([3], np.float32)})[0].tolist() == [0, 3, 6]


def test_a_model_with_external_weights(plugin, tmp_path):
    weight = np.random.default_rng(5).random((64, 64), dtype=np.float32)
    model = model_of(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [f32("x", ["n", 64])],
        [f32("y", ["n", 64])],
        [numpy_helper.from_array(weight, "w")],
    )
    file = tmp_path / "external.onnx"
    onnx.save(model, file, save_as_external_data=True, location="weights", size_threshold=0)
    session = plugin.session(file)
    np.testing.assert_allclose(session.run(None, {"x": weight[:2]})[0], weight[:2] @ weight, rtol=1e-4)


def test_errors_have_the_text_of_rukh(plugin):
    model = model_of(
        [helper.make_node("Gather", ["x", "i"], ["y"])],
        [f32("x", [4]), helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [f32("y", ["n"])],
    )
    session = plugin.session(model)
    with pytest.raises(Exception, match="Gather"):
        session.run(None, {"x": np.zeros(4, np.float32), "i": np.array([9])})
    # The session goes on.
    assert session.run(None, {"x": np.arange(4, dtype=np.float32), "i": np.array([3])})[0].tolist() == [3]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"no_such_option": "1"}, "no_such_option"),
        ({"migraphx_int8_enable": "1"}, "migraphx_int8_enable"),
        ({"optimization": "most"}, "optimization"),
    ],
)
def test_options_that_mean_nothing_are_refused(plugin, digits, options, word):
    if plugin.kind == "cpu" and word == "no_such_option":
        pytest.skip("the CPU has no options of its own; those of GPUs are not looked at")
    with pytest.raises(Exception, match=word):
        plugin.session(digits[0], options)


def test_options_reach_rukh(plugin, digits):
    file, images, expected = digits
    session = plugin.session(file, {"optimization": "basic", "migraphx_fp16_enable": "0"})
    close(session.run(None, {session.get_inputs()[0].name: images}), expected)
