"""Finds rukh's execution provider for ONNX Runtime.

import onnxruntime, onnxruntime_ep_rukh
onnxruntime.register_execution_provider_library("rukh", onnxruntime_ep_rukh.get_library_path())
devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == onnxruntime_ep_rukh.get_ep_name()]
options = onnxruntime.SessionOptions()
options.add_provider_for_devices(devices[:1], {})
session = onnxruntime.InferenceSession("model.onnx", options)
"""

import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]
__version__ = "0.1.0"

_LIBRARY = "librukh_onnxruntime_ep.so"


def get_library_path() -> str:
    """The file to give to `onnxruntime.register_execution_provider_library`."""
    return str(pathlib.Path(__file__).resolve().parent / _LIBRARY)


def get_ep_name() -> str:
    """The provider's name, where the library is registered with a name that asks for no other."""
    return "AMDGPUExecutionProvider"


def get_ep_names() -> list[str]:
    """All providers of the library, of which there is one for each registration."""
    return [get_ep_name()]
