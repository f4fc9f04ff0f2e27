"""Models made ready by the interface of the ONNX standard."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.backend.base import Backend as _Backend

from .._providers import CPU, get_available_providers
from ..inference import InferenceSession
from ..options import SessionOptions
from .backend_rep import BackendRep

_PROVIDER_OF_DEVICE = {"CPU": "cpu", "CUDA": "hip", "HIP": "hip", "ROCM": "hip"}


def _chosen_provider() -> str | None:
    chosen = os.environ.get("RUKH_BACKEND_PROVIDER")
    if chosen not in (None, "cpu", "hip"):
        raise ValueError(f"RUKH_BACKEND_PROVIDER is {chosen!r}; allowed are 'cpu' and 'hip'")
    return chosen


def _provider_of(device: str) -> str:
    name = device.split(":")[0].upper()
    if name not in _PROVIDER_OF_DEVICE:
        raise ValueError(f"device is {device!r}; allowed are {', '.join(_PROVIDER_OF_DEVICE)}")
    return _PROVIDER_OF_DEVICE[name]


class Backend(_Backend):
    """Runs ONNX models."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        if device.split(":")[0].upper() not in _PROVIDER_OF_DEVICE:
            return False
        provider = _provider_of(device)
        there = provider == "cpu" or get_available_providers() != [CPU]
        return there and _chosen_provider() in (None, provider)

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto | InferenceSession | BackendRep | bytes | str | os.PathLike[str],
        device: str | None = None,
        **kwargs: Any,
    ) -> BackendRep:
        """A model (a message, its bytes, the name of a file or a session), ready to run. Keywords are
        attributes of `SessionOptions`."""
        if isinstance(model, BackendRep):
            return model
        if isinstance(model, InferenceSession):
            return BackendRep(model)
        source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
        options = SessionOptions()
        for key, value in kwargs.items():
            if hasattr(options, key):
                setattr(options, key, value)
        provider = _chosen_provider() or _provider_of(device or "CPU")
        return BackendRep(InferenceSession(source, options, providers=[provider]))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto | BackendRep | str, inputs: Any, device: str | None = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs, **kwargs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node for its inputs (tensors), of `opset_version` or the newest opset."""
        names = [name for name in node.input if name]
        arrays = [np.asarray(array) for array in inputs]
        declared = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, arrays)
        ]
        version = kwargs.get("opset_version") or onnx.defs.onnx_opset_version()
        graph = helper.make_graph(
            [node], "node", declared, [onnx.ValueInfoProto(name=name) for name in node.output if name]
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        model = onnx.shape_inference.infer_shapes(model)
        return cls.run_model(model, dict(zip(names, arrays)), device)


# The name that ONNX Runtime has for it.
OnnxRuntimeBackend = Backend
