"""Where the nodes of a session run."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_void_p

from . import _constants
from ._library import Handle, borrowed, call, count, make
from .description import Placement

_Callback = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p)

# In the order of the fields.
_TEXTS = (
    _constants.PLACEMENT_NODE,
    _constants.PLACEMENT_OPERATOR,
    _constants.PLACEMENT_PROVIDER,
    _constants.PLACEMENT_REASON,
)


def of(session: Handle) -> list[Placement]:
    """The placement of each node, in the order in which they run."""
    found: list[Placement] = []
    raised: list[BaseException] = []

    def add(placement: int, _user: int | None) -> int:
        try:
            node, operator, provider, reason = (
                borrowed("placement_text", placement, which) or "" for which in _TEXTS
            )
            device = make("device", "placement_device", placement)
            found.append(Placement(node, operator, provider, reason, count("device_id", device)))
        except BaseException as error:
            raised.append(error)
            return _constants.ERROR_CANCELLED
        return _constants.OK

    callback = _Callback(add)
    try:
        call("session_for_each_placement", session, ctypes.cast(callback, c_void_p), None)
    except Exception:
        if raised:
            raise raised[0] from None
        raise
    return found
