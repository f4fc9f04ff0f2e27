//! A program as parts of an artifact, and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Result, fail};
use crate::graph::{Dim, Graph};
use crate::model::{self, FileIdentity, LoadCounters, Metadata, decode_program, encode_program};
use crate::plan::{KeptPacks, PackedNode, RecordedPacks};
use crate::providers::packs::Pack;
use crate::tensor::Buffer;
use crate::threads::Pool;

use super::WEIGHTS;
use super::container::Container;
use super::manifest::{Manifest, NodeEntry, PackEntry, SourceFile};
use super::store::{Store, matches, source_location};

/// A program, whose weights are in the store.
pub(crate) struct Encoded {
    pub(crate) graph: Vec<u8>,
    pub(crate) nodes: Vec<NodeEntry>,
}

/// Puts the weights of a program into the store. `declared`: the shapes that the model declares for its outputs.
pub(crate) fn encode(
    graph: &Graph,
    metadata: &Metadata,
    declared: &[Option<Vec<Dim>>],
    packs: Option<&RecordedPacks>,
    store: &mut Store,
) -> Result<Encoded> {
    let mut nodes = Vec::new();
    for node in packs.map_or(&[][..], |packs| &packs.nodes) {
        let mut entries = Vec::new();
        for pack in &node.packs {
            let offset = store.put(pack.bytes())?;
            entries.push(PackEntry { offset, length: pack.len as u64, width: pack.width as u32 });
        }
        nodes.push(NodeEntry { operator: node.operator.clone(), packs: entries });
    }
    let graph = encode_program(graph, metadata, declared, &mut store.keeper(packs))?;
    Ok(Encoded { graph, nodes })
}

/// A program that was read.
pub(crate) struct OpenedProgram {
    pub(crate) graph: Graph,
    pub(crate) metadata: Metadata,
    pub(crate) packs: KeptPacks,
    /// The files of outside weights.
    pub(crate) files: Vec<FileIdentity>,
    pub(crate) counters: LoadCounters,
}

pub(super) fn open_program(
    manifest: &Manifest,
    number: usize,
    container: &Container,
    (origin, folder): (&str, Option<&Path>),
    map: bool,
    pool: &Pool,
) -> Result<OpenedProgram> {
    let Some(program) = manifest.programs.get(number) else {
        fail!(
            InvalidModel,
            "{origin}: it holds {} programs, and none of number {number}",
            manifest.programs.len()
        );
    };
    let weights = container.part(WEIGHTS, origin)?;
    let packs = kept_packs(&program.nodes, &weights, origin)?;
    let mut bytes = BTreeMap::from([(WEIGHTS.to_owned(), weights)]);
    let (mut files, mut counters) = (Vec::new(), LoadCounters::default());
    for (number, source) in manifest.sources.iter().enumerate().filter(|(_, source)| source.needed) {
        let (content, identity, count) = outside(source, origin, folder, map, pool)?;
        bytes.insert(source_location(number), content);
        files.push(identity);
        counters.mapped_bytes += count.mapped_bytes;
        counters.read_bytes += count.read_bytes;
    }
    let opened = decode_program(&container.part(&program.graph, origin)?, bytes)?;
    counters.copied_bytes += opened.counters.copied_bytes;
    counters.copied_weights += opened.counters.copied_weights;
    let metadata = manifest.metadata.clone().map_or_else(|| opened.metadata.clone(), Metadata::from);
    let packs = KeptPacks::new(program.threads.clamp(1, 1024) as usize, packs);
    Ok(OpenedProgram { graph: opened.graph, metadata, packs, files, counters })
}

fn kept_packs(nodes: &[NodeEntry], weights: &Bytes, origin: &str) -> Result<Vec<PackedNode>> {
    let buffer = Arc::new(Buffer::from_bytes(weights.clone()));
    let pack = |node: &NodeEntry, pack: &PackEntry| -> Result<Pack> {
        let place = (usize::try_from(pack.offset), usize::try_from(pack.length));
        let (Ok(start), Ok(len)) = place else {
            fail!(InvalidModel, "{origin}: packed weights of an operator {} are too large", node.operator);
        };
        if start.checked_add(len).is_none_or(|end| end > weights.len()) {
            fail!(
                InvalidModel,
                "{origin}: packed weights of an operator {} are bytes {start} to {start}+{len} of \"{WEIGHTS}\", which has {}",
                node.operator,
                weights.len()
            );
        }
        Ok(Pack { buffer: buffer.clone(), start, len, width: pack.width as usize })
    };
    let node = |node: &NodeEntry| {
        let packs = node.packs.iter().map(|entry| pack(node, entry)).collect::<Result<_>>()?;
        Ok(PackedNode { operator: node.operator.clone(), packs })
    };
    nodes.iter().map(node).collect()
}

/// A file of the model that weights are read from.
fn outside(
    source: &SourceFile,
    origin: &str,
    folder: Option<&Path>,
    map: bool,
    pool: &Pool,
) -> Result<(Bytes, FileIdentity, LoadCounters)> {
    let path = PathBuf::from(&source.path);
    let path = match folder {
        Some(folder) => folder.join(path),
        None if path.is_absolute() => path,
        None => fail!(
            Unsupported,
            "{origin}: its weights are in \"{}\", and an artifact from memory has no folder to find that from; open it from its file, or compile it with weights=\"used\"",
            source.path
        ),
    };
    let (bytes, identity, counters) = model::open_file(&path, map)?;
    if !matches(&bytes, source.length, &source.digest, pool) {
        fail!(
            InvalidModel,
            "{origin}: its weights are in \"{}\", which is not the file that it was compiled from ({} bytes, another digest); compile it again",
            path.display(),
            bytes.len()
        );
    }
    Ok((bytes, identity, counters))
}
