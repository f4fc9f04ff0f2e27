"""Opening a model."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _providers, _values, modelfile
from ._errors import DeviceError, NoModelFileError, NotFoundError
from ._library import Handle, call, environment, make
from ._providers import Choice, Provider
from .artifacts import is_artifact
from .options import SessionOptions, add_providers
from .options import provider_options as _options_of
from .session import Session


class InferenceSession(Session):
    """A model, ready to run, from any number of threads at once.

    `path_or_bytes`: a model file, or the bytes of one. `providers`: the wanted ones, the most preferred
    first, each a name or a name with its options: `[("ROCMExecutionProvider", {"device_id": 0}),
    "CPUExecutionProvider"]`; without any the CPU runs everything. Providers that are not in rukh are skipped
    with a warning. A wanted GPU that is not there is a `DeviceError`, or, when the CPU is in the list too, a
    warning.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        self._enable_fallback = bool(int(kwargs.get("enable_fallback", 1)))
        self._model_path: str | None = None
        self._model_bytes: bytes | None = None
        if isinstance(path_or_bytes, (str, os.PathLike)):
            self._model_path = os.fspath(path_or_bytes)
        elif isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
            self._model_bytes = bytes(path_or_bytes)
        else:
            raise TypeError(
                f"Unable to load from type '{type(path_or_bytes)}'; allowed are the name of a file and bytes"
            )
        self._options = sess_options if sess_options is not None else SessionOptions()
        by_default = os.environ.get("ORT_LOAD_CONFIG_FROM_MODEL") == "1"
        if bool(int(kwargs.get("read_config_from_model", by_default))):
            self._options = self._options._from_model(modelfile.read(self._source()).properties)
        self._open(providers, provider_options)

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        """The providers that nodes of this session may run on, the most preferred first."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(
        self,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        """Opens the model again, on other providers. When that fails the session stays as it is."""
        self._open(providers, provider_options)

    def enable_fallback(self) -> None:
        """A device that fails during a run gives a warning, and the CPU runs the model, when it is among the
        providers that were asked for. So it is at first."""
        self._enable_fallback = True

    def disable_fallback(self) -> None:
        """A device that fails during a run is an error."""
        self._enable_fallback = False

    def _source(self) -> Any:
        return self._model_bytes if self._model_path is None else self._model_path

    def _open(self, providers: Sequence[Provider] | None, given: Sequence[Mapping[Any, Any]] | None) -> None:
        if providers and self._options.has_providers():
            warnings.warn(
                "'providers' were given, and the SessionOptions have providers too; the former are used",
                stacklevel=3,
            )
        choice = Choice(providers or self._options._wanted(), given)
        self._options._check()
        options = self._prepared(choice)
        started = time.monotonic_ns()
        try:
            self._handle = self._create(options)
        except DeviceError as error:
            if not (choice.on_device and choice.names_cpu):
                raise
            warnings.warn(f"{error}; the CPU runs the model", stacklevel=3)
            choice = choice.cpu_only()
            options = self._prepared(choice)
            self._handle = self._create(options)
        self._choice = choice
        self._providers = _options_of(options, choice)
        names = choice.all_names()
        self._provider_names = {
            "cpu": _providers.CPU,
            "hip": names[0] if names[0] != _providers.CPU else names[-1],
        }
        self._profiling_start_ns = started if self._options.enable_profiling else 0
        self._describe()

    def _prepared(self, choice: Choice) -> Handle:
        """The library's options for this model."""
        options = self._options._handle()
        dimensions = dict(self._options._dimensions)
        if self._options._denotations:
            denoted = modelfile.read(self._source()).denoted
            for denotation, size in self._options._denotations.items():
                dimensions.update(dict.fromkeys(denoted.get(denotation, []), size))
        compiled = bool(dimensions) and is_artifact(self._source())
        known = set(modelfile.read(self._source()).symbols) if dimensions else set()
        for name, size in dimensions.items():
            if compiled or name in known:
                call("session_options_set", options, f"dim.{name}".encode(), str(size).encode())
        add_providers(options, choice)
        return options

    def _create(self, options: Handle) -> Handle:
        owner = environment()
        if self._model_bytes is not None:
            lent = _values.lent(np.frombuffer(self._model_bytes, np.uint8))
            return make("session", "session_create_from_buffer", owner, *lent, options)
        assert self._model_path is not None
        try:
            return make("session", "session_create", owner, os.fsencode(self._model_path), options)
        except NotFoundError as error:
            raise NoModelFileError(
                f"[ONNXRuntimeError] : 3 : NO_SUCHFILE : Load model from {self._model_path} failed: {error}. "
                "File doesn't exist"
            ) from None

    def _fall_back(self, error: DeviceError) -> None:
        if not (self._enable_fallback and self._choice.on_device and self._choice.names_cpu):
            raise error
        warnings.warn(f"{error}; the CPU runs the model from now on", stacklevel=5)
        self.set_providers([_providers.CPU])
        self.disable_fallback()

    # Names that programs for ONNX Runtime look into.

    @property
    def _sess(self) -> Any:
        # Here, as that file needs this one: the inner session is made from an open one, and opens one.
        from .capi.native import NativeSession

        return NativeSession.of(self)

    @property
    def _sess_options(self) -> SessionOptions:
        return self._options

    @property
    def _inputs_meta(self) -> Any:
        return self._inputs

    @property
    def _outputs_meta(self) -> Any:
        return self._outputs

    @property
    def _model_meta(self) -> Any:
        return self.get_modelmeta()
