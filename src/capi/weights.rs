//! Models and weights in memory of the caller's, without a copy.

use std::ffi::{c_char, c_void};

use bytes::Bytes;

use super::args;
use super::guard::{call_on, create_on};
use super::locked;
use super::session::SessionObject;
use super::types::*;
use super::values::{Foreign, tensor, value_of};
use crate::error::{Result, fail};
use crate::session::Source;

/// Bytes of the caller's, released with their last owner.
struct Lent {
    size: usize,
    owner: Foreign,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the header demands `size` bytes that stay as they are until the deleter is called, which is when
        // this is dropped; `lent` has checked the address.
        unsafe { std::slice::from_raw_parts(self.owner.data.cast(), self.size) }
    }
}

/// Bytes of the caller's. They are released when this fails, too.
pub(super) fn lent(owner: Foreign, size: usize) -> Result<Bytes> {
    if args::array(owner.data.cast::<u8>(), size, "data")?.is_empty() {
        return Ok(Bytes::new());
    }
    Ok(Bytes::from_owner(Lent { size, owner }))
}

/// Makes a session from the bytes of a model file in memory of the caller's, without a copy: weights stay where they are.
/// External data come from option "external_data_folder" and from `rukh_session_options_add_external_file`.
///
/// Sessions of one environment that are given the same memory with the same options share its weights, unless option
/// "share_weights" is "0"; it is then held for as long as one of them lives.
///
/// `environment`: not NULL; kept alive by the session. `data`: `size` bytes, which must stay as they are until `deleter`
/// is called. `deleter`: may be NULL (the memory then outlives every session made of it); called once with `data` and
/// `user` when nothing uses the memory any more, also when this call fails. `options`: NULL for the defaults; copied.
/// `out`: not NULL; receives the session, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
/// any, at the same time. Errors: as `rukh_session_create`.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_create_from_buffer(
    environment: *const rukh_environment,
    data: *const c_void,
    size: usize,
    deleter: rukh_deleter,
    user: *mut c_void,
    options: *const rukh_session_options,
    out: *mut *mut rukh_session,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let owner = Foreign { data: data.cast_mut(), user, deleter };
    create_on(environment, out, error, move |environment| {
        let bytes = lent(owner, size)?;
        SessionObject::open(environment, Source::Kept(&bytes), options)
    })
}

/// Gives sessions a tensor for an initializer of the model's main graph, in place of the one that the model has or whose
/// external data it names; those data are then not read, and need not be there.
///
/// Nothing is copied where a kernel takes the elements as they lie; `rukh_value_create_tensor_over` makes a tensor over
/// memory of the caller's. Sessions of one environment that are given the same memory for the same model share it.
///
/// `options`: not NULL. `name`: not NULL; copied; one that was given before is replaced. `value`: not NULL; a tensor of
/// the initializer's type and shape on the host, shared, whose elements must stay as they are until the options and every
/// session made from them are gone; the handle stays the caller's. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for an empty name, a value that is no tensor or lies in device memory, and the handle
/// errors. Making the session fails with `RUKH_ERROR_NOT_FOUND` for a name that the model does not have, and
/// `RUKH_ERROR_INVALID_ARGUMENT` for another type or shape.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_add_initializer(
    options: *mut rukh_session_options,
    name: *const c_char,
    value: *const rukh_value,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let (name, value) = (args::text(name, "name")?, value_of(value)?);
        if name.is_empty() {
            fail!(InvalidArgument, "name: an initializer has a name that is not empty");
        }
        let tensor = tensor(&value)?;
        if tensor.buffer().is_some_and(|buffer| buffer.device().is_some()) {
            fail!(
                InvalidArgument,
                "value: initializer \"{name}\" is in device memory; rukh_value_copy brings it to the host"
            );
        }
        // What it replaces is released with the lock released.
        let _old = locked(options).options.given.initializers.insert(name.to_owned(), tensor.clone());
        Ok(())
    })
}

/// Gives sessions the bytes of a file of external data, which then need not be there, without a copy.
///
/// `options`: not NULL. `location`: not NULL; the file's name as the model's tensors have it, relative to the model's
/// folder; copied; one that was given before is replaced. `data`: `size` bytes, which must stay as they are until
/// `deleter` is called; NULL allowed with 0. `deleter`: may be NULL (the memory then outlives the options and every
/// session made from them); called once with `data` and `user` when nothing uses the memory any more, also when this call
/// fails. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors. A name that no
/// tensor of the model has is left alone.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_add_external_file(
    options: *mut rukh_session_options,
    location: *const c_char,
    data: *const c_void,
    size: usize,
    deleter: rukh_deleter,
    user: *mut c_void,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let owner = Foreign { data: data.cast_mut(), user, deleter };
    call_on(options, error, move |options| {
        let location = args::text(location, "location")?;
        if location.is_empty() {
            fail!(InvalidArgument, "location: a file of external data has a name that is not empty");
        }
        let bytes = lent(owner, size)?;
        // What it replaces is released with the lock released.
        let _old = locked(options).options.given.files.insert(location.to_owned(), bytes);
        Ok(())
    })
}
