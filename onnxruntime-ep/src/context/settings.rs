//! ONNX Runtime's options about models with compiled parts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{Result, fail};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextSettings {
    /// Whether the session makes such a model.
    pub(crate) enabled: bool,
    /// The file of that model; where one is read from memory, the file that it would be.
    pub(crate) file: Option<PathBuf>,
    /// Whether compiled parts go into the model, and not beside it.
    pub(crate) embedded: bool,
    /// What the names of compiled parts begin with.
    pub(crate) prefix: String,
}

impl ContextSettings {
    /// Takes an entry of a session's; one that is about something else is left alone.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "ep.context_enable" => self.enabled = flag(key, value)?,
            "ep.context_embed_mode" => self.embedded = flag(key, value)?,
            "ep.context_file_path" => self.file = (!value.is_empty()).then(|| value.into()),
            "ep.context_node_name_prefix" => value.clone_into(&mut self.prefix),
            _ => {}
        }
        Ok(())
    }

    /// The file of the model that is made: by ONNX Runtime's rule beside the model that is compiled, unless the options say
    /// where.
    pub(crate) fn model_file(&self, compiled: Option<&Path>) -> Option<PathBuf> {
        let beside = || {
            let compiled = compiled?;
            let mut name: OsString = compiled.file_stem()?.to_owned();
            name.push("_ctx.onnx");
            Some(compiled.with_file_name(name))
        };
        self.file.clone().or_else(beside)
    }
}

fn flag(key: &str, value: &str) -> Result<bool> {
    match value {
        "1" => Ok(true),
        "0" | "" => Ok(false),
        _ => fail!(InvalidArgument, "session option \"{key}\" is \"{value}\"; allowed is 0 or 1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_where_the_options_say_or_beside_the_other() {
        let mut settings = ContextSettings::default();
        assert_eq!(settings.model_file(None), None);
        assert_eq!(settings.model_file(Some(Path::new("a/b.onnx"))), Some("a/b_ctx.onnx".into()));
        assert_eq!(settings.model_file(Some(Path::new("b"))), Some("b_ctx.onnx".into()));
        settings.take("ep.context_file_path", "/c/d.onnx").unwrap();
        assert_eq!(settings.model_file(Some(Path::new("a/b.onnx"))), Some("/c/d.onnx".into()));
    }

    #[test]
    fn flags_are_0_or_1() {
        let mut settings = ContextSettings::default();
        settings.take("ep.context_enable", "1").unwrap();
        settings.take("ep.context_embed_mode", "1").unwrap();
        settings.take("another", "yes").unwrap();
        assert!(settings.enabled && settings.embedded);
        let error = settings.take("ep.context_embed_mode", "yes").unwrap_err().message;
        assert!(error.contains("\"ep.context_embed_mode\" is \"yes\"; allowed is 0 or 1"), "{error}");
    }
}
