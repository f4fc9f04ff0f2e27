//! A graph as a file, with its weights in another one when they are large.

use std::path::Path;

use prost::Message;

use crate::error::{Result, fail};
use crate::graph::Graph;

use super::Metadata;
use super::outside::{Weights, failed, unfinished};
use super::write;

/// A protobuf message has less than 2 GiB; the rest is for all that is no weight.
const MOST_INSIDE: u64 = (2 << 30) - (64 << 20);

/// Writes the graph as a model that other programs read. Weights go into a file beside it, `path` and ".data", when they
/// are more than a model's file can hold, or when `apart`. What was there is replaced once all is written.
pub(crate) fn save(graph: &Graph, metadata: &Metadata, path: &Path, apart: bool) -> Result<()> {
    let total: u64 = graph.constants().map(|tensor| tensor.buffer().map_or(0, |b| b.len() as u64)).sum();
    let mut weights = Weights::new(path, apart || total > MOST_INSIDE)?;
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
