"""Providers by the names that programs for ONNX Runtime have for them."""

import os

import numpy as np
import pytest
import rukh
from models import model

DATA = model([("Relu", ["x"], ["y"])], x=[2], y=[2])
CPU, ROCM = "CPUExecutionProvider", "ROCMExecutionProvider"
ON_DEVICE = rukh.get_available_providers() != [CPU]


def opened(providers, *options):
    return rukh.InferenceSession(DATA, None, providers, *options)


def test_the_cpu_goes_by_both_names_and_ignores_options():
    assert rukh.get_available_providers()[-1] == CPU and rukh.get_all_providers()[-1] == CPU
    arena = {"arena_extend_strategy": "kSameAsRequested"}
    for given in (None, [], ["cpu"], [CPU], [(CPU, arena)], [CPU, "cpu"]):
        session = opened(given)
        assert session.get_providers() == [CPU] and session.get_provider_options() == {CPU: {}}
    assert opened([CPU], [arena]).get_providers() == [CPU]


@pytest.mark.parametrize(
    "name",
    [name for name in rukh.get_all_providers() if name not in (CPU, ROCM, "MIGraphXExecutionProvider")],
)
def test_a_provider_that_is_not_here_is_skipped_with_a_warning(name):
    if name in rukh.get_available_providers():
        pytest.skip("it is here")
    with pytest.warns(UserWarning, match=name):
        session = opened([(name, {"device_id": 0, "anything": True}), CPU])
    assert session.get_providers() == [CPU]
    with pytest.warns(UserWarning, match=name):
        assert opened([name]).get_providers() == [CPU]
    assert session.run(None, {"x": np.array([-1, 1], np.float32)})[0].tolist() == [0, 1]


@pytest.mark.skipif(ON_DEVICE, reason="there is a GPU")
@pytest.mark.parametrize("name", ["hip", ROCM, "MIGraphXExecutionProvider"])
def test_without_a_gpu_it_is_an_error_unless_the_cpu_is_named_too(name):
    with pytest.raises(rukh.DeviceError, match="no HIP device"):
        opened([name])
    with pytest.raises(rukh.DeviceError):
        opened(["CUDAExecutionProvider", name])
    with pytest.warns(UserWarning, match=f"{name} has no device and is skipped: no HIP device"):
        session = opened([(name, {"device_id": 0}), CPU])
    assert session.get_providers() == [CPU]
    assert {placement.provider for placement in session.get_placements()} == {CPU}
    assert rukh.get_device() == "CPU"


@pytest.mark.skipif(not ON_DEVICE, reason="a provider without a device is skipped with its options")
@pytest.mark.parametrize("name", [ROCM, "MIGraphXExecutionProvider"])
def test_compiled_models_are_kept_by_options_of_a_provider(tmp_path, name):
    x = {"x": np.array([-1, 1], np.float32)}
    file = tmp_path / "kept.rukh"
    save = {"migraphx_save_compiled_model": "True", "migraphx_save_model_path": str(file)}
    load = {"migraphx_load_compiled_model": "True", "migraphx_load_model_path": str(file)}
    with pytest.raises(rukh.RukhError, match=r"kept\.rukh"):
        opened([(name, load), CPU])
    for given, count in [
        (save, 1),
        (load, 1),
        ({"compiled_model_path": str(tmp_path / "another.rukh")}, 2),
        ({"migraphx_model_cache_dir": str(tmp_path)}, 3),
        ({"cache_dir": str(tmp_path)}, 3),
        ({"model_cache_dir": str(tmp_path), "model_cache_limit": "0"}, 3),
        ({"cache_dir": str(tmp_path / "none"), "disable_caching": "True"}, 3),
    ]:
        for _ in range(2):
            assert opened([(name, given), CPU]).run(None, x)[0].tolist() == [0, 1]
            assert len(list(tmp_path.glob("*.rukh"))) == count, given
    assert not (tmp_path / "none").exists()
    with pytest.raises(rukh.InvalidArgumentError, match="model_cache_limit"):
        opened([(name, {"model_cache_limit": "much"}), CPU])


@pytest.mark.skipif(not ON_DEVICE, reason="there is no GPU")
def test_with_a_gpu_names_come_back_as_they_were_given():
    names = rukh.get_available_providers()[:-1]
    assert rukh.get_device() == "GPU"
    for name in names:
        for given in ([name], [name, CPU], [(name, {"device_id": 0})]):
            session = opened(given)
            assert session.get_providers() == [name, CPU]
            assert session.get_provider_options()[name]["device_id"] == "0"
            assert [p.provider for p in session.get_placements()] == [name]
    assert opened(["hip"]).get_providers()[0] in (ROCM, "CUDAExecutionProvider")
    with pytest.raises(rukh.RukhError, match="device_id"):
        opened([(names[-1], {"device_id": 99})])
    with pytest.warns(UserWarning, match="device_id 99 is not there"):
        assert opened([(names[-1], {"device_id": 99}), CPU]).get_providers() == [CPU]
    with pytest.raises(rukh.InvalidArgumentError, match="beads"):
        opened([(names[-1], {"beads": 7})])
    session = opened(None)
    session.set_providers(names[:1])
    assert session.get_providers() == [names[0], CPU]


def test_wrong_lists_of_providers():
    for given, text in [
        (["abacus"], "Unknown Provider Type: abacus"),
        (["abacus", CPU], "Unknown Provider Type: abacus"),
        (CPU, "should be a sequence"),
        (3, "should be a sequence"),
        ([3], "strings or"),
    ]:
        with pytest.raises(ValueError, match=text):
            opened(given)
    with pytest.raises(ValueError, match="1 provider_options"):
        opened([CPU, "hip"], [{}])
    with pytest.raises(ValueError, match="Only string values"):
        opened([(CPU, {})], [{}])
    session = opened([CPU])
    with pytest.raises(RuntimeError, match="Unknown Provider Type: abacus"):
        session.set_providers(["abacus"])
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]


def test_options_carry_providers_too():
    options = rukh.SessionOptions()
    assert not options.has_providers()
    options.add_provider(CPU, {})
    assert options.has_providers()
    assert rukh.InferenceSession(DATA, options).get_providers() == [CPU]
    with pytest.warns(UserWarning, match="the former are used"):
        rukh.InferenceSession(DATA, options, [CPU])
    devices = rukh.get_ep_devices()
    assert devices[-1].ep_name == CPU and devices[-1].device.type == rukh.OrtHardwareDeviceType.CPU
    options = rukh.SessionOptions()
    options.add_provider_for_devices(devices[-1:], {})
    assert rukh.InferenceSession(DATA, options).get_providers() == [CPU]
    options = rukh.SessionOptions()
    options.set_provider_selection_policy(rukh.OrtExecutionProviderDevicePolicy.PREFER_CPU)
    assert rukh.InferenceSession(DATA, options).get_providers() == [CPU]
    seen = []
    options.set_provider_selection_policy_delegate(lambda devices, *_: seen.append(devices) or devices[-1:])
    assert rukh.InferenceSession(DATA, options).get_providers() == [CPU] and seen == [devices]


def test_devices():
    *_, cpu = rukh.get_devices()
    assert (
        cpu.provider == CPU
        and cpu.memory > 0
        and int(cpu.properties["threads"]) == len(os.sched_getaffinity(0))
    )
    (memory,) = opened(None).get_input_memory_infos()
    assert memory.name == "Cpu" and memory.device_id == 0
    assert opened(None).get_input_epdevices()[0].ep_name == CPU
