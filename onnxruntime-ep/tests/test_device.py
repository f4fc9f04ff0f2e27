"""Device memory: values that stay on the GPU, copies, allocators."""

import threading

import numpy as np
import onnxruntime
import pytest

AMD = 0x1002


def on_gpu(values):
    return onnxruntime.OrtValue.ortvalue_from_numpy(values, "gpu", 0, AMD)


def test_the_device_says_what_it_is(gpu):
    device = gpu.devices()[0]
    assert device.ep_vendor == "rukh"
    assert device.device.vendor_id == AMD
    assert device.ep_metadata["arch"].startswith("gfx")
    assert device.ep_metadata["rukh_device"] == "0"


def test_values_go_to_the_device_and_come_back(gpu):
    for values in (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(5, dtype=np.int8),
        np.zeros((0, 3)),
    ):
        value = on_gpu(values)
        assert value.device_name().lower() == "hip"
        np.testing.assert_array_equal(value.numpy(), values)


def test_bound_values_stay_on_the_device(gpu, digits):
    file, images, expected = digits
    session = gpu.session(file)
    binding = session.io_binding()
    names = session.get_inputs()[0].name, session.get_outputs()[0].name
    image = on_gpu(images)
    binding.bind_ortvalue_input(names[0], image)
    scores = on_gpu(np.zeros_like(expected[0]))
    binding.bind_ortvalue_output(names[1], scores)
    for _ in range(3):
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(scores.numpy(), expected[0], rtol=1e-4, atol=1e-4)
    # What was written last is what is read: runs are replayed over the same addresses.
    image.update_inplace(np.ascontiguousarray(images[::-1]))
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(scores.numpy(), expected[0][::-1], rtol=1e-4, atol=1e-4)


def test_one_session_in_many_threads(plugin, digits):
    file, images, expected = digits
    session = plugin.session(file)
    name, wrong = session.get_inputs()[0].name, []

    def work(count):
        for _ in range(20):
            found = session.run(None, {name: images[:count]})[0]
            if not np.allclose(found, expected[0][:count], rtol=1e-3, atol=1e-3):
                wrong.append(count)

    threads = [threading.Thread(target=work, args=(1 + index % 5,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_two_devices_for_one_session_are_refused(gpu, digits):
    options = onnxruntime.SessionOptions()
    device = gpu.devices()[0]
    with pytest.raises(Exception, match="2 devices"):
        options.add_provider_for_devices([device, device], {})
        onnxruntime.InferenceSession(str(digits[0]), options, enable_fallback=0)


def test_runs_in_a_stream_of_the_program(gpu, digits):
    """The default stream, which needs no function of the runtime: the run has ended when the call returns."""
    file, images, expected = digits
    session = gpu.session(file, {"has_user_compute_stream": "1", "user_compute_stream": "0"})
    for count in (5, 2, 5):
        found = session.run(None, {session.get_inputs()[0].name: images[:count]})
        np.testing.assert_allclose(found[0], expected[0][:count], rtol=1e-4, atol=1e-4)
