//! Sessions: opening a model, and what it takes and gives.

use std::ffi::{CString, c_char, c_void};

use super::args::{self, c_text};
use super::guard::{catch, create_on, destroy};
use super::handles::{Handle, Kind, Pin};
use super::model_info::ModelTexts;
use super::session_options::{Defect, SessionOptionsObject, session_options};
use super::types::*;
use crate::error::{Result, fail};
use crate::session::{Log, Port, Session, Source};

pub(super) struct SessionObject {
    /// Dropped before the environment, whose threads it uses.
    pub(super) session: Session,
    pub(super) environment: Pin<rukh_environment>,
    pub(super) inputs: Vec<PortTexts>,
    pub(super) outputs: Vec<PortTexts>,
    pub(super) overridable: Vec<PortTexts>,
    pub(super) texts: ModelTexts,
    defect: Option<Defect>,
}

impl Handle for rukh_session {
    type Object = SessionObject;
    const KIND: Kind = Kind::Session;
    const NAME: &'static str = "rukh_session";

    fn log(object: &SessionObject) -> Option<Log> {
        Some(object.log())
    }
}

/// The names of an input or output as C reads them.
pub(super) struct PortTexts {
    pub(super) name: CString,
    /// For each dimension its name or formula; `None` for one that is known or nameless.
    pub(super) dims: Vec<Option<CString>>,
}

impl PortTexts {
    fn new(port: &Port) -> Self {
        let dims = port.shape.iter().flatten().map(|dim| {
            let text = dim.to_string();
            // A `?` is in the symbols that the library made up, and in no formula without them.
            (dim.known().is_none() && !text.contains('?')).then(|| c_text(&text))
        });
        PortTexts { name: c_text(&port.name), dims: dims.collect() }
    }
}

impl SessionObject {
    pub(super) fn open(
        environment: &Pin<rukh_environment>,
        source: Source<'_>,
        options: *const rukh_session_options,
    ) -> Result<Self> {
        let SessionOptionsObject { mut options, defect, cancel } = session_options(options)?;
        if let (true, Source::Path(path)) = (options.log_id.is_empty(), &source) {
            options.log_id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        let session = Session::open_until(environment.environment.clone(), source, &options, cancel)?;
        Ok(SessionObject {
            inputs: session.inputs().iter().map(PortTexts::new).collect(),
            outputs: session.outputs().iter().map(PortTexts::new).collect(),
            overridable: session.overridable().iter().map(PortTexts::new).collect(),
            texts: ModelTexts::new(&session),
            session,
            environment: environment.keep()?,
            defect,
        })
    }

    pub(super) fn log(&self) -> Log {
        self.session.log().clone()
    }

    /// The panic that a test ordered; see `Defect`.
    pub(super) fn meet_defect(&self) {
        match self.defect {
            None => {}
            Some(Defect::Caller) => panic!("a panic was ordered"),
            Some(Defect::Worker) => {
                self.environment.environment.pool.for_each(64, &|_| panic!("a panic was ordered"))
            }
        }
    }
}

/// Runs `body` on a session that is not the handle of the exported function; a panic poisons it.
pub(super) fn guarded<T>(session: &Pin<rukh_session>, body: impl FnOnce() -> Result<T>) -> Result<T> {
    session.check()?;
    catch(body).unwrap_or_else(|panic| {
        session.poison();
        Err(panic.report(rukh_session::log(session)))
    })
}

/// The position of an input by its name: those that the model needs, then those that it has values for.
pub(super) fn input_position(session: &Session, name: &str) -> Result<usize> {
    match session.overridable().iter().position(|port| port.name == name) {
        Some(index) => Ok(session.inputs().len() + index),
        None => position(session.inputs(), name, "input"),
    }
}

/// The position of an input or output among `ports` by its name.
pub(super) fn position(ports: &[Port], name: &str, what: &str) -> Result<usize> {
    match ports.iter().position(|port| port.name == name) {
        Some(index) => Ok(index),
        None => {
            let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
            fail!(NotFound, "{what} \"{name}\" is not there; the model has {}", names.join(", "))
        }
    }
}

/// Opens a model file (ONNX), or an artifact that `rukh_compile_model` made of one, and makes it ready to run. Sessions of one environment that open the
/// same unchanged file with the same options share its weights, unless option "share_weights" is "0".
///
/// `environment`: not NULL; kept alive by the session. `path`: not NULL; a file name, see
/// "Texts" at the top of this header. External data are read from the model's folder. `options`: NULL for the defaults;
/// copied. `out`: not NULL; receives the session, which the caller destroys; NULL on failure. `error`:
/// may be NULL. Threads: any, at the same time. Errors: `RUKH_ERROR_NOT_FOUND` and `RUKH_ERROR_IO` for
/// the file, `RUKH_ERROR_INVALID_MODEL` for a model that breaks the standard (the message names the
/// node), `RUKH_ERROR_UNSUPPORTED` for what cannot be run, `RUKH_ERROR_DEVICE` for a wanted provider
/// without a device, `RUKH_ERROR_OUT_OF_MEMORY`, `RUKH_ERROR_CANCELLED` after `rukh_session_options_cancel`, and the
/// handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_create(
    environment: *const rukh_environment,
    path: *const c_char,
    options: *const rukh_session_options,
    out: *mut *mut rukh_session,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |environment| {
        SessionObject::open(environment, Source::Path(args::path(path, "path")?), options)
    })
}

/// Makes a session from a copy of the bytes of a model file in memory. External data come from option
/// "external_data_folder" and from `rukh_session_options_add_external_file`; `rukh_session_create_from_buffer` copies
/// nothing.
///
/// `environment`: not NULL; kept alive by the session. `data`: `size` bytes; copied. `options`: NULL for
/// the defaults; copied. `out`: not NULL; receives the session, which the caller destroys; NULL on
/// failure. `error`: may be NULL. Threads: any, at the same time. Errors: as `rukh_session_create`, but
/// for the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_create_from_memory(
    environment: *const rukh_environment,
    data: *const c_void,
    size: usize,
    options: *const rukh_session_options,
    out: *mut *mut rukh_session,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create_on(environment, out, error, |environment| {
        let bytes = args::array(data.cast::<u8>(), size, "data")?;
        SessionObject::open(environment, Source::Bytes(bytes), options)
    })
}

/// Destroys a session. Runs that are under way and io bindings keep what they need. NULL, and a pointer
/// that is no live handle of this kind, is left alone.
///
/// Threads: any; a run's callback may call it too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_session_destroy(session: *mut rukh_session) {
    destroy(session);
}
