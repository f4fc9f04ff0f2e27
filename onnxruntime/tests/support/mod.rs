//! Calls of the API as a C program makes them, with statuses as errors.
#![allow(dead_code)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;

pub use ort_sys::ONNXTensorElementDataType::{self, *};
use ort_sys::*;
// The functions that the library under test calls.
use rukh as _;

/// A function of the table as one of 12 numbers, which is as many as any has. C passes them in registers and on the stack, and
/// ignores those that a function does not have.
pub type AnyFunction = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;

/// A status's code and message.
pub type Failure = (OrtErrorCode, String);
pub type Result<T> = std::result::Result<T, Failure>;

/// The functions for programs that were built for a version of the API.
pub fn api_of(version: u32) -> Option<&'static OrtApi> {
    // SAFETY: the library's own functions; a table lives as long as the program.
    unsafe { ((*onnxruntime::OrtGetApiBase()).GetApi)(version).as_ref() }
}

pub fn api() -> &'static OrtApi {
    api_of(ORT_API_VERSION).unwrap()
}

/// A status as a result; it is released.
pub fn check(status: OrtStatusPtr) -> Result<()> {
    if status.0.is_null() {
        return Ok(());
    }
    // SAFETY: a live status, which is released once, after it was read.
    unsafe {
        let message = CStr::from_ptr((api().GetErrorMessage)(status.0)).to_str().unwrap().to_owned();
        let code = (api().GetErrorCode)(status.0);
        (api().ReleaseStatus)(status.0);
        Err((code, message))
    }
}

/// Calls a function that writes a result, and gives the result.
pub fn get<T>(function: impl FnOnce(*mut T) -> OrtStatusPtr) -> Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    check(function(value.as_mut_ptr()))?;
    // SAFETY: the function succeeded and wrote the value; a pointer or number of zeros is one, too.
    Ok(unsafe { value.assume_init() })
}

pub fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

pub fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

pub fn digits() -> CString {
    text(example("examples/digits/digits.onnx").to_str().unwrap())
}

/// A small model of the C tests.
pub fn small(name: &str) -> CString {
    text(example(&format!("capi-tests/models/{name}.onnx")).to_str().unwrap())
}

/// The environment, released with this.
pub struct Env(pub *mut OrtEnv);

impl Env {
    pub fn new() -> Env {
        // SAFETY: texts and places of this call; likewise in all that follows.
        Env(get(|out| unsafe {
            (api().CreateEnv)(OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR, c"test".as_ptr(), out)
        })
        .unwrap())
    }

    pub fn open(&self, path: &CStr, options: Option<&Options>) -> Result<Session> {
        let options = options.map_or(null_mut(), |options| options.0);
        // SAFETY: as above.
        get(|out| unsafe { (api().CreateSession)(self.0, path.as_ptr(), options, out) }).map(Session)
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseEnv)(self.0) }
    }
}

pub struct Options(pub *mut OrtSessionOptions);

impl Options {
    pub fn new() -> Options {
        // SAFETY: a place for the result.
        Options(get(|out| unsafe { (api().CreateSessionOptions)(out) }).unwrap())
    }

    pub fn entry(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (text(key), text(value));
        // SAFETY: live options, texts.
        check(unsafe { (api().AddSessionConfigEntry)(self.0, key.as_ptr(), value.as_ptr()) })
    }

    pub fn provider(&self, name: &str, options: &[(&str, &str)]) -> Result<()> {
        let name = text(name);
        let texts: Vec<(CString, CString)> =
            options.iter().map(|(key, value)| (text(key), text(value))).collect();
        let keys: Vec<*const c_char> = texts.iter().map(|(key, _)| key.as_ptr()).collect();
        let values: Vec<*const c_char> = texts.iter().map(|(_, value)| value.as_ptr()).collect();
        // SAFETY: live options, as many texts as are said.
        check(unsafe {
            let append = api().SessionOptionsAppendExecutionProvider;
            append(self.0, name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len())
        })
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseSessionOptions)(self.0) }
    }
}

pub struct Session(pub *mut OrtSession);

impl Session {
    pub fn run(&self, inputs: &[(&str, &Value)], outputs: &[&str]) -> Result<Vec<Value>> {
        let mut places = vec![null_mut(); outputs.len()];
        self.run_into(inputs, outputs, &mut places, null_mut())?;
        Ok(places.into_iter().map(Value).collect())
    }

    pub fn run_into(
        &self,
        inputs: &[(&str, &Value)],
        outputs: &[&str],
        places: &mut [*mut OrtValue],
        options: *mut OrtRunOptions,
    ) -> Result<()> {
        let names: Vec<CString> = inputs.iter().map(|(name, _)| text(name)).collect();
        let names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let values: Vec<*const OrtValue> = inputs.iter().map(|(_, value)| value.0.cast_const()).collect();
        let wanted: Vec<CString> = outputs.iter().map(|name| text(name)).collect();
        let wanted: Vec<*const c_char> = wanted.iter().map(|name| name.as_ptr()).collect();
        // SAFETY: live objects, arrays of the lengths that are said.
        check(unsafe {
            (api().Run)(
                self.0,
                options,
                names.as_ptr(),
                values.as_ptr(),
                values.len(),
                wanted.as_ptr(),
                wanted.len(),
                places.as_mut_ptr(),
            )
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseSession)(self.0) }
    }
}

pub struct Value(pub *mut OrtValue);

impl Value {
    /// A tensor in memory of its own.
    pub fn new<T: Copy>(ty: ONNXTensorElementDataType, dims: &[i64], data: &[T]) -> Value {
        let allocator = allocator();
        // SAFETY: a live allocator, dimensions, places for the results.
        let value = Value(
            get(|out| unsafe {
                (api().CreateTensorAsOrtValue)(allocator, dims.as_ptr(), dims.len(), ty, out)
            })
            .unwrap(),
        );
        let target = value.address().unwrap();
        assert_eq!(get(|out| unsafe { (api().GetTensorSizeInBytes)(value.0, out) }), Ok(size_of_val(data)));
        // SAFETY: the tensor has as many bytes.
        unsafe { target.cast::<T>().copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        value
    }

    pub fn floats(dims: &[i64], data: &[f32]) -> Value {
        Value::new(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, dims, data)
    }

    pub fn strings(dims: &[i64], data: &[&str]) -> Value {
        let string = ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
        let texts: Vec<CString> = data.iter().map(|one| text(one)).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|one| one.as_ptr()).collect();
        // SAFETY: a live allocator, dimensions, a place for the result.
        let value = Value(
            get(|out| unsafe {
                (api().CreateTensorAsOrtValue)(allocator(), dims.as_ptr(), dims.len(), string, out)
            })
            .unwrap(),
        );
        // SAFETY: a live value, as many texts as are said.
        check(unsafe { (api().FillStringTensor)(value.0, pointers.as_ptr(), pointers.len()) }).unwrap();
        value
    }

    pub fn address(&self) -> Result<*mut c_void> {
        // SAFETY: a live value, a place for the result.
        get(|out| unsafe { (api().GetTensorMutableData)(self.0, out) })
    }

    pub fn shape(&self) -> Vec<i64> {
        // SAFETY: live objects, places for the results, room for as many dimensions as there are.
        unsafe {
            let info = get(|out| (api().GetTensorTypeAndShape)(self.0, out)).unwrap();
            let rank = get(|out| (api().GetDimensionsCount)(info, out)).unwrap();
            let mut dims = vec![0; rank];
            check((api().GetDimensions)(info, dims.as_mut_ptr(), rank)).unwrap();
            (api().ReleaseTensorTypeAndShapeInfo)(info);
            dims
        }
    }

    pub fn to_vec<T: Copy>(&self) -> Vec<T> {
        let count = self.shape().iter().product::<i64>() as usize;
        // SAFETY: the tensor has as many elements; tests name their type.
        unsafe { std::slice::from_raw_parts(self.address().unwrap().cast::<T>(), count) }.to_vec()
    }

    pub fn texts(&self) -> Vec<String> {
        let count = self.shape().iter().product::<i64>() as usize;
        // SAFETY: a live value, buffers of the lengths that are said.
        unsafe {
            let total = get(|out| (api().GetStringTensorDataLength)(self.0, out)).unwrap();
            let (mut bytes, mut offsets) = (vec![0_u8; total], vec![0_usize; count]);
            let content = api().GetStringTensorContent;
            check(content(self.0, bytes.as_mut_ptr().cast(), total, offsets.as_mut_ptr(), count)).unwrap();
            offsets.push(total);
            offsets
                .windows(2)
                .map(|ends| String::from_utf8(bytes[ends[0]..ends[1]].to_vec()).unwrap())
                .collect()
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: released once.
        unsafe { (api().ReleaseValue)(self.0) }
    }
}

pub fn allocator() -> *mut OrtAllocator {
    // SAFETY: a place for the result.
    get(|out| unsafe { (api().GetAllocatorWithDefaultOptions)(out) }).unwrap()
}

/// A text that a function made with the default allocator; it is given back.
pub fn owned(function: impl FnOnce(*mut OrtAllocator, *mut *mut c_char) -> OrtStatusPtr) -> Result<String> {
    let pointer = get(|out| function(allocator(), out))?;
    // SAFETY: a text of the default allocator, read before it is given back.
    unsafe {
        let text = CStr::from_ptr(pointer).to_str().unwrap().to_owned();
        check((api().AllocatorFree)(allocator(), pointer.cast())).unwrap();
        Ok(text)
    }
}

/// Whether the tests have a GPU, which on machines without one is an emulated one.
pub fn gpu() -> bool {
    ["RUKH_REQUIRE_HIP", "RUKH_HIP_LIBRARY"].iter().all(|name| std::env::var_os(name).is_some())
}
