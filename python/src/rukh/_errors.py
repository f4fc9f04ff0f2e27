"""The exceptions: one class for each status code of the C API.

Each is also what ONNX Runtime raises in its place, so that `except InvalidArgument` and the like, with the
names of `onnxruntime.capi.onnxruntime_pybind11_state`, catch it.
"""

from __future__ import annotations

from . import _constants
from . import _ort_errors as ort


class RukhError(RuntimeError):
    """What the library refused or failed at; `str(error)` is the library's message.

    `code` is the number of the status (`RUKH_ERROR_…` in rukh.h).
    """

    code: int = -1


class InvalidArgumentError(RukhError, ort.InvalidArgument, ValueError):
    """An argument has a value that is not allowed."""

    code = _constants.ERROR_INVALID_ARGUMENT


class InvalidHandleError(RukhError, ort.Fail):
    """An object is of another kind or was destroyed."""

    code = _constants.ERROR_INVALID_HANDLE


class NotFoundError(RukhError, LookupError):
    """A file or a name is not there."""

    code = _constants.ERROR_NOT_FOUND


class NoModelFileError(NotFoundError, ort.NoSuchFile):
    """The model's file, or one that it refers to, is not there."""


class UnknownNameError(NotFoundError, ort.InvalidArgument, ValueError):
    """The model has no input or output of this name."""


class FileError(RukhError, ort.Fail):
    """The operating system refused to read or write."""

    code = _constants.ERROR_IO


class InvalidModelError(RukhError, ort.InvalidGraph, ort.InvalidProtobuf, ort.Fail):
    """The model breaks the ONNX standard."""

    code = _constants.ERROR_INVALID_MODEL


class UnsupportedError(RukhError, ort.NotImplemented):
    """The model is valid, but something in it cannot be run."""

    code = _constants.ERROR_UNSUPPORTED


class InvalidInputError(RukhError, ort.InvalidArgument, ValueError):
    """An input is missing or has the wrong type, rank or dimensions."""

    code = _constants.ERROR_INVALID_INPUT


class InvalidDataError(RukhError, ort.InvalidArgument, ort.RuntimeException, ValueError):
    """The data given are not allowed: an index out of range, an integer division by zero."""

    code = _constants.ERROR_INVALID_DATA


class OutOfMemoryError(RukhError, ort.RuntimeException, MemoryError):
    """Host or device memory is exhausted."""

    code = _constants.ERROR_OUT_OF_MEMORY


class CancelledError(RukhError, ort.Fail):
    """The run was cancelled."""

    code = _constants.ERROR_CANCELLED


class DeviceError(RukhError, ort.EPFail):
    """There is no device, or it failed."""

    code = _constants.ERROR_DEVICE


class PoisonedError(RukhError, ort.RuntimeException):
    """An earlier failure left the object unusable."""

    code = _constants.ERROR_POISONED


class ForkedError(RukhError, ort.RuntimeException):
    """The object was made before `fork`, and this is the child."""

    code = _constants.ERROR_FORKED


class InternalError(RukhError, ort.RuntimeException):
    """A defect of the library; the message says where."""

    code = _constants.ERROR_INTERNAL


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
