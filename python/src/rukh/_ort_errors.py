"""The exceptions of ONNX Runtime, by its names. The library's own derive from them; see `_errors`."""

from __future__ import annotations


class Fail(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """Something failed."""


class InvalidArgument(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """An argument, or what is fed to a run, is not allowed."""


class NoSuchFile(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """A file is not there."""


class NoModel(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """There is no model."""


class EngineError(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The engine failed."""


class RuntimeException(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """A run failed."""


class InvalidProtobuf(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The bytes are no model."""


class ModelLoaded(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """A model is loaded already."""


class NotImplemented(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The model needs what is not there."""


class InvalidGraph(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The model breaks the standard."""


class EPFail(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """A provider failed."""


class ModelLoadCanceled(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """Opening the model was cancelled."""


class ModelRequiresCompilation(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The model must be compiled first."""


class NotFound(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """A name is not there."""


class DeviceReset(Exception):  # noqa: N818 - the name is ONNX Runtime's
    """The device was reset."""
