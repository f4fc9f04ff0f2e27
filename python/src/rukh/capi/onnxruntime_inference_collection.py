"""The classes of ONNX Runtime's module of this name."""

from .._providers import check_and_normalize_provider_args
from ..adapters import AdapterFormat
from ..binding import IOBinding
from ..compiler import ModelCompiler
from ..devices import OrtDevice
from ..enums import OrtDeviceVendorId
from ..inference import InferenceSession
from ..session import Session
from ..sparse import SparseTensor
from ..value import OrtValue, copy_tensors

__all__ = [
    "AdapterFormat",
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "check_and_normalize_provider_args",
    "copy_tensors",
]
