"""Generating text with language models.

    from rukh.generation import Generator

    generator = Generator("folder")
    generator.chat([{"role": "user", "content": "What is 27 plus 58?"}])
    for piece in generator:
        print(piece, end="", flush=True)

The folder is as onnxruntime-genai's model builder writes it. Needs librukh_generate, which lies beside librukh.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from ctypes import byref, c_char_p, c_float, c_int32, c_size_t, c_void_p
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library
from ._library import _LETTERS, environment, error_of

# As in _library: parameters in a letter each, without the error at the end.
SIGNATURES = {
    "generator_options_create": "p",
    "generator_options_set": "pss",
    "generator_create": "pspp",
    "generator_create_beside": "ppp",
    "generator_set": "pss",
    "generator_encode": "psipzp",
    "generator_decode": "ppzpzp",
    "generator_append_text": "ps",
    "generator_append_tokens": "ppz",
    "generator_chat": "ps",
    "generator_next": "ppzp",
    "generator_text": "pzpzp",
    "generator_tokens": "pzpzp",
    "generator_scores": "pzpzp",
    "generator_stop": "pzp",
    "generator_rewind": "pz",
}

Options = str | int | float | bool


class Stop(IntEnum):
    """Why a sequence does not go on."""

    NO = 0
    TOKEN = 1
    LENGTH = 2


def _load() -> ctypes.CDLL:
    """The library that RUKH_GENERATE_LIBRARY names, else the one beside librukh, else one the system finds."""
    loaded = _library._library._name
    # Its functions are librukh's, which the linker finds where all libraries see them.
    ctypes.CDLL(loaded, mode=ctypes.RTLD_GLOBAL)
    beside = os.path.join(os.path.dirname(loaded), "librukh_generate.so")
    candidates = [beside] if os.path.exists(beside) else ["librukh_generate.so.0.1", "librukh_generate.so"]
    if named := os.environ.get("RUKH_GENERATE_LIBRARY"):
        candidates = [named]
    failures = []
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            failures.append(str(error))
    raise ImportError(
        "librukh_generate cannot be loaded (set RUKH_GENERATE_LIBRARY to its path): " + "; ".join(failures)
    )


def _declare(name: str, letters: str) -> Any:
    function = getattr(_generate, "rukh_" + name)
    function.restype = c_int32
    function.argtypes = [_LETTERS[letter] for letter in letters] + [c_void_p]
    return function


_generate = _load()
_functions = {name: _declare(name, letters) for name, letters in SIGNATURES.items()}
for _kind in ("generator", "generator_options"):
    getattr(_generate, f"rukh_{_kind}_destroy").restype = None
    getattr(_generate, f"rukh_{_kind}_destroy").argtypes = [c_void_p]


def _call(name: str, *arguments: Any) -> None:
    error = c_void_p()
    status = _functions[name](*arguments, byref(error))
    if status:
        raise error_of(status, error)


def _text(name: str, *arguments: Any) -> str:
    needed = c_size_t()
    _call(name, *arguments, None, 0, byref(needed))
    buffer = ctypes.create_string_buffer(needed.value)
    _call(name, *arguments, buffer, needed.value, byref(needed))
    return buffer.raw[: needed.value - 1].decode()


def _numbers(kind: Any, name: str, *arguments: Any) -> Any:
    count = c_size_t()
    _call(name, *arguments, None, 0, byref(count))
    found = (kind * count.value)()
    _call(name, *arguments, found, count.value, byref(count))
    return found


class Generator:
    """Sequences of tokens that a language model continues.

    `options` are those of docs/generate.md by name: `sequences`, `max_length`, `sample`, `temperature`, `top_k`,
    `top_p`, `min_p`, `repetition_penalty`, `seed`, `ignore_stop`, `chunk`, `share_buffer`. `provider` is "cpu" or
    "hip"; what stands in `provider_options` and `session_options` is passed on. A generator is used by one thread at
    a time.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        provider: str | None = None,
        provider_options: Mapping[str, Options] | None = None,
        session_options: Mapping[str, Options] | None = None,
        **options: Options,
    ) -> None:
        settings = dict(options)
        if provider is not None:
            settings["provider"] = provider
        settings |= {f"provider.{key}": value for key, value in (provider_options or {}).items()}
        settings |= {f"session.{key}": value for key, value in (session_options or {}).items()}
        self._environment = environment()
        self._open("generator_create", settings, self._environment, os.fsencode(folder))

    def _open(self, function: str, settings: Mapping[str, Options], *arguments: Any) -> None:
        self._handle = None
        self._sequences = int(settings.get("sequences", 1))
        made, handle = c_void_p(), c_void_p()
        _call("generator_options_create", byref(made))
        try:
            for key, value in settings.items():
                _call("generator_options_set", made, key.encode(), _value(value))
            _call(function, *arguments, made, byref(handle))
        finally:
            _generate.rukh_generator_options_destroy(made)
        self._handle = handle.value

    def beside(self, **options: Options) -> Generator:
        """Another generator of the same model, with sequences and caches of its own."""
        other = Generator.__new__(Generator)
        other._environment = self._environment
        other._open("generator_create_beside", options, self._handle)
        return other

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _generate.rukh_generator_destroy(self._handle)

    def set(self, **options: Options) -> None:
        """Changes how tokens are chosen."""
        for key, value in options.items():
            _call("generator_set", self._handle, key.encode(), _value(value))

    def encode(self, text: str, whole: bool = False) -> list[int]:
        """The tokens of a text; `whole`: of one that begins a sequence."""
        return list(_numbers(c_int32, "generator_encode", self._handle, _bytes(text), int(whole)))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        return _text("generator_decode", self._handle, (c_int32 * len(tokens))(*tokens), len(tokens))

    def append(self, what: str | Sequence[int]) -> None:
        """Appends a text or tokens to every sequence."""
        if isinstance(what, str):
            _call("generator_append_text", self._handle, _bytes(what))
        else:
            _call("generator_append_tokens", self._handle, (c_int32 * len(what))(*what), len(what))

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Makes every sequence a conversation, up to where an answer begins; what is there already stays."""
        _call("generator_chat", self._handle, _bytes(json.dumps(list(messages))))

    def next(self) -> list[int]:
        """Appends the next token to every sequence; -1 stands for one that had ended."""
        tokens = (c_int32 * self._sequences)()
        _call("generator_next", self._handle, tokens, self._sequences, None)
        return list(tokens)

    def text(self, sequence: int = 0) -> str:
        """The text of a sequence's generated tokens since the last call, in whole characters."""
        return _text("generator_text", self._handle, sequence)

    def tokens(self, sequence: int = 0) -> list[int]:
        """The tokens of a sequence, those of the prompt included."""
        return list(_numbers(c_int32, "generator_tokens", self._handle, sequence))

    def scores(self, sequence: int = 0) -> npt.NDArray[np.float32]:
        """The scores (logits) that a sequence's next token is chosen by."""
        return np.ctypeslib.as_array(_numbers(c_float, "generator_scores", self._handle, sequence))

    def stop(self, sequence: int = 0) -> Stop:
        """Whether a sequence goes on."""
        found = c_int32()
        _call("generator_stop", self._handle, sequence, byref(found))
        return Stop(found.value)

    def rewind(self, length: int) -> None:
        """Forgets the tokens of every sequence from `length` on."""
        _call("generator_rewind", self._handle, length)

    def __iter__(self) -> Iterator[str]:
        """Generates until the first sequence ends; gives its text piece by piece."""
        while self.stop() == Stop.NO:
            self.next()
            if piece := self.text():
                yield piece


def _bytes(text: str) -> c_char_p:
    if "\0" in text:
        raise ValueError("a text must not contain NUL")
    return c_char_p(text.encode())


def _value(value: Options) -> bytes:
    return str(int(value) if isinstance(value, bool) else value).encode()
