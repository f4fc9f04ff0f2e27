//! Compiles a part and makes the node that stands for it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::compatibility::Facts;
use super::{ContextSettings, DOMAIN, OPERATOR, attributes};
use crate::capability::Opener;
use crate::error::{Code, Error, Result, fail};
use crate::library::{Compilation, info};
use crate::ort::{Graph, NewAttribute, NewNode, Node, Ort, OwnedNode};
use crate::part::Part;
use crate::snapshot::Snapshot;

/// A compiled part. Its file goes with this, unless it is kept.
pub(crate) struct Written {
    pub(crate) node: OwnedNode,
    /// For what, and by which library it was compiled.
    pub(crate) facts: Facts,
    file: Option<File>,
}

impl Written {
    /// The node; the file stays.
    pub(crate) fn keep(self) -> OwnedNode {
        if let Some(mut file) = self.file {
            file.is_kept = true;
        }
        self.node
    }
}

/// A file that is removed unless it is kept.
struct File {
    path: PathBuf,
    is_kept: bool,
}

impl File {
    /// The file under another name. One that had the name before has the same content and may be a part of another model: then
    /// the new one stays as well, whatever becomes of the model that is made.
    fn renamed(mut self, path: &Path) -> Result<File> {
        let was_there = path.exists();
        std::fs::rename(&self.path, path).map_err(|e| failed("renamed", &self.path, &e))?;
        path.clone_into(&mut self.path);
        self.is_kept = was_there;
        Ok(self)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if !self.is_kept {
            // It may not be there yet.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Compiles the graph of a fused node, and makes a node `EPContext` with the fused node's name, inputs and outputs.
pub(crate) fn write(
    ort: Ort,
    opener: &Opener<'_>,
    settings: &ContextSettings,
    wanted: Compilation<'_>,
    provider: &str,
    (graph, fused): (&Graph<'_>, &Node<'_>),
) -> Result<Written> {
    let (inputs, outputs) = (fused.input_names()?, fused.output_names()?);
    let snapshot = Snapshot::read(graph)?;
    let nodes: Vec<usize> = (0..snapshot.nodes.len()).collect();
    // The order of inputs and outputs is the node's, so that whoever changes names in the model changes nothing else.
    let part = Part::of(&snapshot, &nodes).between(&inputs, &outputs)?;
    let name = fused.name()?;
    let partition = format!("{}{name}", settings.prefix);
    let model_file = settings.model_file(graph.model_file()?.as_deref());
    let place = match (settings.embedded, &model_file) {
        (true, _) => std::env::temp_dir().join("part.rukh"),
        (false, Some(model)) => beside(model, &partition),
        (false, None) => fail!(
            InvalidArgument,
            "ep.context_embed_mode is 0, and neither the model nor the one that is made has a file that compiled parts could lie beside; set ep.context_file_path to the name that the model will have, or ep.context_embed_mode to 1"
        ),
    };
    if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| failed("made", folder, &e))?;
    }
    let made = File { path: unused(&place), is_kept: false };
    opener.compile(&snapshot, &part, wanted, &made.path)?;
    let info = info(opener.environment, &made.path)?;
    let facts = Facts::of_artifact(&info)?;
    let (content, file) = if settings.embedded {
        (std::fs::read(&made.path).map_err(|e| failed("read", &made.path, &e))?, None)
    } else {
        let file = made.renamed(&by_content(&place, &info))?;
        (file_name(&file.path).into_bytes(), Some(file))
    };
    let architecture = facts.architecture();
    let node = ort.node(&NewNode {
        operator: OPERATOR,
        domain: DOMAIN,
        name: &name,
        inputs: &inputs,
        outputs: &outputs,
        attributes: &[
            (attributes::MAIN, NewAttribute::Int(1)),
            (attributes::EMBED_MODE, NewAttribute::Int(settings.embedded.into())),
            (attributes::CONTENT, NewAttribute::String(&content)),
            (attributes::VERSION, NewAttribute::String(env!("CARGO_PKG_VERSION").as_bytes())),
            (attributes::ARCHITECTURE, NewAttribute::String(architecture.as_bytes())),
            (attributes::PARTITION, NewAttribute::String(partition.as_bytes())),
            (attributes::SOURCE, NewAttribute::String(provider.as_bytes())),
        ],
    })?;
    Ok(Written { node, facts, file })
}

/// A file for a part of a model, in the model's folder.
fn beside(model: &Path, partition: &str) -> PathBuf {
    let stem = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name: String = format!("{stem}_{partition}")
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    model.with_file_name(format!("{name}.rukh"))
}

/// The place with a word for what was compiled, so that a model never loses its parts to one that is made anew: the text
/// about an artifact has the checksums of all that it holds.
fn by_content(place: &Path, info: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    info.hash(&mut hasher);
    place.with_extension(format!("{:016x}.rukh", hasher.finish()))
}

/// A name that no other part and no other process uses.
fn unused(place: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    place.with_extension(format!("{}-{number}-{moment:x}.tmp", std::process::id()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::NoSuchFile, format!("\"{}\" cannot be {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_unless_it_is_kept_or_was_there_before() {
        let folder = std::env::temp_dir().join(format!("rukh-ep-write-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (made, place) = (folder.join("made.tmp"), folder.join("part.rukh"));
        let rename = || {
            std::fs::write(&made, "content").unwrap();
            File { path: made.clone(), is_kept: false }.renamed(&place).unwrap()
        };
        drop(rename());
        assert!(!made.exists() && !place.exists());
        rename().is_kept = true;
        assert!(!made.exists() && place.exists());
        // Another model has this file now.
        drop(rename());
        assert_eq!(std::fs::read(&place).unwrap(), b"content");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_part_lies_beside_the_model() {
        for (model, partition, expected) in [
            ("/m/digits_ctx.onnx", "EP_1_0", "/m/digits_ctx_EP_1_0.rukh"),
            ("digits_ctx.onnx", "../a b/EP", "digits_ctx_.._a_b_EP.rukh"),
        ] {
            assert_eq!(beside(Path::new(model), partition), Path::new(expected));
        }
        let place = Path::new("/m/a.rukh");
        assert_ne!(unused(place), unused(place));
        assert_eq!(by_content(place, "1"), by_content(place, "1"));
        assert_ne!(by_content(place, "1"), by_content(place, "2"));
    }
}
