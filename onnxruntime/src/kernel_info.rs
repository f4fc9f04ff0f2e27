//! `OrtKernelInfo`: a node whose operator is the caller's, while its kernel is made.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;
use std::rc::Rc;

use ort_sys::{
    OrtAllocator, OrtKernelContext, OrtKernelInfo, OrtKeyValuePairs, OrtLogger, OrtTypeInfo, OrtValue,
    os_char,
};
use rukh_sys::*;

use crate::allocator;
use crate::elements;
use crate::failure::{Failure, Result, api};
use crate::handle::{get, give, handles, put, text};
use crate::key_values::KeyValues;
use crate::library::{self, Own};
use crate::session_options_api::copy_sized;
use crate::types::{TensorInfo, TypeInfo};
use crate::value::Value;

/// The node. It is there during the call that makes the kernel.
pub struct Info {
    node: *mut rukh_node_info,
    operator: String,
    /// Constants that were asked for: they are lent until the call ends.
    constants: RefCell<Vec<Rc<Value>>>,
}

handles! { Info => OrtKernelInfo; }

impl Info {
    pub fn new(node: *mut rukh_node_info, operator: String) -> Info {
        Info { node, operator, constants: RefCell::default() }
    }

    fn string(&self, name: &std::ffi::CStr) -> Result<Vec<u8>> {
        // SAFETY: live handle, a text, a buffer of `cap` bytes.
        library::bytes(|buf, cap, needed, error| unsafe {
            rukh_node_info_attribute_string(self.node, name.as_ptr(), buf, cap, needed, error)
        })
    }

    fn strings(&self, name: &std::ffi::CStr) -> Result<Vec<CString>> {
        // SAFETY: live handle, a text, a place for the number.
        let count = library::get(|count, error| unsafe {
            rukh_node_info_attribute_string_count(self.node, name.as_ptr(), count, error)
        })?;
        (0..count)
            .map(|index| {
                // SAFETY: as above, a buffer of `cap` bytes.
                let bytes = library::bytes(|buf, cap, needed, error| unsafe {
                    rukh_node_info_attribute_string_at(
                        self.node,
                        name.as_ptr(),
                        index,
                        buf,
                        cap,
                        needed,
                        error,
                    )
                })?;
                Ok(CString::new(bytes).unwrap_or_default())
            })
            .collect()
    }

    fn input_type(&self, index: usize) -> Result<TypeInfo> {
        let (mut kind, mut element, mut rank) = (0, 0, -1);
        // SAFETY: live handle, places for the numbers.
        library::call(|error| unsafe {
            rukh_node_info_input_type(self.node, index, &mut kind, &mut element, error)
        })?;
        if kind != RUKH_KIND_TENSOR {
            return Ok(TypeInfo::Unknown);
        }
        let element = elements::from_rukh(element);
        let mut dims = vec![0; 64];
        // SAFETY: live handle, room for as many dimensions as the vector has, a place for the rank.
        library::call(|error| unsafe {
            rukh_node_info_input_shape(self.node, index, dims.as_mut_ptr(), dims.len(), &mut rank, error)
        })?;
        Ok(TypeInfo::Tensor(match usize::try_from(rank) {
            Ok(rank) => TensorInfo::new(element, dims[..rank].to_vec()),
            Err(_) => TensorInfo { element, ..TensorInfo::default() },
        }))
    }
}

/// A value of librukh's that is lent, as one that is owned: the elements are shared.
pub fn shared(lent: *const rukh_value) -> Result<Value> {
    // SAFETY: a live value, a place for the handle.
    let own: Own<rukh_value> = library::make(|out, error| unsafe { rukh_value_clone(lent, out, error) })?;
    Ok(Value::new(own))
}

/// Copies a list into the caller's, whose `size` says how long that is and receives how long it must be.
///
/// # Safety
/// `out` is NULL or has `*size` items; `size` is NULL or may be read and written.
unsafe fn copy_list<T: Copy>(items: &[T], out: *mut T, size: *mut usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let Some(size) = (unsafe { size.as_mut() }) else {
        return Err(crate::handle::null("the size of the list"));
    };
    let room = std::mem::replace(size, items.len());
    if out.is_null() || items.is_empty() {
        return Ok(());
    }
    if room < items.len() {
        return Err(Failure::argument(format!(
            "the list has {} items; there is room for {room}",
            items.len()
        )));
    }
    // SAFETY: there is room, as was checked.
    unsafe { out.copy_from_nonoverlapping(items.as_ptr(), items.len()) };
    Ok(())
}

api! {
    fn KernelInfoGetAttribute_float(info: *const OrtKernelInfo, name: *const c_char, out: *mut f32) {
        let (node, name) = (get::<Info>(info)?.node, text(name, "the name")?);
        put(out, library::get(|value, error| rukh_node_info_attribute_float(node, name.as_ptr(), value, error))?)?;
    }

    fn KernelInfoGetAttribute_int64(info: *const OrtKernelInfo, name: *const c_char, out: *mut i64) {
        let (node, name) = (get::<Info>(info)?.node, text(name, "the name")?);
        put(out, library::get(|value, error| rukh_node_info_attribute_int(node, name.as_ptr(), value, error))?)?;
    }

    fn KernelInfoGetAttribute_string(info: *const OrtKernelInfo, name: *const c_char, out: *mut c_char, size: *mut usize) {
        copy_sized(&get::<Info>(info)?.string(text(name, "the name")?)?, out, size)?;
    }

    fn KernelInfoGetAttributeArray_float(info: *const OrtKernelInfo, name: *const c_char, out: *mut f32, size: *mut usize) {
        let (node, name) = (get::<Info>(info)?.node, text(name, "the name")?);
        let mut values = std::ptr::null();
        let count = library::get(|count, error| rukh_node_info_attribute_floats(node, name.as_ptr(), &mut values, count, error))?;
        copy_list(crate::handle::array(values, count, "the list")?, out, size)?;
    }

    fn KernelInfoGetAttributeArray_int64(info: *const OrtKernelInfo, name: *const c_char, out: *mut i64, size: *mut usize) {
        let (node, name) = (get::<Info>(info)?.node, text(name, "the name")?);
        let mut values = std::ptr::null();
        let count = library::get(|count, error| rukh_node_info_attribute_ints(node, name.as_ptr(), &mut values, count, error))?;
        copy_list(crate::handle::array(values, count, "the list")?, out, size)?;
    }

    fn KernelInfoGetAttributeArray_string(info: *const OrtKernelInfo, name: *const c_char, memory: *mut OrtAllocator, out: *mut *mut *mut c_char, size: *mut usize) {
        put(out, null_mut())?;
        let strings = get::<Info>(info)?.strings(text(name, "the name")?)?;
        let copies = strings.iter().map(|string| allocator::copy_text(memory, string)).collect::<Result<Vec<_>>>()?;
        put(out, allocator::copy_array(memory, &copies)?)?;
        put(size, copies.len())?;
    }

    fn KernelInfoGetAttribute_tensor(info: *const OrtKernelInfo, name: *const c_char, _memory: *mut OrtAllocator, out: *mut *mut OrtValue) {
        let (node, name) = (get::<Info>(info)?.node, text(name, "the name")?);
        let mut lent = std::ptr::null();
        library::call(|error| rukh_node_info_attribute_tensor(node, name.as_ptr(), &mut lent, error))?;
        give(out, shared(lent)?)?;
    }

    fn KernelInfoGetConstantInput_tensor(info: *const OrtKernelInfo, index: usize, is_constant: *mut c_int, out: *mut *const OrtValue) {
        let info = get::<Info>(info)?;
        let mut lent = std::ptr::null();
        library::call(|error| rukh_node_info_input_value(info.node, index, &mut lent, error))?;
        put(is_constant, (!lent.is_null()).into())?;
        if lent.is_null() {
            put(out, std::ptr::null())?;
        } else {
            let value = Rc::new(shared(lent)?);
            put(out, std::ptr::from_ref(&*value).cast())?;
            info.constants.borrow_mut().push(value);
        }
    }

    fn KernelInfo_GetInputCount(info: *const OrtKernelInfo, out: *mut usize) {
        let node = get::<Info>(info)?.node;
        put(out, library::get(|count, error| rukh_node_info_input_count(node, count, error))?)?;
    }

    fn KernelInfo_GetOutputCount(info: *const OrtKernelInfo, out: *mut usize) {
        let node = get::<Info>(info)?.node;
        put(out, library::get(|count, error| rukh_node_info_output_count(node, count, error))?)?;
    }

    fn KernelInfo_GetInputTypeInfo(info: *const OrtKernelInfo, index: usize, out: *mut *mut OrtTypeInfo) {
        give(out, get::<Info>(info)?.input_type(index)?)?;
    }

    fn KernelInfo_GetNodeName(info: *const OrtKernelInfo, out: *mut c_char, size: *mut usize) {
        let node = get::<Info>(info)?.node;
        let name = library::lent(|name, error| rukh_node_info_name(node, name, error))?.unwrap_or_default();
        copy_sized(name.to_bytes(), out, size)?;
    }

    fn KernelInfo_GetOperatorType(info: *const OrtKernelInfo, out: *mut c_char, size: *mut usize) {
        copy_sized(get::<Info>(info)?.operator.as_bytes(), out, size)?;
    }

    fn KernelInfo_GetConfigEntries(info: *const OrtKernelInfo, out: *mut *mut OrtKeyValuePairs) {
        get::<Info>(info)?;
        give(out, KeyValues::default())?;
    }

    fn KernelInfo_GetLogger(info: *const OrtKernelInfo, out: *mut *const OrtLogger) {
        get::<Info>(info)?;
        put(out, crate::log::logger())?;
    }

    fn KernelContext_GetLogger(_context: *const OrtKernelContext, out: *mut *const OrtLogger) {
        put(out, crate::log::logger())?;
    }

    fn Logger_LogMessage(_logger: *const OrtLogger, level: i32, message: *const c_char, _file: *const os_char, _line: c_int, _function: *const c_char) {
        crate::environment::Environment::current()?.log().write(crate::log::level(level), text(message, "the message")?);
    }

    fn Logger_GetLoggingSeverityLevel(_logger: *const OrtLogger, out: *mut i32) {
        put(out, crate::environment::Environment::current()?.log().lowest())?;
    }

    fn KernelInfoGetAllocator(info: *const OrtKernelInfo, _memory_type: i32, out: *mut *mut OrtAllocator) {
        get::<Info>(info)?;
        put(out, allocator::default())?;
    }
}
