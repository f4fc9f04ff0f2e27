"""Replies with the outputs of a model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..datatypes import DTYPES, datatype_of
from ..errors import RequestError
from .requests import InferRequest
from .tensors import to_bytes, to_list

HEADER = "Inference-Header-Content-Length"


def write_reply(
    model: str, request: InferRequest, outputs: Mapping[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """The body of a reply, and its headers. Numbers that are none are NaN, Infinity and -Infinity in JSON."""
    entries = []
    binaries = []
    for name, value in outputs.items():
        array = _array(model, name, value)
        entry: dict[str, Any] = {
            "name": name,
            "datatype": datatype_of(array.dtype),
            "shape": list(array.shape),
        }
        if request.is_binary(name):
            binaries.append(to_bytes(array))
            entry["parameters"] = {"binary_data_size": len(binaries[-1])}
        else:
            entry["data"] = to_list(array)
        entries.append(entry)
    document: dict[str, Any] = {"model_name": model, "model_version": "1", "outputs": entries}
    if request.id is not None:
        document["id"] = request.id
    text = json.dumps(document).encode()
    if not binaries:
        return text, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", HEADER: str(len(text))}
    return b"".join([text, *binaries]), headers


def _array(model: str, name: str, value: Any) -> np.ndarray:
    if not isinstance(value, (np.ndarray, np.generic)):
        raise RequestError(
            f'output "{name}" of model "{model}" is no tensor, and the protocol has nothing else: want other outputs'
        )
    array = np.asarray(value)
    if datatype_of(array.dtype) not in DTYPES:
        raise RequestError(
            f'output "{name}" of model "{model}" has elements of type {array.dtype}, which the protocol does not have'
        )
    return array
