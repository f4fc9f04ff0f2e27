//! Sequences that grow: their tokens, what of them the model has seen, and the choice of the next token.

use std::sync::Arc;

use crate::caches::{Caches, Scores};
use crate::error::{Result, fail};
use crate::model::Model;
use crate::options::{Options, SearchOptions};
use crate::sampling::{Random, Sampling};
use crate::text::Stream;

pub(crate) struct Generator {
    pub(crate) model: Arc<Model>,
    options: Options,
    sampling: Sampling,
    random: Random,
    max_length: usize,
    caches: Caches,
    sequences: Vec<Sequence>,
    /// Scores after the last token of every sequence, unless there are newer tokens.
    scores: Option<Vec<f32>>,
}

#[derive(Default)]
struct Sequence {
    tokens: Vec<u32>,
    stream: Stream,
    /// The length at which a stop token ended it; the tokens behind only keep the batch together.
    ended: Option<usize>,
}

/// Whether a sequence goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// Its last token is a stop token.
    Token,
    /// It has as many tokens as the caches hold.
    Length,
}

/// Scores of a whole prompt are computed only up to so many numbers; beyond, those of its last token alone.
const MOST_SCORES: usize = 1 << 22;

impl Generator {
    pub(crate) fn new(model: Arc<Model>, options: Options) -> Result<Generator> {
        let context = model.folder.model.context_length;
        let max_length = options.max_length.or(model.folder.search.max_length).unwrap_or(context);
        if max_length > context && options.max_length.is_some() {
            fail!(
                InvalidArgument,
                "option \"max_length\": {max_length} is not allowed; the model's context (genai_config.json: model.context_length) has {context} tokens"
            );
        }
        let max_length = max_length.clamp(1, context);
        let caches = Caches::new(&model, options.sequences, max_length, options.share_buffer)?;
        let search = options.search.with_defaults(&model.folder);
        Ok(Generator {
            sampling: Sampling::new(&search),
            random: Random::new(search.seed.unwrap_or(0)),
            sequences: (0..options.sequences).map(|_| Sequence::default()).collect(),
            scores: None,
            max_length,
            caches,
            model,
            options,
        })
    }

    /// The options, for another generator of the same model.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Changes how tokens are chosen. A seed starts its random numbers anew.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.options.search.set(key, value)?;
        let search: SearchOptions = self.options.search.with_defaults(&self.model.folder);
        self.sampling = Sampling::new(&search);
        if key == "seed" {
            self.random = Random::new(search.seed.unwrap_or(0));
        }
        Ok(())
    }

    /// Tokens of each sequence, those behind a stop token included.
    fn length(&self) -> usize {
        self.sequences[0].tokens.len()
    }

    pub(crate) fn append_text(&mut self, text: &str) -> Result<()> {
        let tokens = self.model.tokenizer()?.encode(text, self.length() == 0)?;
        self.append(&tokens)
    }

    /// Appends the same tokens to every sequence.
    pub(crate) fn append(&mut self, tokens: &[u32]) -> Result<()> {
        let vocabulary = self.model.folder.model.vocab_size;
        if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
            fail!(
                InvalidArgument,
                "token {token} is not allowed; the model's vocabulary has {vocabulary} tokens, from 0"
            );
        }
        let (length, max) = (self.length(), self.max_length);
        if length + tokens.len() > max {
            let context = self.model.folder.model.context_length;
            let before =
                if length == 0 { String::new() } else { format!(" behind the {length} that are there") };
            let limit = if max == context {
                format!("the model's context, which has {context}")
            } else {
                format!("option \"max_length\", which is {max} (the model's context has {context})")
            };
            fail!(
                InvalidInput,
                "the prompt has {} tokens{before}, more than {limit}; shorten it or rewind",
                tokens.len()
            );
        }
        if !tokens.is_empty() {
            self.scores = None;
        }
        for sequence in &mut self.sequences {
            sequence.tokens.extend_from_slice(tokens);
            sequence.ended = None;
            sequence.stream.skip(length + tokens.len());
        }
        Ok(())
    }

    /// Makes every sequence the conversation that messages stand for; what they share with it stays in the caches.
    pub(crate) fn chat(&mut self, messages: &str) -> Result<()> {
        let Some(template) = &self.model.template else {
            fail!(
                Unsupported,
                "{} has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json); append text instead",
                self.model.folder.path.display()
            );
        };
        let text = template.render(messages)?;
        // A template writes the tokens that begin a text itself.
        let tokens = self.model.tokenizer()?.encode(&text, false)?;
        let shared =
            |sequence: &Sequence| sequence.tokens.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
        let common = self.sequences.iter().map(shared).min().unwrap_or(0);
        let max = self.max_length;
        if tokens.len() > max {
            fail!(
                InvalidInput,
                "the conversation has {} tokens, more than the {max} that there is room for; leave out older messages",
                tokens.len()
            );
        }
        self.rewind(common)?;
        self.append(&tokens[common..])
    }

    /// Forgets tokens from `length` on.
    pub(crate) fn rewind(&mut self, length: usize) -> Result<()> {
        if length > self.length() {
            fail!(
                InvalidArgument,
                "length: {length} is not allowed; allowed is 0 to the {} tokens that there are",
                self.length()
            );
        }
        self.caches.truncate(length)?;
        if length < self.length() || self.sequences.iter().any(|sequence| sequence.ended.is_some()) {
            self.scores = None;
        }
        for sequence in &mut self.sequences {
            sequence.tokens.truncate(length);
            sequence.stream.truncate(length);
            sequence.ended = None;
        }
        Ok(())
    }

    /// Chooses the next token of every sequence: `None` for one that has ended.
    pub(crate) fn next(&mut self) -> Result<Vec<Option<u32>>> {
        if self.done() {
            match self.stop(0)? {
                Stop::Length => fail!(
                    InvalidInput,
                    "the sequence has {} tokens, as many as the cache holds; rewind, or make the generator with a greater max_length (the model's context has {})",
                    self.length(),
                    self.model.folder.model.context_length
                ),
                _ => fail!(InvalidInput, "a stop token has ended every sequence; append or rewind to go on"),
            }
        }
        let mut scores = self.take_scores()?;
        let vocabulary = self.model.folder.model.vocab_size;
        let stops: &[u32] =
            if self.options.search.ignore_stop { &[] } else { &self.model.folder.model.eos_token_id.0 };
        let mut chosen = Vec::with_capacity(self.sequences.len());
        for (sequence, scores) in self.sequences.iter_mut().zip(scores.chunks_exact_mut(vocabulary)) {
            if sequence.ended.is_some() {
                sequence.tokens.push(stops.first().copied().unwrap_or(0));
                chosen.push(None);
                continue;
            }
            let token = self.sampling.choose(scores, &sequence.tokens, &mut self.random);
            sequence.tokens.push(token);
            if stops.contains(&token) {
                sequence.ended = Some(sequence.tokens.len());
            }
            chosen.push(Some(token));
        }
        Ok(chosen)
    }

    /// Whether every sequence has ended.
    pub(crate) fn done(&self) -> bool {
        self.length() >= self.max_length || self.sequences.iter().all(|sequence| sequence.ended.is_some())
    }

    pub(crate) fn stop(&self, sequence: usize) -> Result<Stop> {
        let sequence = self.sequence(sequence)?;
        Ok(match sequence.ended {
            Some(_) => Stop::Token,
            None if sequence.tokens.len() >= self.max_length => Stop::Length,
            None => Stop::No,
        })
    }

    /// The tokens of a sequence, prompt included.
    pub(crate) fn tokens(&self, sequence: usize) -> Result<&[u32]> {
        let sequence = self.sequence(sequence)?;
        Ok(&sequence.tokens[..sequence.ended.unwrap_or(sequence.tokens.len())])
    }

    /// The text of generated tokens that was not taken yet, in whole characters; `take` says
    /// whether it is taken by that.
    pub(crate) fn text(&mut self, sequence: usize, take: impl FnOnce(&str) -> Result<bool>) -> Result<()> {
        let end = self.done() || self.stop(sequence)? != Stop::No;
        let tokens = self.tokens(sequence)?;
        let (text, stream) = self.sequences[sequence].stream.next(self.model.tokenizer()?, tokens, end)?;
        if take(&text)? {
            self.sequences[sequence].stream = stream;
        }
        Ok(())
    }

    /// The scores that the next token of a sequence is chosen by.
    pub(crate) fn scores(&mut self, sequence: usize) -> Result<&[f32]> {
        self.sequence(sequence)?;
        let scores = self.take_scores()?;
        let vocabulary = self.model.folder.model.vocab_size;
        Ok(&self.scores.insert(scores)[sequence * vocabulary..][..vocabulary])
    }

    fn sequence(&self, index: usize) -> Result<&Sequence> {
        match self.sequences.get(index) {
            Some(sequence) => Ok(sequence),
            None => fail!(
                InvalidArgument,
                "sequence: {index} is not allowed; there are {}, from 0",
                self.sequences.len()
            ),
        }
    }

    /// Runs the model over what it has not seen, and takes the scores away.
    fn take_scores(&mut self) -> Result<Vec<f32>> {
        if let Some(scores) = self.scores.take() {
            return Ok(scores);
        }
        let length = self.length();
        if length == 0 {
            fail!(InvalidInput, "there is nothing to go on from; append a text, tokens or messages first");
        }
        // The last token's scores are needed, so that it is run again where the caches have it.
        self.caches.truncate(length - 1)?;
        loop {
            let start = self.caches.length();
            let left = length - start;
            let numbers = left * self.sequences.len() * self.model.folder.model.vocab_size;
            let (count, scores) = if left == 1 {
                (1, Scores::One)
            } else if left <= self.options.chunk && numbers <= MOST_SCORES {
                (left, Scores::Several)
            } else {
                ((left - 1).min(self.options.chunk), Scores::None)
            };
            let rows: Vec<&[u32]> =
                self.sequences.iter().map(|sequence| &sequence.tokens[start..start + count]).collect();
            if let Some(scores) = self.caches.extend(&rows, scores)? {
                return Ok(scores);
            }
        }
    }
}
