"""Tensors in the memory of a GPU; `make test-hip` runs this on the emulated one."""

import os

import numpy as np
import pytest
import rukh
from models import model

if "hip" not in rukh.get_available_providers():
    assert not os.environ.get("RUKH_HIP_LIBRARY"), "RUKH_HIP_LIBRARY is set, and no device is there"
    pytest.skip("no HIP device", allow_module_level=True)

X = np.array([1, 2, 3], np.float32)
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
    with pytest.raises(ValueError, match="bound to a GPU; element_type and shape are needed"):
        binding.bind_output("y", "hip")


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


def test_tuning_results_are_text():
    with pytest.raises(rukh.RukhError, match="tunable_op_enable"):
        session().get_tuning_results()
    opened = session(tunable_op_enable="1")
    results = opened.get_tuning_results()
    assert opened.set_tuning_results(results) == 0 and "arch" in results
