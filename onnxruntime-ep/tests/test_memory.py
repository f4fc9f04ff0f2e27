"""How much memory opening a model takes, and where values of runs lie."""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import LIBRARY
from onnx import TensorProto, helper, numpy_helper

import onnxruntime

WIDTH, LAYERS = 1024, 16
WEIGHTS = LAYERS * WIDTH * WIDTH * 4

# In a process of its own, whose peak is that of opening. The sizes are printed in bytes.
OPEN = """
import sys
import onnxruntime

def status(key):
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(key))

library, model = sys.argv[1:]
onnxruntime.register_execution_provider_library("RukhCPUExecutionProvider", library)
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == "RukhCPUExecutionProvider"]
options.add_provider_for_devices(devices[:1], {})
before = status("VmRSS")
session = onnxruntime.InferenceSession(model, options)
print(status("VmHWM") - before, status("VmRSS") - before)
"""


def layers(folder):
    """A model of large products, with its weights in a file of their own."""
    nodes, weights, name = [], [], "x"
    random = np.random.default_rng(1)
    for layer in range(LAYERS):
        weight = random.standard_normal((WIDTH, WIDTH), np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [f"p{layer}"]))
        nodes.append(helper.make_node("Tanh", [f"p{layer}"], [f"y{layer}"]))
        name = f"y{layer}"
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, ["n", WIDTH]) for end in ("x", name)]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = pathlib.Path(folder, "layers.onnx")
    onnx.save(model, path, save_as_external_data=True, location="weights", size_threshold=1024)
    return path


def test_weights_are_copied_once_when_a_model_is_opened(tmp_path):
    command = [sys.executable, "-c", OPEN, LIBRARY, str(layers(tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, after = (int(number) / WEIGHTS for number in done.stdout.split())
    # ONNX Runtime's weights, librukh's, and those that it has packed for its products.
    assert peak < 3.5, f"{peak:.2f} times the weights"
    # The packed ones stay.
    assert after < 1.6, f"{after:.2f} times the weights"


def branches():
    """An If, whose branches alone compute."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
    bodies = []
    for operator in ("Exp", "Neg"):
        out = helper.make_tensor_value_info(operator, TensorProto.FLOAT, ["n"])
        bodies.append(helper.make_graph([helper.make_node(operator, ["x"], [operator])], operator, [], [out]))
    which = helper.make_tensor_value_info("which", TensorProto.BOOL, [])
    node = helper.make_node("If", ["which"], ["y"], then_branch=bodies[0], else_branch=bodies[1])
    graph = helper.make_graph([node], "branches", [ends[0], which], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def sum_of_two():
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("a", "b", "c")]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["c"])], "sum", values[:2], values[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_values_of_a_part_whose_bodies_alone_run_on_the_gpu(gpu):
    if tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 27):
        pytest.skip("older ones do not hand a part what only bodies of its nodes use")
    session = gpu.session(branches())
    x = np.array([0.5, -2], np.float32)
    for which in (True, False, True):
        (y,) = session.run(None, {"x": x, "which": np.array(which)})
        np.testing.assert_allclose(y, np.exp(x) if which else -x, rtol=1e-5)


def test_a_session_goes_on_after_a_wrong_input(gpu):
    session = gpu.session(sum_of_two())
    a = np.ones(3, np.float32)
    for attempt in range(2):
        with pytest.raises(Exception, match='input "b": dimension 0'):
            session.run(None, {"a": a, "b": np.ones(4, np.float32)})
        (c,) = session.run(None, {"a": a, "b": a + attempt})
        assert c.tolist() == [2 + attempt] * 3
