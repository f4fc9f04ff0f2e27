//! What of rocBLAS is called, found in the library at run time.

use std::ffi::{c_char, c_int, c_void};

use libloading::Library;

use crate::hip::symbols::{Raw, find};

/// `rocblas_status`; 0 is success.
pub(super) type Status = c_int;

/// The type of a function with the parameters that both of the following have, and some more: handle, operations,
/// sizes, alpha, A, B, beta, C, D (of each matrix its type, leading dimension and stride), batch, compute type,
/// algorithm.
macro_rules! product {
    ($($more:ty),*) => {
        unsafe extern "C" fn(
            Raw,
            c_int,
            c_int,
            c_int,
            c_int,
            c_int,
            *const c_void,
            u64,
            c_int,
            c_int,
            i64,
            u64,
            c_int,
            c_int,
            i64,
            *const c_void,
            u64,
            c_int,
            c_int,
            i64,
            u64,
            c_int,
            c_int,
            i64,
            c_int,
            c_int,
            c_int,
            $($more),*
        ) -> Status
    };
}

/// `rocblas_gemm_strided_batched_ex`: solution, flags.
pub(super) type Multiply = product!(i32, u32);

/// `rocblas_gemm_strided_batched_ex_get_solutions`: flags, the list, its length.
pub(super) type Solutions = product!(u32, *mut c_int, *mut c_int);

pub(super) struct Functions {
    pub(super) create: unsafe extern "C" fn(*mut Raw) -> Status,
    pub(super) destroy: unsafe extern "C" fn(Raw) -> Status,
    pub(super) set_stream: unsafe extern "C" fn(Raw, Raw) -> Status,
    pub(super) set_workspace: unsafe extern "C" fn(Raw, u64, usize) -> Status,
    pub(super) start_size_query: unsafe extern "C" fn(Raw) -> Status,
    pub(super) stop_size_query: unsafe extern "C" fn(Raw, *mut usize) -> Status,
    pub(super) version: unsafe extern "C" fn(*mut c_char, usize) -> Status,
    pub(super) multiply: Multiply,
    /// Older libraries choose by themselves alone.
    pub(super) solutions: Option<Solutions>,
}

impl Functions {
    pub(super) fn load(library: &Library) -> Result<Self, &'static str> {
        Ok(Functions {
            create: find(library, "rocblas_create_handle")?,
            destroy: find(library, "rocblas_destroy_handle")?,
            set_stream: find(library, "rocblas_set_stream")?,
            set_workspace: find(library, "rocblas_set_workspace")?,
            start_size_query: find(library, "rocblas_start_device_memory_size_query")?,
            stop_size_query: find(library, "rocblas_stop_device_memory_size_query")?,
            version: find(library, "rocblas_get_version_string")?,
            multiply: find(library, "rocblas_gemm_strided_batched_ex")?,
            solutions: find(library, "rocblas_gemm_strided_batched_ex_get_solutions").ok(),
        })
    }
}
