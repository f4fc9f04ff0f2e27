//! Fusions: several operators become one that computes the same in fewer passes over memory.
//!
//! Each rule looks at one node and upwards from it, and puts one node in the place of what it found. The
//! rules run one after the other, each over the whole graph in execution order.

mod attention;
mod batch_norm;
mod columns;
mod common;
mod counts;
mod epilogue;
mod exchanged;
mod excite;
mod flat;
mod gated;
mod gelu;
mod group_norm;
mod heads;
mod indices;
mod joint;
mod layer_norm;
mod lines;
mod masks;
mod mean;
mod moves;
mod pair;
mod permuted;
mod projection;
mod quantized;
mod rewriter;
mod rotary;
mod rows;
mod scale;
mod sums;
mod units;
mod view;

#[cfg(test)]
mod testing;

use crate::error::Result;
use crate::graph::{Graph, Node, NodeId};
use crate::ops::Operator;
use crate::tensor::{ElementType, ValueType};

use super::{Evaluate, Weights, dead, infer, simplify};
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

    /// Whether products of 8-bit integers are its fastest.
    fn prefers_bytes(&self) -> bool;

    /// Whether its convolutions of this type take and give channel-blocked images, see `ops::channel_blocked`.
    fn blocks_channels(&self, _ty: ElementType) -> bool {
        false
    }

    /// Whether its convolutions are fastest with the channels of images innermost.
    fn prefers_channels_last(&self) -> bool {
        false
    }

    /// Whether its products are fastest where lines of matrices begin at multiples of 16 bytes.
    fn copies_packs(&self) -> bool {
        false
    }

    /// Whether its products read columns of matrices as fast as rows.
    fn reads_columns(&self) -> bool {
        false
    }

    /// Whether what the model computes in `f32` stays in `f32`.
    fn keeps_floats(&self) -> bool;

    /// Whether a pointwise and a depthwise convolution of this type are faster as one.
    fn pairs_convolutions(&self, _ty: ElementType) -> bool {
        self.keeps_floats()
    }
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
    mean::of_image,
    sums::reshaped,
    sums::constants,
    counts::plus,
    counts::narrowed,
    rotary::rotation,
    attention::attention,
    masks::of_attention,
    masks::gathered,
    masks::reshaped,
    heads::beside,
    moves::transposes,
    moves::reshapes,
    batch_norm::into_convolution,
    batch_norm::into_product,
    flat::flat,
    epilogue::bias,
    heads::within,
    heads::transposes,
    joint::attention,
    joint::group_query,
    rotary::pair,
    gated::unit,
    quantized::bias,
    // A product may have its bias between itself and a scale.
    batch_norm::into_product,
    scale::product,
    layer_norm::skip,
    epilogue::residual,
    epilogue::activation,
    pair::depthwise,
    rows::moved_once,
    permuted::skip,
    permuted::output,
    lines::of_matrix,
    projection::gated,
    projection::normalised,
    exchanged::product,
];

/// Fuses what the target can run fused, in subgraphs as well. Types and shapes must be inferred; they are
/// afterwards.
pub(crate) fn fuse(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate) -> Result<()> {
    let bytes: &[Rule] = if target.prefers_bytes() { quantized::RULES } else { &[] };
    everywhere(graph, &mut |graph| {
        once(graph, target, evaluate);
        apply(graph, target, evaluate, bytes);
    });
    dead::remove(graph);
    infer::infer(graph)?;
    // What is still dequantized is computed with as floats.
    simplify(graph, evaluate, Weights::Dequantized)?;
    everywhere(graph, &mut |graph| {
        apply(graph, target, evaluate, RULES);
        once(graph, target, evaluate);
    });
    dead::remove(graph);
    infer::infer(graph)
}

/// What becomes possible once images have their channels innermost, where products have their columns.
const OF_CHANNELS: &[Rule] = &[
    excite::gates,
    batch_norm::into_product,
    columns::scaled,
    epilogue::bias,
    epilogue::residual,
    epilogue::activation,
];

/// Fuses again what images in another layout have brought together.
pub(super) fn fuse_channels(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate) {
    apply(graph, target, evaluate, OF_CHANNELS);
}

/// Calls `body` with the graph and those inside it, which come first.
fn everywhere(graph: &mut Graph, body: &mut dyn FnMut(&mut Graph)) {
    for id in graph.node_ids().collect::<Vec<_>>() {
        for (_, inner) in graph.node_mut(id).subgraphs_mut() {
            everywhere(inner, body);
        }
    }
    body(graph);
}

fn apply(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate, rules: &[Rule]) {
    for rule in rules {
        apply_one(graph, target, evaluate, *rule);
    }
}

fn apply_one(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate, rule: Rule) {
    let order = graph.order().unwrap_or_default();
    let mut rewriter = Rewriter::new(graph, target, evaluate);
    for id in order {
        if rewriter.graph.has_node(id) {
            rule(&mut rewriter, id);
        }
    }
}

/// Computes once what is computed alike.
fn once(graph: &mut Graph, target: &dyn Target, evaluate: &dyn Evaluate) {
    let order = graph.order().unwrap_or_default();
    let mut rewriter = Rewriter::new(graph, target, evaluate);
    let mut seen = common::Seen::default();
    for id in order {
        if rewriter.graph.has_node(id) {
            common::common(&mut rewriter, &mut seen, id);
        }
    }
}
