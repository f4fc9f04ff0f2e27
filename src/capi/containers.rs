//! Sequences, maps and optionals.

use std::collections::HashSet;
use std::sync::RwLock;

use super::args;
use super::guard::{call_on, create, create_on};
use super::read;
use super::types::*;
use super::values::{tensor, value_of};
use crate::error::{Result, fail};
use crate::tensor::{ElementType, MapKeys, Tensor, Value, ValueType};

/// Makes a sequence of values, which it shares.
///
/// `items`: `count` values of one type; NULL allowed with 0; the handles stay the caller's. `element`:
/// for an empty sequence the element type of the tensors it could hold; else ignored. `out`: not NULL;
/// receives the value, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for items of different types or an unknown type, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_sequence(
    items: *const *const rukh_value,
    count: usize,
    element: rukh_element_type,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let items = values(items, count, "items")?;
        let element = match items.first() {
            Some(item) => item.ty(),
            None => ValueType::Tensor(args::element_type(element)?),
        };
        same_type(&items, "items")?;
        Ok(RwLock::new(Value::Sequence { element, items }))
    })
}

/// Makes a map from keys to values, which it shares.
///
/// `keys`: not NULL; a tensor of rank 1, of integers or strings without duplicates; copied. `values`:
/// `count` values of one type, in the order of the keys; NULL allowed with 0; the handles stay the
/// caller's. `element`: for an empty map the element type of the tensors it could hold; else ignored.
/// `out`: not NULL; receives the value, which the caller destroys; NULL on failure. `error`: may be
/// NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for keys of another type or rank, twice the
/// same key, another number of values than keys, or values of different types; and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_map(
    keys: *const rukh_value,
    values: *const *const rukh_value,
    count: usize,
    element: rukh_element_type,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let keys = value_of(keys)?;
        let keys = map_keys(tensor(&keys)?)?;
        let number = match &keys {
            MapKeys::Ints(_, keys) => keys.len(),
            MapKeys::Strings(keys) => keys.len(),
        };
        if number != count {
            fail!(InvalidArgument, "count: {count} values were given for {number} keys");
        }
        let values = self::values(values, count, "values")?;
        let value = match values.first() {
            Some(value) => value.ty(),
            None => ValueType::Tensor(args::element_type(element)?),
        };
        same_type(&values, "values")?;
        Ok(RwLock::new(Value::Map { keys, value, values }))
    })
}

/// Makes an optional that holds a value, which it shares, or none.
///
/// `value`: NULL for none; the handle stays the caller's. `element`: without a value the element type of
/// the tensor it could hold; else ignored. `out`: not NULL; receives the optional, which the caller
/// destroys; NULL on failure. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
/// for an unknown type, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_create_optional(
    value: *const rukh_value,
    element: rukh_element_type,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let (element, value) = if value.is_null() {
            (ValueType::Tensor(args::element_type(element)?), None)
        } else {
            let value = value_of(value)?;
            (value.ty(), Some(Box::new(value)))
        };
        Ok(RwLock::new(Value::Optional { element, value }))
    })
}

/// How many values a sequence, map or optional holds; for an optional 0 or 1.
///
/// `value`, `count`: not NULL; the value no tensor. `error`: may be NULL. Threads: any, at the same time.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a tensor, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_item_count(
    value: *const rukh_value,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(value, error, |value| args::put(count, "count", items(&read(value))?.len()))
}

/// The value at `index` of a sequence, map (in the order of its keys) or optional (at 0), shared.
///
/// `value`: not NULL; no tensor. `index`: from 0. `out`: not NULL; receives the value, which the caller
/// destroys; NULL on failure. `error`: may be NULL. Threads: any, at the same time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for a tensor or an index that is not there, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_item(
    value: *const rukh_value,
    index: usize,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(value, out, error, |value| {
        let value = read(value);
        Ok(RwLock::new(args::item(items(&value)?, index, "item")?.clone()))
    })
}

/// The keys of a map: a tensor of rank 1, of integers or strings.
///
/// `value`: not NULL; a map. `out`: not NULL; receives the tensor, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
/// for what is no map, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_value_map_keys(
    value: *const rukh_value,
    out: *mut *mut rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(value, out, error, |value| {
        let value = read(value);
        let Value::Map { keys, .. } = &*value else {
            fail!(InvalidArgument, "a map is needed; the value given is a {}", value.ty())
        };
        let tensor = match keys {
            MapKeys::Strings(keys) => Tensor::from_strings(&[keys.len()], keys.clone()),
            MapKeys::Ints(element, keys) => int_tensor(*element, keys)?,
        };
        Ok(RwLock::new(Value::Tensor(tensor)))
    })
}

fn values(handles: *const *const rukh_value, count: usize, name: &str) -> Result<Vec<Value>> {
    args::array(handles, count, name)?.iter().map(|&handle| value_of(handle)).collect()
}

fn same_type(items: &[Value], name: &str) -> Result<()> {
    let Some(first) = items.first().map(Value::ty) else { return Ok(()) };
    match items.iter().position(|item| item.ty() != first) {
        Some(i) => fail!(
            InvalidArgument,
            "{name}: item {i} is a {}, item 0 a {first}; all must be of one type",
            items[i].ty()
        ),
        None => Ok(()),
    }
}

fn items(value: &Value) -> Result<&[Value]> {
    match value {
        Value::Sequence { items, .. } => Ok(items),
        Value::Map { values, .. } => Ok(values),
        Value::Optional { value, .. } => Ok(value.as_deref().map_or(&[], std::slice::from_ref)),
        Value::Tensor(_) => {
            fail!(
                InvalidArgument,
                "a sequence, map or optional is needed; the value given is a {}",
                value.ty()
            )
        }
    }
}

fn map_keys(keys: &Tensor) -> Result<MapKeys> {
    if keys.shape().len() != 1 {
        fail!(
            InvalidArgument,
            "keys: a tensor of rank 1 is needed; the rank given is {}",
            keys.shape().len()
        );
    }
    let (keys, distinct) = match keys.strings() {
        Some(strings) => {
            let distinct = strings.iter().collect::<HashSet<_>>().len();
            (MapKeys::Strings(strings.to_vec()), distinct == strings.len())
        }
        None => {
            let ints = ints_of(keys)?;
            let distinct = ints.iter().collect::<HashSet<_>>().len();
            let all = distinct == ints.len();
            (MapKeys::Ints(keys.ty(), ints), all)
        }
    };
    if !distinct {
        fail!(InvalidArgument, "keys: each key is allowed once");
    }
    Ok(keys)
}

/// Calls `$f` with the Rust type of an integer element type, or fails.
macro_rules! with_int {
    ($element:expr, $f:ident $(, $arg:expr)*) => {
        match $element {
            ElementType::I8 => $f::<i8>($($arg),*),
            ElementType::I16 => $f::<i16>($($arg),*),
            ElementType::I32 => $f::<i32>($($arg),*),
            ElementType::I64 => $f::<i64>($($arg),*),
            ElementType::U8 => $f::<u8>($($arg),*),
            ElementType::U16 => $f::<u16>($($arg),*),
            ElementType::U32 => $f::<u32>($($arg),*),
            ElementType::U64 => $f::<u64>($($arg),*),
            other => fail!(
                InvalidArgument,
                "keys: integers or strings are needed; the element type given is {other}"
            ),
        }
    };
}

fn ints_of(keys: &Tensor) -> Result<Vec<i64>> {
    fn widen<T: crate::tensor::Element + num_traits::AsPrimitive<i64>>(keys: &Tensor) -> Result<Vec<i64>> {
        Ok(keys.view().slice::<T>().iter().map(|k| k.as_()).collect())
    }
    with_int!(keys.ty(), widen, keys)
}

fn int_tensor(element: ElementType, keys: &[i64]) -> Result<Tensor> {
    fn narrow<T: crate::tensor::Element>(keys: &[i64]) -> Result<Tensor>
    where
        i64: num_traits::AsPrimitive<T>,
    {
        let keys: Vec<T> = keys.iter().map(|k| num_traits::AsPrimitive::as_(*k)).collect();
        Ok(Tensor::from_slice(&[keys.len()], &keys)?)
    }
    with_int!(element, narrow, keys)
}
