//! Products of matrices by the platform's own libraries, where those are there: hipBLASLt and rocBLAS on AMD,
//! cuBLASLt on NVIDIA. Nothing needs them; they are alternatives that tuning may find faster.

mod lt;
mod lt_symbols;
mod rocblas;

use std::sync::Arc;

use crate::tensor::ElementType;

use super::error::{HipError, HipErrorKind};
use super::{Device, Platform, Stream};

/// A library on one device.
pub(crate) trait Blas: Send + Sync {
    /// Name and version: `hipblaslt-1.0.0`. A choice among its algorithms holds for that version.
    fn identity(&self) -> &str;

    /// Ways to compute a product with at most [`WORKSPACE`] bytes of temporary memory, the library's best
    /// guess first. None where the library does not take the product.
    fn algorithms(&self, gemm: &Gemm) -> Vec<Arc<dyn Algorithm>>;
}

/// A way to compute one product, ready for any operands.
pub(crate) trait Algorithm: Send + Sync {
    /// The library and what identifies the algorithm in its version: `hipblaslt:81d2…`.
    fn name(&self) -> &str;

    /// Bytes of temporary memory that it takes.
    fn workspace(&self) -> usize;

    /// Gives the product to a stream.
    ///
    /// # Safety
    /// The addresses must be those of memory on the stream's device that is as large as the product's
    /// description says, aligned as it says, until the stream has come past the product.
    unsafe fn multiply(&self, at: &GemmAddresses, stream: &Stream) -> Result<(), HipError>;
}

/// Temporary memory that an algorithm may take: what NVIDIA recommends for its largest devices.
pub(crate) const WORKSPACE: usize = 32 << 20;

/// `D = activation(alpha · op(A) · op(B) + beta · C + bias)` for each matrix of a batch. Matrices are
/// column-major, as these libraries were made for; D is m × n.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gemm {
    /// Of A and B.
    pub(crate) ty: ElementType,
    /// Of C, D and bias.
    pub(crate) out: ElementType,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    pub(crate) batch: usize,
    pub(crate) a: Stored,
    pub(crate) b: Stored,
    /// Of C too. Never transposed.
    pub(crate) d: Stored,
    pub(crate) alpha: f64,
    /// 0 when there is no C.
    pub(crate) beta: f64,
    /// Whether each row of D gets a number of its own added.
    pub(crate) bias: bool,
    pub(crate) relu: bool,
    /// Bytes that every operand's address is a multiple of.
    pub(crate) alignment: u32,
}

/// How a matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stored {
    /// Whether rows, not columns, are contiguous.
    pub(crate) transposed: bool,
    /// Elements between neighbouring columns (rows when transposed).
    pub(crate) leading: usize,
    /// Elements between matrices of the batch.
    pub(crate) step: usize,
}

/// Where the operands of a product are; 0 for those it does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GemmAddresses {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) c: u64,
    pub(crate) d: u64,
    pub(crate) bias: u64,
    pub(crate) workspace: u64,
}

/// The libraries that can be opened for a device, and why others cannot.
pub(crate) fn open(device: &Arc<Device>) -> (Vec<Arc<dyn Blas>>, Vec<String>) {
    let tried = match device.runtime.platform {
        Platform::Amd => vec![lt::open(device, &lt_symbols::HIPBLASLT), rocblas::open(device)],
        Platform::Nvidia => vec![lt::open(device, &lt_symbols::CUBLASLT)],
    };
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    for opened in tried {
        match opened {
            Ok(blas) => found.push(blas),
            Err(reason) => reasons.push(reason),
        }
    }
    (found, reasons)
}

/// A library's status as an error.
fn failed(library: &str, status: i32) -> HipError {
    HipError {
        call: "multiply matrices",
        kind: HipErrorKind::Other,
        text: format!("{library} answered status {status}"),
    }
}

/// FNV-1a of 64 bits: a short name for an algorithm's description.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ b as u64).wrapping_mul(0x100_0000_01b3))
}
