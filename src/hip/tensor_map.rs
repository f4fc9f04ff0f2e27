//! Tensor maps: how a tensor lies in memory, as NVIDIA's engine for copies of tiles (sm_90) is told.

use std::ffi::{c_int, c_void};

use libloading::Library;

use super::symbols::{Code, find};

/// Bytes of a map as kernels get it.
pub(crate) const TENSOR_MAP_BYTES: usize = 128;

/// The numbers of a tensor, each of which comes as 0 from beyond its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Numbers {
    F16,
    BF16,
    F32,
}

impl Numbers {
    /// Numbers of half precision.
    pub(crate) fn half(bf16: bool) -> Numbers {
        if bf16 { Numbers::BF16 } else { Numbers::F16 }
    }
}

/// How a tensor lies in memory, and which part of it a copy takes. Dimensions begin with the innermost one, whose numbers
/// are neighbours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorMap {
    pub(crate) numbers: Numbers,
    /// Whether packs of 16 bytes change places within lines of 128 bytes, by the line's number; the innermost side of a part
    /// is no longer than a line then.
    pub(crate) swizzled: bool,
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

    /// The map of such a tensor at this address, which must be a multiple of 16.
    pub(super) fn encode(&self, map: &TensorMap, address: u64) -> Result<[u8; TENSOR_MAP_BYTES], Code> {
        /// `CU_TENSOR_MAP_DATA_TYPE_…`
        const FLOAT16: c_int = 6;
        const FLOAT32: c_int = 7;
        const BFLOAT16: c_int = 9;
        /// `CU_TENSOR_MAP_SWIZZLE_NONE`, `…_SWIZZLE_128B`
        const SWIZZLES: [c_int; 2] = [0, 3];
        /// `CU_TENSOR_MAP_INTERLEAVE_NONE`, `…_L2_PROMOTION_L2_256B`, `…_OOB_FILL_NONE`: zeros beyond the end.
        const FORM: [c_int; 3] = [0, 3, 0];
        /// `CUDA_ERROR_INVALID_VALUE`
        const INVALID_VALUE: Code = 1;

        let mut opaque = Opaque([0; TENSOR_MAP_BYTES]);
        let ty = match map.numbers {
            Numbers::F16 => FLOAT16,
            Numbers::BF16 => BFLOAT16,
            Numbers::F32 => FLOAT32,
        };
        let rank = map.sizes.len();
        let (sizes, strides) = (map.sizes.as_ptr(), map.strides.as_ptr());
        let at: *const c_void = std::ptr::without_provenance(address as usize);
        let [interleave, promotion, fill] = FORM;
        let swizzle = SWIZZLES[usize::from(map.swizzled)];
        let whole = map.strides.len() + 1 == rank;
        let code = match &map.part {
            Part::Box(sides) if whole && sides.len() == rank => {
                let steps = vec![1u32; rank];
                // SAFETY: the lists have `rank` entries, that of strides one less; the address is looked at as a
                // number alone.
                unsafe {
                    (self.tiled)(
                        &mut opaque,
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
            Part::Windows { begin, end, steps, channels, count } if whole && rank == 4 => {
                let steps = [1, steps[0], steps[1], 1];
                // SAFETY: as above; corners have two entries, for a rank of 4.
                unsafe {
                    (self.im2col)(
                        &mut opaque,
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
            _ => INVALID_VALUE,
        };
        if code == 0 { Ok(opaque.0) } else { Err(code) }
    }
}
