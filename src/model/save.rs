//! A graph as a file, with its weights in another one when they are large.

use std::path::Path;

use prost::Message;

use crate::error::{Result, fail};
use crate::graph::Graph;

use super::Metadata;
use super::outside::{SMALLEST_OUTSIDE, Weights, failed, unfinished};
use super::write;

/// A protobuf message has less than 2 GiB; the rest is for all that is no weight.
const MOST_INSIDE: u64 = (2 << 30) - (64 << 20);

/// Which weights of a saved model go into a file beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Apart {
    /// Also when a model's file can hold them.
    pub(crate) always: bool,
    /// The file's name, in the model's folder; given, weights go there in any case. `None`: the model's and ".data".
    pub(crate) file: Option<String>,
    /// Weights of fewer bytes stay in the model.
    pub(crate) smallest: usize,
}

impl Default for Apart {
    fn default() -> Self {
        Apart { always: false, file: None, smallest: SMALLEST_OUTSIDE }
    }
}

impl Apart {
    /// Takes the file's name, or nothing for the usual one. `false`: it is no name of a file, or has a folder in it.
    pub(crate) fn set_file(&mut self, name: &str) -> bool {
        let plain = name.is_empty() || Path::new(name).file_name().is_some_and(|file| file == name);
        if plain {
            self.file = (!name.is_empty()).then(|| name.to_owned());
        }
        plain
    }
}

/// Writes the graph as a model that other programs read. Weights go into a file beside it when they are more than a
/// model's file can hold, or as `apart` says. What was there is replaced once all is written.
pub(crate) fn save(graph: &Graph, metadata: &Metadata, path: &Path, apart: &Apart) -> Result<()> {
    let total: u64 = graph.constants().map(|tensor| tensor.buffer().map_or(0, |b| b.len() as u64)).sum();
    let name = path.file_name().and_then(|name| name.to_str());
    if apart.file.is_some() && apart.file.as_deref() == name {
        fail!(
            InvalidArgument,
            "the weights of \"{}\" cannot go into a file of the same name; give another name",
            path.display()
        );
    }
    let outside = apart.always || apart.file.is_some() || total > MOST_INSIDE;
    let location = apart.file.clone().or(name.map(|name| format!("{name}.data"))).filter(|_| outside);
    let mut weights = match location {
        Some(location) => Weights::apart(path, location, apart.smallest)?,
        None => Weights::Inside,
    };
    let proto = write::model(graph, metadata, &mut weights)?;
    weights.finish()?;
    let bytes = proto.encode_to_vec();
    if bytes.len() as u64 >= 2 << 30 {
        fail!(
            Unsupported,
            "the model takes {} bytes without its weights; a file of ONNX has less than 2 GiB",
            bytes.len()
        );
    }
    let unfinished = unfinished(path);
    let written = std::fs::write(&unfinished, &bytes).and_then(|()| std::fs::rename(&unfinished, path));
    written.map_err(|e| failed(path, e))
}
