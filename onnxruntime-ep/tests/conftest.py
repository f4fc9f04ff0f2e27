"""Registers the plugin with the onnxruntime of this Python, which is one from the package index.

RUKH_ONNXRUNTIME_EP is the library's file. With RUKH_REQUIRE_HIP=1 and RUKH_HIP_LIBRARY tests run on a GPU too, which may
be an emulated one.
"""

import os
import pathlib

import numpy as np
import onnxruntime
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ["RUKH_ONNXRUNTIME_EP"]
GPU = os.environ.get("RUKH_REQUIRE_HIP") == "1" and "RUKH_HIP_LIBRARY" in os.environ

# For each kind of device, the name to register with and the provider's name.
NAMES = {
    "cpu": ("RukhCPUExecutionProvider", "RukhCPUExecutionProvider"),
    "gpu": ("rukh.virtual", "AMDGPUExecutionProvider"),
}


class Plugin:
    """Makes sessions with the plugin for one kind of device."""

    def __init__(self, kind):
        self.kind = kind
        registration, self.name = NAMES[kind]
        if self.name not in {device.ep_name for device in onnxruntime.get_ep_devices()}:
            onnxruntime.register_execution_provider_library(registration, LIBRARY)

    def devices(self):
        return [device for device in onnxruntime.get_ep_devices() if device.ep_name == self.name]

    def session(self, model, options=None, strict=True, **entries):
        """A session of a file or a model's bytes; a strict one leaves nothing to other providers."""
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        if strict:
            settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        for key, value in entries.items():
            settings.add_session_config_entry(key.replace("__", "."), value)
        settings.add_provider_for_devices(self.devices()[:1], options or {})
        if hasattr(model, "SerializeToString"):
            model = model.SerializeToString()
        return onnxruntime.InferenceSession(
            model if isinstance(model, bytes) else str(model), settings, enable_fallback=0
        )

    def assigned(self, session):
        """The operators that each provider got."""
        operators = {}
        for part in session.get_provider_graph_assignment_info():
            operators.setdefault(part.ep_name, []).extend(node.op_type for node in part.get_nodes())
        return operators


@pytest.fixture(params=["cpu", "gpu"] if GPU else ["cpu"], scope="session")
def plugin(request):
    return Plugin(request.param)


@pytest.fixture(scope="session")
def gpu():
    if not GPU:
        pytest.skip("needs a GPU or the emulated one: RUKH_REQUIRE_HIP=1 and RUKH_HIP_LIBRARY")
    return Plugin("gpu")


@pytest.fixture(scope="session")
def digits():
    """The digits model, with images and the scores that the CPU provider of onnxruntime gives them."""
    file = ROOT / "examples" / "digits" / "digits.onnx"
    images = np.random.default_rng(1).random((5, 1, 8, 8), dtype=np.float32) * 16
    reference = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return file, images, reference.run(None, {reference.get_inputs()[0].name: images})
