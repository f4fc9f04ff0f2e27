//! What becomes of a generator's sequences: they are appended to, go on, are read and rewound.

use std::ffi::c_char;

use super::args;
use super::guard::call_on;
use super::types::*;
use crate::error::fail;
use crate::generator::Stop;
use rukh_sys::{rukh_error, rukh_status};

/// Appends a text to every sequence. The model runs at the next `rukh_generator_next` or `rukh_generator_scores`.
///
/// `generator`, `text`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_INVALID_INPUT` where more tokens than the cache holds would be there, `RUKH_ERROR_UNSUPPORTED` without a
/// tokenizer, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_append_text(
    generator: *mut rukh_generator,
    text: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| generator.append_text(args::text(text, "text")?))
}

/// Appends tokens to every sequence. The model runs at the next `rukh_generator_next` or `rukh_generator_scores`.
///
/// `generator`: not NULL. `tokens`: `count` of them. `error`: may be NULL. Threads: any, one at a time. Errors:
/// `RUKH_ERROR_INVALID_INPUT` where more tokens than the cache holds would be there, `RUKH_ERROR_INVALID_ARGUMENT` for
/// a token that the vocabulary does not have, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_append_tokens(
    generator: *mut rukh_generator,
    tokens: *const i32,
    count: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| generator.append(&args::tokens(tokens, count)?))
}

/// Makes every sequence a conversation, by the model's chat template, up to where an answer begins. What a sequence has
/// of it already stays in the cache: for each turn the whole conversation is given, and only what is new is computed.
///
/// `generator`: not NULL. `messages`: not NULL; a JSON array of objects with `role` ("system", "user", "assistant") and
/// `content`. `error`: may be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a template or
/// tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for messages that are no such array or that the template refuses,
/// `RUKH_ERROR_INVALID_INPUT` for more tokens than the cache holds, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_chat(
    generator: *mut rukh_generator,
    messages: *const c_char,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| generator.chat(args::text(messages, "messages")?))
}

/// Runs the model over what is new and appends the next token to every sequence that has not ended.
///
/// `generator`: not NULL. `tokens`: room for `count` tokens, one a sequence, -1 for one that had ended; NULL allowed
/// with 0. `done`: may be NULL; receives 1 when no sequence goes on after this, else 0. `error`: may be NULL. Threads:
/// any, one at a time. Errors: `RUKH_ERROR_INVALID_INPUT` for empty sequences, where every sequence has ended and where
/// the cache is full, `RUKH_ERROR_INVALID_ARGUMENT` for a `count` that is neither 0 nor the number of sequences, those
/// of `rukh_session_run`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_next(
    generator: *mut rukh_generator,
    tokens: *mut i32,
    count: usize,
    done: *mut i32,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        let sequences = generator.options().sequences;
        if count != 0 && count != sequences {
            fail!(
                InvalidArgument,
                "count: {count} is not allowed; allowed are 0 and the {sequences} sequences"
            );
        }
        let chosen = generator.next()?;
        let chosen: Vec<i32> =
            chosen.into_iter().map(|token| token.map_or(-1, |token| token as i32)).collect();
        args::put_if_wanted(done, i32::from(generator.done()));
        args::put_array(&chosen, tokens, count, std::ptr::null_mut(), "tokens")
    })
}

/// The text of a sequence's generated tokens since the last call, in whole characters: a character whose last token is
/// not there yet comes later. Special tokens have no text.
///
/// `generator`: not NULL. `sequence`: from 0. `buf`, `cap`, `needed`: as the top of rukh.h says; to ask for `needed`
/// alone takes nothing. `error`: may be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a
/// tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for a sequence that is not there or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_text(
    generator: *mut rukh_generator,
    sequence: usize,
    buf: *mut c_char,
    cap: usize,
    needed: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        generator.text(sequence, |text| args::put_text(text, buf, cap, needed))
    })
}

/// The tokens of a sequence, those of the prompt included.
///
/// `generator`: not NULL. `sequence`: from 0. `tokens`: room for `cap` tokens; NULL allowed with 0, to ask for `count`
/// alone. `count`: may be NULL; receives the number of tokens. `error`: may be NULL. Threads: any, one at a time.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a sequence that is not there or too little room, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_tokens(
    generator: *const rukh_generator,
    sequence: usize,
    tokens: *mut i32,
    cap: usize,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        let found: Vec<i32> = generator.tokens(sequence)?.iter().map(|token| *token as i32).collect();
        args::put_array(&found, tokens, cap, count, "tokens")
    })
}

/// The scores (logits) that a sequence's next token is chosen by, one for each token of the vocabulary, before any of
/// the options is applied. Runs the model over what is new.
///
/// `generator`: not NULL. `sequence`: from 0. `scores`: room for `cap` numbers; NULL allowed with 0, to ask for `count`
/// alone. `count`: may be NULL; receives the size of the vocabulary. `error`: may be NULL. Threads: any, one at a time.
/// Errors: as `rukh_generator_next`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_scores(
    generator: *mut rukh_generator,
    sequence: usize,
    scores: *mut f32,
    cap: usize,
    count: *mut usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        args::put_array(generator.scores(sequence)?, scores, cap, count, "scores")
    })
}

/// Whether a sequence goes on.
///
/// `generator`: not NULL. `sequence`: from 0. `stop`: not NULL; receives one of `RUKH_STOP_…`. `error`: may be NULL.
/// Threads: any, one at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_stop(
    generator: *const rukh_generator,
    sequence: usize,
    stop: *mut rukh_stop,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| {
        let found = match generator.stop(sequence)? {
            Stop::No => RUKH_STOP_NO,
            Stop::Token => RUKH_STOP_TOKEN,
            Stop::Length => RUKH_STOP_LENGTH,
        };
        args::put(stop, "stop", found)
    })
}

/// Forgets the tokens of every sequence from `length` on. What stays need not be computed again where the model's
/// attention writes into the buffer it reads.
///
/// `generator`: not NULL. `length`: 0 to the number of tokens. `error`: may be NULL. Threads: any, one at a time.
/// Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rukh_generator_rewind(
    generator: *mut rukh_generator,
    length: usize,
    error: *mut *mut rukh_error,
) -> rukh_status {
    call_on(generator, error, |generator| generator.rewind(length))
}
