"""Options of runs, under the names they have in ONNX Runtime."""

from __future__ import annotations

from ._library import call, keys, make, text
from .adapters import LoraAdapter, handle_of

# What a run can be told without an effect here.
_ARENA_SHRINKAGE = "memory.enable_memory_arena_shrinkage"


class RunOptions:
    """How runs behave. One object may serve many runs, also at once.

    `terminate`, `logid`, `log_severity_level` and config entries of the library have an effect; the other
    attributes are taken so that scripts for ONNX Runtime go on working.
    """

    __slots__ = (
        "_entries",
        "_handle",
        "_severity",
        "_terminate",
        "log_verbosity_level",
        "only_execute_path_to_fetches",
    )

    def __init__(self) -> None:
        self._handle = make("run_options", "run_options_create")
        self._terminate = False
        self._entries: dict[str, str] = {}
        self._severity = -1
        self.log_verbosity_level = 0
        self.only_execute_path_to_fetches = False

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
        """A name for the run in the profile and in the log."""
        return text("run_options_get", self._handle, b"tag")

    @logid.setter
    def logid(self, value: str) -> None:
        self.add_run_config_entry("tag", value)

    @property
    def log_severity_level(self) -> int:
        """From which severity on messages of the run reach the callback of `set_log_record_callback`: verbose (0), which
        also tells each node and how long the run took, info (1), warning (2), error (3) or fatal (4), which is
        none; -1 for the session's."""
        return self._severity

    @log_severity_level.setter
    def log_severity_level(self, value: int) -> None:
        call("run_options_set", self._handle, b"log_severity_level", str(int(value)).encode())
        self._severity = value

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an option of rukh by its name: "tag", "log_level", "priority", "timeout_ms", "output_memory",
        "compute_stream", "memory.enable_memory_arena_shrinkage". Others are kept for `get_run_config_entry`."""
        own_value = value
        if key == _ARENA_SHRINKAGE:
            # The memory of the CPU is no arena.
            own_value = ";".join(part for part in value.split(";") if part and not part.startswith("cpu"))
        if own_value and key in keys("run_options_key", self._handle):
            call("run_options_set", self._handle, key.encode(), own_value.encode())
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Has runs take from an adapter what they are not given. Of two with one parameter the one added last counts."""
        if (handle := handle_of(adapter)) is not None:
            call("run_options_add_adapter", self._handle, handle)
