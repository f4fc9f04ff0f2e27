//! Parts of a graph that were compiled before: the nodes `EPContext` of a model. `write` makes them, `read` opens them, and
//! `compatibility` tells whether what was compiled elsewhere suits a device here.

mod compatibility;
mod read;
mod settings;
mod write;

pub(crate) use compatibility::{Here, Verdict, judge, summary};
pub(crate) use read::{Source, open, source};
pub(crate) use settings::ContextSettings;
pub(crate) use write::{Written, write};

const OPERATOR: &str = "EPContext";
const DOMAIN: &str = "com.microsoft";

/// Attributes of the operator.
mod attributes {
    pub(super) const MAIN: &str = "main_context";
    pub(super) const EMBED_MODE: &str = "embed_mode";
    pub(super) const CONTENT: &str = "ep_cache_context";
    pub(super) const VERSION: &str = "ep_sdk_version";
    pub(super) const ARCHITECTURE: &str = "hardware_architecture";
    pub(super) const PARTITION: &str = "partition_name";
    pub(super) const SOURCE: &str = "source";
}

/// Whether a node is a compiled part, whoever compiled it.
pub(crate) fn is_context(operator: &str, domain: &str) -> bool {
    operator == OPERATOR && domain == DOMAIN
}
