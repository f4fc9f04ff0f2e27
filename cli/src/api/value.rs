//! Values of the library, from and into plain Rust.

use std::ffi::c_char;
use std::ptr::null;

use rukh::capi::*;

use super::call::{Result, bytes, call, get, make};
use crate::data::{self, Data, ElementType, Kind, Tensor};

/// A tensor, sequence, map or optional that the library holds.
pub struct Value(pub(super) *mut rukh_value);

// SAFETY: handles may be used from any thread.
unsafe impl Send for Value {}
// SAFETY: a shared handle is only read, which the library allows from many threads at once.
unsafe impl Sync for Value {}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_value_destroy(self.0) };
    }
}

impl Value {
    /// Copies a plain value into the library, as `kind`; `element` is the element type of a sequence
    /// or an optional that is empty.
    pub fn new(value: &data::Value, kind: Kind, element: Option<ElementType>) -> Result<Value> {
        let hint = element.unwrap_or(ElementType::FLOAT).0;
        let is_optional = kind == Kind::Optional;
        let inner = match value {
            data::Value::Tensor(tensor) => Some(Value::tensor(tensor)?),
            data::Value::Sequence(items) => {
                let items: Vec<Value> = items
                    .iter()
                    .map(|item| Value::new(item, Kind::Tensor, element))
                    .collect::<Result<_>>()?;
                let handles = handles(&items);
                // SAFETY: the pointers are live and the count is theirs.
                Some(Value(make(|out, error| unsafe {
                    rukh_value_create_sequence(handles.as_ptr(), handles.len(), hint, out, error)
                })?))
            }
            data::Value::Map { keys, values } => Some(Value::map(keys, values, hint)?),
            data::Value::Nothing => None,
        };
        match inner {
            Some(inner) if !is_optional => Ok(inner),
            inner => {
                let handle = inner.as_ref().map_or(null(), |v| v.0.cast_const());
                // SAFETY: NULL or a live handle.
                Ok(Value(make(|out, error| unsafe { rukh_value_create_optional(handle, hint, out, error) })?))
            }
        }
    }

    fn tensor(tensor: &Tensor) -> Result<Value> {
        let shape: Vec<i64> = tensor.dims.iter().map(|&d| d as i64).collect();
        let handle = match &tensor.data {
            // SAFETY: shape and data are live for the call, which copies them, and their lengths are right.
            Data::Bytes(bytes) => make(|out, error| unsafe {
                rukh_value_create_tensor_copy(
                    tensor.element.0,
                    shape.as_ptr(),
                    shape.len(),
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    out,
                    error,
                )
            })?,
            Data::Strings(strings) => {
                let pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr().cast()).collect();
                let lengths: Vec<usize> = strings.iter().map(Vec::len).collect();
                // SAFETY: as above; each string has the length given.
                make(|out, error| unsafe {
                    rukh_value_create_strings(
                        shape.as_ptr(),
                        shape.len(),
                        pointers.as_ptr(),
                        lengths.as_ptr(),
                        pointers.len(),
                        out,
                        error,
                    )
                })?
            }
        };
        Ok(Value(handle))
    }

    fn map(keys: &Tensor, values: &data::Value, hint: i32) -> Result<Value> {
        let keys = Value::tensor(keys)?;
        let items = match values {
            data::Value::Sequence(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        let items: Vec<Value> =
            items.iter().map(|item| Value::new(item, Kind::Tensor, None)).collect::<Result<_>>()?;
        let handles = handles(&items);
        // SAFETY: the handles are live and the count is theirs.
        Ok(Value(make(|out, error| unsafe {
            rukh_value_create_map(keys.0, handles.as_ptr(), handles.len(), hint, out, error)
        })?))
    }

    /// Copies the value out of the library. An optional becomes what it holds.
    pub fn read(&self) -> Result<data::Value> {
        // SAFETY: in this function, the handle is live and the places written to are locals.
        let kind: rukh_kind = get(|out, error| unsafe { rukh_value_kind(self.0, out, error) })?;
        match kind {
            RUKH_KIND_TENSOR => self.read_tensor().map(data::Value::Tensor),
            RUKH_KIND_SEQUENCE => self.items().map(data::Value::Sequence),
            RUKH_KIND_MAP => {
                // SAFETY: as above.
                let keys = Value(make(|out, error| unsafe { rukh_value_map_keys(self.0, out, error) })?)
                    .read_tensor()?;
                Ok(data::Value::Map { keys, values: Box::new(data::Value::Sequence(self.items()?)) })
            }
            _ => Ok(self.items()?.pop().unwrap_or(data::Value::Nothing)),
        }
    }

    fn items(&self) -> Result<Vec<data::Value>> {
        // SAFETY: in this function, the handle is live and the places written to are locals.
        let count: usize = get(|out, error| unsafe { rukh_value_item_count(self.0, out, error) })?;
        (0..count)
            // SAFETY: as above.
            .map(|i| Value(make(|out, error| unsafe { rukh_value_item(self.0, i, out, error) })?).read())
            .collect()
    }

    fn read_tensor(&self) -> Result<Tensor> {
        // SAFETY: in this function, the handle is live and the places written to are locals.
        let element = ElementType(get(|out, error| unsafe { rukh_value_element_type(self.0, out, error) })?);
        // SAFETY: as above; NULL and 0 ask for the rank alone.
        let rank: usize =
            get(|out, error| unsafe { rukh_value_shape(self.0, std::ptr::null_mut(), 0, out, error) })?;
        let mut dims = vec![0i64; rank];
        // SAFETY: as above; there is room for `rank` dimensions.
        call(|error| unsafe {
            rukh_value_shape(self.0, dims.as_mut_ptr(), dims.len(), std::ptr::null_mut(), error)
        })?;
        let dims: Vec<usize> = dims.into_iter().map(|d| d as usize).collect();
        if element.is_string() {
            let count = dims.iter().product();
            let strings = (0..count)
                // SAFETY: as above; `bytes` gives a buffer with its size.
                .map(|i| {
                    bytes(|buf, cap, needed, error| unsafe {
                        rukh_value_string(self.0, i, buf, cap, needed, error)
                    })
                })
                .collect::<Result<_>>()?;
            return Ok(Tensor { element, dims, data: Data::Strings(strings) });
        }
        let (mut data, mut length) = (null(), 0);
        // SAFETY: as above.
        call(|error| unsafe { rukh_value_data(self.0, &mut data, &mut length, error) })?;
        let bytes = match length {
            0 => Vec::new(),
            // SAFETY: the library's memory of that many bytes, which lives while the handle does.
            _ => unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }.to_vec(),
        };
        Ok(Tensor { element, dims, data: Data::Bytes(bytes) })
    }
}

fn handles(values: &[Value]) -> Vec<*const rukh_value> {
    values.iter().map(|value| value.0.cast_const()).collect()
}
