//! Shared libraries of operators.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::args;
use super::guard::call_on;
use super::handles::{self, Handle, Kind};
use super::locked;
use super::operator::definition;
use super::operator_calls::check;
use super::types::*;
use crate::error::{Result, Status, fail};
use crate::ops::custom::Definition;

/// What a library of operators adds operators to, while it is asked for them.
#[derive(Default)]
pub(super) struct Registry {
    operators: Vec<Arc<Definition>>,
    error: Option<CString>,
}

impl Handle for rukh_operator_registry {
    type Object = Mutex<Registry>;
    const KIND: Kind = Kind::OperatorRegistry;
    const NAME: &'static str = "rukh_operator_registry";
}

/// The symbols that a library of operators has.
const VERSION_SYMBOL: &str = "rukh_operators_abi_version";
const ENTRY_SYMBOL: &str = "rukh_register_operators";

type Version = unsafe extern "C" fn() -> u32;
type Entry = unsafe extern "C" fn(*mut rukh_operator_registry) -> rukh_status;

/// The operators of a library, which stays in the process.
fn operators_of(path: *const c_char) -> Result<Vec<Arc<Definition>>> {
    let path = args::path(path, "path")?;
    let shown = path.display();
    // SAFETY: opening a library runs its initialisers; the caller named it to have its code run.
    let library = match unsafe { open(path) } {
        Ok(library) => library,
        Err(e) => fail!(NotFound, "library of operators \"{shown}\": it cannot be opened: {e}"),
    };
    let missing = |symbol: &str| {
        let text = format!(
            "library of operators \"{shown}\": it has no symbol \"{symbol}\"; it needs {VERSION_SYMBOL} and {ENTRY_SYMBOL}"
        );
        crate::error::Error::new(Status::Unsupported, text)
    };
    // SAFETY: the header says what the functions of these names are.
    let version = unsafe { library.get::<Version>(VERSION_SYMBOL.as_bytes()) };
    let version = *version.map_err(|_| missing(VERSION_SYMBOL))?;
    // SAFETY: as above.
    let entry = unsafe { library.get::<Entry>(ENTRY_SYMBOL.as_bytes()) };
    let entry = *entry.map_err(|_| missing(ENTRY_SYMBOL))?;
    // SAFETY: as above.
    let version = unsafe { version() };
    if !serves(version) {
        fail!(
            Unsupported,
            "library of operators \"{shown}\": {VERSION_SYMBOL} says {version}; this library has {RUKH_ABI_VERSION}, and runs operators of the same major and minor version that are not newer"
        );
    }
    // Its functions are called as long as a session has one of its operators, and by threads that end late.
    std::mem::forget(library);
    let registry = Arc::new(Mutex::new(Registry::default()));
    let handle = handles::insert::<rukh_operator_registry>(registry.clone())?;
    // SAFETY: as above; the handle lives during the call.
    let status = unsafe { entry(handle) };
    handles::remove(handle);
    let Registry { operators, error } = std::mem::take(&mut *locked(&registry));
    if let Err(e) = check(status, error, ENTRY_SYMBOL) {
        fail!(Unsupported, "library of operators \"{shown}\": {ENTRY_SYMBOL}: {e}");
    }
    if operators.is_empty() {
        fail!(Unsupported, "library of operators \"{shown}\": {ENTRY_SYMBOL} added no operator");
    }
    Ok(operators)
}

/// # Safety
/// As for `libloading::Library::new`: the library's initialisers run.
#[cfg(not(windows))]
unsafe fn open(path: &Path) -> std::result::Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller's promise.
    unsafe { libloading::Library::new(path) }
}

/// What the library is linked to is looked for beside it before the usual places, if its path says where it is.
///
/// # Safety
/// As for `libloading::Library::new`: the library's initialisers run.
#[cfg(windows)]
unsafe fn open(path: &Path) -> std::result::Result<libloading::Library, libloading::Error> {
    use libloading::os::windows::{LOAD_WITH_ALTERED_SEARCH_PATH, Library};
    let named_alone = path.components().count() == 1;
    let full = if named_alone { None } else { std::path::absolute(path).ok() };
    let library = match full {
        // SAFETY: the caller's promise.
        Some(full) => unsafe { Library::load_with_flags(full, LOAD_WITH_ALTERED_SEARCH_PATH) },
        // SAFETY: the caller's promise.
        None => unsafe { Library::new(path) },
    };
    library.map(libloading::Library::from)
}

/// Adds the operators of a shared library to options. The library must export two functions in C (`RUKH_EXPORT`
/// before them does it):
///
/// `uint32_t rukh_operators_abi_version(void)`: the `RUKH_ABI_VERSION` that it was built with;
/// `rukh_status rukh_register_operators(rukh_operator_registry *registry)`: adds operators by
/// `rukh_operator_registry_add`.
///
/// It finds the functions of this header in the librukh that it is linked to, which must be the one that loads it. It
/// stays loaded until the process ends. Either all of its operators are added or none.
///
/// `options`, `path`: not NULL; a file name, or a name that the system looks up. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_NOT_FOUND` for a library that cannot be opened, `RUKH_ERROR_UNSUPPORTED` for one without these
/// functions, of another version, or that fails, `RUKH_ERROR_INVALID_ARGUMENT` for an operator that was added before, and
/// the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_options_load_operators(
    options: *mut rukh_session_options,
    path: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| {
        let operators = operators_of(path)?;
        locked(options).options.add_operators(operators)
    })
}

/// Adds the operators of a shared library to an environment, for its sessions that are opened from now on; as
/// `rukh_session_options_load_operators`.
///
/// `environment`, `path`: not NULL. `error`: may be NULL. Threads: any, at the same time. Errors: as
/// `rukh_session_options_load_operators`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_environment_load_operators(
    environment: *mut rukh_environment,
    path: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(environment, error, |environment| environment.environment.add_operators(operators_of(path)?))
}

/// Adds an operator, in the function of a library of operators that is asked for them.
///
/// `registry`, `operator`: not NULL; what the operator is now is copied, and the caller destroys its handle. `error`: may
/// be NULL. Threads: any. Errors: as `rukh_session_options_add_operator`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_registry_add(
    registry: *mut rukh_operator_registry,
    operator: *const rukh_operator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(registry, error, |registry| {
        let definition = definition(operator)?;
        locked(registry).operators.push(definition);
        Ok(())
    })
}

/// Says why a library of operators cannot add its operators.
///
/// `registry`, `text`: not NULL; the text is copied. `error`: may be NULL. Threads: any. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_operator_registry_set_error(
    registry: *mut rukh_operator_registry,
    text: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(registry, error, |registry| {
        let text = args::c_text(args::text(text, "text")?);
        locked(registry).error = Some(text);
        Ok(())
    })
}
