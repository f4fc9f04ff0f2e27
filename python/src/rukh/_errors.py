"""The exceptions: one class for each status code of the C API."""

from __future__ import annotations


class RukhError(Exception):
    """What the library refused or failed at; `str(error)` is the library's message.

    `code` is the number of the status (`RUKH_ERROR_…` in rukh.h).
    """

    code: int = -1


class InvalidArgumentError(RukhError, ValueError):
    """An argument has a value that is not allowed."""

    code = 1


class InvalidHandleError(RukhError):
    """An object is of another kind or was destroyed."""

    code = 2


class NotFoundError(RukhError, LookupError):
    """A file or a name is not there."""

    code = 3


class FileError(RukhError):
    """The operating system refused to read or write."""

    code = 4


class InvalidModelError(RukhError):
    """The model breaks the ONNX standard."""

    code = 5


class UnsupportedError(RukhError):
    """The model is valid, but something in it cannot be run."""

    code = 6


class InvalidInputError(RukhError, ValueError):
    """An input is missing or has the wrong type, rank or dimensions."""

    code = 7


class InvalidDataError(RukhError, ValueError):
    """The data given are not allowed: an index out of range, an integer division by zero."""

    code = 8


class OutOfMemoryError(RukhError, MemoryError):
    """Host or device memory is exhausted."""

    code = 9


class CancelledError(RukhError):
    """The run was cancelled."""

    code = 10


class DeviceError(RukhError):
    """There is no device, or it failed."""

    code = 11


class PoisonedError(RukhError):
    """An earlier failure left the object unusable."""

    code = 12


class ForkedError(RukhError):
    """The object was made before `fork`, and this is the child."""

    code = 13


class InternalError(RukhError):
    """A defect of the library; the message says where."""

    code = 14


_BY_CODE: dict[int, type[RukhError]] = {
    cls.code: cls
    for cls in (
        InvalidArgumentError,
        InvalidHandleError,
        NotFoundError,
        FileError,
        InvalidModelError,
        UnsupportedError,
        InvalidInputError,
        InvalidDataError,
        OutOfMemoryError,
        CancelledError,
        DeviceError,
        PoisonedError,
        ForkedError,
        InternalError,
    )
}


def error_for(status: int, message: str) -> RukhError:
    """The exception for a status. A later library may know codes that this package does not."""
    cls = _BY_CODE.get(status, RukhError)
    error = cls(message)
    error.code = status
    return error
