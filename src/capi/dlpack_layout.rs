//! The structs of DLPack, as C lays them out, and the element types it can name.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::error::{Result, fail};
use crate::tensor::ElementType::{self, *};

pub(super) const DL_CPU: i32 = 1;
/// Memory of a GPU, by the runtime that knows its addresses.
pub(super) const DL_CUDA: i32 = 2;
pub(super) const DL_ROCM: i32 = 10;
/// The CPU, and host memory that CUDA or ROCm pinned.
pub(super) const HOST_DEVICES: [i32; 3] = [DL_CPU, 3, 11];

/// The version that is written; any with this major is read.
const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };
const FLAG_READ_ONLY: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    major: u32,
    minor: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
pub struct DLDevice {
    pub(super) device_type: i32,
    pub(super) device_id: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

#[repr(C)]
pub struct DLTensor {
    pub(super) data: *mut c_void,
    pub(super) device: DLDevice,
    pub(super) ndim: i32,
    pub(super) dtype: DLDataType,
    pub(super) shape: *mut i64,
    /// In elements; NULL for a row-major tensor.
    pub(super) strides: *mut i64,
    pub(super) byte_offset: u64,
}

/// A tensor of another library, in the layout before DLPack 1.0.
#[repr(C)]
pub struct DLManagedTensor {
    tensor: DLTensor,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A tensor of another library, in the layout of DLPack 1.0.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    version: DLPackVersion,
    manager: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    flags: u64,
    tensor: DLTensor,
}

/// What both layouts have.
pub(super) trait Managed: Sized + 'static {
    fn new() -> Self;
    fn tensor(&self) -> &DLTensor;
    fn tensor_mut(&mut self) -> &mut DLTensor;
    fn owner(&self) -> *mut c_void;
    fn set_owner(&mut self, owner: *mut c_void, deleter: unsafe extern "C" fn(*mut Self));
    /// Whether this version knows the layout of what follows the version field.
    fn check_version(&self) -> Result<()>;
    fn is_read_only(&self) -> bool;

    /// Calls the tensor's deleter, if it has one.
    ///
    /// # Safety
    /// `managed` must be a live tensor, which is gone afterwards.
    unsafe fn release(managed: *mut Self);
}

const NO_TENSOR: DLTensor = DLTensor {
    data: null_mut(),
    device: DLDevice { device_type: DL_CPU, device_id: 0 },
    ndim: 0,
    dtype: DLDataType { code: 0, bits: 0, lanes: 0 },
    shape: null_mut(),
    strides: null_mut(),
    byte_offset: 0,
};

/// The members that both layouts have under one name.
macro_rules! common_members {
    () => {
        fn tensor(&self) -> &DLTensor {
            &self.tensor
        }

        fn tensor_mut(&mut self) -> &mut DLTensor {
            &mut self.tensor
        }

        fn owner(&self) -> *mut c_void {
            self.manager
        }

        fn set_owner(&mut self, owner: *mut c_void, deleter: unsafe extern "C" fn(*mut Self)) {
            self.manager = owner;
            self.deleter = Some(deleter);
        }

        unsafe fn release(managed: *mut Self) {
            // SAFETY: the tensor is alive by the caller's promise.
            if let Some(deleter) = unsafe { (*managed).deleter } {
                // SAFETY: the deleter of this tensor, called once.
                unsafe { deleter(managed) };
            }
        }
    };
}

impl Managed for DLManagedTensor {
    common_members!();

    fn new() -> Self {
        DLManagedTensor { tensor: NO_TENSOR, manager: null_mut(), deleter: None }
    }

    fn check_version(&self) -> Result<()> {
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        false
    }
}

impl Managed for DLManagedTensorVersioned {
    common_members!();

    fn new() -> Self {
        DLManagedTensorVersioned {
            version: VERSION,
            manager: null_mut(),
            deleter: None,
            flags: 0,
            tensor: NO_TENSOR,
        }
    }

    fn check_version(&self) -> Result<()> {
        let DLPackVersion { major, minor } = self.version;
        if major != VERSION.major {
            fail!(Unsupported, "managed: DLPack version {major}.{minor} is not supported; supported is 1");
        }
        Ok(())
    }

    fn is_read_only(&self) -> bool {
        self.flags & FLAG_READ_ONLY != 0
    }
}

/// DLPack's type codes: signed, unsigned, float, bfloat, complex, bool, and the 8-bit floats.
const DTYPES: [(ElementType, u8, u8); 20] = [
    (I8, 0, 8),
    (I16, 0, 16),
    (I32, 0, 32),
    (I64, 0, 64),
    (U8, 1, 8),
    (U16, 1, 16),
    (U32, 1, 32),
    (U64, 1, 64),
    (F16, 2, 16),
    (F32, 2, 32),
    (F64, 2, 64),
    (BF16, 4, 16),
    (C64, 5, 64),
    (C128, 5, 128),
    (Bool, 6, 8),
    (F8E4M3FN, 10, 8),
    (F8E4M3FNUZ, 11, 8),
    (F8E5M2, 12, 8),
    (F8E5M2FNUZ, 13, 8),
    (F8E8M0, 14, 8),
];

/// `None` for strings, and for types that DLPack packs several to a byte.
pub(super) fn dtype_of(element: ElementType) -> Option<DLDataType> {
    let (_, code, bits) = DTYPES.into_iter().find(|row| row.0 == element)?;
    Some(DLDataType { code, bits, lanes: 1 })
}

pub(super) fn element_of(dtype: DLDataType) -> Option<ElementType> {
    let row = DTYPES.into_iter().find(|row| (row.1, row.2, 1) == (dtype.code, dtype.bits, dtype.lanes))?;
    Some(row.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Against a C compiler's numbers for dlpack.h on a 64-bit machine.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn layouts_are_those_of_c() {
        assert_eq!((size_of::<DLTensor>(), align_of::<DLTensor>()), (48, 8));
        assert_eq!(offset_of!(DLTensor, dtype), 20);
        assert_eq!(offset_of!(DLTensor, byte_offset), 40);
        assert_eq!(size_of::<DLManagedTensor>(), 64);
        assert_eq!(offset_of!(DLManagedTensor, manager), 48);
        assert_eq!(size_of::<DLManagedTensorVersioned>(), 80);
        assert_eq!(offset_of!(DLManagedTensorVersioned, flags), 24);
        assert_eq!(offset_of!(DLManagedTensorVersioned, tensor), 32);
    }

    #[test]
    fn types_go_both_ways() {
        for element in ElementType::all() {
            if let Some(dtype) = dtype_of(element) {
                assert_eq!(element_of(dtype), Some(element));
                assert_eq!(usize::from(dtype.bits), element.size() * 8, "{element}");
            }
        }
        assert_eq!(element_of(DLDataType { code: 2, bits: 32, lanes: 4 }), None);
    }
}
