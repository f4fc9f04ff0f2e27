"""The exceptions of ONNX Runtime, by its names. The library's own derive from them; see `_errors`."""

from __future__ import annotations


class Fail(Exception):
    """Something failed."""


class InvalidArgument(Exception):
    """An argument, or what is fed to a run, is not allowed."""


class NoSuchFile(Exception):
    """A file is not there."""


class NoModel(Exception):
    """There is no model."""


class EngineError(Exception):
    """The engine failed."""


class RuntimeException(Exception):
    """A run failed."""


class InvalidProtobuf(Exception):
    """The bytes are no model."""


class ModelLoaded(Exception):
    """A model is loaded already."""


class NotImplemented(Exception):
    """The model needs what is not there."""


class InvalidGraph(Exception):
    """The model breaks the standard."""


class EPFail(Exception):
    """A provider failed."""


class ModelLoadCanceled(Exception):
    """Opening the model was cancelled."""


class ModelRequiresCompilation(Exception):
    """The model must be compiled first."""


class NotFound(Exception):
    """A name is not there."""


class DeviceReset(Exception):
    """The device was reset."""
