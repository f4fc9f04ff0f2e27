"""Adapters, as LoRA fine-tuning makes them: named tensors that runs or sessions take in place of a model's inputs."""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from ctypes import byref, c_char_p, c_int32

import numpy as np

from . import _values
from ._errors import InvalidArgumentError
from ._library import Handle, addresses, call, count, make, text
from .value import Value


class LoraAdapter:
    """Tensors for a model's inputs, of a file; for `RunOptions.add_active_adapter` and `SessionOptions.add_adapter`."""

    __slots__ = ("_handle",)

    def __init__(self) -> None:
        self._handle: Handle | None = None

    def Load(self, file_path: str | os.PathLike[str]) -> None:
        """Reads the file, which is mapped: it must not be made shorter while something uses the adapter."""
        self._handle = make("adapter", "adapter_open", os.fsencode(file_path))

    def load_from_buffer(self, buffer: bytes) -> None:
        """Takes the bytes of such a file, without a copy."""
        content = np.frombuffer(buffer, np.uint8) if len(buffer) else np.empty(0, np.uint8)
        self._handle = make("adapter", "adapter_open_from_buffer", *_values.lent(content))


class AdapterFormat:
    """The contents of an adapter's file, to read, to change and to write."""

    def __init__(self, adapter: AdapterFormat | None = None) -> None:
        self._format_version = 1
        self._adapter_version = adapter._adapter_version if adapter else 0
        self._model_version = adapter._model_version if adapter else 0
        self._parameters: dict[str, Value] = dict(adapter._parameters) if adapter else {}

    @staticmethod
    def read_adapter(file_path: str | os.PathLike[str]) -> AdapterFormat:
        """Of a file, which is mapped: it must not be made shorter while a value of it is there."""
        handle = make("adapter", "adapter_open", os.fsencode(file_path))
        versions = c_int32(), c_int32(), c_int32()
        call("adapter_versions", handle, *(byref(version) for version in versions))
        read = AdapterFormat()
        read._format_version, read._adapter_version, read._model_version = (v.value for v in versions)
        for index in range(count("adapter_parameter_count", handle)):
            name = text("adapter_parameter_name", handle, index)
            read._parameters[name] = Value(make("value", "adapter_parameter_value", handle, index))
        return read

    def export_adapter(self, file_path: str | os.PathLike[str]) -> None:
        """Writes the file; what was there is replaced once all is written."""
        if wrong := [name for name in self._parameters if "\0" in name]:
            raise InvalidArgumentError(f"parameter {wrong[0]!r}: a name has no NUL")
        names = [name.encode() for name in self._parameters]
        values = [value._rukh_handle for value in self._parameters.values()]
        handle = make(
            "adapter",
            "adapter_create",
            (c_char_p * len(names))(*names),
            addresses(values),
            len(names),
            self._adapter_version,
            self._model_version,
        )
        call("adapter_save", handle, os.fsencode(file_path))

    def get_format_version(self) -> int:
        return self._format_version

    def set_adapter_version(self, adapter_version: int) -> None:
        self._adapter_version = _version("adapter_version", adapter_version)

    def get_adapter_version(self) -> int:
        return self._adapter_version

    def set_model_version(self, model_version: int) -> None:
        self._model_version = _version("model_version", model_version)

    def get_model_version(self) -> int:
        return self._model_version

    def set_parameters(self, params: Mapping[str, Value]) -> None:
        """Tensors on the host by the names of the inputs that they are for. An array becomes one."""
        taken = {name: value if isinstance(value, Value) else Value(value) for name, value in params.items()}
        self._parameters = taken

    def get_parameters(self) -> dict[str, Value]:
        """The tensors by name. Those of a file share its memory and must not be written."""
        return dict(self._parameters)


def handle_of(adapter: LoraAdapter) -> Handle | None:
    """What the library knows the adapter as; None for one that was not loaded, which has no tensors."""
    if not isinstance(adapter, LoraAdapter):
        raise TypeError(f"adapter: a LoraAdapter is needed; a {type(adapter).__name__} was given")
    return adapter._handle


def _version(name: str, number: int) -> int:
    number = operator.index(number)
    if not -(2**31) <= number < 2**31:
        raise InvalidArgumentError(f"{name}: {number} was given; allowed are numbers of 32 bits with a sign")
    return number
