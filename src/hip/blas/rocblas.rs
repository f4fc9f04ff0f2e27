//! Products by rocBLAS.

mod functions;

use std::ffi::{CStr, c_int};
use std::sync::{Arc, Mutex, PoisonError};

use crate::hip::error::HipError;
use crate::hip::library::Names;
use crate::hip::symbols::Raw;
use crate::hip::{Device, Platform, Stream, library};
use crate::tensor::ElementType;

use functions::{Functions, Status};

use super::{Algorithm, Blas, Gemm, GemmAddresses, WORKSPACE, failed};

/// The environment variable that names the library's file.
const FILE: &str = "RUKH_ROCBLAS_LIBRARY";

/// The newest first: ROCm 7, 6, 5.7, 5.
const NAMES: Names = Names {
    linux: &["librocblas.so.5", "librocblas.so.4", "librocblas.so.3", "librocblas.so.0", "librocblas.so"],
    windows: &["rocblas.dll"],
};

/// `rocblas_operation_none` and `…_transpose`.
const OPERATION: [c_int; 2] = [111, 112];
/// `rocblas_gemm_algo_standard` and `…_solution_index`.
const STANDARD: c_int = 0;
const SOLUTION_INDEX: c_int = 1;

/// Solutions that are tried, of hundreds that the library may have.
const MOST: usize = 32;

/// A handle of the library on a device.
struct Handle {
    functions: Functions,
    device: Arc<Device>,
    raw: Raw,
    identity: String,
    /// Held while the handle is used: its stream and workspace are its state.
    using: Mutex<()>,
}

// SAFETY: a handle may be used from any thread, and from one at a time, which `using` sees to.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: created by `open`, destroyed once.
            unsafe { (self.functions.destroy)(self.raw) };
        }
    }
}

struct RocBlas(Arc<Handle>);

/// Opens the library for a device; `Err` says why it cannot be used.
pub(super) fn open(device: &Arc<Device>) -> Result<Arc<dyn Blas>, String> {
    let opened = library::open_kernels(Platform::Amd, FILE, &NAMES)
        .map_err(|tried| format!("rocblas is not there: {tried}"))?;
    let path = opened.path.display().to_string();
    let functions =
        Functions::load(&opened.library).map_err(|function| format!("{path}: it has no {function}"))?;
    let _current = device.enter().map_err(|e| e.to_string())?;
    let (mut raw, mut version) = (std::ptr::null_mut(), [0u8; 128]);
    // SAFETY: the out pointer is valid, and the device is current.
    let status = unsafe { (functions.create)(&mut raw) };
    if status != 0 {
        return Err(format!("{path}: it cannot be used on this device (status {status})"));
    }
    // SAFETY: the buffer is one byte longer than told.
    unsafe { (functions.version)(version.as_mut_ptr().cast(), version.len() - 1) };
    let version = CStr::from_bytes_until_nul(&version).map_or("", |s| s.to_str().unwrap_or(""));
    // The function pointers must stay valid for as long as the process runs.
    std::mem::forget(opened.library);
    Ok(Arc::new(RocBlas(Arc::new(Handle {
        functions,
        device: device.clone(),
        raw,
        identity: format!("rocblas-{version}"),
        using: Mutex::default(),
    }))))
}

impl Blas for RocBlas {
    fn identity(&self) -> &str {
        &self.0.identity
    }

    fn algorithms(&self, gemm: &Gemm) -> Vec<Arc<dyn Algorithm>> {
        let Some(call) = Call::new(gemm) else { return Vec::new() };
        let call = Arc::new(call);
        let Ok(_current) = self.0.device.enter() else { return Vec::new() };
        let _using = self.0.using.lock().unwrap_or_else(PoisonError::into_inner);
        let indices = self.0.solutions(&call).into_iter().take(MOST).map(Some);
        let all = std::iter::once(None).chain(indices);
        all.filter_map(|solution| self.0.algorithm(&call, solution)).collect()
    }
}

/// A product as the library's functions take it.
struct Call {
    operation: [c_int; 2],
    /// m, n, k, batch.
    sizes: [c_int; 4],
    /// `rocblas_datatype` of A and B, of C and D, and of the sums.
    types: [c_int; 3],
    /// Of A, B and D.
    leading: [c_int; 3],
    step: [i64; 3],
    /// As the type of the sums has them: `f32`, or `f64`.
    alpha: [u8; 8],
    beta: [u8; 8],
    has_c: bool,
}

fn data_type(ty: ElementType) -> Option<c_int> {
    Some(match ty {
        ElementType::F16 => 150,
        ElementType::F32 => 151,
        ElementType::F64 => 152,
        ElementType::BF16 => 168,
        _ => return None,
    })
}

impl Call {
    /// `None` for what the library has no function for.
    fn new(gemm: &Gemm) -> Option<Self> {
        if gemm.bias || gemm.relu {
            return None;
        }
        let int = |n: usize| c_int::try_from(n).ok();
        let double = gemm.ty == ElementType::F64;
        let scalar = |x: f64| {
            let mut bytes = [0; 8];
            match double {
                true => bytes.copy_from_slice(&x.to_ne_bytes()),
                false => bytes[..4].copy_from_slice(&(x as f32).to_ne_bytes()),
            }
            bytes
        };
        let sums = if double { ElementType::F64 } else { ElementType::F32 };
        Some(Call {
            operation: [gemm.a, gemm.b].map(|stored| OPERATION[stored.transposed as usize]),
            sizes: [int(gemm.m)?, int(gemm.n)?, int(gemm.k)?, int(gemm.batch)?],
            types: [data_type(gemm.ty)?, data_type(gemm.out)?, data_type(sums)?],
            leading: [int(gemm.a.leading)?, int(gemm.b.leading)?, int(gemm.d.leading)?],
            step: [gemm.a, gemm.b, gemm.d].map(|stored| stored.step as i64),
            alpha: scalar(gemm.alpha),
            beta: scalar(gemm.beta),
            has_c: gemm.beta != 0.0,
        })
    }
}

impl Handle {
    /// The numbers of the solutions that fit; the lock is held and the device current.
    fn solutions(&self, call: &Call) -> Vec<c_int> {
        let Some(ask) = self.functions.solutions else { return Vec::new() };
        let ask = |list: *mut c_int, count: &mut c_int| {
            let ([m, n, k, batch], [ty, out, sums]) = (call.sizes, call.types);
            let ([a, b, d], [a_step, b_step, d_step]) = (call.leading, call.step);
            let [op_a, op_b] = call.operation;
            let (alpha, beta) = (call.alpha.as_ptr().cast(), call.beta.as_ptr().cast());
            // SAFETY: no operand is read, so their addresses need not be any; the list has room for what
            // `count` says, or is NULL to ask for the number.
            unsafe {
                ask(
                    self.raw,
                    op_a,
                    op_b,
                    m,
                    n,
                    k,
                    alpha,
                    0,
                    ty,
                    a,
                    a_step,
                    0,
                    ty,
                    b,
                    b_step,
                    beta,
                    0,
                    out,
                    d,
                    d_step,
                    0,
                    out,
                    d,
                    d_step,
                    batch,
                    sums,
                    SOLUTION_INDEX,
                    0,
                    list,
                    count,
                )
            }
        };
        let mut count = 0;
        if ask(std::ptr::null_mut(), &mut count) != 0 || count <= 0 {
            return Vec::new();
        }
        let mut list = vec![0; count as usize];
        if ask(list.as_mut_ptr(), &mut count) != 0 {
            return Vec::new();
        }
        list.truncate(usize::try_from(count).unwrap_or(0));
        list
    }

    /// The algorithm of a solution, or of the library's own choice; the lock is held and the device current.
    fn algorithm(self: &Arc<Self>, call: &Arc<Call>, solution: Option<c_int>) -> Option<Arc<dyn Algorithm>> {
        let name = solution.map_or_else(|| "rocblas:standard".to_owned(), |index| format!("rocblas:{index}"));
        let mut algorithm =
            RocAlgorithm { handle: self.clone(), call: call.clone(), solution, workspace: 0, name };
        // SAFETY: the handle lives.
        if unsafe { (self.functions.start_size_query)(self.raw) } != 0 {
            return None;
        }
        // SAFETY: during a query nothing is computed and no address is used. What it answers tells of
        // memory alone.
        unsafe { algorithm.call(&GemmAddresses::default()) };
        // SAFETY: the handle lives; the out pointer is valid.
        let status = unsafe { (self.functions.stop_size_query)(self.raw, &mut algorithm.workspace) };
        (status == 0 && algorithm.workspace <= WORKSPACE).then(|| Arc::new(algorithm) as Arc<dyn Algorithm>)
    }
}

struct RocAlgorithm {
    handle: Arc<Handle>,
    call: Arc<Call>,
    solution: Option<c_int>,
    workspace: usize,
    name: String,
}

impl RocAlgorithm {
    /// # Safety
    /// As for `multiply`; the device must be current and the handle's lock held.
    unsafe fn call(&self, at: &GemmAddresses) -> Status {
        let call = &*self.call;
        let ([m, n, k, batch], [ty, out, sums]) = (call.sizes, call.types);
        let ([a, b, d], [a_step, b_step, d_step]) = (call.leading, call.step);
        let [op_a, op_b] = call.operation;
        let (alpha, beta) = (call.alpha.as_ptr().cast(), call.beta.as_ptr().cast());
        let c = if call.has_c { at.c } else { at.d };
        let algorithm = if self.solution.is_some() { SOLUTION_INDEX } else { STANDARD };
        let solution = self.solution.unwrap_or(0);
        // SAFETY: the handle lives, the scalars are of the type of the sums and read during the call; the
        // addresses are the caller's promise.
        unsafe {
            (self.handle.functions.multiply)(
                self.handle.raw,
                op_a,
                op_b,
                m,
                n,
                k,
                alpha,
                at.a,
                ty,
                a,
                a_step,
                at.b,
                ty,
                b,
                b_step,
                beta,
                c,
                out,
                d,
                d_step,
                at.d,
                out,
                d,
                d_step,
                batch,
                sums,
                algorithm,
                solution,
                0,
            )
        }
    }
}

impl Algorithm for RocAlgorithm {
    fn name(&self) -> &str {
        &self.name
    }

    fn workspace(&self) -> usize {
        self.workspace
    }

    unsafe fn multiply(&self, at: &GemmAddresses, stream: &Stream) -> Result<(), HipError> {
        let handle = &*self.handle;
        let check = |status: Status| if status == 0 { Ok(()) } else { Err(failed("rocblas", status)) };
        let _current = handle.device.enter()?;
        let _using = handle.using.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: handle and stream live.
        check(unsafe { (handle.functions.set_stream)(handle.raw, stream.raw()) })?;
        // Without memory of ours the library manages its own again; what another call lent it is gone.
        let lent = if self.workspace > 0 { at.workspace } else { 0 };
        // SAFETY: the memory is the caller's promise.
        check(unsafe { (handle.functions.set_workspace)(handle.raw, lent, self.workspace) })?;
        // SAFETY: the caller's promise; the device is current and the lock held.
        check(unsafe { self.call(at) })
    }
}
