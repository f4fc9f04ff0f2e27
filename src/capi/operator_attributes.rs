//! The attributes of an operator that the caller defines, and their defaults.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::args;
use super::guard::call_on;
use super::locked;
use super::types::*;
use super::values::{tensor, value_of};
use crate::error::{Result, fail};
use crate::graph::Attribute;
use crate::ops::custom::{AttributeKind, AttributeRule};

/// Adds an attribute that nodes of the operator may have. One that is not required and has no default may be left out:
/// it then is not there.
///
/// `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`.
/// `required`: 1 where a node without it is an error, else 0. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_add_attribute(
    operator: *mut rukh_operator,
    name: *const c_char,
    ty: rukh_attribute_type,
    required: i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    add(operator, name, error, || Ok((kind(ty)?, args::flag(required, "required")?, None)))
}

/// Adds an attribute with a default, which nodes without it have.
///
/// `operator`: not NULL. `name`: not NULL, not empty, and not added before. `ty`: one of `RUKH_ATTRIBUTE_…`. `data`: the
/// default, copied: a `float`, an `int64_t`, a NUL-terminated text in UTF-8, a `rukh_value *` (a tensor); for lists an
/// array of `float`, of `int64_t`, of `const char *`. NULL allowed for a list of 0. `count`: the length of a list; 1 for
/// what is no list. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_add_attribute_with_default(
    operator: *mut rukh_operator,
    name: *const c_char,
    ty: rukh_attribute_type,
    data: *const c_void,
    count: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    add(operator, name, error, || {
        let kind = kind(ty)?;
        Ok((kind, false, Some(default(kind, data, count)?)))
    })
}

fn kind(ty: rukh_attribute_type) -> Result<AttributeKind> {
    match AttributeKind::ALL.into_iter().find(|kind| *kind as i32 == ty) {
        Some(kind) => Ok(kind),
        None => {
            fail!(InvalidArgument, "ty: attribute type {ty} is not allowed; allowed are 1 to 4 and 6 to 8")
        }
    }
}

fn add(
    operator: *mut rukh_operator,
    name: *const c_char,
    error: *mut *mut rukh_error,
    rule: impl FnOnce() -> Result<(AttributeKind, bool, Option<Attribute>)>,
) -> rukh_status {
    call_on(operator, error, |operator| {
        let name = args::text(name, "name")?;
        let (kind, required, default) = rule()?;
        let parts = &mut locked(operator).parts;
        if name.is_empty() || parts.attributes.iter().any(|rule| rule.name == name) {
            fail!(InvalidArgument, "name: \"{name}\" is not allowed for an attribute; allowed is a new name");
        }
        parts.attributes.push(AttributeRule { name: name.to_owned(), kind, required, default });
        Ok(())
    })
}

fn default(kind: AttributeKind, data: *const c_void, count: usize) -> Result<Attribute> {
    let list = matches!(kind, AttributeKind::Floats | AttributeKind::Ints | AttributeKind::Strings);
    if !list && count != 1 {
        fail!(InvalidArgument, "count: {count} was given for {}; allowed is 1", kind.name());
    }
    let text = |text: *const c_char| args::text(text, "data").map(|text| text.as_bytes().to_vec());
    Ok(match kind {
        AttributeKind::Float => Attribute::Float(args::array(data.cast::<f32>(), 1, "data")?[0]),
        AttributeKind::Int => Attribute::Int(args::array(data.cast::<i64>(), 1, "data")?[0]),
        AttributeKind::String => Attribute::String(text(data.cast())?),
        AttributeKind::Tensor => {
            let value = value_of(data.cast::<rukh_value>())?;
            Attribute::Tensor(Arc::new(tensor(&value)?.clone()))
        }
        AttributeKind::Floats => Attribute::Floats(args::array(data.cast::<f32>(), count, "data")?.to_vec()),
        AttributeKind::Ints => Attribute::Ints(args::array(data.cast::<i64>(), count, "data")?.to_vec()),
        AttributeKind::Strings => {
            let texts = args::array(data.cast::<*const c_char>(), count, "data")?;
            Attribute::Strings(texts.iter().map(|&item| text(item)).collect::<Result<_>>()?)
        }
    })
}
