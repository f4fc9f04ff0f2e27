//! tokenizer.json: texts to tokens and back.

use crate::error::{Result, fail};
use crate::folder::{Folder, read_text};

pub(crate) struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    /// The folder's tokenizer; `None` where it has none, and then only tokens can be used.
    pub(crate) fn read(folder: &Folder) -> Result<Option<Tokenizer>> {
        let path = folder.path.join("tokenizer.json");
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let tokenizer: tokenizers::Tokenizer = match text.parse() {
            Ok(tokenizer) => tokenizer,
            Err(e) => fail!(InvalidModel, "{}: {e}", path.display()),
        };
        let vocabulary = tokenizer.get_vocab(true);
        let largest = vocabulary.iter().max_by_key(|(_, id)| **id);
        if let Some((token, id)) = largest.filter(|(_, id)| **id as usize >= folder.model.vocab_size) {
            fail!(
                InvalidModel,
                "{}: token {id} (\"{token}\") does not fit the model, whose vocabulary (genai_config.json: model.vocab_size) has {} tokens; the tokenizer is another model's",
                path.display(),
                folder.model.vocab_size
            );
        }
        Ok(Some(Tokenizer(tokenizer)))
    }

    /// The tokens of a text; `start`: with the tokens that the tokenizer puts around a whole text.
    pub(crate) fn encode(&self, text: &str, start: bool) -> Result<Vec<u32>> {
        match self.0.encode_fast(text, start) {
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(e) => fail!(InvalidData, "the tokenizer cannot encode the text: {e}"),
        }
    }

    /// The text of tokens, without special ones.
    pub(crate) fn decode(&self, tokens: &[u32]) -> Result<String> {
        match self.0.decode(tokens, true) {
            Ok(text) => Ok(text),
            Err(e) => fail!(InvalidData, "the tokenizer cannot decode the tokens: {e}"),
        }
    }
}
