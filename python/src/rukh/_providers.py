"""Names of providers: what ONNX Runtime calls them, what the library calls them, and which are there."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ._errors import InvalidArgumentError
from ._library import borrowed, count, environment, make, text

Provider: TypeAlias = "str | tuple[str, Mapping[str, Any]]"

CPU = "CPUExecutionProvider"
ROCM = "ROCMExecutionProvider"
MIGRAPHX = "MIGraphXExecutionProvider"
CUDA = "CUDAExecutionProvider"

# All that ONNX Runtime knows, from the most preferred to the least.
_ALL = (
    "NvTensorRTRTXExecutionProvider",
    "TensorrtExecutionProvider",
    CUDA,
    MIGRAPHX,
    ROCM,
    "OpenVINOExecutionProvider",
    "DnnlExecutionProvider",
    "VitisAIExecutionProvider",
    "QNNExecutionProvider",
    "NnapiExecutionProvider",
    "VSINPUExecutionProvider",
    "JsExecutionProvider",
    "CoreMLExecutionProvider",
    "ArmNNExecutionProvider",
    "ACLExecutionProvider",
    "DmlExecutionProvider",
    "RknpuExecutionProvider",
    "WebNNExecutionProvider",
    "WebGpuExecutionProvider",
    "XnnpackExecutionProvider",
    "CANNExecutionProvider",
    "TvmExecutionProvider",
    "StvmExecutionProvider",
    "SNPEExecutionProvider",
    "NupharExecutionProvider",
    "MLASExecutionProvider",
    "AzureExecutionProvider",
    CPU,
)

_LIBRARY_NAMES = {CPU: "cpu", "cpu": "cpu", ROCM: "hip", MIGRAPHX: "hip", "hip": "hip", CUDA: "hip"}

# Options of ONNX Runtime's providers for AMD and NVIDIA GPUs that choose between ways of its own.
_WITHOUT_EFFECT = frozenset(
    [
        "cudnn_conv_algo_search",
        "cudnn_conv_use_max_workspace",
        "cudnn_conv1d_pad_to_nc1d",
        "enable_cuda_graph",
        "use_tf32",
        "enable_skip_layer_norm_strict_mode",
        "prefer_nhwc",
        "use_ep_level_unified_stream",
        "sdpa_kernel",
        "fuse_conv_bias",
        "migraphx_fp8_enable",
        "migraphx_int8_enable",
        "migraphx_int8_calibration_table_name",
        "migraphx_int8_use_native_calibration_table",
        "migraphx_exhaustive_tune",
        "migraphx_mem_limit",
        "migraphx_arena_extend_strategy",
        "migraphx_max_dynamic_batch",
    ]
)
_RENAMED = {
    "migraphx_fp16_enable": "fp16_enable",
    "migraphx_bf16_enable": "bf16_enable",
    "trt_fp16_enable": "fp16_enable",
}


def get_all_providers() -> list[str]:
    """Every name of a provider that ONNX Runtime knows; those without a device here are skipped with a
    warning."""
    return list(_ALL)


def get_available_providers() -> list[str]:
    """The providers that have a device on this machine, the most preferred first."""
    return [name for name in _ALL if name in _LIBRARY_NAMES and not missing(name)]


def public_name(library_name: str) -> str:
    """ONNX Runtime's name of one of the library's providers."""
    if library_name == "cpu":
        return CPU
    return CUDA if _on_nvidia() else ROCM


def missing(name: str, device_id: str = "0") -> str:
    """Why a provider has no device on this machine, or none of this number; "" when it has one."""
    library_name = _LIBRARY_NAMES[name]
    reason = text("environment_provider_reason", environment(), library_name.encode())
    if reason or library_name == "cpu":
        return reason
    if name == CUDA and not _on_nvidia():
        return "no NVIDIA GPU is in use"
    if name in (ROCM, MIGRAPHX) and _on_nvidia():
        return "the GPUs in use are NVIDIA's"
    # What is no number the library refuses, and says what is allowed.
    if device_id.isdecimal() and int(device_id) >= (there := len(_gpus())):
        return f"device_id {device_id} is not there: this machine has {there} (0 to {there - 1})"
    return ""


def _gpus() -> list[str]:
    """The architectures of the GPUs in use."""
    found = []
    for index in range(count("environment_device_count", environment())):
        device = make("device", "environment_device", environment(), index)
        if borrowed("device_provider", device) == "hip":
            found.append(borrowed("device_arch", device) or "")
    return found


def _on_nvidia() -> bool:
    """Whether the GPUs in use are NVIDIA's."""
    return any(not arch.startswith("gfx") for arch in _gpus()[:1])


def check_and_normalize_provider_args(
    providers: Sequence[Provider] | None,
    provider_options: Sequence[Mapping[Any, Any]] | None,
    available_provider_names: Sequence[str],
) -> tuple[list[str], list[dict[str, str]]]:
    """The names and, for each, its options as texts. A name that is not available and one that comes twice
    give a warning; the latter is left out."""
    if providers is None:
        return [], []
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise ValueError(f"'providers' should be a sequence; {providers!r} was given")
    if provider_options is not None:
        if isinstance(provider_options, str) or not isinstance(provider_options, Sequence):
            raise ValueError(f"'provider_options' should be a sequence; {provider_options!r} was given")
        if len(providers) != len(provider_options):
            raise ValueError(
                "'providers' and 'provider_options' should be the same length if both are given; "
                f"{len(provider_options)} provider_options were given for {len(providers)} providers"
            )
        if not all(isinstance(provider, str) for provider in providers):
            raise ValueError(
                "Only string values for 'providers' are supported if 'provider_options' is given."
            )
        if not all(isinstance(options, Mapping) for options in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        pairs = list(zip(providers, provider_options))
    else:
        pairs = [_pair(provider) for provider in providers]
    found: dict[str, dict[str, str]] = {}
    for name, options in pairs:
        assert isinstance(name, str)
        if name not in available_provider_names:
            warnings.warn(
                f"Specified provider '{name}' is not in available provider names."
                f"Available providers: '{', '.join(available_provider_names)}'",
                stacklevel=2,
            )
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=2)
            continue
        found[name] = {str(key): _option_text(value) for key, value in options.items()}
    return list(found), list(found.values())


def _pair(provider: Any) -> tuple[str, Mapping[Any, Any]]:
    if isinstance(provider, str):
        return provider, {}
    if isinstance(provider, (tuple, list)) and len(provider) == 2:
        name, options = provider
        if isinstance(name, str) and isinstance(options, Mapping):
            return name, options
    raise ValueError(
        f"'providers' values must be either strings or (string, dict) tuples; {provider!r} was given"
    )


def _option_text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


class Choice:
    """What a session runs on: the providers as they were named, and as the library takes them."""

    def __init__(
        self,
        providers: Sequence[Provider] | None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
    ) -> None:
        with warnings.catch_warnings():
            # What is not there is told below, with the reason.
            warnings.filterwarnings("ignore", message="Specified provider")
            names, options = check_and_normalize_provider_args(providers, provider_options, ())
        self.names: list[str] = []
        self.options: list[tuple[str, dict[str, str]]] = []
        reasons: list[str] = []
        for name, given in zip(names, options):
            if name not in _ALL and name not in _LIBRARY_NAMES:
                raise InvalidArgumentError(
                    f"Unknown Provider Type: {name}; allowed are {', '.join(_ALL)}, 'cpu' and 'hip'"
                )
            self._add(name, given, reasons)
        if reasons and not self.options and any(_is_own(name) for name in names):
            # The library says what is wrong.
            name, given = next((n, g) for n, g in zip(names, options) if _is_own(n))
            self._take(name, given)
        else:
            for reason in reasons:
                warnings.warn(reason, stacklevel=4)
        self.on_device = any(library_name == "hip" for library_name, _ in self.options)

    def _add(self, name: str, given: dict[str, str], reasons: list[str]) -> None:
        if name not in _LIBRARY_NAMES:
            reasons.append(f"provider {name} is not in rukh and is skipped; here are {_here()}")
        elif reason := missing(name, given.get("device_id", "0")):
            reasons.append(f"provider {name} has no device and is skipped: {reason}")
        else:
            self._take(name, given)

    def _take(self, name: str, given: dict[str, str]) -> None:
        library_name = _LIBRARY_NAMES[name]
        public = (
            ROCM
            if name == "hip" and not _on_nvidia()
            else CUDA
            if name == "hip"
            else CPU
            if name == "cpu"
            else name
        )
        if public in self.names:
            return
        self.names.append(public)
        if library_name == "cpu":
            # Options of ONNX Runtime's arena, which is not here.
            given = {}
        if library_name not in (taken for taken, _ in self.options):
            kept = {
                _RENAMED.get(key, key): value for key, value in given.items() if key not in _WITHOUT_EFFECT
            }
            self.options.append((library_name, kept))

    def cpu_only(self) -> Choice:
        """The same without devices."""
        return Choice([CPU])

    @property
    def names_cpu(self) -> bool:
        return CPU in self.names

    def all_names(self) -> list[str]:
        """With the CPU, which comes last, wanted or not."""
        return self.names if self.names_cpu else [*self.names, CPU]


def _is_own(name: str) -> bool:
    """Whether this package stands for it when a device is there. CUDA is another library's name, which programs
    put into lists for every machine."""
    return _LIBRARY_NAMES.get(name) == "hip" and name != CUDA


def _here() -> str:
    return ", ".join(get_available_providers())
