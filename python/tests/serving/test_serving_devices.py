"""Which GPU a replica's model runs on, by what Ray reserved and by what the process sees."""

import pytest
from rukh.serve import Model, OptionError, device


@pytest.mark.parametrize(
    ("reserved", "visible", "number"),
    [
        # Ray shows the process the reserved one alone.
        ("3", {"HIP_VISIBLE_DEVICES": "3"}, "0"),
        ("3", {"CUDA_VISIBLE_DEVICES": "3"}, "0"),
        ("GPU-7f3a", {"CUDA_VISIBLE_DEVICES": "GPU-7f3a"}, "0"),
        # It is told not to (RAY_EXPERIMENTAL_NOSET_...), and the machine's Ray was given some, or all.
        ("3", {"HIP_VISIBLE_DEVICES": "2,3"}, "1"),
        ("GPU-7f3a", {"CUDA_VISIBLE_DEVICES": "GPU-11c0,GPU-7f3a"}, "1"),
        ("3", {}, "3"),
        ("3", {"HIP_VISIBLE_DEVICES": ""}, "3"),
        # A variable for GPUs of another maker says nothing.
        ("3", {"HIP_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "0"}, "1"),
        ("3", {"HIP_VISIBLE_DEVICES": "0", "CUDA_VISIBLE_DEVICES": "2,3"}, "1"),
        # A cluster of Ray's without GPUs of its own.
        (None, {}, "0"),
    ],
)
def test_the_reserved_gpu_is_the_models(monkeypatch, reserved, visible, number):
    see(monkeypatch, reserved, visible)
    assert device.device_options(Model(path="a", num_gpus=1)) == {"device_id": number}


@pytest.mark.parametrize(
    ("reserved", "visible", "message"),
    [
        (
            "5",
            {"HIP_VISIBLE_DEVICES": "0,1"},
            "reserved the GPU 5 for this replica, and HIP_VISIBLE_DEVICES is 0,1",
        ),
        ("GPU-7f3a", {}, "HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES are not set"),
    ],
)
def test_a_gpu_that_the_process_does_not_see_is_an_error(monkeypatch, reserved, visible, message):
    see(monkeypatch, reserved, visible)
    with pytest.raises(OptionError, match=message):
        device.device_options(Model(path="a", num_gpus=1))


def test_who_names_a_gpu_has_it(monkeypatch):
    see(monkeypatch, "5", {"HIP_VISIBLE_DEVICES": "0,1"})
    model = Model(path="a", num_gpus=1, provider_options={"device_id": 1})
    assert device.device_options(model) == {"device_id": "1"}
    assert device.device_options(Model(path="a")) == {}


def see(monkeypatch, reserved, visible):
    monkeypatch.setattr(device, "reserved_gpu", lambda: reserved)
    for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in visible.items():
        monkeypatch.setenv(name, value)
