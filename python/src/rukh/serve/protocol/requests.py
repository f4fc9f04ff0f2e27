"""Requests to run a model."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import RequestError
from . import tensors


@dataclass
class WantedOutput:
    """An output that the reply is to have; its elements in bytes, or in JSON."""

    name: str
    binary: bool


@dataclass
class InferRequest:
    """Inputs by name. `outputs`: None for all of them, then `binary` is how."""

    inputs: dict[str, np.ndarray]
    outputs: list[WantedOutput] | None = None
    binary: bool = False
    id: str | None = None
    timeout: float | None = None  # seconds that the client waits
    parameters: dict[str, Any] = field(default_factory=dict)

    def output_names(self) -> list[str] | None:
        return None if self.outputs is None else [output.name for output in self.outputs]

    def is_binary(self, output: str) -> bool:
        """Whether the reply has an output's elements in bytes."""
        return next((wanted.binary for wanted in self.outputs or () if wanted.name == output), self.binary)


def read_request(body: bytes, header_length: str | None = None) -> InferRequest:
    """The request of an HTTP body. `header_length`: what the header Inference-Header-Content-Length says, when there
    is one: so many bytes are JSON, and those of binary tensors follow."""
    length = _length(header_length, len(body))
    document = read_json(body[:length])
    request = InferRequest({}, id=_optional_text(document, "id"))
    request.parameters = read_parameters(document, "the request")
    request.timeout = read_timeout(request.parameters)
    request.binary = _flag(request.parameters, "binary_data_output", "the request")
    rest = memoryview(body)[length:]
    for entry in _entries(document, "inputs", needed=True):
        name = _name(entry, "input")
        if name in request.inputs:
            raise RequestError(f'input "{name}" is given twice')
        request.inputs[name], rest = _tensor(name, entry, rest)
    if len(rest):
        raise RequestError(f"{len(rest)} bytes follow the last binary input")
    if "outputs" in document:
        request.outputs = _outputs(document, request.binary)
    return request


# Half a character above U+FFFF, as JSON escapes it.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(text: bytes) -> dict[str, Any]:
    """The object that a body is."""
    try:
        decoded = str(text, "utf-8-sig")
        document = json.loads(decoded)
        if _SURROGATE.search(decoded):
            # Two of them are one character; one alone is none, which shows when it is to be written.
            json.dumps(document, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        alone = f"\\u{ord(error.object[error.start]):04x}"
        raise RequestError(
            f"the request has half a character, {alone}: allowed are texts that UTF-8 can have"
        ) from error
    except RecursionError as error:
        raise RequestError("the request is nested too deeply") from error
    except ValueError as error:
        raise RequestError(f"the request is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise RequestError(f"the request is a JSON {type(document).__name__}; allowed is an object")
    return document


def read_parameters(entry: dict[str, Any], where: str) -> dict[str, Any]:
    parameters = entry.get("parameters", {})
    if not isinstance(parameters, dict):
        raise RequestError(f"parameters of {where} is a {type(parameters).__name__}; allowed is an object")
    return parameters


def read_timeout(parameters: dict[str, Any]) -> float | None:
    """The parameter "timeout" in seconds; it is in microseconds, as Triton has it."""
    value = parameters.get("timeout")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise RequestError(f"the parameter timeout is {value!r}; allowed are whole microseconds above 0")
    return value / 1e6


def _length(header: str | None, available: int) -> int:
    if header is None:
        return available
    if not header.isascii() or not header.isdecimal() or int(header) > available:
        raise RequestError(
            f"the header Inference-Header-Content-Length is {header!r}; allowed are 0 to {available}, the bytes of the body"
        )
    return int(header)


def _tensor(name: str, entry: dict[str, Any], rest: memoryview) -> tuple[np.ndarray, memoryview]:
    """An input, and the bytes behind it."""
    where = f'input "{name}"'
    shape = _shape(where, entry.get("shape"))
    datatype = entry.get("datatype")
    parameters = read_parameters(entry, where)
    size = parameters.get("binary_data_size")
    if (size is None) == ("data" not in entry):
        raise RequestError(f"{where} needs either data or the parameter binary_data_size")
    if size is None:
        return tensors.of_list(where, datatype, shape, entry["data"]), rest
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(rest):
        raise RequestError(
            f"{where} has the binary_data_size {size!r}; allowed are 0 to {len(rest)}, the bytes left"
        )
    return tensors.of_bytes(where, datatype, shape, rest[:size]), rest[size:]


def _shape(where: str, shape: Any) -> list[int]:
    if not isinstance(shape, list) or any(
        isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape
    ):
        raise RequestError(f"{where} has the shape {shape!r}; allowed is a list of whole numbers from 0 on")
    return shape


def _outputs(document: dict[str, Any], binary: bool) -> list[WantedOutput] | None:
    wanted: list[WantedOutput] = []
    for entry in _entries(document, "outputs", needed=False):
        name = _name(entry, "output")
        if any(output.name == name for output in wanted):
            raise RequestError(f'output "{name}" is wanted twice')
        where = f'output "{name}"'
        parameters = read_parameters(entry, where)
        if parameters.get("classification"):
            raise RequestError(
                f"{where} has the parameter classification, which is not there: take the output itself"
            )
        wanted.append(WantedOutput(name, _flag(parameters, "binary_data", where, binary)))
    return wanted or None


def _entries(document: dict[str, Any], key: str, needed: bool) -> list[dict[str, Any]]:
    entries = document.get(key)
    if entries is None and not needed:
        return []
    if not isinstance(entries, list) or any(not isinstance(entry, dict) for entry in entries):
        raise RequestError(f'"{key}" must be a list of objects')
    return entries


def _name(entry: dict[str, Any], what: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str):
        raise RequestError(f"an {what} has the name {name!r}; allowed is a text")
    return name


def _optional_text(document: dict[str, Any], key: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise RequestError(f'"{key}" is {value!r}; allowed is a text')
    return value


def _flag(parameters: dict[str, Any], key: str, where: str, default: bool = False) -> bool:
    value = parameters.get(key, default)
    if not isinstance(value, bool):
        raise RequestError(f"the parameter {key} of {where} is {value!r}; allowed are true and false")
    return value
