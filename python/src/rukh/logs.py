"""The library's log messages, and the settings of the environment that sessions share.

Without a callback nothing is logged. The environment is made with the first session, so settings that come
later hold for the sessions after them, which then share an environment of their own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int32, c_void_p
from typing import NamedTuple

from . import _constants, _library
from ._library import Handle, borrowed, call, make

# Severities of ONNX Runtime: verbose, info, warning, error, fatal.
_LEVEL_OF_SEVERITY = (0, 1, 2, 3, 3)
# The numbers that Python's `logging` has for debug, info, warning and error.
_PYTHON_LEVELS = (10, 20, 30, 40)

_Callback = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


class LogRecord(NamedTuple):
    """A message of the library's log. Texts are empty where there is nothing to tell."""

    # 0: debug, 1: info, 2: warning, 3: error.
    level: int
    message: str
    # What it is about, such as "session" or "run".
    category: str
    # The session's option "log_id" (`SessionOptions.logid`), else the name of its model's file.
    session: str
    # The run's tag (`RunOptions.logid`).
    run: str
    node: str
    # Where in the library's source it was written.
    location: str


# In the order of the fields after the level.
_TEXTS = (
    _constants.LOG_TEXT_MESSAGE,
    _constants.LOG_TEXT_CATEGORY,
    _constants.LOG_TEXT_SESSION,
    _constants.LOG_TEXT_RUN,
    _constants.LOG_TEXT_NODE,
    _constants.LOG_TEXT_LOCATION,
)


class _Settings:
    """How the next environment is made."""

    def __init__(self) -> None:
        self.level = 2
        self.threads = 0
        self.threads_given = False
        self.callback: Callable[[LogRecord], None] | None = None


_settings = _Settings()


def _receive(record: int, _user: int | None) -> None:
    callback = _settings.callback
    if callback is not None:
        level = c_int32()
        call("log_record_level", record, byref(level))
        found = (borrowed("log_record_text", record, which) or "" for which in _TEXTS)
        callback(LogRecord(level.value, *found))


# The library may call it as late as it likes, so that it must never be freed.
_received = _Callback(_receive)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_received))


def _options() -> Handle | None:
    if _settings.callback is None and _settings.threads == 0:
        return None
    options = make("environment_options", "environment_options_create")
    call("environment_options_set", options, b"threads", str(_settings.threads).encode())
    if _settings.callback is not None:
        address = ctypes.cast(_received, c_void_p)
        call("environment_options_set_log_callback", options, _settings.level, address, None, None)
    return options


_library.environment_options = _options


def set_log_callback(callback: Callable[[int, str], None] | None, level: int = 2) -> None:
    """As `set_log_record_callback`, for a function that takes level and message alone."""
    if callback is None:
        set_log_record_callback(None, level)
        return
    set_log_record_callback(lambda record: callback(record.level, record.message), level)


def set_log_record_callback(callback: Callable[[LogRecord], None] | None, level: int = 2) -> None:
    """Gives `callback` each message of `level` and above (0: debug, 1: info, 2: warning, 3: error); None for
    none. Sessions and runs may have another level (`SessionOptions.log_severity_level`, `RunOptions.log_severity_level`).
    It is called from any thread. Sessions that are open keep what they have, but for None, which silences them all."""
    if level not in range(4):
        raise ValueError(f"level is {level!r}; allowed are 0 (debug), 1 (info), 2 (warning) and 3 (error)")
    _settings.level, _settings.callback = level, callback
    _library.forget_environment()


# What the callback of `set_default_logger_callback` is told where a message is of no session.
_LOGID = "Default"


def set_default_logger_callback(
    callback: Callable[[int, str, str, str, str], None] | None, severity: int = 2
) -> None:
    """As `set_log_callback`, with ONNX Runtime's form of the function: `callback(severity, category, logid,
    code_location, message)`."""
    if severity not in range(5):
        raise ValueError(f"severity is {severity!r}; allowed are 0 (verbose) to 4 (fatal)")
    if callback is None:
        set_log_record_callback(None)
        return

    def receive(record: LogRecord) -> None:
        logid = ":".join(name for name in (record.session, record.run) if name)
        callback(record.level, record.category, logid or _LOGID, record.location, record.message)

    set_log_record_callback(receive, _LEVEL_OF_SEVERITY[severity])


def _to_logging(record: LogRecord) -> None:
    # Slow to import, and seldom needed.
    import logging

    logging.getLogger("rukh").log(_PYTHON_LEVELS[record.level], record.message)


def set_default_logger_severity(severity: int) -> None:
    """Verbose (0) and info (1) send messages of this severity and above to the logger "rukh" of Python's
    `logging`. Warning (2), error (3) and fatal (4) end that. A callback of `set_log_callback` stays, and gets
    what the severity lets through."""
    if severity not in range(5):
        raise ValueError(f"severity is {severity!r}; allowed are 0 (verbose) to 4 (fatal)")
    callback = None if _settings.callback is _to_logging else _settings.callback
    if callback is None and severity < 2:
        import logging

        # The library selects; the logger must not take anything away.
        logging.getLogger("rukh").setLevel(logging.DEBUG)
        callback = _to_logging
    level = _LEVEL_OF_SEVERITY[severity]
    if callback is not _settings.callback or (callback is not None and level != _settings.level):
        set_log_record_callback(callback, level)


def set_default_logger_verbosity(verbosity: int) -> None:
    """Taken for compatibility: the severity alone decides."""


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """The threads that sessions share, the calling one included; 0 for all that the process may use. Nodes
    run one after the other, so the second number has no effect. Sessions must then be made with
    `SessionOptions.use_per_session_threads` set to False, as in ONNX Runtime."""
    if intra_op_num_threads < 0:
        raise ValueError(f"intra_op_num_threads is {intra_op_num_threads}; allowed are 0 and above")
    _settings.threads_given = True
    if intra_op_num_threads != _settings.threads:
        _settings.threads = intra_op_num_threads
        _library.forget_environment()


def are_threads_global() -> bool:
    """Whether `set_global_thread_pool_sizes` was called."""
    return _settings.threads_given
