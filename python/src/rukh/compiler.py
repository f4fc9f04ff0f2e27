"""ONNX Runtime's compiler of models, and its names for what is not here: packages, libraries of providers.

Those can be imported and made; what would have an effect is an error that says what is missing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from ._errors import FileError, UnsupportedError
from .artifacts import compile_model
from .enums import GraphOptimizationLevel, OrtCompileApiFlags, _Enum
from .options import SessionOptions


class OrtExternalInitializerInfo:
    """Where the bytes of a weight are in a file."""

    def __init__(self, filepath: str, file_offset: int, byte_size: int) -> None:
        self.filepath, self.file_offset, self.byte_size = filepath, file_offset, byte_size


class ModelCompiler:
    """Compiles a model to an artifact for the devices of this machine; `rukh.compile_model` takes others too.

    Its bytes are no ONNX file, and `InferenceSession` opens them in the model's place. What ONNX Runtime says of nodes and
    weights beside them (`embed_compiled_data_into_model`, the external initializers) has no meaning here: one file holds
    all. Of `flags` ERROR_IF_OUTPUT_FILE_EXISTS has an effect; nodes are always compiled, those of the CPU too.
    """

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Callable[..., OrtExternalInitializerInfo | None] | None = None,
    ) -> None:
        if not isinstance(input_model_path_or_bytes, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(input_model_path_or_bytes)}'")
        if not input_model_path_or_bytes:
            what = "bytes array" if isinstance(input_model_path_or_bytes, bytes) else "path"
            raise ValueError(f"Input model {what} is empty")
        if external_initializers_file_path and not isinstance(
            external_initializers_file_path, (str, os.PathLike)
        ):
            kind = type(external_initializers_file_path)
            raise TypeError(f"Output external initializer filepath is of unexpected type '{kind}'")
        if external_initializers_file_path and get_initializer_location_func is not None:
            raise ValueError(
                "Cannot initialize ModelCompiler with both `external_initializers_file_path` "
                "and `get_initializer_location_func`"
            )
        self._options = sess_options
        self._model = input_model_path_or_bytes
        self._flags = OrtCompileApiFlags(flags)

    def compile_to_file(self, output_model_path: str | None = None) -> None:
        """Without a path, into the model's folder, under its name with "_ctx.onnx" as ONNX Runtime has it."""
        if output_model_path is None:
            if isinstance(self._model, bytes):
                raise ValueError("a model from bytes has no path; give output_model_path")
            output_model_path = os.path.splitext(os.fspath(self._model))[0] + "_ctx.onnx"
        if self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS and os.path.exists(output_model_path):
            raise FileError(
                f"{os.fspath(output_model_path)!r} exists already, and ERROR_IF_OUTPUT_FILE_EXISTS is set; remove the "
                f"file, or leave out the flag"
            )
        compile_model(self._model, output_model_path, sess_options=self._options)

    def compile_to_bytes(self) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.rukh")
            compile_model(self._model, path, sess_options=self._options)
            with open(path, "rb") as file:
                return file.read()

    def compile_to_stream(self, write_function: Callable[[bytes], None]) -> None:
        write_function(self.compile_to_bytes())

    def set_ep_context_binary_information(
        self, output_directory: str | os.PathLike[str], model_name: str
    ) -> None:
        """Taken for compatibility."""

    def set_ep_context_data_write_func(self, write_func: Callable[..., None]) -> None:
        """Taken for compatibility."""

    def clear_ep_context_data_write_func(self) -> None:
        """Taken for compatibility."""


class OrtEpContextData:
    """Data of a compiled model; `ModelCompiler` would give it."""


class OrtEpContextDataBuffer:
    """Data for a compiled model; a session would ask for it."""


class ModelPackageWriteMode(_Enum):
    """How a package of models is written."""

    PRESERVE = 0
    DENSE = 1


class ModelPackage:
    """A folder with variants of a model for several providers, to be written."""

    def __init__(self) -> None:
        raise _no_packages("")

    @staticmethod
    def open(package_root: str | os.PathLike[str], *_: Any, **__: Any) -> ModelPackage:
        raise _no_packages(package_root)


class ModelPackageContext:
    """Such a folder, to be read."""

    def __init__(self, package_root: str | os.PathLike[str]) -> None:
        raise _no_packages(package_root)


class ModelPackageOptions:
    """How a variant is selected."""

    def __init__(self, sess_options: SessionOptions) -> None:
        self.sess_options = sess_options


class ModelPackageComponentContext:
    """A variant that was selected; `ModelPackageContext` would give it."""


def _no_packages(root: str | os.PathLike[str]) -> UnsupportedError:
    return UnsupportedError(
        f"model package {os.fspath(root)!r}: packages of models are neither read nor written; open a model in it "
        f"with InferenceSession"
    )


def register_execution_provider_library(registration_name: str, library_path: str | os.PathLike[str]) -> None:
    raise UnsupportedError(
        f"provider library {os.fspath(library_path)!r}: the library loads none; its own providers are built in"
    )


def unregister_execution_provider_library(registration_name: str) -> None:
    raise UnsupportedError(f"provider library {registration_name!r} was not registered")
