"""rukh: runs ONNX models on AMD GPUs, NVIDIA GPUs and any CPU.

Most scripts for ONNX Runtime need only another import:

    import rukh as ort

    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})
"""

from ._errors import (
    CancelledError,
    DeviceError,
    FileError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    InvalidDataError,
    InvalidHandleError,
    InvalidInputError,
    InvalidModelError,
    NotFoundError,
    OutOfMemoryError,
    PoisonedError,
    RukhError,
    UnsupportedError,
)
from ._library import version as _version
from .binding import IOBinding
from .options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from .session import InferenceSession, ModelMetadata, NodeArg, Placement, get_available_providers
from .value import OrtValue, Value

__version__ = _version()

__all__ = [
    "CancelledError",
    "DeviceError",
    "ExecutionMode",
    "FileError",
    "ForkedError",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InternalError",
    "InvalidArgumentError",
    "InvalidDataError",
    "InvalidHandleError",
    "InvalidInputError",
    "InvalidModelError",
    "ModelMetadata",
    "NodeArg",
    "NotFoundError",
    "OrtValue",
    "OutOfMemoryError",
    "Placement",
    "PoisonedError",
    "RukhError",
    "RunOptions",
    "SessionOptions",
    "UnsupportedError",
    "Value",
    "get_available_providers",
]
