//! Calls of the C API with errors as texts, and folders for tests.
#![allow(dead_code)]

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

// The functions that the library under test calls.
use rukh as _;
use rukh::capi::{rukh_error_code, rukh_error_destroy, rukh_error_message};
use rukh_generate::capi::*;

pub fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/generate/model")
}

/// A copy of the example's folder for a test to break.
pub fn copy(name: &str) -> PathBuf {
    let to = std::env::temp_dir().join(format!("rukh-generate-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(example()).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
    }
    to
}

/// An error's code and message.
pub type Failure = (i32, String);

pub fn call(function: impl FnOnce(*mut *mut rukh_error) -> i32) -> Result<(), Failure> {
    let mut error = null_mut();
    let status = function(&mut error);
    if status == 0 {
        assert!(error.is_null());
        return Ok(());
    }
    // SAFETY: a live error, read before it is destroyed.
    unsafe {
        let error = error.cast();
        assert_eq!(rukh_error_code(error), status);
        let message = CStr::from_ptr(rukh_error_message(error)).to_str().unwrap().to_owned();
        rukh_error_destroy(error);
        Err((status, message))
    }
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

#[derive(Debug)]
pub struct Generator(pub *mut rukh_generator);

impl Drop for Generator {
    fn drop(&mut self) {
        // SAFETY: the handle is ours.
        unsafe { rukh_generator_destroy(self.0) };
    }
}

fn options(settings: &[(&str, &str)]) -> Result<*mut rukh_generator_options, Failure> {
    let mut options = null_mut();
    // SAFETY: in this file, handles are live, texts NUL-terminated and places locals.
    call(|error| unsafe { rukh_generator_options_create(&mut options, error) })?;
    for (key, value) in settings {
        call(|error| unsafe {
            rukh_generator_options_set(options, c(key).as_ptr(), c(value).as_ptr(), error)
        })?;
    }
    Ok(options)
}

impl Generator {
    pub fn open(folder: &Path, settings: &[(&str, &str)]) -> Result<Generator, Failure> {
        let options = options(settings)?;
        let mut generator = null_mut();
        let path = c(folder.to_str().unwrap());
        let opened = call(|error| unsafe {
            rukh_generator_create(null(), path.as_ptr(), options, &mut generator, error)
        });
        unsafe { rukh_generator_options_destroy(options) };
        assert_eq!(generator.is_null(), opened.is_err());
        opened.map(|()| Generator(generator))
    }

    pub fn beside(&self, settings: &[(&str, &str)]) -> Result<Generator, Failure> {
        let options = options(settings)?;
        let mut generator = null_mut();
        let made =
            call(|error| unsafe { rukh_generator_create_beside(self.0, options, &mut generator, error) });
        unsafe { rukh_generator_options_destroy(options) };
        made.map(|()| Generator(generator))
    }

    pub fn set(&self, key: &str, value: &str) -> Result<(), Failure> {
        call(|error| unsafe { rukh_generator_set(self.0, c(key).as_ptr(), c(value).as_ptr(), error) })
    }

    pub fn append(&self, tokens: &[i32]) -> Result<(), Failure> {
        call(|error| unsafe { rukh_generator_append_tokens(self.0, tokens.as_ptr(), tokens.len(), error) })
    }

    pub fn append_text(&self, text: &str) -> Result<(), Failure> {
        call(|error| unsafe { rukh_generator_append_text(self.0, c(text).as_ptr(), error) })
    }

    pub fn chat(&self, messages: &str) -> Result<(), Failure> {
        call(|error| unsafe { rukh_generator_chat(self.0, c(messages).as_ptr(), error) })
    }

    pub fn rewind(&self, length: usize) -> Result<(), Failure> {
        call(|error| unsafe { rukh_generator_rewind(self.0, length, error) })
    }

    /// The next token of each sequence, and whether all are done.
    pub fn next(&self, sequences: usize) -> Result<(Vec<i32>, bool), Failure> {
        let (mut tokens, mut done) = (vec![-2; sequences], -1);
        call(|error| unsafe {
            rukh_generator_next(self.0, tokens.as_mut_ptr(), sequences, &mut done, error)
        })?;
        Ok((tokens, done == 1))
    }

    /// The next tokens of the first and only sequence.
    pub fn take(&self, count: usize) -> Vec<i32> {
        (0..count).map(|_| self.next(1).unwrap().0[0]).collect()
    }

    pub fn tokens(&self, sequence: usize) -> Vec<i32> {
        let mut count = 0;
        call(|error| unsafe { rukh_generator_tokens(self.0, sequence, null_mut(), 0, &mut count, error) })
            .unwrap();
        let mut tokens = vec![0; count];
        call(|error| unsafe {
            rukh_generator_tokens(self.0, sequence, tokens.as_mut_ptr(), count, &mut count, error)
        })
        .unwrap();
        tokens
    }

    pub fn scores(&self) -> Vec<f32> {
        let mut count = 0;
        call(|error| unsafe { rukh_generator_scores(self.0, 0, null_mut(), 0, &mut count, error) }).unwrap();
        let mut scores = vec![0.0; count];
        call(|error| unsafe {
            rukh_generator_scores(self.0, 0, scores.as_mut_ptr(), count, &mut count, error)
        })
        .unwrap();
        scores
    }

    pub fn stop(&self, sequence: usize) -> i32 {
        let mut stop = -1;
        call(|error| unsafe { rukh_generator_stop(self.0, sequence, &mut stop, error) }).unwrap();
        stop
    }

    pub fn text(&self, sequence: usize) -> Result<String, Failure> {
        built(|buf, cap, needed, error| unsafe {
            rukh_generator_text(self.0, sequence, buf, cap, needed, error)
        })
    }

    /// The text of all that comes until the sequence ends.
    pub fn rest(&self) -> String {
        let mut text = String::new();
        while !self.next(0).unwrap().1 {
            text += &self.text(0).unwrap();
        }
        text + &self.text(0).unwrap()
    }

    pub fn encode(&self, text: &str) -> Vec<i32> {
        let mut tokens = vec![0; 1000];
        let mut count = 0;
        call(|error| unsafe {
            rukh_generator_encode(self.0, c(text).as_ptr(), 0, tokens.as_mut_ptr(), 1000, &mut count, error)
        })
        .unwrap();
        tokens.truncate(count);
        tokens
    }

    pub fn decode(&self, tokens: &[i32]) -> String {
        built(|buf, cap, needed, error| unsafe {
            rukh_generator_decode(self.0, tokens.as_ptr(), tokens.len(), buf, cap, needed, error)
        })
        .unwrap()
    }
}

fn built(
    function: impl Fn(*mut c_char, usize, *mut usize, *mut *mut rukh_error) -> i32,
) -> Result<String, Failure> {
    let mut needed = 0;
    call(|error| function(null_mut(), 0, &mut needed, error))?;
    let mut buffer = vec![1u8; needed];
    call(|error| function(buffer.as_mut_ptr().cast(), needed, &mut needed, error))?;
    assert_eq!(buffer.pop(), Some(0));
    Ok(String::from_utf8(buffer).unwrap())
}
