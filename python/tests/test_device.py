"""Tensors in the memory of a GPU; `make test-hip` runs this on the emulated one."""

import os

import numpy as np
import pytest
import rukh
from models import model
from onnx import TensorProto, helper, numpy_helper
from rukh import _calls

if rukh.get_available_providers() == ["CPUExecutionProvider"]:
    assert not os.environ.get("RUKH_HIP_LIBRARY"), "RUKH_HIP_LIBRARY is set, and no device is there"
    pytest.skip("no HIP device", allow_module_level=True)

X = np.array([1, 2, 3], np.float32)
# ONNX Runtime's name of the provider of the GPUs that are there.
NAMES = ["CUDAExecutionProvider", "ROCMExecutionProvider"]
GPU = next(name for name in NAMES if name in rukh.get_available_providers())
DOUBLE = model([("Add", ["x", "x"], ["y"])], x=[3], y=[3])


def session(**options):
    return rukh.InferenceSession(DOUBLE, providers=[("hip", options)])


def test_values_go_to_the_device_and_back():
    value = rukh.Value.ortvalue_from_numpy(X, "hip")
    assert value.device_name() == "hip" and value.data_ptr() != 0 and value.shape() == [3]
    assert value.numpy().tolist() == [1, 2, 3]
    value.update_inplace(X + 1)
    assert value.numpy().tolist() == [2, 3, 4]
    assert rukh.Value.ortvalue_from_numpy(X).device_name() == "cpu"
    with pytest.raises(ValueError, match="allowed is the same type and shape"):
        value.update_inplace(X[:2])
    with pytest.raises(ValueError, match="'abacus' 0 was given; allowed are 'cpu' 0"):
        rukh.Value.ortvalue_from_numpy(X, "abacus")
    with pytest.raises(rukh.RukhError, match="device_id 99 is not there"):
        rukh.Value.ortvalue_from_numpy(X, "hip", 99)


def test_memory_that_another_api_exported_is_computed_on():
    if not hasattr(os, "memfd_create"):
        pytest.skip("this system has no memfd")
    descriptor = os.memfd_create("exported")
    os.ftruncate(descriptor, 4096)
    seen = os.dup(descriptor)
    os.pwrite(seen, X.tobytes(), 64)
    try:
        memory = rukh.ExternalMemory(descriptor, 4096)
    except rukh.RukhError as error:
        # The emulated GPU maps it; a real one's driver takes what drivers exported.
        assert not os.environ.get("AMDEMU_ARCH"), error
        pytest.skip(f"the driver takes no memfd: {error}")
    opened = session()
    binding = opened.io_binding()
    binding.bind_ortvalue_input("x", memory.tensor(np.float32, [3], offset=64))
    binding.bind_ortvalue_output("y", memory.tensor("float", [3], offset=1024))
    with pytest.raises(ValueError, match="are not in a memory of 4096 bytes"):
        memory.tensor(np.float32, [3], offset=4088)
    del memory
    opened.run_with_iobinding(binding)
    assert np.frombuffer(os.pread(seen, 12, 1024), np.float32).tolist() == [2, 4, 6]
    os.close(seen)
    with pytest.raises(ValueError, match="'shared'"):
        rukh.ExternalMemory(0, 4096, "shared")
    with pytest.raises(rukh.RukhError, match="import memory"):
        rukh.ExternalMemory(123456, 4096)


def test_inputs_that_decide_shapes_may_be_on_the_device():
    """The host reads them, also for a node that the device runs."""
    for opset, node, inputs, output in [
        (
            20,
            ("AffineGrid", ["theta", "size"], ["y"]),
            {"theta": np.ones((1, 2, 3), np.float32), "size": [1, 1, 2, 2]},
            (1, 2, 2, 2),
        ),
        (21, ("Expand", ["x", "shape"], ["y"]), {"x": X, "shape": [2, 3]}, (2, 3)),
        (21, ("Pad", ["x", "pads"], ["y"]), {"x": X, "pads": [1, 1]}, (5,)),
        (14, ("CumSum", ["x", "axis"], ["y"]), {"x": X, "axis": [0]}, (3,)),
    ]:
        given = {name: np.array(it, np.int64) if isinstance(it, list) else it for name, it in inputs.items()}
        shapes = {
            name: (helper.np_dtype_to_tensor_dtype(it.dtype), list(it.shape)) for name, it in given.items()
        }
        made = model([node], opset=opset, y=[None] * len(output), **shapes)
        opened = rukh.InferenceSession(made, providers=["hip"])
        expected = opened.run(None, given)[0]
        assert expected.shape == output
        binding = opened.io_binding()
        values = {name: rukh.Value.ortvalue_from_numpy(it, "hip") for name, it in given.items()}
        for name, value in values.items():
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("y")
        opened.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), expected)


def test_runs_read_and_write_device_memory():
    x = rukh.Value.ortvalue_from_numpy(X, "hip")
    y = rukh.Value.ortvalue_from_shape_and_type([3], np.float32, "hip")
    opened = session()
    binding = opened.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    opened.run_with_iobinding(binding)
    assert y.numpy().tolist() == [2, 4, 6]
    (output,) = binding.get_outputs()
    assert output.data_ptr() == y.data_ptr()
    # By address, and into memory that the binding makes.
    binding.bind_input("x", "hip", 0, np.float32, [3], y.data_ptr())
    binding.bind_output("y", "hip", 0, np.float32, [3])
    opened.run_with_iobinding(binding)
    assert binding.get_outputs()[0].device_name() == "hip"
    assert binding.copy_outputs_to_cpu()[0].tolist() == [4, 8, 12]
    # Without a shape: that of the model.
    binding.bind_output("y", "cuda")
    opened.run_with_iobinding(binding)
    (output,) = binding.get_outputs()
    assert output.device_name() == "hip" and output.numpy().tolist() == [4, 8, 12]


def test_an_output_whose_shape_runs_choose_is_wanted_on_a_device():
    data = model([("Add", ["x", "x"], ["y"])], x=["n"], y=["n"])
    opened = rukh.InferenceSession(data, providers=[GPU])
    binding = opened.io_binding()
    binding.bind_output("y", "hip")
    for array in (X, X[:2]):
        binding.bind_ortvalue_input("x", rukh.OrtValue.ortvalue_from_numpy(array, "hip"))
        opened.run_with_iobinding(binding)
        (output,) = binding.get_outputs()
        assert output.device_name() == "hip" and output.numpy().tolist() == (2 * array).tolist()
        assert binding.copy_outputs_to_cpu()[0].tolist() == (2 * array).tolist()
        # It stays there, and goes into the next run as it is.
        binding.bind_ortvalue_input("x", output)
        opened.run_with_iobinding(binding)
        assert binding.get_outputs()[0].numpy().tolist() == (4 * array).tolist()
    options = rukh.RunOptions()
    options.add_run_config_entry("output_memory", "device")
    (kept,) = opened.run_with_ort_values(None, {"x": rukh.OrtValue.ortvalue_from_numpy(X)}, options)
    assert kept.device_name() == "hip" and kept.numpy().tolist() == (2 * X).tolist()
    with pytest.raises(rukh.RukhError, match="device_id 99 is not there"):
        binding.bind_output("y", "hip", 99)


def test_queued_runs_and_copies_between_values():
    opened = session()
    x, y = (rukh.OrtValue.ortvalue_from_numpy(array, "hip") for array in (X, 0 * X))
    binding = opened.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    completion = binding.run_queued()
    completion.wait()
    assert completion.is_done() and y.numpy().tolist() == [2, 4, 6]
    host = rukh.OrtValue.ortvalue_from_shape_and_type([3])
    rukh.copy_tensors([y], [host])
    assert host.numpy().tolist() == [2, 4, 6]
    x.update_inplace(y)
    assert x.numpy().tolist() == [2, 4, 6]


@pytest.mark.parametrize("offset", [0, 2, 16])
@pytest.mark.parametrize("replayed", [True, False])
def test_products_take_memory_at_any_address_of_its_type(offset, replayed):
    """Fast copies want multiples of 16 bytes, which planned memory has and what a caller gives may not have."""
    generator = np.random.default_rng(5)
    x, *weights = ((generator.random((64, 64)) - 0.5).astype(np.float16) for _ in range(4))
    half = (TensorProto.FLOAT16, [64, 64])
    # `y` is read by a product, too; `z` is made under another shape.
    nodes = [
        ("MatMul", ["x", "w0"], ["h"]),
        ("MatMul", ["h", "w1"], ["y"]),
        ("MatMul", ["y", "w2"], ["k"]),
        ("Reshape", ["k", "shape"], ["z"]),
    ]
    constants = [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    constants.append(numpy_helper.from_array(np.array([32, 128]), "shape"))
    data = model(nodes, constants, x=half, y=half, z=(TensorProto.FLOAT16, [32, 128]))
    opened = rukh.InferenceSession(data, providers=[("hip", {"enable_hip_graph": str(int(replayed))})])
    exact = [x.astype(np.float64)]
    for weight in weights:
        exact.append((exact[-1] @ weight).astype(np.float16).astype(np.float64))
    host = np.zeros(64 * 64 + 64, np.float16)
    host[offset // 2 : offset // 2 + x.size] = x.reshape(-1)
    spaces = [rukh.Value.ortvalue_from_numpy(array, "hip") for array in (host, 0 * host, 0 * host)]
    binding = opened.io_binding()
    x_at, y_at, z_at = (space.data_ptr() + offset for space in spaces)
    binding.bind_input("x", "hip", 0, np.float16, [64, 64], x_at)
    binding.bind_output("y", "hip", 0, np.float16, [64, 64], y_at)
    binding.bind_output("z", "hip", 0, np.float16, [32, 128], z_at)
    for _ in range(3):
        opened.run_with_iobinding(binding)
    for space, wanted in zip(spaces[1:], exact[2:]):
        got = space.numpy()[offset // 2 : offset // 2 + x.size].reshape(64, 64)
        np.testing.assert_allclose(got, wanted, atol=2e-2)


@pytest.mark.parametrize("named", [True, False])
def test_a_device_that_fails_during_a_run(named, monkeypatch):
    providers = [GPU] + ["CPUExecutionProvider"] * named
    opened = rukh.InferenceSession(DOUBLE, providers=providers)
    run, failures = _calls.Call.run, [rukh.DeviceError("the device is lost")]

    def failing(call, options):
        if failures:
            raise failures.pop()
        run(call, options)

    monkeypatch.setattr(_calls.Call, "run", failing)
    if named:
        with pytest.warns(UserWarning, match="the device is lost; the CPU runs the model"):
            assert opened.run(None, {"x": X})[0].tolist() == [2, 4, 6]
        assert opened.get_providers() == ["CPUExecutionProvider"]
        opened.set_providers(providers)
        opened.disable_fallback()
        failures.append(rukh.DeviceError("it is lost again"))
    with pytest.raises(rukh.DeviceError, match="lost"):
        opened.run(None, {"x": X})


def test_dlpack_shares_device_memory():
    x = rukh.Value.ortvalue_from_numpy(X, "hip")
    kind, number = x.__dlpack_device__()
    assert kind in (2, 10) and number == 0
    shared = rukh.Value.from_dlpack(x)
    assert shared.data_ptr() == x.data_ptr() and shared.device_name() == "hip"
    own = rukh.Value.from_dlpack(x.__dlpack__(max_version=(1, 0), copy=True))
    assert own.data_ptr() != x.data_ptr() and own.numpy().tolist() == [1, 2, 3]
    # NumPy asks for the CPU.
    assert np.from_dlpack(x, device="cpu").tolist() == [1, 2, 3]
    with pytest.raises(BufferError, match="copy is False"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    del x
    assert shared.numpy().tolist() == [1, 2, 3]


def test_tuning_results_are_text_and_lists():
    with pytest.raises(rukh.RukhError, match="tunable_op_enable"):
        session().get_tuning_text()
    assert session().get_tuning_results() == []
    opened = session(tunable_op_enable="1")
    text = opened.get_tuning_text()
    assert opened.set_tuning_results(text) == 0 and "arch" in text
    (results,) = opened.get_tuning_results()
    assert results["ep"] == GPU and results["validators"]["rukh"] == rukh.RUKH_VERSION
    assert opened.set_tuning_results([results], error_on_invalid=True) == 0
    results["ep"] = "UnknownEP"
    assert opened.set_tuning_results([results]) == 0
    with pytest.raises(RuntimeError, match="Cannot find execution provider UnknownEP"):
        opened.set_tuning_results([results], error_on_invalid=True)


def test_plans_of_fourier_transforms_are_kept_and_shared():
    plans = rukh.FourierPlanCache()
    plans.clear()
    before = plans.max_size
    signal = np.random.default_rng(1).standard_normal((3, 96, 1)).astype(np.float32)

    def transform(length):
        constants = [numpy_helper.from_array(np.array(n), name) for name, n in (("n", length), ("axis", 1))]
        data = model([("DFT", ["x", "n", "axis"], ["y"])], constants, 20, x=[3, 96, 1], y=["a", "b", "c"])
        session = rukh.InferenceSession(data, providers=[GPU])
        session.run(None, {"x": signal})
        (found,) = session.run(None, {"x": signal})
        want = np.fft.fft(signal[:, :, 0].astype(np.float64), length)
        found = found[..., 0] + 1j * found[..., 1]
        assert np.linalg.norm(found - want) <= 1e-6 * np.log2(length) * np.linalg.norm(want)

    try:
        for length in (96, 64, 96, 101):
            transform(length)
        assert plans.size == 3
        plans.max_size = 1
        assert (plans.size, plans.max_size) == (1, 1)
        plans.clear()
        assert plans.size == 0
        transform(64)
        assert plans.size == 1
        with pytest.raises(ValueError, match="allowed is 0 and more"):
            plans.max_size = -1
    finally:
        plans.max_size = before
