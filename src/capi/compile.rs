//! Compiling a model to an artifact.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::args;
use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle, Kind};
use super::locked;
use super::options::{self, TextOptions};
use super::session_options::{SessionOptionsObject, session_options};
use super::types::*;
use super::user::User;
use crate::error::{Result, fail};
use crate::session::{CompileOptions, Policy, Source, Targets, compile_model};

/// How a model is compiled, and who is told how far it is.
#[derive(Default)]
pub(super) struct CompileOptionsObject {
    targets: String,
    weights: Option<Policy>,
    shapes: String,
    tuning_files: String,
    progress: Progress,
}

/// Who is told, and with what.
type Progress = Option<(rukh_progress_callback, Arc<User>)>;

impl Handle for rukh_compile_options {
    type Object = Mutex<CompileOptionsObject>;
    const KIND: Kind = Kind::CompileOptions;
    const NAME: &'static str = "rukh_compile_options";
}

impl TextOptions for CompileOptionsObject {
    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "targets" => {
                if !value.is_empty() {
                    Targets::parse(value)?;
                }
                self.targets = value.to_owned();
            }
            "weights" => match Policy::NAMES.iter().find(|(name, _)| *name == value) {
                Some((_, policy)) => self.weights = Some(*policy),
                None => fail!(
                    InvalidArgument,
                    "compile option \"{key}\": \"{value}\" is not allowed; allowed are used, all and external"
                ),
            },
            "shapes" => {
                shapes(value)?;
                self.shapes = value.to_owned();
            }
            "tuning_files" => self.tuning_files = value.to_owned(),
            _ => fail!(
                InvalidArgument,
                "compile option \"{key}\" is not known; known are shapes, targets, tuning_files, weights"
            ),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<(String, String)> {
        let weights = self.weights.unwrap_or(Policy::Used).name();
        vec![
            ("shapes".to_owned(), self.shapes.clone()),
            ("targets".to_owned(), self.targets.clone()),
            ("tuning_files".to_owned(), self.tuning_files.clone()),
            ("weights".to_owned(), weights.to_owned()),
        ]
    }
}

/// Reads `batch=1,sequence=128;batch=8,sequence=128`.
fn shapes(text: &str) -> Result<Vec<BTreeMap<String, usize>>> {
    let mut shapes = Vec::new();
    for shape in text.split(';').filter(|shape| !shape.trim().is_empty()) {
        let mut dimensions = BTreeMap::new();
        for dimension in shape.split(',') {
            let pair = dimension.split_once('=');
            let pair = pair.and_then(|(name, size)| Some((name.trim(), size.trim().parse::<usize>().ok()?)));
            let Some((name, size)) = pair.filter(|(name, _)| !name.is_empty()) else {
                fail!(
                    InvalidArgument,
                    "compile option \"shapes\": \"{dimension}\" is not allowed; allowed are NAME=SIZE with commas between dimensions and semicolons between shapes"
                );
            };
            dimensions.insert(name.to_owned(), size);
        }
        shapes.push(dimensions);
    }
    Ok(shapes)
}

/// Makes options for compiling, all at their defaults.
///
/// Keys of `rukh_compile_options_set`: "targets" (what the artifact is for, with commas between: "cpu", GPUs by their
/// machine codes as "gfx1100" or "sm_90", "all" for the CPU and every GPU that is known, "native", the default, for the CPU
/// and the GPUs of this machine; GPUs need not be there. The CPU's program is for processors with the vector instructions of
/// this one), "weights" ("used", the default: those that the programs read, in the form in which they read them; "all": also
/// in the model's form, so that any processor can pack them; "external": what the model's own files have as well is read
/// from there), "shapes" (dimensions of further programs, in which they are fixed: "batch=1,sequence=128", and more with
/// semicolons between; a session whose options "dim.NAME" fix the same dimensions gets that program) and "tuning_files" (the
/// names of files with results of tuning for GPUs among the targets, with semicolons between, which are read when the model
/// is compiled; a session uses those that hold on its device, unless "tunable_op_enable" is set to "0").
///
/// `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be NULL. Threads: any.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_create(
    out: *mut *mut rukh_compile_options,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || Ok(Mutex::default()))
}

/// Destroys options. `options`: may be NULL. Threads: any.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_destroy(options: *mut rukh_compile_options) {
    destroy(options);
}

/// Sets an option by name.
///
/// `options`, `key`, `value`: not NULL; copied. `error`: may be NULL. Threads: any. Errors: `RUKH_ERROR_INVALID_ARGUMENT`
/// for a key that is not known or a value that is not allowed (the message lists what is), and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_set(
    options: *mut rukh_compile_options,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::set(&mut *locked(options), key, value))
}

/// The value of an option.
///
/// `options`, `key`: not NULL. `buf`, `cap`, `needed`: see "Texts" at the top of this header. `error`: may be NULL.
/// Threads: any, at the same time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for an unknown key or a buffer that is too small,
/// and the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_get(
    options: *const rukh_compile_options,
    key: *const c_char,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::get(&*locked(options), key, buf, cap, needed))
}

/// The name of the option at `index`; together with `rukh_compile_options_get` this lists them all.
///
/// `options`: not NULL. `index`: from 0; one past the last is `RUKH_ERROR_INVALID_ARGUMENT`. `buf`, `cap`, `needed`: see
/// "Texts" at the top of this header. `error`: may be NULL. Threads: any, at the same time. Errors: also the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_key(
    options: *const rukh_compile_options,
    index: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(options, error, |options| options::key(&*locked(options), index, buf, cap, needed))
}

/// Sets who is told how far compiling is, and may end it.
///
/// `options`: not NULL. `callback`: NULL for nobody. `user`: handed to it. `release`: NULL, or called once with `user` when
/// it is not used any more, also when this call fails. `error`: may be NULL. Threads: any. Errors: the handle errors.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_options_set_progress(
    options: *mut rukh_compile_options,
    callback: rukh_progress_callback,
    user: *mut c_void,
    release: rukh_release,
    error: *mut *mut rukh_error,
) -> rukh_status {
    let user = Arc::new(User { pointer: user, release });
    call_on(options, error, move |options| {
        let progress = callback.is_some().then_some((callback, user));
        // The one before is released with the lock given back.
        let before = std::mem::replace(&mut locked(options).progress, progress);
        drop(before);
        Ok(())
    })
}

/// Compiles a model file (ONNX) to an artifact: a file that `rukh_session_create` opens in the model's place, without
/// optimising it again and without packing weights. It computes what the model computes on the same device with the same
/// options.
///
/// No GPU and no compiler is needed: an artifact has no machine code, as the library has the kernels. The same library makes
/// the same bytes of the same model, options and kind of processor. The file has its name when all of it is written, and
/// whatever had that name before is then replaced.
///
/// What runs could give besides the model's inputs (initializers that are inputs as well) is fixed. Operators that the
/// program defines cannot be compiled.
///
/// `environment`: not NULL; its threads do the work. `path`: not NULL; a model's file. `session_options`: NULL for the
/// defaults; those of the model (precision, optimization, dimensions, weights from memory) are compiled in, a number of
/// threads is what weights are packed for, and providers matter only where their options choose a precision. `options`:
/// NULL for the defaults. `out_path`: not NULL; the file to make. `error`: may be NULL. Threads: any, at the same time.
/// Errors: as `rukh_session_create`; `RUKH_ERROR_INVALID_ARGUMENT` for results of tuning that no session of this library would
/// use, `RUKH_ERROR_IO` for a file that cannot be written, `RUKH_ERROR_CANCELLED` when the
/// callback ended it; nothing is left behind then.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_model(
    environment: *const rukh_environment,
    path: *const c_char,
    session_options_handle: *const rukh_session_options,
    options: *const rukh_compile_options,
    out_path: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    compiled(environment, session_options_handle, options, out_path, error, || {
        Ok(Source::Path(args::path(path, "path")?))
    })
}

/// As `rukh_compile_model`, from the bytes of a model file.
///
/// `data`: `size` bytes, copied. External data come from option "external_data_folder" and from
/// `rukh_session_options_add_external_file`. The rest, threads and errors: as `rukh_compile_model`.
///
/// Since: 0.1.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_compile_model_from_memory(
    environment: *const rukh_environment,
    data: *const c_void,
    size: usize,
    session_options_handle: *const rukh_session_options,
    options: *const rukh_compile_options,
    out_path: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    compiled(environment, session_options_handle, options, out_path, error, || {
        Ok(Source::Bytes(args::array(data.cast::<u8>(), size, "data")?))
    })
}

fn compiled<'a>(
    environment: *const rukh_environment,
    session_options_handle: *const rukh_session_options,
    options: *const rukh_compile_options,
    out_path: *const c_char,
    error: *mut *mut rukh_error,
    source: impl FnOnce() -> Result<Source<'a>>,
) -> rukh_status {
    call_on(environment, error, |environment| {
        let source = source()?;
        let out = args::path(out_path, "out_path")?;
        let SessionOptionsObject { options: session, cancel, .. } = session_options(session_options_handle)?;
        let (wanted, progress) = compile_options(options)?;
        let mut tell = |step: &str, done: u64, total: u64| {
            let go_on = !cancel.load(Ordering::Relaxed);
            let Some((Some(callback), user)) = &progress else { return go_on };
            let step = CString::new(step).unwrap_or_default();
            // SAFETY: the header demands a function of this kind, and a text that ends in NUL is given.
            unsafe { callback(user.pointer, step.as_ptr(), done, total) == RUKH_OK && go_on }
        };
        compile_model(&environment.environment, source, &session, &wanted, out, &mut tell)
    })
}

fn compile_options(options: *const rukh_compile_options) -> Result<(CompileOptions, Progress)> {
    let default = Mutex::default();
    let pinned = if options.is_null() { None } else { Some(handles::pin(options)?) };
    let options = locked(pinned.as_deref().unwrap_or(&default));
    let targets = if options.targets.is_empty() { "native" } else { &options.targets };
    let compile = CompileOptions {
        targets: Targets::parse(targets)?,
        weights: options.weights.unwrap_or(Policy::Used),
        shapes: shapes(&options.shapes)?,
        overridable: true,
        tuning: options.tuning_files.split(';').filter(|name| !name.is_empty()).map(PathBuf::from).collect(),
    };
    Ok((compile, options.progress.clone()))
}
