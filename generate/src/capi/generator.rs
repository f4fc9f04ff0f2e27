//! Generators: made from a folder, or beside another.

use std::ffi::c_char;
use std::sync::Arc;

use super::args;
use super::guard::{call_on, create, destroy};
use super::handles::{self, Handle};
use super::options::given;
use super::types::*;
use crate::error::Result;
use crate::folder::Folder;
use crate::generator::Generator;
use crate::model::Model;
use rukh_client::Environment;
use rukh_sys::{rukh_environment, rukh_error, rukh_status};

impl Handle for rukh_generator {
    type Object = Generator;
    const NAME: &'static str = "rukh_generator";
}

/// Opens a language model: a folder as onnxruntime-genai's model builder writes it, with genai_config.json, the model
/// and, for texts, tokenizer.json and a chat template.
///
/// `environment`: NULL for one of the generator's own; else it must live as long as the generators of the model do.
/// `folder`: not NULL; a path in the system's encoding. `options`: NULL for the defaults. `out`: not NULL; receives the
/// generator, whose sequences are empty and which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
/// any. Errors: `RUKH_ERROR_NOT_FOUND` for a folder or file that is not there, `RUKH_ERROR_INVALID_MODEL` for files that
/// do not fit each other, `RUKH_ERROR_UNSUPPORTED`, `RUKH_ERROR_INVALID_ARGUMENT` for options, those of
/// `rukh_session_create`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_create(
    environment: *const rukh_environment,
    folder: *const c_char,
    options: *const rukh_generator_options,
    out: *mut *mut rukh_generator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let options = given(options)?;
        let folder = Folder::read(args::path(folder, "folder")?)?;
        let model = Model::open(given_or_new(environment)?, folder, &options)?;
        Generator::new(Arc::new(model), options)
    })
}

/// Makes another generator of the same model, with sequences and caches of its own. The model is in memory once, and
/// generators may run at the same time.
///
/// `generator`: not NULL. `options`: NULL for those of `generator`; what is said of provider and session is not read.
/// `out`: not NULL; receives the generator, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
/// any, one at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_create_beside(
    generator: *const rukh_generator,
    options: *const rukh_generator_options,
    out: *mut *mut rukh_generator,
    error: *mut *mut rukh_error,
) -> rukh_status {
    create(out, error, || {
        let (model, own) =
            of(generator, |generator| Ok((generator.model.clone(), generator.options().clone())))?;
        let options = if options.is_null() { own } else { given(options)? };
        Generator::new(model, options)
    })
}

/// The caller's environment, which librukh checks at each use, or one of the generator's own.
fn given_or_new(environment: *const rukh_environment) -> Result<Environment> {
    if environment.is_null() { Environment::new(None) } else { Ok(Environment::lent(environment)) }
}

fn of<T>(generator: *const rukh_generator, take: impl FnOnce(&Generator) -> Result<T>) -> Result<T> {
    let object = handles::find(generator)?;
    take(&*handles::lock(&object, rukh_generator::NAME)?)
}

/// Destroys a generator; the model goes with its last one. NULL, and a pointer that is no live handle of this kind, is
/// left alone.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_destroy(generator: *mut rukh_generator) {
    destroy(generator);
}

/// Changes an option of how tokens are chosen: `sample`, `temperature`, `top_k`, `top_p`, `min_p`,
/// `repetition_penalty`, `seed` or `ignore_stop`.
///
/// `generator`, `key`, `value`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_INVALID_ARGUMENT` for another key or a value that is not allowed, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_set(
    generator: *mut rukh_generator,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| generator.set(args::text(key, "key")?, args::text(value, "value")?))
}

/// The tokens of a text. Texts of special tokens stand for these tokens.
///
/// `generator`, `text`: not NULL. `whole`: 1 for a text that begins a sequence, with the tokens that the tokenizer puts
/// there; 0 for one in the middle. `tokens`: room for `cap` tokens; NULL allowed with 0, to ask for `count` alone.
/// `count`: may be NULL; receives the number of tokens. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_UNSUPPORTED` without a tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for too little room, and the handle
/// errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_encode(
    generator: *const rukh_generator,
    text: *const c_char,
    whole: i32,
    tokens: *mut i32,
    cap: usize,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        let found = generator.model.tokenizer()?.encode(args::text(text, "text")?, whole != 0)?;
        let found: Vec<i32> = found.into_iter().map(|token| token as i32).collect();
        args::put_array(&found, tokens, cap, count, "tokens")
    })
}

/// The text of tokens, without special ones.
///
/// `generator`: not NULL. `tokens`: `count` of them. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be
/// NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a tokenizer,
/// `RUKH_ERROR_INVALID_ARGUMENT` for a negative token or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_decode(
    generator: *const rukh_generator,
    tokens: *const i32,
    count: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        let text = generator.model.tokenizer()?.decode(&args::tokens(tokens, count)?)?;
        args::put_text(&text, buf, cap, needed).map(drop)
    })
}
