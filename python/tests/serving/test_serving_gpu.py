"""Replicas with a part of a GPU, which Ray counts and rukh runs on (`make test-serve` has an emulated one)."""

import numpy as np
import pytest
import rukh
import serving_client as client
from ray import serve
from rukh.serve import Model, application
from serving_client import at_once, infer

HAS_GPU = len(rukh.get_available_providers()) > 1


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU, nor an emulated one")
def test_replicas_share_a_gpu(cluster):
    images = np.random.default_rng(5).random((6, 1, 8, 8), np.float32)
    expected = rukh.InferenceSession(client.DIGITS).run(None, {"image": images})[0]
    models = {
        "gpu": Model(path=client.DIGITS, num_cpus=0.2, num_gpus=0.5, replicas=2),
        "cpu": Model(path=client.DIGITS, num_cpus=0.2, replicas=1),
    }
    serve.run(application(models), name="gpu", route_prefix="/gpu")
    found = {
        name: serve.get_deployment_handle(name, app_name="gpu").identify.remote().result() for name in models
    }
    answers = {name: infer(name, "/gpu", image=images) for name in models}
    several = at_once([lambda i=i: infer("gpu", "/gpu", image=images[i : i + 1]) for i in range(6)])
    serve.delete("gpu")
    assert found["gpu"]["providers"][0] != "CPUExecutionProvider"
    assert found["gpu"]["provider_options"][found["gpu"]["providers"][0]]["device_id"] == "0"
    assert found["cpu"]["providers"] == ["CPUExecutionProvider"]
    for status, outputs in answers.values():
        assert status == 200
        np.testing.assert_allclose(outputs["scores"], expected, rtol=1e-4, atol=1e-4)
    rows = np.concatenate([outputs["scores"] for _, outputs in several])
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error(cluster):
    # Ray believes what it is told of GPUs.
    model = Model(path=client.DIGITS, num_cpus=0.2, num_gpus=1, replicas=1)
    with pytest.raises(RuntimeError):
        serve.run(application({"lacking": model}), name="lacking", route_prefix="/lacking")
    told = serve.status().applications["lacking"].deployments["lacking"].message
    serve.delete("lacking")
    assert "DeviceError" in told
    assert 'model "lacking" cannot be opened' in told
