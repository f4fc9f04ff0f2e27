//! Products by hipBLASLt and cuBLASLt.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use crate::hip::error::HipError;
use crate::hip::symbols::{Raw, find};
use crate::hip::{Device, Platform, Stream, library};
use crate::tensor::ElementType;

use super::lt_symbols::*;
use super::{Algorithm, Blas, Gemm, GemmAddresses, Stored, WORKSPACE, digest, failed};

/// Algorithms that are asked for.
const MOST: usize = 16;

/// Bytes of a record beyond the algorithm's description: workspace (8), status (4), waves (4), reserved (16).
const RECORD_REST: usize = 32;

/// A handle of the library on a device.
struct Handle {
    flavour: &'static Flavour,
    functions: Functions,
    device: Arc<Device>,
    raw: Raw,
    identity: String,
    /// Held while a product is submitted: it may set the bias in a description that runs share.
    submit: Mutex<()>,
}

// SAFETY: a handle may be used from any thread, and from one at a time, which `submit` and the descriptions'
// single maker see to.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

struct Lt(Arc<Handle>);

/// Opens the library for a device; `Err` says why it cannot be used.
pub(super) fn open(device: &Arc<Device>, flavour: &'static Flavour) -> Result<Arc<dyn Blas>, String> {
    let name = flavour.name;
    let platform = if flavour.amd { Platform::Amd } else { Platform::Nvidia };
    let opened = library::open_kernels(platform, flavour.file, &flavour.names)
        .map_err(|tried| format!("{name} is not there: {tried}"))?;
    let path = opened.path.display().to_string();
    let missing = |function| format!("{path}: it has no {function}");
    let functions = Functions::load(&opened.library, flavour.amd).map_err(missing)?;
    let _current = device.enter().map_err(|e| e.to_string())?;
    let mut raw = std::ptr::null_mut();
    // SAFETY: the out pointer is valid, and the device is current.
    let status = unsafe { (functions.create)(&mut raw) };
    if status != 0 {
        return Err(format!("{path}: it cannot be used on this device (status {status})"));
    }
    let mut handle = Handle {
        flavour,
        functions,
        device: device.clone(),
        raw,
        identity: String::new(),
        submit: Mutex::default(),
    };
    let version = if flavour.amd {
        let ask: unsafe extern "C" fn(Raw, *mut c_int) -> Status =
            find(&opened.library, "hipblasLtGetVersion").map_err(missing)?;
        let mut version = 0;
        // SAFETY: the handle lives; the out pointer is valid.
        unsafe { ask(handle.raw, &mut version) };
        if version < OLDEST_HIPBLASLT {
            return Err(format!("{path}: its version {version} is too old; the oldest that works is 0.6"));
        }
        version as usize
    } else {
        let ask: unsafe extern "C" fn() -> usize =
            find(&opened.library, "cublasLtGetVersion").map_err(missing)?;
        // SAFETY: the function takes nothing.
        unsafe { ask() }
    };
    handle.identity = format!("{name}-{version}");
    // The function pointers must stay valid for as long as the process runs.
    std::mem::forget(opened.library);
    Ok(Arc::new(Lt(Arc::new(handle))))
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: created by `open`, destroyed once.
            unsafe { (self.functions.destroy)(self.raw) };
        }
    }
}

impl Handle {
    fn check(&self, status: Status) -> Result<(), HipError> {
        if status == 0 { Ok(()) } else { Err(failed(self.flavour.name, status)) }
    }
}

impl Blas for Lt {
    fn identity(&self) -> &str {
        &self.0.identity
    }

    fn algorithms(&self, gemm: &Gemm) -> Vec<Arc<dyn Algorithm>> {
        // What the library refuses has no algorithm.
        let found = Product::new(&self.0, gemm).and_then(|product| product.find());
        found.unwrap_or_default()
    }
}

/// The library's descriptions of one product.
struct Product {
    handle: Arc<Handle>,
    description: Described,
    a: Described,
    b: Described,
    d: Described,
    /// As the compute type has them: `f32`, or `f64`.
    alpha: [u8; 8],
    beta: [u8; 8],
    has_c: bool,
    bias: bool,
    alignment: u32,
}

// SAFETY: the descriptions are read by many threads and changed under the handle's lock alone.
unsafe impl Send for Product {}
// SAFETY: as above.
unsafe impl Sync for Product {}

/// A description that the library made, with the function that destroys it.
struct Described {
    raw: Raw,
    destroy: unsafe extern "C" fn(Raw) -> Status,
}

impl Drop for Described {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once.
        unsafe { (self.destroy)(self.raw) };
    }
}

/// `hipDataType` and `cudaDataType` agree.
fn data_type(ty: ElementType) -> Option<c_int> {
    Some(match ty {
        ElementType::F32 => 0,
        ElementType::F64 => 1,
        ElementType::F16 => 2,
        ElementType::BF16 => 14,
        _ => return None,
    })
}

impl Product {
    fn new(handle: &Arc<Handle>, gemm: &Gemm) -> Result<Self, HipError> {
        let (f, flavour) = (&handle.functions, handle.flavour);
        let unknown = || failed(flavour.name, 0);
        let ty = data_type(gemm.ty).ok_or_else(unknown)?;
        let out = data_type(gemm.out).ok_or_else(unknown)?;
        let double = gemm.ty == ElementType::F64;
        let _current = handle.device.enter()?;
        let made = |raw, status, destroy| handle.check(status).map(|()| Described { raw, destroy });
        let layout = |ty, rows: usize, columns: usize, stored: Stored| {
            let mut raw = std::ptr::null_mut();
            let (rows, columns) = if stored.transposed { (columns, rows) } else { (rows, columns) };
            let leading = stored.leading as i64;
            // SAFETY: the out pointer is valid.
            let status = unsafe { (f.layout_create)(&mut raw, ty, rows as u64, columns as u64, leading) };
            let layout = made(raw, status, f.layout_destroy)?;
            if gemm.batch > 1 {
                set(handle, f.layout_set, layout.raw, flavour.layout_batch, &(gemm.batch as i32))?;
                set(handle, f.layout_set, layout.raw, flavour.layout_step, &(stored.step as i64))?;
            }
            Ok::<_, HipError>(layout)
        };
        let mut raw = std::ptr::null_mut();
        let (compute, scale) = (flavour.compute[double as usize], if double { 1 } else { 0 });
        // SAFETY: the out pointer is valid.
        let status = unsafe { (f.product_create)(&mut raw, compute, scale) };
        let description = made(raw, status, f.product_destroy)?;
        for (i, stored) in [gemm.a, gemm.b].into_iter().enumerate() {
            let operation = flavour.operation[stored.transposed as usize];
            set(handle, f.product_set, description.raw, flavour.transpose[i], &operation)?;
        }
        let mut epilogue = if gemm.bias || gemm.relu { 0 } else { EPILOGUE_NONE };
        epilogue |= if gemm.relu { EPILOGUE_RELU } else { 0 };
        epilogue |= if gemm.bias { EPILOGUE_BIAS } else { 0 };
        set(handle, f.product_set, description.raw, flavour.epilogue, &epilogue)?;
        if gemm.bias {
            set(handle, f.product_set, description.raw, flavour.bias_type, &out)?;
        }
        let scalar = |x: f64| {
            let mut bytes = [0; 8];
            match double {
                true => bytes.copy_from_slice(&x.to_ne_bytes()),
                false => bytes[..4].copy_from_slice(&(x as f32).to_ne_bytes()),
            }
            bytes
        };
        Ok(Product {
            description,
            a: layout(ty, gemm.m, gemm.k, gemm.a)?,
            b: layout(ty, gemm.k, gemm.n, gemm.b)?,
            d: layout(out, gemm.m, gemm.n, gemm.d)?,
            alpha: scalar(gemm.alpha),
            beta: scalar(gemm.beta),
            has_c: gemm.beta != 0.0,
            bias: gemm.bias,
            alignment: gemm.alignment,
            handle: handle.clone(),
        })
    }

    /// What the library's heuristic thinks fast.
    fn find(self) -> Result<Vec<Arc<dyn Algorithm>>, HipError> {
        let (f, flavour) = (&self.handle.functions, self.handle.flavour);
        let mut raw = std::ptr::null_mut();
        let current = self.handle.device.enter()?;
        // SAFETY: the out pointer is valid.
        self.handle.check(unsafe { (f.preference_create)(&mut raw) })?;
        let preference = Described { raw, destroy: f.preference_destroy };
        set(&self.handle, f.preference_set, preference.raw, PREFERENCE_WORKSPACE, &(WORKSPACE as u64))?;
        for attribute in flavour.alignment.iter().flat_map(|&first| first..first + 4) {
            set(&self.handle, f.preference_set, preference.raw, attribute, &self.alignment)?;
        }
        if self.bias {
            // The heuristic looks at the address's alignment alone.
            let example = u64::from(self.alignment);
            set(&self.handle, f.product_set, self.description.raw, flavour.bias_pointer, &example)?;
        }
        let words = (flavour.algorithm + RECORD_REST) / 8;
        let (mut records, mut count) = (vec![0u64; words * MOST], 0);
        // SAFETY: every description lives, and there is room for as many records as are asked for.
        let status = unsafe {
            (f.find_algorithms)(
                self.handle.raw,
                self.description.raw,
                self.a.raw,
                self.b.raw,
                self.d.raw,
                self.d.raw,
                preference.raw,
                MOST as c_int,
                records.as_mut_ptr().cast(),
                &mut count,
            )
        };
        self.handle.check(status)?;
        drop(current);
        let product = Arc::new(self);
        let known = usize::try_from(count).unwrap_or(0).min(MOST);
        let records = records.chunks_exact(words).take(known);
        let usable = records.filter_map(|record| LtAlgorithm::new(&product, record));
        Ok(usable.map(|algorithm| Arc::new(algorithm) as Arc<dyn Algorithm>).collect())
    }
}

/// Sets an attribute of a description.
fn set<T: bytemuck::NoUninit>(
    handle: &Handle,
    function: unsafe extern "C" fn(Raw, c_int, *const c_void, usize) -> Status,
    of: Raw,
    attribute: c_int,
    value: &T,
) -> Result<(), HipError> {
    // SAFETY: the description lives, and the value is as long as told; the library copies it.
    handle.check(unsafe { function(of, attribute, (&raw const *value).cast(), size_of::<T>()) })
}

struct LtAlgorithm {
    product: Arc<Product>,
    /// The library's description.
    words: Vec<u64>,
    workspace: usize,
    name: String,
}

impl LtAlgorithm {
    /// From a record of the heuristic; `None` for one that is not to be used.
    fn new(product: &Arc<Product>, record: &[u64]) -> Option<Self> {
        let flavour = product.handle.flavour;
        let (words, rest) = record.split_at(flavour.algorithm / 8);
        let workspace = usize::try_from(rest[0]).ok().filter(|&bytes| bytes <= WORKSPACE)?;
        // The status is the first half of the word that follows.
        let [a, b, c, d, ..] = rest[1].to_ne_bytes();
        if i32::from_ne_bytes([a, b, c, d]) != 0 {
            return None;
        }
        let name = format!("{}:{:016x}", flavour.name, digest(bytemuck::cast_slice(words)));
        Some(LtAlgorithm { product: product.clone(), words: words.to_vec(), workspace, name })
    }
}

impl Algorithm for LtAlgorithm {
    fn name(&self) -> &str {
        &self.name
    }

    fn workspace(&self) -> usize {
        self.workspace
    }

    unsafe fn multiply(&self, at: &GemmAddresses, stream: &Stream) -> Result<(), HipError> {
        let Product { handle, description, a, b, d, alpha, beta, has_c, bias, .. } = &*self.product;
        let f = &handle.functions;
        let _current = handle.device.enter()?;
        let _submit = handle.submit.lock().unwrap_or_else(PoisonError::into_inner);
        if *bias {
            set(handle, f.product_set, description.raw, handle.flavour.bias_pointer, &at.bias)?;
        }
        // SAFETY: the descriptions live, the scalars are of the scale type and read during the call; the
        // addresses are the caller's promise.
        handle.check(unsafe {
            (f.multiply)(
                handle.raw,
                description.raw,
                alpha.as_ptr().cast(),
                at.a,
                a.raw,
                at.b,
                b.raw,
                beta.as_ptr().cast(),
                if *has_c { at.c } else { at.d },
                d.raw,
                at.d,
                d.raw,
                self.words.as_ptr().cast(),
                at.workspace,
                self.workspace,
                stream.raw(),
            )
        })
    }
}
