"""What goes wrong while models are served. Each error has the HTTP status that the ingress answers with."""

from __future__ import annotations

from .._errors import (
    InvalidArgumentError,
    InvalidDataError,
    InvalidInputError,
    OutOfMemoryError,
    UnknownNameError,
    UnsupportedError,
)


class ServingError(RuntimeError):
    """The base of all; `str(error)` says what to do."""

    status = 500


class OptionError(ServingError, ValueError):
    """An option of a served model has a value that is not allowed, or does not fit the model."""


class RequestError(ServingError, ValueError):
    """A request is wrong: a name, a type, a shape, or what it is written in."""

    status = 400


class UnknownModelError(ServingError, LookupError):
    """There is no model, no version or no path of this name."""

    status = 404


class MethodError(ServingError):
    """The path is there, for other HTTP methods: `allowed`, as the header Allow has them."""

    status = 405

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message, allowed)
        self.allowed = allowed

    def __str__(self) -> str:
        return str(self.args[0])


class TooLargeError(ServingError):
    """A request has more bytes than are allowed."""

    status = 413


class UnavailableError(ServingError):
    """No replica could take the request."""

    status = 503


class DeadlineError(ServingError, TimeoutError):
    """A replica had the request and did not answer within the deadline."""

    status = 504


# What the library says of a request that another request need not share.
FAULTS_OF_A_REQUEST = (InvalidInputError, InvalidDataError, InvalidArgumentError, UnsupportedError)


def status_of(error: BaseException) -> int:
    """The HTTP status that answers an error."""
    if isinstance(error, ServingError):
        return error.status
    if isinstance(error, (*FAULTS_OF_A_REQUEST, UnknownNameError)):
        return RequestError.status
    if isinstance(error, OutOfMemoryError):
        return UnavailableError.status
    return ServingError.status
