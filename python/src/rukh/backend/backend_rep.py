"""Models that are ready, by the interface of the ONNX standard."""

from __future__ import annotations

from typing import Any

from onnx.backend.base import BackendRep as _BackendRep

from ..inference import InferenceSession
from ..run_options import RunOptions


class BackendRep(_BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session
        self._names = [argument.name for argument in session.get_inputs()]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for inputs in the model's order, or by name."""
        feed = inputs
        # A dict may also be the value of one input that is a map.
        if not isinstance(inputs, dict) or (inputs and not any(name in self._names for name in inputs)):
            if not isinstance(inputs, (list, tuple)) or len(self._names) == 1 != len(inputs):
                inputs = [inputs]
            feed = dict(zip(self._names, inputs))
        options = RunOptions()
        for key, value in kwargs.items():
            if hasattr(options, key):
                setattr(options, key, value)
        return tuple(self.session.run(None, feed, options))


# The name that ONNX Runtime has for it.
OnnxRuntimeBackendRep = BackendRep
