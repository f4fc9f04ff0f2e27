"""Serving models on many machines, by Ray Serve.

    from ray import serve
    from rukh.serve import Model, application

    serve.run(application({"digits": Model(path="digits.onnx")}))

answers at http://127.0.0.1:8000/v2/models/digits/infer, as the Open Inference Protocol has it. docs/serving.md tells
the rest. Needs Ray: `pip install rukh[serve]`.
"""

from __future__ import annotations

from .errors import (
    DeadlineError,
    OptionError,
    RequestError,
    ServingError,
    TooLargeError,
    UnavailableError,
    UnknownModelError,
)
from .options import Model, TextModel

# What needs Ray, and the file that it is in. What is above does not, and is tested without.
_WITH_RAY = {
    "application": "deployments",
    "build": "deployments",
    "deployment": "deployments",
    "deployment_options": "deployments",
    "ModelReplica": "replica",
    "TextReplica": "text_replica",
}


def __getattr__(name: str) -> object:
    if name not in _WITH_RAY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        module = importlib.import_module(f".{_WITH_RAY[name]}", __name__)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("ray", "starlette"):
            raise
        raise ImportError(
            f"rukh.serve.{name} needs Ray Serve, and {error.name} is not installed: pip install rukh[serve]"
        ) from error
    return getattr(module, name)


__all__ = [
    "DeadlineError",
    "Model",
    "ModelReplica",
    "OptionError",
    "RequestError",
    "ServingError",
    "TextModel",
    "TextReplica",
    "TooLargeError",
    "UnavailableError",
    "UnknownModelError",
    "application",
    "build",
    "deployment",
    "deployment_options",
]
