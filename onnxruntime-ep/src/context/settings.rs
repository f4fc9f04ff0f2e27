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
    /// The option that asks for parts without weights, where one does.
    weightless: Option<&'static str>,
}

/// Options that ask for parts without weights. A later one, `ep.enable_weightless_mode`, is refused by ONNX Runtime, since this
/// provider's devices say nothing of such a mode.
const WEIGHTLESS: &[&str] = &["ep.enable_weightless", "ep.enable_weightless_ep_context_nodes"];

impl ContextSettings {
    /// Takes an entry of a session's; one that is about something else is left alone.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "ep.context_enable" => self.enabled = flag(key, value)?,
            "ep.context_embed_mode" => self.embedded = flag(key, value)?,
            "ep.context_file_path" => self.file = (!value.is_empty()).then(|| value.into()),
            "ep.context_node_name_prefix" => value.clone_into(&mut self.prefix),
            _ => {
                if let Some(name) = WEIGHTLESS.iter().find(|name| **name == key) {
                    self.weightless = flag(key, value)?.then_some(*name).or(self.weightless);
                }
            }
        }
        Ok(())
    }

    /// Whether what the entries ask for can be made, once all of them were taken.
    pub(crate) fn check(&self) -> Result<()> {
        match self.weightless {
            Some(option) if self.enabled => fail!(
                NotImplemented,
                "session option \"{option}\" is 1 and \"ep.context_enable\" too: parts that rukh compiles have their weights, packed for the device; leave the option out"
            ),
            _ => Ok(()),
        }
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
    fn parts_without_weights_are_refused_where_they_would_be_made() {
        for (entries, refused) in [
            (&[("ep.enable_weightless", "1"), ("ep.context_enable", "1")][..], true),
            (&[("ep.context_enable", "1"), ("ep.enable_weightless_ep_context_nodes", "1")], true),
            (
                &[
                    ("ep.context_enable", "1"),
                    ("ep.enable_weightless_ep_context_nodes", "1"),
                    ("ep.enable_weightless", "0"),
                ],
                true,
            ),
            (&[("ep.enable_weightless", "1")], false),
            (&[("ep.context_enable", "1"), ("ep.enable_weightless", "0")], false),
        ] {
            let mut settings = ContextSettings::default();
            for (key, value) in entries {
                settings.take(key, value).unwrap();
            }
            assert_eq!(settings.check().is_err(), refused, "{entries:?}");
        }
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
