//! Fusions: several operators become one that computes the same in fewer passes over memory.
//!
//! Each rule looks at one node and upwards from it, and puts one node in the place of what it found. The
//! rules run one after the other, each over the whole graph in execution order.

mod attention;
mod batch_norm;
mod common;
mod epilogue;
mod flat;
mod gelu;
mod group_norm;
mod layer_norm;
mod moves;
mod rewriter;
mod scale;

#[cfg(test)]
mod testing;

use std::sync::Arc;

use crate::error::Result;
use crate::graph::{Attribute, Graph, Node, NodeId};
use crate::ops::Operator;
use crate::tensor::ValueType;

use super::{dead, infer};
use rewriter::Rewriter;

/// What the provider that the model is meant for can run. The session lends it, so that passes know no
/// provider.
pub(crate) trait Target {
    /// Whether there is a kernel for this node with inputs and outputs of these types.
    fn runs(
        &self,
        node: &Node,
        op: &dyn Operator,
        inputs: &[Option<ValueType>],
        outputs: &[Option<ValueType>],
    ) -> bool;
}

/// Looks for its pattern with the node as the last one; tells whether it replaced it.
type Rule = fn(&mut Rewriter<'_>, NodeId) -> Option<()>;

const RULES: &[Rule] = &[
    scale::constants,
    gelu::gelu,
    gelu::swish,
    gelu::hard_swish,
    layer_norm::normalisation,
    layer_norm::shift,
    group_norm::group_norm,
    attention::attention,
    attention::beside,
    moves::transposes,
    moves::reshapes,
    batch_norm::into_convolution,
    batch_norm::into_product,
    flat::flat,
    epilogue::bias,
    // A product may have its bias between itself and a scale.
    batch_norm::into_product,
    scale::product,
    layer_norm::skip,
    epilogue::residual,
    epilogue::activation,
];

/// Fuses what the target can run fused, in subgraphs as well. Types and shapes must be inferred; they are
/// afterwards.
pub(crate) fn fuse(graph: &mut Graph, target: &dyn Target) -> Result<()> {
    fuse_graph(graph, target);
    dead::remove(graph);
    infer::infer(graph)
}

fn fuse_graph(graph: &mut Graph, target: &dyn Target) {
    for id in graph.node_ids().collect::<Vec<_>>() {
        for (_, attribute) in &mut graph.node_mut(id).attributes.0 {
            if let Attribute::Graph(body) = attribute {
                fuse_graph(Arc::make_mut(body), target);
            }
        }
    }
    once(graph, target);
    for rule in RULES {
        apply(graph, target, *rule);
    }
}

fn apply(graph: &mut Graph, target: &dyn Target, rule: Rule) {
    let order = graph.order().unwrap_or_default();
    let mut rewriter = Rewriter::new(graph, target);
    for id in order {
        if rewriter.graph.has_node(id) {
            rule(&mut rewriter, id);
        }
    }
}

/// Computes once what is computed alike.
fn once(graph: &mut Graph, target: &dyn Target) {
    let order = graph.order().unwrap_or_default();
    let mut rewriter = Rewriter::new(graph, target);
    let mut seen = common::Seen::default();
    for id in order {
        if rewriter.graph.has_node(id) {
            common::common(&mut rewriter, &mut seen, id);
        }
    }
}
