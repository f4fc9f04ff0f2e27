"""Openings of sessions that are under way, for who cancels them."""

from __future__ import annotations

import threading
import weakref

from ._library import Handle, call


class Openings:
    """The library's options that were made of an object and its copies, which are cancelled together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._handles: weakref.WeakSet[Handle] = weakref.WeakSet()

    def add(self, handle: Handle) -> Handle:
        """Lets what is opened with options be cancelled as long as they live."""
        with self._lock:
            self._handles.add(handle)
            if self._cancelled:
                call("session_options_cancel", handle)
        return handle

    def cancel(self, cancelled: bool) -> None:
        """Ends the openings that go on and those to come, or lets them be."""
        with self._lock:
            self._cancelled = bool(cancelled)
            for handle in list(self._handles):
                call("session_options_cancel" if cancelled else "session_options_reset", handle)

    def __reduce__(self) -> tuple[type[Openings], tuple[()]]:
        """A deep copy, and what another process gets, has openings of its own."""
        return Openings, ()
