//! The packed weights of a model's nodes, in the order in which their kernels are made.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Result, fail};
use crate::graph::Node;
use crate::providers::packs::{NodePacks, Pack};
use crate::tensor::Tensor;

/// What becomes of the weights that kernels pack.
pub(crate) enum ModelPacks {
    /// Kernels keep them, and nobody else.
    Made,
    /// They are written down.
    Recorded(RecordedPacks),
    /// They were packed before.
    Kept(KeptPacks),
}

/// What was packed, and the weights that are needed besides.
#[derive(Default)]
pub(crate) struct RecordedPacks {
    pub(crate) threads: usize,
    pub(crate) nodes: Vec<PackedNode>,
    needed: HashSet<*const Tensor>,
}

/// The packed weights of a node.
pub(crate) struct PackedNode {
    pub(crate) operator: String,
    /// None where the node packs nothing, or nothing that can be kept.
    pub(crate) packs: Vec<Pack>,
}

/// What was packed before.
pub(crate) struct KeptPacks {
    threads: usize,
    nodes: std::vec::IntoIter<PackedNode>,
}

impl RecordedPacks {
    pub(crate) fn new(threads: usize) -> Self {
        RecordedPacks { threads, ..RecordedPacks::default() }
    }

    /// Whether runs read this constant of the model, or a kernel packs it in a layout that cannot be kept.
    pub(crate) fn needs(&self, tensor: &Tensor) -> bool {
        self.needed.contains(&std::ptr::from_ref(tensor))
    }
}

impl KeptPacks {
    /// `threads`: as when they were recorded.
    pub(crate) fn new(threads: usize, nodes: Vec<PackedNode>) -> Self {
        KeptPacks { threads, nodes: nodes.into_iter() }
    }
}

impl ModelPacks {
    /// To be called before a node's kernel is made. `sources`: whether all its constants are there.
    pub(super) fn begin(&mut self, node: &Node, sources: bool) -> Option<NodePacks> {
        match self {
            ModelPacks::Made => None,
            ModelPacks::Recorded(recorded) => Some(NodePacks::recorded(recorded.threads)),
            ModelPacks::Kept(kept) => {
                let packed = kept.nodes.next().filter(|packed| packed.operator == node.op.to_string());
                let packs = packed.map_or_else(Vec::new, |packed| packed.packs);
                Some(NodePacks::kept(kept.threads, packs, sources))
            }
        }
    }

    /// To be called with the packs of a node whose kernel was made, and the constants that it packed. Tells whether it
    /// found them packed.
    pub(super) fn end(&mut self, node: &Node, packs: NodePacks, packed: &[&Tensor]) -> Result<bool> {
        let complete = packs.is_complete();
        match self {
            ModelPacks::Made => {}
            ModelPacks::Recorded(recorded) => {
                if !complete {
                    recorded.needed.extend(packed.iter().map(|&tensor| std::ptr::from_ref(tensor)));
                }
                let packs = packs.into_recorded();
                recorded.nodes.push(PackedNode { operator: node.op.to_string(), packs });
                return Ok(false);
            }
            ModelPacks::Kept(_) if complete => return Ok(true),
            ModelPacks::Kept(_) => {
                if packed.iter().any(|tensor| tensor.is_absent()) {
                    fail!(
                        InvalidModel,
                        "node \"{}\" ({}): its weights are not packed as this processor needs them, and the artifact does not hold them in another form; compile it for this processor, or with weights=\"all\"",
                        node.name,
                        node.op
                    )
                }
            }
        }
        Ok(false)
    }

    /// To be called with a constant that runs read.
    pub(super) fn read(&mut self, name: &str, tensor: &Arc<Tensor>) -> Result<()> {
        if let ModelPacks::Recorded(recorded) = self {
            recorded.needed.insert(Arc::as_ptr(tensor));
        }
        if tensor.is_absent() {
            fail!(
                InvalidModel,
                "weight \"{name}\" is needed on this machine, and the artifact does not hold it; compile it for this machine, or with weights=\"all\""
            );
        }
        Ok(())
    }
}
