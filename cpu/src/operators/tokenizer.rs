//! Cutting strings into tokens.

use regex::Regex;

use crate::ops::OpError;
use crate::ops::tokenizer::{Tokenizer, Tokens};
use crate::tensor::{Tensor, Value, ValueRef};

use crate::kernel::{CpuKernel, Entry, KernelContext, ValueKernel};
use crate::loops::item::{items, shape_of};

pub(super) const KERNELS: &[Entry] = &[Entry::new("Tokenizer", |node| {
    Ok(CpuKernel::Value(Box::new(Tokenize(node.op::<Tokenizer>().clone()))))
})
.domain("com.microsoft")];

/// What stands before the tokens of a string, and behind them.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

struct Tokenize(Tokenizer);

impl ValueKernel for Tokenize {
    fn run(&self, _: &KernelContext<'_>, inputs: &[Option<ValueRef<'_>>]) -> Result<Vec<Value>, OpError> {
        let (strings, shape) = (items::<String>(inputs, 0)?, shape_of(inputs, 0)?);
        let rows: Vec<Vec<&str>> = strings.iter().map(|text| self.tokens(text)).collect();
        // Marks alone are no tokens.
        let width = match rows.iter().map(Vec::len).max().unwrap_or(0) {
            0 => 0,
            longest if self.0.mark => longest + MARKS.len(),
            longest => longest,
        };
        let mut result = Vec::with_capacity(rows.len() * width);
        for row in rows.iter().filter(|_| width > 0) {
            let start = result.len();
            let [before, after] = MARKS;
            result.extend(self.0.mark.then(|| before.to_owned()));
            result.extend(row.iter().map(|&token| token.to_owned()));
            result.extend(self.0.mark.then(|| after.to_owned()));
            result.resize(start + width, self.0.pad.clone());
        }
        Ok(vec![Value::Tensor(Tensor::from_strings(&[shape, &[width]].concat(), result))])
    }
}

impl Tokenize {
    fn tokens<'a>(&self, text: &'a str) -> Vec<&'a str> {
        match &self.0.tokens {
            Tokens::Characters => text.char_indices().map(|(i, c)| &text[i..i + c.len_utf8()]).collect(),
            Tokens::Between(separators) => separators.iter().fold(vec![text], |parts, separator| {
                parts.into_iter().flat_map(|part| self.between(separator, part)).collect()
            }),
            Tokens::Matches(expression) => self.matches(expression, text),
        }
    }

    fn is_long_enough(&self, token: &str) -> bool {
        token.chars().take(self.0.least).count() == self.0.least
    }

    fn between<'a>(&self, separator: &Regex, text: &'a str) -> Vec<&'a str> {
        let mut parts = Vec::new();
        let (mut start, mut from) = (0, 0);
        while let Some(found) = separator.find_at(text, from) {
            parts.push(&text[start..found.start()]);
            // An empty match takes the character behind it with it.
            start = if found.is_empty() { next(text, found.start()) } else { found.end() };
            from = start;
            if from > text.len() || found.start() == text.len() {
                break;
            }
        }
        parts.push(text.get(start..).unwrap_or_default());
        parts.retain(|part| self.is_long_enough(part));
        parts
    }

    /// A match that is too short is looked for again one character further.
    fn matches<'a>(&self, expression: &Regex, text: &'a str) -> Vec<&'a str> {
        let mut tokens = Vec::new();
        let mut from = 0;
        while let Some(found) = (from <= text.len()).then(|| expression.find_at(text, from)).flatten() {
            if self.is_long_enough(found.as_str()) {
                tokens.push(found.as_str());
                from = found.end();
            } else {
                from = next(text, found.start());
            }
        }
        tokens
    }
}

/// Where the character after the one at `position` begins.
fn next(text: &str, position: usize) -> usize {
    position + text[position..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: Tokens, least: usize, text: &str) -> Vec<&str> {
        Tokenize(Tokenizer { mark: false, pad: String::new(), least, tokens }).tokens(text)
    }

    fn regex(text: &str) -> Regex {
        Regex::new(text).unwrap()
    }

    #[test]
    fn tokens_of_every_kind() {
        assert_eq!(tokens(Tokens::Characters, 1, "aß你"), ["a", "ß", "你"]);
        let words = || Tokens::Matches(regex("[a-z]+"));
        assert_eq!(tokens(words(), 1, "the cat's 9 mats"), ["the", "cat", "s", "mats"]);
        assert_eq!(tokens(words(), 2, "the cat's 9 mats"), ["the", "cat", "mats"]);
        // Every match is too short, the empty ones too.
        assert_eq!(tokens(Tokens::Matches(regex("x*")), 3, "xx你x"), [""; 0]);
        let marks = || Tokens::Between(vec![regex("[ .]"), regex("-+")]);
        assert_eq!(tokens(marks(), 1, "a--b c. d-你"), ["a", "b", "c", "d", "你"]);
        assert_eq!(tokens(marks(), 2, "ab--b cd"), ["ab", "cd"]);
        assert_eq!(tokens(Tokens::Between(vec![regex("x*")]), 1, "abc"), [""; 0]);
        assert_eq!(tokens(marks(), 1, ""), [""; 0]);
    }
}
