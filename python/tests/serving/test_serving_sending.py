"""Requests that are sent again: what is a reason to, for how long, and what a stream has of it. Replicas are made up."""

import asyncio
import time

import pytest
import rukh
from ray.exceptions import ActorUnavailableError, RayTaskError
from ray.serve.exceptions import BackPressureError
from rukh.serve.errors import DeadlineError, RequestError, ServingError, UnavailableError
from rukh.serve.sending import Deadline, cause_of, send, stream


class Reply:
    """What a handle's call gives: a value, an error, or nothing for so many seconds."""

    def __init__(self, what):
        self._what = what
        self.cancelled = False

    def __await__(self):
        return self._wait().__await__()

    async def _wait(self):
        if isinstance(self._what, float):
            await asyncio.sleep(self._what)
        if isinstance(self._what, Exception):
            raise self._what
        return self._what

    def cancel(self):
        self.cancelled = True


class Given(Reply):
    """A call's whose reply is an error."""

    async def _wait(self):
        return self._what


class Pieces(Reply):
    """A streaming call's: pieces, and an error where one is."""

    def __init__(self, pieces):
        super().__init__(None)
        self._pieces = iter(pieces)

    async def __anext__(self):
        piece = next(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        if isinstance(piece, Exception):
            raise piece
        return piece


def lost():
    return ActorUnavailableError("gone", b"0" * 16)


def of_replica(error):
    return RayTaskError("infer", "traceback", error).as_instanceof_cause()


def sent(replies, seconds=5.0):
    """The reply, and why the request was sent again."""
    reasons = []
    deadline = Deadline("m", seconds, reasons.append)
    made = iter(replies)
    return asyncio.run(send(deadline, lambda: next(made))), reasons, deadline.attempts


def test_a_lost_replica_is_a_reason_to_send_again():
    replies = [Reply(lost()), Reply(of_replica(rukh.DeviceError("lost"))), Reply("answer")]
    assert sent(replies) == ("answer", ["ActorUnavailableError", "DeviceError"], 3)


def test_errors_that_are_given_are_as_those_that_are_raised():
    assert sent([Given(rukh.DeviceError("lost")), Reply("answer")]) == ("answer", ["DeviceError"], 2)


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize(
    "error", [RequestError("wrong"), rukh.InvalidDataError("99"), ValueError("a defect")]
)
def test_what_the_model_says_is_not(error, raised):
    with pytest.raises(type(error)) as found:
        sent([Reply(of_replica(error)) if raised else Given(error)])
    assert str(found.value) == str(error)
    assert cause_of(of_replica(error)) is error


def test_a_full_line_is_told_at_once():
    with pytest.raises(UnavailableError, match="too many requests in line"):
        sent([Reply(BackPressureError(5, 4))])


def test_the_deadline_ends_waiting_and_cancels():
    reply = Reply(30.0)
    started = time.monotonic()
    with pytest.raises(DeadlineError, match='model "m" did not answer within 0.2 s'):
        sent([reply], 0.2)
    assert time.monotonic() - started < 5
    assert reply.cancelled


def test_the_deadline_ends_sending_again():
    with pytest.raises(
        UnavailableError, match=r'no replica of model "m" .* within 0.3 s; .*ActorUnavailableError'
    ):
        sent((Reply(lost()) for _ in range(1000)), 0.3)


def streamed(*calls):
    made = iter([Pieces(pieces) for pieces in calls])

    async def collect():
        return [piece async for piece in stream(Deadline("m", 5.0, lambda _: None), lambda: next(made))]

    return asyncio.run(collect())


def test_a_stream_goes_on_where_it_was():
    whole = [("ab", None), ("c", None), ("d", None), ("", "token")]
    assert streamed(whole) == whole
    assert streamed([*whole[:2], lost()], whole) == whole
    # Pieces need not be cut alike.
    assert streamed([("a", None), lost()], [lost()], whole) == [("a", None), ("b", None), *whole[1:]]
    assert streamed([*whole[:3], lost()], whole) == whole


def test_a_stream_that_would_be_another_text_ends_with_an_error():
    with pytest.raises(ServingError, match="generates another text"):
        streamed([("ab", None), lost()], [("ax", None)])
    with pytest.raises(ServingError, match="generates another text"):
        streamed([("ab", None), lost()], [("x", None)])
    with pytest.raises(ServingError, match="generates another text"):
        streamed([("abc", None), lost()], [("ab", "token")])
