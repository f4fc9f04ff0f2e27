"""The names of `onnxruntime_pybind11_state`."""

from .onnxruntime_pybind11_state import *
from .onnxruntime_pybind11_state import __all__  # noqa: F401
