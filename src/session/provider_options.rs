//! The providers that a session may use, with their names and options.

use std::collections::BTreeMap;

use crate::error::{Result, excerpt, fail};
use crate::providers::hip::HipOptions;

/// Which kind of device runs nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderKind {
    Cpu,
    Hip,
}

/// Every name a provider is known by; the first is its own.
const PROVIDER_NAMES: &[(ProviderKind, &[&str])] = &[
    (ProviderKind::Cpu, &["cpu", "CPUExecutionProvider"]),
    (ProviderKind::Hip, &["hip", "ROCMExecutionProvider", "MIGraphXExecutionProvider"]),
];

impl ProviderKind {
    /// The provider's own name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ProviderKind::Cpu => "cpu",
            ProviderKind::Hip => "hip",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self> {
        match PROVIDER_NAMES.iter().find(|(_, names)| names.contains(&name)) {
            Some((kind, _)) => Ok(*kind),
            None => {
                let known: Vec<&str> =
                    PROVIDER_NAMES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
                fail!(
                    InvalidArgument,
                    "provider \"{}\" is not known; known are {}",
                    excerpt(name),
                    known.join(", ")
                )
            }
        }
    }
}

/// A provider that a session is to use, with its options.
#[derive(Clone, Debug)]
pub(crate) enum ProviderOptions {
    /// It has no options.
    Cpu,
    Hip(HipOptions),
}

impl ProviderOptions {
    pub(crate) fn kind(&self) -> ProviderKind {
        match self {
            ProviderOptions::Cpu => ProviderKind::Cpu,
            ProviderOptions::Hip(_) => ProviderKind::Hip,
        }
    }

    /// Every option with its value, in a form that `SessionOptions::add_provider` takes.
    pub(crate) fn entries(&self) -> BTreeMap<String, String> {
        match self {
            ProviderOptions::Cpu => BTreeMap::new(),
            ProviderOptions::Hip(options) => options.entries(),
        }
    }
}
