//! Compiled models.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;

use rukh::capi::*;

use super::call::{Result, c_string, call, make, text};
use super::environment::Environment;
use super::options::{Handle, Options};

/// A compiled model, to ask about.
pub struct Artifact(*mut rukh_artifact);

impl Drop for Artifact {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_artifact_destroy(self.0) };
    }
}

/// Whether it suits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Optimal,
    Works,
    Unfit,
}

impl Artifact {
    pub fn open(environment: &Environment, path: &Path) -> Result<Artifact> {
        let path = c_path(path);
        // SAFETY: the environment is live and the text NUL-terminated.
        let handle =
            make(|out, error| unsafe { rukh_artifact_open(environment.0, path.as_ptr(), out, error) })?;
        Ok(Artifact(handle))
    }

    /// What it holds, a JSON object.
    pub fn info(&self) -> Result<String> {
        // SAFETY: the handle is live, and `text` gives a buffer.
        text(|buf, cap, needed, error| unsafe { rukh_artifact_info(self.0, buf, cap, needed, error) })
    }

    /// The verdict for a session with these options, and its reason.
    pub fn check(&self, options: &Options) -> Result<(Verdict, String)> {
        let options = Handle::new(options)?;
        let mut verdict = RUKH_ARTIFACT_UNFIT;
        let place = &raw mut verdict;
        // SAFETY: the handles are live, and the places written to are locals.
        let reason = text(|buf, cap, needed, error| unsafe {
            rukh_artifact_check(self.0, options.0, place, buf, cap, needed, error)
        })?;
        let verdict = match verdict {
            RUKH_ARTIFACT_OPTIMAL => Verdict::Optimal,
            RUKH_ARTIFACT_WORKS => Verdict::Works,
            _ => Verdict::Unfit,
        };
        Ok((verdict, reason))
    }
}

/// Whether a file begins as a compiled model does.
pub fn is_artifact(path: &Path) -> bool {
    let mut start = [0; 8];
    let read =
        std::fs::File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start == *b"\x8frukh\r\n\x1a"
}

/// Options for compiling, destroyed with this.
struct CompileOptions(*mut rukh_compile_options);

impl Drop for CompileOptions {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_compile_options_destroy(self.0) };
    }
}

/// Compiles a model. `settings`: keys and values of `rukh_compile_options_set`. `told`: what is done, step and steps.
pub fn compile(
    environment: &Environment,
    model: &Path,
    options: &Options,
    settings: &[(&str, String)],
    out: &Path,
    told: &dyn Fn(&str, u64, u64),
) -> Result<()> {
    unsafe extern "C" fn tell(user: *mut c_void, step: *const c_char, done: u64, total: u64) -> rukh_status {
        // SAFETY: `user` is the reference below, which outlives the call that compiles; the text is the library's.
        let (told, step) = unsafe { (*user.cast::<&dyn Fn(&str, u64, u64)>(), CStr::from_ptr(step)) };
        told(&step.to_string_lossy(), done, total);
        RUKH_OK
    }
    let options = Handle::new(options)?;
    // SAFETY: the place written to is a local.
    let compile = CompileOptions(make(|out, error| unsafe { rukh_compile_options_create(out, error) })?);
    for (key, value) in settings {
        let (key, value) = (c_string(key), c_string(value));
        // SAFETY: the handle is live and the texts are NUL-terminated.
        call(|error| unsafe { rukh_compile_options_set(compile.0, key.as_ptr(), value.as_ptr(), error) })?;
    }
    let mut told = told;
    let user = (&raw mut told).cast();
    // SAFETY: the handle is live, and `told` outlives it.
    call(|error| unsafe { rukh_compile_options_set_progress(compile.0, Some(tell), user, None, error) })?;
    let (model, out) = (c_path(model), c_path(out));
    // SAFETY: all handles are live and the texts NUL-terminated.
    call(|error| unsafe {
        rukh_compile_model(environment.0, model.as_ptr(), options.0, compile.0, out.as_ptr(), error)
    })
}

/// A path for the library; one with a NUL names no file.
fn c_path(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).unwrap_or_default()
}
