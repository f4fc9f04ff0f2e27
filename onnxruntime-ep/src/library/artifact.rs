//! Compiled models of librukh: made, and asked about.

use std::path::Path;
use std::ptr::null_mut;

use rukh_sys::*;

use super::call::{call, make, path_text, text};
use super::environment::Environment;
use super::session::SessionOptions;
use crate::error::Result;
use crate::ort::c_string;

/// What a model is compiled for, and which weights the file has, as librukh's compile options say it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compilation<'a> {
    pub(crate) targets: &'a str,
    pub(crate) weights: &'a str,
}

/// Compiles a model to a file, which has its name when all of it is written.
pub(crate) fn compile(
    environment: &Environment,
    model: &[u8],
    options: &SessionOptions,
    wanted: Compilation<'_>,
    file: &Path,
) -> Result<()> {
    let file = path_text(file)?;
    let compile = CompileOptions::of(wanted)?;
    // SAFETY: the handles are live; the bytes are an array of their length; the text is NUL-terminated.
    call(|error| unsafe {
        rukh_compile_model_from_memory(
            environment.0,
            model.as_ptr().cast(),
            model.len(),
            options.0,
            compile.0,
            file.as_ptr(),
            error,
        )
    })
}

/// What a compiled model holds, as a JSON object.
pub(crate) fn info(environment: &Environment, file: &Path) -> Result<String> {
    let file = path_text(file)?;
    // SAFETY: in this function, the handles are live, the text is NUL-terminated, and there is room for what is written;
    // the artifact is destroyed once.
    unsafe {
        let artifact = make(|out, error| rukh_artifact_open(environment.0, file.as_ptr(), out, error))?;
        let info =
            text(|place, room, needed, error| rukh_artifact_info(artifact, place, room, needed, error));
        rukh_artifact_destroy(artifact);
        info
    }
}

/// What librukh says of itself and this machine, as a JSON object.
pub(crate) fn report() -> Result<String> {
    // SAFETY: there is room for what is written.
    text(|place, room, needed, error| unsafe { rukh_report(place, room, needed, error) })
}

struct CompileOptions(*mut rukh_compile_options);

impl Drop for CompileOptions {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_compile_options_destroy(self.0) };
    }
}

impl CompileOptions {
    fn of(wanted: Compilation<'_>) -> Result<CompileOptions> {
        let mut handle = null_mut();
        // SAFETY: the place is a local.
        call(|error| unsafe { rukh_compile_options_create(&mut handle, error) })?;
        let options = CompileOptions(handle);
        for (key, value) in [(c"targets", wanted.targets), (c"weights", wanted.weights)] {
            let value = c_string(value);
            // SAFETY: the options are live and ours; the texts are NUL-terminated.
            call(|error| unsafe {
                rukh_compile_options_set(options.0, key.as_ptr(), value.as_ptr(), error)
            })?;
        }
        Ok(options)
    }
}
