//! Bytes in, a checked graph out: the ONNX protobuf and its external data.

mod adapter;
mod attribute;
mod build;
mod counters;
mod external;
mod file;
mod function;
mod given;
mod outside;
mod program;
mod proto;
mod save;
mod size;
mod tensor;
#[cfg(test)]
pub(crate) mod testing;
mod types;
mod write;

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use prost::Message;

use crate::error::{Result, fail};
use crate::graph::{Function, Graph, NEWEST_OPSET};

pub(crate) use adapter::{Adapter, FORMAT_VERSION as ADAPTER_FORMAT_VERSION, Versions as AdapterVersions};
pub(crate) use counters::LoadCounters;
pub(crate) use file::{FileIdentity, open_file, start_of_file, touch};
pub(crate) use given::Given;
pub(crate) use outside::{Keeper, Kept, cannot_write, failed};
pub(crate) use program::{decode_program, encode_program};
pub(crate) use save::{Apart, save};
pub(crate) use types::is_unnamed;

/// Where a model comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    Path(&'a Path),
    /// The bytes of a `.onnx` file, which are copied.
    Bytes(&'a [u8]),
    /// The bytes of a `.onnx` file, which are kept.
    Kept(&'a Bytes),
}

/// A model as the file tells it, checked, and nothing rewritten.
pub(crate) struct Model {
    pub(crate) graph: Graph,
    /// The functions that the model defines, by domain and name (and overload).
    pub(crate) functions: HashMap<(String, String), Function>,
    pub(crate) metadata: Metadata,
    pub(crate) counters: LoadCounters,
    /// The files that it was read from, its own first; none for a model from memory.
    pub(crate) files: Vec<FileIdentity>,
    /// The bytes of each.
    pub(crate) contents: Vec<Bytes>,
}

/// What a model tells of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metadata {
    pub(crate) ir_version: i64,
    pub(crate) producer_name: String,
    pub(crate) producer_version: String,
    pub(crate) domain: String,
    pub(crate) graph_name: String,
    pub(crate) description: String,
    pub(crate) model_version: i64,
    /// Domain (`""` stands for ai.onnx) and version of each operator set.
    pub(crate) opsets: Vec<(String, i64)>,
    pub(crate) properties: Vec<(String, String)>,
}

/// Opens a model; `map` maps files where the other way reads them in.
pub(crate) fn open(source: Source<'_>, map: bool, given: &Given) -> Result<Model> {
    let mut files = file::Files::new(map);
    let (bytes, origin) = match source {
        Source::Path(path) => (files.open(path)?, format!("model file \"{}\"", path.display())),
        Source::Bytes(bytes) => (files.copy(bytes), "the model in memory".to_owned()),
        Source::Kept(bytes) => (bytes.clone(), "the model in memory".to_owned()),
    };
    size::check_memory(&bytes, &origin)?;
    let proto = decode(bytes, &origin)?;
    let metadata = metadata(&proto);
    check_opsets(&metadata)?;
    let path = match source {
        Source::Path(path) => Some(path),
        Source::Bytes(_) | Source::Kept(_) => None,
    };
    let mut external = external::ExternalData::new(path, files, given.clone());
    let functions = function::functions(&proto, &mut external)?;
    let Some(graph) = &proto.graph else {
        fail!(InvalidModel, "{origin} has no graph; a model needs one");
    };
    let graph = build::graph(graph, &with_implied(opset_map(&metadata.opsets)), &mut external)?;
    size::check_expansion(&graph, &functions)?;
    let (files, contents, counters) = external.into_opened();
    Ok(Model { graph, functions, metadata, counters, files, contents })
}

fn decode(bytes: Bytes, origin: &str) -> Result<proto::ModelProto> {
    if bytes.is_empty() {
        fail!(InvalidModel, "{origin} is empty; an ONNX model is a protobuf message");
    }
    let start = bytes.slice(..bytes.len().min(512));
    let proto = match proto::ModelProto::decode(bytes) {
        Ok(proto) => proto,
        Err(e) if start.iter().all(|&b| b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            fail!(InvalidModel, "{origin} is a text file, not an ONNX model (a protobuf message): {e}")
        }
        Err(e) if e.to_string().contains("recursion limit") => {
            fail!(
                InvalidModel,
                "{origin} has too many subgraphs inside subgraphs; about 30 levels are allowed (100 of protobuf messages)"
            )
        }
        Err(e) => fail!(InvalidModel, "{origin} is no ONNX model, or was cut short: {e}"),
    };
    if proto.ir_version < 1 || (proto.graph.is_none() && proto.functions.is_empty()) {
        fail!(
            InvalidModel,
            "{origin} is no ONNX model: its IR version is {} and it has {} graph; allowed are IR versions from 1, and one graph",
            proto.ir_version,
            if proto.graph.is_some() { "a" } else { "no" }
        );
    }
    Ok(proto)
}

fn metadata(proto: &proto::ModelProto) -> Metadata {
    let mut opsets: Vec<(String, i64)> =
        proto.opset_import.iter().map(|o| (normal_domain(&o.domain).to_owned(), o.version)).collect();
    if !opsets.iter().any(|(domain, _)| domain.is_empty()) && proto.ir_version < 3 {
        // Before IR 3 the operator set was not written; it is the first.
        opsets.push((String::new(), 1));
    }
    Metadata {
        ir_version: proto.ir_version,
        producer_name: proto.producer_name.clone(),
        producer_version: proto.producer_version.clone(),
        domain: proto.domain.clone(),
        graph_name: proto.graph.as_ref().map(|g| g.name.clone()).unwrap_or_default(),
        description: proto.doc_string.clone(),
        model_version: proto.model_version,
        opsets,
        properties: proto.metadata_props.iter().map(|p| (p.key.clone(), p.value.clone())).collect(),
    }
}

fn check_opsets(metadata: &Metadata) -> Result<()> {
    // Of two imports of one domain the later one counts.
    for (domain, version) in &opset_map(&metadata.opsets) {
        if *version < 1 || (domain.is_empty() && *version > NEWEST_OPSET) {
            fail!(
                InvalidModel,
                "the model imports opset {version} of domain {}; allowed are 1 to {NEWEST_OPSET}",
                if domain.is_empty() { "ai.onnx" } else { domain }
            );
        }
    }
    Ok(())
}

/// `ai.onnx` has two names; inside it is `""`.
fn normal_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Opset versions by domain.
type Opsets = HashMap<String, i64>;

fn opset_map(opsets: &[(String, i64)]) -> Opsets {
    opsets.iter().cloned().collect()
}

/// The operator sets that a model may use without importing them, when it imports any: exporters leave
/// them out, and ONNX Runtime takes its newest of each.
const IMPLIED: [(&str, i64); 4] =
    [("", NEWEST_OPSET), ("ai.onnx.ml", 5), ("ai.onnx.preview.training", 1), ("com.microsoft", 1)];

fn with_implied(mut opsets: Opsets) -> Opsets {
    if !opsets.is_empty() {
        for (domain, version) in IMPLIED {
            opsets.entry(domain.to_owned()).or_insert(version);
        }
    }
    opsets
}
