//! Opens what a node `EPContext` holds, or names.

use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::{ContextSettings, attributes, is_context};
use crate::error::{Error, Result, fail};
use crate::library::{Environment, Session, SessionOptions};
use crate::ort::{Attribute, Graph, Node};

/// Who compiled a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A provider, by its name; "" where the node does not say.
    Provider(String),
    /// The node is not a compiled part.
    None,
}

/// Who compiled the part that a node stands for.
pub(crate) fn source(node: &Node<'_>) -> Result<Source> {
    if !is_context(&node.operator()?, &node.domain()?) {
        return Ok(Source::None);
    }
    Ok(Source::Provider(text(node, attributes::SOURCE)?.unwrap_or_default()))
}

/// A session of the compiled part that a node stands for. The graph is one with that node, of the node's model.
pub(crate) fn open(
    environment: &Environment,
    options: &SessionOptions,
    settings: &ContextSettings,
    graph: &Graph<'_>,
    node: &Node<'_>,
) -> Result<Session> {
    let session = opened(environment, options, settings, graph, node).map_err(|error| told(node, error))?;
    let (inputs, outputs) = (node.inputs()?.len(), node.outputs()?.len());
    if (session.inputs.len(), session.outputs.len()) != (inputs, outputs) {
        let (takes, gives) = (session.inputs.len(), session.outputs.len());
        let error = format!(
            "it has {inputs} inputs and {outputs} outputs, and what was compiled takes {takes} and gives {gives}; take the model as it was made"
        );
        return Err(told(node, Error::new(crate::error::Code::InvalidGraph, error)));
    }
    Ok(session)
}

fn opened(
    environment: &Environment,
    options: &SessionOptions,
    settings: &ContextSettings,
    graph: &Graph<'_>,
    node: &Node<'_>,
) -> Result<Session> {
    if number(node, attributes::MAIN)? == Some(0) {
        fail!(
            InvalidGraph,
            "its main_context is 0, which refers to another node; parts that rukh compiled stand alone"
        );
    }
    match number(node, attributes::EMBED_MODE)?.unwrap_or(1) {
        0 => {
            let Some(name) = text(node, attributes::CONTENT)?.filter(|name| !name.is_empty()) else {
                fail!(InvalidGraph, "its ep_cache_context names no file, and its embed_mode is 0");
            };
            let file = inside(graph.model_file()?.as_deref(), settings, &name)?;
            check_is_artifact(&beginning(&file)?, &format!("its file \"{}\"", file.display()))?;
            Session::open_file(environment, &file, options)
        }
        1 => {
            let Some(content) = node.bytes_of_attribute(attributes::CONTENT)? else {
                fail!(InvalidGraph, "its ep_cache_context is empty, and its embed_mode is 1");
            };
            check_is_artifact(content.as_ref(), "its ep_cache_context")?;
            Session::open(environment, content, options)
        }
        mode => fail!(InvalidGraph, "its embed_mode is {mode}; allowed is 0 or 1"),
    }
}

/// How artifacts begin (docs/artifacts.md). librukh would open a model as well, which is nothing that was compiled.
const BEGINNING: &[u8] = b"\x8frukh\r\n\x1a";

fn check_is_artifact(content: &[u8], what: &str) -> Result<()> {
    if !content.starts_with(BEGINNING) {
        fail!(InvalidGraph, "{what} is no compiled model of rukh");
    }
    Ok(())
}

/// The first bytes of a file.
fn beginning(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(file)
        .and_then(|opened| opened.take(BEGINNING.len() as u64).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => fail!(NoSuchFile, "its file \"{}\" cannot be read: {error}", file.display()),
    }
}

/// The error with the node, and what to do.
fn told(node: &Node<'_>, error: Error) -> Error {
    let name = node.name().unwrap_or_default();
    let message = format!(
        "node \"{name}\" (com.microsoft.EPContext), a part that rukh compiled: {}. To compile the model again, open the one it was made from with session option ep.context_enable=1",
        error.message.trim_end_matches('.')
    );
    Error { message, ..error }
}

/// The file of a name that a model has, which must not lead out of the model's folder.
fn inside(model: Option<&Path>, settings: &ContextSettings, name: &str) -> Result<PathBuf> {
    let leads_out = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
    if Path::new(name).components().any(leads_out) {
        fail!(
            InvalidGraph,
            "its file \"{name}\" is not in the model's folder; allowed are names from there, without \"..\""
        );
    }
    let Some(model) = model.or(settings.file.as_deref()) else {
        fail!(
            InvalidArgument,
            "its file \"{name}\" lies beside the model, which came from memory; set ep.context_file_path to the file that the model would be"
        );
    };
    let file = model.with_file_name(name);
    // A link may lead out as well. What is not there is told when it is opened.
    if let (Ok(real), Some(Ok(folder))) = (file.canonicalize(), model.parent().map(folder_of))
        && !real.starts_with(&folder)
    {
        fail!(
            InvalidGraph,
            "its file \"{name}\" is a link to \"{}\", which is not in the model's folder \"{}\"",
            real.display(),
            folder.display()
        );
    }
    Ok(file)
}

/// A folder without links in its name; "" is the current one.
fn folder_of(folder: &Path) -> std::io::Result<PathBuf> {
    if folder.as_os_str().is_empty() { Path::new(".").canonicalize() } else { folder.canonicalize() }
}

fn number(node: &Node<'_>, name: &str) -> Result<Option<i64>> {
    match node.attribute_named(name)? {
        Some(Attribute::Int(value)) => Ok(Some(value)),
        _ => Ok(None),
    }
}

fn text(node: &Node<'_>, name: &str) -> Result<Option<String>> {
    match node.attribute_named(name)? {
        Some(Attribute::String(bytes)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_from_the_model_and_no_further() {
        let settings = ContextSettings::default();
        let model = Some(Path::new("/models/a.onnx"));
        assert_eq!(inside(model, &settings, "p.rukh").unwrap(), Path::new("/models/p.rukh"));
        assert_eq!(inside(model, &settings, "./b/p.rukh").unwrap(), Path::new("/models/./b/p.rukh"));
        for name in ["../p.rukh", "/etc/p.rukh", "b/../../p.rukh"] {
            let error = inside(model, &settings, name).unwrap_err().message;
            assert!(error.contains(name) && error.contains("not in the model's folder"), "{error}");
        }
        let error = inside(None, &settings, "p.rukh").unwrap_err().message;
        assert!(error.contains("set ep.context_file_path"), "{error}");
        let mut told = ContextSettings::default();
        told.take("ep.context_file_path", "/x/y.onnx").unwrap();
        assert_eq!(inside(None, &told, "p.rukh").unwrap(), Path::new("/x/p.rukh"));
    }
}
