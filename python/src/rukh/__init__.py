"""rukh: runs ONNX models on AMD GPUs, NVIDIA GPUs and any CPU.

Scripts for ONNX Runtime need only another import:

    import rukh as ort

    session = ort.InferenceSession("model.onnx")
    outputs = session.run(None, {"input": array})

So do programs that import onnxruntime themselves, with `sys.modules["onnxruntime"] = rukh` before.
"""

from . import _alias, capi
from ._errors import (
    CancelledError,
    DeviceError,
    FileError,
    ForkedError,
    InternalError,
    InvalidArgumentError,
    InvalidDataError,
    InvalidHandleError,
    InvalidInputError,
    InvalidModelError,
    NoModelFileError,
    NotFoundError,
    OutOfMemoryError,
    PoisonedError,
    RukhError,
    UnknownNameError,
    UnsupportedError,
)
from ._providers import (
    get_all_providers,
    get_available_providers,
)
from .adapters import (
    AdapterFormat,
    LoraAdapter,
)
from .artifacts import (
    Artifact,
    Verdict,
    compile_model,
)
from .binding import (
    Completion,
    IOBinding,
)
from .capi.native import (
    SessionIOBinding,
)
from .compiler import (
    ModelCompiler,
    ModelPackage,
    ModelPackageComponentContext,
    ModelPackageContext,
    ModelPackageOptions,
    ModelPackageWriteMode,
    OrtEpContextData,
    OrtEpContextDataBuffer,
    OrtExternalInitializerInfo,
    register_execution_provider_library,
    unregister_execution_provider_library,
)
from .description import (
    ModelMetadata,
    NodeArg,
    OrtEpAssignedNode,
    OrtEpAssignedSubgraph,
    Placement,
)
from .devices import (
    Device,
    OrtArenaCfg,
    OrtDevice,
    OrtEpDevice,
    OrtHardwareDevice,
    OrtMemoryInfo,
    create_and_register_allocator,
    create_and_register_allocator_v2,
    get_devices,
    get_ep_devices,
)
from .enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtCompileApiFlags,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtExecutionProviderDevicePolicy,
    OrtHardwareDeviceType,
    OrtMemoryInfoDeviceType,
    OrtMemType,
    OrtSparseFormat,
)
from .external import (
    ExternalMemory,
)
from .inference import (
    InferenceSession,
)
from .information import (
    ORT_VERSION,
    RUKH_VERSION,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    print_debug_info,
    report,
    set_seed,
    thread_count,
)
from .logs import (
    LogRecord,
    set_default_logger_callback,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_log_callback,
    set_log_record_callback,
)
from .memory import (
    FourierPlanCache,
    empty_cache,
    memory_info,
    memory_snapshot,
    memory_stats,
    memory_summary,
    record_memory_history,
    reset_peak_memory_stats,
)
from .operators import (
    AttributeType,
    Operator,
    Required,
    operator,
)
from .options import (
    SessionOptions,
)
from .run_options import (
    RunOptions,
)
from .sparse import (
    SparseTensor,
)
from .streams import (
    OrtSyncStream,
)
from .tuning import (
    tune,
)
from .value import (
    OrtValue,
    Value,
    copy_tensors,
)

_alias.install()

# What programs compare with versions of ONNX Runtime; RUKH_VERSION is the library's own.
__version__ = ORT_VERSION
__author__ = "rukh"

# As ONNX Runtime's package has them.
package_name, version, cuda_version = capi.onnxruntime_validation.get_package_name_and_version_info()


def __getattr__(name: str) -> object:
    return _alias.tool(name)


__all__ = [
    "FourierPlanCache",
    "ORT_VERSION",
    "RUKH_VERSION",
    "AdapterFormat",
    "Artifact",
    "AttributeType",
    "CancelledError",
    "Completion",
    "Device",
    "DeviceError",
    "ExecutionMode",
    "ExecutionOrder",
    "ExternalMemory",
    "FileError",
    "ForkedError",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "InternalError",
    "InvalidArgumentError",
    "InvalidDataError",
    "InvalidHandleError",
    "InvalidInputError",
    "InvalidModelError",
    "LogRecord",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "ModelPackage",
    "ModelPackageComponentContext",
    "ModelPackageContext",
    "ModelPackageOptions",
    "ModelPackageWriteMode",
    "NoModelFileError",
    "NodeArg",
    "NotFoundError",
    "Operator",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtCompileApiFlags",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpAssignedNode",
    "OrtEpAssignedSubgraph",
    "OrtEpContextData",
    "OrtEpContextDataBuffer",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtExternalInitializerInfo",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtSyncStream",
    "OrtValue",
    "OutOfMemoryError",
    "Placement",
    "PoisonedError",
    "Required",
    "RukhError",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "UnknownNameError",
    "UnsupportedError",
    "Value",
    "capi",
    "compile_model",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "disable_telemetry_events",
    "empty_cache",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_devices",
    "get_ep_devices",
    "get_version_string",
    "has_collective_ops",
    "memory_info",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "operator",
    "preload_dlls",
    "print_debug_info",
    "record_memory_history",
    "register_execution_provider_library",
    "report",
    "reset_peak_memory_stats",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_log_callback",
    "set_log_record_callback",
    "set_seed",
    "thread_count",
    "tune",
    "unregister_execution_provider_library",
]
