//! The chat template: how messages become one text. Its language is Jinja, as transformers runs it.

use std::io::Write;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::Value as Json;
use serde_json::ser::Formatter;

use crate::error::{Result, fail};
use crate::folder::{Folder, read_text};

pub(crate) struct Template {
    environment: Environment<'static>,
    /// What templates know beside the messages: the texts of special tokens.
    tokens: Vec<(String, String)>,
}

const NAME: &str = "chat_template";

impl Template {
    /// The folder's template: chat_template.jinja, else that of tokenizer_config.json; `None` where there is none.
    pub(crate) fn read(folder: &Folder) -> Result<Option<Template>> {
        let path = folder.path.join("tokenizer_config.json");
        let settings: Json = match read_text(&path)?.map(|text| serde_json::from_str(&text)) {
            None => Json::Null,
            Some(Ok(settings)) => settings,
            Some(Err(e)) => fail!(InvalidModel, "{}: {e}", path.display()),
        };
        let file = folder.path.join("chat_template.jinja");
        let source = match read_text(&file)? {
            Some(source) => source,
            None => match chosen(&settings["chat_template"]) {
                Some(source) => source,
                None => return Ok(None),
            },
        };
        match Template::new(source, &settings) {
            Ok(template) => Ok(Some(template)),
            Err(e) => fail!(InvalidModel, "the chat template of {}: {e}", folder.path.display()),
        }
    }

    /// A template with the special tokens of tokenizer_config.json.
    pub(super) fn new(source: String, settings: &Json) -> std::result::Result<Template, Error> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_filter("tojson", to_json);
        environment.add_template_owned(NAME, source)?;
        let texts = ["bos_token", "eos_token", "pad_token", "unk_token"];
        let tokens = texts.map(|name| (name.to_owned(), token_text(&settings[name]))).to_vec();
        Ok(Template { environment, tokens })
    }

    /// The text of messages, a JSON array of objects with `role` and `content`, with what begins an answer.
    pub(crate) fn render(&self, messages: &str) -> Result<String> {
        let parsed: Json = match serde_json::from_str(messages) {
            Ok(parsed) => parsed,
            Err(e) => fail!(InvalidArgument, "messages: this is no JSON: {e}"),
        };
        let well_formed = parsed
            .as_array()
            .is_some_and(|list| !list.is_empty() && list.iter().all(|message| message["role"].is_string()));
        if !well_formed {
            fail!(
                InvalidArgument,
                "messages: an array of objects with \"role\" and \"content\" is needed, such as [{{\"role\": \"user\", \"content\": \"Hello\"}}]"
            );
        }
        let tokens = self.tokens.iter().map(|(name, text)| (name.as_str(), Value::from(text)));
        let rest = [("messages", Value::from(Serde(&parsed))), ("add_generation_prompt", Value::from(true))];
        let known = Value::from_pairs(tokens.chain(rest));
        match self.environment.get_template(NAME).and_then(|template| template.render(known)) {
            Ok(text) => Ok(text),
            Err(e) => fail!(InvalidArgument, "messages: the model's chat template refuses them: {e}"),
        }
    }
}

/// The template among those of tokenizer_config.json: a text, or the one named "default" of a list.
fn chosen(given: &Json) -> Option<String> {
    let default = |list: &Vec<Json>| {
        let named = list.iter().find(|entry| entry["name"] == "default").or(list.first())?;
        named["template"].as_str().map(str::to_owned)
    };
    given.as_str().map(str::to_owned).or_else(|| given.as_array().and_then(default))
}

/// A special token's text: a text, or an object that has one.
fn token_text(given: &Json) -> String {
    given.as_str().or_else(|| given["content"].as_str()).unwrap_or_default().to_owned()
}

fn raise_exception(message: String) -> std::result::Result<String, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// JSON as Python's `json.dumps` writes it, which transformers puts in place of Jinja's own filter: with spaces behind
/// commas and colons, and without escapes for HTML.
fn to_json(value: Value, settings: Kwargs) -> std::result::Result<String, Error> {
    let indent: Option<usize> = settings.get("indent")?;
    // Others (ensure_ascii, separators, sort_keys) stay as they are by default.
    let mut out = Vec::new();
    let written = match indent {
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, pretty))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Spaced)),
    };
    let failed = |e: String| Error::new(ErrorKind::InvalidOperation, e);
    written.map_err(|e| failed(e.to_string()))?;
    String::from_utf8(out).map_err(|e| failed(e.to_string()))
}

/// One line with spaces behind commas and colons.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}
