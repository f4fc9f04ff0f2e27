"""Options of sessions, under the names they have in ONNX Runtime."""

from __future__ import annotations

import copy
import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_char_p
from typing import Any

import numpy as np

from . import _providers, _values, logs
from ._errors import InvalidArgumentError
from ._library import Handle, call, keys, make, text
from .adapters import LoraAdapter, handle_of
from .devices import OrtEpDevice, get_ep_devices
from .enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
)
from .openings import Openings
from .operators import Operator

# Entries of ONNX Runtime that the library takes by their names there.
_ALIASES = frozenset(
    [
        "session.disable_cpu_ep_fallback",
        "session.intra_op.allow_spinning",
        "session.intra_op_thread_affinities",
        "session.model_external_initializers_file_folder_path",
        "session.optimized_model_external_initializers_file_name",
        "session.optimized_model_external_initializers_min_size_in_bytes",
        "session.use_env_allocators",
    ]
)

_FLAGS = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "enable_mem_reuse",
    "enable_profiling",
    "use_deterministic_compute",
    "use_per_session_threads",
)
_NUMBERS = ("inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level")
_TEXTS = ("logid", "optimized_model_filepath", "profile_file_prefix")
_ENUMS = {
    "execution_mode": ExecutionMode,
    "execution_order": ExecutionOrder,
    "graph_optimization_level": GraphOptimizationLevel,
}


class SessionOptions:
    """How a session is made.

    These have an effect: `intra_op_num_threads` (0: the threads that all sessions share),
    `graph_optimization_level`, `enable_profiling`, `profile_file_prefix`, `optimized_model_filepath`. The other attributes are taken
    so that scripts for ONNX Runtime go on working, and change nothing.
    """

    __slots__ = (
        "_adapters",
        "_denotations",
        "_dimensions",
        "_entries",
        "_files",
        "_initializers",
        "_openings",
        "_operator_libraries",
        "_operators",
        "_policy",
        "_providers",
        *_FLAGS,
        *_NUMBERS,
        *_TEXTS,
        *_ENUMS,
    )

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_cpu_mem_arena = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self._entries: dict[str, str] = {}
        self._dimensions: dict[str, int] = {}
        self._denotations: dict[str, int] = {}
        self._providers: list[tuple[str, dict[str, str]]] = []
        self._policy: Callable[..., list[OrtEpDevice]] | None = None
        self._operators: list[Operator] = []
        self._operator_libraries: list[bytes] = []
        self._initializers: dict[str, Handle] = {}
        self._adapters: list[Handle] = []
        self._files: dict[str, np.ndarray] = {}
        self._openings = Openings()

    def __setattr__(self, name: str, value: Any) -> None:
        """Values of another type are told here, where they are given."""
        if name in _FLAGS:
            value = bool(value)
        elif name in _NUMBERS:
            value = operator.index(value)
        elif name in _TEXTS:
            value = os.fspath(value)
        elif name in _ENUMS:
            value = _ENUMS[name](value)
        object.__setattr__(self, name, value)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a symbolic dimension of the model's inputs to a size. A model without it is left as it is."""
        self._dimensions[name] = operator.index(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """As by name, for the symbolic dimensions that the model marks with this denotation."""
        self._denotations[denotation] = operator.index(size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an option of rukh by its name ("load", "fallback", "plan_cache", "dim.NAME" and the
        others of `rukh_session_options_create`). Of ONNX Runtime's own entries those have an effect that mean the same
        here: "session.disable_cpu_ep_fallback", "session.use_env_allocators", "session.intra_op.allow_spinning",
        "session.intra_op_thread_affinities", "session.model_external_initializers_file_folder_path",
        "session.optimized_model_external_initializers_file_name" and "…_min_size_in_bytes"; others are kept for
        `get_session_config_entry`."""
        if _is_own(key):
            # Tried at once, so that a wrong value is told where it was given.
            call("session_options_set", self._handle(), key.encode(), value.encode())
        # The last one counts, by whatever name.
        self._entries.pop(key, None)
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What was set by this name; of an option of rukh its value, by whatever name it was set."""
        if key not in self._entries and _is_own(key) and key not in _ALIASES:
            return text("session_options_get", self._handle(), key.encode())
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_provider(self, provider: str, options: Mapping[str, str] | None = None) -> None:
        """Wants a provider, after those added before; for sessions that are made without `providers`."""
        self._providers.append((provider, dict(options or {})))

    def add_provider_for_devices(
        self, ep_devices: Sequence[OrtEpDevice], options: Mapping[str, str] | None = None
    ) -> None:
        """As `add_provider`, on devices that `get_ep_devices` gave; a session runs on the first."""
        if not ep_devices:
            raise ValueError("no devices were given; allowed are those of get_ep_devices()")
        device = ep_devices[0]
        self.add_provider(device.ep_name, {**device.ep_options, **(options or {})})

    def has_providers(self) -> bool:
        """Whether providers, devices or a policy were set here."""
        return bool(self._providers) or self._policy is not None

    def set_provider_selection_policy(self, policy: OrtExecutionProviderDevicePolicy) -> None:
        """Lets sessions that are made without `providers` choose: PREFER_GPU and MAX_PERFORMANCE take a GPU
        where there is one, the others the CPU."""
        policies = OrtExecutionProviderDevicePolicy
        gpu_first = policies(policy) in (policies.PREFER_GPU, policies.MAX_PERFORMANCE)

        def choose(devices: list[OrtEpDevice], *_: Any) -> list[OrtEpDevice]:
            gpus = [device for device in devices if device.device.type == OrtHardwareDeviceType.GPU]
            return gpus[:1] if gpu_first and gpus else devices[-1:]

        self._policy = choose

    def set_provider_selection_policy_delegate(self, delegate: Callable[..., list[OrtEpDevice]]) -> None:
        """Lets a function choose: it gets the devices, two dicts (empty here: what is known of the model and
        of the runtime) and how many devices it may return, and returns some of them."""
        self._policy = delegate

    def add_initializer(self, name: str, ort_value: Any) -> None:
        """Takes a value (or an array) in place of the model's initializer of this name, without a copy. Sessions that
        are given the same memory share it. A name that the model does not have is told when a session is made."""
        handle = _values.to_handle(ort_value)
        # Tried at once, so that a wrong value is told where it was given.
        call("session_options_add_initializer", self._handle(), name.encode(), handle)
        self._initializers[name] = handle

    def add_adapter(self, adapter: LoraAdapter) -> None:
        """Takes an adapter's tensors in place of the model's initializers, for good: runs cost what they cost without."""
        if (handle := handle_of(adapter)) is not None:
            self._adapters.append(handle)

    def add_external_initializers(self, names: Sequence[str], ort_values: Sequence[Any]) -> None:
        """As `add_initializer`, for several."""
        if len(names) != len(ort_values):
            raise InvalidArgumentError(f"{len(ort_values)} values were given for {len(names)} names")
        for name, value in zip(names, ort_values):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, file_names: Sequence[str], buffers: Sequence[Any], sizes: Sequence[int]
    ) -> None:
        """Takes bytes in place of files of external data, by the names that the model has for them, without a
        copy."""
        if not len(file_names) == len(buffers) == len(sizes):
            raise InvalidArgumentError(
                f"{len(buffers)} buffers and {len(sizes)} sizes were given for {len(file_names)} files"
            )
        for name, buffer, size in zip(file_names, buffers, sizes):
            content = np.frombuffer(buffer, np.uint8)
            if size > content.nbytes:
                raise InvalidArgumentError(f"file {name!r}: size {size} was given for {content.nbytes} bytes")
            self._files[name] = content[:size]

    def register_custom_ops_library(self, path: str) -> None:
        """Adds the operators of a shared library that was built with rukh's C API; a library for ONNX Runtime's is
        refused."""
        encoded = os.fsencode(path)
        # Tried at once, so that a wrong library is told where it was given.
        handle = self._handle()
        call("session_options_load_operators", handle, encoded)
        self._operator_libraries.append(encoded)

    def add_operator(self, own: Operator) -> None:
        """Adds an operator that `rukh.operator` made of a function."""
        call("session_options_add_operator", self._handle(), own._handle)
        self._operators.append(own)

    def set_ep_context_data_read_func(self, read_func: Callable[..., None], max_data_size: int) -> None:
        """Taken for compatibility: the library reads no compiled models."""

    def clear_ep_context_data_read_func(self) -> None:
        """As `set_ep_context_data_read_func`."""

    def set_load_cancellation_flag(self, cancel: bool) -> None:
        """Ends, from any thread, the opening of sessions with these options and their copies, until it is False again;
        it ends with `CancelledError`."""
        self._openings.cancel(cancel)

    def _wanted(self) -> list[tuple[str, dict[str, str]]]:
        """The providers for sessions that are made without any."""
        if self._policy is not None:
            chosen = self._policy(get_ep_devices(), {}, {}, 8)
            return [(device.ep_name, device.ep_options) for device in chosen]
        return self._providers

    def _handle(self) -> Handle:
        """The library's options with all that is set here, but for dimensions and providers."""
        level = self.graph_optimization_level
        optimization = "none" if level == 0 else "basic" if level == 1 else "all"
        handle = make("session_options", "session_options_create")
        for key, value in (
            ("intra_op_threads", str(self.intra_op_num_threads if self.use_per_session_threads else 0)),
            ("optimization", optimization),
            ("profiling", "1" if self.enable_profiling else "0"),
            ("optimized_model_path", self.optimized_model_filepath),
            ("log_id", self.logid),
            ("log_level", "" if self.log_severity_level == -1 else str(self.log_severity_level)),
            *((key, value) for key, value in self._entries.items() if _is_own(key)),
        ):
            call("session_options_set", handle, key.encode(), value.encode())
        for own in self._operators:
            call("session_options_add_operator", handle, own._handle)
        for library in self._operator_libraries:
            call("session_options_load_operators", handle, library)
        for name, value in self._initializers.items():
            call("session_options_add_initializer", handle, name.encode(), value)
        for adapter in self._adapters:
            call("session_options_add_adapter", handle, adapter)
        for name, content in self._files.items():
            lent = _values.lent(content)
            call("session_options_add_external_file", handle, os.fsencode(name), *lent)
        return self._openings.add(handle)

    def _from_model(self, properties: Mapping[str, str]) -> SessionOptions:
        """A copy with what the model's property "ort_config" says."""
        found = copy.copy(self)
        found._entries = dict(self._entries)
        config = json.loads(properties.get("ort_config", "{}"))
        for name, value in config.get("session_options", {}).items():
            if name in (*_FLAGS, *_NUMBERS, *_ENUMS):
                setattr(found, name, value)
        return found

    def _check(self) -> None:
        """Tells what is set and cannot be done."""
        if self.use_per_session_threads and logs.are_threads_global():
            raise InvalidArgumentError(
                "use_per_session_threads is True and set_global_thread_pool_sizes was called; allowed is False"
            )


_own_keys: list[str] = []


def _is_own(key: str) -> bool:
    """Whether it is an option of the library's."""
    if not _own_keys:
        _own_keys.extend(keys("session_options_key", make("session_options", "session_options_create")))
    return key in _own_keys or key in _ALIASES or key.startswith("dim.")


def add_providers(handle: Handle, choice: _providers.Choice) -> None:
    """Adds the wanted providers, the most preferred first, each with its options."""
    for name, options in choice.options:
        array = c_char_p * len(options)
        call(
            "session_options_add_provider",
            handle,
            name.encode(),
            array(*(key.encode() for key in options)),
            array(*(value.encode() for value in options.values())),
            len(options),
        )


def provider_options(handle: Handle, choice: _providers.Choice) -> dict[str, dict[str, str]]:
    """The providers that a session may use, with their options."""
    given = {}
    for index, (name, _) in enumerate(choice.options):
        given[name] = {
            key: text("session_options_provider_get", handle, index, key.encode())
            for key in keys("session_options_provider_key", handle, index)
        }
    return {name: {} if name == _providers.CPU else given.get("hip", {}) for name in choice.all_names()}
