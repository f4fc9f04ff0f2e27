"""Requests to generate text: the protocol's extension `generate`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..errors import RequestError
from .requests import read_json, read_parameters, read_timeout

# What a request may say of how tokens are chosen, with its type.
_OPTIONS: dict[str, tuple[type, ...]] = {
    "sample": (bool,),
    "temperature": (int, float),
    "top_k": (int,),
    "top_p": (int, float),
    "min_p": (int, float),
    "repetition_penalty": (int, float),
    "seed": (int,),
    "ignore_stop": (bool,),
}
_OTHERS = ("max_tokens", "timeout")


@dataclass
class TextRequest:
    """A text to continue, or the messages of a conversation to answer."""

    text: str | None = None
    messages: list[dict[str, Any]] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    timeout: float | None = None
    id: str | None = None


def read_text_request(body: bytes) -> TextRequest:
    """The request of an HTTP body."""
    document = read_json(body)
    text, messages, name = document.get("text_input"), document.get("messages"), document.get("id")
    if (text is None) == (messages is None):
        raise RequestError('the request needs either "text_input" or "messages"')
    if text is not None and not isinstance(text, str):
        raise RequestError(f'"text_input" is a {type(text).__name__}; allowed is a text')
    if text is not None and "\0" in text:
        raise RequestError('"text_input" has a character NUL, which no text may have')
    if messages is not None and (
        not isinstance(messages, list) or not messages or any(not isinstance(item, dict) for item in messages)
    ):
        raise RequestError('"messages" must be a list of objects with role and content')
    for index, message in enumerate(messages or ()):
        if not all(isinstance(message.get(key), str) for key in ("role", "content")):
            raise RequestError(f"message {index} is {message!r}; it needs role and content, which are texts")
    if name is not None and not isinstance(name, str):
        raise RequestError(f'"id" is {name!r}; allowed is a text')
    parameters = read_parameters(document, "the request")
    request = TextRequest(text, messages, id=name, timeout=read_timeout(parameters))
    request.max_tokens = _max_tokens(parameters)
    for key, value in parameters.items():
        if key in _OTHERS:
            continue
        if key not in _OPTIONS:
            raise RequestError(f'there is no parameter "{key}"; there are {", ".join([*_OTHERS, *_OPTIONS])}')
        kinds = _OPTIONS[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            allowed = " and ".join(
                {bool: "true and false", int: "whole numbers", float: "others"}[k] for k in kinds
            )
            raise RequestError(f"the parameter {key} is {value!r}; allowed are {allowed}")
        request.options[key] = value
    return request


def _max_tokens(parameters: dict[str, Any]) -> int | None:
    value = parameters.get("max_tokens")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise RequestError(f"the parameter max_tokens is {value!r}; allowed are whole numbers from 1 on")
    return value
