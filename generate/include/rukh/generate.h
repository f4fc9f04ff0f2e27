/*
 * rukh_generate: generates text with language models that rukh runs.
 *
 * A library beside librukh (link with -lrukh_generate -lrukh), and a client of its functions. What rukh.h says of
 * errors, handles, threads, texts and arrays holds here as well; errors are librukh's. Tokens are int32_t from 0.
 *
 * A generator has one or more sequences of tokens (option "sequences"). What is appended goes to all of them; each
 * then goes on by itself.
 */


#ifndef RUKH_GENERATE_H
#define RUKH_GENERATE_H



#include "rukh/rukh.h"

/**
 * Sequences of tokens that grow, with the model that makes them.
 */
typedef struct rukh_generator rukh_generator;

/**
 * How a generator is made and how it chooses tokens.
 */
typedef struct rukh_generator_options rukh_generator_options;

/**
 * Why a sequence does not go on.
 */
typedef int32_t rukh_stop;

/**
 * It goes on.
 */
#define RUKH_STOP_NO 0

/**
 * Its last token is a stop token.
 */
#define RUKH_STOP_TOKEN 1

/**
 * It has as many tokens as the cache holds.
 */
#define RUKH_STOP_LENGTH 2

#ifdef __cplusplus
extern "C" {
#endif  /* __cplusplus */

/**
 * Makes options with default values.
 *
 * `out`: not NULL; receives the options, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
 * any. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for NULL.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_options_create(struct rukh_generator_options **out,
                                          struct rukh_error **error);

/**
 * Destroys options. Generators that were made with them keep what they say. NULL, and a pointer that is no live handle
 * of this kind, is left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_generator_options_destroy(struct rukh_generator_options *options);

/**
 * Sets an option. docs/generate.md lists the keys; `session.KEY` and `provider.KEY` are passed on to the session and to
 * the provider.
 *
 * `options`, `key`, `value`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for a key that does not exist or a value that is not allowed, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_options_set(struct rukh_generator_options *options,
                                       const char *key,
                                       const char *value,
                                       struct rukh_error **error);

/**
 * The value of an option; "" for one that is as the model's folder says.
 *
 * `options`, `key`: not NULL. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be NULL. Threads: any, one
 * at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a key that does not exist or too little room, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_options_get(const struct rukh_generator_options *options,
                                       const char *key,
                                       char *buf,
                                       size_t cap,
                                       size_t *needed,
                                       struct rukh_error **error);

/**
 * The key of an option by number.
 *
 * `options`: not NULL. `index`: from 0. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be NULL.
 * Threads: any, one at a time. Errors: `RUKH_ERROR_NOT_FOUND` behind the last, `RUKH_ERROR_INVALID_ARGUMENT`, and the
 * handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_options_key(const struct rukh_generator_options *options,
                                       size_t index,
                                       char *buf,
                                       size_t cap,
                                       size_t *needed,
                                       struct rukh_error **error);

/**
 * Opens a language model: a folder as onnxruntime-genai's model builder writes it, with genai_config.json, the model
 * and, for texts, tokenizer.json and a chat template.
 *
 * `environment`: NULL for one of the generator's own; else it must live as long as the generators of the model do.
 * `folder`: not NULL; a path in the system's encoding. `options`: NULL for the defaults. `out`: not NULL; receives the
 * generator, whose sequences are empty and which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
 * any. Errors: `RUKH_ERROR_NOT_FOUND` for a folder or file that is not there, `RUKH_ERROR_INVALID_MODEL` for files that
 * do not fit each other, `RUKH_ERROR_UNSUPPORTED`, `RUKH_ERROR_INVALID_ARGUMENT` for options, those of
 * `rukh_session_create`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_create(const struct rukh_environment *environment,
                                  const char *folder,
                                  const struct rukh_generator_options *options,
                                  struct rukh_generator **out,
                                  struct rukh_error **error);

/**
 * Makes another generator of the same model, with sequences and caches of its own. The model is in memory once, and
 * generators may run at the same time.
 *
 * `generator`: not NULL. `options`: NULL for those of `generator`; what is said of provider and session is not read.
 * `out`: not NULL; receives the generator, which the caller destroys; NULL on failure. `error`: may be NULL. Threads:
 * any, one at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, `RUKH_ERROR_OUT_OF_MEMORY`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_create_beside(const struct rukh_generator *generator,
                                         const struct rukh_generator_options *options,
                                         struct rukh_generator **out,
                                         struct rukh_error **error);

/**
 * Destroys a generator; the model goes with its last one. NULL, and a pointer that is no live handle of this kind, is
 * left alone.
 *
 * Threads: any.
 */
RUKH_API
void rukh_generator_destroy(struct rukh_generator *generator);

/**
 * Changes an option of how tokens are chosen: `sample`, `temperature`, `top_k`, `top_p`, `min_p`,
 * `repetition_penalty`, `seed` or `ignore_stop`.
 *
 * `generator`, `key`, `value`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_INVALID_ARGUMENT` for another key or a value that is not allowed, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_set(struct rukh_generator *generator,
                               const char *key,
                               const char *value,
                               struct rukh_error **error);

/**
 * The tokens of a text. Texts of special tokens stand for these tokens.
 *
 * `generator`, `text`: not NULL. `whole`: 1 for a text that begins a sequence, with the tokens that the tokenizer puts
 * there; 0 for one in the middle. `tokens`: room for `cap` tokens; NULL allowed with 0, to ask for `count` alone.
 * `count`: may be NULL; receives the number of tokens. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_UNSUPPORTED` without a tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for too little room, and the handle
 * errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_encode(const struct rukh_generator *generator,
                                  const char *text,
                                  int32_t whole,
                                  int32_t *tokens,
                                  size_t cap,
                                  size_t *count,
                                  struct rukh_error **error);

/**
 * The text of tokens, without special ones.
 *
 * `generator`: not NULL. `tokens`: `count` of them. `buf`, `cap`, `needed`: as the top of rukh.h says. `error`: may be
 * NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a tokenizer,
 * `RUKH_ERROR_INVALID_ARGUMENT` for a negative token or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_decode(const struct rukh_generator *generator,
                                  const int32_t *tokens,
                                  size_t count,
                                  char *buf,
                                  size_t cap,
                                  size_t *needed,
                                  struct rukh_error **error);

/**
 * Appends a text to every sequence. The model runs at the next `rukh_generator_next` or `rukh_generator_scores`.
 *
 * `generator`, `text`: not NULL. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_INVALID_INPUT` where more tokens than the cache holds would be there, `RUKH_ERROR_UNSUPPORTED` without a
 * tokenizer, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_append_text(struct rukh_generator *generator,
                                       const char *text,
                                       struct rukh_error **error);

/**
 * Appends tokens to every sequence. The model runs at the next `rukh_generator_next` or `rukh_generator_scores`.
 *
 * `generator`: not NULL. `tokens`: `count` of them. `error`: may be NULL. Threads: any, one at a time. Errors:
 * `RUKH_ERROR_INVALID_INPUT` where more tokens than the cache holds would be there, `RUKH_ERROR_INVALID_ARGUMENT` for
 * a token that the vocabulary does not have, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_append_tokens(struct rukh_generator *generator,
                                         const int32_t *tokens,
                                         size_t count,
                                         struct rukh_error **error);

/**
 * Makes every sequence a conversation, by the model's chat template, up to where an answer begins. What a sequence has
 * of it already stays in the cache: for each turn the whole conversation is given, and only what is new is computed.
 *
 * `generator`: not NULL. `messages`: not NULL; a JSON array of objects with `role` ("system", "user", "assistant") and
 * `content`. `error`: may be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a template or
 * tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for messages that are no such array or that the template refuses,
 * `RUKH_ERROR_INVALID_INPUT` for more tokens than the cache holds, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_chat(struct rukh_generator *generator,
                                const char *messages,
                                struct rukh_error **error);

/**
 * Runs the model over what is new and appends the next token to every sequence that has not ended.
 *
 * `generator`: not NULL. `tokens`: room for `count` tokens, one a sequence, -1 for one that had ended; NULL allowed
 * with 0. `done`: may be NULL; receives 1 when no sequence goes on after this, else 0. `error`: may be NULL. Threads:
 * any, one at a time. Errors: `RUKH_ERROR_INVALID_INPUT` for empty sequences, where every sequence has ended and where
 * the cache is full, `RUKH_ERROR_INVALID_ARGUMENT` for a `count` that is neither 0 nor the number of sequences, those
 * of `rukh_session_run`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_next(struct rukh_generator *generator,
                                int32_t *tokens,
                                size_t count,
                                int32_t *done,
                                struct rukh_error **error);

/**
 * The text of a sequence's generated tokens since the last call, in whole characters: a character whose last token is
 * not there yet comes later. Special tokens have no text.
 *
 * `generator`: not NULL. `sequence`: from 0. `buf`, `cap`, `needed`: as the top of rukh.h says; to ask for `needed`
 * alone takes nothing. `error`: may be NULL. Threads: any, one at a time. Errors: `RUKH_ERROR_UNSUPPORTED` without a
 * tokenizer, `RUKH_ERROR_INVALID_ARGUMENT` for a sequence that is not there or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_text(struct rukh_generator *generator,
                                size_t sequence,
                                char *buf,
                                size_t cap,
                                size_t *needed,
                                struct rukh_error **error);

/**
 * The tokens of a sequence, those of the prompt included.
 *
 * `generator`: not NULL. `sequence`: from 0. `tokens`: room for `cap` tokens; NULL allowed with 0, to ask for `count`
 * alone. `count`: may be NULL; receives the number of tokens. `error`: may be NULL. Threads: any, one at a time.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT` for a sequence that is not there or too little room, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_tokens(const struct rukh_generator *generator,
                                  size_t sequence,
                                  int32_t *tokens,
                                  size_t cap,
                                  size_t *count,
                                  struct rukh_error **error);

/**
 * The scores (logits) that a sequence's next token is chosen by, one for each token of the vocabulary, before any of
 * the options is applied. Runs the model over what is new.
 *
 * `generator`: not NULL. `sequence`: from 0. `scores`: room for `cap` numbers; NULL allowed with 0, to ask for `count`
 * alone. `count`: may be NULL; receives the size of the vocabulary. `error`: may be NULL. Threads: any, one at a time.
 * Errors: as `rukh_generator_next`.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_scores(struct rukh_generator *generator,
                                  size_t sequence,
                                  float *scores,
                                  size_t cap,
                                  size_t *count,
                                  struct rukh_error **error);

/**
 * Whether a sequence goes on.
 *
 * `generator`: not NULL. `sequence`: from 0. `stop`: not NULL; receives one of `RUKH_STOP_…`. `error`: may be NULL.
 * Threads: any, one at a time. Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_stop(const struct rukh_generator *generator,
                                size_t sequence,
                                rukh_stop *stop,
                                struct rukh_error **error);

/**
 * Forgets the tokens of every sequence from `length` on. What stays need not be computed again where the model's
 * attention writes into the buffer it reads.
 *
 * `generator`: not NULL. `length`: 0 to the number of tokens. `error`: may be NULL. Threads: any, one at a time.
 * Errors: `RUKH_ERROR_INVALID_ARGUMENT`, and the handle errors.
 */
RUKH_MUST_CHECK RUKH_API
rukh_status rukh_generator_rewind(struct rukh_generator *generator,
                                  size_t length,
                                  struct rukh_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  /* __cplusplus */

#endif  /* RUKH_GENERATE_H */
