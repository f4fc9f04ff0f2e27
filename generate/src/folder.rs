//! genai_config.json: what a folder of onnxruntime-genai's says about its model.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Result, fail};

/// What is in the folder besides the model itself.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) model: Model,
    pub(crate) search: Search,
}

#[derive(Deserialize)]
pub(crate) struct Model {
    pub(crate) context_length: usize,
    pub(crate) vocab_size: usize,
    #[serde(default)]
    pub(crate) eos_token_id: Tokens,
    pub(crate) decoder: Decoder,
}

#[derive(Deserialize)]
pub(crate) struct Decoder {
    pub(crate) filename: String,
    pub(crate) head_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_key_value_heads: usize,
    #[serde(default)]
    pub(crate) inputs: Inputs,
    #[serde(default)]
    pub(crate) outputs: Outputs,
    /// Of decoders that are split over several files.
    pub(crate) pipeline: Option<serde_json::Value>,
}

/// The names of the model's inputs; `%d` is the number of the layer.
#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct Inputs {
    pub(crate) input_ids: String,
    pub(crate) attention_mask: String,
    pub(crate) position_ids: String,
    pub(crate) past_key_names: String,
    pub(crate) past_value_names: String,
}

impl Default for Inputs {
    fn default() -> Inputs {
        Inputs {
            input_ids: "input_ids".into(),
            attention_mask: "attention_mask".into(),
            position_ids: "position_ids".into(),
            past_key_names: "past_key_values.%d.key".into(),
            past_value_names: "past_key_values.%d.value".into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct Outputs {
    pub(crate) logits: String,
    pub(crate) present_key_names: String,
    pub(crate) present_value_names: String,
}

impl Default for Outputs {
    fn default() -> Outputs {
        Outputs {
            logits: "logits".into(),
            present_key_names: "present.%d.key".into(),
            present_value_names: "present.%d.value".into(),
        }
    }
}

/// How the next token is chosen, unless the caller says otherwise.
#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct Search {
    pub(crate) do_sample: bool,
    pub(crate) max_length: Option<usize>,
    pub(crate) past_present_share_buffer: bool,
    pub(crate) repetition_penalty: f64,
    pub(crate) temperature: f64,
    pub(crate) top_k: usize,
    pub(crate) top_p: f64,
}

impl Default for Search {
    fn default() -> Search {
        Search {
            do_sample: false,
            max_length: None,
            past_present_share_buffer: false,
            repetition_penalty: 1.0,
            temperature: 1.0,
            top_k: 50,
            top_p: 1.0,
        }
    }
}

/// One token or several.
#[derive(Clone, Default, Deserialize)]
#[serde(from = "OneOrMany")]
pub(crate) struct Tokens(pub(crate) Vec<u32>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl From<OneOrMany> for Tokens {
    fn from(given: OneOrMany) -> Tokens {
        Tokens(match given {
            OneOrMany::One(token) => vec![token],
            OneOrMany::Many(tokens) => tokens,
        })
    }
}

#[derive(Deserialize)]
struct File {
    model: Model,
    #[serde(default)]
    search: Search,
}

impl Folder {
    pub(crate) fn read(path: &Path) -> Result<Folder> {
        if !path.is_dir() {
            fail!(NotFound, "there is no folder {}", path.display());
        }
        let file = path.join("genai_config.json");
        let Some(text) = read_text(&file)? else {
            fail!(
                NotFound,
                "{} has no genai_config.json; a folder as onnxruntime-genai's model builder writes it is needed",
                path.display()
            );
        };
        let File { model, search } = match serde_json::from_str(&text) {
            Ok(read) => read,
            Err(e) => fail!(InvalidModel, "{}: {e}", file.display()),
        };
        let file = file.display();
        if model.decoder.pipeline.is_some() {
            fail!(Unsupported, "{file}: model.decoder.pipeline: a decoder in several files is not supported");
        }
        for (name, number) in [
            ("model.context_length", model.context_length),
            ("model.vocab_size", model.vocab_size),
            ("model.decoder.head_size", model.decoder.head_size),
            ("model.decoder.num_hidden_layers", model.decoder.num_hidden_layers),
            ("model.decoder.num_key_value_heads", model.decoder.num_key_value_heads),
        ] {
            if number == 0 || number > i32::MAX as usize {
                fail!(InvalidModel, "{file}: {name}: {number} is not allowed; allowed is 1 to {}", i32::MAX);
            }
        }
        for token in &model.eos_token_id.0 {
            if *token as usize >= model.vocab_size {
                fail!(
                    InvalidModel,
                    "{file}: model.eos_token_id: {token} is not allowed; the vocabulary (model.vocab_size) has {} tokens",
                    model.vocab_size
                );
            }
        }
        Ok(Folder { path: path.to_owned(), model, search })
    }
}

/// A file of text; `None` where there is none.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    match std::fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(e) => fail!(InvalidModel, "{}: {e}", path.display()),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => fail!(Io, "{}: {e}", path.display()),
    }
}
