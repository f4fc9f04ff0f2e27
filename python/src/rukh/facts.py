"""What a session tells of itself."""

from __future__ import annotations

import json
from ctypes import byref, c_char_p, c_int64, c_uint64
from typing import Any

from . import _constants
from ._library import Handle, borrowed, call, count, make, text

_LOAD_COUNTERS = {
    "mapped_bytes": _constants.LOAD_MAPPED_BYTES,
    "read_bytes": _constants.LOAD_READ_BYTES,
    "copied_bytes": _constants.LOAD_COPIED_BYTES,
    "packed_bytes": _constants.LOAD_PACKED_BYTES,
    "copied_weights": _constants.LOAD_COPIED_WEIGHTS,
    "shared_bytes": _constants.LOAD_SHARED_BYTES,
}


def plan(session: Handle) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(text("session_plan", session))
    return told


def opsets(session: Handle) -> dict[str, int]:
    found = {}
    for index in range(count("session_opset_count", session)):
        domain, version = c_char_p(), c_int64()
        call("session_opset", session, index, byref(domain), byref(version))
        found[(domain.value or b"").decode()] = version.value
    return found


def load_counters(session: Handle) -> dict[str, int]:
    counters = {}
    for name, which in _LOAD_COUNTERS.items():
        value = c_uint64()
        call("session_load_counter", session, which, byref(value))
        counters[name] = value.value
    return counters


def device(session: Handle) -> tuple[str, int]:
    handle = make("device", "session_device", session)
    return borrowed("device_provider", handle) or "", count("device_id", handle)
