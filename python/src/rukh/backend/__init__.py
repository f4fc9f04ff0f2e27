"""rukh as an `onnx.backend.base.Backend`; needs the package onnx.

The environment variable RUKH_BACKEND_PROVIDER ("cpu" or "hip") chooses the provider. Without it the
device that a call names does: "CPU", or "CUDA", as the ONNX standard's interface calls any GPU.
"""

from .backend import Backend, OnnxRuntimeBackend
from .backend_rep import BackendRep, OnnxRuntimeBackendRep

# The module itself serves as the backend, as the standard's test suite wants it.
is_compatible = Backend.is_compatible
supports_device = Backend.supports_device
prepare = Backend.prepare
run = Backend.run_model
run_model = Backend.run_model
run_node = Backend.run_node

__all__ = [
    "Backend",
    "BackendRep",
    "OnnxRuntimeBackend",
    "OnnxRuntimeBackendRep",
    "is_compatible",
    "prepare",
    "run",
    "run_model",
    "run_node",
    "supports_device",
]
