"""A server for the tests of a file, on the CPU, or on a GPU where RUKH_REQUIRE_HIP=1 and RUKH_HIP_LIBRARY say so."""

import os

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from server import ROOT, Server

GPU = os.environ.get("RUKH_REQUIRE_HIP") == "1" and "RUKH_HIP_LIBRARY" in os.environ
PLACES = {
    "cpu": "instance_group [ { kind: KIND_CPU count: 2 } ]",
    # KIND_GPU needs a GPU that the server sees, which counts CUDA's alone.
    "gpu": 'instance_group [ { kind: KIND_MODEL count: 2 } ] parameters { key: "provider" value { string_value: "hip" } }'
    ' parameters { key: "fallback" value { string_value: "error" } }',
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"))
    yield running
    assert running.process.poll() is None, f"the server ended by itself:\n{running.log()}"
    assert running.stop() == 0, running.log()


@pytest.fixture(
    params=["cpu", pytest.param("gpu", marks=pytest.mark.skipif(not GPU, reason="there is no GPU"))]
)
def place(request):
    """The lines of config.pbtxt that put a model on a kind of device, with its name."""
    return request.param, PLACES[request.param]


@pytest.fixture(scope="session")
def digits():
    """The digits model's bytes, and images with their right scores."""
    folder = ROOT / "examples" / "digits"
    sample = np.load(folder / "sample.npz")
    return (folder / "digits.onnx").read_bytes(), sample["in:image"], sample["out:scores"]


def infer(client, name, inputs, outputs=None, **options):
    """Runs a model over HTTP or gRPC, as `client` is, and gives its outputs by name."""
    kind = (
        tritonclient.grpc
        if isinstance(client, tritonclient.grpc.InferenceServerClient)
        else tritonclient.http
    )
    given = []
    for key, value in inputs.items():
        tensor = kind.InferInput(key, value.shape, type_name(value))
        tensor.set_data_from_numpy(value)
        given.append(tensor)
    wanted = None if outputs is None else [kind.InferRequestedOutput(key) for key in outputs]
    result = client.infer(name, given, outputs=wanted, **options)
    response = result.get_response()
    names = [
        o["name"] if isinstance(o, dict) else o.name
        for o in (response["outputs"] if isinstance(response, dict) else response.outputs)
    ]
    return {key: result.as_numpy(key) for key in names}


def type_name(value):
    return {
        "bool": "BOOL",
        "bfloat16": "BF16",
        "float16": "FP16",
        "float32": "FP32",
        "float64": "FP64",
        "object": "BYTES",
    }.get(value.dtype.name, value.dtype.name.upper())
