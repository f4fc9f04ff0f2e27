"""Options of sessions and runs, under the names they have in ONNX Runtime."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Mapping, Sequence
from ctypes import c_char_p
from typing import Any, TypeAlias

from ._library import Handle, call, count, make, text

Provider: TypeAlias = "str | tuple[str, Mapping[str, Any]]"


class GraphOptimizationLevel(enum.IntEnum):
    """How far the model's graph is rewritten. No level changes what the model means."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Taken for compatibility; nodes run in order, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


# The one entry of ONNX Runtime that says what an option of rukh says.
_TRANSLATED = {
    ("session.disable_cpu_ep_fallback", "1"): ("fallback", "error"),
    ("session.disable_cpu_ep_fallback", "0"): ("fallback", "cpu"),
}
_FOREIGN_PREFIXES = ("session.", "optimization.", "ep.", "mlas.")


class SessionOptions:
    """How a session is made.

    These have an effect: `intra_op_num_threads` (0: the threads that all sessions share),
    `graph_optimization_level`, `enable_profiling`, `profile_file_prefix`. The other attributes are taken
    so that scripts for ONNX Runtime go on working, and change nothing.
    """

    __slots__ = (
        "_entries",
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "enable_profiling",
        "execution_mode",
        "graph_optimization_level",
        "inter_op_num_threads",
        "intra_op_num_threads",
        "log_severity_level",
        "log_verbosity_level",
        "logid",
        "profile_file_prefix",
        "use_deterministic_compute",
    )

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.enable_profiling = False
        self.profile_file_prefix = "rukh_profile_"
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_cpu_mem_arena = True
        self.use_deterministic_compute = False
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self._entries: dict[str, str] = {}

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes a symbolic dimension of the model's inputs to a size."""
        self._entries[f"dim.{name}"] = str(size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an option of rukh by its name ("load", "fallback", "plan_cache", "dim.NAME" and the
        others of `rukh_session_options_create`). Of ONNX Runtime's own entries
        "session.disable_cpu_ep_fallback" is known; the others give a warning and change nothing."""
        if key.startswith(_FOREIGN_PREFIXES):
            if (key, value) not in _TRANSLATED:
                warnings.warn(f"session config entry {key!r} has no effect in rukh", stacklevel=2)
                return
            key, value = _TRANSLATED[key, value]
        # Tried at once, so that a wrong key or value is told where it was given.
        call("session_options_set", self._handle(), key.encode(), value.encode())
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise KeyError(f"session config entry {key!r} was not added")
        return self._entries[key]

    def _handle(self) -> Handle:
        """The library's options with all that is set here."""
        level = int(self.graph_optimization_level)
        optimization = "none" if level == 0 else "basic" if level == 1 else "all"
        handle = make("session_options", "session_options_create")
        for key, value in (
            ("intra_op_threads", str(int(self.intra_op_num_threads))),
            ("optimization", optimization),
            ("profiling", "1" if self.enable_profiling else "0"),
            *self._entries.items(),
        ):
            call("session_options_set", handle, key.encode(), value.encode())
        return handle


def add_providers(
    handle: Handle,
    providers: Sequence[Provider],
    provider_options: Sequence[Mapping[str, Any]] | None,
) -> None:
    """Adds the wanted providers, the most preferred first, each with its options."""
    if provider_options is not None and len(provider_options) != len(providers):
        raise ValueError(
            f"{len(provider_options)} provider_options were given for {len(providers)} providers"
        )
    for index, provider in enumerate(providers):
        name, options = (provider, {}) if isinstance(provider, str) else provider
        merged = {**options, **(provider_options[index] if provider_options else {})}
        keys = [str(key).encode() for key in merged]
        values = [_option_text(value).encode() for value in merged.values()]
        array = c_char_p * len(keys)
        call(
            "session_options_add_provider",
            handle,
            name.encode(),
            array(*keys),
            array(*values),
            len(keys),
        )


def _option_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def list_providers(handle: Handle) -> dict[str, dict[str, str]]:
    """The providers that were added, with their options; the CPU comes last, wanted or not."""
    found: dict[str, dict[str, str]] = {}
    for index in range(count("session_options_provider_count", handle)):
        options = found[text("session_options_provider_name", handle, index)] = {}
        for key in _provider_keys(handle, index):
            options[key] = text("session_options_provider_get", handle, index, key.encode())
    found.setdefault("cpu", {})
    return found


def _provider_keys(handle: Handle, provider: int) -> list[str]:
    """The library lists keys by index, and refuses the first index that is not there."""
    keys: list[str] = []
    while True:
        try:
            keys.append(text("session_options_provider_key", handle, provider, len(keys)))
        except ValueError:
            return keys


class RunOptions:
    """How runs behave. One object may serve many runs, also at once."""

    __slots__ = ("_handle", "_terminate")

    def __init__(self) -> None:
        self._handle = make("run_options", "run_options_create")
        self._terminate = False

    @property
    def terminate(self) -> bool:
        """Set to True from any thread to end every run that uses these options, now and later;
        runs end with `CancelledError`."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        call("run_options_cancel" if value else "run_options_reset", self._handle)
        self._terminate = bool(value)

    @property
    def logid(self) -> str:
        """A name for the run in the profile."""
        return text("run_options_get", self._handle, b"tag")

    @logid.setter
    def logid(self, value: str) -> None:
        self.add_run_config_entry("tag", value)

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an option of rukh by its name: "tag"."""
        call("run_options_set", self._handle, key.encode(), value.encode())
