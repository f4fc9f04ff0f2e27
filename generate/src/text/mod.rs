//! Between texts and tokens: the tokenizer, the chat template, and texts that arrive token by token.

mod stream;
mod template;
#[cfg(test)]
mod tests;
mod tokenizer;

pub(crate) use stream::Stream;
pub(crate) use template::Template;
pub(crate) use tokenizer::Tokenizer;
