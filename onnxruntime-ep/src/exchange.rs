//! Values of ONNX Runtime's as librukh has them, and back: over the same memory, where its place and the type allow it.

use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::Arc;

use rukh_sys::RUKH_ELEMENT_UINT8;

use crate::elements::{self, is_packed, onnx_of};
use crate::error::{Result, fail};
use crate::library::{Environment, Value};
use crate::ort::{ElementType, MemoryPlace, Tensor};

pub(crate) struct Exchange {
    pub(crate) environment: Arc<Environment>,
    /// Whether the session reads and writes memory of a GPU: some node of it runs there, outside of bodies.
    pub(crate) on_gpu: bool,
}

impl Exchange {
    /// Whether a run reads a tensor where it is, on the GPU, or the host reads it before.
    pub(crate) fn stays_on_gpu(&self, tensor: &Tensor<'_>, element: ElementType) -> bool {
        self.on_gpu && tensor.is_on_device() && !is_packed(element)
    }

    /// An input of a run.
    pub(crate) fn input(&self, tensor: &Tensor<'_>, element: ElementType, shape: &[i64]) -> Result<Value> {
        let Some(number) = onnx_of(element) else {
            fail!(NotImplemented, "elements of type {element} are not known to this plugin");
        };
        if element == elements::STRING {
            return Value::strings(shape, &tensor.strings()?);
        }
        let count = count(shape);
        if is_packed(element) {
            return Value::copied(number, shape, &elements::unpack(element, &self.read(tensor)?, count));
        }
        let bytes = elements::size(element, count).unwrap_or(0);
        let data = tensor.data()?;
        match tensor.place() {
            // SAFETY: ONNX Runtime's tensors have so many bytes there, which stay during the run.
            MemoryPlace::Host if is_aligned(data, number) => unsafe {
                Value::over_host(number, shape, data, bytes)
            },
            // SAFETY: as above, in the device's memory, which has no address where there are no bytes.
            MemoryPlace::Device(device) if self.on_gpu && bytes > 0 => unsafe {
                Value::over_device(&self.environment, device as usize, number, shape, data, bytes)
            },
            _ => Value::copied(number, shape, &self.read(tensor)?),
        }
    }

    /// The memory of an output, to be written by a run; none where the run must write elsewhere.
    pub(crate) fn output(&self, tensor: &Tensor<'_>) -> Result<Option<Value>> {
        let (element, shape) = tensor.type_and_shape()?;
        let (Some(number), Some(bytes)) = (onnx_of(element), elements::size(element, count(shape))) else {
            return Ok(None);
        };
        let data = tensor.data()?;
        match tensor.place() {
            _ if is_packed(element) || (bytes > 0 && !is_aligned(data, number)) => Ok(None),
            MemoryPlace::Device(_) if !self.on_gpu => Ok(None),
            MemoryPlace::Device(device) if bytes > 0 => {
                // SAFETY: ONNX Runtime's tensor has so many bytes there, which nobody else uses during the run.
                unsafe { Value::over_device(&self.environment, device as usize, number, shape, data, bytes) }
                    .map(Some)
            }
            // SAFETY: as above.
            _ => unsafe { Value::over_host(number, shape, data, bytes) }.map(Some),
        }
    }

    /// Copies what a run made into an output of ONNX Runtime's.
    pub(crate) fn hand_over(&self, value: &Value, tensor: &Tensor<'_>) -> Result<()> {
        let (element, shape) = tensor.type_and_shape()?;
        let count = count(shape);
        if element == elements::STRING {
            let texts = (0..count).map(|index| value.text(index)).collect::<Result<Vec<_>>>()?;
            return tensor.fill_strings(&texts);
        }
        if count == 0 {
            return Ok(());
        }
        if let Some(mut to) = self.output(tensor)? {
            return value.copy_to(&mut to);
        }
        let copy = value.on_host()?;
        let bytes = copy.as_ref().unwrap_or(value).bytes()?;
        if !is_packed(element) {
            return self.write(bytes, tensor);
        }
        let mut packed = vec![0; tensor.bytes()?];
        elements::pack(element, bytes, &mut packed);
        self.write(&packed, tensor)
    }

    /// The bytes of a tensor, wherever they are.
    fn read<'t>(&self, tensor: &Tensor<'t>) -> Result<Cow<'t, [u8]>> {
        let (MemoryPlace::Device(_), bytes @ 1..) = (tensor.place(), tensor.bytes()?) else {
            return tensor.host_bytes().map(Cow::Borrowed);
        };
        let mut copy = Value::copied(RUKH_ELEMENT_UINT8, &[bytes as i64], &vec![0; bytes])?;
        self.bytes_of(tensor)?.copy_to(&mut copy)?;
        copy.bytes().map(|bytes| Cow::Owned(bytes.to_vec()))
    }

    /// Writes the bytes of a tensor, wherever they are.
    fn write(&self, bytes: &[u8], tensor: &Tensor<'_>) -> Result<()> {
        if bytes.len() != tensor.bytes()? {
            fail!(Fail, "a run made {} bytes for an output of {}", bytes.len(), tensor.bytes()?);
        }
        Value::copied(RUKH_ELEMENT_UINT8, &[bytes.len() as i64], bytes)?.copy_to(&mut self.bytes_of(tensor)?)
    }

    /// The memory of a tensor that is not empty, as bytes.
    pub(crate) fn bytes_of(&self, tensor: &Tensor<'_>) -> Result<Value> {
        let (data, bytes) = (tensor.data()?, tensor.bytes()?);
        let shape = [bytes as i64];
        match tensor.place() {
            // SAFETY: ONNX Runtime's tensor has so many bytes there, which stay for the call.
            MemoryPlace::Host => unsafe { Value::over_host(RUKH_ELEMENT_UINT8, &shape, data, bytes) },
            // SAFETY: as above, in the device's memory.
            MemoryPlace::Device(device) => unsafe {
                let device = device as usize;
                Value::over_device(&self.environment, device, RUKH_ELEMENT_UINT8, &shape, data, bytes)
            },
        }
    }
}

/// The number of elements of a shape.
fn count(shape: &[i64]) -> usize {
    usize::try_from(shape.iter().product::<i64>()).unwrap_or(0)
}

/// Whether librukh takes elements at an address.
fn is_aligned(data: *mut c_void, number: i32) -> bool {
    data.addr().is_multiple_of(elements::alignment(number))
}
