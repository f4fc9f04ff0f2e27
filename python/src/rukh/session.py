"""Sessions: a model, ready to run."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int64, c_void_p
from typing import Any, NamedTuple

from . import _values
from ._library import Handle, addresses, borrowed, call, count, environment, make, text
from ._types import UNKNOWN, ValueType, parse_type, plain_text
from .binding import IOBinding
from .options import Provider, RunOptions, SessionOptions, add_providers, list_providers
from .value import Value


class NodeArg(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str  # as the standard writes it: "tensor(float)"
    shape: list[int | str | None]  # a text names a size that runs choose; None has no name


class ModelMetadata(NamedTuple):
    """What the model file says about itself."""

    producer_name: str
    producer_version: str
    graph_name: str
    domain: str
    description: str
    version: int
    custom_metadata_map: dict[str, str]


class Placement(NamedTuple):
    """Where a node runs, and why there."""

    node: str
    operator: str
    provider: str
    reason: str


class InferenceSession:
    """A model, ready to run, from any number of threads at once.

    `path_or_bytes`: a model file, or the bytes of one. `providers`: the wanted ones, the most preferred
    first, each a name or a name with its options: `[("hip", {"device_id": 0}), "cpu"]`; without any the
    CPU runs everything. A wanted provider without a device is a `DeviceError`.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[Provider] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._options = sess_options or SessionOptions()
        options = self._options._handle()
        add_providers(options, providers or [], provider_options)
        self._providers = list_providers(options)
        self._handle = _open(path_or_bytes, options)
        self._inputs = _arguments(self._handle, "input")
        self._outputs = _arguments(self._handle, "output")
        self._overridable = _arguments(self._handle, "overridable")
        self._input_types: dict[str, ValueType] = {
            argument.name: parse_type(argument.type) for argument in (*self._inputs, *self._overridable)
        }

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model; the wanted outputs (all of them for None) in their order.

        Inputs are read where they lie when they are C-contiguous arrays. Outputs are arrays over memory
        of the library that nothing else uses; lists, dicts and None for sequences, maps and optionals.
        """
        handles = self._run(output_names, input_feed, run_options)
        return [_values.to_python(handle) for handle in handles]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Value],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """As `run`, with a `Value` for every output."""
        return [Value(handle) for handle in self._run(output_names, input_dict_ort_values, run_options)]

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model with what is bound."""
        iobinding._run(run_options)

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs for runs of this session."""
        return IOBinding(self._handle, self._input_types, [output.name for output in self._outputs])

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that the model has values for, which a run may give others."""
        return list(self._overridable)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """The providers that nodes of this session may run on, the most preferred first."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: dict(options) for name, options in self._providers.items()}

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_modelmeta(self) -> ModelMetadata:
        version = c_int64()
        call("session_model_version", self._handle, byref(version), None)
        producer, producer_version, domain, graph, description = (
            borrowed("session_model_text", self._handle, which) or "" for which in range(5)
        )
        properties = {}
        for index in range(count("session_property_count", self._handle)):
            key, value = _texts(2, "session_property", self._handle, index)
            properties[key] = value
        return ModelMetadata(
            producer, producer_version, graph, domain, description, version.value, properties
        )

    def get_placements(self) -> list[Placement]:
        """Where each node runs after the graph was rewritten, and why there."""
        return [
            Placement(*_texts(4, "session_placement", self._handle, index))
            for index in range(count("session_placement_count", self._handle))
        ]

    def get_tuning_results(self) -> str:
        """What the hip provider measured or was given, as text. Needs its option "tunable_op_enable"."""
        return text("session_tuning_results", self._handle)

    def set_tuning_results(self, results: str) -> int:
        """Takes such a text; how many results were taken. One of another device or version is ignored, and the
        log tells why."""
        return count("session_add_tuning_results", self._handle, results.encode())

    def end_profiling(self) -> str:
        """Writes what the runs so far did as a Chrome trace; the name of the file.

        The name begins with `SessionOptions.profile_file_prefix`. Needs `enable_profiling`.
        """
        trace = text("session_profile", self._handle)
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        name = f"{self._options.profile_file_prefix}{stamp}_{os.getpid()}.json"
        with open(name, "w", encoding="utf-8") as file:
            file.write(trace)
        return name

    def _run(
        self,
        output_names: Iterable[str] | None,
        feed: Mapping[str, Any],
        run_options: RunOptions | None,
    ) -> list[Handle]:
        inputs = [
            _values.to_handle(thing, self._input_types.get(name, UNKNOWN)) for name, thing in feed.items()
        ]
        names = [output.name for output in self._outputs] if output_names is None else list(output_names)
        outputs = (c_void_p * len(names))()
        call(
            "session_run",
            self._handle,
            None if run_options is None else run_options._handle,
            _texts_array(feed),
            addresses(inputs),
            len(inputs),
            _texts_array(names),
            len(names),
            outputs,
        )
        return [Handle("value", address or 0) for address in outputs]


def get_available_providers() -> list[str]:
    """The providers that have a device on this machine, the most preferred first."""
    names = [text("provider_name", index) for index in range(count("provider_count"))]
    return [name for name in names if not text("environment_provider_reason", environment(), name.encode())]


def _open(path_or_bytes: Any, options: Handle) -> Handle:
    owner = environment()
    if isinstance(path_or_bytes, (str, os.PathLike)):
        path = os.fsencode(path_or_bytes)
        return make("session", "session_create", owner, path, options)
    data = bytes(path_or_bytes)
    return make("session", "session_create_from_memory", owner, data, len(data), options)


def _arguments(handle: Handle, side: str) -> list[NodeArg]:
    """The inputs, outputs or overridable initializers of a session."""
    found = []
    for index in range(count(f"session_{side}_count", handle)):
        name = borrowed(f"session_{side}_name", handle, index) or ""
        type_text = text(f"session_{side}_type_text", handle, index)
        found.append(NodeArg(name, plain_text(type_text), _shape(handle, side, index)))
    return found


def _shape(handle: Handle, side: str, index: int) -> list[int | str | None]:
    rank = c_int64()
    call(f"session_{side}_shape", handle, index, None, 0, byref(rank))
    dims = (c_int64 * max(rank.value, 0))()
    call(f"session_{side}_shape", handle, index, dims, len(dims), None)
    return [
        size if size >= 0 else borrowed(f"session_{side}_dim_name", handle, index, axis)
        for axis, size in enumerate(dims)
    ]


def _texts(number: int, name: str, *arguments: Any) -> list[str]:
    """The `number` texts that `rukh_NAME` lends through its last parameters."""
    out = [c_char_p() for _ in range(number)]
    call(name, *arguments, *map(byref, out))
    return [(item.value or b"").decode() for item in out]


def _texts_array(names: Iterable[str]) -> Any:
    encoded = [name.encode() for name in names]
    return (c_char_p * len(encoded))(*encoded)
