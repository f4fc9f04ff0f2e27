"""Compiled models: files that open without optimising the model and without packing its weights."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from ctypes import byref, c_char_p, c_int32, c_uint64, c_void_p
from typing import Any, NamedTuple

from ._constants import (
    ARTIFACT_OPTIMAL,
    ARTIFACT_WORKS,
    ERROR_CANCELLED,
)
from ._library import Handle, call, environment, make, text
from ._providers import Choice, Provider
from .options import SessionOptions, add_providers

_Progress = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_uint64, c_uint64)

_MAGIC = b"\x8frukh\r\n\x1a"


class Verdict(NamedTuple):
    """Whether an artifact suits: `fitness` is "optimal", "works" (compiling it again would make it better) or "unfit"."""

    fitness: str
    reason: str


def compile_model(
    model: str | os.PathLike[str] | bytes,
    output: str | os.PathLike[str],
    *,
    targets: str | Iterable[str] = "native",
    weights: str = "used",
    shapes: Iterable[Mapping[str, int]] = (),
    tuning_files: Iterable[str | os.PathLike[str]] = (),
    sess_options: SessionOptions | None = None,
    providers: Sequence[Provider] | None = None,
    progress: Callable[[str, int, int], Any] | None = None,
) -> None:
    """Compiles the model file `model`, or its bytes, to the artifact `output`, which `InferenceSession` opens in its place.

    `targets`: "cpu", GPUs by their machine codes ("gfx1100", "sm_90"), "all", or "native" for this machine's; GPUs need not
    be there. `weights`: "used" keeps those that the programs read, "all" also keeps the model's, so that any processor can
    pack them, "external" reads from the model's own files what they have. `shapes`: dimensions by name, for a further
    program each. `tuning_files`: results of tuning for GPUs among the targets. `providers`: their options matter, where
    they choose a precision. `progress` is called with what is done, the number of steps that are done and of all steps; what
    it raises ends compiling, and is raised here.
    """
    options = make("compile_options", "compile_options_create")
    names = targets if isinstance(targets, str) else ",".join(targets)
    listed = ";".join(",".join(f"{name}={int(size)}" for name, size in shape.items()) for shape in shapes)
    files = [os.fsencode(file) for file in tuning_files]
    if wrong := [file for file in files if b";" in file]:
        raise ValueError(
            f"tuning_files: {os.fsdecode(wrong[0])!r} has a semicolon, which stands between names; rename the file"
        )
    if files:
        call("compile_options_set", options, b"tuning_files", b";".join(files))
    for key, value in (("targets", names), ("weights", weights), ("shapes", listed)):
        call("compile_options_set", options, key.encode(), value.encode())
    raised: list[BaseException] = []

    def tell(_user: int, step: bytes, done: int, total: int) -> int:
        try:
            if progress is not None:
                progress(step.decode(), done, total)
        except BaseException as error:
            raised.append(error)
            return ERROR_CANCELLED
        return 0

    callback = _Progress(tell)
    address = ctypes.cast(callback, c_void_p)
    call("compile_options_set_progress", options, address, None, None)
    session_options = _session_options(sess_options, providers)
    try:
        if isinstance(model, bytes):
            given = (model, len(model), session_options, options, os.fsencode(output))
            call("compile_model_from_memory", environment(), *given)
        else:
            call(
                "compile_model",
                environment(),
                os.fsencode(model),
                session_options,
                options,
                os.fsencode(output),
            )
    except Exception:
        if raised:
            raise raised[0] from None
        raise


class Artifact:
    """A compiled model, to ask about. Opening it reads and checks all of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._handle = make("artifact", "artifact_open", environment(), os.fsencode(path))

    @property
    def info(self) -> dict[str, Any]:
        """What it holds: library, targets, sources, programs, parts."""
        found: dict[str, Any] = json.loads(text("artifact_info", self._handle))
        return found

    def check(
        self, sess_options: SessionOptions | None = None, providers: Sequence[Provider] | None = None
    ) -> Verdict:
        """Whether it suits this machine, for a session with these options and providers."""
        verdict = c_int32()
        reason = text(
            "artifact_check", self._handle, _session_options(sess_options, providers), byref(verdict)
        )
        words = {ARTIFACT_OPTIMAL: "optimal", ARTIFACT_WORKS: "works"}
        return Verdict(words.get(verdict.value, "unfit"), reason)


def is_artifact(source: str | os.PathLike[str] | bytes) -> bool:
    """Whether a file, or bytes, begin as a compiled model does."""
    if isinstance(source, bytes):
        return source.startswith(_MAGIC)
    try:
        with open(source, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _session_options(options: SessionOptions | None, providers: Sequence[Provider] | None) -> Handle:
    options = options if options is not None else SessionOptions()
    handle = options._handle()
    for name, size in options._dimensions.items():
        call("session_options_set", handle, f"dim.{name}".encode(), str(size).encode())
    add_providers(handle, Choice(providers or options._wanted(), None))
    return handle
