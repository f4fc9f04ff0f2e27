//! Generating text: a client of rukh_generate's functions.

use std::ffi::CString;
use std::path::Path;
use std::ptr::{null, null_mut};

use rukh_generate::capi::*;

use super::Environment;
use super::call::{Result, c_string, call, get, make, text};

/// Sequences of tokens that grow, with their model.
pub struct Generator(*mut rukh_generator);

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and destroyed once.
        unsafe { rukh_generator_destroy(self.0) };
    }
}

/// Options by key and value.
pub type Settings = [(String, String)];

impl Generator {
    /// Opens a model's folder. The environment must live as long as the generators of the model.
    pub fn open(environment: &Environment, folder: &Path, settings: &Settings) -> Result<Generator> {
        let bytes = folder.as_os_str().as_encoded_bytes();
        let path = CString::new(bytes).unwrap_or_else(|_| c_string(&folder.to_string_lossy()));
        with_options(settings, |options| {
            // SAFETY: the handles are live and the path is NUL-terminated.
            make(|out, error| unsafe {
                rukh_generator_create(environment.0.cast(), path.as_ptr(), options, out, error.cast())
            })
        })
        .map(Generator)
    }

    /// Another generator of the same model.
    pub fn beside(&self, settings: &Settings) -> Result<Generator> {
        // SAFETY: the handles are live.
        let made = with_options(settings, |options| {
            make(|out, error| unsafe { rukh_generator_create_beside(self.0, options, out, error.cast()) })
        });
        made.map(Generator)
    }

    pub fn append_text(&mut self, given: &str) -> Result<()> {
        let given = c_string(given);
        // SAFETY: in this file, the generator is live, texts are NUL-terminated and places locals.
        call(|error| unsafe { rukh_generator_append_text(self.0, given.as_ptr(), error.cast()) })
    }

    pub fn append_tokens(&mut self, tokens: &[i32]) -> Result<()> {
        // SAFETY: as above; the array has its length.
        call(|error| unsafe {
            rukh_generator_append_tokens(self.0, tokens.as_ptr(), tokens.len(), error.cast())
        })
    }

    /// Makes the sequences the conversation that messages, a JSON array, stand for.
    pub fn chat(&mut self, messages: &str) -> Result<()> {
        let messages = c_string(messages);
        // SAFETY: as above.
        call(|error| unsafe { rukh_generator_chat(self.0, messages.as_ptr(), error.cast()) })
    }

    /// Appends the next token to every sequence; whether none goes on.
    pub fn advance(&mut self) -> Result<bool> {
        // SAFETY: as above; no tokens are wanted.
        get(|done, error| unsafe { rukh_generator_next(self.0, null_mut(), 0, done, error.cast()) })
            .map(|done: i32| done != 0)
    }

    /// The text of the first sequence's new tokens.
    pub fn text(&mut self) -> Result<String> {
        // SAFETY: as above; `text` gives a buffer with its size.
        text(|buf, cap, needed, error| unsafe {
            rukh_generator_text(self.0, 0, buf, cap, needed, error.cast())
        })
    }

    /// Tokens of the first sequence, those of the prompt included.
    pub fn length(&self) -> Result<usize> {
        // SAFETY: as above; no room is given, so that the count alone is written.
        get(|count, error| unsafe { rukh_generator_tokens(self.0, 0, null_mut(), 0, count, error.cast()) })
    }

    /// The size of the vocabulary. Runs the model over what is new.
    pub fn vocabulary(&mut self) -> Result<usize> {
        // SAFETY: as above.
        get(|count, error| unsafe { rukh_generator_scores(self.0, 0, null_mut(), 0, count, error.cast()) })
    }

    /// Whether the cache is full.
    pub fn is_full(&self) -> Result<bool> {
        // SAFETY: as above.
        let stop: i32 = get(|stop, error| unsafe { rukh_generator_stop(self.0, 0, stop, error.cast()) })?;
        Ok(stop == RUKH_STOP_LENGTH)
    }

    pub fn rewind(&mut self, length: usize) -> Result<()> {
        // SAFETY: as above.
        call(|error| unsafe { rukh_generator_rewind(self.0, length, error.cast()) })
    }
}

fn with_options<T>(
    settings: &Settings,
    use_them: impl FnOnce(*const rukh_generator_options) -> Result<T>,
) -> Result<T> {
    if settings.is_empty() {
        return use_them(null());
    }
    // SAFETY: the place is a local.
    let options = make(|out, error| unsafe { rukh_generator_options_create(out, error.cast()) })?;
    let set = settings.iter().try_for_each(|(key, value)| {
        let (key, value) = (c_string(key), c_string(value));
        // SAFETY: the options are live and the texts NUL-terminated.
        call(|error| unsafe {
            rukh_generator_options_set(options, key.as_ptr(), value.as_ptr(), error.cast())
        })
    });
    let result = set.and_then(|()| use_them(options));
    // SAFETY: the options are ours and destroyed once.
    unsafe { rukh_generator_options_destroy(options) };
    result
}
