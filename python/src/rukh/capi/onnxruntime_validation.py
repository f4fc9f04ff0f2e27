"""Checks that ONNX Runtime makes of its own installation; there is nothing to check here."""

from __future__ import annotations

from ..information import ORT_VERSION


def check_distro_info() -> None:
    """Nothing to check."""


def check_training_module() -> tuple[bool, str, str]:
    """Whether this is a build for training, and the version of CUDA that it was made for."""
    return False, ORT_VERSION, ""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """Name, version, and the version of CUDA that it was made for."""
    return "onnxruntime", ORT_VERSION, ""
