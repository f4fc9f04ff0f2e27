//! Tensor maps: how a tensor lies in memory, as NVIDIA's engine for copies of tiles (sm_90) is told.

use std::ffi::{c_int, c_void};

use libloading::Library;

use super::error::HipError;
use super::runtime::{Device, Own};
use super::symbols::{Code, find};

/// Bytes of a map as kernels get it.
pub(crate) const TENSOR_MAP_BYTES: usize = 128;

/// How a tensor of half-precision numbers lies in memory, and which part of it a copy takes. Dimensions begin with the
/// innermost one, whose numbers are neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorMap {
    /// bfloat16 rather than float16.
    pub(crate) bf16: bool,
    pub(crate) sizes: Vec<u64>,
    /// Bytes between neighbours along each dimension but the innermost. Multiples of 16.
    pub(crate) strides: Vec<u64>,
    pub(crate) part: Part,
}

/// What one copy takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// So many neighbours along each dimension.
    Box(Vec<u32>),
    /// Of an image in NHWC: one tap of so many neighbouring windows, with so many channels.
    Windows {
        /// Where the first window begins, and where the last one begins before the image's end; x, then y.
        begin: [i32; 2],
        end: [i32; 2],
        /// How far windows lie apart; x, then y.
        steps: [u32; 2],
        channels: u32,
        count: u32,
    },
}

type Tiled = unsafe extern "C" fn(
    *mut Opaque,
    c_int,
    u32,
    *const c_void,
    *const u64,
    *const u64,
    *const u32,
    *const u32,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Code;

type Im2col = unsafe extern "C" fn(
    *mut Opaque,
    c_int,
    u32,
    *const c_void,
    *const u64,
    *const u64,
    *const c_int,
    *const c_int,
    u32,
    u32,
    *const u32,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Code;

/// `CUtensorMap`
#[repr(C, align(64))]
struct Opaque([u8; TENSOR_MAP_BYTES]);

/// The driver's functions that write tensor maps; it has them since CUDA 12.0.
pub(super) struct TensorMapFunctions {
    tiled: Tiled,
    im2col: Im2col,
}

impl TensorMapFunctions {
    pub(super) fn load(library: &Library) -> Option<Self> {
        Some(TensorMapFunctions {
            tiled: find(library, "cuTensorMapEncodeTiled").ok()?,
            im2col: find(library, "cuTensorMapEncodeIm2col").ok()?,
        })
    }
}

impl TensorMap {
    /// Whether maps can be made for this device.
    pub(crate) fn are_known(device: &Device) -> bool {
        matches!(&device.runtime.own, Own::Nvidia(own) if own.tensor_maps.is_some())
    }

    /// The map of such a tensor at this address, which must be a multiple of 16.
    pub(crate) fn encode(&self, device: &Device, address: u64) -> Result<[u8; TENSOR_MAP_BYTES], HipError> {
        /// `CU_TENSOR_MAP_DATA_TYPE_…`
        const FLOAT16: c_int = 6;
        const BFLOAT16: c_int = 9;
        /// `CU_TENSOR_MAP_INTERLEAVE_NONE`, `…_SWIZZLE_128B`, `…_L2_PROMOTION_L2_256B`, `…_OOB_FILL_NONE`: zeros
        /// beyond the end.
        const FORM: [c_int; 4] = [0, 3, 3, 0];
        /// `CUDA_ERROR_NOT_SUPPORTED`
        const NOT_SUPPORTED: Code = 801;

        let mut map = Opaque([0; TENSOR_MAP_BYTES]);
        let (ty, rank) = (if self.bf16 { BFLOAT16 } else { FLOAT16 }, self.sizes.len());
        let (sizes, strides) = (self.sizes.as_ptr(), self.strides.as_ptr());
        let at: *const c_void = std::ptr::without_provenance(address as usize);
        let [interleave, swizzle, promotion, fill] = FORM;
        let functions = match &device.runtime.own {
            Own::Nvidia(own) => own.tensor_maps.as_ref(),
            Own::Amd(_) => None,
        };
        let whole = self.strides.len() + 1 == rank;
        let code = match (functions, &self.part) {
            (Some(functions), Part::Box(sides)) if whole && sides.len() == rank => {
                let steps = vec![1u32; rank];
                // SAFETY: the lists have `rank` entries, that of strides one less; the address is looked at as a
                // number alone.
                unsafe {
                    (functions.tiled)(
                        &mut map,
                        ty,
                        rank as u32,
                        at,
                        sizes,
                        strides,
                        sides.as_ptr(),
                        steps.as_ptr(),
                        interleave,
                        swizzle,
                        promotion,
                        fill,
                    )
                }
            }
            (Some(functions), Part::Windows { begin, end, steps, channels, count }) if whole && rank == 4 => {
                let steps = [1, steps[0], steps[1], 1];
                // SAFETY: as above; corners have two entries, for a rank of 4.
                unsafe {
                    (functions.im2col)(
                        &mut map,
                        ty,
                        4,
                        at,
                        sizes,
                        strides,
                        begin.as_ptr(),
                        end.as_ptr(),
                        *channels,
                        *count,
                        steps.as_ptr(),
                        interleave,
                        swizzle,
                        promotion,
                        fill,
                    )
                }
            }
            _ => NOT_SUPPORTED,
        };
        device.check("describe a tensor", code)?;
        Ok(map.0)
    }
}
