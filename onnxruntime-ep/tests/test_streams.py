"""Streams: what ONNX Runtime gives to the GPU is done in order, whoever waits for it."""

import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest
from conftest import LIBRARY
from onnx import TensorProto, helper
from test_device import on_gpu

HERE = pathlib.Path(__file__).resolve().parent
NO_WAIT = {"disable_synchronize_execution_providers": "1"}


def f32(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def in_parts():
    """Parts on the GPU around nodes of ONNX Runtime's CPU provider, which hand values over in both directions."""
    nodes = [
        helper.make_node("Sqrt", ["x"], ["a"]),
        helper.make_node("CDist", ["a", "a"], ["b"], domain="com.microsoft", metric="euclidean"),
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("CDist", ["c", "a"], ["d"], domain="com.microsoft", metric="euclidean"),
        helper.make_node("MatMul", ["d", "c"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "parts", [f32("x", [16, 16])], [f32("y", [16, 16])])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=10)


@pytest.mark.parametrize("deferred", ["0", "1"])
def test_streams_by_the_c_api(gpu, digits, deferred):
    """In a process of its own. On the emulated GPU also with work that is done when somebody waits for it, and not before."""
    command = [sys.executable, str(HERE / "c_streams.py"), LIBRARY, str(digits[0])]
    environment = os.environ | {"AMDEMU_DEFER": deferred}
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.split()[-1:] == ["done"], done.stdout + done.stderr


def test_parts_and_copies_are_in_order(gpu):
    model = in_parts()
    session = gpu.session(model, strict=False)
    operators = gpu.assigned(session)
    assert set(operators) == {gpu.name, "CPUExecutionProvider"}
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(8):
            x = random.random((16, 16), dtype=np.float32)
            (found,), (expected,) = session.run(None, {"x": x}), reference.run(None, {"x": x})
            if not np.allclose(found, expected, rtol=1e-3, atol=1e-3):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_runs_that_nobody_waits_for_are_done_when_their_values_are_read(gpu, digits):
    file, images, expected = digits
    session = gpu.session(file)
    names = session.get_inputs()[0].name, session.get_outputs()[0].name
    options = onnxruntime.RunOptions()
    for key, value in NO_WAIT.items():
        options.add_run_config_entry(key, value)
    results = []
    for first in range(4):
        binding = session.io_binding()
        binding.bind_ortvalue_input(names[0], on_gpu(np.ascontiguousarray(images[first : first + 2])))
        scores = on_gpu(np.zeros_like(expected[0][:2]))
        binding.bind_ortvalue_output(names[1], scores)
        session.run_with_iobinding(binding, options)
        results.append(scores)
        # What the run reads goes back to the allocator, and others take it.
        del binding
        on_gpu(np.full_like(images[:2], 1e6))
    for first, scores in enumerate(results):
        np.testing.assert_allclose(scores.numpy(), expected[0][first : first + 2], rtol=1e-4, atol=1e-4)


def test_an_error_in_the_data_is_told_by_the_run(gpu):
    """Though the run is not waited for where it is given to the stream, but at its end."""
    index = helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])
    graph = helper.make_graph(
        [helper.make_node("Gather", ["x", "i"], ["y"])], "gather", [f32("x", [4]), index], [f32("y", ["n"])]
    )
    session = gpu.session(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    )
    inputs = {"x": np.arange(4, dtype=np.float32), "i": np.array([3, 1])}
    for wrong in (9, -5, 4):
        with pytest.raises(Exception, match="Gather"):
            session.run(None, inputs | {"i": np.array([0, wrong])})
        assert session.run(None, inputs)[0].tolist() == [3, 1]
    # In device memory at both ends, so that nothing but the end of the run waits.
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", on_gpu(inputs["x"]))
    binding.bind_ortvalue_output("y", on_gpu(np.zeros(2, np.float32)))
    binding.bind_ortvalue_input("i", on_gpu(np.array([0, 9])))
    with pytest.raises(Exception, match="Gather"):
        session.run_with_iobinding(binding)
    binding.bind_ortvalue_input("i", on_gpu(inputs["i"]))
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [3, 1]


def test_a_provider_on_the_cpu_has_no_streams(plugin):
    device = plugin.devices()[0]
    if plugin.kind == "gpu":
        stream = device.create_sync_stream()
        assert stream.get_handle() != 0
    else:
        with pytest.raises(Exception, match="[Ss]tream|memory"):
            device.create_sync_stream()
