"""Sessions and bindings as ONNX Runtime's inner module has them: other names and orders of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..binding import IOBinding
from ..inference import InferenceSession
from ..options import SessionOptions
from ..run_options import RunOptions
from ..value import OrtValueVector, Value


class NativeSession:
    """`InferenceSession(options, path_or_bytes, is_path, read_config)`, then `initialize_session`."""

    def __init__(
        self, options: SessionOptions, model: str | bytes, from_file: bool = True, read_config: bool = False
    ) -> None:
        self._options, self._model = options, model
        self._session: InferenceSession | None = None

    @classmethod
    def of(cls, session: InferenceSession) -> NativeSession:
        """The inner session of an open one."""
        self = cls(session.get_session_options(), "")
        self._session = session
        return self

    def initialize_session(
        self,
        providers: Sequence[str] = (),
        provider_options: Sequence[Mapping[str, str]] = (),
        disabled_optimizers: Iterable[str] = (),
    ) -> None:
        wanted = list(zip(providers, provider_options)) if provider_options else list(providers)
        self._session = InferenceSession(self._model, self._options, wanted or None)

    def run(
        self, output_names: Sequence[str], feed: Mapping[str, Any], options: RunOptions | None = None
    ) -> list[Any]:
        return self._opened().run(output_names, feed, options)

    def run_with_ort_values(
        self, feed: Mapping[str, Value], output_names: Sequence[str], options: RunOptions | None = None
    ) -> OrtValueVector:
        return OrtValueVector(self._opened().run_with_ort_values(output_names, feed, options))

    def run_with_iobinding(self, binding: IOBinding, options: RunOptions | None = None) -> None:
        binding._run(options)

    @property
    def inputs_meta(self) -> Any:
        return self._opened().get_inputs()

    @property
    def outputs_meta(self) -> Any:
        return self._opened().get_outputs()

    @property
    def overridable_initializers(self) -> Any:
        return self._opened().get_overridable_initializers()

    @property
    def model_meta(self) -> Any:
        return self._opened().get_modelmeta()

    @property
    def session_options(self) -> SessionOptions:
        return self._options

    @property
    def get_profiling_start_time_ns(self) -> int:
        return self._opened().get_profiling_start_time_ns()

    def __getattr__(self, name: str) -> Any:
        # What has the same form in both.
        return getattr(self._opened(), name)

    def _opened(self) -> InferenceSession:
        session: InferenceSession | None = self.__dict__.get("_session")
        if session is None:
            raise RuntimeError("the session is not initialized; call initialize_session first")
        return session


class SessionIOBinding(IOBinding):
    """A binding, made from an inner session."""

    def __init__(self, session: NativeSession | InferenceSession) -> None:
        super().__init__(session._opened() if isinstance(session, NativeSession) else session)

    def bind_input(self, name: str, *arguments: Any) -> None:
        """With an array, or with a device, element type, shape and address."""
        if len(arguments) == 1:
            self.bind_cpu_input(name, arguments[0])
        elif len(arguments) == 4:
            device, element_type, shape, address = arguments
            super().bind_input(name, device, device.device_id(), element_type, shape, address)
        else:
            super().bind_input(name, *arguments)

    def bind_output(self, name: str, device: Any = "cpu", *arguments: Any) -> None:
        if isinstance(device, str):
            super().bind_output(name, device, *arguments)
        else:
            super().bind_output(name, device, device.device_id(), *arguments)

    def get_outputs(self) -> OrtValueVector:
        return OrtValueVector(super().get_outputs())


def get_default_session_options() -> SessionOptions:
    return SessionOptions()


def is_dlpack_uint8_tensor(capsule: Any) -> bool:
    """Whether a capsule, which stays as it is, holds a tensor of uint8; older libraries give booleans so."""
    from .._dlpack import element_of_capsule

    return element_of_capsule(capsule) == (1, 8)
