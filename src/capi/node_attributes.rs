//! The attributes of a node whose operator the caller defined.

use std::ffi::c_char;
use std::ptr::null;

use super::args;
use super::guard::call_on;
use super::locked;
use super::node_info::{Lent, NodeInfoObject};
use super::types::*;
use crate::error::{Result, fail};
use crate::graph::Attribute;
use crate::ops::custom::AttributeKind;
use crate::tensor::Value;

/// The attribute of a node, which must be of this kind.
fn attribute<'n>(node: &'n NodeInfoObject, name: &str, kind: AttributeKind) -> Result<&'n Attribute> {
    match node.facts.attributes.get(name) {
        Some(attribute) if AttributeKind::of(attribute) == Some(kind) => Ok(attribute),
        Some(attribute) => fail!(
            InvalidArgument,
            "attribute \"{name}\" is {}, not {}",
            AttributeKind::of(attribute).map_or("something else", AttributeKind::name),
            kind.name()
        ),
        None => {
            let names: Vec<&str> = node.facts.attributes.0.iter().map(|(name, _)| &**name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            fail!(NotFound, "attribute \"{name}\" is not there; the node has {names}")
        }
    }
}

/// Whether a node has an attribute, by itself or by its default (1), or not (0).
///
/// `node`, `name`, `given`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL,
/// and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_has_attribute(
    node: *const rukh_node_info,
    name: *const c_char,
    given: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let has = locked(node).facts.attributes.get(args::text(name, "name")?).is_some();
        args::put(given, "given", i32::from(has))
    })
}

/// The value of an integer attribute.
///
/// `node`, `name`, `value`: not NULL. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_NOT_FOUND` for an attribute
/// that the node does not have, `RUKH_ERROR_INVALID_ARGUMENT` for one of another type, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_int(
    node: *const rukh_node_info,
    name: *const c_char,
    value: *mut i64,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Int)? {
            Attribute::Int(n) => args::put(value, "value", *n),
            _ => Ok(()),
        }
    })
}

/// The value of a float attribute.
///
/// The arguments, threads and errors are those of `rukh_node_info_attribute_int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_float(
    node: *const rukh_node_info,
    name: *const c_char,
    value: *mut f32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Float)? {
            Attribute::Float(x) => args::put(value, "value", *x),
            _ => Ok(()),
        }
    })
}

/// The text of a string attribute.
///
/// `node`, `name`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header; a text that is no UTF-8 is
/// given with replacement characters. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`, and
/// `RUKH_ERROR_INVALID_ARGUMENT` for a buffer that is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_string(
    node: *const rukh_node_info,
    name: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::String)? {
            Attribute::String(text) => args::put_text(&String::from_utf8_lossy(text), buf, cap, needed),
            _ => Ok(()),
        }
    })
}

/// The values of an attribute that is a list of integers.
///
/// `node`, `name`: not NULL. `values`, `count`: not NULL; the array is borrowed from the node, NULL where it is empty.
/// `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_ints(
    node: *const rukh_node_info,
    name: *const c_char,
    values: *mut *const i64,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Ints)? {
            Attribute::Ints(list) => put_list(list, values, count),
            _ => Ok(()),
        }
    })
}

/// The values of an attribute that is a list of floats.
///
/// The arguments, threads and errors are those of `rukh_node_info_attribute_ints`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_floats(
    node: *const rukh_node_info,
    name: *const c_char,
    values: *mut *const f32,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Floats)? {
            Attribute::Floats(list) => put_list(list, values, count),
            _ => Ok(()),
        }
    })
}

fn put_list<T>(list: &[T], values: *mut *const T, count: *mut usize) -> Result<()> {
    args::put(values, "values", if list.is_empty() { null() } else { list.as_ptr() })?;
    args::put(count, "count", list.len())
}

/// The number of texts of an attribute that is a list of strings.
///
/// `node`, `name`, `count`: not NULL. `error`: may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_string_count(
    node: *const rukh_node_info,
    name: *const c_char,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Strings)? {
            Attribute::Strings(list) => args::put(count, "count", list.len()),
            _ => Ok(()),
        }
    })
}

/// A text of an attribute that is a list of strings.
///
/// `node`, `name`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: as for `rukh_node_info_attribute_string`. `error`:
/// may be NULL. Threads: any. Errors: as `rukh_node_info_attribute_string`, and `RUKH_ERROR_INVALID_ARGUMENT` for an index
/// that is not there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_string_at(
    node: *const rukh_node_info,
    name: *const c_char,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        match attribute(&locked(node), args::text(name, "name")?, AttributeKind::Strings)? {
            Attribute::Strings(list) => {
                let text = args::item(list, index, "text")?;
                args::put_text(&String::from_utf8_lossy(text), buf, cap, needed)
            }
            _ => Ok(()),
        }
    })
}

/// The tensor of a tensor attribute.
///
/// `node`, `name`: not NULL. `value`: not NULL; receives the tensor, borrowed from the node. `error`: may be NULL.
/// Threads: any. Errors: as `rukh_node_info_attribute_int`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_node_info_attribute_tensor(
    node: *const rukh_node_info,
    name: *const c_char,
    value: *mut *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(node, error, |node| {
        let (mut node, name) = (locked(node), args::text(name, "name")?);
        let tensor = match attribute(&node, name, AttributeKind::Tensor)? {
            Attribute::Tensor(tensor) => tensor.clone(),
            _ => return Ok(()),
        };
        let lent = Lent::Attribute(name.to_owned());
        let handle = node.lend(lent, || Ok(Value::Tensor(tensor.aligned()?)))?;
        args::put(value, "value", handle)
    })
}
