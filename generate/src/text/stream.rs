//! A text that grows with its tokens, in whole characters.
//!
//! A character may take several tokens, and a token's text may depend on the token before it (a leading space), so
//! that a token is decoded together with those before it that have not made a piece of their own.

use super::Tokenizer;
use crate::error::Result;

/// How much of a sequence's text was given out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    /// Where the tokens begin that are decoded for the next piece, and where those begin that are new.
    context: usize,
    read: usize,
}

/// What decoders put in place of bytes that are no character, or not yet.
const INCOMPLETE: char = '\u{FFFD}';
/// No character of UTF-8 is longer: so many tokens without a whole character are none.
const LONGEST: usize = 4;

impl Stream {
    /// Forgets tokens from `length` on. What was given out stays so.
    pub(crate) fn truncate(&mut self, length: usize) {
        if length < self.read {
            *self = Stream { context: length, read: length };
        }
    }

    /// Passes over tokens before `length`, such as those of a prompt.
    pub(crate) fn skip(&mut self, length: usize) {
        if length > self.read {
            *self = Stream { context: length.saturating_sub(LONGEST), read: length };
        }
    }

    /// The text of new tokens up to the last whole character, or all of it at the end; and the stream after it.
    pub(crate) fn next(&self, tokenizer: &Tokenizer, tokens: &[u32], end: bool) -> Result<(String, Stream)> {
        let before = tokenizer.decode(&tokens[self.context..self.read])?;
        let all = tokenizer.decode(&tokens[self.context..])?;
        let broken = all.ends_with(INCOMPLETE) && tokens.len() - self.read < LONGEST;
        if broken && !end {
            return Ok((String::new(), self.clone()));
        }
        let piece = all.strip_prefix(before.as_str()).unwrap_or(&all[common(&before, &all)..]).to_owned();
        Ok((piece, Stream { context: self.read, read: tokens.len() }))
    }
}

/// The length of the start that both texts share, in bytes.
fn common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
}
