//! The functions of a HIP runtime that rukh calls, each listed once with its name on both platforms.
//!
//! HIP's module API and the CUDA driver API agree in the parameters of what rukh needs, so that one
//! table of function pointers serves both; what differs is in `amd.rs` and `nvidia.rs`.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

use super::Platform;

/// `hipError_t` or `CUresult`; 0 is success.
pub(super) type Code = c_int;
/// `hipStream_t`, `hipEvent_t`, `hipModule_t` … and their CUDA namesakes.
pub(super) type Raw = *mut c_void;
/// An address in device memory.
pub(super) type Address = u64;

macro_rules! functions {
    (
        required { $($name:ident: fn($($arg:ty),*) = $amd:literal, $nvidia:literal;)* }
        optional { $($(#[$only:meta])* $oname:ident: fn($($oarg:ty),*) = $oamd:literal, $onvidia:literal;)* }
    ) => {
        /// The functions of one runtime library.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> Code,)*
            $($(#[$only])* pub(super) $oname: Option<unsafe extern "C" fn($($oarg),*) -> Code>,)*
        }

        impl Functions {
            /// Looks every function up; `Err` names the first required one that is missing.
            pub(super) fn load(library: &Library, platform: Platform) -> Result<Self, &'static str> {
                let amd = platform == Platform::Amd;
                Ok(Functions {
                    $($name: find(library, if amd { $amd } else { $nvidia })?,)*
                    $($(#[$only])* $oname: find(library, if amd { $oamd } else { $onvidia }).ok(),)*
                })
            }
        }
    };
}

functions! {
    required {
        init: fn(c_uint) = "hipInit", "cuInit";
        driver_version: fn(*mut c_int) = "hipRuntimeGetVersion", "cuDriverGetVersion";
        device_count: fn(*mut c_int) = "hipGetDeviceCount", "cuDeviceGetCount";
        device_name: fn(*mut c_char, c_int, c_int) = "hipDeviceGetName", "cuDeviceGetName";
        device_memory: fn(*mut usize, c_int) = "hipDeviceTotalMem", "cuDeviceTotalMem_v2";
        device_pci: fn(*mut c_char, c_int, c_int) = "hipDeviceGetPCIBusId", "cuDeviceGetPCIBusId";
        memory_info: fn(*mut usize, *mut usize) = "hipMemGetInfo", "cuMemGetInfo_v2";
        malloc: fn(*mut Address, usize) = "hipMalloc", "cuMemAlloc_v2";
        free: fn(Address) = "hipFree", "cuMemFree_v2";
        copy_to_device: fn(Address, *const c_void, usize, Raw) = "hipMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2";
        copy_to_host: fn(*mut c_void, Address, usize, Raw) = "hipMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2";
        copy_on_device: fn(Address, Address, usize, Raw) = "hipMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2";
        set_bytes: fn(Address, u8, usize, Raw) = "hipMemsetD8Async", "cuMemsetD8Async";
        stream_create: fn(*mut Raw, c_uint) = "hipStreamCreateWithFlags", "cuStreamCreate";
        stream_destroy: fn(Raw) = "hipStreamDestroy", "cuStreamDestroy_v2";
        stream_synchronize: fn(Raw) = "hipStreamSynchronize", "cuStreamSynchronize";
        stream_wait: fn(Raw, Raw, c_uint) = "hipStreamWaitEvent", "cuStreamWaitEvent";
        event_create: fn(*mut Raw, c_uint) = "hipEventCreateWithFlags", "cuEventCreate";
        event_record: fn(Raw, Raw) = "hipEventRecord", "cuEventRecord";
        event_query: fn(Raw) = "hipEventQuery", "cuEventQuery";
        event_synchronize: fn(Raw) = "hipEventSynchronize", "cuEventSynchronize";
        event_destroy: fn(Raw) = "hipEventDestroy", "cuEventDestroy_v2";
        module_load: fn(*mut Raw, *const c_void) = "hipModuleLoadData", "cuModuleLoadData";
        module_unload: fn(Raw) = "hipModuleUnload", "cuModuleUnload";
        module_function: fn(*mut Raw, Raw, *const c_char) = "hipModuleGetFunction", "cuModuleGetFunction";
        launch: fn(
            Raw, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Raw, *mut *mut c_void,
            *mut *mut c_void
        ) = "hipModuleLaunchKernel", "cuLaunchKernel";
    }
    optional {
        kernel_driver_version: fn(*mut c_int) = "hipDriverGetVersion", "cuDriverGetVersion";
        event_elapsed: fn(*mut f32, Raw, Raw) = "hipEventElapsedTime", "cuEventElapsedTime";
        stream_device: fn(Raw, *mut c_int) = "hipStreamGetDevice", "cuStreamGetDevice";
        stream_create_with_priority: fn(*mut Raw, c_uint, c_int) =
            "hipStreamCreateWithPriority", "cuStreamCreateWithPriority";
        stream_priorities: fn(*mut c_int, *mut c_int) =
            "hipDeviceGetStreamPriorityRange", "cuCtxGetStreamPriorityRange";
        #[cfg(test)]
        stream_priority: fn(Raw, *mut c_int) = "hipStreamGetPriority", "cuStreamGetPriority";
        import_memory: fn(*mut Raw, *const c_void) = "hipImportExternalMemory", "cuImportExternalMemory";
        map_imported: fn(*mut Address, Raw, *const c_void) =
            "hipExternalMemoryGetMappedBuffer", "cuExternalMemoryGetMappedBuffer";
        destroy_imported: fn(Raw) = "hipDestroyExternalMemory", "cuDestroyExternalMemory";
        host_malloc: fn(*mut *mut c_void, usize, c_uint) = "hipHostMalloc", "cuMemHostAlloc";
        host_free: fn(*mut c_void) = "hipHostFree", "cuMemFreeHost";
        capture_begin: fn(Raw, c_int) = "hipStreamBeginCapture", "cuStreamBeginCapture_v2";
        capture_end: fn(Raw, *mut Raw) = "hipStreamEndCapture", "cuStreamEndCapture";
        graph_destroy: fn(Raw) = "hipGraphDestroy", "cuGraphDestroy";
        graph_instantiate: fn(*mut Raw, Raw, u64) = "hipGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags";
        graph_launch: fn(Raw, Raw) = "hipGraphLaunch", "cuGraphLaunch";
        graph_exec_destroy: fn(Raw) = "hipGraphExecDestroy", "cuGraphExecDestroy";
        graph_exec_kernel: fn(Raw, Raw, *const c_void) =
            "hipGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2";
        exchange_capture_mode: fn(*mut c_int) =
            "hipThreadExchangeStreamCaptureMode", "cuThreadExchangeStreamCaptureMode";
        is_capturing: fn(Raw, *mut c_int) = "hipStreamIsCapturing", "cuStreamIsCapturing";
        capture_info: fn(Raw, *mut c_int, *mut u64, *mut Raw, *mut *const Raw, *mut usize) =
            "hipStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v2";
    }
}

/// A function of the library under this name, at whatever type the caller stores it.
pub(super) fn find<F: Copy>(library: &Library, name: &'static str) -> Result<F, &'static str> {
    // SAFETY: each caller stores the symbol at the type that HIP's and CUDA's headers declare for it.
    unsafe { library.get::<F>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| name)
}
