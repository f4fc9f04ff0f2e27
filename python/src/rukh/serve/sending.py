"""Requests sent to replicas, and sent again when a replica dies with one in hand.

A run has no effect but its reply, so a request may be run twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from ray import exceptions
from ray.serve import exceptions as serve_exceptions

from .._errors import DeviceError, PoisonedError
from .errors import DeadlineError, ServingError, UnavailableError

# The replica, its process or its machine is gone, or what it made is.
_LOST = (
    exceptions.RayActorError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.TaskCancelledError,
    exceptions.LocalRayletDiedError,
    serve_exceptions.ReplicaUnavailableError,
)
# The replica's device is gone; another replica has another.
_DEVICE = (DeviceError, PoisonedError)

# A piece of a text, and why there are no more after it: "token", "length" or, while there are, None.
Piece = tuple[str, "str | None"]

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


class Deadline:
    """A moment by which a reply must be there, and what has happened to the request so far."""

    def __init__(self, model: str, seconds: float, retried: Callable[[str], None]) -> None:
        self._model = model
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._retried = retried
        self._pause = _FIRST_PAUSE
        self._lost: BaseException | None = None
        self.attempts = 1

    def left(self) -> float:
        """Seconds to the deadline; an error when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.passed()
        return left

    def renew(self) -> None:
        """Begins anew: a part of the reply is there."""
        self._end = time.monotonic() + self._seconds
        self._lost = None
        self._pause = _FIRST_PAUSE

    def passed(self) -> ServingError:
        """The error for a deadline that has passed."""
        if self._lost is not None:
            return UnavailableError(
                f'no replica of model "{self._model}" could answer within {self._seconds:g} s; the last one was lost: '
                f"{_short(self._lost)}"
            )
        return DeadlineError(f'model "{self._model}" did not answer within {self._seconds:g} s')

    async def again(self, error: BaseException) -> None:
        """Waits before the request is sent again, for longer each time; raises what is no reason to."""
        cause = cause_of(error)
        if isinstance(cause, serve_exceptions.BackPressureError):
            raise UnavailableError(f'model "{self._model}" has too many requests in line: {cause}') from None
        if isinstance(cause, serve_exceptions.DeploymentUnavailableError):
            raise UnavailableError(f'model "{self._model}" has no replicas: {cause}') from None
        if not isinstance(cause, (*_LOST, *_DEVICE)):
            raise cause from None
        self._lost = cause
        self.attempts += 1
        self._retried(type(cause).__name__)
        await asyncio.sleep(min(self._pause, self.left()))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


async def send(deadline: Deadline, call: Callable[[], Any]) -> Any:
    """The reply to `call`, which sends a request by a deployment handle. An error may be raised or given."""
    while True:
        left = deadline.left()
        response = call()
        try:
            reply = await _within(response, _awaited(response), left, deadline)
        except Exception as error:
            if isinstance(error, ServingError) and not isinstance(error, exceptions.RayTaskError):
                raise
            await deadline.again(error)
            continue
        if not isinstance(reply, Exception):
            return reply
        await deadline.again(reply)


async def stream(deadline: Deadline, call: Callable[[], Any]) -> AsyncGenerator[Piece, None]:
    """The pieces that `call` brings, which sends a request by a handle that streams.

    A request that is sent again gives its text from the start: what was passed on already is compared, and left out.
    The deadline is one for each piece.
    """
    sent = ""
    while True:
        deadline.left()
        response = call()
        replayed = ""
        try:
            while True:
                piece = await _within(response, response.__anext__(), deadline.left(), deadline)
                text, stop = piece
                replayed += text
                if not (replayed.startswith(sent) or (sent.startswith(replayed) and stop is None)):
                    raise ServingError("a replica was lost, and the next one generates another text")
                if len(replayed) > len(sent) or stop is not None:
                    fresh, sent = replayed[len(sent) :], replayed
                    yield fresh, stop
                    deadline.renew()
                if stop is not None:
                    return
        except StopAsyncIteration:
            return
        except Exception as error:
            if isinstance(error, ServingError) and not isinstance(error, exceptions.RayTaskError):
                raise
            await deadline.again(error)
        finally:
            response.cancel()


def cause_of(error: BaseException) -> BaseException:
    """What a replica raised, without Ray's wrapping."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(error, exceptions.RayTaskError) and isinstance(cause, BaseException) else error


async def _awaited(response: Any) -> Any:
    return await response


async def _within(response: Any, what: Any, seconds: float, deadline: Deadline) -> Any:
    try:
        return await asyncio.wait_for(what, seconds)
    except (asyncio.TimeoutError, asyncio.CancelledError) as error:  # noqa: UP041 - not the same in Python 3.10
        response.cancel()
        if isinstance(error, asyncio.TimeoutError):
            raise deadline.passed() from None
        raise


def _short(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
