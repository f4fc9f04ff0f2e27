//! The functions and numbers of hipBLASLt and cuBLASLt, whose interfaces are alike in all but names and
//! numbers. From their headers `hipblaslt.h` and `cublasLt.h`.

use std::ffi::{c_int, c_void};

use libloading::Library;

use crate::hip::library::Names;
use crate::hip::symbols::{Raw, find};

/// `hipblasStatus_t` or `cublasStatus_t`; 0 is success.
pub(super) type Status = c_int;

macro_rules! functions {
    ($($name:ident: fn($($arg:ty),*) = $amd:literal, $nvidia:literal;)*) => {
        /// The functions of one library.
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($arg),*) -> Status,)*
        }

        impl Functions {
            /// Looks every function up; `Err` names the first that is missing.
            pub(super) fn load(library: &Library, amd: bool) -> Result<Self, &'static str> {
                Ok(Functions { $($name: find(library, if amd { $amd } else { $nvidia })?,)* })
            }
        }
    };
}

functions! {
    create: fn(*mut Raw) = "hipblasLtCreate", "cublasLtCreate";
    destroy: fn(Raw) = "hipblasLtDestroy", "cublasLtDestroy";
    layout_create: fn(*mut Raw, c_int, u64, u64, i64)
        = "hipblasLtMatrixLayoutCreate", "cublasLtMatrixLayoutCreate";
    layout_set: fn(Raw, c_int, *const c_void, usize)
        = "hipblasLtMatrixLayoutSetAttribute", "cublasLtMatrixLayoutSetAttribute";
    layout_destroy: fn(Raw) = "hipblasLtMatrixLayoutDestroy", "cublasLtMatrixLayoutDestroy";
    product_create: fn(*mut Raw, c_int, c_int) = "hipblasLtMatmulDescCreate", "cublasLtMatmulDescCreate";
    product_set: fn(Raw, c_int, *const c_void, usize)
        = "hipblasLtMatmulDescSetAttribute", "cublasLtMatmulDescSetAttribute";
    product_destroy: fn(Raw) = "hipblasLtMatmulDescDestroy", "cublasLtMatmulDescDestroy";
    preference_create: fn(*mut Raw) = "hipblasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceCreate";
    preference_set: fn(Raw, c_int, *const c_void, usize)
        = "hipblasLtMatmulPreferenceSetAttribute", "cublasLtMatmulPreferenceSetAttribute";
    preference_destroy: fn(Raw) = "hipblasLtMatmulPreferenceDestroy", "cublasLtMatmulPreferenceDestroy";
    find_algorithms: fn(Raw, Raw, Raw, Raw, Raw, Raw, Raw, c_int, *mut c_void, *mut c_int)
        = "hipblasLtMatmulAlgoGetHeuristic", "cublasLtMatmulAlgoGetHeuristic";
    multiply: fn(
        Raw, Raw, *const c_void, u64, Raw, u64, Raw, *const c_void, u64, Raw, u64, Raw, *const c_void, u64,
        usize, Raw
    ) = "hipblasLtMatmul", "cublasLtMatmul";
}

/// What tells the two libraries apart.
pub(super) struct Flavour {
    pub(super) name: &'static str,
    /// The environment variable that names the library's file.
    pub(super) file: &'static str,
    pub(super) names: Names,
    pub(super) amd: bool,
    /// `…_OP_N` and `…_OP_T`.
    pub(super) operation: [i32; 2],
    /// `…_COMPUTE_32F` and `…_COMPUTE_64F`.
    pub(super) compute: [i32; 2],
    pub(super) layout_batch: i32,
    pub(super) layout_step: i32,
    pub(super) transpose: [i32; 2],
    pub(super) epilogue: i32,
    pub(super) bias_pointer: i32,
    pub(super) bias_type: i32,
    /// The first of four preferences in order: least alignment of A, B, C and D.
    pub(super) alignment: Option<i32>,
    /// Bytes of an algorithm's description, which a record of the heuristic begins with.
    pub(super) algorithm: usize,
}

/// `…_MATMUL_PREF_MAX_WORKSPACE_BYTES`
pub(super) const PREFERENCE_WORKSPACE: i32 = 1;
/// `…_EPILOGUE_…`, to be combined.
pub(super) const EPILOGUE_NONE: u32 = 1;
pub(super) const EPILOGUE_RELU: u32 = 2;
pub(super) const EPILOGUE_BIAS: u32 = 4;

/// Its interface has these types and numbers since 0.6 (ROCm 6.0).
pub(super) const HIPBLASLT: Flavour = Flavour {
    name: "hipblaslt",
    file: "RUKH_HIPBLASLT_LIBRARY",
    names: Names {
        linux: &["libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"],
        windows: &["libhipblaslt.dll", "hipblaslt.dll"],
    },
    amd: true,
    operation: [111, 112],
    compute: [2, 7],
    layout_batch: 0,
    layout_step: 1,
    transpose: [0, 1],
    epilogue: 2,
    bias_pointer: 3,
    bias_type: 4,
    alignment: None,
    algorithm: 24,
};

/// The oldest hipBLASLt that is used, as it counts: 100000 a major version, 100 a minor one.
pub(super) const OLDEST_HIPBLASLT: c_int = 600;

pub(super) const CUBLASLT: Flavour = Flavour {
    name: "cublaslt",
    file: "RUKH_CUBLASLT_LIBRARY",
    names: Names {
        linux: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
        windows: &["cublasLt64_13.dll", "cublasLt64_12.dll"],
    },
    amd: false,
    operation: [0, 1],
    compute: [68, 70],
    layout_batch: 5,
    layout_step: 6,
    transpose: [3, 4],
    epilogue: 7,
    bias_pointer: 8,
    bias_type: 26,
    alignment: Some(5),
    algorithm: 64,
};
