//! What an artifact says of itself.

use crate::error::{Result, fail};
use crate::model::Metadata;

/// The part "manifest".
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Manifest {
    /// The version of the library that made it.
    #[prost(string, tag = "1")]
    pub(crate) library: String,
    /// `REVISION` of that library.
    #[prost(uint32, tag = "2")]
    pub(crate) revision: u32,
    /// The model's file first, then those of its external data.
    #[prost(message, repeated, tag = "3")]
    pub(crate) sources: Vec<SourceFile>,
    /// What the model tells of itself.
    #[prost(message, optional, tag = "4")]
    pub(crate) metadata: Option<MetadataEntry>,
    /// Which weights it holds: `used`, `all` or `external`.
    #[prost(string, tag = "5")]
    pub(crate) weights: String,
    #[prost(message, repeated, tag = "6")]
    pub(crate) programs: Vec<ProgramEntry>,
    /// Results of tuning, as texts.
    #[prost(message, repeated, tag = "7")]
    pub(crate) tuning: Vec<TuningEntry>,
}

/// Results of tuning for a GPU.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TuningEntry {
    /// The GPU, by machine code.
    #[prost(string, tag = "1")]
    pub(crate) target: String,
    /// The text of `rukh_session_tuning_results`, with the conditions under which it holds.
    #[prost(string, tag = "2")]
    pub(crate) text: String,
}

/// A file that the artifact was made of.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SourceFile {
    /// Its name, from the artifact's folder where it lies there or deeper; else from the root.
    #[prost(string, tag = "1")]
    pub(crate) path: String,
    #[prost(uint64, tag = "2")]
    pub(crate) length: u64,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) digest: Vec<u8>,
    /// Whether weights are read from it when the artifact is opened.
    #[prost(bool, tag = "4")]
    pub(crate) needed: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct MetadataEntry {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(string, tag = "2")]
    producer_name: String,
    #[prost(string, tag = "3")]
    producer_version: String,
    #[prost(string, tag = "4")]
    domain: String,
    #[prost(string, tag = "5")]
    graph_name: String,
    #[prost(string, tag = "6")]
    description: String,
    #[prost(int64, tag = "7")]
    model_version: i64,
    #[prost(message, repeated, tag = "8")]
    opsets: Vec<Number>,
    #[prost(message, repeated, tag = "9")]
    properties: Vec<Text>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Number {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(int64, tag = "2")]
    pub(crate) value: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Cpu,
    Gpu,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "cpu",
            Kind::Gpu => "gpu",
        }
    }
}

/// A program.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProgramEntry {
    /// `cpu` or `gpu`.
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    /// The GPUs that it was compiled for, by machine code.
    #[prost(string, repeated, tag = "2")]
    pub(crate) targets: Vec<String>,
    /// Of the CPU: what layouts of packed weights depend on.
    #[prost(string, tag = "3")]
    pub(crate) instructions: String,
    /// The number of threads that those are made for.
    #[prost(uint32, tag = "4")]
    pub(crate) threads: u32,
    /// Symbolic dimensions that are fixed.
    #[prost(message, repeated, tag = "5")]
    pub(crate) dimensions: Vec<Number>,
    /// What floats compute in, and how far the graph was rewritten, as the session's options name it.
    #[prost(string, tag = "6")]
    pub(crate) precision: String,
    #[prost(string, tag = "7")]
    pub(crate) optimization: String,
    /// The name of the part that has the graph.
    #[prost(string, tag = "8")]
    pub(crate) graph: String,
    /// What each node packed, in the order in which kernels are made.
    #[prost(message, repeated, tag = "9")]
    pub(crate) nodes: Vec<NodeEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NodeEntry {
    #[prost(string, tag = "1")]
    pub(crate) operator: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) packs: Vec<PackEntry>,
}

/// A piece of packed weights in the part "weights".
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PackEntry {
    #[prost(uint64, tag = "1")]
    pub(crate) offset: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) length: u64,
    /// Bytes of an element.
    #[prost(uint32, tag = "3")]
    pub(crate) width: u32,
}

impl Manifest {
    /// Whether it can be worked with.
    pub(super) fn check(&self, origin: &str) -> Result<()> {
        if self.programs.is_empty() {
            fail!(InvalidModel, "{origin}: it holds no program");
        }
        for program in &self.programs {
            if program.kind().is_none() {
                fail!(
                    InvalidModel,
                    "{origin}: it holds a program of kind \"{}\"; known are cpu and gpu",
                    program.kind
                );
            }
        }
        Ok(())
    }
}

impl ProgramEntry {
    pub(crate) fn kind(&self) -> Option<Kind> {
        [Kind::Cpu, Kind::Gpu].into_iter().find(|kind| kind.name() == self.kind)
    }
}

impl From<&Metadata> for MetadataEntry {
    fn from(metadata: &Metadata) -> Self {
        let Metadata { ir_version, model_version, .. } = *metadata;
        let number = |(name, value): &(String, i64)| Number { name: name.clone(), value: *value };
        let text = |(key, value): &(String, String)| Text { key: key.clone(), value: value.clone() };
        MetadataEntry {
            ir_version,
            producer_name: metadata.producer_name.clone(),
            producer_version: metadata.producer_version.clone(),
            domain: metadata.domain.clone(),
            graph_name: metadata.graph_name.clone(),
            description: metadata.description.clone(),
            model_version,
            opsets: metadata.opsets.iter().map(number).collect(),
            properties: metadata.properties.iter().map(text).collect(),
        }
    }
}

impl From<MetadataEntry> for Metadata {
    fn from(entry: MetadataEntry) -> Self {
        Metadata {
            ir_version: entry.ir_version,
            producer_name: entry.producer_name,
            producer_version: entry.producer_version,
            domain: entry.domain,
            graph_name: entry.graph_name,
            description: entry.description,
            model_version: entry.model_version,
            opsets: entry.opsets.into_iter().map(|n| (n.name, n.value)).collect(),
            properties: entry.properties.into_iter().map(|t| (t.key, t.value)).collect(),
        }
    }
}
